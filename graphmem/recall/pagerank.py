"""Personalized PageRank: facts of the entities that a random walk from the seeds visits most. Pure.

The walk follows facts, near-synonyms, and mentions between entities and episodes, so that entities mentioned together
gain rank even if no fact relates them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphmem.errors import InvalidInput
from graphmem.models import Subgraph
from graphmem.recall import scoring
from graphmem.recall.scoring import Floats, Walk, effective_confidence

SYNONYM_COSINE = 0.8
"""Minimum cosine of near-synonymous entities."""

SIMILAR_TO = "similar_to"
"""Relation of the edges written by note linking; their confidence is the cosine (A-MEM)."""


def personalized_pagerank(
    sources: ArrayLike,
    targets: ArrayLike,
    weights: ArrayLike,
    restart: ArrayLike,
    *,
    damping: float = 0.7,
    rounds: int = 10,
) -> Floats:
    """Return the stationary probability of each of n nodes in a random walk with restarts.

    Power iteration of ``p = damping × (P p + p(dangling) × r) + (1 − damping) × r``, where the columns of P are the
    weights out of a node divided by their sum, and r is the restart divided by its sum (Page et al. 1999;
    Haveliwala 2002). The walk restarts at nodes without outgoing edges.

    Parameters
    ----------
    sources, targets
        int arrays (m,): directed edges from source to target; pass an undirected edge in both directions.
        Weights of parallel edges are added.
    weights
        float array (m,), nonnegative.
    restart
        float array (n,), nonnegative: the restart distribution before normalization.
    damping
        Probability of following an edge instead of restarting, in [0, 1).
    rounds
        Number of iterations.

    Returns
    -------
    numpy.ndarray
        float array (n,) with sum 1; all 0 if `restart` is all 0.

    Raises
    ------
    InvalidInput
        If a value or a shape is invalid.
    """
    start = np.asarray(restart, dtype=np.float64)
    out, into = np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)
    weight = np.asarray(weights, dtype=np.float64)
    _check(out, into, weight, start, damping)
    total = start.sum()
    if total == 0.0:
        return np.zeros_like(start)
    n = len(start)
    start = start / total
    leaving = np.bincount(out, weight, n)
    dangling = leaving == 0.0
    share = weight / np.where(dangling, 1.0, leaving)[out]
    rank = start
    for _ in range(rounds):
        flow = np.bincount(into, share * rank[out], n)
        rank = damping * (flow + rank[dangling].sum() * start) + (1.0 - damping) * start
    return rank


def _check(out: NDArray[np.int64], into: NDArray[np.int64], weight: Floats, start: Floats, damping: float) -> None:
    if not out.shape == into.shape == weight.shape or out.ndim != 1 or start.ndim != 1:
        raise InvalidInput(
            f"sources {out.shape}, targets {into.shape}, weights {weight.shape}: arrays of one length are needed, "
            f"and a flat restart, got {start.shape}"
        )
    ends = np.concatenate((out, into))
    if len(ends) and not 0 <= ends.min() <= ends.max() < len(start):
        raise InvalidInput(f"an edge ends at node {ends.min()} or {ends.max()}: the restart has {len(start)} nodes")
    for name, values in (("weights", weight), ("restart", start)):
        if not np.all(np.isfinite(values)) or np.any(values < 0.0):
            raise InvalidInput(f"{name}: numbers from 0 on are needed, got {values.min()} or one that isn't finite")
    if not 0.0 <= damping < 1.0:
        raise InvalidInput(f"damping {damping}: a number in [0, 1)")


def walk(
    graph: Subgraph,
    seed_scores: Floats,
    mentions: Sequence[tuple[str, str]],
    vectors: Floats | None = None,
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
    nearest = scoring.walk_breadth_first(graph, seed_scores)
    fact = rank[graph.source] + rank[graph.target]
    relative = fact / max(fact.max(initial=0.0), np.finfo(np.float64).tiny)
    return Walk(nearest.reached, nearest.near, {**nearest.parts, "reach": np.sqrt(relative)})


def entity_ranks(
    graph: Subgraph, seed_scores: Floats, mentions: Sequence[tuple[str, str]], vectors: Floats | None
) -> Floats:
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


def _fact_weights(graph: Subgraph) -> Floats:
    """Return the effective confidence of each fact, shape (m,); for `similar_to` the cosine, 0 below the threshold."""
    weight = effective_confidence(graph.confidence, graph.retrieval_count)
    similar = np.array([relation == SIMILAR_TO for relation in graph.relations], dtype=bool)
    cosine = np.where(graph.confidence >= SYNONYM_COSINE, graph.confidence, 0.0)
    return np.where(similar, cosine, weight)


def _synonyms(vectors: Floats | None) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the pairs of entities with a cosine of at least `SYNONYM_COSINE`, each once, and the cosines."""
    if vectors is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    cosine = np.triu(vectors @ vectors.T, k=1)
    a, b = np.nonzero(cosine >= SYNONYM_COSINE)
    return a, b, cosine[a, b]
