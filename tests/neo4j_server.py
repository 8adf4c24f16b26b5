"""Neo4j servers for tests: a running one, or containers of the official or of the locally built image.

A container is killed, paused and restarted by its test (`Neo4jServer`); what all tests of a run share is in
`tests.shared_servers`. ``python -m tests.neo4j_server`` gets the images ready before a test run, so that no test's time
limit pays for it; ``python -m tests.neo4j_server COMMAND ...`` executes a command with a server in
GRAPHMEM_TEST_NEO4J_URL.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from testcontainers.community.neo4j import Neo4jContainer

OFFICIAL = "neo4j:5.26-community"
PYTHON = "python:3.11-slim"
PASSWORD = "graphmem-tests"  # of a server on a loopback port, gone with the test run
LABEL = "graphmem.tests.process"
BOLT, HTTP = 7687, 7474
START_SECONDS = 300.0
DOCKER = Path(__file__).parents[1] / "docker"
# Read before the tests' own setup forgets the settings of whoever runs them.
RUNNING = os.environ.get("GRAPHMEM_TEST_NEO4J_URL")

# A laptop with 4 GB runs two of them. Tests fill a database and empty it all the time: to a server that looks at its
# statistics every 10 seconds, as it does by default, every plan would be stale.
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
        raise NoServer(f"{official} can't be pulled here and docker/{local}/build.sh failed: its output is above")
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
    from docker.errors import APIError

    containers = docker_client().containers
    # another run may remove one of its own meanwhile
    for container in containers.list(all=True, ignore_removed=True, filters={"label": LABEL}):
        if not Path(f"/proc/{container.labels[LABEL]}").exists() and Path("/proc/self").exists():
            with suppress(APIError):  # another process is at it
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
    owner
        Process with which the container ends, this one by default: `remove_orphans` removes it when that is gone.
    in_memory
        Whether the data is in memory, so that a commit doesn't wait for the disk, and is gone once the server stops.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        gds: bool = True,
        files: Mapping[str, bytes] | None = None,
        data_of: Neo4jServer | None = None,
        owner: int | None = None,
        in_memory: bool = False,
    ) -> None:
        os.environ.update({name: value for name, value in TESTCONTAINERS.items() if name not in os.environ})
        from testcontainers.community.neo4j import Neo4jContainer

        self.bolt_port, self.http_port = free_port(), free_port()
        container = Neo4jContainer(find_image(), username="neo4j", password=PASSWORD)
        ports: dict[str, Any] = container.ports
        ports[str(BOLT)] = ("127.0.0.1", self.bolt_port)  # with_bind_ports would listen on every address
        ports[str(HTTP)] = ("127.0.0.1", self.http_port)
        shared = [data_of.container_id] if data_of is not None else []
        container.with_kwargs(labels={LABEL: str(owner or os.getpid())}, volumes_from=shared)
        for path, content in (files or {}).items():
            container.with_copy_into_container(content, path)
        if in_memory:
            container.with_tmpfs_mount("/data", "size=2g")
            container.with_env("NEO4J_db_tx__log_preallocate", "false")
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


def connect(url: str) -> Any:
    """Return a driver for a URL with user and password."""
    from neo4j import GraphDatabase

    driver: Any = GraphDatabase.driver  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    auth = (unquote(parts.username or "neo4j"), unquote(parts.password or ""))
    return driver(address, auth=auth, notifications_min_severity="OFF")


def run(url: str, query: str, **parameters: Any) -> list[dict[str, Any]]:
    """Execute one statement in a connection of its own and return its rows."""
    database = urlsplit(url).path.strip("/") or None
    with connect(url) as driver, driver.session(database=database) as session:
        return session.run(query, parameters).data()


def forget_plans(url: str) -> None:
    """Make a server count again what its indexes hold, and plan each query for that."""
    run(url, "CALL db.prepareForReplanning(60)")


def main(command: list[str]) -> int:
    """Get the images ready, or execute a command with a server; return 1 where there is none, else what it returns."""
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
