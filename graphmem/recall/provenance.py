"""Restriction of a recall to the facts that some episodes state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

import numpy as np

from graphmem.models import AsOf, Edge, EdgeQuery, EdgeType, EpisodeFilter, EpisodeQuery, ExpandLimits, Scope, Subgraph
from graphmem.protocols import GraphBackend
from graphmem.recall.past import with_edges
from graphmem.recall.scoring import Flags
from graphmem.recall.sources import premises_of, stated_basis

_MOST = 10_000  # facts of seeds with more facts than a hop reads, the newest first


def with_facts_of_hubs(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    graph: Subgraph,
    seed_ids: Sequence[str],
    edge_types: tuple[EdgeType, ...],
    as_of: AsOf | None,
    limits: ExpandLimits,
) -> Subgraph:
    """Return a subgraph with all facts of the seeds that have more than one hop reads.

    A hop reads the facts with the highest confidence, among which there may be none that a filter matches.
    """
    degree = Counter((*graph.source.tolist(), *graph.target.tolist()))
    position = {node: i for i, node in enumerate(graph.node_ids)}
    most = limits.per_node(len(seed_ids))
    hubs = tuple(i for i in seed_ids if i in position and degree[position[i]] >= most)
    if not hubs:
        return graph
    query = EdgeQuery(touching=hubs, edge_types=edge_types or None, as_of=as_of)
    return with_edges(backend, scopes, graph, backend.find_edges(scopes, query, limit=_MOST, newest_first=True))


def stated_in(backend: GraphBackend, scopes: Sequence[Scope], graph: Subgraph, wanted: EpisodeFilter) -> Flags:
    """Return whether an episode that matches a filter states each fact, shape (m,); two round trips."""
    edges = backend.get_edges(scopes, graph.edge_ids) if graph.edge_ids else {}
    sources = [edges[i].episode_ids if i in edges else () for i in graph.edge_ids]
    matching = _selected(backend, scopes, sources, EpisodeQuery(filters=wanted))
    return np.array([not matching.isdisjoint(ids) for ids in sources], dtype=bool)


def not_expired(backend: GraphBackend, scopes: Sequence[Scope], graph: Subgraph, now: datetime) -> Flags:
    """Return whether each fact has a source that hasn't expired, or none at all, shape (m,).

    All premises of an inferred fact must have one. Two round trips, and one for each level of premises.
    """
    edges = backend.get_edges(scopes, graph.edge_ids) if graph.edge_ids else {}
    premises = premises_of(backend, scopes, edges.values())
    sources = [fact.episode_ids for fact in (*edges.values(), *premises.values())]
    gone = _selected(backend, scopes, sources, EpisodeQuery(expired_by=now))

    def is_live(edge: Edge) -> bool:
        basis = stated_basis(edge, premises)
        return not any(fact.episode_ids and gone.issuperset(fact.episode_ids) for fact in basis)

    return np.array([i not in edges or is_live(edges[i]) for i in graph.edge_ids], dtype=bool)


def _selected(
    backend: GraphBackend, scopes: Sequence[Scope], sources: Sequence[tuple[str, ...]], query: EpisodeQuery
) -> set[str]:
    """Return the ids of those sources that a query selects."""
    named = tuple(dict.fromkeys(chain.from_iterable(sources)))
    return set(backend.find_episode_ids(scopes, replace(query, ids=named))) if named else set()


def with_only(graph: Subgraph, kept: Flags) -> Subgraph:
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
