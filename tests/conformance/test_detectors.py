"""Both detectors keep one contract: the one in process on each store that needs no server, and GDS on a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.communities import InProcessDetector
from graphmem.protocols import CommunityDetector, GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.communities_detect import CommunityDetectorTests
from graphmem_neo4j import Neo4jBackend
from tests.neo4j_server import emptied


class TestInProcessOnMemory(CommunityDetectorTests):
    def open_store(self, tmp_path: Path) -> GraphBackend:
        return open_backend(f"memory://{'.'.join(tmp_path.parts[-3:])}")

    def detector_of(self, store: GraphBackend) -> CommunityDetector:
        return InProcessDetector(store, chunk=7)


class TestInProcessOnSQLite(CommunityDetectorTests):
    def open_store(self, tmp_path: Path) -> GraphBackend:
        return open_backend(f"sqlite:///{tmp_path}/memory.db")

    def detector_of(self, store: GraphBackend) -> CommunityDetector:
        return InProcessDetector(store)


class TestGds(CommunityDetectorTests):
    url: str

    @pytest.fixture(autouse=True)
    def _server(self, neo4j_url: str) -> None:
        self.url = neo4j_url

    def open_store(self, tmp_path: Path) -> Neo4jBackend:
        return emptied(self.url)
