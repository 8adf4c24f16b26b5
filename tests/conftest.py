"""What every test gets: a clean environment, the shared data where it is, and one profile of hypothesis."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))  # helpers are tests.…, also beside an installed wheel

from tests.neo4j_server import empty_neo4j_url, neo4j_url, start_neo4j

__all__ = ["empty_neo4j_url", "neo4j_url", "start_neo4j"]

ROOT = Path(__file__).parents[1]
SOAK = os.environ.get("GRAPHMEM_SOAK") == "1"
TEST_VARIABLES = {
    "GRAPHMEM_DATA",
    "GRAPHMEM_REQUIRE_NEO4J",
    "GRAPHMEM_SCREENSHOTS",
    "GRAPHMEM_SOAK",
    "GRAPHMEM_TEST_CHROMIUM",
    "GRAPHMEM_TEST_MERMAID",
}

# The machines that run this are slow and busy: an example that takes long is no failure. `make test` tries the same
# examples each time, so that a red run can be repeated; `make soak` tries new ones.
settings.register_profile("graphmem", deadline=None, derandomize=not SOAK, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("graphmem")


def pytest_configure() -> None:
    """Forget the settings of whoever runs the tests, for this process and those it starts."""
    for name in [name for name in os.environ if name.startswith("GRAPHMEM_") and name not in TEST_VARIABLES]:
        del os.environ[name]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of the real conversations and passages; skip where it isn't."""
    folder = Path(os.environ.get("GRAPHMEM_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: set GRAPHMEM_DATA")
    return folder


@pytest.fixture(scope="session")
def rounds() -> Callable[[int], int]:
    """Return what turns the full number of rounds of a long test into the number for this run: a tenth, or all."""
    return lambda full: full if SOAK else max(1, full // 10)
