"""The built wheel in a plain container with a volume and no network: killed, started again, read by another one."""

from __future__ import annotations

import io
import json
import os
import platform
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from children import toy_text, toy_turns
from crashed import assert_file_is_sound, assert_whole, wait_until

from graphmem import GraphMemory
from tests.neo4j_server import LABEL, NoServer, docker_client, find_python_image, remove_orphans
from tests.shared_servers import unavailable

ROOT = Path(__file__).parents[2]
STORE = "sqlite:////data/memory.db"
TURNS = 1000
LONGEST_LIFE = 1.0  # seconds after the first acknowledgement

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@dataclass
class Machine:
    """Containers that share an installed graphmem and a volume, and nothing else."""

    client: Any
    image: str
    files: Path
    program: Any
    data: Any
    containers: list[Any] = field(default_factory=list[Any])

    def start(self, *command: str) -> Any:
        """Start a container that executes a command."""
        container = self.client.containers.run(
            self.image,
            list(command),
            detach=True,
            network_mode="none",
            labels={LABEL: str(os.getpid())},
            environment={"PYTHONPATH": "/e2e", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            volumes={
                self.program.name: {"bind": "/program", "mode": "rw"},
                self.data.name: {"bind": "/data", "mode": "rw"},
                str(self.files): {"bind": "/files", "mode": "ro"},
                str(Path(__file__).parent): {"bind": "/e2e", "mode": "ro"},
            },
        )
        self.containers.append(container)
        return container

    def install(self, wheels: str) -> None:
        """Install graphmem from wheels, in the volume of the program."""
        script = f"python3 -m venv /program && /program/bin/pip install -q --no-index --find-links {wheels} graphmem"
        container = self.start("sh", "-c", script)
        assert container.wait()["StatusCode"] == 0, container.logs().decode()

    def ingest(self, name: str, turns: int) -> Any:
        """Start a container that ingests a file of turns and tells its progress."""
        lines = [json.dumps(turn) for turn in toy_turns(name, turns)]
        (self.files / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
        return self.start("/program/bin/python", "/e2e/in_container.py", STORE, f"/files/{name}.jsonl")

    def remove(self) -> None:
        for container in self.containers:
            container.remove(force=True)
        self.program.remove(force=True)
        self.data.remove(force=True)


def build_wheels(folder: Path) -> None:
    """Build graphmem's wheel, and fetch those that it needs on Linux and Python 3.11."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    pinned = [
        line.rstrip(" \\") for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines() if "==" in line
    ]
    (folder / "constraints").write_text("\n".join(pinned), "utf-8")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "pip")], check=True)
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    platforms = [f"--platform={kind}_{machine}" for kind in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    pip = [str(folder / "pip" / "bin" / "python"), "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    where = [f"--constraint={folder / 'constraints'}", f"--dest={folder}"]
    done = subprocess.run(
        [*pip, "--only-binary=:all:", "--python-version=3.11", *platforms, *where, str(wheel)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    try:
        remove_orphans()
        client, image = docker_client(), find_python_image()
    except NoServer as error:
        unavailable(error)
    files = tmp_path_factory.mktemp("files")
    build_wheels(files)
    machine = Machine(client, image, files, client.volumes.create(), client.volumes.create())
    try:
        machine.install("/files")
        yield machine
    finally:
        machine.remove()


def told(container: Any) -> int:
    """Return how many turns a container has said are stored."""
    return max((int(line) for line in container.logs(stderr=False).split()), default=0)


def copied(container: Any, folder: Path) -> Path:
    """Copy the store out of the volume of a container; return the file."""
    chunks, _ = container.get_archive("/data/.")
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "memory.db"


def asked(container: Any, *command: str) -> Any:
    """Return what a command of graphmem in a running container says as JSON."""
    code, output = container.exec_run(["/program/bin/graphmem", *command, "--store", STORE, "--json"])
    assert code == 0, output.decode()
    return json.loads(output)


def test_turns_acknowledged_before_a_container_is_killed_are_in_its_volume_and_it_resumes_when_started(
    machine: Machine, tmp_path: Path, rounds: Callable[[int], int]
) -> None:
    chance = random.Random(9)
    expected: set[str] = set()
    cut_short = 0
    for number in range(rounds(30)):
        container = machine.ingest(f"killed-{number}", TURNS)
        wait_until(lambda container=container: told(container) > 0, seconds=120)
        time.sleep(chance.uniform(0.0, LONGEST_LIFE))
        container.kill("SIGKILL")
        container.wait()
        stored = told(container)
        cut_short += stored < TURNS
        acknowledged = expected | {toy_text(f"killed-{number}", i) for i in range(stored)}
        assert_whole(f"sqlite:///{copied(container, tmp_path / f'{number} killed')}", acknowledged)

        container.start()
        assert container.wait(timeout=300)["StatusCode"] == 0, container.logs().decode()
        expected |= {toy_text(f"killed-{number}", i) for i in range(TURNS)}
        file = copied(container, tmp_path / f"{number} resumed")
        assert_file_is_sound(file)
        assert_whole(f"sqlite:///{file}", expected)
        with GraphMemory.open(f"sqlite:///{file}", extractor="none") as memory:
            stats = memory.stats()
        assert (stats.episodes, stats.pending_episodes, stats.failed_episodes) == (len(expected), 0, 0)
    assert cut_short


def test_a_second_container_on_the_volume_reads_while_the_first_writes(machine: Machine) -> None:
    turns = 4 * TURNS
    reader = machine.start("sleep", "3600")
    writer = machine.ingest("read", turns)
    seen: list[int] = []
    wait_until(lambda: told(writer) > 0, seconds=120)
    while told(writer) < turns:
        seen.append(asked(reader, "stats")["episodes"])
        facts = asked(reader, "facts", "Place read 0")["facts"]
        assert [(fact["source"], fact["relation"]) for fact in facts] == [("Person 0", "visited")]
    assert writer.wait()["StatusCode"] == 0, writer.logs().decode()
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[0] < asked(reader, "stats")["episodes"]


def test_what_a_container_stored_is_recalled_by_the_next(machine: Machine) -> None:
    first = machine.ingest("kept", 10)
    assert first.wait(timeout=120)["StatusCode"] == 0, first.logs().decode()
    first.remove()
    machine.containers.remove(first)
    reader = machine.start("sleep", "3600")
    facts = asked(reader, "recall", "Who visited Place kept 3?")["facts"]
    assert ("Person 3", "visited", "Place kept 3") in {(f["source"], f["relation"], f["target"]) for f in facts}
