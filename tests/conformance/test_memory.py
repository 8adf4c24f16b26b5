"""The store in memory passes the conformance kit, also where all tests share one store that others use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing import GraphBackendTests, StatefulGroupTests, StatefulTests, StatefulUpkeepTests, StoreTests
from graphmem.testing.rows import edge, new_world, put_episodes, put_graph

SHORT = 10


class OnMemory(StoreTests):
    """Opens stores by a name of their own."""

    url: str

    def open_store(self, tmp_path: Path) -> GraphBackend:
        self.url = f"memory://{'.'.join(tmp_path.parts[-3:])}"
        return open_backend(self.url)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)


class TestMemory(OnMemory, GraphBackendTests):
    stateful_settings = settings(GraphBackendTests.stateful_settings, max_examples=SHORT)


@pytest.mark.full
class TestMemoryAtRandom(OnMemory, StatefulTests, StatefulGroupTests, StatefulUpkeepTests): ...


class TestSharedMemory(GraphBackendTests):
    """Isolation by scope is enough: the store holds rows of somebody else, of the same names and numbers."""

    stateful_settings = settings(GraphBackendTests.stateful_settings, max_examples=SHORT)
    shares_store = True
    url = "memory://shared"

    def open_store(self, tmp_path: Path) -> GraphBackend:
        store = open_backend(self.url)
        with new_world():
            put_graph(store, *(edge(n, n, n + 1) for n in range(1, 5)))
            put_episodes(store, 1, 2)
        return store

    def open_empty_store(self, tmp_path: Path) -> GraphBackend:
        return open_backend(f"memory://{'.'.join(tmp_path.parts[-3:])}")

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)
