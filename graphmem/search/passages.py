"""Passages of texts that match a question, and the weights of its terms."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from graphmem.text.names import sentence_spans
from graphmem.text.terms import terms

_Piece = tuple[int, int, set[str]]  # begin, end, and terms of the question


def term_weights(question: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the weight of each term of a question: the rarer it is among texts, the higher."""
    having = [set(terms(text)) for text in texts]
    return {
        term: math.log(1 + (1 + len(texts)) / (1 + sum(term in one for one in having)))
        for term in dict.fromkeys(terms(question))
    }


def term_weight_of(text: str, weights: Mapping[str, float]) -> float:
    """Return the sum of the weights of the terms that a text has."""
    return _sum(set(terms(text)), weights)


def passage(text: str, weights: Mapping[str, float], most: int) -> str:
    """Return the sentences of a text that have the most terms, as `Passages.of` does."""
    return Passages(weights).of(text, most)


class Passages:
    """Passages of texts for a question; each text is split once, whatever the lengths that are asked for.

    Parameters
    ----------
    weights
        The weights of the question's terms, by `term_weights`.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._sentences: dict[str, list[_Piece]] = {}

    def of(self, text: str, most: int) -> str:
        """Return the sentences of a text with the most terms, together at most `most` characters; "…" marks a cut.

        Among runs of sentences with the same terms the shortest is chosen, and extended to both sides while it fits.
        """
        text = text.strip()
        if len(text) <= most:
            return text
        pieces = [piece for sentence in self._split(text) for piece in self._cut(text, sentence, most - 2)]
        spans, found = [(begin, end) for begin, end, _ in pieces], [terms_in for *_, terms_in in pieces]
        first, last = _best_run(spans, found, self._weights, most - 2)
        while True:  # the sentence before explains the subject, so it is tried first
            if first > 0 and spans[last][1] - spans[first - 1][0] <= most - 2:
                first -= 1
            elif last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= most - 2:
                last += 1
            else:
                break
        begin, end = spans[first][0], spans[last][1]
        return f"{'…' if first > 0 else ''}{text[begin:end].strip()}{'…' if last + 1 < len(spans) else ''}"

    def _split(self, text: str) -> list[_Piece]:
        """Return the sentences of a text with their terms."""
        if (sentences := self._sentences.get(text)) is None:
            spans = sentence_spans(text) or ((0, len(text)),)
            sentences = self._sentences[text] = [self._piece(text, *span) for span in spans]
        return sentences

    def _piece(self, text: str, begin: int, end: int) -> _Piece:
        return begin, end, self._weights.keys() & terms(text[begin:end])

    def _cut(self, text: str, sentence: _Piece, most: int) -> Iterable[_Piece]:
        """Return a sentence, cut at words if it is longer than `most`, and within a word that is longer itself."""
        begin, end, _ = sentence
        if end - begin <= most:
            return (sentence,)
        cut, spans = begin, list[tuple[int, int]]()
        for word in re.compile(rf"\S{{1,{max(1, most)}}}").finditer(text, begin, end):
            if word.end() - cut > most and word.start() > cut:
                spans.append((cut, word.start()))
                cut = word.start()
        return (self._piece(text, *span) for span in (*spans, (cut, min(end, cut + most))))


def _best_run(
    spans: Sequence[tuple[int, int]], found: Sequence[set[str]], weights: Mapping[str, float], most: int
) -> tuple[int, int]:
    """Return the first and last sentence of the run with the highest weight, the shortest and first of these."""
    best, chosen = (0.0, 0), (0, 0)
    for first in range(len(spans)):
        inside: set[str] = set()
        if not found[first]:
            continue
        for last in range(first, len(spans)):
            length = spans[last][1] - spans[first][0]
            if length > most:
                break
            if found[last] <= inside:
                continue
            inside |= found[last]
            if (value := (_sum(inside, weights), -length)) > best:
                best, chosen = value, (first, last)
    return chosen


def _sum(found: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights.get(term, 0.0) for term in found)
