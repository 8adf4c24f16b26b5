"""The commands of the merge ledger: merge, unmerge, merges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.options import LimitOption, YesOption, ask
from graphmem.adapters.cli.session import Session, command

if TYPE_CHECKING:
    from graphmem.models import Merge


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for function in (merge, unmerge, merges):
        command(app)(function)


def merge(
    session: Session,
    names: Annotated[list[str], typer.Argument(help="The entities that go, by name or id.")],
    into: Annotated[str, typer.Option("--into", metavar="NAME", help="The entity that stays, by name or id.")],
    yes: YesOption = False,
) -> None:
    """Take entities for one: facts, names and mentions move to the one that stays."""
    with session.open() as memory:
        ask(f"Merge {', '.join(map(repr, names))} into {into!r} in scope {memory.scope}?", yes=yes)
        made = memory.merge(names, into=into)
        if session.out.as_json:
            session.out.document([_shown(one) for one in made])
            return
        for one in made:
            session.out.line(f"{_told(one)}; to undo it: graphmem unmerge {one.id}")


def unmerge(
    session: Session,
    merge: Annotated[str, typer.Argument(help="Id of the merge, as graphmem merges tells it.")],
    yes: YesOption = False,
) -> None:
    """Undo a merge; what came in since stays with the entity that it was said of."""
    from graphmem.adapters.cli.show import count

    with session.open() as memory:
        ask(f"Undo merge {merge} in scope {memory.scope}?", yes=yes)
        done = memory.unmerge(merge)
        if session.out.as_json:
            counts = {"entity_id": done.entity.id, "facts": done.facts, "mentions": done.mentions}
            session.out.document({**_shown(done.merge), **counts})
            return
        session.out.line(
            f"{done.entity.name} is an entity of its own again, beside {done.merge.kept.name}: "
            f"{count(done.facts, 'fact')}, {count(done.mentions, 'mention')}"
        )


def merges(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="Only merges into or of this entity.")] = None,
    undone: Annotated[bool, typer.Option("--undone", help="Those that were undone, too.")] = False,
    limit: LimitOption = 20,
) -> None:
    """List which entities and names were taken for one, newest first, and why."""
    from graphmem.adapters.cli.show import Column

    with session.open() as memory:
        found = memory.merges(name, undone=undone, limit=limit)
        if session.out.as_json:
            session.out.document([_shown(one) for one in found])
            return
        if not found:
            session.nothing("nothing was merged in this scope")
        columns = [
            Column("id"),
            Column("at"),
            Column("merged", 1),
            Column("into", 1),
            Column("by"),
            Column("cosine", align="right"),
            Column("undone"),
        ]
        rows = [
            [
                one.id,
                f"{one.at:%Y-%m-%d %H:%M}",
                one.merged.name,
                one.kept.name,
                one.method,
                "" if one.score is None else f"{one.score:.2f}",
                "" if one.undone_at is None else f"{one.undone_at:%Y-%m-%d %H:%M}",
            ]
            for one in found
        ]
        session.out.table(columns, rows)


def _told(merge: Merge) -> str:
    from graphmem.adapters.cli.show import count

    facts = count(len(merge.edges) + len(merge.folded), "fact")
    return f"{merge.merged.name} went into {merge.kept.name} with {facts} and {count(len(merge.mentions), 'mention')}"


def _shown(merge: Merge) -> dict[str, object]:
    return {
        "id": merge.id,
        "at": merge.at,
        "merged_id": merge.merged.id,
        "merged": merge.merged.name,
        "kept_id": merge.kept_id,
        "kept": merge.kept.name,
        "method": merge.method,
        "score": merge.score,
        "aliases": [alias.alias for alias in merge.aliases],
        "moved_facts": [edge.id for edge in merge.edges],
        "folded_facts": [folded.edge.id for folded in merge.folded],
        "mentions": len(merge.mentions),
        "undone_at": merge.undone_at,
    }
