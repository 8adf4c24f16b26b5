"""The health of a worker, over HTTP and in a file."""

import http.client
import json
import os
import signal
import socket
import sqlite3
import stat
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from graphmem.adapters.cli import main
from graphmem.adapters.cli.health import Health, HealthFile, serving
from graphmem.memory.admin import Administration
from graphmem.models import utc_now
from graphmem.worker import WorkerState
from tests.unit.test_output_files import device

__all__ = ["device"]  # a fixture


def _get(port: int, path: str) -> tuple[int, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path)
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read())


@pytest.mark.parametrize(
    ("state", "age", "alive", "ready"),
    [
        ("idle", 0, 200, 200),
        ("paused", 0, 200, 200),
        ("store unavailable", 0, 200, 503),
        ("stopped", 0, 200, 503),
        ("working", 31, 503, 503),
    ],
)
def test_tells_liveness_and_readiness(state: str, age: int, alive: int, ready: int, tmp_path: Path):
    health = Health()
    file = tmp_path / "health.json"
    with serving(health, "127.0.0.1", 0) as port:
        assert (_get(port, "/health")[0], _get(port, "/ready")[0]) == (200, 503)
        at = utc_now() - timedelta(seconds=age)
        health.state = WorkerState.model_validate({"state": state, "reason": "secret", "at": at})
        assert _get(port, "/health")[0] == alive
        status, body = _get(port, "/ready?x=1")
        assert (status, body) == (ready, {"state": state, "at": at.isoformat()})
        HealthFile(file).write(health.state.model_dump(mode="json"))
        with pytest.raises(SystemExit) as checked:
            main(["worker", "--check", "--health", str(file)])
        assert checked.value.code == (0 if ready == 200 else 1)
        assert _get(port, "/other")[0] == 404


def test_head_is_answered_like_get_without_a_body() -> None:
    with serving(Health(), "127.0.0.1", 0) as port:
        answers: list[tuple[int, str | None, int]] = []
        for method in ("HEAD", "GET"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request(method, "/health")
            reply = connection.getresponse()
            answers.append((reply.status, reply.headers["Content-Length"], len(reply.read())))
    assert answers == [(200, "21", 0), (200, "21", 21)]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"state": "idle", "at": 5}', '{"state": "idle", "at": "2026-01-05"}']
)
def test_a_file_that_has_no_state_is_not_ready(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    file = tmp_path / "health.json"
    file.write_text(text)
    with pytest.raises(SystemExit) as checked:
        main(["worker", "--check", "--health", str(file)])
    assert (checked.value.code, "has no state of a worker" in " ".join(capsys.readouterr().err.split())) == (1, True)


def test_a_check_needs_a_health_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as checked:
        main(["worker", "--check"])
    assert (checked.value.code, "--health FILE" in capsys.readouterr().err) == (2, True)


def test_a_silent_client_delays_neither_others_nor_the_end():
    with serving(Health(), "127.0.0.1", 0) as port:
        silent = socket.create_connection(("127.0.0.1", port))
        assert _get(port, "/health")[0] == 200
        ended = time.monotonic()
    assert time.monotonic() - ended < 2
    silent.close()


RunWorker = Callable[..., object]


@pytest.fixture
def run_worker(monkeypatch: pytest.MonkeyPatch) -> RunWorker:
    """Return what runs `graphmem worker` and returns its exit code; each look at the store is followed by an act."""
    monkeypatch.setattr(signal, "signal", Mock())  # pytest keeps its own handlers
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "none")

    def run(file: Path, *acts: Callable[[], object], store: str = "memory://") -> object:
        def work(*_: object, on_state: Callable[[WorkerState], None], **__: object) -> None:
            for act in acts:
                on_state(WorkerState(state="idle", at=utc_now()))
                act()

        monkeypatch.setattr(Administration, "work", work)
        with pytest.raises(SystemExit) as ended:
            main(["worker", "--store", store, "--extractor", "none", "--health", str(file)])
        return ended.value.code

    return run


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_health_file_belongs_to_its_owner_and_is_removed_at_the_end(tmp_path: Path, run_worker: RunWorker) -> None:
    file, before = tmp_path / "health.json", os.umask(0o022)

    def look() -> None:
        assert json.loads(file.read_text("utf-8"))["state"] == "idle"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert names(tmp_path) == ["health.json"]

    try:
        assert run_worker(file, look, look) == 0
    finally:
        os.umask(before)
    assert names(tmp_path) == []


def test_the_health_file_of_a_killed_worker_is_replaced(tmp_path: Path, run_worker: RunWorker) -> None:
    HealthFile(tmp_path / "health.json").write({"state": "working"})
    assert run_worker(tmp_path / "health.json", lambda: None) == 0
    assert names(tmp_path) == []


def make_store(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
    connection.close()


def make_log(path: Path) -> None:
    path.touch()
    make_store(path.with_name(path.name.removesuffix("-wal")))


def make_link(path: Path) -> None:
    HealthFile(path.with_name("real.json")).write({"state": "working"})
    path.symlink_to("real.json")


def make_export(path: Path) -> None:
    path.write_text('{"format":"graphmem-export","version":1}\n')


def make_notes(path: Path) -> None:
    path.write_text('{"precious": true}')


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (make_store, "is a database"),
        (make_log, "belongs to one"),
        (make_link, "is a link"),
        (make_export, "is a file of another kind"),
        (make_notes, "is a file of another kind"),
        (os.mkfifo, "is a FIFO"),
        (Path.mkdir, "is a folder"),
    ],
)
def test_a_worker_does_not_start_over_what_is_no_health_file(
    tmp_path: Path,
    run_worker: RunWorker,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], None],
    says: str,
) -> None:
    target = tmp_path / "memory.db-wal"
    make(target)
    before = {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}

    assert run_worker(target, lambda: None) == 2

    assert {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before
    assert says in capsys.readouterr().err


def test_a_device_is_refused_as_a_health_file(
    run_worker: RunWorker, capsys: pytest.CaptureFixture[str], device: Path
) -> None:
    assert run_worker(device, lambda: None) == 2
    assert "is a device" in capsys.readouterr().err


def test_a_health_file_is_not_written_through_a_planted_link(tmp_path: Path, run_worker: RunWorker) -> None:
    victim, link = tmp_path / "victim", tmp_path / ".health.json.part"
    victim.write_text("victim")
    link.symlink_to(victim)
    assert run_worker(tmp_path / "health.json", lambda: None) == 0
    assert victim.read_text() == "victim"
    assert link.is_symlink()


def test_what_takes_the_place_of_a_health_file_stays(tmp_path: Path, run_worker: RunWorker) -> None:
    file = tmp_path / "health.json"

    def take() -> None:
        file.unlink(missing_ok=True)
        file.write_text("precious")

    assert run_worker(file, take) == 0
    assert file.read_text() == "precious"
    file.unlink()
    assert run_worker(file, take, lambda: None) == 2
    assert file.read_text() == "precious"


def test_a_worker_that_can_not_start_leaves_no_health_file(tmp_path: Path, run_worker: RunWorker) -> None:
    file = tmp_path / "memory.db"
    assert run_worker(file, lambda: None, store=f"sqlite:///{file}") != 0
    assert names(tmp_path) == []
