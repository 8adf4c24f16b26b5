"""Commands about the graph: communities and visualize."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from graphmem.adapters.cli.session import (
    AsOfOption,
    ForceOption,
    KnownOption,
    LimitOption,
    Session,
    command,
    one_of,
    point_in_time,
)
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.communities.results import FoundCommunity, Refreshed
    from graphmem.memory import GraphMemory
    from graphmem.models import CommunityAlgorithm
    from graphmem.visualize import PictureFormat


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(communities)
    command(app)(visualize)


def communities(
    session: Session,
    query: Annotated[str | None, typer.Argument(help="A question. [default: list all communities]")] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Detect the communities again first.")] = False,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", metavar="NAME", help="For --refresh: label_propagation or leiden."),
    ] = None,
    level: Annotated[int, typer.Option("--level", min=0, help="0, or a level of subcommunities from leiden.")] = 0,
    members: Annotated[
        str | None, typer.Option("--members", metavar="ID", help="List the members of one community, by its id.")
    ] = None,
    limit: LimitOption = 20,
    as_of: AsOfOption = None,
    known: KnownOption = None,
) -> None:
    """List communities of related entities, largest first, or those that match a question."""
    chosen, at = _algorithm(algorithm), point_in_time(as_of, known)
    with session.open() as memory:
        if refresh:
            _refresh(session, memory, chosen)
        if members is not None:
            # of any level, including ended ones
            found = memory.communities(query, level=None, as_of=at, ended=True, ids=[members])
            _print_members(session, next(iter(found), None), members)
            return
        found = memory.communities(query, level=level, as_of=at, limit=limit)
        if session.out.as_json:
            session.out.document([_shown(community) for community in found])
            return
        if not found:
            hint = "run graphmem communities --refresh" if query is None else f"no community matches {query!r}"
            session.nothing(f"no communities: {hint}" if query is None else hint)
        _print(session, found)


def _refresh(session: Session, memory: GraphMemory, algorithm: CommunityAlgorithm | None) -> None:
    done: Refreshed = memory.admin.refresh_communities(algorithm)
    members = counted(done.members, "entity", "entities")
    summary = f"{counted(done.communities, 'community', 'communities')} of {members}"
    changes = f"{done.created:,} new, {done.updated:,} changed, {done.ended:,} ended"
    session.out.note(f"{summary}: {changes} ({done.seconds:.1f} s)")
    if done.fallback:
        session.out.note(f"detected by {done.algorithm} as a fallback: {done.fallback}")
    if done.failed:
        failed = counted(done.failed, "summary", "summaries")
        session.out.note(f"{failed} by the model failed; the next refresh retries them")


def _print(session: Session, found: list[FoundCommunity]) -> None:
    from graphmem.adapters.cli.output import Column, cut

    columns = [Column("members", align="right"), Column("name", 2), Column("about", 5), Column("id")]
    scored = found[0].score is not None
    rows = [[*([f"{c.score:.2f}"] if scored else []), f"{len(c):,}", c.name, cut(c.summary, 240), c.id] for c in found]
    session.out.table([*([Column("score", align="right")] if scored else []), *columns], rows)


def _print_members(session: Session, community: FoundCommunity | None, wanted: str) -> None:
    from graphmem.adapters.cli.output import Column

    if community is None:
        session.nothing(f"no community {wanted} in scope {session.scope}")
    elif session.out.as_json:
        session.out.document(_shown(community))
    else:
        session.out.line(community.name, style="bold")
        session.out.line(community.summary)
        session.out.table([Column("name", 1), Column("type")], [[m.name, m.entity_type] for m in community.members])


def _shown(community: FoundCommunity) -> dict[str, object]:
    return {**community.model_dump(mode="json"), "size": len(community)}


def _algorithm(name: str | None) -> CommunityAlgorithm | None:
    from graphmem.models import CommunityAlgorithm

    choices: tuple[CommunityAlgorithm, ...] = get_args(CommunityAlgorithm)
    return None if name is None else one_of("--algorithm", name, choices)


_SUFFIXES: dict[str, PictureFormat] = {
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".txt": "ascii",
}


def visualize(
    session: Session,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Entities to draw the graph around. [default: the whole scope]"),
    ] = None,
    hops: Annotated[int, typer.Option("--hops", min=0, max=6, help="Maximum distance from the names in hops.")] = 1,
    community: Annotated[
        str | None, typer.Option("--community", metavar="ID", help="Draw this community; its id or name.")
    ] = None,
    as_of: AsOfOption = None,
    known: KnownOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of entities.")] = 200,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="html, mermaid, dot or ascii. [default: by the extension of --out, else ascii]",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Output file.")] = None,
    force: ForceOption = False,
) -> None:
    """Draw the graph as an interactive HTML page, a Mermaid chart, a Graphviz digraph, or text."""
    from graphmem.outputs import output_file

    chosen, at = _format(form, out), point_in_time(as_of, known)
    if chosen == "html" and out is None and session.out.is_terminal:
        raise typer.BadParameter("--format html: can't be shown in a terminal; write it to a file with --out FILE")
    with session.open() as memory:
        text = memory.visualize(names, hops=hops, community=community, as_of=at, limit=limit, format=chosen)
    if out is not None:
        with output_file(out, force=force) as file:
            file.write(text.encode())
    if session.out.as_json:
        where = {"text": text} if out is None else {"file": str(out)}
        session.out.document({"format": chosen, **where})
    elif out is None:
        sys.stdout.write(text)
    else:
        session.out.note(f"{out}: {len(text.encode()):,} bytes of {chosen}")


def _format(word: str | None, out: Path | None) -> PictureFormat:
    from graphmem.visualize import FORMATS

    if word is None:
        suffix = out.suffix.lower() if out is not None else ""
        if suffix and suffix not in _SUFFIXES:
            raise typer.BadParameter(f"--out: {suffix} is none of {', '.join(_SUFFIXES)}; name one with --format")
        return _SUFFIXES.get(suffix, "ascii")
    return one_of("--format", word, FORMATS)
