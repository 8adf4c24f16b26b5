"""Cheapest paths: facts that are reached from the seeds along sure edges towards what the question means (PRISM). Pure.

A step to an entity costs ``(1 − effective confidence) × max(1 − cos(question, entity), 0.01)``. All entities are
goals, so there is no estimate of what is left to steer by: the search is A* with the estimate 0.
"""

from __future__ import annotations

import heapq

import numpy as np

from graphmem.models import Subgraph
from graphmem.recall.score import effective_confidence, proximity
from graphmem.recall.walk import Floats, Positions, Reached, Walk

LEAST_DISTANCE = 0.01
"""Distance of an entity that means exactly what the question means."""


def walk(graph: Subgraph, seed_scores: Floats, cosines: Floats | None = None) -> Walk:
    """Score each fact by the cheapest path to it: ``seed score × 1 / (1 + hop) × 1 / (1 + cost)``.

    Parameters
    ----------
    graph
        n nodes and m edges.
    seed_scores
        float array (n,): score of each seed, 0 elsewhere.
    cosines
        float array (n,): of the question and each entity; NaN where an entity has none. None, and NaN: a step
        costs ``1 − effective confidence``.
    """
    doubt = 1.0 - effective_confidence(graph.confidence, graph.retrieval_count)
    distance = np.ones(len(graph.node_ids))
    if cosines is not None:
        distance = np.where(np.isnan(cosines), 1.0, np.maximum(1.0 - cosines, LEAST_DISTANCE))
    forth, back = doubt * distance[graph.target], doubt * distance[graph.source]
    reached, costs, steps = _cheapest(graph, seed_scores, forth, back)
    a, b = graph.source, graph.target
    by_a, by_b = costs[a] + forth, costs[b] + back
    better = seed_scores[reached.seed[b]] > seed_scores[reached.seed[a]]
    same = by_a == by_b
    from_b = (by_b < by_a) | (same & ((steps[b] < steps[a]) | ((steps[b] == steps[a]) & better)))
    near = np.where(from_b, b, a)
    parts = {
        "seed": seed_scores[reached.seed[near]],
        "proximity": proximity(steps[near]),
        "reach": np.reciprocal(1.0 + np.where(from_b, by_b, by_a)),
    }
    return Walk(reached, near, parts)


def _cheapest(graph: Subgraph, seed_scores: Floats, forth: Floats, back: Floats) -> tuple[Reached, Floats, Positions]:
    """Return the cheapest ways to all nodes, what they cost and their steps, shapes (n,).

    Among ways of one cost that of fewer steps counts, then that of the better seed, then of the smaller position.
    """
    n = len(graph.node_ids)
    neighbours: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for i, (a, b) in enumerate(zip(graph.source, graph.target, strict=True)):
        neighbours[int(a)].append((int(b), float(forth[i])))
        neighbours[int(b)].append((int(a), float(back[i])))
    reached = Reached(np.full(n, -1), np.full(n, -1))
    costs, steps = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    seeds: list[int] = np.flatnonzero(graph.depth == 0).tolist()
    heap = [(0.0, 0, -float(seed_scores[s]), s, s, -1) for s in seeds]
    heapq.heapify(heap)
    while heap:
        cost, step, score, seed, node, before = heapq.heappop(heap)
        if reached.seed[node] >= 0:
            continue
        reached.seed[node], reached.parent[node], costs[node], steps[node] = seed, before, cost, step
        for neighbour, more in neighbours[node]:
            if reached.seed[neighbour] < 0:
                heapq.heappush(heap, (cost + more, step + 1, score, seed, neighbour, node))
    return reached, costs, steps
