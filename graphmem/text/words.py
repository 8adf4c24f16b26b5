"""Words of queries and facts, for full-text search and for the overlap of a fact with a query. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import Stemmer

from graphmem.text.normalize import clean

MAX_QUERY = 512
"""Maximum number of characters of a query that are used."""

STOP_WORDS = frozenset(
    """
    a about after again also am an and are as at be been before being between both but by can could did do does don
    done down during each for from further had has have having he her here him his how i if in into is it its just
    may me might more most must my no nor not now of off on once only or other our out over own s same shall she
    should so some such t than that the their them then there these they this those to too under up us very was we
    were what when where which who whom whose why will with would you your
    """.split()
)

WORD = re.compile(r"[^\W_]+")
_PIECE = 4096
_snowball: Callable[[str], str] = Stemmer.Stemmer("english").stemWord  # pyright: ignore


def split_words(text: str) -> list[str]:
    """Return the lower-case words of letters and digits, without diacritics, in order."""
    if not text.isascii():
        text = unaccented(text)
    return WORD.findall(text.replace("'s ", " ").replace("’s ", " ").lower())


def unaccented(text: str) -> str:
    """Return a text in NFKD without combining marks; it is decomposed in pieces, so that other threads can run."""
    text = _without_marks(text)  # first, as ordering a run of marks takes quadratic time
    pieces = (unicodedata.normalize("NFKD", text[i : i + _PIECE]) for i in range(0, len(text), _PIECE))
    return "".join(map(_without_marks, pieces))


def _without_marks(text: str) -> str:
    marks = {ord(c): None for c in set(text) if unicodedata.combining(c)}
    return text.translate(marks) if marks else text


def query_words(query: str) -> list[str]:
    """Return the distinct significant words of a query: at least 3 characters, no stop words.

    For a query of only stop words, return those: a weak match is better than none.
    """
    words = list(dict.fromkeys(split_words(_read(query) + " ")))
    long = [word for word in words if len(word) >= 3 or not word.isascii()]
    return [word for word in long if word not in STOP_WORDS] or long


def query_phrases(query: str, longest: int = 6) -> list[str]:
    """Return every run of up to `longest` words of a query as a normalized name, for alias look-ups.

    Punctuation at the ends of words is removed, except in names such as "c++"; inside of words, as in "o'brien", it is
    kept.
    """
    query = _read(query).lower().replace("’", "'")
    words = [w for raw in query.split() if (w := _bare(raw))]
    phrases = {
        " ".join(run): None
        for start in range(len(words))
        for end in range(start + 1, min(start + longest, len(words)) + 1)
        if (run := words[start:end]) and any(w not in STOP_WORDS for w in run)
    }
    return list(phrases)


def _read(query: str) -> str:
    """Return the first `MAX_QUERY` characters of a query, cleaned like names."""
    return clean(query[:MAX_QUERY], 4 * MAX_QUERY)


def _bare(word: str) -> str:
    word = word.removesuffix("'s").strip("\"'()[]{}<>,;:!?…«»“”‘")
    return word.removesuffix("'s").rstrip(".") if len(word) > 1 else (word if word.isalnum() else "")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the stem of an English word (Snowball)."""
    return _snowball(word)


def stems(text: str) -> set[str]:
    """Return the distinct stems of a text without stop words."""
    return set(terms(text))


def terms(text: str) -> list[str]:
    """Return the stems of a text without stop words, in order and with repetitions."""
    return [stem(word) for word in split_words(text) if word not in STOP_WORDS]
