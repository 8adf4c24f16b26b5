"""The command that draws the graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.adapters.cli.options import AsOfOption, ForceOption, KnownOption, point_in_time
from graphmem.adapters.cli.session import Session, command

if TYPE_CHECKING:
    from graphmem.visualise import PictureFormat

_ENDINGS: dict[str, PictureFormat] = {
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".txt": "ascii",
}


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(visualize)


def visualize(
    session: Session,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Entities to draw the graph around; without, the whole scope."),
    ] = None,
    hops: Annotated[int, typer.Option("--hops", min=0, max=6, help="Steps from the names.")] = 1,
    community: Annotated[
        str | None, typer.Option("--community", metavar="ID", help="Draw this community; its id or name.")
    ] = None,
    as_of: AsOfOption = None,
    known: KnownOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many entities.")] = 200,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="html, mermaid, dot or ascii. [default: by the ending of --out, else ascii]",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it there.")] = None,
    force: ForceOption = False,
) -> None:
    """Draw the graph: a page to explore, a Mermaid chart, a Graphviz digraph, or lines of text."""
    from graphmem.outputs import output_file

    chosen, at = _format(form, out), point_in_time(as_of, known)
    if chosen == "html" and out is None and session.out.is_terminal:
        raise typer.BadParameter("a page is no reading for a terminal: --out FILE writes it to a file")
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
    from graphmem.visualise import FORMATS

    if word is None:
        ending = out.suffix.lower() if out is not None else ""
        if ending and ending not in _ENDINGS:
            raise typer.BadParameter(f"--out: {ending} is none of {', '.join(_ENDINGS)}; --format names the format")
        return _ENDINGS.get(ending, "ascii")
    known: dict[str, PictureFormat] = {name: name for name in FORMATS}
    if word not in known:
        raise typer.BadParameter(f"--format: {word!r} is none of {', '.join(known)}")
    return known[word]
