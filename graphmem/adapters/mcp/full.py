"""Further tools of the profile ``full``: look at the graph, correct it, export, forget after asking the user."""

from __future__ import annotations

from collections import Counter
from functools import partial
from io import BytesIO
from itertools import islice, zip_longest
from typing import Annotated, Any, Literal

from mcp.server.apps import client_supports_apps
from mcp.server.mcpserver import AcceptedElicitation, Context, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult
from pydantic import Field

from graphmem.adapters.mcp.graph import facts_of, neighborhood, shortest_path
from graphmem.adapters.mcp.results import (
    AllStats,
    Changed,
    Communities,
    CommunityItem,
    Considered,
    Entities,
    EntityItem,
    Episodes,
    Erasure,
    Explained,
    Export,
    Extracted,
    FactItem,
    Facts,
    GraphFacts,
    InferredFacts,
    Merged,
    ScopeStats,
    SessionItem,
    Sessions,
    Text,
    clean,
    episode_item,
    erasure_report,
    fenced,
    listed,
    minute,
    paged,
    plain,
    result,
)
from graphmem.adapters.mcp.tools import (
    Budget,
    Caller,
    Consent,
    CoreTools,
    Filters,
    Limit,
    Name,
    Offset,
    Time,
    ask_before_erasing,
    authorship,
    can_ask,
    fact_items,
    facts_page,
    speaker_of,
    tool,
)
from graphmem.errors import InvalidInput
from graphmem.inference.service import LIMIT
from graphmem.models import utc_now
from graphmem.text import counted

_LONGEST_WAIT = 60  # seconds
_MOST_LISTED = 10_101  # facts of an entity that can be listed: up to the last page
_MOST_ROWS = 5000  # rows of an export in a result
_MOST_MEMBERS = 12  # members of a community that a result names
_SHOWN_TO_USER = "The host shows the picture to the user."

PAGE = "ui://graphmem/graph.html"
"""URI of the MCP App that shows a picture."""
PAGE_META = "graphmem/page"
"""Key of the page of a picture in the metadata of a result, which the MCP App shows."""


class FullTools(CoreTools):
    """Tools that explore and correct a memory, beside those of the core."""

    @tool("List entities")
    async def memory_entities(
        self,
        query: str | None = None,
        entity_type: str | None = None,
        as_of: Time = None,
        limit: Limit = 20,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Entities]:
        """Return entities that words or names match; without a query, those with most mentions and facts.

        Not for what is known about one: use memory_relationships.
        """
        caller = self.caller()
        found = await caller.memory.admin.aentity_counts(
            query, entity_type=entity_type, as_of=as_of, limit=offset + limit + 1, scopes=caller.access.scopes
        )
        items = [
            EntityItem(
                id=one.entity.id,
                name=clean(one.entity.name),
                type=one.entity.entity_type,
                mentions=one.mentions,
                facts=one.facts,
            )
            for one in found
        ]
        shown, after = paged(items, offset, limit, budget_tokens)
        return listed(Entities(entities=shown, next_offset=after), shown)

    @tool("List sessions")
    async def memory_sessions(
        self, filters: Filters = None, limit: Limit = 20, offset: Offset = 0, budget_tokens: Budget = 2000
    ) -> Annotated[CallToolResult, Sessions]:
        """Return the sessions, the latest first, with numbers of episodes, dates and speakers.

        Not for their messages: use memory_episodes.
        """
        caller = self.caller()
        most, scopes = offset + limit + 1, caller.access.scopes
        found = await caller.memory.asessions(filters=filters, newest_first=True, limit=most, scopes=scopes)
        items = [
            SessionItem(
                id=clean(one.id),
                episodes=one.episodes,
                first=minute(one.first_at),
                last=minute(one.last_at),
                speakers=[clean(speaker) for speaker in one.speakers[:_MOST_MEMBERS]],
            )
            for one in found
        ]
        shown, after = paged(items, offset, limit, budget_tokens)
        return listed(Sessions(sessions=shown, next_offset=after), shown)

    @tool("List episodes")
    async def memory_episodes(
        self,
        ids: Annotated[list[str], Field(min_length=1, max_length=100)] | None = None,
        filters: Filters = None,
        limit: Limit = 20,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Episodes]:
        """Return messages and passages in the order in which they were stored, such as those of filters.session_ids.

        Or those with the given ids, such as the sources of a fact. Not for a question: use memory_search.
        """
        caller = self.caller()
        most, scopes = offset + limit + 1, caller.access.scopes
        found = await caller.memory.aepisodes(ids, filters=filters, limit=most, scopes=scopes)
        shown, after = paged([episode_item(one, {}) for one in found], offset, limit, budget_tokens)
        return listed(Episodes(episodes=shown, next_offset=after), shown)

    @tool("Relationships of an entity")
    async def memory_relationships(
        self,
        name: Name,
        relation: str | None = None,
        as_of: Time = None,
        limit: Limit = 20,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Facts]:
        """Return the facts of an entity that hold now or at as_of, newest first. Not for ended ones: memory_history."""
        caller = self.caller()
        found = await facts_of(caller, name, as_of, _MOST_LISTED)
        wanted = None if relation is None else _relation(relation)
        kept = [fact for fact in found if wanted is None or _relation(fact.relation) == wanted]
        return await facts_page(caller, kept, offset, limit, budget_tokens)

    @tool("Query the graph")
    async def memory_query(
        self,
        kind: Literal["neighbors", "path", "stats"],
        name: Name,
        target: Annotated[str | None, Field(description="for path: the other entity")] = None,
        hops: Annotated[int, Field(ge=1, le=4)] = 2,
        as_of: Time = None,
        limit: Limit = 50,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, GraphFacts]:
        """Return the facts within some hops of an entity, a shortest path to another, or its counts by relation.

        Not for questions in words: use memory_recall.
        """
        caller = self.caller()
        if kind == "stats":
            facts = await facts_of(caller, name, as_of)
            counts = dict(Counter(clean(fact.relation) for fact in facts).most_common())
            lines = (f"- {relation}: {number}" for relation, number in counts.items())
            return listed(GraphFacts(facts=[], relations=counts), lines)
        if kind == "path":
            if target is None:
                raise ToolError("target: a path needs the name of the other entity")
            found = await shortest_path(caller, name, target, hops, as_of)
        else:
            found = await neighborhood(caller, name, hops, as_of, offset + limit + 1)
        return await facts_page(caller, found, offset, limit, budget_tokens)

    @tool("Extract facts from a text", "write")
    async def memory_extract(
        self,
        text: str,
        role: Literal["user", "assistant"] = "user",
        speaker: str | None = None,
        session_id: str | None = None,
        occurred_at: Time = None,
        external_id: str | None = None,
        timeout_seconds: Annotated[float, Field(ge=0, le=_LONGEST_WAIT)] = 30,
    ) -> Annotated[CallToolResult, Extracted]:
        """Store a text, wait until its facts are extracted, and return the new ones.

        Not for messages whose facts you don't need at once: use memory_remember.
        """
        caller, start = self.caller(), utc_now()
        stored = await caller.memory.aremember(
            text,
            role=role,
            speaker=speaker_of(caller, role, speaker),
            session_id=session_id,
            occurred_at=occurred_at,
            external_id=external_id,
            metadata=authorship(caller),
        )
        done = await caller.memory.aflush(timeout_seconds, episode_id=stored.episode_id) == 0
        # what was recorded since, whenever it holds
        learned = (await caller.memory.adiff(start.isoformat(), utc_now().isoformat())).learned
        items = await fact_items(caller, [fact for fact in learned if stored.episode_id in fact.episode_ids])
        if not done:
            text = "It is stored, and still waits for its extraction."
        elif items:
            text = fenced("\n".join(map(str, items)))
        else:
            text = "It is stored. No fact is new; those that it confirms, dates or ends are in memory_history."
        extracted = Extracted(episode_id=stored.episode_id, done=done, facts=items)
        return result(extracted, text)

    @tool("Merge entities", "admin")
    async def memory_merge(
        self, names: Annotated[list[str], Field(min_length=1)], into: Name
    ) -> Annotated[CallToolResult, Merged]:
        """Merge entities that are the same into one; memory_unmerge undoes it. Not for similar ones: ask first."""
        made = await self.caller().memory.admin.amerge(names, into=into)
        ids = [one.id for one in made]
        return result(Merged(merge_ids=ids), f"Merged; to undo: memory_unmerge with {', '.join(ids)}.")

    @tool("Undo a merge", "admin")
    async def memory_unmerge(self, merge_id: str) -> Annotated[CallToolResult, Merged]:
        """Undo a merge by the id that memory_merge returned. Not for facts: use memory_retract."""
        done = await self.caller().memory.admin.aunmerge(merge_id)
        return result(Merged(entity=clean(done.entity.name)), fenced(f"{clean(done.entity.name)} is separate again."))

    @tool("Infer facts", "admin", idempotent=True)
    async def memory_infer(
        self,
        about: Annotated[str | None, Field(description="an entity, for inference by the language model")] = None,
        limit: Annotated[int, Field(ge=1, le=50_000)] = LIMIT,
        dry_run: bool = True,
    ) -> Annotated[CallToolResult, InferredFacts]:
        """Infer facts by rules, or about an entity by the language model; with dry_run only show what would be stored.

        Not for what was said: use memory_add_facts.
        """
        done = await self.caller().memory.admin.ainfer(about, limit=limit, dry_run=dry_run)
        shown = InferredFacts(
            added=done.added,
            kept=done.kept,
            ended=done.removed,
            left_out=done.skipped,
            examples=[clean(line) for line in done.examples],
            truncated=done.truncated,
        )
        would = "would be " if dry_run else ""
        lines = [f"{counted(done.added, 'fact')} {would}added, {done.kept} {would}kept, {done.removed} {would}ended."]
        if done.truncated:
            lines.append("The limit was reached: more facts follow from the stored ones.")
        if shown.examples:
            lines.append(fenced("\n".join(shown.examples)))
        return result(shown, "\n".join(lines))

    @tool("Changes between two times")
    async def memory_diff(
        self,
        start: Annotated[str, Field(description="ISO 8601")],
        end: Time = None,
        limit: Limit = 20,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Changed]:
        """Return what became true, what ended and what was learned after start and until end, by default now.

        Not for one entity: use memory_history.
        """
        caller, last = self.caller(), offset + limit + 1
        diff = await caller.memory.adiff(start, end or utc_now().isoformat(), limit=last, scopes=caller.access.scopes)
        changes = {"began": diff.began, "ended": diff.ended, "learned": diff.learned}
        rows = zip_longest(*([(name, fact) for fact in facts] for name, facts in changes.items()))
        # in turn, so that a page has some of each kind
        mixed = list(islice((each for row in rows for each in row if each is not None), last))
        shown, after = paged(await fact_items(caller, [fact for _, fact in mixed]), offset, limit, budget_tokens)
        parts: dict[str, list[FactItem]] = {name: [] for name in changes}
        for (name, _), item in zip(mixed[offset:], shown, strict=False):
            parts[name].append(item)
        lines = [line for name, items in parts.items() if items for line in (f"{name}:", *map(str, items))]
        return listed(Changed(**parts, next_offset=after), lines)

    @tool("Explain a recall", "write")
    async def memory_why(
        self,
        query: str,
        as_of: Time = None,
        limit: Limit = 20,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Explained]:
        """Recall facts for a question and return why: its entities, and each fact with score, hops and rank.

        Not for an answer: use memory_recall. It covers the scope that you write to, and stores a trace there.
        """
        caller = self.caller()
        found = await caller.memory.arecall(query, asked_by=caller.access.user, as_of=as_of, trace=True)
        if found.trace_id is None:
            return listed(Explained(seeds=[], facts=[]), ())
        trace = await caller.memory.awhy(found.trace_id)
        facts = [
            Considered(
                fact=clean(f"{one.fact.fact}{one.fact.grounds}"),
                fact_id=one.fact.id,
                found_at=clean(one.found_at),
                score=round(one.score, 3),
                hop=one.hop,
                rank=one.rank,
            )
            for one in trace.facts
        ]
        shown, after = paged(facts, offset, limit, budget_tokens)
        seeds = [f"{clean(seed.name)} ({seed.entity_type}, {seed.score:.2f})" for seed in trace.seeds]
        lines = (f"started from: {', '.join(seeds)}", *shown)
        return listed(Explained(seeds=seeds, facts=shown, next_offset=after), lines)

    @tool("Communities")
    async def memory_communities(
        self,
        query: str | None = None,
        as_of: Time = None,
        limit: Limit = 10,
        offset: Offset = 0,
        budget_tokens: Budget = 2000,
    ) -> Annotated[CallToolResult, Communities]:
        """Return groups of related entities with summaries: the largest, or those that match a query.

        Use it for questions about everything. Not for single facts: use memory_recall.
        """
        caller = self.caller()
        found = await caller.memory.acommunities(
            query, as_of=as_of, limit=offset + limit + 1, scopes=caller.access.scopes
        )
        items = [
            CommunityItem(
                id=one.id,
                name=clean(one.name),
                summary=clean(one.summary),
                members=[clean(member.name) for member in one.members[:_MOST_MEMBERS]],
                size=len(one),
            )
            for one in found
        ]
        shown, after = paged(items, offset, limit, budget_tokens)
        return listed(Communities(communities=shown, next_offset=after), shown)

    @tool("Draw the graph", page=PAGE)
    async def memory_visualize(
        self,
        ctx: Context[Any, Any],
        names: list[str] | None = None,
        hops: Annotated[int, Field(ge=0, le=6)] = 1,
        as_of: Time = None,
        limit: Annotated[int, Field(ge=1, le=1000)] = 100,
        format: Literal["mermaid", "ascii", "dot", "html"] = "mermaid",  # noqa: A002 - the word that callers expect
    ) -> Annotated[CallToolResult, Text]:
        """Draw the graph around entities, or all of it, as text; hosts with MCP Apps show a page as well.

        Not for reading facts: use memory_relationships.
        """
        has_apps = client_supports_apps(ctx)
        if format == "html" and not has_apps:
            raise ToolError(
                "format: this client shows no pages (MCP Apps); use mermaid, ascii or dot, or have the user run "
                "graphmem visualize --out graph.html"
            )
        caller = self.caller()
        draw = partial(
            caller.memory.avisualize, names, hops=hops, as_of=as_of, limit=limit, scopes=caller.access.scopes
        )
        meta = {PAGE_META: await draw(format="html")} if has_apps else None
        if format == "html":
            return result(Text(text=_SHOWN_TO_USER), _SHOWN_TO_USER, meta)
        picture = await draw(format=format)
        return result(Text(text=plain(picture)), fenced(picture), meta)

    @tool("Retract a fact", "write", idempotent=True)
    async def memory_retract(self, fact_id: str, reason: str = "") -> Annotated[CallToolResult, Facts]:
        """Record that a fact was never true; the history keeps it. Not for what was true once: use memory_end."""
        caller = self.caller()
        return await facts_page(caller, [await caller.memory.aretract(fact_id, reason=reason)], 0, 1, 2000)

    @tool("End a fact", "write", idempotent=True)
    async def memory_end(self, fact_id: str, at: Time = None, reason: str = "") -> Annotated[CallToolResult, Facts]:
        """Record that a fact stopped being true, by default now. Not for errors: use memory_retract."""
        caller = self.caller()
        return await facts_page(caller, [await caller.memory.aend(fact_id, at=at, reason=reason)], 0, 1, 2000)

    @tool("Counts of the memory")
    async def memory_stats(self) -> Annotated[CallToolResult, AllStats]:
        """Return how much the memory holds and what waits for extraction. Not for counts of an entity: memory_query."""
        scopes = await scope_stats(self.caller())
        lines = [
            f"- scope {one.scope}: {counted(one.episodes, 'episode')} ({one.waiting_episodes} waiting, "
            f"{one.failed_episodes} failed), {counted(one.entities, 'entity', 'entities')}, "
            f"{counted(one.facts, 'fact')} ({one.current_facts} current)"
            for one in scopes
        ]
        return listed(AllStats(scopes=scopes), lines)

    @tool("Export the memory", "admin", idempotent=True)
    async def memory_export(self) -> Annotated[CallToolResult, Export]:
        """Return the scope that you write to as lines of JSON. Not for more than 5,000 rows: graphmem export."""
        target = BytesIO()
        done = await self.caller().memory.admin.aexport(target, vectors=False, on_rows=_require_few)
        lines = target.getvalue().decode().split("\n")[:-1]
        return listed(Export(lines=lines, checksum=done.checksum), lines)

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
        return erasure_report(done, outcome, erased=erase)


def _require_few(rows: int) -> None:
    if rows > _MOST_ROWS:
        raise InvalidInput(
            f"the scope has more than {counted(_MOST_ROWS, 'row')}: export it to a file, with graphmem export"
        )


async def scope_stats(caller: Caller) -> list[ScopeStats]:
    """Return the counts of the scopes of a caller."""
    found = [await caller.memory.in_scope(scope).astats() for scope in caller.access.scopes]
    return [
        ScopeStats(
            scope=clean(one.scope),
            entities=one.entities,
            facts=one.edges,
            current_facts=one.active_edges,
            episodes=one.episodes,
            waiting_episodes=one.pending_episodes,
            failed_episodes=one.failed_episodes,
            communities=one.communities,
        )
        for one in found
    ]


def _relation(text: str) -> str:
    return "_".join(text.casefold().replace("_", " ").split())
