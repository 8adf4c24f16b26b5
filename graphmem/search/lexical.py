"""Lexical search: BM25 over windowed term counts, and session neighbors of episodes (docs/concepts/search.md).

Terms of neighboring turns also count for an episode, weighted by `WINDOW`, because the subject of a turn is often
stated in the turn before, especially if that is a question. Terms of the date have no window. The window is applied
at query time to the postings of the query terms, so adding an episode costs only its own terms.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from graphmem.models.arrays import Float32s, GrowingArray, Int64s

REACH = (-2, -1, 1, 2)
"""Distances of the neighbors in the window."""

_FAR = max(REACH)


class Sessions:
    """Session neighbors of n episodes by position; within a session episodes are ordered by id."""

    def __init__(self) -> None:
        self._members: dict[Hashable, list[tuple[str, int]]] = {}
        self._at: dict[int, GrowingArray[np.int64]] = {distance: GrowingArray[np.int64](np.int64) for distance in REACH}

    def __len__(self) -> int:
        return len(self._at[1])

    def extend(self, episodes: Sequence[tuple[str, Hashable | None]]) -> None:
        """Add episodes, each with its id and its session (None: no neighbors)."""
        first = len(self)
        for column in self._at.values():
            column.extend(np.full(len(episodes), -1))
        touched: dict[Hashable, int] = {}
        for position, (episode_id, session) in enumerate(episodes, first):
            if session is None:
                continue
            members = self._members.setdefault(session, [])
            touched.setdefault(session, max(0, len(members) - _FAR))
            if members and members[-1][0] > episode_id:  # late arrival: created earlier by another process
                touched[session] = 0
            members.append((episode_id, position))
        for session, begin in touched.items():
            if begin == 0:
                self._members[session].sort()
            self._link([position for _, position in self._members[session][begin:]])

    def _link(self, positions: list[int]) -> None:
        run = np.array(positions, dtype=np.int64)
        for distance in range(1, _FAR + 1):
            self._at[distance].rows[run[:-distance]] = run[distance:]
            self._at[-distance].rows[run[distance:]] = run[:-distance]

    def at(self, distance: int) -> Int64s:
        """Return for each episode the position of its neighbor at a distance (negative: before it); -1 for none."""
        return self._at[distance].rows


WINDOW = {-2: 0.4, -1: 0.7, 1: 0.5, 2: 0.3}
"""Weight of the terms of a neighbor at this distance in the same session; an episode's own terms have weight 1."""

ANSWERED = 1.0
"""Weight of the terms of the previous turn if it is a question: an answer omits what the question stated."""

STATED_TERM_WEIGHT = 0.5
"""Weight of the terms of a fact that an episode states, relative to the terms of its text."""

LENT = 30
"""Number of terms of a neighbor that count in full; the terms of a longer one count less, 30 in total."""

K1, B = 1.2, 0.75

_PER_POSTING = 200  # bytes of a term of an episode, with what a corpus keeps besides vectors (measured: 75 to 270)


class _Postings:
    """Postings of a term: positions of episodes, and counts."""

    __slots__ = ("counts", "positions")

    def __init__(self) -> None:
        self.positions = array("q")
        self.counts = array("f")

    def where(self) -> Int64s:
        """Return a view of the positions; it must be released before the next posting is added."""
        return np.frombuffer(self.positions, dtype=np.int64)

    def often(self) -> Float32s:
        """Return a view of the counts; it must be released before the next posting is added."""
        return np.frombuffer(self.counts, dtype=np.float32)


class Lexicon:
    """Inverted index of the terms of n episodes by position.

    Parameters
    ----------
    sessions
        Session neighbors of the same n episodes, complete before `scores` is called.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._spoken: dict[str, _Postings] = {}
        self._stated: dict[str, _Postings] = {}
        self._dated: dict[str, _Postings] = {}
        self._lengths: GrowingArray[np.float32] = GrowingArray(np.float32)
        self._stated_lengths: GrowingArray[np.float32] = GrowingArray(np.float32)
        self._date_lengths: GrowingArray[np.float32] = GrowingArray(np.float32)
        self._asks: GrowingArray[np.bool_] = GrowingArray(np.bool_)
        self._saturation: Float32s | None = None
        self._postings = 0

    @property
    def nbytes(self) -> int:
        """Approximate size in memory in bytes, with the other data of the episodes that are no vectors."""
        return _PER_POSTING * self._postings

    def extend(self, episodes: Sequence[tuple[Sequence[str], Sequence[str], bool]]) -> None:
        """Add episodes, each with the terms of its text and those of its date, and whether it ends with a question."""
        first = len(self._lengths)
        for position, (spoken, dated, _) in enumerate(episodes, first):
            self._postings += _post(self._spoken, position, spoken) + _post(self._dated, position, dated)
        self._lengths.extend(np.array([len(spoken) for spoken, _, _ in episodes], dtype=np.float32))
        self._stated_lengths.extend(np.zeros(len(episodes), np.float32))
        self._date_lengths.extend(np.array([len(dated) for _, dated, _ in episodes], dtype=np.float32))
        self._asks.extend(np.array([asks for _, _, asks in episodes], dtype=np.bool_))
        self._saturation = None

    def state(self, position: int, terms: Sequence[str]) -> None:
        """Add the terms of a fact that an episode states, each with weight `STATED_TERM_WEIGHT`."""
        self._postings += _post(self._stated, position, terms, STATED_TERM_WEIGHT)
        self._stated_lengths.rows[position] += STATED_TERM_WEIGHT * len(terms)
        self._saturation = None

    def has(self, position: int, term: str) -> bool:
        """Return whether the text of an episode has a term."""
        postings = self._spoken.get(term)
        if postings is None:
            return False
        found = bisect_left(postings.positions, position)
        return found < len(postings.positions) and postings.positions[found] == position

    def with_all(self, terms: Iterable[str], until: int) -> list[int]:
        """Return the episodes before position `until` whose own text has all of the terms."""
        found: Int64s | None = None
        for term in terms:
            postings = self._spoken.get(term)
            if postings is None:
                return []
            positions = postings.where()
            found = positions if found is None else np.intersect1d(found, positions, assume_unique=True)
        return [] if found is None else found[found < until].tolist()

    def scores(self, terms: Iterable[str]) -> Float32s:
        """Return the BM25 score of each episode for the distinct terms of a question, shape (n,)."""
        return _bm25((self._windowed(term, len(self._lengths)) for term in dict.fromkeys(terms)), self._length_term())

    def plain_scores(self, terms: Iterable[str]) -> Float32s:
        """Return the BM25 scores of the texts alone, without windows, facts and dates, shape (n,), as a baseline."""
        counts = (self._own(term, len(self._lengths)) for term in dict.fromkeys(terms))
        return _bm25(counts, _length_term(self._lengths.rows))

    def _own(self, term: str, n: int) -> Float32s | None:
        spoken = self._spoken.get(term)
        if spoken is None:
            return None
        counts = np.zeros(n, dtype=np.float32)
        counts[spoken.where()] = spoken.often()
        return counts

    def _windowed(self, term: str, n: int) -> Float32s | None:
        spoken, stated, dated = (table.get(term) for table in (self._spoken, self._stated, self._dated))
        if spoken is None and stated is None and dated is None:
            return None
        counts = np.zeros(n, dtype=np.float32)
        for postings in (spoken, stated):
            if postings is not None:
                self._add_windowed(counts, postings)
        if dated is not None:
            np.add.at(counts, dated.where(), dated.often())
        return counts

    def _add_windowed(self, counts: Float32s, postings: _Postings) -> None:
        positions, own = postings.where(), postings.often()
        np.add.at(counts, positions, own)
        for distance in WINDOW:
            gains = self._sessions.at(-distance)[positions]  # episodes with this one as their neighbor at the distance
            inside = gains >= 0
            np.add.at(counts, gains[inside], self._weights(distance, positions[inside]) * own[inside])

    @property
    def lengths(self) -> Float32s:
        """The number of terms in the text of each episode, shape (n,)."""
        return self._lengths.rows

    def _weights(self, distance: int, neighbors: Int64s) -> Float32s:
        """Return the weights of the terms of neighbors at a distance."""
        weight = WINDOW[distance]
        answered = ANSWERED if distance == -1 else weight
        lent = np.minimum(1, LENT / np.maximum(self._lengths.rows[neighbors], 1))
        return (np.where(self._asks.rows[neighbors], answered, weight) * lent).astype(np.float32)

    def _length_term(self) -> Float32s:
        """Return ``k1 × (1 − b + b × length / mean length)`` of each episode, with lengths windowed like the counts."""
        if self._saturation is None:
            own = self._lengths.rows + self._stated_lengths.rows
            lengths = own + self._date_lengths.rows
            for distance in WINDOW:
                neighbor = self._sessions.at(distance)
                lengths += np.where(neighbor >= 0, self._weights(distance, neighbor) * own[neighbor], 0)
            self._saturation = _length_term(lengths)
        return self._saturation


def _bm25(counts_of_terms: Iterable[Float32s | None], length_term: Float32s) -> Float32s:
    """Return the sum of BM25 over terms, given the counts of each, shape (n,), or None for a term without postings."""
    n = len(length_term)
    total = np.zeros(n, dtype=np.float32)
    for counts in counts_of_terms:
        if counts is None:
            continue
        having = np.flatnonzero(counts)
        tf = counts[having]
        idf = math.log(1 + (n - len(having) + 0.5) / (len(having) + 0.5))
        total[having] += idf * tf * (K1 + 1) / (tf + length_term[having])
    return total


def _length_term(lengths: Float32s) -> Float32s:
    mean = float(lengths.mean()) if len(lengths) else 1.0
    return (K1 * (1 - B + B * lengths / max(mean, 1e-9))).astype(np.float32)


def _post(table: dict[str, _Postings], position: int, terms: Sequence[str], weight: float = 1.0) -> int:
    """Add the terms of an episode; return the number of distinct ones."""
    counts = Counter(terms)
    for term, count in counts.items():
        postings = table.get(term)
        if postings is None:
            postings = table[term] = _Postings()
        postings.positions.append(position)
        postings.counts.append(weight * count)
    return len(counts)
