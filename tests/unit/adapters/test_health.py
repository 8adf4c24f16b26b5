"""The health of a worker over HTTP."""

import http.client
import json
import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest

from graphmem.adapters.cli import main
from graphmem.adapters.cli.worker import Health, serving
from graphmem.models import utc_now
from graphmem.worker import WorkerState


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
        file.write_text(health.state.model_dump_json(), "utf-8")
        with pytest.raises(SystemExit) as checked:
            main(["worker", "--check", "--health", str(file)])
        assert checked.value.code == (0 if ready == 200 else 1)
        assert _get(port, "/other")[0] == 404


def test_a_silent_client_delays_neither_others_nor_the_end():
    with serving(Health(), "127.0.0.1", 0) as port:
        silent = socket.create_connection(("127.0.0.1", port))
        assert _get(port, "/health")[0] == 200
        ended = time.monotonic()
    assert time.monotonic() - ended < 2
    silent.close()
