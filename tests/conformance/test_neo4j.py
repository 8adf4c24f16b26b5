"""The Neo4j store passes the conformance kit on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing import GraphBackendTests
from graphmem_neo4j import Neo4jBackend

WIPE = "MATCH (n:Graphmem) WHERE n.migration IS NULL CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 5000 ROWS"


class TestNeo4j(GraphBackendTests):
    url: str

    @pytest.fixture(autouse=True)
    def _server(self, neo4j_url: str) -> None:
        self.url = neo4j_url

    def open_store(self, tmp_path: Path) -> GraphBackend:
        store = open_backend(self.url)
        assert isinstance(store, Neo4jBackend)
        empty(store)
        return store

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)


def empty(store: Neo4jBackend) -> None:
    """Delete all that graphmem has in the database, but for the numbers of its migrations: every test begins anew."""
    with store.database.session() as session:
        session.run(WIPE).consume()
