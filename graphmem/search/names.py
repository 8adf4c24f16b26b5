"""Index of the names in episodes, their synonyms, and the lookup of names in questions (docs/concepts/search.md).

The index is separate from the entities of the graph and broader: named entities and noun chunks by spaCy, titles, and
titles found in other texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from graphmem.models.arrays import Float32s, Float64s, GrowingArray, Int64s, entries
from graphmem.text.names import plain
from graphmem.text.normalize import STOP_WORDS

_RECENT = 1000  # pairs buffered in dicts, or a quarter of all if more, before the arrays are rebuilt


class SynonymGraph:
    """Append-only graph of synonyms: pairs of name numbers with their cosine."""

    def __init__(self) -> None:
        self._begin: Int64s = np.zeros(1, np.int64)
        """Row offsets by number, and the end of the last row; higher numbers have no row."""
        self._other: NDArray[np.int32] = np.zeros(0, np.int32)
        self._cosine: Float32s = np.zeros(0, np.float32)
        self._recent: defaultdict[int, dict[int, float]] = defaultdict(dict)
        self._waiting = 0

    def join(self, low: Int64s, high: Int64s, cosine: Float32s) -> None:
        """Add new, distinct pairs, given as arrays of shape (p,)."""
        self._waiting += len(low)
        if self._waiting > max(_RECENT, len(self._other) // 8):  # each pair is stored in two rows
            self._rebuild(low, high, cosine)
            return
        for a, b, weight in zip(low.tolist(), high.tolist(), cosine.tolist(), strict=True):
            self._recent[a][b] = self._recent[b][a] = weight

    def of(self, number: int) -> dict[int, float]:
        """Return the synonyms of a name with their cosines."""
        found: dict[int, float] = {}
        if number < len(self._begin) - 1:
            row = slice(int(self._begin[number]), int(self._begin[number + 1]))
            found = dict(zip(self._other[row].tolist(), self._cosine[row].tolist(), strict=True))
        return {**found, **self._recent[number]} if number in self._recent else found

    def among(self, numbers: Int64s) -> tuple[Int64s, Int64s, Float32s]:
        """Return the pairs of the names in `numbers`: index into `numbers`, number of the synonym, and cosine."""
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

    def _rebuild(self, low: Int64s, high: Int64s, cosine: Float32s) -> None:
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


SAME = 0.8
"""Minimum cosine of synonyms."""

LONGEST = 6
"""Maximum number of words of a name to find in a text."""

_STEM = 5  # prefix length by which words count as shared when candidate synonyms are collected
_COMPARED = 2000  # block size of names that share a word; each block is compared with itself and the one before

_COMMON = frozenset(
    "the a an in it he she they this that is was are were who what when where which how why year years one two first "
    "new may will us no not i you we his her its their".split()
)
_WORD_INSIDE = re.compile(r"(?<=[a-z,;] )[^\W\d_]\w*")


def is_specific(name: str) -> bool:
    """Return whether a name is specific enough to search texts for."""
    return len(name) > 2 and name not in _COMMON


def names_in(text: str, *known: Container[str]) -> list[str]:
    """Return the names in a text that any of `known` contains: leftmost longest matches, no overlaps, each once."""
    words, found, begin = plain(text).split(), dict[str, None](), 0
    while begin < len(words):
        runs = (" ".join(words[begin:end]) for end in range(min(begin + LONGEST, len(words)), begin, -1))
        run = next((run for run in runs for names in known if run in names), None)
        if run is not None:
            found[run] = None
        begin += 1 if run is None else run.count(" ") + 1
    return list(found)


class Titles:
    """Index of names for matching in texts: like `names_in`, but indexed by the first two words of a name."""

    def __init__(self) -> None:
        self._all: set[str] = set()
        self._lengths: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)
        """First word of names → second word → the word counts of these names, descending."""

    def add(self, titles: Iterable[str]) -> list[str]:
        """Add the sufficiently specific titles (`is_specific`); return the new ones, each once."""
        fresh = [title for title in dict.fromkeys(titles) if is_specific(title) and title not in self._all]
        self._all.update(fresh)
        for words in map(str.split, fresh):
            after = self._lengths[words[0]]
            if 1 < len(words) <= LONGEST:
                lengths = {*after.get(words[1], ()), len(words)}
                after[words[1]] = sorted(lengths, reverse=True)
        return fresh

    def find(self, text: str) -> list[str]:
        """Return the titles in a text: leftmost longest matches, no overlaps, each once."""
        words, found, end = plain(text).split() if self._all else [], dict[str, None](), 0
        for begin in [place for place, word in enumerate(words) if word in self._lengths]:
            title = self._longest_at(words, begin) if begin >= end else None
            if title is not None:
                found[title] = None
                end = begin + title.count(" ") + 1
        return list(found)

    def _longest_at(self, words: Sequence[str], begin: int) -> str | None:
        after = self._lengths[words[begin]]
        for length in after.get(words[begin + 1], ()) if begin + 1 < len(words) else ():
            run = " ".join(words[begin : begin + length])
            if run in self._all:
                return run
        return words[begin] if words[begin] in self._all else None


class Names:
    """The names of n episodes by position, their synonyms, and capitalization statistics of words."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.known: dict[str, int] = {}
        """Specific names (`is_specific`), for lookup in questions → their numbers."""
        self.titled: defaultdict[str, list[int]] = defaultdict(list)
        """Name → episodes titled by it."""
        self._number: dict[str, int] = {}
        self._vectors: GrowingArray[np.float16] | None = None
        self.synonyms = SynonymGraph()
        """The synonym graph of the names."""
        self._degree: GrowingArray[np.float64] = GrowingArray(np.float64)
        self._by_word: defaultdict[str, list[int]] = defaultdict(list)
        self._episodes: list[list[int]] = []
        self._names: list[list[int]] = []
        self._upper: Counter[str] = Counter()
        self._lower: Counter[str] = Counter()
        self._uncounted: list[str] = []
        """Texts whose words `is_proper` counts when it is called."""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def nbytes(self) -> int:
        """Size of the vectors in memory in bytes."""
        return 0 if self._vectors is None else self._vectors.nbytes

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the unknown ones of these names, each once."""
        return [name for name in dict.fromkeys(names) if name not in self._number]

    def learn(self, names: Sequence[str], vectors: NDArray[np.float16] | None) -> None:
        """Add unknown names with their unit vectors (None without a model), and link synonyms."""
        first = len(self.texts)
        for number, name in enumerate(names, first):
            self._number[name] = number
            self._episodes.append([])
            if is_specific(name):
                self.known[name] = number
        self.texts += names
        self._degree.extend(np.zeros(len(names)))
        if vectors is not None and names:
            if self._vectors is None:
                self._vectors = GrowingArray(np.float16, vectors.shape[1])
            self._vectors.extend(vectors)
            self._compare(first)

    def _compare(self, first: int) -> None:
        """Compare new names with those that share a word; nearly all pairs with a cosine of 0.8 do."""
        assert self._vectors is not None
        fresh: defaultdict[str, list[int]] = defaultdict(list)
        for number in range(first, len(self.texts)):
            words = list(dict.fromkeys(word[:_STEM] for word in self.texts[number].split()))
            for word in [word for word in words if word not in STOP_WORDS] or words:
                fresh[word].append(number)
        rows = self._vectors.rows
        ones: list[Int64s] = []
        found: list[Int64s] = []
        weights: list[Float32s] = []
        for word, new in fresh.items():
            known = self._by_word[word]
            begin = len(known)
            known += new
            for start in range(begin, len(known), _COMPARED):
                some = np.array(known[start : start + _COMPARED])
                others = np.array(known[max(0, start - _COMPARED) : start + _COMPARED])
                if len(others) == 1:
                    continue  # most words occur in one name only
                cosines = rows[some].astype(np.float32) @ rows[others].astype(np.float32).T
                i, j = np.nonzero(cosines >= SAME)
                ones.append(some[i])
                found.append(others[j])
                weights.append(cosines[i, j])
        if ones:
            self._join(np.concatenate(ones), np.concatenate(found), np.concatenate(weights))

    def _join(self, ones: Int64s, others: Int64s, cosines: Float32s) -> None:
        """Add pairs of synonyms with at least one new name; duplicates and pairs of a name with itself are dropped."""
        low, high = np.minimum(ones, others), np.maximum(ones, others)
        _, first = np.unique(low * len(self.texts) + high, return_index=True)
        first = first[low[first] != high[first]]
        low, high, cosines = low[first], high[first], cosines[first]
        np.add.at(self._degree.rows, low, cosines)
        np.add.at(self._degree.rows, high, cosines)
        self.synonyms.join(low, high, cosines)

    def extend(self, episodes: Sequence[tuple[Sequence[str], str, str]]) -> None:
        """Add episodes: the names in them (already learned), the title as a name ("" for none), and the text."""
        first = len(self._names)
        for position, (names, title, text) in enumerate(episodes, first):
            numbers = list(dict.fromkeys(self._number[name] for name in names))
            self._names.append(numbers)
            for number in numbers:
                self._episodes[number].append(position)
            if title:
                self.titled[title].append(position)
            self._uncounted.append(text)
        np.add.at(self._degree.rows, np.fromiter(chain(*self._names[first:]), np.int64), 1)

    def attach(self, position: int, name: str) -> None:
        """Add a name to an episode."""
        number = self._number[name]
        if number not in self._names[position]:
            self._names[position].append(number)
            self._episodes[number].append(position)
            self._degree.rows[number] += 1

    def is_proper(self, word: str) -> bool:
        """Return whether the episodes mostly capitalize a word within sentences."""
        inside = Counter(chain.from_iterable(map(_WORD_INSIDE.findall, self._uncounted)))
        self._uncounted.clear()
        for each, count in inside.items():
            (self._upper if each[0].isupper() else self._lower)[each.lower()] += count
        return self._upper[word] > self._lower[word]

    def of_episode(self, position: int) -> list[int]:
        """Return the numbers of the names in an episode."""
        return self._names[position]

    def episodes(self, number: int) -> list[int]:
        """Return the episodes that have a name."""
        return self._episodes[number]

    def vector(self, number: int) -> Float32s | None:
        """Return the vector of a name, or None without a model."""
        return None if self._vectors is None else self._vectors.rows[number].astype(np.float32)

    def degrees(self, numbers: Int64s) -> Float64s:
        """Return the weighted degrees of names: the sums of their edges to episodes and synonyms."""
        return self._degree.rows[numbers]

    def reach(self, number: int) -> dict[int, float]:
        """Return the episodes that have a name or a synonym of it → weight, at most 1."""
        reached = dict.fromkeys(self._episodes[number], 1.0)
        for other, cosine in self.synonyms.of(number).items():
            for position in self._episodes[other]:
                reached[position] = min(1.0, reached.get(position, 0.0) + cosine)
        return reached

    def rarity(self, reached: int) -> float:
        """Return the rarity of a name that reaches `reached` of n episodes: ``log(1 + n / reached) / log(1 + n)``."""
        n = len(self._names)
        return math.log(1 + n / max(1, reached)) / math.log(1 + n)
