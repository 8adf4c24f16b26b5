"""Embeddings of questions and entities for recall, from the index of the store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphmem.embed import Embedder
from graphmem.index.codec import unpacked
from graphmem.ingest.entity_matching import SimilarEntities
from graphmem.models import Scope
from graphmem.protocols import GraphBackend
from graphmem.recall.embeddings import LEAST_COSINE, EntityEmbeddings

Vectors = NDArray[np.float32]


class StoredMeaning(EntityEmbeddings):
    """Stored entity vectors ("name: summary", computed at ingestion), and question vectors by the model.

    Parameters
    ----------
    backend
        The store.
    embedder
        The model; scopes that were indexed with another model have no vectors.
    similar
        Holds all entity vectors for nearest neighbor search, and computes missing ones.
    wait
        Seconds that a question may spend on computing missing vectors.
    """

    def __init__(self, backend: GraphBackend, embedder: Embedder, similar: SimilarEntities, wait: float) -> None:
        self._backend = backend
        self._embedder = embedder
        self._similar = similar
        self._wait = wait

    def of_query(self, query: str) -> Vectors:
        """Return the vector of a question, shape (d,)."""
        return self._embedder.vector(query)

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
        """Return the vectors of n entities, shape (n, d); a zero row for an entity without one."""
        dimension = self._embedder.dimension
        found = np.zeros((len(entity_ids), dimension), np.float32)
        rows = {entity_id: row for row, entity_id in enumerate(entity_ids)}
        for scope, _ in self._fitting(scopes):
            for entry in self._backend.find_index(scope, "entity", entity_ids):
                if entry.vectors:
                    found[rows[entry.key]] = unpacked(entry, dimension)[0]
        return found

    def nearest(self, scopes: Sequence[Scope], question: Vectors, limit: int) -> list[tuple[str, float]]:
        """Return (entity id, cosine) of the entities nearest to a vector of shape (d,), best first."""
        hits: list[tuple[float, str]] = []
        for scope, generation in self._fitting(scopes):
            hits += self._similar.vectors.nearest_of_all(scope, generation, question, LEAST_COSINE, limit)
        best = sorted(hits, key=lambda hit: (-hit[0], hit[1]))[:limit]
        return [(entity_id, cosine) for cosine, entity_id in best]

    def _fitting(self, scopes: Sequence[Scope]) -> list[tuple[Scope, int]]:
        """Return the scopes that were indexed with this model, and their index generations."""
        for scope in scopes:
            self._similar.index_waiting(scope, self._wait)
        states = [(scope, self._backend.index_state(scope)) for scope in scopes]
        return [(scope, state.generation) for scope, state in states if state.model == self._embedder.model_name]
