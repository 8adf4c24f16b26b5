"""Subgraphs made by hand, for the tests of strategies."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from graphmem.models import EdgeType, Subgraph

Ends = tuple[int, int, float]


def graph(
    depths: Sequence[int],
    edges: Sequence[Ends],
    *,
    edge_types: Sequence[EdgeType] | None = None,
    relations: Sequence[str] | None = None,
    retrievals: Sequence[float] | None = None,
    valid_from: Sequence[float] | None = None,
    inferred: Sequence[bool] | None = None,
) -> Subgraph:
    """Return a subgraph of nodes n0, n1, … and edges (source, target, confidence)."""
    n, m = len(depths), len(edges)
    return Subgraph(
        node_ids=[f"n{i}" for i in range(n)],
        names=[f"n{i}" for i in range(n)],
        entity_types=["concept"] * n,
        depth=np.array(depths, dtype=np.int64),
        edge_ids=[f"e{i}" for i in range(m)],
        relations=list(relations or ["r"] * m),
        edge_types=list(edge_types or [EdgeType.SEMANTIC] * m),
        facts=[""] * m,
        source=np.array([a for a, _, _ in edges], dtype=np.int64),
        target=np.array([b for _, b, _ in edges], dtype=np.int64),
        confidence=np.array([c for _, _, c in edges], dtype=np.float64),
        retrieval_count=np.zeros(m) if retrievals is None else np.array(retrievals),
        valid_from=np.zeros(m) if valid_from is None else np.array(valid_from),
        inferred=np.array(inferred or [False] * m, dtype=np.bool_),
    )


@st.composite
def graphs(draw: st.DrawFn) -> Subgraph:
    """Make subgraphs such as a store's `expand` returns: every node is within reach of a seed, its depth is right."""
    n = draw(st.integers(1, 9))
    sure = st.floats(0.0, 1.0)
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), sure).filter(lambda e: e[0] != e[1])
    edges = draw(st.lists(pair, max_size=20)) if n > 1 else []
    seeds = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=3))
    depth = _depths(n, edges, seeds)
    order = sorted((i for i in range(n) if depth[i] >= 0), key=lambda i: (depth[i], i))
    at = {node: i for i, node in enumerate(order)}
    return graph([depth[i] for i in order], [(at[a], at[b], c) for a, b, c in edges if a in at and b in at])


def _depths(n: int, edges: Sequence[Ends], seeds: set[int]) -> list[int]:
    depth = [0 if i in seeds else -1 for i in range(n)]
    queue = deque(sorted(seeds))
    while queue:
        node = queue.popleft()
        for a, b, _ in edges:
            for here, there in ((a, b), (b, a)):
                if here == node and depth[there] < 0:
                    depth[there] = depth[node] + 1
                    queue.append(there)
    return depth
