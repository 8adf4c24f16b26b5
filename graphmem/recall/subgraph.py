"""The subgraph of a recall: facts added to what the store expands, and facts left out.

Facts of the past, which ended without a successor, are added and ranked below what holds; so are all facts of seeds
that have more than one hop reads. Left out are facts that no matching episode states, or whose episodes have expired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

import numpy as np

from graphmem.models import (
    Edge,
    EdgeQuery,
    EdgeType,
    EpisodeFilter,
    EpisodeQuery,
    ExpandLimits,
    Scope,
    Subgraph,
    is_retracted,
)
from graphmem.models.arrays import Bools, Float64s
from graphmem.models.base import END_OF_TIME
from graphmem.protocols import GraphBackend, without_expired
from graphmem.recall.options import RecallOptions
from graphmem.telemetry import timed

PAST_FACTOR = 0.5
"""Factor of the score of a state that is over, or that is still to begin."""

_CLOCKS_DIFFER = timedelta(days=1)
_MOST_PAST = 100  # past facts, the latest first
_MOST_OF_HUBS = 10_000  # facts of seeds with more facts than a hop reads, the newest first


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """The facts around the seeds of a recall, as a store holds them."""

    backend: GraphBackend
    scopes: Sequence[Scope]
    seed_ids: Sequence[str]
    options: RecallOptions

    @property
    def limits(self) -> ExpandLimits:
        """The limits of an expansion."""
        return ExpandLimits(max_frontier=self.options.max_frontier)

    def expand(self, hops: int, edge_types: tuple[EdgeType, ...]) -> Subgraph:
        """Return the subgraph of the facts of some types around the seeds."""
        with timed("graph_traversal_duration_ms", depth=str(hops)):
            return self.backend.expand(
                self.scopes,
                self.seed_ids,
                hops=hops,
                edge_types=edge_types,
                as_of=self.options.as_of,
                limits=self.limits,
            )

    def with_facts_of_hubs(self, graph: Subgraph) -> Subgraph:
        """Return a subgraph with all facts of the seeds that have more than one hop reads.

        A hop reads the facts with the highest confidence, among which there may be none that a filter matches.
        """
        hubs = self._seeds(graph, hubs=True)
        if not hubs:
            return graph
        query = EdgeQuery(touching=hubs, edge_types=self.options.edge_types or None, as_of=self.options.as_of)
        edges = self.backend.find_edges(self.scopes, query, limit=_MOST_OF_HUBS, newest_first=True)
        return self._with_edges(graph, edges)

    def with_past(self, graph: Subgraph) -> tuple[Subgraph, Float64s]:
        """Return a subgraph with the past facts about its seeds, and the factor of each fact, shape (m,).

        Seeds with as many facts that hold as one hop reads are left out, because reading their past would be a scan.
        One or two round trips.
        """
        few = self._seeds(graph, hubs=False)
        edges = self._latest(EdgeQuery(touching=few, edge_types=self.options.edge_types or None, versions="past"))
        count = len(graph.edge_ids)
        graph = self._with_edges(graph, edges)
        factors = {edge.id: past_factor(edge) for edge in edges}
        return graph, np.concatenate((np.ones(count), [factors[i] for i in graph.edge_ids[count:]]))

    def ahead_factors(self, graph: Subgraph, now: datetime) -> Float64s:
        """Return the factor of each fact of a subgraph, below 1 if it is still to begin; one round trip."""
        factors = np.ones(len(graph.edge_ids))
        later = np.flatnonzero(graph.valid_from > now.timestamp())
        edges = self.backend.get_edges(self.scopes, [graph.edge_ids[i] for i in later])
        for i in later:
            edge = edges.get(graph.edge_ids[i])
            factors[i] = past_factor(edge) if edge is not None and is_ahead(edge, now) else 1.0
        return factors

    def with_ended(self, graph: Subgraph, between: tuple[datetime, datetime]) -> Subgraph:
        """Return a subgraph with the facts about its seeds that ended after a time and by another, also replaced ones.

        Seeds with as many facts as one hop reads are left out, as in `with_past`. One or two round trips.
        """
        few = self._seeds(graph, hubs=False)
        query = EdgeQuery(
            touching=few, edge_types=self.options.edge_types or None, window=("valid_to", *between), versions="all"
        )
        edges = [edge for edge in self._latest(query) if not is_retracted(edge)]
        return self._with_edges(graph, edges)

    def with_unknown_beginnings(self, graph: Subgraph) -> Subgraph:
        """Return a subgraph with the facts about its seeds that may have begun by `as_of`: see `RecallOptions`.

        Seeds with as many facts as one hop reads are left out, as in `with_past`. One to three round trips.
        """
        few = self._seeds(graph, hubs=False)
        if self.options.as_of is None or self.options.only_ended or not few:
            return graph
        later = ("valid_from", self.options.as_of.valid, END_OF_TIME)
        query = EdgeQuery(touching=few, edge_types=self.options.edge_types or None, window=later, versions="all")
        found = self.backend.find_edges(self.scopes, query, limit=_MOST_PAST)
        return self._with_edges(graph, without_another_value(self.backend, self.scopes, found, self.options))

    def stated_in(self, graph: Subgraph, wanted: EpisodeFilter) -> Bools:
        """Return whether an episode that matches a filter states each fact, shape (m,); two round trips."""
        edges = self.backend.get_edges(self.scopes, graph.edge_ids) if graph.edge_ids else {}
        sources = [edges[i].episode_ids if i in edges else () for i in graph.edge_ids]
        named = tuple(dict.fromkeys(chain.from_iterable(sources)))
        query = EpisodeQuery(ids=named, filters=wanted)
        matching = set(self.backend.find_episode_ids(self.scopes, query)) if named else set[str]()
        return np.array([not matching.isdisjoint(ids) for ids in sources], dtype=bool)

    def not_expired(self, graph: Subgraph, now: datetime) -> Bools:
        """Return whether each fact has a source that hasn't expired, or none at all, shape (m,).

        All premises of an inferred fact must have one. Two round trips, and one for each level of premises.
        """
        edges = self.backend.get_edges(self.scopes, graph.edge_ids) if graph.edge_ids else {}
        stated = without_expired(self.backend, self.scopes, list(edges.values()), now)
        gone = edges.keys() - {edge.id for edge in stated}
        return np.array([i not in gone for i in graph.edge_ids], dtype=bool)

    def _latest(self, query: EdgeQuery) -> Sequence[Edge]:
        """Return the latest facts about some entities; none without entities."""
        if not query.touching:
            return []
        return self.backend.find_edges(self.scopes, query, limit=_MOST_PAST, newest_first=True)

    def _seeds(self, graph: Subgraph, *, hubs: bool) -> tuple[str, ...]:
        """Return the seeds that have as many facts as one hop reads (`hubs`), or those that have fewer."""
        degree = Counter((*graph.source.tolist(), *graph.target.tolist()))
        position = {node: i for i, node in enumerate(graph.node_ids)}
        most = self.limits.per_node(len(self.seed_ids))
        return tuple(i for i in self.seed_ids if i in position and (degree[position[i]] >= most) == hubs)

    def _with_edges(self, graph: Subgraph, edges: Sequence[Edge]) -> Subgraph:
        """Return a subgraph with further facts of its nodes, and their other ends, which must not be archived."""
        position = {node: i for i, node in enumerate(graph.node_ids)}
        others = {end for edge in edges for end in (edge.source_id, edge.target_id)} - position.keys()
        found = self.backend.get_entities(self.scopes, sorted(others)) if others else {}
        added = [entity for _, entity in sorted(found.items()) if entity.archived_at is None]
        position.update((entity.id, len(graph.node_ids) + n) for n, entity in enumerate(added))
        known = set(graph.edge_ids)
        edges = [e for e in edges if e.id not in known and e.source_id in position and e.target_id in position]
        if not edges:
            return graph
        return replace(
            graph,
            node_ids=[*graph.node_ids, *(entity.id for entity in added)],
            names=[*graph.names, *(entity.name for entity in added)],
            entity_types=[*graph.entity_types, *(entity.entity_type for entity in added)],
            depth=np.append(graph.depth, np.ones(len(added), dtype=np.int64)),
            edge_ids=[*graph.edge_ids, *(e.id for e in edges)],
            relations=[*graph.relations, *(e.relation for e in edges)],
            edge_types=[*graph.edge_types, *(e.edge_type for e in edges)],
            facts=[*graph.facts, *(e.fact for e in edges)],
            source=np.append(graph.source, [position[e.source_id] for e in edges]).astype(np.int64),
            target=np.append(graph.target, [position[e.target_id] for e in edges]).astype(np.int64),
            confidence=np.append(graph.confidence, [e.confidence for e in edges]),
            retrieval_count=np.append(graph.retrieval_count, [e.retrieval_count for e in edges]),
            valid_from=np.append(graph.valid_from, [e.valid_from.timestamp() for e in edges]),
            inferred=np.append(graph.inferred, [e.is_inferred for e in edges]).astype(np.bool_),
        )


def is_ahead(edge: Edge, now: datetime) -> bool:
    """Return whether a fact is still to begin. One told by a clock that is ahead by less than a day holds already."""
    as_told = edge.valid_from_assumed or edge.valid_from == edge.told_at
    return edge.valid_from - now > (_CLOCKS_DIFFER if as_told else timedelta())


def past_factor(edge: Edge) -> float:
    """Return the factor of the score of a fact that doesn't hold now; that an event happened still holds."""
    return PAST_FACTOR if edge.kind == "state" else 1.0


def without_another_value(
    backend: GraphBackend, scopes: Sequence[Scope], edges: Iterable[Edge], options: RecallOptions
) -> list[Edge]:
    """Return the facts that may have begun by `as_of` and for whose source and relation no other fact held then.

    One round trip, if there are any; more if over 1,000 other facts held.
    """
    begun = [edge for edge in edges if options.may_have_begun(edge)]
    empty = {(edge.source_id, edge.relation) for edge in begun}
    held = backend.all_edges(scopes, EdgeQuery(slots=tuple(empty), as_of=options.as_of)) if empty else ()
    for edge in held:
        empty.discard((edge.source_id, edge.relation))
        if not empty:
            break
    return [edge for edge in begun if (edge.source_id, edge.relation) in empty]


def with_only(graph: Subgraph, kept: Bools) -> Subgraph:
    """Return a subgraph without the facts that aren't kept; its nodes stay."""
    chosen = np.flatnonzero(kept).tolist()
    return replace(
        graph,
        edge_ids=[graph.edge_ids[i] for i in chosen],
        relations=[graph.relations[i] for i in chosen],
        edge_types=[graph.edge_types[i] for i in chosen],
        facts=[graph.facts[i] for i in chosen],
        source=graph.source[kept],
        target=graph.target[kept],
        confidence=graph.confidence[kept],
        retrieval_count=graph.retrieval_count[kept],
        valid_from=graph.valid_from[kept],
        inferred=graph.inferred[kept],
    )
