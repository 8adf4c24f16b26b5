"""Types of arrays, arrays that grow, the rows of a CSR graph, and arrays of scores."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
S = TypeVar("S", bound=np.generic)


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
        self._rows: NDArray[Any] = np.empty((0,) if width is None else (0, width), dtype)
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


def entries(begin: Int64s, nodes: Int64s) -> Int64s:
    """Return the concatenated positions of the nodes' rows in the arrays of a CSR graph."""
    first, length = begin[nodes], begin[nodes + 1] - begin[nodes]
    offset = np.cumsum(length) - length
    return np.arange(int(length.sum()), dtype=np.int64) + np.repeat(first - offset, length)


def normalized(values: NDArray[np.floating]) -> Float64s:
    """Return values scaled to [0, 1]; a constant array becomes 0, so an uninformative channel has no effect."""
    values = np.asarray(values, dtype=np.float64)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def best_first(scores: NDArray[np.floating], limit: int) -> Int64s:
    """Return the positions of the `limit` best scores, best first and in order of position on ties."""
    some = np.arange(len(scores))
    if limit < len(scores):
        some = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
    return some[np.argsort(-scores[some], kind="stable")][:limit]
