"""Words as full text sees them: scoped, so that the engine itself keeps the scopes apart.

Each word is indexed with the key of its scope in front ("12_alice"). A prefix query for "12_ali" then reads
the words of scope 12 only: what other scopes hold costs nothing and changes no result.
"""

from __future__ import annotations

from graphmem.protocols import split_words


def scoped_words(scope: int, text: str) -> str:
    """Return the words of a text as they are indexed for a scope."""
    return " ".join([f"{scope}_{word}" for word in split_words(text)])
