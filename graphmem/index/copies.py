"""The most recently used copies of parts of the index in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_KEPT = 8


class Copies(Generic[K, V]):
    """The most recently used copies, at most eight. The caller holds a lock."""

    def __init__(self) -> None:
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return a copy and mark it as used; None if there is none."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: K, copy: V) -> V:
        """Keep a copy, and drop the least recently used ones beyond the limit."""
        self._kept[key] = copy
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return copy

    def drop(self, is_gone: Callable[[K], bool]) -> None:
        """Drop the copies whose key the function accepts."""
        for key in [key for key in self._kept if is_gone(key)]:
            del self._kept[key]

    def cached_keys(self) -> list[K]:
        """Return the keys, the least recently used first."""
        return list(self._kept)
