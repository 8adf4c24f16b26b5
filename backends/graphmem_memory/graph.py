"""The graph: entities with their aliases, facts, traversal, communities, and the traces of recalls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from graphmem.models import (
    Alias,
    AsOf,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityHit,
    EntityQuery,
    ExpandLimits,
    Membership,
    MembershipQuery,
    RecallQuery,
    RecallTrace,
    Scope,
    Subgraph,
    SubgraphEdge,
    utc_now,
)
from graphmem.protocols import (
    CommunityStore,
    EdgeStore,
    EntityStore,
    RecallStore,
    Traversal,
    question_words,
    require_no_cursor,
)
from graphmem_memory.tables import (
    MemoryRole,
    best_first,
    community_matches,
    edge_is_visible,
    edge_matches,
    entity_matches,
    follows,
    membership_matches,
    own,
    text_score,
    utc,
)


class MemoryEntities(MemoryRole, EntityStore):
    """Entities and their aliases."""

    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity that has a name as alias."""
        with self._store.lock:
            return [
                (name, own(entity))
                for name in dict.fromkeys(names)
                for row in self._store.aliases.read([scope], self._store.aliases.keys_of("alias", [(scope, name)]))
                if (entity := self._store.entities.get(row.value.entity_id)) is not None
            ]

    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        with self._store.lock:
            rows = self._store.entities.read(scopes, query.ids, after=after)
            found = (own(row) for row in rows if entity_matches(row, query))
            return list(islice(found, limit))

    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of the entities, ordered by entity id, then alias."""
        with self._store.lock:
            table = self._store.aliases
            found = [row.value for row in table.read(scopes, table.keys_of("entity", entity_ids))]
            return sorted(found, key=lambda a: (a.entity_id, a.alias, a.entity_type))

    def search_entities(
        self, scopes: Sequence[Scope], *, words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[EntityHit]:
        """Find entities for a question: by alias and by words."""
        with self._store.lock:
            by_alias: dict[str, str] = {}
            for phrase in sorted(set(phrases), key=lambda p: (-len(p), p)):
                for scope in scopes:
                    for _, entity in self.resolve_names(scope, [phrase]):
                        by_alias.setdefault(entity.id, phrase)
            prefixes = question_words(words)
            scored = [
                (text_score(entity, prefixes), entity.id)
                for entity in (self._store.entities.read(scopes) if prefixes else ())
                if entity.archived_at is None
            ]
            best = sorted((-score, entity_id) for score, entity_id in scored if score > 0)[:limit]
            longest = sorted(by_alias, key=lambda i: (-len(by_alias[i]), i))[:limit]
            ids = {*longest, *(entity_id for _, entity_id in best)}
            return [self._hit(entity, by_alias.get(entity.id)) for entity in self._store.entities.read(scopes, ids)]

    def _hit(self, entity: Entity, alias: str | None) -> EntityHit:
        now = utc_now()
        edges = [e for e in self._edges_of([entity.scope], entity.id) if edge_is_visible(e, None, now)]
        best = sorted(edges, key=best_first)[:1000]
        return EntityHit(own(entity), alias, degree=len(best), edge_types=len({e.edge_type for e in best}))

    def _edges_of(self, scopes: Sequence[Scope], entity_id: str) -> Iterable[Edge]:
        return self._store.edges.read(scopes, self._store.edges_at([entity_id]))


class MemoryEdges(MemoryRole, EdgeStore):
    """Facts in all their versions."""

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
        require_no_cursor(after, newest_first=newest_first)
        now = utc_now()
        with self._store.lock:
            rows = self._store.edges.read(scopes, self._edge_candidates(query), after=after)
            found: Iterable[Edge] = (row for row in rows if edge_matches(row, query, now))
            if newest_first:
                found = sorted(found, key=lambda e: (e.valid_from, e.recorded_at, e.id), reverse=True)
            return [own(edge) for edge in islice(found, limit)]

    def _edge_candidates(self, query: EdgeQuery) -> Iterable[str] | None:
        """Return ids that contain all matching edges, by the first index that applies; None means any."""
        edges = self._store.edges
        if query.ids is not None:
            return query.ids
        if query.keys is not None:
            return edges.keys_of("source", {key[0] for key in query.keys})
        if query.slots is not None:
            return edges.keys_of("source", {slot[0] for slot in query.slots})
        if query.ended_by is not None:
            return edges.keys_of("ended_by", query.ended_by)
        if query.source_ids is not None:
            return edges.keys_of("source", query.source_ids)
        if query.target_ids is not None:
            return edges.keys_of("target", query.target_ids)
        if query.touching is not None:
            return self._store.edges_at(query.touching)
        return None

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends, atomically."""
        with self._writing():
            for edge in list(self._store.edges.read(scopes, edge_ids)):
                counted = edge.changed(retrieval_count=edge.retrieval_count + 1.0, last_retrieved_at=utc(at))
                self._store.edges.put(edge.id, counted)
                for entity_id in (edge.source_id, edge.target_id):
                    if (entity := self._store.entities.get(entity_id)) is not None:
                        accessed = entity.changed(access_count=entity.access_count + 1)
                        self._store.entities.put(entity_id, accessed)


class MemoryTraversal(MemoryRole, Traversal):
    """The walk through the graph, hop by hop."""

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
        """Collect the neighborhood of the seeds, following edges in both directions."""
        limits, now = limits or ExpandLimits(), utc_now()
        with self._store.lock:

            def best_edges(node: str, at_most: int) -> list[Edge]:
                edges_at = self._store.edges.read(scopes, self._store.edges_at([node]))
                seen = (e for e in edges_at if follows(e, edge_types, as_of, now))
                return sorted(seen, key=best_first)[:at_most]

            def may_enter(node: str) -> bool:
                entity = self._store.entities.get(node)
                return entity is not None and entity.scope in scopes and entity.archived_at is None

            depth = {entity.id: 0 for entity in self._store.entities.read(scopes, seed_ids)}
            edges: dict[str, Edge] = {}
            frontier = sorted(depth)
            for hop in range(1, hops + 1):
                reached: dict[str, float] = {}
                at_most = limits.per_node(len(frontier))
                for edge in (e for node in frontier for e in best_edges(node, at_most)):
                    edges[edge.id] = edge
                    for end in (edge.source_id, edge.target_id):
                        if end not in depth and may_enter(end):
                            reached[end] = max(reached.get(end, 0.0), edge.confidence)
                frontier = sorted(reached, key=lambda node: (-reached[node], node))[: limits.max_frontier]
                depth.update(dict.fromkeys(frontier, hop))
            found = self._store.entities.read(scopes, depth)
            nodes = {node.id: (node.id, node.name, node.entity_type) for node in found}
            return Subgraph.of(nodes, depth, map(_subgraph_edge, edges.values()))


def _subgraph_edge(edge: Edge) -> SubgraphEdge[str]:
    ends, start = (edge.source_id, edge.target_id), edge.valid_from.timestamp()
    counts = edge.confidence, edge.retrieval_count
    return edge.id, *ends, edge.relation, edge.edge_type, edge.fact, *counts, start, edge.is_inferred


class MemoryCommunities(MemoryRole, CommunityStore):
    """Communities and their memberships, in all their states."""

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
            return list(islice((row for row in rows if community_matches(row, query)), limit))

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
            community = communities.get(row.value.community_id)
            on_level = query.level is None or (community is not None and community.level == query.level)
            if on_level and membership_matches(row.value, query):
                yield row.value


class MemoryTraces(MemoryRole, RecallStore):
    """The traces of recalls."""

    def find_recalls(
        self,
        scopes: Sequence[Scope],
        query: RecallQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[RecallTrace]:
        """Return a page of the traces that match, each with all of its rows."""
        require_no_cursor(after, newest_first=newest_first)
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
