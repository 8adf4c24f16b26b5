"""`graphmem metrics`: the metrics of a running worker."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.adapters.cli.session import FAILED, Session, command

_SECONDS = 10.0


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(metrics)


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

    connection = HTTPConnection(health_host, health_port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics")
        reply = connection.getresponse()
        status, text = reply.status, reply.read().decode(errors="replace")
    except (OSError, HTTPException) as error:
        session.out.note(f"no worker answers at {health_host}:{health_port}: {error}")
        raise typer.Exit(FAILED) from None
    finally:
        connection.close()
    if status != 200:
        session.out.note(f"{health_host}:{health_port} answers {status}: {text.strip()[:200]}")
        raise typer.Exit(FAILED)
    if session.out.as_json:
        samples = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        session.out.document({name: float(value) for name, _, value in samples})
    else:
        typer.echo(text, nl=False)
