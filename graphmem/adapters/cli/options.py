"""Options that several commands take, and how their words are read."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, get_args

import typer

if TYPE_CHECKING:
    from graphmem.models import AsOf, EdgeType
    from graphmem.results import StrategyChoice

AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="DATE", help="What was true then: 2026, 2026-01, 2026-01-31 (its start, UTC) or ISO 8601."
    ),
]
KnownOption = Annotated[
    str | None, typer.Option("--known", metavar="DATE", help="What graphmem had been told by then.")
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many.")]
EdgeTypeOption = Annotated[
    list[str] | None,
    typer.Option("--edge-type", metavar="TYPE", help="Only facts of this type; may be given several times."),
]

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that graphmem did not write.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]

StrategyOption = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help="How the graph is walked: bfs, spreading, ppr, astar or auto."),
]


def ask(question: str, *, yes: bool) -> None:
    """Ask before something is done that many rows hang on; where nobody answers, --yes is needed."""
    if yes:
        return
    if sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)
    elif not (answer := sys.stdin.readline()):
        typer.echo(f"graphmem: {question} Nobody can be asked here: pass --yes", err=True)
        raise typer.Exit(1)
    elif answer.strip().lower() not in ("y", "yes"):
        raise typer.Abort


def moment(option: str, text: str) -> datetime:
    """Read a DATE: a year, a month, a day (the start of it, UTC), or a time with its offset."""
    from graphmem.errors import InvalidInput
    from graphmem.ingest.records import read_time

    if re.fullmatch(r"\d{4}(-\d\d)?", text):
        text = f"{text}-01-01"[:10]
    try:
        return read_time(option, text, None)
    except InvalidInput as error:
        raise typer.BadParameter(str(error).replace(", or pass --timezone Europe/Berlin", "")) from None


def point_in_time(as_of: str | None, known: str | None) -> AsOf | None:
    """Return what --as-of and --known say, or None where neither was given."""
    from graphmem.models import AsOf

    if as_of is None and known is None:
        return None
    return AsOf(valid=as_of and moment("--as-of", as_of), known=known and moment("--known", known))


def edge_types(names: list[str] | None) -> tuple[EdgeType, ...]:
    """Return the edge types of these names; a wrong one is an error of the command line."""
    from graphmem.models import EdgeType

    known = {kind.value: kind for kind in EdgeType}
    if unknown := [name for name in names or () if name not in known]:
        raise typer.BadParameter(f"--edge-type: {unknown[0]!r} is none of {', '.join(known)}")
    return tuple(known[name] for name in names or ())


def strategy(name: str | None) -> StrategyChoice | None:
    """Return the strategy of this name; a wrong one is an error of the command line."""
    from graphmem.results import StrategyChoice

    known: dict[str, StrategyChoice] = {choice: choice for choice in get_args(StrategyChoice)}
    if name is not None and name not in known:
        raise typer.BadParameter(f"--strategy: {name!r} is none of {', '.join(known)}")
    return known[name] if name is not None else None
