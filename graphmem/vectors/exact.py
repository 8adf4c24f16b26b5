"""Exact in-memory search: one matrix per scope and kind, and one matrix product per query."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphmem.index.copies import GrowingArray
from graphmem.models import IndexKind, Scope
from graphmem.process import one_blas_thread
from graphmem.protocols.vectors import VectorHit, VectorIndex, VectorRows, VectorState
from graphmem.vectors.points import best_hits, last_of_each, require_dimension

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
            for vectors in wanted.values():
                built = self._dimensions.setdefault(kind, vectors.shape[1])
                require_dimension("vectors in memory", kind, built, vectors.shape[1])
            self.delete(scope, kind, [key for key, vectors in items if not len(vectors)])
            if wanted:
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
