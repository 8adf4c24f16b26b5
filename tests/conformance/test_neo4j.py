"""The Neo4j store passes the conformance kit on a real server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing import GraphBackendTests
from tests.neo4j_server import emptied

EXAMPLES = 200 if os.environ.get("GRAPHMEM_SOAK") == "1" else 20
"""Scenarios of random operations: each makes about a thousand round trips."""


@pytest.mark.timeout(3600 if EXAMPLES > 20 else 900)
class TestNeo4j(GraphBackendTests):
    url: str
    stateful_settings = settings(GraphBackendTests.stateful_settings, max_examples=EXAMPLES)

    @pytest.fixture(autouse=True)
    def _server(self, neo4j_url: str) -> None:
        self.url = neo4j_url

    def open_store(self, tmp_path: Path) -> GraphBackend:
        return emptied(self.url)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)

    @pytest.mark.soak
    def test_random_operations_agree_with_the_memory_backend(self, tmp_path: Path) -> None:
        super().test_random_operations_agree_with_the_memory_backend(tmp_path)
