"""Full-text search of entities: the words of an index and of a query, and the score of a match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphmem.text.normalize import WORD, unaccented

MAX_WORD = 64
"""Significant characters of a word; some engines split longer words."""


def index_words(text: str) -> list[str]:
    """Return the words of a store's full-text index: of letters and digits, in lower case and without diacritics."""
    plain = text if text.isascii() else unaccented(text)
    return [word[:MAX_WORD] for word in WORD.findall(plain.lower())]


def question_words(words: Iterable[str]) -> list[str]:
    """Return the distinct normalized words of a query, in order."""
    return list(dict.fromkeys(token for word in words for token in index_words(word)))


COLLECTION_SIZE = 1e6
"""Number of rows in the inverse document frequency of entity words, so that other scopes have no influence on it."""

NAME_WEIGHT = 10
"""Weight of a word in the name of an entity; one in the summary counts 1."""

_K1, _B = 1.2, 0.75


def word_scores(rows: Sequence[tuple[str, str]], weights: Mapping[str, float]) -> list[float]:
    """Score entities by their words: BM25F over name and summary (Robertson and Zaragoza 2009, section 3.5).

    Parameters
    ----------
    rows
        Words of the name and of the summary of each entity, separated by spaces, each with the mark of its scope in
        front ("12_alice").
    weights
        Word, or beginning of one → its inverse document frequency.
    """
    lengths = [name.count(" ") + summary.count(" ") + 2 for name, summary in rows]
    average = sum(lengths) / max(1, len(lengths))
    return [_word_score(name, summary, weights, n / average) for (name, summary), n in zip(rows, lengths, strict=True)]


def _word_score(name: str, summary: str, weights: Mapping[str, float], length: float) -> float:
    mark, _, _ = (name or summary).partition("_")
    name, summary, score = f" {name}", f" {summary}", 0.0
    for word, weight in weights.items():
        begin = f" {mark}_{word}"
        if count := NAME_WEIGHT * name.count(begin) + summary.count(begin):
            score += weight * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length))
    return score
