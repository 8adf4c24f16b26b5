"""Point indexes: their base, with one point per vector and aggregation by key, and exact in-memory search."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from graphmem.errors import IndexMismatch
from graphmem.models import IndexKind, Scope
from graphmem.models.arrays import GrowingArray
from graphmem.process import one_blas_thread
from graphmem.protocols.vectors import VectorHit, VectorIndex, VectorRows, VectorState


def best_hits(hits: Iterable[VectorHit], limit: int) -> list[VectorHit]:
    """Return the best hits of several scopes, ordered by descending score, key and scope."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.key, hit.scope.key))[:limit]


def last_of_each(items: Sequence[tuple[str, VectorRows]]) -> dict[str, VectorRows]:
    """Return the vectors of each key; the last item of a duplicate key wins."""
    return dict(items)


def require_dimension(place: str, kind: IndexKind, built: int, given: int) -> None:
    """Check the dimension of vectors.

    Raises
    ------
    IndexMismatch
        If the dimensions differ.
    """
    if built != given:
        raise IndexMismatch(
            f"{place}: its vectors of kind {kind} have dimension {built}, these have {given}; configure the embedding "
            "model that it was built with, or rebuild the index: graphmem reindex"
        )


EXACT_BELOW = 100_000
"""Maximum number of vectors in a scope for exact search, which then takes milliseconds."""

BEAM = 512
"""Minimum `ef` of HNSW searches in larger scopes."""

COLLECTIONS: Mapping[IndexKind, str] = {"episode": "episodes", "entity": "entities", "fact": "facts", "name": "names"}

_NAMESPACE = UUID("6f1d7c1e-6a0b-5b43-9f0c-2f6f3f0f7a51")
_BATCH = 1000  # vectors per request
_COUNTED_FOR = 60.0  # seconds that a cached count of a scope's vectors is valid

Row = tuple[str, dict[str, object], list[float]]
"""Id, payload and vector of a point."""


class PointIndex(VectorIndex, ABC):
    """Base class of indexes that store each vector as a point with scope and key as payload.

    Parameters
    ----------
    place
        Name of the index in messages.
    exact_below
        Maximum number of vectors in a scope for exact search.
    """

    def __init__(self, place: str, exact_below: int) -> None:
        self._place = place
        self._exact_below = exact_below
        self._counted: dict[tuple[Scope, IndexKind], tuple[float, int]] = {}
        self._counting = threading.Lock()

    # Engine primitives ------------------------------------------------------------------------------

    @abstractmethod
    def _dimension(self, kind: IndexKind) -> int | None:
        """Return the dimension of a collection, or None if it doesn't exist."""

    @abstractmethod
    def _create(self, kind: IndexKind, dimension: int) -> None:
        """Create a collection; does nothing if another process has created it."""

    @abstractmethod
    def _remove(self, kind: IndexKind, scope: Scope, keys: Sequence[str] | None) -> None:
        """Delete the points of these keys, or with None of the whole scope."""

    @abstractmethod
    def _put(self, kind: IndexKind, rows: Sequence[Row]) -> None:
        """Write new points."""

    @abstractmethod
    def _nearest(
        self, kind: IndexKind, asked: Sequence[tuple[Scope, int, bool]], vector: NDArray[np.float32]
    ) -> list[list[tuple[str, float]]]:
        """Return (key, cosine) of the nearest points for each (scope, limit, exact), best first."""

    @abstractmethod
    def _count(self, kind: IndexKind, scope: Scope) -> int:
        """Count the points of a scope."""

    def _hnsw(self, dimension: int) -> dict[str, Any]:
        """Return the HNSW configuration of a collection: no global graph, one for each scope above the threshold."""
        kilobytes = max(10, self._exact_below * dimension // 256)
        return {"m": 0, "payload_m": 16, "ef_construct": 200, "full_scan_threshold": kilobytes}

    # Derived operations -----------------------------------------------------------------------------

    def upsert(self, scope: Scope, kind: IndexKind, items: Sequence[tuple[str, VectorRows]]) -> None:
        """Replace the vectors of keys; see `VectorIndex`."""
        latest = last_of_each(items)
        dimensions = sorted({vectors.shape[1] for vectors in latest.values() if len(vectors)})
        built = self._dimension(kind)
        for dimension in dimensions:
            require_dimension(self._place, kind, built or dimensions[0], dimension)
        if built is None:
            if not dimensions:
                return
            self._create(kind, dimensions[0])
            require_dimension(self._place, kind, self._dimension(kind) or dimensions[0], dimensions[0])
        for keys, rows in _batches(scope, latest):
            self._remove(kind, scope, keys)
            if rows:
                self._put(kind, rows)

    def delete(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> None:
        """Remove keys."""
        if keys and self._dimension(kind) is not None:
            self._remove(kind, scope, list(dict.fromkeys(keys)))

    def search(
        self, scopes: Sequence[Scope], kind: IndexKind, vector: NDArray[np.float32], *, limit: int
    ) -> list[VectorHit]:
        """Return the nearest keys of these scopes; see `VectorIndex`.

        Each scope has its own query, batched in one request. The limit of points is increased until they cover enough
        keys.
        """
        built = self._dimension(kind)
        if built is None:
            return []
        require_dimension(self._place, kind, built, len(vector))
        found: list[VectorHit] = []
        asked = dict.fromkeys(scopes, 2 * limit)
        while asked:
            requests = [(scope, most, self._is_small(kind, scope)) for scope, most in asked.items()]
            more: dict[Scope, int] = {}
            for (scope, most, _), points in zip(requests, self._nearest(kind, requests, vector), strict=True):
                best: dict[str, float] = {}
                for key, score in points:
                    best.setdefault(key, score)
                if len(best) < limit and len(points) == most:
                    more[scope] = 4 * most
                else:
                    found += [VectorHit(scope, key, score) for key, score in best.items()]
            asked = more
        return best_hits(found, limit)

    def count(self, scope: Scope, kind: IndexKind) -> int:
        """Return the number of vectors of a scope."""
        return 0 if self._dimension(kind) is None else self._count(kind, scope)

    def _is_small(self, kind: IndexKind, scope: Scope) -> bool:
        """Return whether a scope is searched exactly, by a count that is at most `_COUNTED_FOR` seconds old."""
        now = time.monotonic()
        with self._counting:
            at, count = self._counted.get((scope, kind), (-np.inf, 0))
        if now - at > _COUNTED_FOR:
            count = self._count(kind, scope)
            with self._counting:
                self._counted[scope, kind] = now, count
        return count <= self._exact_below


def _batches(scope: Scope, items: Mapping[str, VectorRows]) -> Iterator[tuple[list[str], list[Row]]]:
    """Yield keys with their points in batches of about `_BATCH` vectors; a key is never split."""
    keys: list[str] = []
    rows: list[Row] = []
    for key, vectors in items.items():
        if rows and len(rows) + len(vectors) > _BATCH:
            yield keys, rows
            keys, rows = [], []
        keys.append(key)
        for number, vector in enumerate(vectors.tolist()):
            point = str(uuid5(_NAMESPACE, f"{scope.key}\n{key}\n{number}"))
            rows.append((point, {"scope": scope.key, "key": key}, vector))
    if keys:
        yield keys, rows


# Exact search -------------------------------------------------------------------------------------


_MOST_DEAD = 0.5  # maximum share of deleted rows before a matrix is compacted


class _Matrix:
    """The vectors of one scope and kind; rows of a key are adjacent, deleted rows stay until compaction."""

    def __init__(self, dimension: int) -> None:
        self.rows: GrowingArray[np.float32] = GrowingArray(np.float32, dimension)
        self._keys: list[str | None] = []
        self._begins: GrowingArray[np.int64] = GrowingArray(np.int64)
        self._alive: GrowingArray[np.bool_] = GrowingArray(np.bool_)
        self._at: dict[str, int] = {}
        self._sizes: list[int] = []
        self.live = 0

    def add(self, items: dict[str, VectorRows]) -> None:
        self.remove(list(items))
        for key, vectors in items.items():
            self._at[key] = len(self._keys)
            self._keys.append(key)
            self._sizes.append(len(vectors))
            self._begins.extend(np.array([len(self.rows)]))
            self._alive.extend(np.array([True]))
            self.rows.extend(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
            self.live += len(vectors)

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            if (at := self._at.pop(key, None)) is not None:
                self._keys[at] = None
                self._alive.rows[at] = False
                self.live -= self._sizes[at]
        if self.live < len(self.rows) * (1 - _MOST_DEAD):
            self._pack()

    def _pack(self) -> None:
        begins = self._begins.rows
        kept = {key: self.rows.rows[begins[at] : begins[at] + self._sizes[at]] for key, at in self._at.items()}
        packed = _Matrix(self.rows.rows.shape[1])
        packed.add(kept)
        self.__dict__.update(packed.__dict__)

    @one_blas_thread
    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[tuple[str, float]]:
        """Return the nearest keys, unordered, including ties with the last."""
        if not self._at:
            return []
        best = np.maximum.reduceat(self.rows.rows @ vector, self._begins.rows)
        best[~self._alive.rows] = -np.inf
        if len(self._at) > limit:
            least = np.partition(best, -limit)[-limit]
            chosen = np.flatnonzero(best >= least)
        else:
            chosen = np.flatnonzero(self._alive.rows)
        return [(key, score) for i, score in zip(chosen, best[chosen].tolist(), strict=True) if (key := self._keys[i])]


class ExactVectorIndex(VectorIndex):
    """Exact vector index in the memory of this process.

    It starts empty in each process and is filled by `VectorFollower`. The vectors of a scope are stored once, for any
    combination of scopes in a query.
    """

    def __init__(self) -> None:
        self._matrices: dict[tuple[Scope, IndexKind], _Matrix] = {}
        self._dimensions: dict[IndexKind, int] = {}
        self._states: dict[Scope, VectorState] = {}
        self._lock = threading.RLock()

    def upsert(self, scope: Scope, kind: IndexKind, items: Sequence[tuple[str, VectorRows]]) -> None:
        """Replace the vectors of keys; see `VectorIndex`."""
        with self._lock:
            wanted = {key: vectors for key, vectors in last_of_each(items).items() if len(vectors)}
            dimensions = sorted({int(vectors.shape[1]) for vectors in wanted.values()})
            for dimension in dimensions:
                require_dimension("vectors in memory", kind, self._dimensions.get(kind, dimensions[0]), dimension)
            self.delete(scope, kind, [key for key, vectors in items if not len(vectors)])
            if wanted:
                self._dimensions[kind] = dimensions[0]
                matrix = self._matrices.setdefault((scope, kind), _Matrix(self._dimensions[kind]))
                matrix.add(wanted)

    def delete(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> None:
        """Remove keys."""
        with self._lock:
            if (matrix := self._matrices.get((scope, kind))) is not None:
                matrix.remove(keys)

    def search(
        self, scopes: Sequence[Scope], kind: IndexKind, vector: NDArray[np.float32], *, limit: int
    ) -> list[VectorHit]:
        """Return the nearest keys of these scopes; see `VectorIndex`."""
        with self._lock:
            if kind not in self._dimensions:
                return []
            require_dimension("vectors in memory", kind, self._dimensions[kind], len(vector))
            unit = (vector / np.linalg.norm(vector)).astype(np.float32)
            found = [
                VectorHit(scope, key, score)
                for scope in dict.fromkeys(scopes)
                if (matrix := self._matrices.get((scope, kind))) is not None
                for key, score in matrix.nearest(unit, limit)
            ]
        return best_hits(found, limit)

    def count(self, scope: Scope, kind: IndexKind) -> int:
        """Return the number of vectors of a scope."""
        with self._lock:
            matrix = self._matrices.get((scope, kind))
            return 0 if matrix is None else matrix.live

    def state(self, scope: Scope) -> VectorState | None:
        """Return the synchronization state of a scope, or None."""
        with self._lock:
            return self._states.get(scope)

    def set_state(self, scope: Scope, state: VectorState) -> None:
        """Record the synchronization state of a scope."""
        with self._lock:
            self._states[scope] = state

    def clear(self, scope: Scope) -> None:
        """Remove the vectors and the state of a scope."""
        with self._lock:
            for key in [key for key in self._matrices if key[0] == scope]:
                del self._matrices[key]
            self._states.pop(scope, None)

    def reset(self) -> None:
        """Remove all vectors, dimensions and states."""
        with self._lock:
            self._matrices.clear()
            self._dimensions.clear()
            self._states.clear()

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return the number of vectors and the memory they use."""
        with self._lock:
            sizes = [matrix.rows.rows.nbytes for matrix in self._matrices.values()]
            vectors = sum(matrix.live for matrix in self._matrices.values())
        return [("vector index", True, f"in memory: {vectors} vectors, {sum(sizes) / 1e6:.0f} MB")]

    def close(self) -> None:
        """Do nothing; the memory is released with the object."""
