"""Personalized PageRank. Pure functions over arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from graphmem.errors import InvalidInput
from graphmem.models.arrays import Bools, Float64s, Int64s

DAMPING = 0.7
"""Probability of following an edge instead of restarting."""

_ROUNDS = 10  # iterations of PageRank


def personalized_pagerank(
    sources: ArrayLike,
    targets: ArrayLike,
    weights: ArrayLike,
    restart: ArrayLike,
) -> Float64s:
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
    _check(out, into, weight, start)
    total = start.sum()
    if total == 0.0:
        return np.zeros_like(start)
    start = start / total
    leaving = np.bincount(out, weight, len(start))
    dangling = leaving == 0.0
    share = weight / np.where(dangling, 1.0, leaving)[out]
    return iterate(out, into, share, start, _ROUNDS, dangling)


def iterate(
    out: Int64s, into: Int64s, share: Float64s, restart: Float64s, rounds: int, dangling: Bools | None = None
) -> Float64s:
    """Return the rank of each of n nodes after some rounds of power iteration, shape (n,).

    Parameters
    ----------
    out, into, share
        Directed edges, and the share of the rank of its node that each passes on, shape (m,).
    restart
        The restart distribution, shape (n,); the first ranks.
    dangling
        Nodes from which the walk restarts at once, shape (n,); None for none.
    """
    rank = restart
    for _ in range(rounds):
        flow = np.bincount(into, share * rank[out], len(restart))
        if dangling is not None:
            flow = flow + rank[dangling].sum() * restart
        rank = DAMPING * flow + (1.0 - DAMPING) * restart
    return rank


def _check(out: Int64s, into: Int64s, weight: Float64s, start: Float64s) -> None:
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
