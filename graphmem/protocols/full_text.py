"""What a word is to a store's full text: one definition, so that every store finds the same entities."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphmem.text.words import unaccented

MAX_WORD = 64
"""Characters of a word that count: some engines cut longer ones in pieces."""

_ASCII_WORD = re.compile(r"[a-z0-9]+")


def split_words(text: str) -> list[str]:
    """Return the lower-case words of letters and digits, without diacritics, in order."""
    if text.isascii():
        found = _ASCII_WORD.findall(text.lower())
    else:
        found = "".join(c if c.isalnum() else " " for c in unaccented(text).lower()).split()
    return [word[:MAX_WORD] for word in found]


def question_words(words: Iterable[str]) -> list[str]:
    """Return the words that are asked for, each once."""
    return list(dict.fromkeys(token for word in words for token in split_words(word)))
