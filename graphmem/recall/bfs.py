"""Breadth-first strategy: the facts around the seeds, nearest and surest first (spec: strategies). Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphmem.models import Subgraph


@dataclass(frozen=True, slots=True)
class Reached:
    """How each node of a subgraph of n nodes was reached.

    Attributes
    ----------
    seed
        int array (n,): position of the node's nearest seed (the best-scored one among equally near), -1 for none.
    parent
        int array (n,): position of the node before it on the way from that seed, -1 for seeds.
    """

    seed: NDArray[np.int64]
    parent: NDArray[np.int64]

    def path(self, node: int) -> list[int]:
        """Return the positions from the seed to a node, both included."""
        way = [node]
        while self.parent[way[-1]] >= 0:
            way.append(int(self.parent[way[-1]]))
        return way[::-1]


def reach(graph: Subgraph, seed_scores: NDArray[np.float64]) -> Reached:
    """Walk from the seeds, level by level.

    Parameters
    ----------
    graph
        n nodes with their depths.
    seed_scores
        float array (n,): score of each seed, 0 elsewhere.
    """
    n = len(graph.node_ids)
    seed = np.where(graph.depth == 0, np.arange(n), -1)
    parent = np.full(n, -1)
    best = np.where(graph.depth == 0, seed_scores, 0.0)
    down = graph.depth[graph.target] - graph.depth[graph.source]
    step = np.abs(down) == 1
    child = np.where(down > 0, graph.target, graph.source)
    above = np.where(down > 0, graph.source, graph.target)
    for depth in range(1, int(graph.depth.max(initial=0)) + 1):
        edges = np.flatnonzero(step & (graph.depth[child] == depth))
        if not len(edges):
            break
        order = np.lexsort((above[edges], -graph.confidence[edges], -best[above[edges]], child[edges]))
        edges = edges[order]
        nodes, first = np.unique(child[edges], return_index=True)
        chosen = above[edges[first]]
        parent[nodes], seed[nodes], best[nodes] = chosen, seed[chosen], best[chosen]
    return Reached(seed, parent)


def nearer_end(graph: Subgraph, reached: Reached, seed_scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each edge the end that is nearer to a seed, shape (m,); among equals that of the better seed."""
    a, b = graph.source, graph.target
    closer = graph.depth[a] - graph.depth[b]
    better = seed_scores[reached.seed[b]] > seed_scores[reached.seed[a]]
    return np.where((closer < 0) | ((closer == 0) & ~better), a, b)
