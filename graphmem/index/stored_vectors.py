"""Vectors of index entries as they are stored: projected, packed and decoded."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphmem.errors import IndexMismatch
from graphmem.models import IndexEntry
from graphmem.models.arrays import Float32s
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
    """Return the vectors of an entry, shape (v, dimension); (0, 0) without a model. Raises as `halves` does."""
    if not dimension:
        return np.empty((0, 0), np.float32)
    return halves(entry, dimension).astype(np.float32).reshape(-1, dimension)


def halves(entry: IndexEntry, dimension: int) -> NDArray[np.float16]:
    """Return the stored float16 vectors of an entry, one after the other.

    Raises
    ------
    IndexMismatch
        If they are of another dimension: by a model of the same name.
    """
    found = np.frombuffer(entry.vectors, dtype="<f2")
    if len(found) % dimension or (entry.kind != "episode" and len(found) > dimension):
        raise IndexMismatch(
            f"the index has vectors of the embedding model {entry.model!r} whose dimension isn't {dimension}; "
            "configure the dimension that it was built with, or rebuild the index: graphmem reindex"
        )
    return found


def dimension_of(entry: IndexEntry) -> int:
    """Return the dimension of an entry's vector, or 0 for episodes, which may have several."""
    return 0 if entry.kind == "episode" else len(entry.vectors) // 2


def unpacked_pieces(entry: IndexEntry, dimension: int) -> NDArray[np.int8]:
    """Return the piece vectors of an entry, shape (p, `piece_width`)."""
    return np.frombuffer(entry.pieces, dtype=np.int8).reshape(-1, piece_width(dimension))
