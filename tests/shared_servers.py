"""The Neo4j server that all processes of a test run share, as fixtures.

`neo4j_url` is for tests that keep to their own scopes; it holds a bystander, a scope of somebody else, that no test may
read or change. `empty_neo4j_url` is for tests about a whole store (its schema, its list of scopes, its queue): the same
server, emptied before each, while no other process uses it (`ServerUse`). A running server that the user names
(GRAPHMEM_TEST_NEO4J_URL) isn't emptied: such tests get another one. Servers start when the first test asks, whichever
process that test is in, and end with the run (`end_run`).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlsplit

import pytest
from filelock import FileLock, ReadWriteLock

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
FIXTURES = {EMPTY: {"empty_neo4j_url", "empty_neo4j_of_module"}, SHARED: {"neo4j_url"}}
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
    if start:  # while the tests are collected
        _starting.append(Thread(target=_server, args=(SHARED,)))
        _starting[-1].start()


def end_run() -> list[str]:
    """Stop the servers if this process began the run; return what tests left behind on the shared one."""
    folder = _folder()
    if _owner() != os.getpid():
        return []
    for thread in _starting:
        thread.join()
    problems = [*_noted(folder), *leftovers(folder)]
    for state in folder.glob("*.json"):
        container = json.loads(state.read_text("utf-8")).get("container")
        if container is not None:
            docker_client().containers.get(container).remove(force=True, v=True)
    shutil.rmtree(folder, ignore_errors=True)
    del os.environ[RUN]
    return problems


def leftovers(folder: Path) -> list[str]:
    """Return what is wrong with the shared server when no test uses it: scopes of tests, or a changed bystander."""
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


def role_of(item: pytest.Item | None) -> str | None:
    """Return how a test uses the server, by its fixtures, parameters and marks; None if it doesn't."""
    names: set[str] = set(getattr(item, "fixturenames", ()))
    if names & FIXTURES[EMPTY] or {"neo4j_url", "empty_store"} <= names:  # the latter in the conformance kit
        return EMPTY
    if item is not None and runs_on_neo4j(item):
        return SHARED if item.get_closest_marker("whole_store") is None else EMPTY
    return SHARED if names & FIXTURES[SHARED] else None


def server_problem(role: str) -> str | None:
    """Return that a server of this run has died, and None while it answers or nobody has needed it yet."""
    state = _state(_folder(), _server_of(role))
    if "url" not in state or _answers(state["url"]):
        return None
    return "the Neo4j server of this test run has died: every test that needs it fails"


class ServerUse:
    """
    The use that a process makes of the server: tests of a file beside those of other processes, or tests alone.

    The lock is kept while the next test is to have it, too: what a fixture of a file has written is there until its
    last test ends, and tests that have the server alone follow each other.
    """

    alone: ClassVar[bool] = False
    """Whether a test of this process has the server alone."""

    def __init__(self) -> None:
        self._held: tuple[str, Path | None] | None = None
        self._lock = ExitStack()

    def begin(self, item: pytest.Item) -> None:
        """Wait until a test may use the server as it does."""
        use = self._use(item)
        if use is None or use == self._held:
            return
        self._release()
        lock = ReadWriteLock(_folder() / "use.db")
        self._lock.enter_context(lock.write_lock() if use[0] == EMPTY else lock.read_lock())
        self._held = use
        ServerUse.alone = use[0] == EMPTY

    def end(self, following: pytest.Item | None) -> None:
        """Let others use the server, unless the following test uses it in the same way."""
        if self._held is not None and self._use(following) != self._held:
            self._release()

    def _use(self, item: pytest.Item | None) -> tuple[str, Path | None] | None:
        role = role_of(item)
        return None if item is None or role is None else (role, item.path if role == SHARED else None)

    def _release(self) -> None:
        self._lock.close()
        self._held = None
        ServerUse.alone = False


def prepare_server(role: str) -> None:
    """Put the bystander back before tests that share the server, and look after it before tests that empty it."""
    folder = _folder()
    state = _server(role)
    if "url" not in state or RUNNING:
        return
    with FileLock(folder / f"{SHARED}.lock"):
        state = _state(folder, SHARED)
        if role == SHARED and "bystander" not in state:
            empty(state["url"])
            state["bystander"] = _write_bystander(state["url"])
        elif role == EMPTY and "bystander" in state:
            with (folder / "problems.txt").open("a", encoding="utf-8") as file:
                file.writelines(f"{problem}\n" for problem in leftovers(folder))
            del state["bystander"]
        else:
            return
        (folder / f"{SHARED}.json").write_text(json.dumps(state), encoding="utf-8")


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
def empty_neo4j_url() -> str:
    """Return the URL of a server with nothing of graphmem's in it but the schema, which only this test uses."""
    return emptied_server()


@pytest.fixture(scope="module")
def empty_neo4j_of_module() -> str:
    """Return the same for all tests of a file, whose data the first one makes."""
    return emptied_server()


def emptied_server() -> str:
    """Return the URL of the server, emptied, for a test that has it alone (`ServerUse`)."""
    assert ServerUse.alone, "`role_of` doesn't see that this test empties the server"
    url = _url_of(EMPTY)
    empty(url)
    return url


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


def _server_of(role: str) -> str:
    """Return which server tests of a role are on: one that the user runs isn't emptied."""
    return EMPTY if role == EMPTY and RUNNING else SHARED


def _server(role: str) -> dict[str, Any]:
    """Return what is known of the server of a role, which is started where no process has yet."""
    folder, role = _folder(), _server_of(role)
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
    server = Neo4jServer(owner=_owner(), in_memory=True).start()
    try:
        _warm_up(server.url)  # the first test would take as long as a minute
        bystander = {"bystander": _write_bystander(server.url)} if role == SHARED else {}
    except BaseException:
        server.remove()  # no file names it yet
        raise
    return {"url": server.url, "container": server.container_id, **bystander}


def _noted(folder: Path) -> list[str]:
    """Return what was wrong with the shared server when tests were about to empty it."""
    path = folder / "problems.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _bystander(url: str) -> GraphMemory:
    return GraphMemory.open(url, scope=BYSTANDER, extractor="none", embeddings="none", background=False)


def _write_bystander(url: str) -> str:
    """Store the scope of somebody else; return its checksum."""
    with _bystander(url) as memory:
        memory.add_facts([("Maya", "works at", "Initech"), ("Entity 1", "knows", "Entity 2")])
        memory.remember("Anna lives in Porto.", speaker="Maya", external_id="1")  # nobody may extract it
        return memory.admin.checksum()


def _warm_up(url: str) -> None:
    """Make a new server plan the most common queries."""
    with GraphMemory.open(url, scope="warm-up", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([("Maya", "works at", "Initech")])
        memory.recall("Where does Maya work?")
        memory.admin.clear()


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
