"""Cleaning of names, relations and facts (spec: normalization of names). Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from graphmem.errors import InvalidEntityName, InvalidInput
from graphmem.models import MAX_FACT_BYTES, MAX_NAME_BYTES, MAX_RELATION_BYTES

MIN_NAME_LENGTH = 3

# control characters except tab and line ends (white space), zero-width characters, bidirectional controls
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)
_SPACE = re.compile(r"\s+")
_NOT_WORD = re.compile(r"[^\w]+|_+")


def few_marks(text: str) -> str:
    """Return a text with runs of combining marks cut to 30.

    Normalization takes quadratic time in the length of such a run (the Stream-Safe Text Process of Unicode, UAX 15, has
    the same limit).
    """
    marks = "" if text.isascii() else "".join(c for c in set(text) if unicodedata.combining(c))
    return re.sub(f"([{marks}]{{30}})[{marks}]+", r"\1", text) if marks else text


def clean(text: str, max_bytes: int) -> str:
    """Return `text` in NFKC, without invisible characters, white space collapsed, cut to `max_bytes` of UTF-8.

    The text is cut between characters. The function is idempotent.
    """
    if len(text) > max_bytes * 8:
        text = text[: max_bytes * 8]  # avoids normalizing a megabyte for its first 512 bytes
    if text.isascii() and text.isprintable():
        # no invisible characters, one byte each: same result, four times as fast
        return " ".join(text.split())[:max_bytes].rstrip()
    text = _SPACE.sub(" ", _INVISIBLE.sub("", unicodedata.normalize("NFKC", few_marks(text)))).strip()
    if len(text) * 4 > max_bytes:
        text = text.encode()[:max_bytes].decode(errors="ignore").strip()
    return text


def display_name(name: str) -> str:
    """Return the display form of a name."""
    return clean(name, MAX_NAME_BYTES)


def canonical(name: str) -> str:
    """Return the lookup form of a name: cleaned and lower-cased, not case-folded ("ß" is kept)."""
    return _key(display_name(name))


def require_name(name: str, allowed: Collection[str] = ()) -> tuple[str, str]:
    """Return (display form, canonical form) of a name that may become an entity.

    Parameters
    ----------
    name
        Any text.
    allowed
        Canonical names that may be shorter than the limit (C, R, Go, …).

    Raises
    ------
    InvalidEntityName
        If fewer than 3 characters are left after cleaning, or no letter, digit or symbol. A wide character (Han, Kana,
        Hangul) counts as two, since names of two such characters are common.
    """
    shown = display_name(name)
    key = _key(shown)
    if len(key) < MIN_NAME_LENGTH and key not in allowed and _width(key) < MIN_NAME_LENGTH:
        raise InvalidEntityName(
            f"entity name {name[:80]!r}: {len(key)} characters after cleaning, at least {MIN_NAME_LENGTH} are needed"
        )
    if not (key[0].isalnum() or any(c.isalnum() or unicodedata.category(c) == "So" for c in key)):
        raise InvalidEntityName(f"entity name {name[:80]!r}: no letter, digit or symbol in it")
    return shown, key


def _key(shown: str) -> str:
    """Return the canonical form of a clean name; outside ASCII lower case may be longer than upper case."""
    return shown.lower() if shown.isascii() else clean(shown.lower(), MAX_NAME_BYTES)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) == "W" and c.isalpha() else 1 for c in text)


def relation_name(relation: str) -> str:
    """Return a verb phrase in the stored snake_case form: "Works at" becomes "works_at".

    Raises
    ------
    InvalidInput
        If it contains no letter or digit.
    """
    return _relation_name(relation[: MAX_RELATION_BYTES * 8])


@lru_cache(maxsize=4096)
def _relation_name(relation: str) -> str:
    words = _NOT_WORD.sub(" ", clean(relation, MAX_RELATION_BYTES).lower()).split()
    name = clean("_".join(words), MAX_RELATION_BYTES).strip("_")
    if not name:
        raise InvalidInput(f"relation {relation[:80]!r}: no letter or digit in it")
    return name


def fact_text(fact: str) -> str:
    """Return a fact's sentence, cleaned and cut to 2,048 bytes."""
    return clean(fact, MAX_FACT_BYTES)
