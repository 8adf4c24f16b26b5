"""The SQLite store passes the conformance kit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from graphmem.protocols import GraphBackend
from graphmem.testing import GraphBackendTests, StatefulGroupTests, StatefulTests, StatefulUpkeepTests, StoreTests
from graphmem_sqlite import SQLiteBackend, open_backend

SHORT = 10
LONG = 400 if os.environ.get("GRAPHMEM_SOAK") == "1" else 40


class OnSQLite(StoreTests):
    """Opens files."""

    shares_store = True

    def open_store(self, tmp_path: Path) -> GraphBackend:
        return open_backend(f"sqlite:///{tmp_path}/memory.db")

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        assert isinstance(store, SQLiteBackend)
        return open_backend(store.database.name)


class TestSQLite(OnSQLite, GraphBackendTests):
    stateful_settings = settings(GraphBackendTests.stateful_settings, max_examples=SHORT)


@pytest.mark.full
class TestSQLiteAtRandom(OnSQLite, StatefulTests, StatefulGroupTests, StatefulUpkeepTests):
    stateful_settings = settings(StoreTests.stateful_settings, max_examples=LONG)
