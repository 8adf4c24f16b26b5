"""The store in memory: plain dicts, one lock, nothing on disk. The kit compares other stores with it."""

from __future__ import annotations

import re
from threading import Lock

from graphmem.errors import InvalidInput
from graphmem_memory.backend import MemoryBackend
from graphmem_memory.tables import Store

__all__ = ["MemoryBackend", "open_backend"]

_named: dict[str, Store] = {}
_named_lock = Lock()


def open_backend(url: str = "memory://") -> MemoryBackend:
    """Open a store in memory.

    Parameters
    ----------
    url
        ``memory://`` is a new, empty store. ``memory://NAME`` is the store of that name, which is shared within the
        process and lives as long as it.

    Raises
    ------
    InvalidInput
        If the name has other characters than letters, digits, ``-``, ``_`` and ``.``.
    """
    match = re.fullmatch(r"memory:(?://)?([\w.-]*)", url)
    if match is None:
        raise InvalidInput(f"store URL {url!r}: expected memory:// or memory://NAME (letters, digits, '-', '_', '.')")
    name = match[1]
    if not name:
        return MemoryBackend(Store(), "memory://")
    with _named_lock:
        return MemoryBackend(_named.setdefault(name, Store()), f"memory://{name}")
