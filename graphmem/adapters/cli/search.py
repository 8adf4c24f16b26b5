"""The commands `search` and `reindex`: episodes for a question, and the index that they are found by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.options import (
    AsOfOption,
    KnownOption,
    StrategyOption,
    YesOption,
    ask,
    point_in_time,
    strategy,
)
from graphmem.adapters.cli.session import Session, command

if TYPE_CHECKING:
    from graphmem.rag.found import SearchResults

_SHOWN = 300  # characters of an episode that are shown


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(search)
    command(app)(reindex)


def search(
    session: Session,
    query: Annotated[str, typer.Argument(help="A question in plain words.", show_default=False)],
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", min=1, max=100_000, help="Episodes at most. [default: setting search_limit]"),
    ] = None,
    as_of: AsOfOption = None,
    known: KnownOption = None,
    why: Annotated[bool, typer.Option("--why", help="Tell what each score is made of.")] = False,
    graph: Annotated[bool, typer.Option("--graph/--no-graph", help="Whether names lead further.")] = True,
    how: StrategyOption = None,
    diversity: Annotated[
        float, typer.Option("--diversity", help="From 0 to below 1: how much episodes unlike the others gain.")
    ] = 0.0,
    trace: Annotated[bool, typer.Option("--trace", help="Keep why it was found; graphmem why tells it.")] = False,
) -> None:
    """Find the episodes that answer a question, best first."""
    from graphmem.rag.options import ExpansionConfig

    at = point_in_time(as_of, known)
    chosen = strategy(how) or "ppr"
    if chosen == "auto":
        raise typer.BadParameter("--strategy: 'auto' is for recall; search takes ppr, bfs, spreading or astar")
    expansion = ExpansionConfig(enabled=graph, strategy=chosen)
    with session.open() as memory:
        found = memory.search(query, k=k, as_of=at, expansion=expansion, diversity=diversity, trace=trace)
        if session.out.as_json:
            session.out.document(found)
        elif len(found):
            _print_found(session, found, why=why)
        for reason in found.degraded if not session.out.as_json else ():
            session.out.note(f"not all of it was used: {reason}")
        if found.trace_id is not None and not session.out.as_json:
            session.out.note(f"graphmem why {found.trace_id} tells why")
        if not len(found):
            empty = "" if memory.stats().episodes else f": the scope {str(memory.scope)!r} has none"
            session.nothing(f"no episode found for {query!r}{empty}")


def reindex(
    session: Session,
    yes: YesOption = False,
) -> None:
    """Build the index that search uses anew, for another embedding model for instance."""
    with session.open() as memory:
        counts = memory.stats()
        rows = counts.episodes + counts.active_edges
        model = session.settings.embeddings
        ask(f"Read {rows:,} episodes and facts of the scope {str(memory.scope)!r} anew, embeddings {model!r}?", yes=yes)
        with session.out.progress(rows) as tell:
            done = memory.reindex(on_progress=tell)
        if session.out.as_json:
            session.out.document({"scope": str(memory.scope), "indexed": done})
        else:
            session.out.line(f"indexed {done:,} episodes and facts")


def _print_found(session: Session, found: SearchResults, *, why: bool) -> None:
    from graphmem.adapters.cli.show import Column, cut, day

    columns = [
        Column("#", align="right"),
        Column("episode", 4),
        Column("from", 1),
        Column("date"),
        Column("score", align="right"),
        *([Column("why", 3)] if why else []),
    ]
    rows = [
        [
            str(number),
            cut(one.episode.text, _SHOWN),
            one.episode.speaker or one.episode.title or one.episode.role or one.episode.source,
            day(one.episode.occurred_at),
            f"{one.score:.2f}",
            *([", ".join(str(reason) for reason in one.reasons)] if why else []),
        ]
        for number, one in enumerate(found, 1)
    ]
    session.out.table(columns, rows)
