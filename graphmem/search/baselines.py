"""Baseline rankings: plain BM25, cosine of the question and the episode vector, and their reciprocal rank fusion.

They rank the same episodes by the same terms and vectors as the pipeline, without windows, dates, priors, names and
late interaction. Pure functions over a `Corpus`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphmem.search.corpus import Corpus
from graphmem.text.words import terms

Baseline = Literal["bm25", "dense", "rrf"]
"""bm25: words. dense: vectors. rrf: both, by reciprocal rank fusion."""

BASELINES: tuple[Baseline, ...] = get_args(Baseline)
RRF_K = 60
"""Cormack, Clarke and Büttcher 2009: an episode at rank r of a list gains 1 / (60 + r)."""

_FUSED = 1000  # ranks of each list that are fused

Ints = NDArray[np.int64]


def baseline(corpus: Corpus, by: Baseline, question: str, vector: NDArray[np.float32] | None, limit: int) -> list[int]:
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
        return _by_words(corpus, question, limit).tolist()
    dense = np.empty(0, np.int64) if vector is None else _by_vector(corpus, vector, limit if by == "dense" else _FUSED)
    if by == "dense":
        return dense.tolist()
    return fused([_by_words(corpus, question, _FUSED).tolist(), dense.tolist()])[:limit]


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Return the reciprocal rank fusion of rankings; ties are ordered by position."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, position in enumerate(ranking, 1):
            sums[position] = sums.get(position, 0.0) + 1 / (RRF_K + rank)
    return sorted(sums, key=lambda position: (-sums[position], position))


def _by_words(corpus: Corpus, question: str, limit: int) -> Ints:
    scores = corpus.lexicon.plain_scores(terms(question))
    return _best(scores, limit, above=0.0)


def _by_vector(corpus: Corpus, vector: NDArray[np.float32], limit: int) -> Ints:
    return _best(corpus.episode_vectors.rows @ vector, limit, above=-np.inf)


def _best(scores: NDArray[np.float32], limit: int, *, above: float) -> Ints:
    order = np.argsort(-scores, kind="stable")[:limit]
    return order[scores[order] > above]
