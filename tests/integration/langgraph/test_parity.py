"""The store of a memory gives the results of LangGraph's own, on every store of graphmem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from langgraph.store.base import BaseStore

from graphmem import GraphMemory
from graphmem.adapters.langgraph import GraphMemoryStore
from graphmem.testing.langgraph import Clock, LangGraphQueryTests, LangGraphStoreTests, LangGraphTTLTests
from graphmem.testing.rows import scope_of

pytestmark = pytest.mark.slow  # the first query loads spaCy


class _OnAMemory(LangGraphStoreTests, LangGraphQueryTests, LangGraphTTLTests):
    """The whole kit on the store of a memory."""

    url = "memory://"
    random_settings = settings(LangGraphStoreTests.random_settings, max_examples=30)

    def make_store(self, tmp_path: Path, clock: Clock) -> BaseStore:
        url = self.url.format(tmp_path)
        options: dict[str, Any] = {"extractor": "none", "embeddings": "none", "background": False, "clock": clock}
        self.opened = GraphMemory.open(url, scope=scope_of("kit"), **options)
        scope_of("kit/items")
        return GraphMemoryStore(self.opened)

    @pytest.fixture(autouse=True)
    def _closing(self) -> Iterator[None]:
        yield
        self.opened.close()


class TestInMemory(_OnAMemory):
    pass


class TestOnSQLite(_OnAMemory):
    url = "sqlite:///{}/memory.db"


class TestOnNeo4j(_OnAMemory):
    random_settings = settings(LangGraphStoreTests.random_settings, max_examples=10)

    @pytest.fixture(autouse=True)
    def _server(self, neo4j_url: str) -> Any:
        self.url = neo4j_url
