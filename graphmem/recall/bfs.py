"""Breadth-first strategy: the facts around the seeds, nearest and surest first (spec: strategies). Pure."""

from __future__ import annotations

import numpy as np

from graphmem.models import Subgraph
from graphmem.recall.score import proximity
from graphmem.recall.walk import Floats, Positions, Reached, Walk


def walk(graph: Subgraph, seed_scores: Floats) -> Walk:
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


def reach(graph: Subgraph, seed_scores: Floats) -> Reached:
    """Walk from the seeds, level by level; among equally near seeds the best-scored one counts.

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


def nearer_end(graph: Subgraph, reached: Reached, seed_scores: Floats) -> Positions:
    """Return for each edge the end that is nearer to a seed, shape (m,); among equals that of the better seed."""
    a, b = graph.source, graph.target
    closer = graph.depth[a] - graph.depth[b]
    better = seed_scores[reached.seed[b]] > seed_scores[reached.seed[a]]
    return np.where((closer < 0) | ((closer == 0) & ~better), a, b)
