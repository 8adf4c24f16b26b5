"""The copies of the index in memory that were used last, within a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MB = 1_000_000
"""Bytes of a megabyte."""

MEMORY = 1_000 * MB
"""Bytes that copies of one kind take by default, as by the setting `index_memory_mb`."""


class Copies(Generic[K, V]):
    """The most recently used copies that fit into a limit of memory. The caller holds a lock.

    Parameters
    ----------
    size
        Returns the size of a copy in bytes.
    limit
        Maximum bytes of all copies; the copy used last is kept whatever its size.
    """

    def __init__(self, size: Callable[[V], int], limit: int) -> None:
        self._size = size
        self._limit = limit
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        """Return a copy, which is then the one used last; None if there is none."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: K, copy: V) -> V:
        """Keep a copy as the one used last, and drop the least recently used ones beyond the limit."""
        self._remove(key)
        size = self._size(copy)
        self._kept[key] = copy, size
        self._bytes += size
        while self._bytes > self._limit and len(self._kept) > 1:
            self._remove(next(iter(self._kept)))
        return copy

    def measure(self, key: K, copy: V) -> None:
        """Account for the growth of a copy, unless it was dropped meanwhile."""
        if self.get(key) is copy:
            self.put(key, copy)

    def drop(self, is_gone: Callable[[K], bool]) -> None:
        """Drop the copies whose key the function accepts."""
        for key in [key for key in self._kept if is_gone(key)]:
            self._remove(key)

    def cached_keys(self) -> list[K]:
        """Return the keys, the least recently used first."""
        return list(self._kept)

    def _remove(self, key: K) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self._bytes -= size
