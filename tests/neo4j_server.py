"""The Neo4j server that tests run on: one that is running, or a container of the official or of the local image.

A test run has one server, and each test empties it of graphmem's rows before it begins; the schema stays, so that no
store that is still open is hurt. A test that kills, freezes or sets up a server has one of its own (`start_neo4j`).
`python -m tests.neo4j_server` gets the images ready before a test run, so that no test's time limit pays for it;
`python -m tests.neo4j_server COMMAND ...` executes a command with a server in GRAPHMEM_TEST_NEO4J_URL.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from testcontainers.community.neo4j import Neo4jContainer

    from graphmem_neo4j import Neo4jBackend

OFFICIAL = "neo4j:5.26-community"
PYTHON = "python:3.11-slim"
PASSWORD = "graphmem-tests"  # of a server on a loopback port, gone with the test run
LABEL = "graphmem.tests.process"
BOLT, HTTP = 7687, 7474
START_SECONDS = 300.0
DOCKER = Path(__file__).parents[1] / "docker"
# Read before the tests' own setup forgets the settings of whoever runs them.
RUNNING = os.environ.get("GRAPHMEM_TEST_NEO4J_URL")

OUR_ROWS = "MATCH (n:Graphmem) WHERE n.migration IS NULL CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 5000 ROWS"
# A laptop with 4 GB runs it, and a second one that a test has for itself. Each test empties the database and fills it
# anew: to a server that looks at its statistics every 10 seconds, as it does by default, every plan would be stale.
SETTINGS = {
    "NEO4J_dbms_cypher_min__replan__interval": "10m",
    "NEO4J_server_memory_heap_initial__size": "256m",
    "NEO4J_server_memory_heap_max__size": "768m",
    "NEO4J_server_memory_pagecache_size": "128m",
}

# testcontainers reads these when it is imported. Its reaper is an image of its own that a machine without an image
# registry doesn't have, hence `remove_orphans`; its guess of the host is wrong on a machine that is a container.
TESTCONTAINERS = {
    "TESTCONTAINERS_RYUK_DISABLED": "true",
    "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
    "TESTCONTAINERS_HOST_OVERRIDE": "localhost",
    "TC_POOLING_INTERVAL": "0.25",
    "TC_MAX_TRIES": str(int(START_SECONDS / 0.25)),
}


class NoServer(Exception):
    """There is no Neo4j to test on; the message says how to get one."""


def docker_client(seconds: float = 60.0) -> Any:
    """Return a client of Docker's engine; raise `NoServer` where none answers."""
    from docker.errors import DockerException

    import docker

    try:
        client: Any = docker.from_env(timeout=int(seconds))
        client.ping()
    except DockerException as error:
        raise NoServer(
            f"Docker's engine doesn't answer ({type(error).__name__}). Start it, or have it installed on Debian by "
            "`sh .ci/docker-engine`, or name a running server that may be wiped: "
            "GRAPHMEM_TEST_NEO4J_URL=bolt://neo4j:PASSWORD@localhost:7687"
        ) from None
    return client


def find_image(official: str = OFFICIAL, local: str = "neo4j-local") -> str:
    """
    Return the name of an image that is on this machine now, by default of Neo4j with GDS.

    What is here already is taken first, so that no run after the first asks a registry for anything.

    Parameters
    ----------
    official
        Name in the registry.
    local
        Folder of the script that builds one where there is no registry.

    Raises
    ------
    NoServer
        No engine, no image, the registry doesn't give one and the local one can't be built.
    """
    from docker.errors import DockerException, ImageNotFound

    client = docker_client()
    build = ["sh", str(DOCKER / local / "build.sh")]
    tag = subprocess.run([*build, "--tag"], check=True, capture_output=True, text=True).stdout.strip()
    for name in (official, tag):
        with suppress(ImageNotFound):
            client.images.get(name)
            return name
    # Asking for the digest tells in seconds whether pulling, which may take minutes, can work at all.
    with suppress(DockerException, OSError):
        docker_client(seconds=15).images.get_registry_data(official)
        client.api.timeout = None
        client.images.pull(official)
        return official
    print(f"{official} can't be pulled here: building {tag}", file=sys.stderr)
    built = subprocess.run(build, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        raise NoServer(f"{official} can't be pulled here and docker/{local}/build.sh failed: its words are above")
    return built.stdout.strip()


def find_python_image() -> str:
    """Return the name of a plain image with Python 3.11; raise `NoServer` where there is none."""
    return find_image(PYTHON, "python-local")


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def remove_orphans() -> None:
    """Remove the containers of test runs that were killed before they could."""
    for container in docker_client().containers.list(all=True, filters={"label": LABEL}):
        if not Path(f"/proc/{container.labels[LABEL]}").exists() and Path("/proc/self").exists():
            container.remove(force=True, v=True)


class Neo4jServer:
    """
    A server in a container, to be killed and started again on the same data and the same ports.

    Parameters
    ----------
    settings
        Variables of the container, on top of those that are needed: `NEO4J_server_memory_heap_max__size` and the like.
    gds
        Whether the Graph Data Science library is loaded.
    files
        Path in the container → content of files that are there before the server starts.
    data_of
        A server that was stopped, whose data this one is to have.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        gds: bool = True,
        files: Mapping[str, bytes] | None = None,
        data_of: Neo4jServer | None = None,
    ) -> None:
        os.environ.update({name: value for name, value in TESTCONTAINERS.items() if name not in os.environ})
        from testcontainers.community.neo4j import Neo4jContainer

        self.bolt_port, self.http_port = free_port(), free_port()
        container = Neo4jContainer(find_image(), username="neo4j", password=PASSWORD)
        ports: dict[str, Any] = container.ports
        ports[str(BOLT)] = ("127.0.0.1", self.bolt_port)  # with_bind_ports would listen on every address
        ports[str(HTTP)] = ("127.0.0.1", self.http_port)
        shared = [data_of.container_id] if data_of is not None else []
        container.with_kwargs(labels={LABEL: str(os.getpid())}, volumes_from=shared)
        for path, content in (files or {}).items():
            container.with_copy_into_container(content, path)
        if gds:
            container.with_env("NEO4J_PLUGINS", '["graph-data-science"]')
        container.with_envs(**SETTINGS)
        container.with_envs(**dict(settings or {}))
        self._container: Neo4jContainer = container

    @property
    def container_id(self) -> str:
        """What Docker calls the container."""
        return str(self._container.get_wrapped_container().id)

    @property
    def url(self) -> str:
        """The address with user and password, for `GraphMemory.open`."""
        return f"bolt://neo4j:{PASSWORD}@localhost:{self.bolt_port}"

    @property
    def browser_url(self) -> str:
        """The address of Neo4j Browser, set to connect to this server."""
        return f"http://localhost:{self.http_port}/browser/?connectURL=bolt://neo4j@localhost:{self.bolt_port}"

    def start(self) -> Neo4jServer:
        """Create the container and wait until it answers Bolt."""
        try:
            self._container.start()
        except BaseException:
            self.remove()
            raise
        return self

    def kill(self) -> None:
        """End the server by SIGKILL, in the middle of whatever it does; its data stays."""
        self._container.get_wrapped_container().kill("SIGKILL")
        self._container.get_wrapped_container().wait()

    def stop(self) -> None:
        """End the server as an operator does: it writes its state down."""
        self._container.get_wrapped_container().stop(timeout=60)

    def begin_restart(self) -> None:
        """Start the killed server on the data that it had, and don't wait for it."""
        self._container.get_wrapped_container().start()

    def restart(self) -> None:
        """Start the killed server on the data that it had, and wait until it answers."""
        self.begin_restart()
        wait_until_ready(self.url)

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing is answered."""
        self._container.get_wrapped_container().pause()

    def unpause(self) -> None:
        """Let a frozen server go on."""
        self._container.get_wrapped_container().unpause()

    def logs(self) -> str:
        """Return what the server has printed."""
        return self._container.get_wrapped_container().logs().decode(errors="replace")

    def remove(self, *, keep_data: bool = False) -> None:
        """Remove the container and, unless another one has it too, its data."""
        with suppress(Exception):
            self._container.stop(force=True, delete_volume=not keep_data)


def wait_until_ready(url: str, seconds: float = START_SECONDS) -> None:
    """Wait until a server executes a query; raise `NoServer` when it doesn't in time."""
    from neo4j.exceptions import DriverError, Neo4jError

    end = time.monotonic() + seconds
    while True:
        try:
            run(url, "RETURN 1")
        except (DriverError, Neo4jError, OSError) as error:
            if time.monotonic() > end:
                raise NoServer(f"no answer in {seconds:.0f} s: {type(error).__name__}") from None
            time.sleep(0.2)
        else:
            return


def run(url: str, query: str, **parameters: Any) -> list[dict[str, Any]]:
    """Execute one statement in a connection of its own and return its rows."""
    from neo4j import GraphDatabase

    connect: Any = GraphDatabase.driver  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    auth = (unquote(parts.username or "neo4j"), unquote(parts.password or ""))
    with (
        connect(address, auth=auth, notifications_min_severity="OFF") as driver,
        driver.session(database=parts.path.strip("/") or None) as session,
    ):
        return session.run(query, parameters).data()


def empty(url: str) -> None:
    """Delete what graphmem has in a database, but for its schema."""
    run(url, OUR_ROWS)


def forget_plans(url: str) -> None:
    """Make a server count anew what its indexes hold, and plan each query for that."""
    run(url, "CALL db.prepareForReplanning(60)")


def emptied(url: str) -> Neo4jBackend:
    """Open a store and delete what graphmem has in it."""
    from graphmem_neo4j import open_backend

    store = open_backend(url)
    with store.database.session() as session:
        session.run(OUR_ROWS).consume()
    return store


@contextmanager
def only_user_of(url: str, seconds: float = 120.0) -> Generator[None, None, None]:
    """Wait for other test runs of this machine that empty the same server; raise `NoServer` when they don't end."""
    try:
        import fcntl
    except ImportError:  # Windows: then it is up to who starts the runs
        yield
        return
    place = urlsplit(url).netloc.rpartition("@")[2]
    name = f"graphmem-tests-{hashlib.sha256(place.encode()).hexdigest()[:12]}.lock"
    with (Path(tempfile.gettempdir()) / name).open("w") as lock:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise NoServer(f"another test run has been using {place} for {seconds:.0f} s") from None
                time.sleep(0.2)
        yield


def required() -> bool:
    """Tell whether a run without Neo4j is a failure: in CI, unless GRAPHMEM_REQUIRE_NEO4J says otherwise."""
    said = os.environ.get("GRAPHMEM_REQUIRE_NEO4J", "")
    return said == "1" or (said != "0" and os.environ.get("CI") == "true")


def unavailable(reason: NoServer) -> NoReturn:
    """Skip, or fail where a skip would hide that Neo4j was not tested."""
    if required():
        pytest.fail(str(reason), pytrace=False)
    pytest.skip(str(reason))


@pytest.fixture(scope="session")
def neo4j_url() -> Iterator[str]:
    """Yield the URL, password included, of the one server of this test run; skip where none is to be had."""
    if RUNNING:
        with ExitStack() as held:
            try:
                held.enter_context(only_user_of(RUNNING))
                wait_until_ready(RUNNING, seconds=60)
            except NoServer as error:
                unavailable(NoServer(f"GRAPHMEM_TEST_NEO4J_URL: {error}"))
            yield RUNNING
        return
    try:
        remove_orphans()
        server = Neo4jServer().start()
    except NoServer as error:
        unavailable(error)
    yield server.url
    server.remove()


@pytest.fixture
def empty_neo4j_url(neo4j_url: str) -> str:
    """Return the URL of the server with nothing of graphmem's in it but the schema."""
    empty(neo4j_url)
    return neo4j_url


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


def main(command: list[str]) -> int:
    """Get the image ready, or execute a command with a server; return 1 where there is none, else what it returns."""
    if RUNNING:
        print("Neo4j for the tests: the running server of GRAPHMEM_TEST_NEO4J_URL", flush=True)
        return subprocess.run(command).returncode if command else 0
    try:
        print(f"Neo4j for the tests: {find_image()}", flush=True)
        if not command:
            print(f"Python in a container for the tests: {find_python_image()}", flush=True)
    except NoServer as error:
        print(f"Neo4j's tests can't be run. {error}", file=sys.stderr)
        return 1
    if not command:
        return 0
    remove_orphans()
    server = Neo4jServer().start()
    try:
        return subprocess.run(command, env={**os.environ, "GRAPHMEM_TEST_NEO4J_URL": server.url}).returncode
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
