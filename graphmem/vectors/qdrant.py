"""Vector index on a Qdrant server or cluster, by qdrant-client."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from graphmem.errors import GraphMemError, IndexUnavailable, InvalidInput, MissingExtra
from graphmem.models import IndexKind, Scope
from graphmem.protocols.vectors import VectorState
from graphmem.registry import masked
from graphmem.vectors.points import BEAM, COLLECTIONS, EXACT_BELOW, PointIndex, Row

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_STATES = UUID("0b5c1d0a-22c5-5a52-8f0d-5e0c6f4a6d11")
_TIMEOUT = 10  # seconds per request
_PAUSE = 5.0  # seconds without requests after a failure, so that not every search waits for a timeout


def connect(url: str, api_key: str | None = None) -> QdrantClient:
    """Return a client for ``http://HOST:PORT``, without connecting.

    Raises
    ------
    InvalidInput
        If `url` isn't an HTTP or HTTPS URL with a host.
    MissingExtra
        If qdrant-client isn't installed.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InvalidInput(f"Qdrant URL {masked(url)!r}: expected http://HOST:PORT or https://HOST:PORT")
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise MissingExtra("vector_index qdrant", "qdrant") from error
    return QdrantClient(url=url, api_key=api_key, timeout=_TIMEOUT, check_compatibility=False)


class QdrantVectorIndex(PointIndex):
    """Index in the collections ``PREFIX_episodes``, ``PREFIX_entities`` … and ``PREFIX_state`` on a Qdrant server.

    Scopes are tenants: the engine builds an HNSW graph for each large scope and no global one, so that graphs never
    cross scopes. Scopes of up to `exact_below` vectors are searched exactly.

    Parameters
    ----------
    client
        Client of the server; closed by `close`.
    prefix
        Prefix of the collections; each store needs its own.
    exact_below
        Maximum number of vectors in a scope for exact search.
    pause
        Seconds after a failure during which no requests are sent.
    """

    def __init__(
        self,
        client: QdrantClient,
        prefix: str = "graphmem",
        *,
        exact_below: int = EXACT_BELOW,
        pause: float = _PAUSE,
    ) -> None:
        super().__init__(f"Qdrant collections {prefix}_*", exact_below)
        self._client = client
        self._prefix = prefix
        self._pause = pause
        self._dimensions: dict[IndexKind, int] = {}
        self._names: set[str] = set()
        self._failed: tuple[float, str] | None = None
        self._closed = False
        self._lock = threading.Lock()

    @contextmanager
    def _asking(self) -> Generator[None]:
        """Convert errors of the client to `IndexUnavailable`, and pause requests after a failure."""
        if self._closed:
            raise IndexUnavailable(f"{self._place}: this index was closed")
        if self._failed is not None and time.monotonic() < self._failed[0]:
            raise IndexUnavailable(self._failed[1])
        try:
            yield
        except GraphMemError:
            raise
        except Exception as error:
            # the client raises its own errors, those of httpx and pydantic, and plain ValueErrors
            with self._lock:
                self._dimensions.clear()  # a restarted server may have lost its collections
                self._names.clear()
            message = f"{self._place}: {_reason(error)}"
            self._failed = time.monotonic() + self._pause, message
            raise IndexUnavailable(message) from error
        self._failed = None

    def _name(self, kind: IndexKind) -> str:
        return f"{self._prefix}_{COLLECTIONS[kind]}"

    @property
    def _state_name(self) -> str:
        return f"{self._prefix}_state"

    # Collections ------------------------------------------------------------------------------------

    def _dimension(self, kind: IndexKind) -> int | None:
        if (known := self._dimensions.get(kind)) is not None:
            return known
        with self._asking():
            if not self._has(self._name(kind)):
                return None
            params: Any = self._client.get_collection(self._name(kind)).config.params.vectors
            self._dimensions[kind] = params.size
            return self._dimensions[kind]

    def _create(self, kind: IndexKind, dimension: int) -> None:
        from qdrant_client import models

        with self._asking():
            self._make(
                self._name(kind),
                vectors_config=models.VectorParams(size=dimension, distance=models.Distance.COSINE),
                hnsw_config=models.HnswConfigDiff(**self._hnsw(dimension)),
            )
            for field, is_tenant in (("scope", True), ("key", False)):
                schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=is_tenant)
                self._client.create_payload_index(self._name(kind), field, field_schema=schema)

    def _make(self, name: str, **config: Any) -> None:
        try:
            self._client.create_collection(name, **config)
        except Exception:
            if not self._client.collection_exists(name):  # otherwise another process created it
                raise

    def _has(self, name: str) -> bool:
        """Return whether a collection exists; only positive results are cached."""
        if name not in self._names:
            self._names = {collection.name for collection in self._client.get_collections().collections}
        return name in self._names

    # Points -----------------------------------------------------------------------------------------

    def _remove(self, kind: IndexKind, scope: Scope, keys: Sequence[str] | None) -> None:
        from qdrant_client import models

        with self._asking():
            selector = models.FilterSelector(filter=_within(scope, keys))
            self._client.delete(self._name(kind), selector, wait=True)

    def _put(self, kind: IndexKind, rows: Sequence[Row]) -> None:
        from qdrant_client import models

        with self._asking():
            points = [models.PointStruct(id=i, payload=payload, vector=vector) for i, payload, vector in rows]
            self._client.upsert(self._name(kind), points, wait=True)

    def _nearest(
        self, kind: IndexKind, asked: Sequence[tuple[Scope, int, bool]], vector: NDArray[np.float32]
    ) -> list[list[tuple[str, float]]]:
        from qdrant_client import models

        question = vector.tolist()
        requests = [
            models.QueryRequest(
                query=question,
                filter=_within(scope, None),
                params=models.SearchParams(exact=exactly, hnsw_ef=None if exactly else max(BEAM, 2 * most)),
                limit=most,
                with_payload=["key"],
            )
            for scope, most, exactly in asked
        ]
        with self._asking():
            answers = self._client.query_batch_points(self._name(kind), requests)
            return [[((p.payload or {})["key"], p.score) for p in answer.points] for answer in answers]

    def _count(self, kind: IndexKind, scope: Scope) -> int:
        with self._asking():
            return self._client.count(self._name(kind), _within(scope, None), exact=True).count

    # State ------------------------------------------------------------------------------------------

    def state(self, scope: Scope) -> VectorState | None:
        """Return the synchronization state of a scope; None if any of its collections was deleted."""
        with self._asking():
            if not self._has(self._state_name):
                return None
            found = self._client.retrieve(self._state_name, [_state_id(scope)], with_payload=True)
            payload: dict[str, Any] = (found[0].payload or {}) if found else {}
            if not found or not all(self._has(name) for name in payload["collections"]):
                return None
            return VectorState(**{name: payload[name] for name in VectorState.__slots__})

    def set_state(self, scope: Scope, state: VectorState) -> None:
        """Record the synchronization state of a scope."""
        from qdrant_client import models

        with self._asking():
            if not self._has(self._state_name):
                self._make(self._state_name, vectors_config={})
            values = {name: getattr(state, name) for name in VectorState.__slots__}
            used = [name for name in map(self._name, COLLECTIONS) if self._has(name)]
            payload = {"scope": scope.key, "collections": used, **values}
            point = models.PointStruct(id=_state_id(scope), vector={}, payload=payload)
            self._client.upsert(self._state_name, [point], wait=True)

    def clear(self, scope: Scope) -> None:
        """Remove the state of a scope, then its vectors."""
        with self._asking():
            if self._has(self._state_name):
                self._client.delete(self._state_name, [_state_id(scope)], wait=True)
        for kind in COLLECTIONS:
            if self._dimension(kind) is not None:
                self._remove(kind, scope, None)

    def reset(self) -> None:
        """Remove all collections of this prefix, the states first, so that no state remains without its vectors."""
        with self._asking():
            for name in (self._state_name, *(self._name(kind) for kind in COLLECTIONS)):
                if self._has(name):
                    self._client.delete_collection(name)
            self._dimensions.clear()
            self._names.clear()

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return whether the server responds, and the number of vectors per collection."""
        try:
            with self._asking():
                counts: list[str] = []
                for kind in COLLECTIONS:
                    if self._has(self._name(kind)):
                        found = self._client.get_collection(self._name(kind))
                        counts.append(f"{self._name(kind)} {found.points_count} ({found.status})")
        except GraphMemError as error:
            return [("vector index", False, f"{error}; search continues by words, late interaction, facts and graph")]
        return [("vector index", True, f"Qdrant: {', '.join(counts) or 'empty'}")]

    def close(self) -> None:
        """Close the client; further calls have no effect."""
        if not self._closed:
            self._closed = True
            self._client.close()


def _within(scope: Scope, keys: Sequence[str] | None) -> Any:
    from qdrant_client import models

    conditions = [models.FieldCondition(key="scope", match=models.MatchValue(value=scope.key))]
    if keys is not None:
        conditions.append(models.FieldCondition(key="key", match=models.MatchAny(any=list(keys))))
    return models.Filter(must=list(conditions))


def _state_id(scope: Scope) -> str:
    return str(uuid5(_STATES, scope.key))


def _reason(error: Exception) -> str:
    """Return the first line of an error; the client appends the whole response to its messages."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
