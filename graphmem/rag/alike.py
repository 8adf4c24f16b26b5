"""Which names are taken for one: an undirected graph, nearly all of it in arrays."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from graphmem.communities.graph import entries

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_RECENT = 1000  # pairs that are kept one by one, or a quarter of all; then the arrays are made anew


class Alike:
    """Pairs of names by number, each with the cosine of its two; pairs are added, never taken away."""

    def __init__(self) -> None:
        self._begin: Ints = np.zeros(1, np.int64)
        """Where the row of each number begins, and the end of the last; numbers behind it have none."""
        self._other: NDArray[np.int32] = np.zeros(0, np.int32)
        self._cosine: Floats = np.zeros(0, np.float32)
        self._recent: defaultdict[int, dict[int, float]] = defaultdict(dict)
        self._waiting = 0

    def join(self, low: Ints, high: Ints, cosine: Floats) -> None:
        """Add pairs that aren't there yet, each once, shape (p,)."""
        self._waiting += len(low)
        if self._waiting > max(_RECENT, len(self._other) // 8):  # each pair stands in two rows
            self._rebuild(low, high, cosine)
            return
        for a, b, weight in zip(low.tolist(), high.tolist(), cosine.tolist(), strict=True):
            self._recent[a][b] = self._recent[b][a] = weight

    def of(self, number: int) -> dict[int, float]:
        """Return the names alike one, with the cosine."""
        found: dict[int, float] = {}
        if number < len(self._begin) - 1:
            row = slice(int(self._begin[number]), int(self._begin[number + 1]))
            found = dict(zip(self._other[row].tolist(), self._cosine[row].tolist(), strict=True))
        return {**found, **self._recent[number]} if number in self._recent else found

    def among(self, numbers: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of some names: the place in `numbers` of one, the number of the other, their cosine."""
        rows = np.flatnonzero(numbers < len(self._begin) - 1)
        there = numbers[rows]
        entry = entries(self._begin, there)
        place = np.repeat(rows, self._begin[there + 1] - self._begin[there])
        parts = [(place, self._other[entry].astype(np.int64), self._cosine[entry])]
        for i, number in enumerate(numbers.tolist() if self._recent else ()):
            if (found := self._recent.get(number)) is not None:
                others = np.fromiter(found, np.int64, len(found))
                cosines = np.fromiter(found.values(), np.float32, len(found))
                parts.append((np.full(len(found), i), others, cosines))
        place, other, cosine = (np.concatenate(column) for column in zip(*parts, strict=True))
        return place, other, cosine

    def _rebuild(self, low: Ints, high: Ints, cosine: Floats) -> None:
        numbers = np.arange(max(len(self._begin) - 1, 1 + max(self._recent, default=-1)))
        known, other, weight = self.among(numbers)
        source = np.concatenate([known, low, high])
        target = np.concatenate([other, high, low])
        order = np.argsort(source, kind="stable")
        self._begin = np.concatenate([[0], np.cumsum(np.bincount(source))]).astype(np.int64)
        self._other = target[order].astype(np.int32)
        self._cosine = np.concatenate([weight, cosine, cosine])[order].astype(np.float32)
        self._recent.clear()
        self._waiting = 0
