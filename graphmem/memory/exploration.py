"""Reads of a memory by name, id and time, without a question to rank by."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from heapq import nlargest

from graphmem.communities.results import FoundCommunity
from graphmem.errors import InvalidInput, NotFound
from graphmem.inputs import FilterLike, to_as_of, to_limit, to_text, to_texts, to_time
from graphmem.memory.base import ScopedMemory, Scopes, Time, in_thread
from graphmem.models import (
    AsOf,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Entity,
    Episode,
    EpisodeQuery,
    RecallQuery,
    Scope,
    SessionSummary,
    is_expired,
)
from graphmem.protocols import expired_entities
from graphmem.recall.facts import diff, edges_after, history, live, live_facts
from graphmem.results import Diff, Fact, Trace
from graphmem.visualize import PictureFormat, read_picture, render

_PAGE = 1000  # sessions read at once


class Exploration(ScopedMemory):
    """Reads of what a memory holds, without ranking by a question: entities, facts, versions, sessions, pictures."""

    def entities(
        self,
        query: str | None = None,
        *,
        entity_type: str | None = None,
        as_of: AsOf | Time | None = None,
        after: str = "",
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[Entity]:
        """Return the entities that names or words in a text match, best first; without one, all, oldest first.

        With `as_of`, return only entities that were recorded by `known` and had been seen by `valid`. Without a query,
        they are in the order of their ids, and `after` is the id of the last one of the previous page. `entity_type`
        may be in any case; `InvalidInput` names the types if there is none of that name.
        """
        return self._entities(self._scopes(scopes), query, entity_type, to_as_of(as_of), to_limit(limit), after)

    def facts(
        self,
        name: str | None = None,
        *,
        as_of: AsOf | Time | None = None,
        after: str = "",
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> tuple[Fact, ...]:
        """Return the facts that an entity takes part in, newest first; without a name, all, in the order of their ids.

        Parameters
        ----------
        name
            One of the names of the entity, or its id. Newest first is by `valid_from`, `recorded_at` and id.
        after
            Id of the last fact of the previous page. Facts that are recorded between two pages may be missing.

        Raises
        ------
        NotFound
            If `after` is given with a name, and that fact isn't in the scopes or was erased meanwhile.
        """
        where, moment, limit = self._scopes(scopes), to_as_of(as_of), to_limit(limit)
        ids, after = None if name is None else self._ids(where, name), to_text("after", after)
        if ids == ():
            return ()
        backend, query = self._engine.backend, EdgeQuery(touching=ids, as_of=moment)
        older = edges_after(backend, where, query, after) if ids is not None and after else []

        def read(most: int) -> list[Edge]:
            if ids is not None and after:
                edges = older[:most]
            else:
                edges = backend.find_edges(where, query, after=after, limit=most, newest_first=ids is not None)
            return edges if moment is None else [edge.as_known(moment.known) for edge in edges]

        return live_facts(backend, where, read, limit, self._engine.clock())

    def history(
        self,
        source: str,
        relation: str | None = None,
        text: str | None = None,
        *,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> tuple[Fact, ...]:
        """Return all versions of the facts whose subject is an entity, newest first: past, present and retracted.

        Parameters
        ----------
        source
            One of the entity's names, or its id.
        relation, text
            Only this relation, in any wording that maps to it; only facts that contain this text.
        as_of
            What had begun by `valid`, as it was known at `known`.
        """
        where, moment, limit = self._scopes(scopes), to_as_of(as_of), to_limit(limit)
        relation = None if relation is None else self._engine.ontology.relation(to_text("relation", relation))
        text = None if text is None else self._engine.redacted(to_text("text", text))
        ids = self._ids(where, source)
        if not ids:
            return ()
        backend, now = self._engine.backend, self._engine.clock()
        return history(backend, where, ids, relation=relation, text=text, as_of=moment, limit=limit, now=now)

    def diff(self, start: Time, end: Time, *, limit: int = 1000, scopes: Scopes | None = None) -> Diff:
        """Return what became true, what ended and what was learned after `start` and until `end`.

        Raises
        ------
        InvalidInput
            If `end` is before `start`.
        """
        where, begin, until = self._scopes(scopes), to_time(start, "start"), to_time(end, "end")
        if until < begin:
            raise InvalidInput(f"end: expected a time from {begin.isoformat()} on, got {until.isoformat()}")
        return diff(self._engine.backend, where, begin, until, limit=to_limit(limit), now=self._engine.clock())

    def episodes(
        self,
        ids: Sequence[str] | None = None,
        *,
        filters: FilterLike | None = None,
        after: str = "",
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[Episode]:
        """Return the episodes with these ids, such as those of a fact, in this order, unless they have expired.

        Without ids, return a page of all, in the order of their ids, which is that in which they were stored; none that
        ended or expired.

        Parameters
        ----------
        filters
            As in `GraphMemory.search`, for a list without ids: ``{"session_ids": "monday"}``.
        after
            Id of the last episode of the previous page. Episodes that are stored between two pages may be missing.
        limit
            Maximum number of episodes of a page; `ids` are all returned.

        Raises
        ------
        InvalidInput
            If `ids` is a text, or given together with `filters` or `after`.
        """
        where, backend, now = self._scopes(scopes), self._engine.backend, self._engine.clock()
        wanted, after, limit = self._engine.stored_filter(filters), to_text("after", after), to_limit(limit)
        if ids is None:
            return backend.find_episodes(where, EpisodeQuery(filters=wanted, live_at=now), after=after, limit=limit)
        if isinstance(ids, str):
            raise InvalidInput(f"ids: expected a list of ids, got the text {ids!r:.120}; pass [id]")
        if wanted is not None or after:
            raise InvalidInput("ids: can't be combined with filters or after")
        ids = to_texts("ids", ids)
        found = backend.get_episodes(where, list(dict.fromkeys(ids)))
        return [found[i] for i in ids if i in found and not is_expired(found[i].expires_at, now)]

    def session(
        self, session_id: str, *, before: str = "", limit: int = 100, scopes: Scopes | None = None
    ) -> list[Episode]:
        """Return the last episodes of a session, in the order in which they were stored; none that ended or expired.

        `before` is an id of an episode, and selects earlier ones: that of the first one of a page, for the page before.
        """
        named, now = self._engine.stored_name(to_text("session_id", session_id)), self._engine.clock()
        where, query, limit = self._scopes(scopes), EpisodeQuery(session_id=named, live_at=now), to_limit(limit)
        backend = self._engine.backend
        if not to_text("before", before):
            return backend.find_episodes(where, query, limit=limit, newest_first=True)[::-1]
        # by its place among the ids, as it may have been erased since
        ids = backend.find_episode_ids(where, query)
        end = bisect_left(ids, before)
        page = ids[max(0, end - limit) : end]
        found = backend.get_episodes(where, page) if page else {}
        return [found[i] for i in page if i in found]

    def sessions(
        self,
        *,
        filters: FilterLike | None = None,
        after: str | None = None,
        newest_first: bool = False,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[SessionSummary]:
        """Return the sessions, each with its number of episodes, its first and last time, and its speakers.

        They are in the order of their ids, which no later turn changes: a listing page by page misses none that was
        there when it began. Episodes that ended or expired don't count; a session of such alone isn't listed.

        Parameters
        ----------
        filters
            As in `GraphMemory.search`: only episodes that it matches count.
        after
            Id of the last session of the previous page.
        newest_first
            Return the sessions with the latest last times, the latest first. It reads all of them.

        Raises
        ------
        InvalidInput
            If `after` is given with `newest_first`.
        """
        where, wanted = self._scopes(scopes), self._engine.stored_filter(filters)
        query = EpisodeQuery(filters=wanted, live_at=self._engine.clock())
        after, limit = None if after is None else to_text("after", after), to_limit(limit)
        find = partial(self._engine.backend.find_sessions, where, query)
        if not newest_first:
            return find(after=after, limit=limit)
        if after is not None:
            raise InvalidInput("after: can't be combined with newest_first")
        listed = list(page := find(limit=_PAGE))
        while len(page) == _PAGE:
            listed += (page := find(after=page[-1].id, limit=_PAGE))
        return nlargest(limit, listed, key=lambda one: (one.last_at, one.id))

    def communities(
        self,
        query: str | None = None,
        *,
        level: int | None = 0,
        as_of: AsOf | Time | None = None,
        ended: bool = False,
        ids: Iterable[str] | str | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[FoundCommunity]:
        """Return communities with their members: those that match a question, best first; without one, the largest.

        A question is compared with names, summaries and members, and, with an embedding model, with the members' mean
        vector. Level 0 is the partition; deeper levels exist after ``leiden``; None means all. With `as_of`, they are
        as they had been detected by then; with `ended`, ended ones are included; with `ids`, only these are read.
        """
        where, moment = self._scopes(scopes), to_as_of(as_of)
        query = None if query is None else self._engine.redacted(to_text("query", query))
        level, ids = None if level is None else to_limit(level, "level"), None if ids is None else to_texts("ids", ids)
        wanted = CommunityQuery(level=level, as_of=moment, ended=ended, ids=ids)
        read = partial(self._engine.communities.find, where, query, wanted)
        if not self._engine.has_expired(where):
            return read(limit=to_limit(limit))
        backend, now = self._engine.backend, self._engine.clock()

        def unexpired(found: Sequence[FoundCommunity]) -> list[FoundCommunity]:
            gone = expired_entities(backend, where, {i for one in found for i in one.entity_ids}, now)
            left = ((one, tuple(member for member in one.members if member.id not in gone)) for one in found)
            # the texts may quote what has expired
            return [one.changed(name="", summary="", fingerprint="", members=each) for one, each in left if each]

        return list(live(lambda most: read(limit=most), unexpired, to_limit(limit)))

    def visualize(
        self,
        names: str | Iterable[str] | None = None,
        *,
        hops: int = 1,
        community: str | None = None,
        as_of: AsOf | Time | None = None,
        limit: int = 200,
        format: PictureFormat = "html",  # noqa: A002 - the word that users expect
        scopes: Scopes | None = None,
    ) -> str:
        """Draw the graph around some entities, of a community, or of the whole scope, colored by community.

        Parameters
        ----------
        names, hops, community
            Names of entities, and the distance from them, in [0, 6]; or the id or name of a community.
        limit
            Maximum number of entities: near ones before far ones, then those with more facts.
        format
            ``html``: an interactive page in one file, with facts of all times and their episodes; ``mermaid``: a flow
            chart for Markdown; ``dot``: for Graphviz; ``ascii``: a tree of lines.

        Raises
        ------
        NotFound
            If the scopes have no such entity or community.
        InvalidInput
            If several communities have that name.
        """
        where = self._scopes(scopes)
        ids = self._known_ids(where, () if names is None else to_texts("names", names))
        moment, limit, past = to_as_of(as_of), to_limit(limit), format == "html"
        community = None if community is None else to_text("community", community)
        now = self._engine.clock()
        read = partial(read_picture, self._engine.backend, where, ids, hops=hops, community=community, now=now)
        return render(read(as_of=moment, limit=limit, with_past=past), format)

    def why(self, trace_id: str, *, scopes: Scopes | None = None) -> Trace:
        """Return the trace of a recall or search with ``trace=True``: its seeds, and what it reached, with scores.

        Raises
        ------
        NotFound
            If there is no trace of this id (`RecallResult.trace_id`) in the scopes.
        """
        where, query = self._scopes(scopes), RecallQuery(ids=(to_text("trace_id", trace_id),))
        found = self._engine.recall.traces(where, query, 1)
        if not found:
            raise NotFound(f"recall trace {trace_id} is not in scope {', '.join(map(str, where))}")
        return found[0]

    def _known_ids(self, scopes: Sequence[Scope], names: Iterable[str]) -> list[str]:
        """Return the ids of the entities with these names; raise `NotFound` for an unknown name."""
        ids: list[str] = []
        for name in names:
            found = self._ids(scopes, name)
            gone = expired_entities(self._engine.backend, scopes, found, self._engine.clock())
            if gone.issuperset(found):
                raise NotFound(f"entity {name!r}: there is none of that name in scope {', '.join(map(str, scopes))}")
            ids += (i for i in found if i not in gone)
        return ids

    # Typed async forms.
    aentities = in_thread(entities)
    afacts = in_thread(facts)
    ahistory = in_thread(history)
    adiff = in_thread(diff)
    aepisodes = in_thread(episodes)
    asession = in_thread(session)
    asessions = in_thread(sessions)
    acommunities = in_thread(communities)
    avisualize = in_thread(visualize)
    awhy = in_thread(why)
