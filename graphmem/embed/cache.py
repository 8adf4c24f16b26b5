"""Vectors that were computed before, by the content of the text."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphmem.embed.interface import TokenVectors

Cached = NDArray[np.float32] | TokenVectors

_PER_ENTRY = 256  # bytes that an entry takes beside its arrays: key, order, headers
_PER_PIECE = 64  # bytes of a short string and the reference to it


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """How often a cache had what was asked for, and how full it is."""

    hits: int
    misses: int
    entries: int
    bytes: int


class VectorCache:
    """Keeps the vectors used last, up to a number of bytes; safe to use from any thread.

    Parameters
    ----------
    limit
        Bytes in memory; 0 keeps nothing.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Cached] = OrderedDict()
        self._bytes = self._hits = self._misses = 0

    def get(self, key: bytes) -> Cached | None:
        """Return what is kept under a key, None if nothing is."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self._misses += 1
            else:
                self._hits += 1
                self._kept.move_to_end(key)
            return found

    def put(self, key: bytes, value: Cached) -> None:
        """Keep a value, which nobody may change from now on, and drop those used longest ago for it."""
        size = _size(value)
        if size > self._limit:
            return
        with self._lock:
            if (old := self._kept.pop(key, None)) is not None:
                self._bytes -= _size(old)
            self._kept[key] = value
            self._bytes += size
            while self._bytes > self._limit:
                self._bytes -= _size(self._kept.popitem(last=False)[1])

    def clear(self) -> None:
        """Keep nothing of what was put in so far."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def info(self) -> CacheInfo:
        """Return the counts since the cache was made."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, len(self._kept), self._bytes)


def key_of(model: str, kind: str, text: str) -> bytes:
    """Return the key of a text's vector: a hash of the model's name, what was computed, and the text."""
    head = f"{model}\0{kind}\0".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(head + text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _size(value: Cached) -> int:
    if isinstance(value, TokenVectors):
        arrays = value.vectors.nbytes + value.offsets.nbytes + value.pooled.nbytes
        return _PER_ENTRY + arrays + _PER_PIECE * len(value.pieces)
    return _PER_ENTRY + value.nbytes
