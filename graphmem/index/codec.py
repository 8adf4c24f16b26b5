"""Vectors and details of index entries, as a store keeps them and as arrays."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphmem.models import IndexEntry
from graphmem.text.words import STOP_WORDS

Floats = NDArray[np.float32]
Vectors = Floats

DIMENSIONS = 128
"""Numbers of a stored vector of a token."""


def is_content(piece: str) -> bool:
    """Return whether a piece carries meaning."""
    return piece not in STOP_WORDS and (piece.startswith("##") or piece[0].isalnum())


def unit(vectors: NDArray[np.floating]) -> Floats:
    """Return vectors of length 1 along the last axis; zeros stay zeros."""
    return (vectors / (np.linalg.norm(vectors, axis=-1, keepdims=True) + 1e-9)).astype(np.float32, copy=False)


@lru_cache(maxsize=4)
def _projection(dimension: int) -> Floats:
    """Return the matrix (dimension, 128); the same on every machine: stored pieces depend on it."""
    noise = np.random.default_rng(0).standard_normal((dimension, dimension))
    orthonormal, triangle = np.linalg.qr(noise)
    matrix = np.zeros((dimension, DIMENSIONS), np.float32)  # zeros fill up what a smaller model lacks
    matrix[:, :dimension] = (orthonormal * np.sign(np.diag(triangle)))[:, :DIMENSIONS]
    return matrix


def projected(vectors: Floats) -> Floats:
    """Return vectors (m, dimension) as unit vectors (m, 128)."""
    return unit(vectors @ _projection(vectors.shape[1]))


def compact(vectors: Floats) -> NDArray[np.int8]:
    """Return vectors (m, dimension) as they are stored: (m, 128), 127 for 1."""
    return np.round(projected(vectors) * 127).astype(np.int8)


def detail_of(entry: IndexEntry) -> dict[str, list[str]]:
    """Return the lists that an entry's detail holds."""
    return json.loads(entry.detail) if entry.detail else {}


def packed(vectors: Vectors) -> bytes:
    """Return vectors, shape (v, dimension), as an entry has them."""
    return vectors.astype("<f2").tobytes()


def unpacked(entry: IndexEntry, dimension: int) -> Vectors:
    """Return the vectors of an entry, shape (v, dimension); (0, 0) without a model."""
    rows = np.frombuffer(entry.vectors, dtype="<f2").astype(np.float32)
    return rows.reshape(-1, dimension) if dimension else np.empty((0, 0), np.float32)


def halves(entry: IndexEntry) -> NDArray[np.float16]:
    """Return the vector of an entry that has one, (dimension,), as it is stored."""
    return np.frombuffer(entry.vectors, dtype="<f2")


def dimension_of(entry: IndexEntry) -> int:
    """Return how many numbers a vector of an entry has, if it has exactly one: else 0."""
    return 0 if entry.kind == "episode" else len(entry.vectors) // 2


def unpacked_pieces(entry: IndexEntry) -> NDArray[np.int8]:
    """Return the pieces of an entry, shape (p, 128)."""
    return np.frombuffer(entry.pieces, dtype=np.int8).reshape(-1, DIMENSIONS)
