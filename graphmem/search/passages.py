"""Passages of texts that match a question, and the weights of its terms."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from graphmem.text.names import PlainPhrases
from graphmem.text.terms import terms

_SENTENCES = PlainPhrases()
_WORD = re.compile(r"\S+")


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
    """Return the sentences of a text that have the most terms, together at most `most` characters; "…" marks a cut.

    Among runs of sentences with the same terms the shortest is chosen, and extended to both sides while it fits.
    """
    text = text.strip()
    if len(text) <= most:
        return text
    spans = _pieces(text, most - 2)
    found = [set(terms(text[begin:end])) & weights.keys() for begin, end in spans]
    first, last = _best_run(spans, found, weights, most - 2)
    while True:  # the sentence before explains the subject, so it is tried first
        if first > 0 and spans[last][1] - spans[first - 1][0] <= most - 2:
            first -= 1
        elif last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= most - 2:
            last += 1
        else:
            break
    begin, end = spans[first][0], spans[last][1]
    return f"{'…' if first > 0 else ''}{text[begin:end].strip()}{'…' if last + 1 < len(spans) else ''}"


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


def _pieces(text: str, most: int) -> list[tuple[int, int]]:
    """Return the ranges of the sentences, cut at words where one is longer than `most`."""
    [phrases] = _SENTENCES.find([text])
    pieces: list[tuple[int, int]] = []
    for begin, end in phrases.sentences or ((0, len(text)),):
        cut = begin
        for word in _WORD.finditer(text, begin, end):
            if word.end() - cut > most and word.start() > cut:
                pieces.append((cut, word.start()))
                cut = word.start()
        pieces.append((cut, min(end, cut + most)))
    return pieces


def _sum(found: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights.get(term, 0.0) for term in found)
