"""The vector index of Neo4j: one node for each vector; the nearest of a scope by the index or by a scan."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmem.errors import BackendUnavailable, GraphMemError, IndexMismatch, IndexUnavailable
from graphmem.models import IndexKind, Scope
from graphmem.protocols import VectorHit, VectorIndex, VectorRows, VectorState
from graphmem_cypher import query
from graphmem_neo4j.connection import Database, Transaction
from graphmem_neo4j.server import translated, unless_done_by_another

EXACT_BELOW = 5_000
"""Size of a scope, in vectors, up to which the engine compares all of them."""

_NAME = "graphmem_vectors"
_OVERFETCHED = 3.0  # factor on the results that a scope's share of all vectors requires
_MOST_FETCHED = 20_000  # beyond this, comparing all vectors is as fast
_BATCH = 1000  # vectors in a transaction
_CLEARED = 10_000  # vectors deleted in a transaction
_ONLINE_WITHIN = 300
_COUNTED_FOR = 60.0  # seconds for which a count is reused to choose how to search
_OPTIONS: dict[str, Any] = {
    "vector.similarity_function": "cosine",
    "vector.quantization.enabled": False,  # it would lower the recall below 0.99
    "vector.hnsw.m": 16,
    "vector.hnsw.ef_construction": 200,
}


class Neo4jVectorIndex(VectorIndex):
    """Nodes ``:GraphmemVector`` next to those of the store, with the vector index ``graphmem_vectors`` on them.

    Neo4j 5.26 can't restrict a vector search to a scope: the index returns the nearest vectors of all scopes. Those of
    the wanted scope are in the right order, so they are the answer if there are enough of them. If the scope is small
    compared to the others, or there aren't enough, the engine compares all vectors of the scope, which a range index
    finds.

    Parameters
    ----------
    database
        Where the nodes are.
    exact_below
        Size of a scope, in vectors, up to which the engine compares all of them.
    """

    def __init__(self, database: Database, *, exact_below: int = EXACT_BELOW) -> None:
        self._database = database
        self._exact_below = exact_below
        self._dimension: int | None = None
        self._counted: dict[tuple[Scope, IndexKind], tuple[float, int, int]] = {}

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except BackendUnavailable as error:
            self._dimension = None
            raise IndexUnavailable(f"vector index: {error}") from error

    def upsert(self, scope: Scope, kind: IndexKind, items: Sequence[tuple[str, VectorRows]]) -> None:
        """Store the vectors of keys; see `VectorIndex`."""
        latest = dict(items)
        with self._translated():
            for dimension in sorted({vectors.shape[1] for vectors in latest.values() if len(vectors)}):
                if self._index_dimension() is None:
                    self._create(dimension)
                self._require_dimension(dimension)
            for keys, rows in _batches(latest):
                self._replace(scope, kind, keys, rows)

    def _replace(self, scope: Scope, kind: IndexKind, keys: Sequence[str], rows: Sequence[Any]) -> None:
        def work(transaction: Transaction) -> None:
            transaction.lock([scope])
            transaction.run("delete_vectors", scope=scope.key, kind=kind, keys=keys)
            if rows:
                transaction.run("put_vectors", scope=scope.key, kind=kind, rows=rows)

        self._database.write(work)

    def delete(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> None:
        """Remove keys."""
        with self._translated():
            self._replace(scope, kind, list(dict.fromkeys(keys)), [])

    def search(
        self, scopes: Sequence[Scope], kind: IndexKind, vector: NDArray[np.float32], *, limit: int
    ) -> list[VectorHit]:
        """Return the nearest keys of these scopes; see `VectorIndex`."""
        with self._translated():
            if self._index_dimension() is None:
                return []
            self._require_dimension(len(vector))
            found = [
                VectorHit(scope, key, 2 * score - 1)  # the engine gives (1 + cosine) / 2
                for scope in dict.fromkeys(scopes)
                for key, score in self._nearest(scope, kind, vector.tolist(), limit)
            ]
        return sorted(found, key=lambda hit: (-hit.score, hit.key, hit.scope.key))[:limit]

    def _nearest(self, scope: Scope, kind: IndexKind, vector: list[float], limit: int) -> list[tuple[str, float]]:
        asked: dict[str, Any] = {"scope": scope.key, "kind": kind, "vector": vector, "limit": limit}
        held, everything = self._counts(scope, kind)
        if held > self._exact_below:
            most = ceil(_OVERFETCHED * limit * everything / held)
            if most <= _MOST_FETCHED:
                found = self._database.read("vectors_nearby", most=most, **asked)
                if len(found) == limit:
                    return found
        return self._database.read("vectors_of_scope", **asked)

    def _counts(self, scope: Scope, kind: IndexKind) -> tuple[int, int]:
        """Return the number of vectors of the scope and of all scopes, by a count that may be a minute old."""
        now = time.monotonic()
        at, held, everything = self._counted.get((scope, kind), (-np.inf, 0, 0))
        if now - at > _COUNTED_FOR:
            ((held, everything),) = self._database.read("count_vectors", scope=scope.key, kind=kind)
            self._counted[scope, kind] = now, held, everything
        return held, everything

    def count(self, scope: Scope, kind: IndexKind) -> int:
        """Return the number of vectors of a scope."""
        with self._translated():
            ((held, _),) = self._database.read("count_vectors", scope=scope.key, kind=kind)
            return held

    # The index --------------------------------------------------------------------------------------

    def _index_dimension(self) -> int | None:
        """Return the dimension of the index, None if there is no index."""
        if self._dimension is None:
            rows = self._database.read("vector_index")
            self._dimension = rows[0][1] if rows else None
        return self._dimension

    def _require_dimension(self, given: int) -> None:
        if self._index_dimension() != given:
            raise IndexMismatch(
                f"{self._database.address.name}: its vector index has vectors of {self._index_dimension()} numbers, "
                f"these have {given}; configure the embedding model that it was built with, or rebuild the index: "
                "graphmem reindex"
            )

    def _create(self, dimension: int) -> None:
        options = {"indexConfig": {**_OPTIONS, "vector.dimensions": dimension}}
        with translated(self._database.address.name), self._database.session() as session:
            with unless_done_by_another():
                session.run(query("create_vector_index"), options=options).consume()
            session.run(query("await_index"), q={"name": _NAME, "seconds": _ONLINE_WITHIN}).consume()
        self._dimension = None

    # State ------------------------------------------------------------------------------------------

    def state(self, scope: Scope) -> VectorState | None:
        """Return the recorded progress of a scope."""
        with self._translated():
            rows = self._database.read("vector_state", scope=scope.key)
            return VectorState(*rows[0]) if rows and self._index_dimension() is not None else None

    def set_state(self, scope: Scope, state: VectorState) -> None:
        """Record the progress of a scope."""
        with self._translated():
            self._record(scope, asdict(state))

    def _record(self, scope: Scope, values: dict[str, Any]) -> None:
        def work(transaction: Transaction) -> None:
            transaction.lock([scope])
            transaction.run("set_vector_state", scope=scope.key, **values)

        self._database.write(work)

    def clear(self, scope: Scope) -> None:
        """Remove the state of a scope, and then its vectors."""
        with self._translated():
            self._record(scope, {field.name: None for field in fields(VectorState)})
            self._clear_vectors(scope.key)

    def _clear_vectors(self, key: str) -> None:
        while self._database.write(lambda transaction: transaction.run("clear_vectors", scope=key, limit=_CLEARED))[0]:
            pass

    def reset(self) -> None:
        """Remove the states, the vectors and the index."""
        with self._translated():
            for key in self._database.write(lambda transaction: transaction.run("reset_vectors")):
                self._clear_vectors(key)
            with translated(self._database.address.name), self._database.session() as session:
                session.run(query("drop_vector_index")).consume()
            self._dimension = None

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return the state of the index."""
        try:
            rows = self._database.read("vector_index")
        except GraphMemError as error:
            return [("vector index", False, str(error))]
        if not rows:
            return [("vector index", True, "not created yet: no vector is stored")]
        state, dimension = rows[0]
        return [("vector index", state == "ONLINE", f"{_NAME}, {dimension} numbers a vector: {state}")]

    def close(self) -> None:
        """Do nothing: the connections belong to the store."""


def _batches(items: dict[str, VectorRows]) -> Iterator[tuple[list[str], list[list[Any]]]]:
    """Yield batches of keys with their rows of key, number and vector, of limited size; a key is never split."""
    keys: list[str] = []
    rows: list[list[Any]] = []
    for key, vectors in items.items():
        if rows and len(rows) + len(vectors) > _BATCH:
            yield keys, rows
            keys, rows = [], []
        keys.append(key)
        rows += [[key, number, vector] for number, vector in enumerate(vectors.tolist())]
    if keys:
        yield keys, rows
