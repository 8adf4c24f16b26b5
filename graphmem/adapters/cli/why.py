"""The command that tells why a recall returned what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.session import Session, command

if TYPE_CHECKING:
    from graphmem.results import Trace


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(why)


def why(
    session: Session,
    trace: Annotated[str | None, typer.Argument(help="Id that recall --trace told; the newest without.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Facts that are shown, at most.")] = 20,
) -> None:
    """Tell why a traced recall returned what it did."""
    from graphmem.errors import NotFound

    with session.open() as memory:
        try:
            found = memory.recalls(limit=1) if trace is None else [memory.why(trace)]
        except NotFound as error:
            session.nothing(str(error))
            return
        if not found:
            session.nothing("no recall was traced in this scope; graphmem recall QUESTION --trace keeps one")
        elif session.out.as_json:
            session.out.document(found[0])
        else:
            _print(session, found[0], limit)


def _print(session: Session, trace: Trace, limit: int) -> None:
    from graphmem.adapters.cli.show import Column, count

    seeds = ", ".join(f"{seed.name} ({seed.score:.2f})" for seed in trace.seeds)
    told = [("question", trace.query), ("asked", f"{trace.asked_at:%Y-%m-%d %H:%M:%S} UTC")]
    if trace.as_of is not None:
        told.append(("as of", f"{trace.as_of.valid:%Y-%m-%d}, known by {trace.as_of.known:%Y-%m-%d}"))
    session.out.pairs([*told, ("strategy", trace.strategy), ("seeds", seeds or None)])
    columns = [
        Column("#", align="right"),
        Column("fact", 4),
        Column("found at", 1),
        Column("hop", align="right"),
        Column("score", align="right"),
    ]
    rows = [
        ["-" if f.rank is None else str(f.rank), f.fact.fact, f.found_at, str(f.hop), f"{f.score:.2f}"]
        for f in trace.facts[:limit]
    ]
    if rows:
        session.out.line()
        session.out.table(columns, rows)
    if trace.episodes:
        session.out.line()
        session.out.table(
            [Column("#", align="right"), Column("episode", 4), Column("found by", 1), Column("score", align="right")],
            [
                ["-" if e.rank is None else str(e.rank), e.episode_id, e.channel, f"{e.score:.2f}"]
                for e in trace.episodes[:limit]
            ],
        )
    if len(trace.facts) > limit:
        session.out.note(f"{count(len(trace.facts) - limit, 'fact')} more; --limit shows them")
