"""The commands `export` and `import`: a scope as lines of JSON, both ways."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Annotated, cast

import typer

from graphmem.adapters.cli.options import ForceOption
from graphmem.adapters.cli.session import Session, command

_STANDARD = "-"


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(export)
    command(app, "import")(import_)


def export(
    session: Session,
    file: Annotated[str, typer.Argument(help="Where to; - is standard output.")] = _STANDARD,
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Whether the index is written, too.")] = True,
    force: ForceOption = False,
) -> None:
    """Write everything in the scope as lines of JSON, for another store or for safe keeping."""
    from graphmem.adapters.cli.show import count

    to_standard = file == _STANDARD
    if to_standard and session.out.as_json:
        raise typer.BadParameter("--json: standard output has the exported rows; name a FILE")
    with session.open() as memory:
        counts = memory.stats()
        with session.out.progress(counts.entities + counts.aliases + counts.edges + counts.mentions) as tell:
            target = cast("IO[bytes]", sys.stdout.buffer) if to_standard else file
            done = memory.export(target, vectors=vectors, force=force, on_rows=tell)
        if session.out.as_json:
            session.out.document(done)
            return
        session.out.note(f"exported {count(done.rows, 'row')} of scope {done.scope}, checksum {done.checksum}")


def import_(
    session: Session,
    file: Annotated[str, typer.Argument(help="An exported memory; - is standard input.", show_default=False)],
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Whether the index in the file is taken in, too.")
    ] = True,
    cut_off: Annotated[
        bool, typer.Option("--cut-off", help="Take in what there is of a file that is cut off or spoilt.")
    ] = False,
) -> None:
    """Take in an exported memory: into the scope that it is of, or into the one that --scope names."""
    from graphmem.adapters.cli.show import count
    from graphmem.upkeep.lines import read_header

    with _source(file) as source:
        header = read_header(source)
        with session.open(make=True) as opened:
            renamed = session.shared.scope is not None
            memory = opened if renamed else opened.in_scope(header.scope)
            with session.out.progress(0) as tell:
                done = memory.import_(source, rename=renamed, vectors=vectors, cut_off=cut_off, on_rows=tell)
            if session.out.as_json:
                session.out.document(done)
                return
            cut = "" if done.complete else "; not all that the file had is there"
            session.out.line(f"imported {count(done.rows, 'row')} into scope {done.scope}{cut}")


@contextmanager
def _source(file: str) -> Generator[str | IO[bytes]]:
    """Give a file, or what comes by standard input as one: it is read twice, to be checked first."""
    if file != _STANDARD:
        yield file
        return
    with tempfile.TemporaryFile() as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.seek(0)
        yield kept
