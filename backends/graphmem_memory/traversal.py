"""`expand`: the neighbourhood of some seeds, hop by hop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmem.models import AsOf, Edge, EdgeType, Entity, ExpandLimits, Scope, Subgraph, utc_now
from graphmem_memory.matching import best_first, follows

if TYPE_CHECKING:
    from graphmem_memory.tables import Store


def expand(
    store: Store,
    scopes: Sequence[Scope],
    seed_ids: Sequence[str],
    hops: int,
    edge_types: Sequence[EdgeType],
    as_of: AsOf | None,
    limits: ExpandLimits,
) -> Subgraph:
    """Walk from the seeds; see `graphmem.protocols.Traversal.expand` for the rules."""
    now = utc_now()

    def edges_read_of(node: str, at_most: int) -> list[Edge]:
        keys = store.edges.keys_of("source", [node]) | store.edges.keys_of("target", [node])
        seen = (e for e in store.edges.read(scopes, keys) if follows(e, edge_types, as_of, now))
        return sorted(seen, key=best_first)[:at_most]

    def is_there(node: str) -> bool:
        entity = store.entities.get(node)
        return entity is not None and entity.scope in scopes

    def may_enter(node: str) -> bool:
        entity = store.entities.get(node)
        return entity is not None and entity.scope in scopes and entity.archived_at is None

    depth = {seed: 0 for seed in seed_ids if is_there(seed)}
    edges: dict[str, Edge] = {}
    frontier = sorted(depth)
    for hop in range(1, hops + 1):
        reached: dict[str, float] = {}
        at_most = limits.per_node(len(frontier))
        for edge in (e for node in frontier for e in edges_read_of(node, at_most)):
            edges[edge.id] = edge
            for end in (edge.source_id, edge.target_id):
                if end not in depth and may_enter(end):
                    reached[end] = max(reached.get(end, 0.0), edge.confidence)
        frontier = sorted(reached, key=lambda node: (-reached[node], node))[: limits.max_frontier]
        depth.update(dict.fromkeys(frontier, hop))
    inside = [e for _, e in sorted(edges.items()) if e.source_id in depth and e.target_id in depth]
    nodes = [e for i in sorted(depth, key=lambda node: (depth[node], node)) if (e := store.entities.get(i)) is not None]
    return _subgraph(nodes, depth, inside)


def _subgraph(nodes: Sequence[Entity], depth: dict[str, int], edges: Sequence[Edge]) -> Subgraph:
    import numpy as np  # not at the top: opening a store needs no numpy

    position = {node.id: i for i, node in enumerate(nodes)}
    return Subgraph(
        node_ids=[node.id for node in nodes],
        names=[node.name for node in nodes],
        entity_types=[node.entity_type for node in nodes],
        depth=np.array([depth[node.id] for node in nodes], dtype=np.int64),
        edge_ids=[e.id for e in edges],
        relations=[e.relation for e in edges],
        edge_types=[e.edge_type for e in edges],
        facts=[e.fact for e in edges],
        source=np.array([position[e.source_id] for e in edges], dtype=np.int64),
        target=np.array([position[e.target_id] for e in edges], dtype=np.int64),
        confidence=np.array([e.confidence for e in edges], dtype=np.float64),
        retrieval_count=np.array([e.retrieval_count for e in edges], dtype=np.float64),
        valid_from=np.array([e.valid_from.timestamp() for e in edges], dtype=np.float64),
    )
