"""The tool memory_forget, which asks the user before it erases."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from graphmem.adapters.mcp.full import FullTools
from graphmem.adapters.mcp.results import Erasure, clean, fenced, result
from graphmem.adapters.mcp.tools import can_ask, tool, toolset_of
from graphmem.upkeep.forget import Forgotten

_SHOWN = 5  # texts of a kind, and names in a question


class Consent(BaseModel):
    """What a user answers."""

    erase: Annotated[bool, Field(description="Erase it? It can't be undone.")]


async def ask_before_erasing(
    ctx: Context[Any, Any],
    entity: str | None,
    episode: str | None,
    session: str | None,
    speaker: str | None,
    with_episodes: bool,
    dry_run: bool,
    confirm: bool,
) -> Consent | Elicit[Consent]:
    """Ask the user, with the counts of a dry run; where the client can't ask, `confirm` decides."""
    if dry_run or not can_ask(ctx):
        return Consent(erase=confirm)
    tools = toolset_of(ctx)
    what: dict[str, Any] = {"entity": entity, "episode": episode, "session": session, "speaker": speaker}
    plan = await tools.caller().memory.aforget(**what, with_episodes=with_episodes, dry_run=True)
    [named] = [f"{kind} {clean(name)!r}" for kind, name in what.items() if name is not None]
    counts = ", ".join(f"{number} {name}" for name, number in plan.counts.items())
    stays = "".join(f" {clean(each)}." for each in plan.remaining[:_SHOWN])
    return Elicit(f"Erase {named} from the memory? It has {counts or 'no rows'}.{stays}", Consent)


class AllTools(FullTools):
    """All tools."""

    @tool("Erase from the memory", "admin", destructive=True)
    async def memory_forget(
        self,
        ctx: Context[Any, Any],
        consent: Annotated[ElicitationResult[Consent], Resolve(ask_before_erasing)],
        entity: Annotated[str | None, Field(description="name or id")] = None,
        episode: Annotated[str | None, Field(description="id")] = None,
        session: str | None = None,
        speaker: str | None = None,
        with_episodes: Annotated[bool, Field(description="with entity: also the episodes about it")] = False,
        dry_run: bool = False,
        confirm: Annotated[bool, Field(description="the user agreed; only where the client can't ask")] = False,
    ) -> Annotated[CallToolResult, Erasure]:
        """Erase one entity, episode, session or speaker for good; the user is asked first. dry_run only counts.

        Not for wrong or outdated facts: use memory_retract or memory_end.
        """
        del confirm  # `ask_before_erasing` has read it
        agreed = isinstance(consent, AcceptedElicitation) and consent.data.erase
        erase = agreed and not dry_run
        done = await self.caller().memory.aforget(
            entity,
            episode=episode,
            session=session,
            speaker=speaker,
            with_episodes=with_episodes,
            dry_run=not erase,
        )
        if erase:
            outcome = "Erased."
        elif dry_run:
            outcome = "Nothing was erased: this is a dry run."
        elif can_ask(ctx):
            outcome = "Nothing was erased: the user did not agree."
        else:
            outcome = "Nothing was erased. Ask the user, and only after a yes call again with confirm=true."
        return _reported(done, outcome, erased=erase)


def _reported(done: Forgotten, outcome: str, *, erased: bool) -> CallToolResult:
    report = Erasure(
        erased=erased,
        counts=dict(done.counts),
        examples={kind: [clean(text) for text in texts[:_SHOWN]] for kind, texts in done.examples.items()},
        remaining=[clean(each) for each in done.remaining],
        left=[clean(each) for each in done.left],
    )
    lines = [f"- {number} {name}" for name, number in report.counts.items()]
    lines += [f"- {kind}, such as: {text}" for kind, texts in report.examples.items() for text in texts]
    lines += [f"- stays: {each}" for each in report.remaining]
    lines += [f"- not erased yet, call again: {each}" for each in report.left]
    return result(report, f"{outcome}\n{fenced(chr(10).join(lines))}")
