"""Measures of rankings and how sure they are. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDS = 2000
_AT_ONCE = 1_000_000  # numbers of a block of resamples
_SEED = 0
_SHARE = 0.95


def recall_at(ranking: Sequence[str], answers: Collection[str], k: int) -> float:
    """Return the share of the answers, one at least, that are among the first k of a ranking."""
    return len(set(answers).intersection(ranking[:k])) / len(set(answers))


def reciprocal_rank(ranking: Sequence[str], answers: Collection[str]) -> float:
    """Return 1 / the rank of the first answer, 0 if there is none; its mean over questions is the MRR."""
    ranks = (rank for rank, found in enumerate(ranking, 1) if found in answers)
    return 1 / next(ranks, float("inf"))


def interval(values: Floats, rounds: int = _ROUNDS) -> tuple[Floats, Floats]:
    """Return the 95 % confidence interval of column means, by the percentile bootstrap over rows (Efron 1979).

    The resamples are the same ones for the same number of rows: a repeated run tells the same.

    Parameters
    ----------
    values
        A row for each question, shape (n, m), n at least 1. For a difference of two methods: the differences question
        by question, which makes the comparison a paired one.
    rounds
        Resamples.

    Returns
    -------
    low, high
        Shape (m,) each.
    """
    n = len(values)
    random = np.random.default_rng(_SEED)
    block = max(1, _AT_ONCE // n)
    means: list[Floats] = []
    for start in range(0, rounds, block):
        size = min(block, rounds - start)
        means.append(random.multinomial(n, np.full(n, 1 / n), size) @ values / n)
    tail = (1 - _SHARE) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return low, high
