"""Tools of the profile ``core``: ask a memory, and tell it something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field

from graphmem.adapters.mcp.results import (
    Added,
    Episodes,
    FactItem,
    Facts,
    Remembered,
    Text,
    clean,
    fact_item,
    fenced,
    found_item,
    listed,
    paged,
    plain,
    result,
)
from graphmem.adapters.mcp.tools import Budget, Caller, Filters, Limit, Name, Offset, Time, ToolSet, tool
from graphmem.results import Fact
from graphmem.search.context import term_weights
from graphmem.text import counted
from graphmem.text.normalize import canonical

_REFUSED = 20  # refused facts that a result lists
_SOURCES = 3  # episodes of a fact that a result names


class GivenFact(BaseModel):
    """A ready-made fact."""

    model_config = ConfigDict(extra="forbid")

    subject: str
    relation: str
    object: str
    fact: Annotated[str, Field(description="sentence")] = ""
    valid_from: str | None = None
    valid_to: str | None = None
    confidence: float = 1.0


class CoreTools(ToolSet):
    """The six everyday tools."""

    @tool("Context for an answer")
    async def memory_context(
        self, query: str, budget_tokens: Budget = 800, as_of: Time = None, filters: Filters = None
    ) -> Annotated[CallToolResult, Text]:
        """Return facts and dated quotes for a question, within a budget.

        Call it before you answer about people, decisions or the past. Not for ids: use memory_recall.
        """
        caller = self.caller()
        text = await caller.memory.acontext(query, budget_tokens=budget_tokens, **caller.question(as_of, filters))
        return result(Text(text=plain(text.unfenced)), fenced(text.unfenced))

    @tool("Search episodes")
    async def memory_search(
        self,
        query: str,
        as_of: Time = None,
        filters: Annotated[Filters, Field(description="session_ids, speakers, roles, since, until, metadata")] = None,
        limit: Limit = 10,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Episodes]:
        """Return messages and passages for a question, best first, with date, speaker and id.

        For exact words. Not for current facts: use memory_recall.
        """
        caller = self.caller()
        found = await caller.memory.asearch(query, k=offset + limit + 1, **caller.question(as_of, filters))
        weights = term_weights(query, [one.episode.searchable_text for one in found])
        shown, after = paged([found_item(one, weights) for one in found], offset, limit, budget_tokens)
        page = Episodes(episodes=shown, next_offset=after, notes=list(found.degraded) or None)
        return listed(page, page.episodes)

    @tool("Recall facts")
    async def memory_recall(
        self,
        query: str,
        as_of: Time = None,
        filters: Filters = None,
        limit: Limit = 10,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Facts]:
        """Return facts for a question, best first, with dates, sources and ids.

        Not for exact words: use memory_search.
        """
        caller = self.caller()
        found = await caller.memory.arecall(query, limit=offset + limit + 1, **caller.question(as_of, filters))
        return await facts_page(caller, list(found), offset, limit, budget_tokens)

    @tool("History of an entity")
    async def memory_history(
        self,
        name: Name,
        relation: str | None = None,
        as_of: Time = None,
        limit: Limit = 20,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Facts]:
        """Return all versions of an entity's facts, newest first: current, ended and retracted. Not for questions."""
        caller = self.caller()
        found = await caller.memory.ahistory(
            name, relation, as_of=as_of, limit=offset + limit + 1, scopes=caller.access.scopes
        )
        return await facts_page(caller, list(found), offset, limit, budget_tokens)

    @tool("Remember a message", "write")
    async def memory_remember(
        self,
        text: str,
        role: Literal["user", "assistant", "tool"] = "user",
        speaker: str | None = None,
        session_id: str | None = None,
        occurred_at: Time = None,
        external_id: Annotated[str | None, Field(description="repeats store nothing")] = None,
        metadata: dict[str, Any] | None = None,
        expires_in: Annotated[str | None, Field(description="30d")] = None,
    ) -> Annotated[CallToolResult, Remembered]:
        """Store a message or note.

        One message a call, in its own words; role tool for pages, files. Not for secrets, reasoning, memory results.
        """
        caller = self.caller()
        authors = authorship(caller)
        if authors and (named := {"user", "agent"} & (metadata or {}).keys()):
            raise ToolError(f"metadata: {' and '.join(sorted(named))} come from the key; leave them out")
        stored = await caller.memory.aremember(
            text,
            role=role,
            speaker=speaker_of(caller, role, speaker),
            session_id=session_id,
            occurred_at=occurred_at,
            external_id=external_id,
            metadata={**(metadata or {}), **authors},
            expires_in=expires_in,
        )
        done = "Stored" if stored.created else "Already stored: nothing changed"
        return result(
            Remembered(episode_id=stored.episode_id, created=stored.created), f"{done} (episode {stored.episode_id})."
        )

    @tool("Add facts", "write")
    async def memory_add_facts(
        self, facts: Annotated[list[GivenFact], Field(min_length=1, max_length=10_000)]
    ) -> Annotated[CallToolResult, Added]:
        """Store ready-made facts; a new value of a single-valued relation ends the old one, which history keeps.

        Not for text: use memory_remember.
        """
        caller = self.caller()
        properties = authorship(caller)
        triples = [{**fact.model_dump(exclude_none=True), "metadata": properties} for fact in facts]
        report = await caller.memory.aadd_facts(triples, skip_invalid=True)
        refused = [clean(one.reason)[:300] for one in report.rejected[:_REFUSED]]
        added = Added(
            received=report.received,
            new=report.edges,
            confirmed=report.supported,
            ended=report.ended,
            refused=refused,
        )
        lines = [
            f"{added.new} new, {added.confirmed} confirmed, {added.ended} ended of {counted(added.received, 'fact')}."
        ]
        if report.rejected_count:
            lines += [f"Refused: {report.rejected_count}", fenced("\n".join(refused))]
        return result(added, "\n".join(lines))


async def facts_page(
    caller: Caller, facts: Sequence[Fact], offset: int, limit: int, budget_tokens: int
) -> CallToolResult:
    """Return a page of facts as the result of a tool."""
    items = await fact_items(caller, facts[: offset + limit + 1])
    shown, after = paged(items, offset, limit, budget_tokens)
    return listed(Facts(facts=shown, next_offset=after), shown)


async def fact_items(caller: Caller, facts: Sequence[Fact]) -> list[FactItem]:
    """Return facts with the first episodes that state them."""
    ids = [i for fact in facts for i in fact.episode_ids[:_SOURCES]]
    episodes = {e.id: e for e in await caller.memory.aepisodes(ids, scopes=caller.access.scopes)}
    return [fact_item(fact, episodes) for fact in facts]


def speaker_of(caller: Caller, role: str, speaker: str | None) -> str | None:
    """Return the speaker of a message: the user or agent of the key, or a given one where the key names none.

    Raises
    ------
    ToolError
        If another speaker than that of the key is given, a speaker of an assistant whose name the key leaves out, or
        the user or agent as the speaker of an external source.
    """
    user, agent = caller.access.user, caller.access.agent
    fixed = {"user": user, "assistant": agent}.get(role)
    if fixed and speaker not in (None, fixed):
        raise ToolError(f"speaker: messages of the role {role} are stored as those of {fixed!r}; leave speaker out")
    if speaker and role == "assistant" and user and not agent:
        raise ToolError("speaker: the key names no agent, so the role assistant has no speaker; leave speaker out")
    if speaker and role == "tool" and canonical(speaker) in {canonical(name) for name in (user, agent) if name}:
        raise ToolError(f"speaker: {clean(speaker)[:60]!r} says nothing as a tool; leave speaker out")
    return fixed or speaker


def authorship(caller: Caller) -> dict[str, Any]:
    """Return the user and agent of the key as metadata of what they store."""
    given = {"user": caller.access.user, "agent": caller.access.agent}
    return {name: value for name, value in given.items() if value is not None}
