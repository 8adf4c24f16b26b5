"""What may be done with a ranking: another fusion, variety, and a cross-encoder that reads the best once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphmem.errors import EmbeddingFailed
from graphmem.llm.chat import TimedCalls
from graphmem.llm.errors import reason_for, secrets_of
from graphmem.search.graph_channel import normalized

Floats = NDArray[np.float64]

RRF_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""

READ = 50
"""Episodes that a cross-encoder reads; those behind stay behind."""

READER_WEIGHT = 2.0
"""Weight of a cross-encoder against all that ranked those episodes before."""

_VARIED = 5  # times as many episodes as are asked for are compared with each other


@runtime_checkable
class CrossEncoder(Protocol):
    """Scores pairs of a question and a text, as LangChain's `BaseCrossEncoder` does."""

    def score(self, text_pairs: list[tuple[str, str]]) -> Sequence[float]:
        """Return how well each text answers its question: the higher the better, on any scale."""
        ...


class Reranker:
    """Reads the best episodes with a cross-encoder, within a time limit.

    Parameters
    ----------
    model
        The cross-encoder.
    timeout
        Seconds for one question.
    """

    def __init__(self, model: CrossEncoder, timeout: float) -> None:
        self._model = model
        self._calls = TimedCalls[Sequence[float]](1, timeout)

    def scores(self, question: str, texts: Sequence[str]) -> Floats:
        """Return a score in [0, 1] for each text, relative to the others.

        Raises
        ------
        EmbeddingFailed
            If the model raises, takes too long, or gives something else than a finite number for each text.
        """
        pairs = [(question, text) for text in texts]
        [outcome] = self._calls.run([lambda: self._model.score(pairs)])
        if isinstance(outcome, Exception):
            raise EmbeddingFailed(f"cross-encoder: {reason_for(outcome, secrets_of(self._model))}") from outcome
        found = np.asarray(outcome, dtype=np.float64).reshape(-1)
        if len(found) != len(texts) or not np.all(np.isfinite(found)):
            raise EmbeddingFailed(f"cross-encoder: {len(texts)} finite numbers were expected, got {len(found)}")
        return normalized(found)


def reciprocal_ranks(channels: dict[str, Floats]) -> dict[str, Floats]:
    """Return ``1 / (60 + rank)`` of each episode in each channel, shape (n,); 0 where a channel says nothing of it.

    Episodes of one score share the best of their ranks; the lowest score of a channel is what it says of nothing.
    """
    return {name: _reciprocal_rank(scores) for name, scores in channels.items()}


def _reciprocal_rank(scores: Floats) -> Floats:
    values, place = np.unique(-scores, return_inverse=True)
    before = np.concatenate(([0], np.cumsum(np.bincount(place, minlength=len(values)))))[:-1]
    ranked = 1.0 / (RRF_K + 1 + before[place])
    return np.where(scores > scores.min(initial=np.inf), ranked, 0.0)


def varied(order: Sequence[int], scores: Floats, vectors: NDArray[np.float32], diversity: float, k: int) -> list[int]:
    """Return the best k by maximal marginal relevance (Carbonell and Goldstein 1998).

    Parameters
    ----------
    order
        Positions, the best first.
    scores
        Shape (n,).
    vectors
        Unit vectors, shape (n, d); without any, the order stays.
    diversity
        ``1 - λ`` in ``λ × score - (1 - λ) × highest cosine with one chosen before``.
    k
        How many.
    """
    pool = list(order[: _VARIED * k])
    if not diversity or not vectors.shape[1] or len(pool) < 2:
        return list(order[:k])
    relevance = normalized(scores[pool])
    cosines = vectors[pool] @ vectors[pool].T
    nearest = np.full(len(pool), -1.0)
    left = np.ones(len(pool), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(k, len(pool)):
        gain = (1 - diversity) * relevance - diversity * (nearest if chosen else 0.0)
        best = int(np.argmax(np.where(left, gain, -np.inf)))
        chosen.append(pool[best])
        left[best] = False
        nearest = np.maximum(nearest, cosines[best])
    return chosen
