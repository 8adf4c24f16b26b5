"""`MemoryBackend`: every member of `GraphBackend`, written to be obviously right rather than fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TypeVar

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    Alias,
    AsOf,
    Changes,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityHit,
    EntityQuery,
    Episode,
    EpisodeQuery,
    ExpandLimits,
    IndexEntry,
    IndexKind,
    IndexState,
    Mark,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    RecallQuery,
    RecallTrace,
    Scope,
    StoreStats,
    Subgraph,
    utc_now,
)
from graphmem.protocols import GraphBackend, question_words
from graphmem_memory import indexing, matching, upkeep
from graphmem_memory.tables import ClaimRow, Store
from graphmem_memory.traversal import expand
from graphmem_memory.writing import apply_changes, utc

T = TypeVar("T")
Copied = TypeVar("Copied", Entity, Edge)


class MemoryBackend(GraphBackend):
    """A store in dicts.

    Parameters
    ----------
    store
        The rows; several backends may share them.
    place
        The URL that `diagnose` shows.
    """

    def __init__(self, store: Store, place: str) -> None:
        self._store = store
        self._place = place

    # Entities -------------------------------------------------------------------------------------

    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity of which a name is an alias."""
        with self._store.lock:
            return [
                (name, own(entity))
                for name in dict.fromkeys(names)
                for row in self._store.aliases.read([scope], self._store.aliases.keys_of("alias", [(scope, name)]))
                if (entity := self._store.entities.get(row.alias.entity_id)) is not None
            ]

    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        with self._store.lock:
            rows = self._store.entities.read(scopes, query.ids, after=after)
            found = (own(row) for row in rows if matching.entity_matches(row, query))
            return list(islice(found, limit))

    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of these entities, ordered by entity id, then alias."""
        with self._store.lock:
            table = self._store.aliases
            found = [row.alias for row in table.read(scopes, table.keys_of("entity", entity_ids))]
            return sorted(found, key=lambda a: (a.entity_id, a.alias, a.entity_type))

    def search_entities(
        self, scopes: Sequence[Scope], *, words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[EntityHit]:
        """Find entities by alias and by words."""
        with self._store.lock:
            by_alias: dict[str, str] = {}
            for phrase in sorted(set(phrases), key=lambda p: (-len(p), p)):
                for scope in scopes:
                    for _, entity in self.resolve_names(scope, [phrase]):
                        by_alias.setdefault(entity.id, phrase)
            prefixes = question_words(words)
            scored = [
                (matching.text_score(entity, prefixes), entity.id)
                for entity in (self._store.entities.read(scopes) if prefixes else ())
                if entity.archived_at is None
            ]
            best = sorted((-score, entity_id) for score, entity_id in scored if score > 0)[:limit]
            longest = sorted(by_alias, key=lambda i: (-len(by_alias[i]), i))[:limit]
            ids = {*longest, *(entity_id for _, entity_id in best)}
            return [self._hit(entity, by_alias.get(entity.id)) for entity in self._store.entities.read(scopes, ids)]

    def _hit(self, entity: Entity, alias: str | None) -> EntityHit:
        now = utc_now()
        edges = [e for e in self._edges_of([entity.scope], entity.id) if matching.edge_is_visible(e, None, now)]
        best = sorted(edges, key=matching.best_first)[:1000]
        return EntityHit(own(entity), alias, degree=len(best), edge_types=len({e.edge_type for e in best}))

    def _edges_of(self, scopes: Sequence[Scope], entity_id: str) -> Iterable[Edge]:
        table = self._store.edges
        return table.read(scopes, table.keys_of("source", [entity_id]) | table.keys_of("target", [entity_id]))

    # Edges ----------------------------------------------------------------------------------------

    def find_edges(
        self,
        scopes: Sequence[Scope],
        query: EdgeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Edge]:
        """Return a page of the edges that match."""
        _no_cursor_backwards(after, newest_first)
        now = utc_now()
        with self._store.lock:
            rows = self._store.edges.read(scopes, self._edge_candidates(query), after=after)
            found: Iterable[Edge] = (row for row in rows if matching.edge_matches(row, query, now))
            if newest_first:
                found = sorted(found, key=lambda e: (e.valid_from, e.recorded_at, e.id), reverse=True)
            return [own(edge) for edge in islice(found, limit)]

    def _edge_candidates(self, query: EdgeQuery) -> Iterable[str] | None:
        """Return ids among which all matching edges are, by whichever index serves; None means any."""
        edges = self._store.edges
        if query.ids is not None:
            return query.ids
        if query.keys is not None:
            return edges.keys_of("source", {key[0] for key in query.keys})
        if query.slots is not None:
            return edges.keys_of("source", {slot[0] for slot in query.slots})
        if query.source_ids is not None:
            return edges.keys_of("source", query.source_ids)
        if query.target_ids is not None:
            return edges.keys_of("target", query.target_ids)
        if query.touching is not None:
            return edges.keys_of("source", query.touching) | edges.keys_of("target", query.touching)
        return None

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends."""
        with self._store.all_or_nothing():
            for edge in list(self._store.edges.read(scopes, edge_ids)):
                counted = edge.changed(retrieval_count=edge.retrieval_count + 1.0, last_retrieved_at=utc(at))
                self._store.edges.put(edge.id, counted)
                for entity_id in (edge.source_id, edge.target_id):
                    if (entity := self._store.entities.get(entity_id)) is not None:
                        accessed = entity.changed(access_count=entity.access_count + 1)
                        self._store.entities.put(entity_id, accessed)

    # Episodes -------------------------------------------------------------------------------------

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes; an external id that is known stores nothing."""
        with self._store.all_or_nothing():
            return [self._add_episode(scope, episode) for episode in episodes]

    def _add_episode(self, scope: Scope, episode: Episode) -> tuple[str, bool]:
        if episode.scope != scope:
            raise InvalidInput(f"episode {episode.id}: its scope is {episode.scope}, the call's is {scope}")
        table = self._store.episodes
        if episode.external_id is not None:
            for known in table.keys_of("external", [(scope, episode.external_id)]):
                return (known, False)
        if table.get(episode.id) is not None:
            raise Conflict(f"episode {episode.id} is already stored")
        table.put(episode.id, episode.changed(metadata=dict(episode.metadata)))
        return (episode.id, True)

    def find_episodes(
        self,
        scopes: Sequence[Scope],
        query: EpisodeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Episode]:
        """Return a page of the episodes that match."""
        _no_cursor_backwards(after, newest_first)
        with self._store.lock:
            table = self._store.episodes
            candidates: Iterable[str] | None = query.ids
            if candidates is None and query.external_ids is not None:
                candidates = table.keys_of("external", [(s, x) for s in scopes for x in query.external_ids])
            found: Iterable[Episode] = (
                row for row in table.read(scopes, candidates, after=after) if matching.episode_matches(row, query)
            )
            if query.before is not None:
                found = self._stored_before(scopes, query.before, found)
            if newest_first:
                found = sorted(found, key=lambda e: e.id, reverse=True)
            return [e.changed(metadata=dict(e.metadata)) for e in islice(found, limit)]

    def _stored_before(self, scopes: Sequence[Scope], before: str, found: Iterable[Episode]) -> Iterable[Episode]:
        last = self._store.episodes.get(before)
        if last is None or last.scope not in scopes or last.session_id is None:
            return []
        return [e for e in found if e.scope == last.scope and e.session_id == last.session_id and e.id < before]

    def claim_episodes(
        self, owner: str, *, now: datetime, until: datetime, limit: int, scopes: Sequence[Scope] | None = None
    ) -> list[Episode]:
        """Take pending episodes that are due and that nobody holds, oldest id first."""
        with self._store.all_or_nothing():
            episodes, claims = self._store.episodes, self._store.claims
            asked = episodes.scopes() if scopes is None else scopes
            due = (
                episode
                for episode in episodes.read(asked, episodes.keys_of("unprocessed", [s.key for s in asked]))
                if matching.episode_state(episode) == "pending"
                and (episode.retry_at is None or episode.retry_at <= now)
                and ((claim := claims.get(episode.id)) is None or claim.until <= now)
            )
            taken = list(islice(due, limit))
            for episode in taken:
                claims.put(episode.id, ClaimRow(episode.scope, owner, until))
            return [e.changed(metadata=dict(e.metadata)) for e in taken]

    def claim_owners(self) -> list[str]:
        """Return the owners that hold episodes now."""
        now = utc_now()
        with self._store.lock:
            claims = self._store.claims.read(self._store.claims.scopes())
            return sorted({claim.owner for claim in claims if claim.until > now})

    def release_claims(self, owners: Sequence[str]) -> int:
        """Give back what these owners hold; return how many episodes that were."""
        with self._store.all_or_nothing():
            held = self._store.claims.keys_of("owner", owners)
            for episode_id in held:
                self._store.claims.put(episode_id, None)
            return len(held)

    def find_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> list[Mention]:
        """Return mentions, ordered by (episode, entity) id."""
        with self._store.lock:
            table = self._store.mentions
            candidates = None if episode_ids is None else table.keys_of("episode", episode_ids)
            if entity_ids is not None:
                of_entities = table.keys_of("entity", entity_ids)
                candidates = of_entities if candidates is None else candidates & of_entities
            return [row.mention for row in islice(table.read(scopes, candidates), limit)]

    # Communities and recalls ----------------------------------------------------------------------

    def find_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Community]:
        """Return a page of the communities that match, in ascending order of id."""
        with self._store.lock:
            candidates = query.ids
            if query.entity_ids is not None:
                members = MembershipQuery(entity_ids=query.entity_ids, as_of=query.as_of, ended=query.ended)
                candidates = [row.community_id for row in self._memberships(scopes, members, None)]
            rows = self._store.communities.read(scopes, candidates, after=after)
            return list(islice((row for row in rows if matching.community_matches(row, query)), limit))

    def find_memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, *, after: Membership | None = None, limit: int = 1000
    ) -> list[Membership]:
        """Return a page of the memberships that match, in ascending order of their keys."""
        with self._store.lock:
            return list(islice(self._memberships(scopes, query, after), limit))

    def _memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, after: Membership | None
    ) -> Iterator[Membership]:
        table, communities = self._store.memberships, self._store.communities
        candidates = None
        if query.entity_ids is not None:
            candidates = table.keys_of("entity", query.entity_ids)
        elif query.community_ids is not None:
            candidates = table.keys_of("community", query.community_ids)
        for row in table.read(scopes, candidates, after=None if after is None else after.key):
            community = communities.get(row.membership.community_id)
            on_level = query.level is None or (community is not None and community.level == query.level)
            if on_level and matching.membership_matches(row.membership, query):
                yield row.membership

    def find_recalls(
        self,
        scopes: Sequence[Scope],
        query: RecallQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[RecallTrace]:
        """Return a page of the traces that match."""
        _no_cursor_backwards(after, newest_first)
        with self._store.lock:
            table = self._store.recalls
            asked = {"entity": query.entity_ids, "edge": query.edge_ids, "episode": query.episode_ids}
            sets = [table.keys_of(index, named) for index, named in asked.items() if named is not None]
            if query.ids is not None:
                sets.append(set(query.ids))
            candidates = set[str].intersection(*sets) if sets else None
            found: Iterable[RecallTrace] = table.read(scopes, candidates, after=after)
            if newest_first:
                found = sorted(found, key=lambda r: r.id, reverse=True)
            return list(islice(found, limit))

    def find_merges(
        self,
        scopes: Sequence[Scope],
        query: MergeQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Merge]:
        """Return a page of the merges that match."""
        _no_cursor_backwards(after, newest_first)
        with self._store.lock:
            table = self._store.merges
            candidates = None if query.entity_ids is None else table.keys_of("entity", query.entity_ids)
            if query.ids is not None:
                candidates = set(query.ids) if candidates is None else candidates & set(query.ids)
            rows = table.read(scopes, candidates, after=after)
            found: Iterable[Merge] = (row for row in rows if query.undone or row.undone_at is None)
            if newest_first:
                found = sorted(found, key=lambda m: m.id, reverse=True)
            return list(islice(found, limit))

    # Index ------------------------------------------------------------------------------------------

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        with self._store.lock:
            return indexing.state_of(self._store, scope)

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries behind a position."""
        with self._store.lock:
            return indexing.read_index(self._store, scope, kind, after, limit)

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        with self._store.lock:
            return indexing.find_index(self._store, scope, kind, keys)

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        with self._store.lock:
            return indexing.find_unindexed(self._store, scope, kind, after, limit)

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model."""
        with self._store.all_or_nothing():
            return indexing.reset_index(self._store, scope)

    # Upkeep -----------------------------------------------------------------------------------------

    def find_marks(self, scope: Scope) -> list[Mark]:
        """Return the marks of a scope, ordered by job."""
        with self._store.lock:
            return upkeep.find_marks(self._store, scope)

    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts."""
        with self._store.all_or_nothing():
            return upkeep.decay_retrievals(
                self._store, scope, rate=rate, idle_since=idle_since, since=since, now=now, after=after
            )

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities without visible facts that weren't seen for long."""
        with self._store.lock:
            return upkeep.find_idle(self._store, scope, before, now, limit)

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities, those with the fewest active facts first."""
        with self._store.lock:
            return upkeep.find_least_connected(self._store, scope, limit)

    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts that one of these episodes stated."""
        with self._store.lock:
            return upkeep.find_edges_of_episodes(self._store, scope, episode_ids)

    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope."""
        with self._store.all_or_nothing():
            upkeep.clear(self._store, scope)

    def scrub(self) -> bool:
        """Do nothing: nothing is on disk."""
        return True

    # Traversal and maintenance --------------------------------------------------------------------

    def expand(
        self,
        scopes: Sequence[Scope],
        seed_ids: Sequence[str],
        *,
        hops: int,
        edge_types: Sequence[EdgeType] = (),
        as_of: AsOf | None = None,
        limits: ExpandLimits | None = None,
    ) -> Subgraph:
        """Collect the neighbourhood of the seeds, edges taken both ways."""
        with self._store.lock:
            return expand(self._store, scopes, seed_ids, hops, edge_types, as_of, limits or ExpandLimits())

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes`, all or nothing."""
        with self._store.all_or_nothing():
            apply_changes(self._store, scope, changes)

    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` with the store locked; an exception undoes what it wrote."""
        with self._store.all_or_nothing():
            return work()

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` on a copy."""
        return work(MemoryBackend(self._store.copy(), self._place))

    def scopes(self) -> list[Scope]:
        """Return the scopes that hold anything, ordered by key."""
        with self._store.lock:
            store = self._store
            tables = (store.entities, store.episodes, store.communities, store.recalls, store.merges)
            held = dict.fromkeys(scope for table in tables for scope in table.scopes())
            return sorted(held, key=lambda scope: scope.key)

    def stats(self, scope: Scope) -> StoreStats:
        """Count what a scope holds."""
        with self._store.lock:
            entities = list(self._store.entities.read([scope]))
            edges = list(self._store.edges.read([scope]))
            communities = list(self._store.communities.read([scope]))
            states = Counter(matching.episode_state(e) for e in self._store.episodes.read([scope]))
            return StoreStats(
                entities=len(entities),
                archived_entities=sum(e.archived_at is not None for e in entities),
                aliases=self._store.aliases.count(scope),
                edges=len(edges),
                active_edges=sum(e.is_active for e in edges),
                episodes=states.total(),
                pending_episodes=states["pending"],
                failed_episodes=states["failed"],
                mentions=self._store.mentions.count(scope),
                communities=len(communities),
                ended_communities=sum(c.ended_at is not None for c in communities),
                community_members=self._members(scope),
                recalls=self._store.recalls.count(scope),
                edges_by_type=dict(Counter(e.edge_type.value for e in edges)),
                entities_by_type=dict(Counter(e.entity_type for e in entities)),
            )

    def _members(self, scope: Scope) -> int:
        query = MembershipQuery(level=0)
        return len(self.find_memberships([scope], query, limit=self._store.memberships.count(scope)))

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (what, whether it is well, detail)."""
        return [("place", True, self._place), ("durable", True, "no: it lives as long as the process")]

    def close(self) -> None:
        """Do nothing: there is no file and no connection; the rows go with the last reference."""


def own(row: Copied) -> Copied:
    """Return the row with properties of its own, so that a caller who changes them changes no row."""
    return row.changed(properties=dict(row.properties)) if row.properties else row


def _no_cursor_backwards(after: str, newest_first: bool) -> None:
    if after and newest_first:
        raise InvalidInput(f"after={after!r}: a read with newest_first has one page")
