"""The Neo4j servers that all processes of a test run share, as fixtures.

`neo4j_url` is for tests that keep to their own scopes: it is never emptied, and holds a bystander, a scope of somebody
else, that no test may read or change. `empty_neo4j_url` is for tests about a whole store (its schema, its list of
scopes, its queue): another server, emptied before each, that one test has at a time. Both start when the first test
asks, whichever process that test is in, and end with the run (`stop_servers`).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest
from filelock import FileLock

from graphmem import GraphMemory
from graphmem.models import Scope
from tests.neo4j_server import (
    RUNNING,
    Neo4jServer,
    NoServer,
    connect,
    docker_client,
    remove_orphans,
    run,
    wait_until_ready,
)

RUN = "GRAPHMEM_TEST_RUN"
"""Variable with the folder that the processes of a run have in common; its name ends with the first one's id."""

SHARED, EMPTY = "shared", "empty"
SERVER_OF = {"neo4j_url": SHARED, "empty_neo4j_url": EMPTY, "empty_neo4j_of_module": EMPTY}
_starting: list[Thread] = []

BYSTANDER = Scope("bystander of the test run")
ROWS_OF_SCOPES = "MATCH (n:Graphmem) WHERE n.scope IN $keys OR n.scope_key IN $keys DETACH DELETE n"
OUR_ROWS = "MATCH (n:Graphmem) WHERE n.migration IS NULL CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 5000 ROWS"


# What a run has ---------------------------------------------------------------------------------------


def begin_run(*, start: bool) -> None:
    """Make the folder of the run, unless a process that started this one has; with `start`, start the servers."""
    if RUN in os.environ:
        return
    os.environ[RUN] = tempfile.mkdtemp(prefix="graphmem-tests-", suffix=f"-{os.getpid()}")
    if start:  # while the tests are collected, and the first of them need no server
        for role in (EMPTY, SHARED):
            _starting.append(Thread(target=_server, args=(role,)))
            _starting[-1].start()


def end_run() -> list[str]:
    """Stop the servers if this process began the run; return what tests left behind on the shared one."""
    folder = _folder()
    if _owner() != os.getpid():
        return []
    for thread in _starting:
        thread.join()
    problems = leftovers(folder)
    for state in folder.glob("*.json"):
        container = json.loads(state.read_text("utf-8")).get("container")
        if container is not None:
            docker_client().containers.get(container).remove(force=True, v=True)
    shutil.rmtree(folder, ignore_errors=True)
    del os.environ[RUN]
    return problems


def leftovers(folder: Path) -> list[str]:
    """Return what is wrong with the shared server at the end of a run: scopes of tests, or a changed bystander."""
    state = _state(folder, SHARED)
    if "bystander" not in state or not _answers(state["url"]):
        return []
    with _bystander(state["url"]) as memory:
        left = [scope.key for scope in memory.admin.scopes() if scope != BYSTANDER]
        changed = memory.admin.checksum() != state["bystander"]
    problems = [f"tests left scopes behind on the shared Neo4j server: {', '.join(left)}"] if left else []
    if changed:
        problems.append(f"a test changed or extracted the scope {BYSTANDER.key!r}, which isn't its own")
    return problems


def runs_on_neo4j(item: pytest.Item) -> bool:
    """Return whether a test that runs on several kinds of stores runs on Neo4j."""
    parameters = getattr(item, "callspec", None)
    return parameters is not None and "neo4j" in parameters.params.values()


def servers_of(item: pytest.Item) -> set[str]:
    """Return which of the servers a test uses, by its fixtures, parameters and marks."""
    if runs_on_neo4j(item):
        return {SHARED if item.get_closest_marker("whole_store") is None else EMPTY}
    return {SERVER_OF[name] for name in getattr(item, "fixturenames", ()) if name in SERVER_OF}


def server_problem(role: str) -> str | None:
    """Return that a server of this run has died, and None while it answers or nobody has needed it yet."""
    state = _state(_folder(), role)
    if "url" not in state or _answers(state["url"]):
        return None
    return f"the {role} Neo4j server of this test run has died: every test that needs it fails"


# Fixtures ---------------------------------------------------------------------------------------------


def required() -> bool:
    """Return whether a run without Neo4j is a failure: in CI, unless GRAPHMEM_REQUIRE_NEO4J says otherwise."""
    said = os.environ.get("GRAPHMEM_REQUIRE_NEO4J", "")
    return said == "1" or (said != "0" and os.environ.get("CI") == "true")


def unavailable(reason: NoServer) -> NoReturn:
    """Skip, or fail where a skip would hide that Neo4j was not tested."""
    if required():
        pytest.fail(str(reason), pytrace=False)
    pytest.skip(str(reason))


@pytest.fixture(scope="session")
def neo4j_url() -> str:
    """Return the URL, password included, of the server that tests share; skip where none is to be had."""
    return _url_of(SHARED)


def delete_scopes(url: str, scopes: Sequence[Scope]) -> None:
    """Delete what tests have written in their scopes, past the store under test and in one transaction."""
    with _driver(url).session() as session:
        session.run(ROWS_OF_SCOPES, keys=[scope.key for scope in scopes]).consume()


@pytest.fixture
def empty_neo4j_url() -> Iterator[str]:
    """Yield the URL of a server with nothing of graphmem's in it but the schema, which only this test uses."""
    with alone_on_empty_server() as url:
        yield url


@pytest.fixture(scope="module")
def empty_neo4j_of_module() -> Iterator[str]:
    """Yield the same for all tests of a file, whose data the first one makes."""
    with alone_on_empty_server() as url:
        yield url


@contextmanager
def alone_on_empty_server() -> Generator[str, None, None]:
    """Yield the URL of the second server, emptied; others wait until this caller is done with it."""
    url = _url_of(EMPTY)
    with FileLock(_folder() / "empty.in-use"):
        empty(url)
        yield url


@pytest.fixture
def start_neo4j() -> Iterator[Callable[..., Neo4jServer]]:
    """Return what starts a server that only one test has: to kill it, to do without GDS, to look at it in Browser."""
    started: list[Neo4jServer] = []

    def start(settings: Mapping[str, str] | None = None, *, gds: bool = True) -> Neo4jServer:
        try:
            started.append(Neo4jServer(settings, gds=gds))
        except NoServer as error:
            unavailable(error)
        return started[-1].start()

    yield start
    for server in started:
        server.remove()


def empty(url: str) -> None:
    """Delete what graphmem has in a database, but for its schema."""
    run(url, OUR_ROWS)


# Starting ---------------------------------------------------------------------------------------------


def _url_of(role: str) -> str:
    """Return the URL of one of the run's servers; skip where none is to be had."""
    state = _server(role)
    if "unavailable" in state:
        unavailable(NoServer(state["unavailable"]))
    return str(state["url"])


def _server(role: str) -> dict[str, Any]:
    """Return what is known of one of the run's servers, which is started where no process has yet."""
    folder = _folder()
    with FileLock(folder / f"{role}.lock"):
        state = _state(folder, role)
        if not state:
            try:
                state = _start(role)
            except NoServer as error:
                state = {"unavailable": str(error)}
            (folder / f"{role}.json").write_text(json.dumps(state), encoding="utf-8")
    return state


def _start(role: str) -> dict[str, Any]:
    if role == SHARED and RUNNING:
        try:
            wait_until_ready(RUNNING, seconds=60)
        except NoServer as error:
            raise NoServer(f"GRAPHMEM_TEST_NEO4J_URL: {error}") from None
        return {"url": RUNNING}
    remove_orphans()
    server = Neo4jServer(owner=_owner()).start()
    state = {"url": server.url, "container": server.container_id}
    if role == SHARED:
        with _bystander(server.url) as memory:
            memory.add_facts([("Maya", "works at", "Initech"), ("Entity 1", "knows", "Entity 2")])
            memory.remember("Anna lives in Porto.", speaker="Maya", external_id="1")  # nobody may extract it
            state["bystander"] = memory.admin.checksum()
    return state


def _bystander(url: str) -> GraphMemory:
    return GraphMemory.open(url, scope=BYSTANDER, extractor="none", embeddings="none", background=False)


@cache
def _driver(url: str) -> Any:
    """Return a connection to a server that lives as long as this process."""
    return connect(url)


def _folder() -> Path:
    return Path(os.environ[RUN])


def _owner() -> int:
    return int(_folder().name.rpartition("-")[2])


def _state(folder: Path, role: str) -> dict[str, Any]:
    path = folder / f"{role}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "localhost", parts.port or 7687), timeout=5).close()
    except OSError:
        return False
    return True
