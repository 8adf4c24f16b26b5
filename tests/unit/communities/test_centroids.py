"""Centroids are those of the members that are asked about."""

from __future__ import annotations

import numpy as np

from graphmem.communities.search import Centroids
from graphmem.embed import Embedder
from graphmem.index.entity_vectors import entity_entry
from graphmem.models import Changes
from graphmem.registry import open_backend
from graphmem.testing.rows import community, entity, entity_id, home, put_entities


class Axes:
    """A model of three dimensions."""

    model_name, dimension = "axes", 3

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError(texts)

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError(text)


def test_members_of_another_moment_have_another_centroid() -> None:
    store = open_backend("memory://")
    put_entities(store, *(entity(n) for n in (1, 2, 3)))
    axes = np.eye(3, dtype=np.float32)
    entries = tuple(entity_entry(entity_id(n), "person", "axes", axes[n - 1]) for n in (1, 2, 3))
    store.write(home(), Changes(index=entries))
    centroids, embedder, row = Centroids(store), Embedder(Axes(), timeout=10), community(1)

    def of(*members: int) -> list[float]:
        found = centroids.of([home()], embedder, [row], {row.id: [entity_id(n) for n in members]})
        assert found is not None
        return [round(float(x), 3) for x in found[0]]

    assert of(1, 2) == [0.707, 0.707, 0.0]
    assert of(1, 3) == [0.707, 0.0, 0.707]
    assert of(1, 2) == [0.707, 0.707, 0.0]
