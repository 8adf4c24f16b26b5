"""Erasure by a tool: the question to the user before it, and its result."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, Elicit
from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from graphmem.adapters.mcp.results import Erasure, clean, fenced, result
from graphmem.adapters.mcp.tools import can_ask, toolset_of
from graphmem.upkeep.forget import Forgotten

_SHOWN = 5  # texts of a kind, and names in a question


class Consent(BaseModel):
    """Answer of a user."""

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


def erasure_report(done: Forgotten, outcome: str, *, erased: bool) -> CallToolResult:
    """Return the result of an erasure or a dry run as that of a tool, beginning with what came of it."""
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
