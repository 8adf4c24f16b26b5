"""The Neo4j store passes the conformance kit on a real server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings

from graphmem.models import Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing import GraphBackendTests, StatefulGroupTests, StatefulTests, StatefulUpkeepTests, StoreTests
from tests.shared_servers import delete_scopes, emptied_server

SHORT = 1
LONG = 200 if os.environ.get("GRAPHMEM_SOAK") == "1" else 20
"""Scenarios of random operations: one of 30 steps makes about a thousand round trips."""


class OnNeo4j(StoreTests):
    """Opens stores on the server of the test run, which tests of an empty one have alone."""

    shares_store = True
    url: ClassVar[str]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls, neo4j_url: str) -> None:
        cls.url = neo4j_url

    def open_store(self, tmp_path: Path) -> GraphBackend:
        return open_backend(self.url)

    def discard(self, store: GraphBackend, scopes: Sequence[Scope]) -> None:
        delete_scopes(self.url, scopes)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)

    @pytest.fixture
    def empty_store(self, tmp_path: Path) -> Iterator[GraphBackend]:
        store = open_backend(emptied_server())
        yield store
        store.close()


class TestNeo4j(OnNeo4j, GraphBackendTests):
    stateful_settings = settings(GraphBackendTests.stateful_settings, max_examples=SHORT, stateful_step_count=15)


@pytest.mark.full
@pytest.mark.timeout(3600 if LONG > 20 else 900)
class TestNeo4jAtRandom(OnNeo4j, StatefulTests, StatefulGroupTests, StatefulUpkeepTests):
    stateful_settings = settings(StoreTests.stateful_settings, max_examples=LONG)
