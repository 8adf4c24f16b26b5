"""Both detectors keep one contract: the one in process on each store that needs no server, and GDS on a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.communities import InProcessDetector
from graphmem.protocols import CommunityDetector, GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.communities_detect import CommunityDetectorTests
from tests.conformance.test_neo4j import OnNeo4j


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


@pytest.mark.full  # 20 tries, each a handful of calls; tests/integration/neo4j/test_gds.py has those of `make test`
class TestGds(OnNeo4j, CommunityDetectorTests): ...
