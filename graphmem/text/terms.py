"""Terms of texts for lexical search: words without stop words, stemmed by the rules of their script. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import pairwise

import Stemmer

from graphmem.text.normalize import MARKS, STOP_WORDS, UNSPACED, few_marks, split_words, unaccented

_LANGUAGES = {
    "ARABIC": "arabic",
    "ARMENIAN": "armenian",
    "CYRILLIC": "russian",
    "DEVANAGARI": "hindi",
    "GREEK": "greek",
    "TAMIL": "tamil",
}
"""Script → the language whose stemmer is applied; English to all others."""

_PICTOGRAPHS = "\u2600-\u27bf\U0001f300-\U0001faff"
_WORD = re.compile(rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*|[{_PICTOGRAPHS}]")


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    return Stemmer.Stemmer(language).stemWord  # pyright: ignore


_english = _stemmer("english")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the stem of a lower-case word (Snowball), without diacritics."""
    if word.isascii():
        return _english(word)
    language = _LANGUAGES.get(unicodedata.name(word[0], "").split(" ", 1)[0])
    return _english(unaccented(word)) if language is None else unaccented(_stemmer(language)(word))


def stems(text: str) -> set[str]:
    """Return the distinct terms of a text."""
    return set(terms(text))


def terms(text: str) -> list[str]:
    """Return the terms of a text in order and with repetitions: the stems of its words without English stop words."""
    if text.isascii():
        return [stem(word) for word in split_words(text) if word not in STOP_WORDS]
    plain = unicodedata.normalize("NFKC", few_marks(text)).replace("'s ", " ").replace("’s ", " ").lower()
    return [term for word in _WORD.findall(plain) for term in _terms_of(word)]


def _terms_of(word: str) -> Iterator[str]:
    if word.isascii() or not UNSPACED.search(word):
        if word not in STOP_WORDS:
            yield stem(word)
        return
    at = 0
    for run in UNSPACED.finditer(word):
        if run.start() > at:
            yield stem(word[at : run.start()])
        yield from map("".join, pairwise(run[0])) if len(run[0]) > 1 else run[0]
        at = run.end()
    if at < len(word):
        yield stem(word[at:])
