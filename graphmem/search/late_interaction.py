"""Late interaction: search token by token.

Every content piece of a text (a WordPiece token other than stop words and punctuation) has a vector of its own,
projected to 128 dimensions by a fixed random orthonormal matrix and stored as int8: about 2 KB an episode. The score is
the mean over the pieces of the question, weighted by rarity, of the best match of each piece in the episode or, at a
discount, in a neighbor in the same session.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from graphmem.index.stored_vectors import piece_width, projected
from graphmem.models.arrays import Float32s, GrowingArray, Int64s
from graphmem.search.lexical import Sessions

DISCOUNT = {-2: 0.7, -1: 0.85, 1: 0.75, 2: 0.6}
"""Factor of the best match in a neighbor at this distance."""

_PART = 1024  # vectors per matrix product, sized to fit the CPU cache

STATED_MATCH = 0.8
"""Factor of a match in a fact that an episode states, relative to a match in its own text."""


class TokenIndex:
    """The pieces (tokens) of n episodes by position, and the document frequency of each piece.

    Parameters
    ----------
    sessions
        The neighbors of the episodes.
    dimension
        Dimension of the model.
    """

    def __init__(self, sessions: Sessions, dimension: int) -> None:
        width = piece_width(dimension)
        self._sessions = sessions
        self._frequency: Counter[str] = Counter()
        self._rows: GrowingArray[np.int8] = GrowingArray(np.int8, width)
        self._begin: GrowingArray[np.int64] = GrowingArray(np.int64)
        self._count: GrowingArray[np.int64] = GrowingArray(np.int64)
        self._stated: GrowingArray[np.int8] = GrowingArray(np.int8, width)
        self._stated_by: GrowingArray[np.int64] = GrowingArray(np.int64)

    @property
    def nbytes(self) -> int:
        """Size of the vectors in memory in bytes."""
        return self._rows.nbytes + self._stated.nbytes

    def extend(self, pieces: Iterable[frozenset[str]], vectors: Sequence[NDArray[np.int8]]) -> None:
        """Add episodes: all pieces of each, and the stored vectors of its content pieces, shape (m, width)."""
        for each in pieces:
            self._frequency.update(each)
        counts = np.array([len(each) for each in vectors], np.int64)
        self._begin.extend(len(self._rows) + np.cumsum(counts) - counts)
        self._count.extend(counts)
        self._rows.extend(np.concatenate(vectors))

    def state(self, position: int, vectors: NDArray[np.int8]) -> None:
        """Add the stored vectors of a fact that an episode states, shape (m, width)."""
        self._stated.extend(vectors)
        self._stated_by.extend(np.full(len(vectors), position))

    def scores(self, pieces: Sequence[str], vectors: Float32s, candidates: Int64s) -> Float32s:
        """Return the score of each candidate.

        Parameters
        ----------
        pieces, vectors
            Pieces of the question: p strings, and their vectors (p, dimension).
        candidates
            Positions of the episodes, shape (c,), ascending.
        """
        matches, place = self._best_matches(projected(vectors), candidates)
        reached = matches[:, place[candidates]]
        for distance, discount in DISCOUNT.items():
            neighbor = self._sessions.at(distance)[candidates]
            there = neighbor >= 0
            found = discount * matches[:, place[neighbor[there]]]
            reached[:, there] = np.maximum(reached[:, there], found)
        weights = np.array([self._rarity(piece) for piece in pieces], dtype=np.float32)
        return weights @ reached / weights.sum()

    def _best_matches(self, question: Float32s, candidates: Int64s) -> tuple[Float32s, Int64s]:
        """Find the best cosine of each piece of the question in the candidates and their neighbors.

        Returns
        -------
        matches, place
            Shape (p, needed + 1), and the column of each position; the last column is for episodes without pieces.
        """
        around = [candidates, *(self._sessions.at(distance)[candidates] for distance in DISCOUNT)]
        needed = np.unique(np.concatenate(around))
        needed = needed[needed >= 0]
        needed = needed[self._count.rows[needed] > 0]
        counts, begins = self._count.rows[needed], self._begin.rows[needed]
        starts = np.cumsum(counts) - counts
        place = np.full(len(self._count), len(needed), dtype=np.int64)
        place[needed] = np.arange(len(needed))
        matches = np.zeros((len(question), len(needed) + 1), dtype=np.float32)
        if len(needed):
            rows = np.arange(int(counts.sum())) + np.repeat(begins - starts, counts)
            cosines = _cosines(self._rows.rows, rows, question)
            matches[:, :-1] = np.maximum(np.maximum.reduceat(cosines, starts, axis=0), 0).T
        columns = place[self._stated_by.rows]
        inside = np.flatnonzero(columns < len(needed))
        if len(inside):
            np.maximum.at(matches.T, columns[inside], STATED_MATCH * _cosines(self._stated.rows, inside, question))
        return matches, place

    def _rarity(self, piece: str) -> float:
        n, having = len(self._count), self._frequency[piece]
        return math.log(1 + (n - having + 0.5) / (having + 0.5))


def _cosines(stored: NDArray[np.int8], rows: NDArray[np.integer], question: Float32s) -> Float32s:
    """Return the cosines of stored vectors with those of a question, shape (rows, p), computed in blocks."""
    factors = np.ascontiguousarray(question.T) / 127
    found = np.empty((len(rows), len(question)), dtype=np.float32)
    part = np.empty((min(_PART, len(rows)), stored.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), _PART):
        some = rows[start : start + _PART]
        np.copyto(part[: len(some)], stored[some])
        np.matmul(part[: len(some)], factors, out=found[start : start + len(some)])
    return found
