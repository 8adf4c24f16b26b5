"""The SQLite store passes the conformance kit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing import GraphBackendTests

EXAMPLES = 400 if os.environ.get("GRAPHMEM_SOAK") == "1" else 40


class TestSQLite(GraphBackendTests):
    url: str
    stateful_settings = settings(GraphBackendTests.stateful_settings, max_examples=EXAMPLES)

    def open_store(self, tmp_path: Path) -> GraphBackend:
        self.url = f"sqlite:///{tmp_path}/memory.db"
        return open_backend(self.url)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return open_backend(self.url)

    @pytest.mark.soak
    def test_random_operations_agree_with_the_memory_backend(self, tmp_path: Path) -> None:
        super().test_random_operations_agree_with_the_memory_backend(tmp_path)
