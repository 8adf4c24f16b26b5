"""`expand`: the neighbourhood of some seeds, one query a hop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.models import AsOf, EdgeType, ExpandLimits, Scope, Subgraph, utc_now
from graphmem_neo4j.connection import Database
from graphmem_neo4j.edges import moment_values, type_names
from graphmem_neo4j.entities import keys_of
from graphmem_neo4j.rows import TYPES, Row, moment

_Node = tuple[str, str]


def expand(
    database: Database,
    scopes: Sequence[Scope],
    seed_ids: Sequence[str],
    *,
    hops: int,
    edge_types: Sequence[EdgeType],
    as_of: AsOf | None,
    limits: ExpandLimits,
) -> Subgraph:
    """Walk from the seeds; see `graphmem.protocols.Traversal.expand` for the rules."""
    seeds = database.read("seeds", scopes, ids=list(dict.fromkeys(seed_ids)), scopes=keys_of(scopes))
    nodes: dict[str, _Node] = {row[0]: (row[1], row[2]) for row in seeds}
    depth = dict.fromkeys(nodes, 0)
    edges: dict[str, Row] = {}
    frontier = list(nodes)
    values: dict[str, Any] = {"types": type_names(edge_types or list(EdgeType)), **moment_values(as_of, utc_now())}
    for hop in range(1, hops + 1):
        if not frontier:
            break
        reached: dict[str, float] = {}
        at_most = limits.per_node(len(frontier))
        for row in database.read("hop", scopes, frontier=frontier, per_node=at_most, **values):
            edges[row[0]] = row
            other, confidence = row[9], row[6]
            if other not in depth and row[12] and confidence > reached.get(other, -1.0):
                reached[other] = confidence
                nodes[other] = (row[10], row[11])
        frontier = sorted(reached, key=lambda node: (-reached[node], node))[: limits.max_frontier]
        depth.update(dict.fromkeys(frontier, hop))
    return _subgraph(nodes, depth, edges)


def _subgraph(nodes: dict[str, _Node], depth: dict[str, int], edges: dict[str, Row]) -> Subgraph:
    import numpy as np  # not at the top: opening a store needs no numpy

    order = sorted(depth, key=lambda node: (depth[node], node))
    position = {node: i for i, node in enumerate(order)}
    inside = [row for _, row in sorted(edges.items()) if row[2] in position and row[9] in position]
    ends = [(row[2], row[9]) if row[1] else (row[9], row[2]) for row in inside]
    return Subgraph(
        node_ids=order,
        names=[nodes[node][0] for node in order],
        entity_types=[nodes[node][1] for node in order],
        depth=np.array([depth[node] for node in order], dtype=np.int64),
        edge_ids=[row[0] for row in inside],
        relations=[row[3] for row in inside],
        edge_types=[TYPES[row[4]] for row in inside],
        facts=[row[5] for row in inside],
        source=np.array([position[source] for source, _ in ends], dtype=np.int64),
        target=np.array([position[target] for _, target in ends], dtype=np.int64),
        confidence=np.array([row[6] for row in inside], dtype=np.float64),
        retrieval_count=np.array([row[7] for row in inside], dtype=np.float64),
        valid_from=np.array([moment(row[8]).timestamp() for row in inside], dtype=np.float64),
    )
