"""Vectors of questions and entities in a recall, which goes on without them if the model or the index fails."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphmem.embed import Embedder
from graphmem.index.entity_vectors import EntityVectors
from graphmem.index.stored_vectors import unpacked
from graphmem.models import Scope
from graphmem.models.arrays import Float32s, Float64s
from graphmem.protocols import GraphBackend
from graphmem.text import counted

_log = logging.getLogger(__name__)

LEAST_COSINE = 0.35
"""Minimum cosine of an entity that is considered related to a question."""

Vectors = NDArray[np.floating]


class EntityEmbeddings(Protocol):
    """Source of vectors for recall."""

    def of_query(self, query: str) -> Vectors:
        """Return the vector of a question, shape (d,)."""
        ...

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
        """Return the vectors of n entities, shape (n, d); a zero row for an entity without one."""
        ...

    def nearest(self, scopes: Sequence[Scope], question: Vectors, limit: int) -> Sequence[tuple[str, float]]:
        """Return (entity id, cosine) of the entities nearest to a vector of shape (d,), best first."""
        ...


class StoredEntityEmbeddings(EntityEmbeddings):
    """Stored entity vectors ("name: summary", computed at ingestion), and question vectors by the model.

    Parameters
    ----------
    backend
        The store.
    embedder
        The model; scopes that were indexed with another model have no vectors.
    vectors
        All entity vectors, for nearest neighbor search.
    index_waiting
        Computes the missing vectors of a scope, for at most the given seconds.
    wait
        Seconds that a question may spend on computing missing vectors.
    """

    def __init__(
        self,
        backend: GraphBackend,
        embedder: Embedder,
        vectors: EntityVectors,
        index_waiting: Callable[[Scope, float], None],
        wait: float,
    ) -> None:
        self._backend = backend
        self._embedder = embedder
        self._vectors = vectors
        self._index_waiting = index_waiting
        self._wait = wait

    def of_query(self, query: str) -> Float32s:
        """Return the vector of a question, shape (d,)."""
        return self._embedder.vector(query)

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Float32s:
        """Return the vectors of n entities, shape (n, d); a zero row for an entity without one."""
        dimension = self._embedder.dimension
        found = np.zeros((len(entity_ids), dimension), np.float32)
        rows = {entity_id: row for row, entity_id in enumerate(entity_ids)}
        for scope, _ in self._fitting(scopes):
            for entry in self._backend.find_index(scope, "entity", entity_ids):
                if entry.vectors:
                    found[rows[entry.key]] = unpacked(entry, dimension)[0]
        return found

    def nearest(self, scopes: Sequence[Scope], question: Float32s, limit: int) -> list[tuple[str, float]]:
        """Return (entity id, cosine) of the entities nearest to a vector of shape (d,), best first."""
        hits: list[tuple[float, str]] = []
        for scope, generation in self._fitting(scopes):
            hits += self._vectors.nearest_of_all(scope, generation, question, LEAST_COSINE, limit)
        best = sorted(hits, key=lambda hit: (-hit[0], hit[1]))[:limit]
        return [(entity_id, cosine) for cosine, entity_id in best]

    def _fitting(self, scopes: Sequence[Scope]) -> list[tuple[Scope, int]]:
        """Return the scopes that were indexed with this model, and their index generations."""
        for scope in scopes:
            self._index_waiting(scope, self._wait)
        states = [(scope, self._backend.index_state(scope)) for scope in scopes]
        return [(scope, state.generation) for scope, state in states if state.model == self._embedder.model_name]


def entity_vectors(
    embeddings: EntityEmbeddings | None, scopes: Sequence[Scope], entity_ids: Sequence[str]
) -> Float64s | None:
    """Return unit vectors of n entities, shape (n, d), zero rows for missing ones; None if unavailable."""
    if embeddings is None:
        return None
    try:
        return _unit(embeddings.of_entities(scopes, entity_ids), rows=len(entity_ids))
    except Exception as error:  # noqa: BLE001 - a model or an index may raise anything; recall continues without
        _log.debug("no vectors of entities: %s: %s", type(error).__name__, error)
        return None


def query_cosines(
    embeddings: EntityEmbeddings | None, scopes: Sequence[Scope], query: str, entity_ids: Sequence[str]
) -> Float64s | None:
    """Return the cosine of a question and each of n entities, shape (n,); None on failure.

    The question is embedded once. The value of an entity without a vector is NaN.
    """
    if embeddings is None or (vectors := entity_vectors(embeddings, scopes, entity_ids)) is None:
        return None
    try:
        [question] = _unit(np.atleast_2d(embeddings.of_query(query)), rows=1)
        return np.where(np.any(vectors != 0.0, axis=1), vectors @ question, math.nan)
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("no vector of the question: %s: %s", type(error).__name__, error)
        return None


def nearest_entities(
    embeddings: EntityEmbeddings, scopes: Sequence[Scope], query: str, limit: int
) -> list[tuple[str, float]]:
    """Return (entity id, cosine) of the entities with the most similar vectors to a question; empty on failure."""
    try:
        found = embeddings.nearest(scopes, embeddings.of_query(query), limit)
        return [(entity_id, cosine) for entity_id, cosine in found if cosine >= LEAST_COSINE]
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("no entities by vectors: %s: %s", type(error).__name__, error)
        return []


def _unit(vectors: Vectors, *, rows: int) -> Float64s:
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2 or len(found) != rows or not np.all(np.isfinite(found)):
        raise ValueError(f"{counted(rows, 'row')} of finite numbers were expected, got shape {found.shape}")
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(length == 0.0, 1.0, length)
