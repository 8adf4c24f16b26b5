"""Recall strategies: cheapest paths (A*, PRISM), spreading activation (SYNAPSE, arXiv 2601.02744), and PageRank.

A step to an entity costs ``(1 − effective confidence) × max(1 − cos(question, entity), 0.01)``. All entities are goals,
so the search is A* with a heuristic of 0. Unlike in breadth-first search, a node reached by several paths has an
advantage over one at the end of a single path.

The random walk of PageRank restarts at the seeds and follows facts, near-synonyms, and mentions between entities and
episodes, so that entities mentioned together gain rank even if no fact relates them. Pure functions.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from graphmem.models import Subgraph
from graphmem.models.arrays import Float64s, Int64s
from graphmem.ontology import SIMILAR_TO
from graphmem.recall.options import SpreadingOptions
from graphmem.recall.pagerank import personalized_pagerank
from graphmem.recall.scoring import SECONDS_A_DAY, effective_confidence, flow_weight
from graphmem.recall.walks import Reached, Walk, proximity, walk_breadth_first

LEAST_DISTANCE = 0.01
"""Minimum distance of an entity, for a cosine near 1."""

SYNONYM_COSINE = 0.8
"""Minimum cosine of near-synonymous entities."""


def walk_cheapest_paths(graph: Subgraph, seed_scores: Float64s, cosines: Float64s | None = None) -> Walk:
    """Score each fact by the cheapest path to it: ``seed score × 1 / (1 + hop) × 1 / (1 + cost)``.

    Parameters
    ----------
    graph
        n nodes and m edges.
    seed_scores
        float array (n,): score of each seed, 0 elsewhere.
    cosines
        float array (n,): cosine of the question and each entity; NaN for an entity without a vector. With None or NaN
        a step costs ``1 − effective confidence``.
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
    near = np.where(reached.seed[near] >= 0, near, -1)
    parts = {
        "seed": seed_scores[reached.seed[near]],
        "proximity": proximity(steps[near]),
        "reach": np.reciprocal(1.0 + np.where(from_b, by_b, by_a)),
    }
    return Walk(reached, near, parts)


def _cheapest(
    graph: Subgraph, seed_scores: Float64s, forth: Float64s, back: Float64s
) -> tuple[Reached, Float64s, Int64s]:
    """Return the cheapest paths to all nodes, their costs and numbers of steps, shapes (n,).

    Ties in cost are broken by fewer steps, then by the better seed, then by the smaller position.
    """
    n = len(graph.node_ids)
    neighbors: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for i, (a, b) in enumerate(zip(graph.source, graph.target, strict=True)):
        neighbors[int(a)].append((int(b), float(forth[i])))
        neighbors[int(b)].append((int(a), float(back[i])))
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
        for neighbor, more in neighbors[node]:
            if reached.seed[neighbor] < 0:
                heapq.heappush(heap, (cost + more, step + 1, score, seed, neighbor, node))
    return reached, costs, steps


def spread_activation(
    graph: Subgraph,
    seed_scores: Float64s,
    options: SpreadingOptions,
    *,
    now: float,
    decay_rate: float,
    deadline: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> Walk:
    """Score each fact by the more activated of its ends; facts without an activated end are not reached.

    Parameters
    ----------
    graph
        n nodes and m edges.
    seed_scores
        float array (n,): score of each seed, 0 elsewhere.
    options
        Limits of the spreading; the caller converts `time_limit` to `deadline`.
    now
        Reference time of the age of facts, in seconds since 1970.
    decay_rate
        Decay per day of the activation sent along older facts.
    deadline
        Value of `clock` after which no further hop is made. The first hop is always made, so that a slow store
        still returns the nearest facts.
    clock
        Monotonic clock in seconds.
    """
    seeds = np.flatnonzero(graph.depth == 0)
    n = len(graph.node_ids)
    active = np.zeros(n)
    active[seeds] = np.minimum(seed_scores[seeds], 1.0)
    reached = Reached(np.where(graph.depth == 0, np.arange(n), -1), np.full(n, -1))
    weight = options.decay_lambda * _conductance(graph, now, decay_rate)
    timed_out = False
    for hop in range(options.max_hops):
        if hop and clock() > deadline:
            timed_out = True
            break
        active = _hop(graph, active, weight, options, reached)
        active = _pruned(active, seeds, options.max_activated_nodes)
    a, b = graph.source, graph.target
    more = (active[a] > active[b]) | ((active[a] == active[b]) & (graph.depth[a] <= graph.depth[b]))
    near = np.where(more, a, b)
    activation = active[near]
    return Walk(reached, np.where(activation > 0, near, -1), {"reach": activation}, timed_out)


def _conductance(graph: Subgraph, now: float, decay_rate: float) -> Float64s:
    """Return the share of a node's activation that each edge passes on, without λ, shape (m,)."""
    age = np.maximum(0.0, now - graph.valid_from) / SECONDS_A_DAY
    recency = np.reciprocal(1.0 + age * decay_rate)
    return effective_confidence(graph.confidence, graph.retrieval_count) * recency * flow_weight(graph.edge_types)


def _hop(graph: Subgraph, active: Float64s, weight: Float64s, options: SpreadingOptions, reached: Reached) -> Float64s:
    """Return the next activation map, shape (n,); update `reached` with the parents and seeds of new nodes.

    Incoming activation is added strongest first, up to the inhibition threshold, so the result doesn't depend on the
    order of the edges.
    """
    sender = np.concatenate((graph.source, graph.target))  # activation spreads in both directions
    receiver = np.concatenate((graph.target, graph.source))
    sent = active[sender] * np.concatenate((weight, weight))
    inhibited = active[receiver] >= options.inhibition_threshold
    sends = np.flatnonzero((active[sender] >= options.activation_threshold) & ~inhibited & (sent > 0))
    order = sends[np.lexsort((sender[sends], -sent[sends]))]
    after = active.copy()
    for i in order:
        a, b = sender[i], receiver[i]
        if after[b] >= options.inhibition_threshold:
            continue
        after[b] = min(float(after[b] + sent[i]), 1.0)
        if reached.seed[b] < 0:
            reached.parent[b], reached.seed[b] = a, reached.seed[a]
    return after


def _pruned(active: Float64s, seeds: Int64s, keep: int) -> Float64s:
    """Return the activation map reduced to the `keep` strongest nodes, always including the seeds."""
    rank = -active
    rank[seeds] = -np.inf
    dropped = np.argsort(rank, kind="stable")[max(keep, len(seeds)) :]
    active = active.copy()
    active[dropped] = 0.0
    return active


def walk_pagerank(
    graph: Subgraph,
    seed_scores: Float64s,
    mentions: Sequence[tuple[str, str]],
    vectors: Float64s | None = None,
) -> Walk:
    """Score each fact by its nearest seed and the rank of its ends: ``seed score × 1 / (1 + hop) × √(rank / highest)``.

    Rank alone, without the distance, would place frequently mentioned entities before the answer next to the seed.

    Parameters
    ----------
    graph
        n nodes and m edges.
    seed_scores
        float array (n,): score of each seed, 0 elsewhere.
    mentions
        (entity id, episode id) pairs; entities outside of the graph are ignored.
    vectors
        float array (n, d): unit vectors of the entities, zero rows for those without; None disables near-synonyms.
    """
    rank = entity_ranks(graph, seed_scores, mentions, vectors)
    nearest = walk_breadth_first(graph, seed_scores)
    fact = rank[graph.source] + rank[graph.target]
    relative = fact / max(fact.max(initial=0.0), np.finfo(np.float64).tiny)
    return Walk(nearest.reached, nearest.near, {**nearest.parts, "reach": np.sqrt(relative)})


def entity_ranks(
    graph: Subgraph, seed_scores: Float64s, mentions: Sequence[tuple[str, str]], vectors: Float64s | None
) -> Float64s:
    """Return the rank of each entity, shape (n,): the walk restarts at seed score / episodes that mention the seed."""
    n = len(graph.node_ids)
    position = {node: i for i, node in enumerate(graph.node_ids)}
    known = [(position[entity], episode) for entity, episode in mentions if entity in position]
    episodes = {episode: n + i for i, episode in enumerate(sorted({episode for _, episode in known}))}
    mentioned = np.array([entity for entity, _ in known], dtype=np.int64)
    episode = np.array([episodes[e] for _, e in known], dtype=np.int64)
    a, b, weight = _synonyms(vectors)
    ends = (
        np.concatenate((graph.source, mentioned, a)),
        np.concatenate((graph.target, episode, b)),
    )
    weights = np.concatenate((_fact_weights(graph), np.ones(len(known)), weight))
    restart = np.zeros(n + len(episodes))
    restart[:n] = seed_scores / np.maximum(np.bincount(mentioned, minlength=n), 1)
    return personalized_pagerank(np.concatenate(ends), np.concatenate(ends[::-1]), np.tile(weights, 2), restart)[:n]


def _fact_weights(graph: Subgraph) -> Float64s:
    """Return the effective confidence of each fact, shape (m,); for `similar_to` the cosine, 0 below the threshold."""
    weight = effective_confidence(graph.confidence, graph.retrieval_count)
    similar = np.array([relation == SIMILAR_TO for relation in graph.relations], dtype=bool)
    cosine = np.where(graph.confidence >= SYNONYM_COSINE, graph.confidence, 0.0)
    return np.where(similar, cosine, weight)


def _synonyms(vectors: Float64s | None) -> tuple[Int64s, Int64s, Float64s]:
    """Return the pairs of entities with a cosine of at least `SYNONYM_COSINE`, each once, and the cosines."""
    if vectors is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    cosine = np.triu(vectors @ vectors.T, k=1)
    a, b = np.nonzero(cosine >= SYNONYM_COSINE)
    return a, b, cosine[a, b]
