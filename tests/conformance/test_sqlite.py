"""The SQLite store passes the conformance kit."""

from __future__ import annotations

from pathlib import Path

from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing import GraphBackendTests


class TestSQLite(GraphBackendTests):
    url: str

    def open_store(self, tmp_path: Path) -> GraphBackend:
        self.url = f"sqlite:///{tmp_path}/memory.db"
        return open_backend(self.url)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)
