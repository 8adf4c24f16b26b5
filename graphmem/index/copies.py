"""Copies of the index in memory: decoding of entries, growable arrays, rows of a graph, and the copies used last."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphmem.models import IndexEntry
from graphmem.models.arrays import Float32s, Int64s
from graphmem.process import one_blas_thread
from graphmem.text.normalize import STOP_WORDS

_WIDTH, _OF = 128, 384  # numbers of a stored token vector, for each 384 of the model's


def is_content(piece: str) -> bool:
    """Return whether a piece is a content token: no stop word and no punctuation."""
    return piece not in STOP_WORDS and (piece.startswith("##") or piece[0].isalnum())


def unit(vectors: NDArray[np.floating]) -> Float32s:
    """Return vectors normalized to length 1 along the last axis; zero vectors stay zero."""
    return (vectors / (np.linalg.norm(vectors, axis=-1, keepdims=True) + 1e-9)).astype(np.float32, copy=False)


def piece_width(dimension: int) -> int:
    """Return the dimension of the stored token vectors of a model."""
    return _WIDTH * _parts(dimension)


def _parts(dimension: int) -> int:
    return max(1, dimension // _OF)


@lru_cache(maxsize=4)
def _projection(dimension: int) -> Float32s:
    """Return the projection matrix (dimension, 128), deterministic because stored pieces depend on it."""
    noise = np.random.default_rng(0).standard_normal((dimension, dimension))[:, :_WIDTH]
    orthonormal, triangle = np.linalg.qr(noise)
    matrix = np.zeros((dimension, _WIDTH), np.float32)  # zero columns if the dimension is below 128
    matrix[:, :dimension] = orthonormal * np.sign(np.diag(triangle))
    return matrix


@one_blas_thread
def projected(vectors: Float32s) -> Float32s:
    """Return vectors (m, dimension) as unit vectors (m, `piece_width`); of two models, each half by itself."""
    parts = np.array_split(vectors, _parts(vectors.shape[1]), axis=1)
    return unit(np.concatenate([part @ _projection(part.shape[1]) for part in parts], axis=1))


def compact(vectors: Float32s) -> NDArray[np.int8]:
    """Return vectors (m, dimension) in storage form: projected, scaled by 127 and rounded to int8."""
    return np.round(projected(vectors) * 127).astype(np.int8)


def detail_of(entry: IndexEntry) -> dict[str, list[str]]:
    """Return the decoded detail of an entry."""
    return json.loads(entry.detail) if entry.detail else {}


def packed(vectors: Float32s) -> bytes:
    """Return vectors, shape (v, dimension), as little-endian float16 bytes."""
    return vectors.astype("<f2").tobytes()


def unpacked(entry: IndexEntry, dimension: int) -> Float32s:
    """Return the vectors of an entry, shape (v, dimension); (0, 0) without a model."""
    return halves(entry).astype(np.float32).reshape(-1, dimension) if dimension else np.empty((0, 0), np.float32)


def halves(entry: IndexEntry) -> NDArray[np.float16]:
    """Return the stored float16 vector of an entry with a single vector, shape (dimension,)."""
    return np.frombuffer(entry.vectors, dtype="<f2")


def dimension_of(entry: IndexEntry) -> int:
    """Return the dimension of an entry's vector, or 0 for episodes, which may have several."""
    return 0 if entry.kind == "episode" else len(entry.vectors) // 2


def unpacked_pieces(entry: IndexEntry, dimension: int) -> NDArray[np.int8]:
    """Return the piece vectors of an entry, shape (p, `piece_width`)."""
    return np.frombuffer(entry.pieces, dtype=np.int8).reshape(-1, piece_width(dimension))


# Copies -------------------------------------------------------------------------------------------


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
