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

MB = 1_000_000
"""Bytes of a megabyte."""

MEMORY = 1_000 * MB
"""Bytes that copies of one kind take by default, as by the setting `index_memory_mb`."""


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
    def nbytes(self) -> int:
        """Size in memory in bytes, with the room to grow."""
        return self._rows.nbytes

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
        """Return a copy; None if there is none."""
        return self._kept[key][0] if key in self._kept else None

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
