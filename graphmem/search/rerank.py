"""Rankings beside the pipeline: reciprocal rank fusion, diversification, cross-encoder reranking, and baselines.

Baselines rank the same episodes by the same terms and vectors as the pipeline, without windows, dates, priors, names
and late interaction: plain BM25, cosine of the question and the episode vector, and their fusion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np

from graphmem.errors import EmbeddingFailed
from graphmem.llm.providers import reason_for, secrets_of
from graphmem.models.arrays import Float32s, Float64s, Int64s, best_first, normalized
from graphmem.search.corpus import Corpus
from graphmem.text.terms import terms
from graphmem.timed_calls import TimedCalls

RRF_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""

RERANKED = 50
"""Number of top episodes that the cross-encoder scores; the others keep their order after them."""

RERANK_WEIGHT = 2.0
"""Weight of the cross-encoder relative to the score range of the reranked episodes."""

SESSION_PENALTY = 0.05
"""Reduction of a turn's score for each turn of its session before it, in a list that is spread over sessions."""

_CALLS_AT_ONCE = 4  # of the cross-encoder, as of an embedding model
_SPREAD = 100  # number of episodes that are spread over sessions
_POOL_FACTOR = 5  # size of the diversification pool as a multiple of k

Baseline = Literal["bm25", "dense", "rrf"]
"""bm25: words. dense: vectors. rrf: both, by reciprocal rank fusion."""

BASELINES: tuple[Baseline, ...] = get_args(Baseline)
_FUSED = 1000  # ranks of each list that are fused


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


def reciprocal_ranks(channels: dict[str, Float64s]) -> dict[str, Float64s]:
    """Return ``1 / (60 + rank)`` of each episode in each channel, shape (n,); 0 for episodes without evidence.

    Episodes with equal scores share their best rank; the lowest score of a channel counts as no evidence.
    """
    return {name: _reciprocal_rank(scores) for name, scores in channels.items()}


def _reciprocal_rank(scores: Float64s) -> Float64s:
    values, place = np.unique(-scores, return_inverse=True)
    before = np.concatenate(([0], np.cumsum(np.bincount(place, minlength=len(values)))))[:-1]
    ranked = 1.0 / (RRF_K + 1 + before[place])
    return np.where(scores > scores.min(initial=np.inf), ranked, 0.0)


def varied(order: Sequence[int], scores: Float64s, vectors: Float32s, diversity: float, k: int) -> list[int]:
    """Return the best k by maximal marginal relevance (Carbonell and Goldstein 1998).

    Parameters
    ----------
    order
        Positions, best first.
    scores
        Shape (n,).
    vectors
        Unit vectors, shape (n, d); with d = 0 the order is unchanged.
    diversity
        ``1 - λ`` in ``λ × score - (1 - λ) × highest cosine with a selected episode``.
    k
        Number of episodes to return.
    """
    pool = list(order[: _POOL_FACTOR * k])
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


def spread(order: Sequence[int], scores: Float64s, sessions: Int64s, weight: float) -> list[int]:
    """Return the order with the best episodes spread over their sessions; documents keep their places.

    Parameters
    ----------
    order
        Positions, best first.
    scores, sessions
        Score and session of each episode, -1 for none; shape (n,).
    weight
        What one turn counts in its session.
    """
    pool, rest = list(order[:_SPREAD]), order[_SPREAD:]
    taken: defaultdict[int, float] = defaultdict(float)
    chosen: list[int] = []
    while pool:
        best = max(pool, key=lambda i: scores[i] - SESSION_PENALTY * taken[int(sessions[i])])
        pool.remove(best)
        chosen.append(best)
        if sessions[best] >= 0:
            taken[int(sessions[best])] += weight
    return [*chosen, *rest]


def baseline(corpus: Corpus, by: Baseline, question: str, vector: Float32s | None, limit: int) -> list[int]:
    """Return positions of episodes, best first; episodes without a match are left out.

    Parameters
    ----------
    corpus
        n episodes.
    by
        The baseline.
    question
        Text of the question.
    vector
        Unit vector of the question, shape (dimension,); None without a model: the dense ranking is then empty.
    limit
        Maximum number of positions.
    """
    if by == "bm25":
        return _by_words(corpus, question, limit)
    most = limit if by == "dense" else _FUSED
    dense: list[int] = [] if vector is None else best_first(corpus.episode_vectors.rows @ vector, most).tolist()
    return dense if by == "dense" else fused([_by_words(corpus, question, _FUSED), dense])[:limit]


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Return the reciprocal rank fusion of rankings; ties are ordered by position."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, position in enumerate(ranking, 1):
            sums[position] = sums.get(position, 0.0) + 1 / (RRF_K + rank)
    return sorted(sums, key=lambda position: (-sums[position], position))


def _by_words(corpus: Corpus, question: str, limit: int) -> list[int]:
    scores = corpus.lexicon.plain_scores(terms(question))
    order = best_first(scores, limit)
    return order[scores[order] > 0].tolist()
