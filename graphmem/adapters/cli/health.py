"""State of a worker for orchestrators, over HTTP and in a file, and its metrics for Prometheus."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.worker import WorkerState

_HEALTH_BEGIN = b'{"format":"graphmem-health"'
_STALE = 30.0  # seconds after which a state means that its worker hangs or is gone
_REQUEST_SECONDS = 5.0  # for a client that connects and sends nothing
_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_NO_METRICS = b"no metrics: the worker needs pip install 'graphmem[otel]'\n"


def is_alive(at: datetime) -> bool:
    """Return whether the loop of a worker runs that had a state at a time."""
    return (datetime.now(UTC) - at).total_seconds() <= _STALE


def is_ready(state: str, at: datetime) -> bool:
    """Return whether the loop of a worker runs and the store answers it."""
    return is_alive(at) and state not in {"starting", "store unavailable", "stopped"}


class Health:
    """Last state of a worker; `/health` is 200 while its loop runs, `/ready` while the store answers, too."""

    def __init__(self) -> None:
        self.state: WorkerState | None = None

    def answer(self, path: str) -> tuple[int, dict[str, object]]:
        """Return the HTTP status and the JSON body for a path."""
        if path not in {"/health", "/ready"}:
            return 404, {"error": "not found: use /health, /ready or /metrics"}
        state = self.state
        if state is None:
            return (503 if path == "/ready" else 200), {"state": "starting"}
        good = is_ready(state.state, state.at) if path == "/ready" else is_alive(state.at)
        return (200 if good else 503), {"state": state.state, "at": state.at.isoformat()}


@contextmanager
def serving(health: Health, host: str, port: int, metrics: Callable[[], bytes] | None = None) -> Generator[int]:
    """Serve the health, and metrics in Prometheus' text format, on daemon threads.

    Yield the port, which the system chooses for 0.
    """
    # not at the top: `graphmem --help` loads no HTTP server
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            """Answer a request."""
            path = self.path.partition("?")[0]
            if path == "/metrics":
                status, body = (404, _NO_METRICS) if metrics is None else (200, metrics())
            else:
                status, content = health.answer(path)
                body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", _TEXT_FORMAT if path == "/metrics" else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  (name given by the base class)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (name given by the base class)
            """Write no line per request."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, args=(0.1,), name="graphmem-health", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class HealthFile:
    """File with the state of a worker as JSON; it replaces only files of its kind (`graphmem.output_files`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: tuple[int, ...] | None = None

    def write(self, state: Mapping[str, object]) -> None:
        """Replace the file, so that a reader never sees half of it."""
        from graphmem.errors import InvalidInput
        from graphmem.output_files import output_file

        if self._path.is_symlink():
            raise InvalidInput(f"--health {self._path}: is a link; name the file itself")
        with output_file(self._path, replaces=_HEALTH_BEGIN) as file:
            file.write(json.dumps({"format": "graphmem-health", **state}, separators=(",", ":")).encode())
            file.flush()
            written = _identity(os.fstat(file.fileno()))
        self._written = written

    def remove(self) -> None:
        """Remove the file, unless another one has taken its place."""
        with suppress(OSError):
            if _identity(self._path.lstat()) == self._written:
                self._path.unlink()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
