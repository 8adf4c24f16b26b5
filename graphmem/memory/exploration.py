"""`Exploration`: reads of what a memory holds by name, id and time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from graphmem.communities.results import FoundCommunity
from graphmem.errors import InvalidInput, NotFound
from graphmem.inputs import to_as_of, to_limit, to_time
from graphmem.memory.base import ScopedMemory, Scopes, Time, in_thread
from graphmem.models import (
    AsOf,
    CommunityQuery,
    EdgeQuery,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    RecallQuery,
    Scope,
    is_expired,
)
from graphmem.recall.history import diff, history
from graphmem.recall.recall import to_facts
from graphmem.results import Diff, Fact, Trace
from graphmem.visualize import PictureFormat, read_picture, render


class Exploration(ScopedMemory):
    """Reads of what a memory holds, without ranking by a question: entities, facts, versions, sessions, pictures."""

    def entities(
        self,
        query: str | None = None,
        *,
        entity_type: str | None = None,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[Entity]:
        """Return the entities that names or words in a text match, best first; without one, all, oldest first.

        With `as_of`, return only entities that were recorded by `known` and had been seen by `valid`.
        """
        where, limit = self._scopes(scopes), to_limit(limit)
        wanted = EntityQuery(entity_types=None if entity_type is None else (entity_type,), as_of=to_as_of(as_of))
        if query is None:
            return self._engine.backend.find_entities(where, wanted, limit=limit)
        return self._named(where, query, wanted, limit)

    def facts(
        self, name: str, *, as_of: AsOf | Time | None = None, limit: int = 100, scopes: Scopes | None = None
    ) -> tuple[Fact, ...]:
        """Return the facts that an entity takes part in, newest first; `name` is one of its names, or its id."""
        where, moment, limit = self._scopes(scopes), to_as_of(as_of), to_limit(limit)
        ids = self._ids(where, name)
        if not ids:
            return ()
        backend, query = self._engine.backend, EdgeQuery(touching=ids, as_of=moment)
        edges = backend.find_edges(where, query, limit=limit, newest_first=True)
        known = edges if moment is None else [edge.as_known(moment.known) for edge in edges]
        return to_facts(backend, where, known, self._engine.clock())

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
        """Return all versions of the facts of an entity, newest first: past, present and retracted.

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
        ids = self._ids(where, source)
        if not ids:
            return ()
        relation = None if relation is None else self._engine.ontology.relation(relation)
        backend, now = self._engine.backend, self._engine.clock()
        return history(backend, where, ids, relation=relation, text=text, as_of=moment, limit=limit, now=now)

    def diff(self, start: Time, end: Time, *, limit: int = 1000, scopes: Scopes | None = None) -> Diff:
        """Return what became true, what ended and what was learned after `start` and until `end`.

        Raises
        ------
        InvalidInput
            If `end` is before `start`.
        """
        where, begin, until = self._scopes(scopes), to_time(start), to_time(end)
        if until < begin:
            raise InvalidInput(f"end: expected a time from {begin.isoformat()} on, got {until.isoformat()}")
        return diff(self._engine.backend, where, begin, until, limit=to_limit(limit), now=self._engine.clock())

    def episodes(self, ids: Sequence[str], *, scopes: Scopes | None = None) -> list[Episode]:
        """Return the episodes with these ids, such as those of a fact, in this order, unless they have expired."""
        found = self._engine.backend.get_episodes(self._scopes(scopes), list(dict.fromkeys(ids)))
        now = self._engine.clock()
        return [found[i] for i in ids if i in found and not is_expired(found[i].expires_at, now)]

    def session(self, session_id: str, *, limit: int = 100, scopes: Scopes | None = None) -> list[Episode]:
        """Return the last episodes of a session, in the order in which they were stored; none that ended or expired."""
        named, now = self._engine.stored_name(session_id), self._engine.clock()
        where, query = self._scopes(scopes), EpisodeQuery(session_id=named, live_at=now)
        return self._engine.backend.find_episodes(where, query, limit=to_limit(limit), newest_first=True)[::-1]

    def communities(
        self,
        query: str | None = None,
        *,
        level: int | None = 0,
        as_of: AsOf | Time | None = None,
        ended: bool = False,
        ids: Iterable[str] | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[FoundCommunity]:
        """Return communities with their members: those that match a question, best first; without one, the largest.

        A question is compared with names, summaries and members, and, with an embedding model, with the members' mean
        vector. Level 0 is the partition; deeper levels exist after ``leiden``; None means all. With `as_of`, they are
        as they had been detected by then; with `ended`, ended ones are included; with `ids`, only these are read.
        """
        if level is not None and level < 0:
            raise InvalidInput(f"level: expected 0 or more, got {level}")
        where, moment = self._scopes(scopes), to_as_of(as_of)
        query = None if query is None else self._engine.redacted(query)
        wanted = CommunityQuery(level=level, as_of=moment, ended=ended, ids=None if ids is None else tuple(ids))
        return self._engine.communities.find(where, query, wanted, limit=to_limit(limit))

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
        ids = self._known_ids(where, [names] if isinstance(names, str) else names or ())
        moment, limit, past = to_as_of(as_of), to_limit(limit), format == "html"
        read = partial(read_picture, self._engine.backend, where, ids, hops=hops, community=community)
        return render(read(as_of=moment, limit=limit, with_past=past), format)

    def why(self, trace_id: str, *, scopes: Scopes | None = None) -> Trace:
        """Return the trace of a recall or search with ``trace=True``: its seeds, and what it reached, with scores.

        Raises
        ------
        NotFound
            If there is no trace of this id (`RecallResult.trace_id`) in the scopes.
        """
        found = self._engine.recall.traces(self._scopes(scopes), RecallQuery(ids=(trace_id,)), 1)
        if not found:
            raise NotFound(f"recall trace {trace_id} is not in scope {self.scope}")
        return found[0]

    def _known_ids(self, scopes: Sequence[Scope], names: Iterable[str]) -> list[str]:
        """Return the ids of the entities with these names; raise `NotFound` for an unknown name."""
        ids: list[str] = []
        for name in names:
            if not (found := self._ids(scopes, name)):
                raise NotFound(f"entity {name!r}: there is none of that name in scope {', '.join(map(str, scopes))}")
            ids += found
        return ids

    # Typed async forms.
    aentities = in_thread(entities)
    afacts = in_thread(facts)
    ahistory = in_thread(history)
    adiff = in_thread(diff)
    aepisodes = in_thread(episodes)
    asession = in_thread(session)
    acommunities = in_thread(communities)
    avisualize = in_thread(visualize)
    awhy = in_thread(why)
