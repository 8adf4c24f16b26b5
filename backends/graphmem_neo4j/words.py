"""Words as full text sees them: scoped, so that the engine itself keeps the scopes apart.

Each word is indexed with a short hash of its scope in front ("9f2c41d07b_alice"). A prefix query for
"9f2c41d07b_ali" then reads the words of that scope only.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from graphmem.models import Scope
from graphmem.protocols import split_words


@lru_cache(maxsize=4096)
def scope_mark(scope_key: str) -> str:
    """Return what stands before the words of a scope."""
    return blake2b(scope_key.encode(), digest_size=8).hexdigest()


def scoped_words(scope: Scope, text: str) -> str:
    """Return the words of a text as they are indexed for a scope."""
    mark = scope_mark(scope.key)
    return " ".join([f"{mark}_{word}" for word in split_words(text)])
