"""Commands that serve until they are stopped: `mcp` with its keys, and `worker` with its `metrics`.

Health and metrics are served over HTTP, for orchestrators and for Prometheus.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from graphmem.adapters.cli.session import FAILED, Session, command, moment, one_of, reason_of

if TYPE_CHECKING:
    from graphmem.adapters.mcp.keys import Key, Rights
    from graphmem.adapters.mcp.server import MemoryServer
    from graphmem.memory import GraphMemory
    from graphmem.worker import WorkerState

_log = logging.getLogger(__name__)

_GREETING = 0.5  # seconds for the first answers of a server, before it loads models, which takes the interpreter
_LOADING = 5.0  # seconds that the end of a server waits for models that are being loaded
_KEYS = "graphmem-keys.json"

KeysOption = Annotated[str, typer.Option("--keys", metavar="FILE", help="The file of keys.")]
RightsOption = Annotated[str, typer.Option("--rights", metavar="NAME", help="read, write or admin.")]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="The person: who I is, and the speaker of messages.")
]
AgentOption = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The program that uses the memory.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(mcp)
    keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(keys, name="keys", help="Manage the keys of the MCP server.", short_help="Manage MCP keys.")
    command(keys)(add)
    command(keys, "list")(list_)
    command(keys)(revoke)
    command(app)(worker)
    command(app)(metrics)


def mcp(
    session: Session,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Serve streamable HTTP here. [default: stdio]"),
    ] = None,
    keys: Annotated[
        str | None, typer.Option("--keys", metavar="FILE", help="For --http: the keys that callers need.")
    ] = None,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="core: six tools; full: all, resources and prompts.")
    ] = "core",
    rights: RightsOption = "admin",
    user: UserOption = None,
    agent: AgentOption = None,
) -> None:
    """Serve the memory to agents over the Model Context Protocol, on standard input and output or HTTP.

    Without --keys, --rights, --user and --agent apply to every caller. HTTP needs --keys except on 127.0.0.1.
    """
    address = None if http is None else _address(http)
    if keys is not None and address is None:
        raise typer.BadParameter("--keys: standard input and output needs no keys; add --http HOST:PORT")
    _require_extra()
    from graphmem.adapters.mcp import Access, KeyFile, MemoryServer
    from graphmem.adapters.mcp.server import Profile
    from graphmem.memory import GraphMemory

    profiles: tuple[Profile, ...] = get_args(Profile)
    chosen = one_of("--profile", profile, profiles)
    file = None if keys is None else KeyFile(keys)
    access = Access(scopes=(session.scope,), rights=_rights(rights), user=user, agent=agent)
    session.note_new_store()
    with GraphMemory.open(session.settings.store, scope=session.scope, settings=session.settings) as memory:
        server = MemoryServer(memory, profile=chosen, access=access, keys=file)
        with loading(memory):
            if address is None:
                asyncio.run(server.run_stdio_async())
            else:
                _serve(server, *address)


@contextmanager
def loading(memory: GraphMemory) -> Generator[None]:
    """Load the models of a memory on a thread, shortly after the block begins.

    A failure is left to the call that needs the model.
    """
    from graphmem.background import BackgroundJob, wake_timer

    def load() -> None:
        try:
            memory.admin.load_models()
        except Exception as error:  # noqa: BLE001 - whatever a model raises must not end or disturb the server
            _log.info("a model can't be loaded: %s", error)

    job = BackgroundJob("graphmem-models", load)
    wake_timer().wake_after(_GREETING, job)
    try:
        yield
    finally:
        job.stop(timeout=_LOADING)


def _serve(server: MemoryServer, host: str, port: int) -> None:
    import uvicorn

    app = server.http_app(host)
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"graphmem: serving MCP at http://{shown}:{port}/mcp", err=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=10)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"--http: {text!r} is not HOST:PORT, such as 127.0.0.1:8765")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _require_extra() -> None:
    from importlib.util import find_spec

    from graphmem.errors import MissingExtra

    if find_spec("mcp") is None:
        raise MissingExtra("graphmem mcp", "mcp")


def _rights(name: str) -> Rights:
    from graphmem.adapters.mcp.keys import Rights

    choices: tuple[Rights, ...] = get_args(Rights)
    return one_of("--rights", name, choices)


def add(
    session: Session,
    name: Annotated[str, typer.Argument(help="A name to recognize the key by.")],
    also_read: Annotated[
        list[str] | None,
        typer.Option("--also-read", metavar="SCOPE", help="A further scope to read; may be given several times."),
    ] = None,
    rights: RightsOption = "write",
    user: UserOption = None,
    agent: AgentOption = None,
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="When it expires. [default: never]")] = None,
    keys: KeysOption = _KEYS,
) -> None:
    """Add a key for --scope and print its token, which is stored nowhere else."""
    _require_extra()
    from graphmem.adapters.mcp import Access, KeyFile
    from graphmem.inputs import to_scopes

    scopes = (session.scope, *(to_scopes(also_read) if also_read else ()))
    access = Access(scopes=scopes, rights=_rights(rights), user=user, agent=agent)
    until = None if expires is None else moment("--expires", expires)
    if until is not None and until <= datetime.now(UTC):
        raise typer.BadParameter(f"--expires: {expires} is past; the key would be refused at once")
    key, token = KeyFile(keys).add(name, access, expires_at=until)
    if session.out.as_json:
        session.out.document({**_shown(key), "token": token})
        return
    session.out.note(f"key {key.name}: {rights} in {', '.join(map(str, scopes))}; its token:")
    session.out.line(token)


def list_(session: Session, keys: KeysOption = _KEYS) -> None:
    """List the keys with their scopes and rights."""
    from graphmem.adapters.cli.output import Column

    _require_extra()
    from graphmem.adapters.mcp import KeyFile

    found = KeyFile(keys).list()
    if session.out.as_json:
        session.out.document([_shown(key) for key in found])
        return
    columns = [Column("name"), Column("id"), Column("scopes", 1), Column("rights"), Column("user"), Column("state")]
    rows = [
        (key.name, key.id, ", ".join(map(str, key.access.scopes)), key.access.rights, key.access.user or "", key.state)
        for key in found
    ]
    session.out.table(columns, rows)


def revoke(
    session: Session,
    name: Annotated[str, typer.Argument(help="Name or id of the key.")],
    keys: KeysOption = _KEYS,
) -> None:
    """Revoke a key; running servers refuse it immediately."""
    _require_extra()
    from graphmem.adapters.mcp import KeyFile

    key = KeyFile(keys).revoke(name)
    if session.out.as_json:
        session.out.document(_shown(key))
        return
    session.out.line(f"key {key.name} ({key.id}) is revoked")


def _shown(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": [str(scope) for scope in key.access.scopes],
        "rights": key.access.rights,
        "user": key.access.user,
        "agent": key.access.agent,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "state": key.state,
    }


# Worker -------------------------------------------------------------------------------------------


_HEALTH_BEGIN = b'{"format":"graphmem-health"'
_STALE = 30.0  # seconds after which a state means that its worker hangs or is gone
_SECONDS = 10.0  # for a worker to answer
_REQUEST_SECONDS = 5.0  # for a client that connects and sends nothing
_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_NO_METRICS = b"no metrics: the worker needs pip install 'graphmem[otel]'\n"


def worker(
    session: Session,
    scopes: Annotated[
        list[str] | None,
        typer.Option("--scopes", metavar="SCOPE", help="Only this scope; may be given several times."),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Concurrent calls of a language model.")] = None,
    extractor: Annotated[str | None, typer.Option(metavar="NAME", help="Extractor. [default: the setting]")] = None,
    health: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the worker's state as JSON.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Start nothing; exit with 0 if the worker of --health is ready, else 1.")
    ] = False,
    health_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port for GET /health, /ready, /metrics; 0 takes a free one."),
    ] = None,
    health_host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address of --health-port.")] = "127.0.0.1",
    grace: Annotated[float, typer.Option(min=0.0, help="Seconds that a running extraction has after SIGTERM.")] = 20.0,
) -> None:
    """Extract, index and maintain what other processes store, until SIGTERM or Ctrl-C.

    Several workers can run on one store, on one machine or on several. Programs that only store and ask can then open
    the memory with background=False.
    """
    if check:
        if health is None:
            raise typer.BadParameter("--check: add --health FILE, the file of the worker")
        raise typer.Exit(0 if _is_ready(session, health) else FAILED)
    options = {"extraction_concurrency": concurrency, "background_scopes": scopes}
    overrides = {name: value for name, value in options.items() if value is not None}
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    last: WorkerState | None = None
    served = Health()
    file = None if health is None else HealthFile(health)

    def on_state(state: WorkerState) -> None:
        nonlocal last
        if last is None or (state.state, state.reason, state.errors) != (last.state, last.reason, last.errors):
            details = ": ".join(filter(None, (state.state, state.reason, *state.errors)))
            session.out.note(f"{state.at:%H:%M:%S} {details}")
        last = served.state = state
        if file is not None:
            file.write(state.model_dump(mode="json", exclude_none=True))

    with ExitStack() as stack:
        metrics = None if health_port is None else stack.enter_context(_recording())
        if file is not None:
            stack.callback(file.remove)
            file.write({"state": "starting", "at": datetime.now(UTC).isoformat()})
        session.note_new_store()
        memory = session.open(extractor=extractor, make=True, background=True, **overrides)
        stack.callback(memory.close, grace)
        if health_port is not None:
            try:
                port = stack.enter_context(serving(served, health_host, health_port, metrics))
            except OSError as error:
                session.out.note(f"--health-port {health_port}: {error}")
                raise typer.Exit(FAILED) from None
            session.out.note(f"health: http://{health_host}:{port}/health")
        memory.admin.work(stopping, scopes=scopes, on_state=on_state)
    session.out.note("stopped; claimed episodes were released")


@contextmanager
def _recording() -> Generator[Callable[[], bytes] | None]:
    """Record metrics; yield what returns them as text, or None without the package for it."""
    if find_spec("prometheus_client") is None:
        yield None
        return
    from prometheus_client import disable_created_metrics

    from graphmem.adapters.prometheus import PrometheusRecorder
    from graphmem.telemetry import recording

    disable_created_metrics()  # a line with its time of creation for each counter
    recorder = PrometheusRecorder()
    with recording(recorder):
        yield recorder.text


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


def _is_ready(session: Session, health: Path) -> bool:
    """Return whether the health file of a worker says that it is ready, and print its state."""
    try:
        state = json.loads(health.read_text("utf-8"))
        at = datetime.fromisoformat(state["at"])
        ready = is_ready(state["state"], at)
        session.out.note(f"{state['state']}, {time.time() - at.timestamp():.0f} s ago")
    except OSError as error:
        session.out.note(f"{health}: {reason_of(error)}")
        return False
    except (ValueError, KeyError, TypeError):
        session.out.note(f"{health}: has no state of a worker")
        return False
    return ready


def metrics(
    session: Session,
    health_port: Annotated[int, typer.Option(min=1, max=65535, help="The worker's --health-port.")] = 8700,
    health_host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The worker's --health-host, or its name.")
    ] = "127.0.0.1",
) -> None:
    """Print the metrics of a running worker in Prometheus' text format.

    They are what the worker answers to GET /metrics. With --json, they are one object: name and labels → value.
    """
    from http.client import HTTPConnection, HTTPException

    try:
        with closing(HTTPConnection(health_host, health_port, timeout=_SECONDS)) as connection:
            connection.request("GET", "/metrics")
            reply = connection.getresponse()
            status, text = reply.status, reply.read().decode(errors="replace")
    except (OSError, HTTPException, UnicodeError) as error:  # the last one for a name that can't be one of a host
        session.out.note(f"no worker answers at {health_host}:{health_port}: {reason_of(error)}")
        raise typer.Exit(FAILED) from None
    if status != 200:
        session.out.note(f"{health_host}:{health_port} answers {status}: {text.strip()[:200]}")
        raise typer.Exit(FAILED)
    if session.out.as_json:
        samples = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        session.out.document({name: float(value) for name, _, value in samples})
    else:
        typer.echo(text, nl=False)
