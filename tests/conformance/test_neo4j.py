"""The Neo4j store passes the conformance kit on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing import GraphBackendTests
from tests.neo4j_server import emptied


@pytest.mark.timeout(900)  # a read is a round trip, and the random operations make tens of thousands
class TestNeo4j(GraphBackendTests):
    url: str

    @pytest.fixture(autouse=True)
    def _server(self, neo4j_url: str) -> None:
        self.url = neo4j_url

    def open_store(self, tmp_path: Path) -> GraphBackend:
        return emptied(self.url)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)
