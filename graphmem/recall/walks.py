"""Walks over a subgraph: their result, the paths to its nodes, and the breadth-first strategy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphmem.models import Subgraph
from graphmem.models.arrays import Float64s, Int64s


@dataclass(frozen=True, slots=True)
class Reached:
    """Paths from the seeds to the nodes of a subgraph of n nodes.

    Attributes
    ----------
    seed
        int array (n,): position of the seed that the node was reached from, -1 if unreached.
    parent
        int array (n,): position of the previous node on the path from that seed, -1 for seeds.
    """

    seed: Int64s
    parent: Int64s

    def path(self, node: int) -> list[int]:
        """Return the positions from the seed to a node, both included."""
        nodes = [node]
        while self.parent[nodes[-1]] >= 0:
            nodes.append(int(self.parent[nodes[-1]]))
        return nodes[::-1]


@dataclass(frozen=True, slots=True)
class Walk:
    """Result of a strategy on a subgraph of m edges.

    Attributes
    ----------
    reached
        The paths to the nodes.
    near
        int array (m,): the end by which each fact was reached, -1 if unreached.
    parts
        Factors of the score that the strategy defines, by field of `ScoreParts`; float arrays (m,).
    timed_out
        Whether the strategy stopped at its time limit.
    """

    reached: Reached
    near: Int64s
    parts: dict[str, Float64s]
    timed_out: bool = False


def proximity(hop: Int64s) -> Float64s:
    """Return ``1 / (1 + hop)``, shape (m,)."""
    return np.reciprocal(1.0 + hop.astype(np.float64))


def walk_breadth_first(graph: Subgraph, seed_scores: Float64s) -> Walk:
    """Score each fact by its nearest seed: ``seed score × 1 / (1 + hop)``.

    Parameters
    ----------
    graph
        n nodes with their depths, m edges.
    seed_scores
        float array (n,): score of each seed, 0 elsewhere.
    """
    reached = reach(graph, seed_scores)
    near = nearer_end(graph, reached, seed_scores)
    parts = {"seed": seed_scores[reached.seed[near]], "proximity": proximity(graph.depth[near])}
    return Walk(reached, near, parts)


def reach(graph: Subgraph, seed_scores: Float64s) -> Reached:
    """Return the breadth-first paths from the seeds; ties between equally near seeds go to the best score.

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


def nearer_end(graph: Subgraph, reached: Reached, seed_scores: Float64s) -> Int64s:
    """Return for each edge the end that is nearer to a seed, shape (m,); ties go to the end of the better seed.

    -1 for edges that no seed leads to, since the facts between were left out.
    """
    a, b = graph.source, graph.target
    depth = np.where(reached.seed >= 0, graph.depth, graph.depth.max(initial=0) + 1)
    closer = depth[a] - depth[b]
    better = seed_scores[reached.seed[b]] > seed_scores[reached.seed[a]]
    near = np.where((closer < 0) | ((closer == 0) & ~better), a, b)
    return np.where(reached.seed[near] >= 0, near, -1)
