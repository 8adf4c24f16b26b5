"""What every test gets: a clean environment, the shared data where it is, and one profile of hypothesis."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))  # helpers are tests.…, also beside an installed wheel

from graphmem.testing.rows import new_world
from tests.lanes import NAMES, Lanes
from tests.shared_servers import (
    RUN,
    begin_run,
    delete_scopes,
    empty_neo4j_of_module,
    empty_neo4j_url,
    neo4j_url,
    start_neo4j,
)

__all__ = ["empty_neo4j_of_module", "empty_neo4j_url", "neo4j_url", "start_neo4j"]

ROOT = Path(__file__).parents[1]
SOAK = os.environ.get("GRAPHMEM_SOAK") == "1"
TEST_VARIABLES = {
    "GRAPHMEM_DATA",
    "GRAPHMEM_REQUIRE_NEO4J",
    "GRAPHMEM_SCREENSHOTS",
    "GRAPHMEM_SOAK",
    "GRAPHMEM_TEST_CHROMIUM",
    "GRAPHMEM_TEST_E5",
    "GRAPHMEM_TEST_MERMAID",
    "GRAPHMEM_TEST_NEO4J_URL",  # a process that didn't know that the server is somebody's would empty it
    RUN,
}

# The machines that run this are slow and busy: an example that takes long is no failure. `make test` tries the same
# examples each time, so that a red run can be repeated; `make soak` tries new ones.
settings.register_profile("graphmem", deadline=None, derandomize=not SOAK, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("graphmem")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of a lane and of a random order."""
    parser.addoption("--lane", choices=NAMES, help="run the tests of this lane and those before; else all")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and the tests of each, in random order")


def forget_settings(environment: MutableMapping[str, str]) -> None:
    """Remove the variables of graphmem that aren't for the tests."""
    for name in [name for name in environment if name.startswith("GRAPHMEM_") and name not in TEST_VARIABLES]:
        del environment[name]


def pytest_configure(config: pytest.Config) -> None:
    """Forget the settings of whoever runs the tests, for this process and those it starts."""
    forget_settings(os.environ)
    begin_run(start=config.getoption("lane") in NAMES[1:])
    config.pluginmanager.register(Lanes(config), "lanes")


@pytest.fixture(autouse=True)
def _world(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each test scopes and row ids of its own, and clear them on the server that tests share."""
    with new_world() as world:
        yield
        if "neo4j_url" in request.fixturenames and world.scopes:
            delete_scopes(request.getfixturevalue("neo4j_url"), world.scopes)


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
