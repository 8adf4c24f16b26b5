"""What a word is to a store's full text: one definition, so that every store finds the same entities."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphmem.text.words import unaccented

MAX_WORD = 64
"""Characters of a word that count: some engines cut longer ones in pieces."""

_WORD = re.compile(r"[^\W_]+")


def split_words(text: str) -> list[str]:
    """Return the lower-case words of letters and digits, without diacritics, in order."""
    plain = text if text.isascii() else unaccented(text)
    return [word[:MAX_WORD] for word in _WORD.findall(plain.lower())]


def question_words(words: Iterable[str]) -> list[str]:
    """Return the words that are asked for, each once."""
    return list(dict.fromkeys(token for word in words for token in split_words(word)))
