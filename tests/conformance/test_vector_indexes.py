"""Every vector index keeps one contract."""

from __future__ import annotations

from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

import pytest

from graphmem.protocols import VectorIndex
from graphmem.testing.vectors import VectorIndexTests
from graphmem.vectors import ExactVectorIndex
from graphmem.vectors.edge import QdrantEdgeVectorIndex
from graphmem.vectors.qdrant import QdrantVectorIndex


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
class TestQdrantLocalMode(VectorIndexTests):
    """The client's own engine: a Python loop that speaks as a server does, without its speed and its HNSW."""

    other_scopes: ClassVar[int] = 50

    def open_index(self, tmp_path: Path) -> VectorIndex:
        from qdrant_client import QdrantClient

        local: Any = OneAtATime(QdrantClient(path=str(tmp_path / "qdrant")))
        return QdrantVectorIndex(local)
