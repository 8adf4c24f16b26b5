"""Baseline rankings, with which a search is compared: plain BM25, cosine of question and episode, and their fusion.

They rank the same episodes by the same terms and vectors as the pipeline, without windows, dates, priors, names and
late interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from graphmem.models.arrays import Float32s, best_first
from graphmem.search.corpus import Corpus
from graphmem.search.pipeline import RRF_K
from graphmem.text.terms import terms

Baseline = Literal["bm25", "dense", "rrf"]
"""bm25: words. dense: vectors. rrf: both, by reciprocal rank fusion."""

BASELINES: tuple[Baseline, ...] = get_args(Baseline)
_FUSED = 1000  # ranks of each list that are fused


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
