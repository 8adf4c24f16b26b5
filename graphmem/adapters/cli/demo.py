"""The command `demo`: a conversation of many sessions goes in, dated facts come out."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.adapters.cli.session import USAGE, Session, command


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(demo)


def demo(
    session: Session,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the store, as graphmem-demo.db unless --store names it.")
    ] = False,
) -> None:
    """Show what graphmem makes of a conversation."""
    from graphmem.adapters.demo.demo import run_demo

    if session.shared.json:
        typer.echo("graphmem: demo is for reading; it has no --json", err=True)
        raise typer.Exit(USAGE)
    run_demo(session.out, store=session.shared.store, keep=keep, settings=session.settings)
