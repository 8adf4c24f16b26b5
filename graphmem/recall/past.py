"""Facts of the past in a recall: those about a seed that ended without a successor, ranked below what holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphmem.models import Edge, EdgeQuery, EdgeType, ExpandLimits, Scope, Subgraph
from graphmem.protocols import GraphBackend
from graphmem.recall.scoring import Floats

PAST = 0.5
"""Factor of the score of a fact that is over."""

_MOST = 100  # past facts, the latest first


def with_past(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    graph: Subgraph,
    seed_ids: Sequence[str],
    edge_types: tuple[EdgeType, ...],
    limits: ExpandLimits,
) -> tuple[Subgraph, Floats]:
    """Return a subgraph with the past facts about its seeds, and the factor of each fact, shape (m,).

    Seeds with as many facts that hold as one hop reads are left out, because reading their past would be a scan. One or
    two round trips.
    """
    degree = Counter((*graph.source.tolist(), *graph.target.tolist()))
    position = {node: i for i, node in enumerate(graph.node_ids)}
    most = limits.per_node(len(seed_ids))
    few = tuple(i for i in seed_ids if i in position and degree[position[i]] < most)
    query = EdgeQuery(touching=few, edge_types=edge_types or None, versions="past")
    edges = backend.find_edges(scopes, query, limit=_MOST, newest_first=True) if few else []
    count = len(graph.edge_ids)
    graph = with_edges(backend, scopes, graph, edges)
    return graph, np.concatenate((np.ones(count), np.full(len(graph.edge_ids) - count, PAST)))


def with_edges(backend: GraphBackend, scopes: Sequence[Scope], graph: Subgraph, edges: Sequence[Edge]) -> Subgraph:
    """Return a subgraph with further facts of its nodes, and their other ends, which must not be archived."""
    position = {node: i for i, node in enumerate(graph.node_ids)}
    others = {end for edge in edges for end in (edge.source_id, edge.target_id)} - position.keys()
    found = backend.get_entities(scopes, sorted(others)) if others else {}
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
