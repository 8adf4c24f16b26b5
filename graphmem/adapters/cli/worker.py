"""Commands `worker`, which runs until it is stopped, and `metrics`, which prints what a worker measures."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.health import Health, HealthFile, is_ready, serving
from graphmem.adapters.cli.session import FAILED, Session, command, reason_of

if TYPE_CHECKING:
    from graphmem.worker import WorkerState

_SECONDS = 10.0  # for a worker to answer


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(worker)
    command(app)(metrics)


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
