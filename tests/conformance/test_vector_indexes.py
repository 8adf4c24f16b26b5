"""Every vector index keeps one contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

import pytest

from graphmem.models import Scope
from graphmem.protocols import VectorIndex
from graphmem.testing.vectors import CrowdedTests, VectorIndexHooks, VectorIndexTests, Vectors, VectorSearchTests
from graphmem.vectors import ExactVectorIndex
from graphmem.vectors.edge import QdrantEdgeVectorIndex
from graphmem.vectors.qdrant import QdrantVectorIndex
from graphmem_neo4j import Neo4jBackend, open_backend
from graphmem_neo4j.vectors import Neo4jVectorIndex


class TestExact(VectorIndexTests):
    keeps = False

    def open_index(self, tmp_path: Path) -> VectorIndex:
        return ExactVectorIndex()


class TestQdrantEdge(VectorIndexTests):
    def open_index(self, tmp_path: Path) -> VectorIndex:
        return QdrantEdgeVectorIndex(tmp_path / "vectors")


class OneAtATime:
    """A client in local mode, which isn't made for threads: each call waits for the one before."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = RLock()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(*args: Any, **options: Any) -> Any:
            with self._lock:
                return method(*args, **options)

        return call


@pytest.mark.filterwarnings("ignore:Local mode performs exact")
@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
@pytest.mark.slow  # each write is a loop in Python
class TestQdrantLocalMode(VectorIndexTests):
    """The client's own engine: a Python loop that speaks as a server does, without its speed and its HNSW."""

    other_scopes: ClassVar[int] = 50

    def open_index(self, tmp_path: Path) -> VectorIndex:
        from qdrant_client import QdrantClient

        local: Any = OneAtATime(QdrantClient(path=str(tmp_path / "qdrant")))
        return QdrantVectorIndex(local)

    @pytest.mark.full
    def test_many_are_written_at_once(self, index: VectorIndex) -> None:
        super().test_many_are_written_at_once(index)


class OnNeo4j(VectorIndexHooks):
    """Opens the index of a server, which is one for all its scopes: each test has the server to itself."""

    url: str
    stores: list[Neo4jBackend]
    exact_below: ClassVar[int] = 5_000

    @pytest.fixture(autouse=True)
    def _server(self, empty_neo4j_url: str) -> Iterator[None]:
        self.url, self.stores = empty_neo4j_url, []
        yield
        for store in self.stores:
            store.close()

    def open_index(self, tmp_path: Path) -> VectorIndex:
        self.stores.append(open_backend(self.url))
        index = self.index_of(self.stores[-1])
        index.reset()
        return index

    def reopen(self, index: VectorIndex, tmp_path: Path) -> VectorIndex:
        self.stores.append(open_backend(self.url))
        return self.index_of(self.stores[-1])

    def crowd(self, index: VectorIndex, others: Sequence[tuple[Scope, Vectors]]) -> None:
        for start in range(0, len(others), 100):
            some = others[start : start + 100]
            self.stores[0].atomic(lambda some=some: super(OnNeo4j, self).crowd(index, some))

    def index_of(self, store: Neo4jBackend) -> VectorIndex:
        return Neo4jVectorIndex(store.database, exact_below=self.exact_below)


@pytest.mark.full  # searches on Neo4j are in `make test`: tests/e2e, tests/integration/vectors
class TestNeo4j(OnNeo4j, VectorIndexTests):
    other_scopes: ClassVar[int] = 200


@pytest.mark.full
class TestNeo4jByItsIndex(OnNeo4j, VectorSearchTests, CrowdedTests):
    """However small a scope is, the engine's index is asked first."""

    exact_below: ClassVar[int] = 0
