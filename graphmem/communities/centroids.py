"""Centroids of communities: means of the members' vectors, from the index of the store."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphmem.embed import Embedder
from graphmem.index.codec import unpacked
from graphmem.index.copies import Copies
from graphmem.models import Community, Scope
from graphmem.protocols import GraphBackend

Vectors = NDArray[np.float32]

_PAGE = 2_000

_Key = tuple[tuple[Scope, ...], str, tuple[int, ...], int]


class Centroids:
    """Cache of unit vectors of communities, computed on demand and invalidated by changes of the communities.

    Member vectors are read in pages; one vector per community is kept in memory.

    Parameters
    ----------
    backend
        The store.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend
        self._kept: Copies[_Key, Vectors] = Copies()
        self._lock = threading.Lock()

    def of(
        self,
        scopes: Sequence[Scope],
        embedder: Embedder,
        communities: Sequence[Community],
        members: Mapping[str, Sequence[str]],
    ) -> Vectors | None:
        """Return the centroids, float32 (k, d), zero rows for communities without vectors; None if none has any.

        Parameters
        ----------
        scopes
            Scopes of the communities.
        embedder
            The embedding model; scopes indexed with another model are skipped.
        communities
            k communities.
        members
            Community id → ids of its members.
        """
        model = embedder.model_name
        states = [self._backend.index_state(scope) for scope in scopes]
        if not any(state.model == model for state in states):
            return None
        generations = tuple(state.generation for state in states)
        rows = tuple((c.id, c.updated_at, tuple(members.get(c.id, ()))) for c in communities)
        key: _Key = (tuple(scopes), model, generations, hash(rows))
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                return kept
        indexed = [scope for scope, state in zip(scopes, states, strict=True) if state.model == model]
        made = self._made(indexed, embedder.dimension, communities, members)
        if made is not None:
            with self._lock:
                self._kept.put(key, made)
        return made

    @property
    def scopes(self) -> list[Scope]:
        """Scopes with vectors in memory."""
        return list(dict.fromkeys(scope for key in self._kept.cached_keys() for scope in key[0]))

    def drop_copies(self, scope: Scope) -> None:
        """Drop the cached centroids of a scope."""
        with self._lock:
            self._kept.drop(lambda key: scope in key[0])

    def _made(
        self,
        scopes: Sequence[Scope],
        dimension: int,
        communities: Sequence[Community],
        members: Mapping[str, Sequence[str]],
    ) -> Vectors | None:
        rows_of: dict[str, list[int]] = {}
        for row, community in enumerate(communities):
            for entity_id in members.get(community.id, ()):
                rows_of.setdefault(entity_id, []).append(row)
        total: Vectors | None = None
        for scope in scopes:
            for entry in self._backend.all_entries(scope, kind="entity", chunk=_PAGE):
                if entry.vectors and (rows := rows_of.get(entry.key)):
                    [vector] = unpacked(entry, dimension)
                    if total is None:
                        total = np.zeros((len(communities), dimension), np.float32)
                    total[rows] += vector
        if total is None:
            return None
        length = np.linalg.norm(total, axis=1, keepdims=True)
        total /= np.where(length == 0.0, 1.0, length)
        return total
