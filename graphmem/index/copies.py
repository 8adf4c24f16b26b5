"""Data structures of the copies of the index in memory: growable arrays, rows of a graph, and the copies used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ints = NDArray[np.int64]

S = TypeVar("S", bound=np.generic)
K = TypeVar("K")
V = TypeVar("V")
_KEPT = 8


class GrowingArray(Generic[S]):
    """A numpy array whose first axis grows.

    Parameters
    ----------
    dtype
        Type of the elements.
    width
        Length of a row; None for a one-dimensional array.
    """

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._rows: NDArray[Any] = np.empty((16,) if width is None else (16, width), dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> NDArray[S]:
        """A view of the rows in order; valid until the next `extend`."""
        return self._rows[: self._size]

    def extend(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        needed = self._size + len(rows)
        if needed > len(self._rows):
            shape = (max(needed, 2 * len(self._rows)), *self._rows.shape[1:])
            larger = np.empty(shape, self._rows.dtype)
            larger[: self._size] = self.rows
            self._rows = larger
        self._rows[self._size : needed] = rows
        self._size = needed


def entries(begin: Ints, nodes: Ints) -> Ints:
    """Return the concatenated positions of the nodes' rows in the arrays of a CSR graph."""
    first, length = begin[nodes], begin[nodes + 1] - begin[nodes]
    offset = np.cumsum(length) - length
    return np.arange(int(length.sum()), dtype=np.int64) + np.repeat(first - offset, length)


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
