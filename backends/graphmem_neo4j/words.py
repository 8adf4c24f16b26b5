"""Words as full text sees them: scoped, so that the engine itself keeps the scopes apart.

Each word is indexed with a short hash of its scope in front ("9f2c41d07b_alice"). A prefix query for
"9f2c41d07b_ali" then reads the words of that scope only. The same function prepares names and questions, so that
both sides agree on what a word is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from graphmem.models import Scope

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_LONGEST = 64
"""Characters of a word that count: Lucene's analyzer cuts longer ones in pieces."""


@lru_cache(maxsize=4096)
def scope_mark(scope_key: str) -> str:
    """Return what stands before the words of a scope."""
    return blake2b(scope_key.encode(), digest_size=8).hexdigest()


def split_words(text: str) -> list[str]:
    """Return the lower-case words of letters and digits, without diacritics, in order."""
    if text.isascii():
        found = _ASCII_WORD.findall(text.lower())
    else:
        plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).lower()
        found = "".join(c if c.isalnum() else " " for c in plain).split()
    return [word[:_LONGEST] for word in found]


def scoped_words(scope: Scope, text: str) -> str:
    """Return the words of a text as they are indexed for a scope."""
    mark = scope_mark(scope.key)
    return " ".join([f"{mark}_{word}" for word in split_words(text)])


def question_words(words: Iterable[str]) -> list[str]:
    """Return the words that are asked for, each once."""
    return list(dict.fromkeys(token for word in words for token in split_words(word)))
