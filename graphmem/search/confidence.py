"""Calibrated confidence of a search: the probability that an episode answers a question.

It is a logistic regression over features of the ranking and changes no order. `tests/bench/confidence.py` fits and
checks the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphmem.models.arrays import Float64s
from graphmem.search.corpus import Corpus
from graphmem.search.pipeline import Ranking
from graphmem.search.question import ParsedQuestion

FEATURES = ("bias", "lead", "rank", "match", "other speaker")
WITH_VECTORS = np.array([-1.66, 0.156, -1.31, 1.67, -2.48])
WORDS_ONLY = np.array([-1.0, 0.160, -1.30, 0.0, -2.10])
"""Weights of the features, with and without an embedding model."""

BEST = 10
"""Number of episodes that the confidence of a whole result is about."""

_TINY = 1e-6


def features(ranking: Ranking, corpus: Corpus, asked: ParsedQuestion, order: Sequence[int]) -> Float64s:
    """Return the features of the episodes in an order, best first, shape (m, 5).

    lead: score above the mean of all episodes, in standard deviations. rank: log of the position. match: late
    interaction, not normalized; 0 without a model. other speaker: whether the question names one speaker and the
    episode is somebody else's.
    """
    positions = np.asarray(order, dtype=np.int64)
    spread = float(ranking.total.std())
    lead = (ranking.total[positions] - ranking.total.mean()) / spread if spread > _TINY else np.zeros(len(positions))
    match = np.zeros(len(positions)) if ranking.late is None else ranking.late[positions]
    other = np.zeros(len(positions))
    if len(asked.speakers) == 1:
        other = (corpus.speaker_of.rows[positions] != asked.speakers[0]).astype(np.float64)
    return np.column_stack([np.ones(len(positions)), lead, np.log1p(np.arange(len(positions))), match, other])


def confidences(ranking: Ranking, corpus: Corpus, asked: ParsedQuestion, order: Sequence[int]) -> Float64s:
    """Return for each episode in an order, best first, the probability that it answers the question, shape (m,)."""
    weights = WORDS_ONLY if ranking.late is None else WITH_VECTORS
    return sigmoid(features(ranking, corpus, asked, order) @ weights)


def overall(each: Float64s) -> float:
    """Return the probability that one of the best episodes answers, given that of each, as if they were independent."""
    return float(1 - np.prod(1 - each[:BEST]))


def sigmoid(values: Float64s) -> Float64s:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-values))
