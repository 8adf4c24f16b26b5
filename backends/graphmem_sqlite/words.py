"""Words as full text sees them: scoped, so that the engine itself keeps the scopes apart.

Each word is indexed with the key of its scope in front ("12_alice"). A prefix query for "12_ali" then reads
the words of scope 12 only: what other scopes hold costs nothing and changes no result. The same function
prepares names and questions, so that both sides agree on what a word is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_ASCII_WORD = re.compile(r"[a-z0-9]+")


def split_words(text: str) -> list[str]:
    """Return the lower-case words of letters and digits, without diacritics, in order."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).lower()
    return "".join(c if c.isalnum() else " " for c in plain).split()


def scoped_words(scope: int, text: str) -> str:
    """Return the words of a text as they are indexed for a scope."""
    return " ".join([f"{scope}_{word}" for word in split_words(text)])


def question_words(words: Iterable[str]) -> list[str]:
    """Return the words that are asked for, each once."""
    return list(dict.fromkeys(token for word in words for token in split_words(word)))
