"""Vector index in a local folder by Qdrant Edge, the embedded engine of Qdrant."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphmem.errors import GraphMemError, IndexUnavailable, MissingExtra
from graphmem.models import IndexKind, Scope
from graphmem.protocols.vectors import VectorState
from graphmem.vectors.points import BEAM, COLLECTIONS, EXACT_BELOW, PointIndex, Row

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

_LOCKED = "WouldBlock"
_OPTIMIZED_AFTER = 50_000  # vectors written since the last optimization of the segments

_STATES = """
CREATE TABLE IF NOT EXISTS state (
    scope TEXT PRIMARY KEY, model TEXT NOT NULL, generation INTEGER NOT NULL, position INTEGER NOT NULL,
    last TEXT NOT NULL, last_position INTEGER NOT NULL
) WITHOUT ROWID
"""
_STATE = "SELECT model, generation, position, last, last_position FROM state WHERE scope = ?"
_SET_STATE = "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?)"
_DELETE_STATE = "DELETE FROM state WHERE scope = ?"
_DELETE_STATES = "DELETE FROM state"
_SHARDS = "CREATE TABLE IF NOT EXISTS shard (kind TEXT PRIMARY KEY, dimension INTEGER NOT NULL) WITHOUT ROWID"
_ADD_SHARD = "INSERT OR REPLACE INTO shard VALUES (?, ?)"
_DELETE_SHARDS = "DELETE FROM shard"


class QdrantEdgeVectorIndex(PointIndex):
    """Index in a folder, with shards ``graphmem_episodes``, ``graphmem_entities`` … and the states of scopes.

    The folder is locked by one process, from the first use until `close`. Scopes of up to `exact_below` vectors are
    searched exactly; the writing process builds HNSW graphs for larger ones only.

    Parameters
    ----------
    folder
        Path of the folder; created if missing.
    exact_below
        Maximum number of vectors in a scope for exact search.

    Raises
    ------
    IndexUnavailable
        If another process has locked the folder, or it can't be read or written.
    MissingExtra
        If qdrant-edge-py isn't installed.
    """

    def __init__(self, folder: str | Path, *, exact_below: int = EXACT_BELOW) -> None:
        self._folder = Path(folder)
        super().__init__(f"Qdrant Edge in {self._folder}", exact_below)
        try:
            import qdrant_edge
        except ImportError as error:
            raise MissingExtra("vector_index qdrant-edge", "qdrant-edge") from error
        self._edge: Any = qdrant_edge
        self._shards: dict[IndexKind, EdgeShard] = {}
        self._dimensions: dict[IndexKind, int] = {}
        self._states: sqlite3.Connection | None = None
        self._written = 0
        self._opened = self._closed = False
        self._lock = threading.RLock()

    @contextmanager
    def _working(self) -> Generator[None]:
        """Open the folder on first use, and convert errors of the engine to `IndexUnavailable`."""
        try:
            with self._lock:
                if self._closed:
                    raise IndexUnavailable(f"{self._place}: this index was closed")
                if not self._opened:
                    self._open()
            yield
        except GraphMemError:
            raise
        except Exception as error:  # the engine raises plain Exception for all errors
            if _LOCKED in str(error):
                raise IndexUnavailable(
                    f"{self._place}: another process has this folder open, and only one can use it; stop that process, "
                    "use another folder, or use a Qdrant server"
                ) from error
            raise IndexUnavailable(
                f"{self._place}: {error}; if it is damaged, delete the folder: it is rebuilt from the store"
            ) from error

    def _open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        states = sqlite3.connect(self._folder / "state.db", check_same_thread=False, isolation_level=None)
        states.execute(_STATES)
        states.execute(_SHARDS)
        dimensions: dict[IndexKind, int] = dict(states.execute("SELECT kind, dimension FROM shard"))
        there: list[IndexKind] = [kind for kind in dimensions if (self._path(kind) / "edge_config.json").is_file()]
        if len(there) < len(dimensions):
            states.execute(_DELETE_STATES)  # a shard was deleted: all scopes are refilled
        self._shards = {kind: self._edge.EdgeShard.load(str(self._path(kind))) for kind in there}
        self._dimensions = {kind: dimensions[kind] for kind in there}
        self._states, self._opened = states, True

    def _path(self, kind: IndexKind) -> Path:
        return self._folder / f"graphmem_{COLLECTIONS[kind]}"

    # Shards -----------------------------------------------------------------------------------------

    def _dimension(self, kind: IndexKind) -> int | None:
        with self._working():
            return self._dimensions.get(kind)

    def _create(self, kind: IndexKind, dimension: int) -> None:
        edge = self._edge
        with self._working(), self._lock:
            if kind in self._shards:
                return
            config = edge.EdgeConfig(
                vectors=edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine),
                hnsw_config=edge.HnswIndexConfig(**self._hnsw(dimension)),
            )
            shutil.rmtree(self._path(kind), ignore_errors=True)  # remains of a crash before the shard was recorded
            shard = edge.EdgeShard.create(str(self._path(kind)), config)
            for field, is_tenant in (("scope", True), ("key", False)):
                schema = edge.KeywordIndexParams(is_tenant=is_tenant)
                shard.update(edge.UpdateOperation.create_field_index(field, schema))
            shard.flush()
            assert self._states is not None
            self._states.execute(_ADD_SHARD, (kind, dimension))
            self._shards[kind] = shard
            self._dimensions[kind] = dimension

    def _remove(self, kind: IndexKind, scope: Scope, keys: Sequence[str] | None) -> None:
        with self._working():
            self._shards[kind].update(self._edge.UpdateOperation.delete_points_by_filter(self._within(scope, keys)))

    def _put(self, kind: IndexKind, rows: Sequence[Row]) -> None:
        with self._working():
            points = [self._edge.Point(i, vector, payload) for i, payload, vector in rows]
            self._shards[kind].update(self._edge.UpdateOperation.upsert_points(points))
            self._written += len(rows)

    def _nearest(
        self, kind: IndexKind, asked: Sequence[tuple[Scope, int, bool]], vector: NDArray[np.float32]
    ) -> list[list[tuple[str, float]]]:
        edge = self._edge
        question = edge.Query.Nearest(vector.tolist())
        requests = [
            edge.QueryRequest(
                limit=most,
                query=question,
                filter=self._within(scope, None),
                params=edge.SearchParams(exact=exactly, hnsw_ef=None if exactly else max(BEAM, 2 * most)),
                with_payload=["key"],
            )
            for scope, most, exactly in asked
        ]
        with self._working():
            answers = self._shards[kind].query_batch(edge.QueryBatchRequest(requests))
            return [[((point.payload or {})["key"], point.score) for point in answer] for answer in answers]

    def _count(self, kind: IndexKind, scope: Scope) -> int:
        with self._working():
            return self._shards[kind].count(self._edge.CountRequest(exact=True, filter=self._within(scope, None)))

    def _within(self, scope: Scope, keys: Sequence[str] | None) -> Any:
        edge = self._edge
        conditions = [edge.FieldCondition("scope", match=edge.MatchValue(scope.key))]
        if keys is not None:
            conditions.append(edge.FieldCondition("key", match=edge.MatchAny(list(keys))))
        return edge.Filter(must=conditions)

    # State ------------------------------------------------------------------------------------------

    def state(self, scope: Scope) -> VectorState | None:
        """Return the synchronization state of a scope, or None."""
        with self._working(), self._lock:
            assert self._states is not None
            row = self._states.execute(_STATE, (scope.key,)).fetchone()
            return None if row is None else VectorState(*row)

    def set_state(self, scope: Scope, state: VectorState) -> None:
        """Flush the vectors to disk, then record the state of a scope; optimize the segments after many writes."""
        with self._working():
            many = self._written > _OPTIMIZED_AFTER
            for shard in list(self._shards.values()):
                shard.flush()
                if many:
                    shard.optimize()
            if many:
                self._written = 0
            values = (getattr(state, name) for name in VectorState.__slots__)
            with self._lock:
                assert self._states is not None
                self._states.execute(_SET_STATE, (scope.key, *values))

    def clear(self, scope: Scope) -> None:
        """Remove the state of a scope, then its vectors."""
        with self._working(), self._lock:
            assert self._states is not None
            self._states.execute(_DELETE_STATE, (scope.key,))
            for kind in self._shards:
                self._remove(kind, scope, None)

    def reset(self) -> None:
        """Remove all states, then all shards, so that no state remains without its vectors."""
        with self._working(), self._lock:
            assert self._states is not None
            self._states.execute(_DELETE_STATES)
            self._states.execute(_DELETE_SHARDS)
            for kind, shard in self._shards.items():
                shard.close()
                shutil.rmtree(self._path(kind))
            self._shards, self._dimensions = {}, {}

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return whether the folder is usable, and the number of vectors per shard."""
        try:
            with self._working(), self._lock:
                counts = [
                    f"{self._path(kind).name} {shard.info().points_count}" for kind, shard in self._shards.items()
                ]
        except GraphMemError as error:
            return [("vector index", False, f"{error}; search continues by words, late interaction, facts and graph")]
        return [("vector index", True, f"{self._place}: {', '.join(counts) or 'empty'}")]

    def close(self) -> None:
        """Flush pending writes and release the folder; further calls have no effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for shard in self._shards.values():
                shard.close()
            if self._states is not None:
                self._states.close()
