"""Reranking of the best episodes by a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from graphmem.errors import EmbeddingFailed
from graphmem.llm.providers import reason_for, secrets_of
from graphmem.models.arrays import Float64s, normalized
from graphmem.search.pipeline import Ranking
from graphmem.timed_calls import TimedCalls

RERANKED = 50
"""Number of top episodes that the cross-encoder scores; the others keep their order after them."""

RERANK_WEIGHT = 2.0
"""Weight of the cross-encoder relative to the score range of the reranked episodes."""

_CALLS_AT_ONCE = 4  # of the cross-encoder, as of an embedding model


@runtime_checkable
class CrossEncoder(Protocol):
    """A scorer of pairs of a question and a text, compatible with LangChain's `BaseCrossEncoder`.

    Up to four threads call it at once.
    """

    def score(self, text_pairs: list[tuple[str, str]]) -> Sequence[float]:
        """Return the relevance of each text to its question: higher is better, on any scale."""
        ...


class Reranker:
    """Reranker of the top episodes by a cross-encoder with a timeout.

    Parameters
    ----------
    model
        The cross-encoder.
    timeout
        Seconds for one question.
    """

    def __init__(self, model: CrossEncoder, timeout: float) -> None:
        self._model = model
        self._calls = TimedCalls[Sequence[float]]("graphmem-rerank", _CALLS_AT_ONCE, timeout)

    def scores(self, question: str, texts: Sequence[str]) -> Float64s:
        """Return a score in [0, 1] for each text, relative to the others.

        Raises
        ------
        EmbeddingFailed
            If the model raises, times out, or doesn't return one finite number per text.
        """
        pairs = [(question, text) for text in texts]
        [outcome] = self._calls.run([lambda: self._model.score(pairs)])
        if isinstance(outcome, Exception):
            raise EmbeddingFailed(f"cross-encoder: {reason_for(outcome, secrets_of(self._model))}") from outcome
        found = np.asarray(outcome, dtype=np.float64).reshape(-1)
        if len(found) != len(texts) or not np.all(np.isfinite(found)):
            raise EmbeddingFailed(f"cross-encoder: {len(texts)} finite numbers were expected, got {len(found)}")
        return normalized(found)


def reranked(ranking: Ranking, order: Sequence[int], positions: list[int], scores: Float64s) -> list[int]:
    """Add scores of a cross-encoder to a ranking, and return its order: these positions, best first, then the others.

    Parameters
    ----------
    ranking
        Ranking of n episodes.
    order
        Positions, best first.
    positions
        Positions that were scored.
    scores
        Score of each of these in [0, 1], shape (m,).
    """
    added = np.zeros(len(ranking.total))
    added[positions] = RERANK_WEIGHT * np.ptp(ranking.total[positions]) * scores
    ranking.add("rerank", added)
    first = set(positions)
    return sorted(positions, key=lambda i: -ranking.total[i]) + [i for i in order if i not in first]
