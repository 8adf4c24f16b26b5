"""The command `browser`: where people look at the graph, and what makes it read well there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from graphmem.adapters.cli.session import Session, command


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(browser)


def browser(
    session: Session,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write saved queries about the scope, and colours and captions, to import."),
    ] = None,
) -> None:
    """Tell where the graph of a store can be looked at in a web browser."""
    with session.open() as memory:
        explorer = memory.explorer
        if explorer is None:
            session.nothing(
                "this store comes with no program to look at its graph; one in Neo4j does (--store neo4j://…)"
            )
            return
        files: list[str] = [] if out is None else _written(out, explorer.files(memory.scope))
        hints = [*explorer.hints, *(explorer.import_hints if files else ())]
        if session.out.as_json:
            session.out.document({"name": explorer.name, "url": explorer.url, "files": files, "hints": hints})
            return
        session.out.line(explorer.url)
        if files:
            session.out.note(f"{len(files)} files are in {out}")
        for hint in hints:
            session.out.note(hint)


def _written(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write files, over those of an earlier time, and return their paths."""
    from graphmem.errors import InvalidInput
    from graphmem.outputs import output_file

    written: list[str] = []
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"--out {folder}: {error.strerror or error}") from error
        with output_file(path, force=True) as file:  # the names are ours
            file.write(content)
        written.append(str(path))
    return written
