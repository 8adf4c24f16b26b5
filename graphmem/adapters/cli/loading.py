"""The command `ingest`: users' files into the memory, with progress, a summary, and every refused line told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from graphmem.adapters.cli.session import FAILED, INTERRUPTED, SOME_REFUSED, Session, command

if TYPE_CHECKING:
    from datetime import tzinfo

    from graphmem.adapters.cli.show import Output
    from graphmem.ingest.load import OnProgress, Progress
    from graphmem.ingest.read import DateOrder, Format, Refused, Source
    from graphmem.memory import GraphMemory
    from graphmem.results import LoadReport

_TOLD = 20  # refused lines that are printed; --json has up to 1,000
_KEPT = 1000

W = TypeVar("W", bound=str)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app)(ingest)


def ingest(
    session: Session,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES…", help="Files and folders; - is standard input.", show_default=False),
    ],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="turns, triples, json, csv, text, markdown, html, mbox, eml, whatsapp, slack, chatgpt, srt or vtt. "
            "[default: told by the file]",
        ),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="spacy, recorded:FILE, llm:PROVIDER:MODEL or none. [default: that of the settings]"
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Zone of times that state none, for example Europe/Berlin."),
    ] = None,
    date_order: Annotated[
        str | None,
        typer.Option(metavar="ORDER", help="Of day, month and year in a WhatsApp export: dmy, mdy or ymd."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=NAME", help="Column of a CSV file that holds a field, such as text=Message; several times."
        ),
    ] = None,
) -> None:
    """Take in conversations, documents and triples."""
    from graphmem.ingest.read import DATE_ORDERS, FORMATS, find_files
    from graphmem.parts import choose_ontology

    short_names = choose_ontology(session.settings).short_names
    options = _Options(
        _one_of("--format", format_, FORMATS),
        _zone(timezone),
        short_names,
        _one_of("--date-order", date_order, DATE_ORDERS),
        _columns(column or ()),
    )
    load = _Load(find_files(files), options)
    with session.open(extractor=extractor, make=True) as memory:
        try:
            with _progress_bar(session.out, load) as tell:
                load.run(memory, tell)
        except KeyboardInterrupt:
            _tell_interrupted(session.out, memory, load)
            raise typer.Exit(INTERRUPTED) from None
        _tell_result(session.out, memory, load)
    if load.refused_count:
        raise typer.Exit(SOME_REFUSED if load.total("received") else FAILED)


def _one_of(option: str, word: str | None, known: Sequence[W]) -> W | None:
    """Return the word of an option as one of those that are known."""
    for each in known:
        if word == each:
            return each
    if word is None:
        return None
    raise typer.BadParameter(f"{option}: {word!r} is none of {', '.join(known)}")


def _columns(given: Sequence[str]) -> dict[str, str]:
    """Read FIELD=NAME pairs."""
    from graphmem.ingest.records import TURN_FIELDS

    found: dict[str, str] = {}
    for pair in given:
        field_name, equals, name = pair.partition("=")
        if not equals or not name.strip() or field_name not in TURN_FIELDS:
            expected = f"FIELD=NAME with a field of {', '.join(TURN_FIELDS)}"
            raise typer.BadParameter(f"--column: {pair!r} is no {expected}")
        found[field_name] = name
    return found


def _zone(name: str | None) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise typer.BadParameter(f"--timezone: {name!r} is no name of a time zone, such as Europe/Berlin") from error


@dataclass(frozen=True, slots=True)
class _Options:
    """What the command line says about the files."""

    form: Format | None
    zone: tzinfo | None
    short_names: Collection[str]
    date_order: DateOrder | None
    columns: Mapping[str, str]


@dataclass(slots=True)
class _Load:
    """Files on their way into a memory."""

    paths: Sequence[Path]
    options: _Options
    reports: list[LoadReport] = field(default_factory=list["LoadReport"])
    refused: list[Refused] = field(default_factory=list["Refused"])
    refused_count: int = 0
    progress: Progress | None = None
    read_before: int = 0
    current: Source | None = None

    def run(self, memory: GraphMemory, tell: OnProgress) -> None:
        """Load all files in their order; neighbours of the same kind share batches."""

        def on_progress(progress: Progress) -> None:
            self.progress = progress
            tell(progress)

        def refuse(refused: Refused) -> None:
            self.refused_count += 1
            if len(self.refused) < _KEPT:
                self.refused.append(refused)

        from graphmem.ingest.read import read_items, read_triples

        for are_triples, group in groupby(self._sources(refuse), lambda source: source.holds_triples):
            if are_triples:
                triples = (triple for source in group for triple in read_triples(source, refuse))
                report = memory.add_facts(triples, skip_invalid=True, on_progress=on_progress)
            else:
                items = (item for source in group for item in read_items(source, refuse))
                report = memory.ingest(items, skip_invalid=True, on_progress=on_progress)
            self.reports.append(report)
            self.refused_count += report.rejected_count

    def _sources(self, refuse: Callable[[Refused], None]) -> Iterator[Source]:
        from graphmem.errors import InvalidInput
        from graphmem.ingest.read import Refused, open_source

        for path in self.paths:
            try:
                opened = open_source(
                    path,
                    form=self.options.form,
                    zone=self.options.zone,
                    short_names=self.options.short_names,
                    date_order=self.options.date_order,
                    columns=self.options.columns,
                    stdin=sys.stdin.buffer,
                )
                source = opened.__enter__()
            except InvalidInput as error:
                refuse(Refused(path.name, 1, str(error).removeprefix(f"{path.name}: ")))
                continue
            with _closing(opened):
                self.current = source
                yield source
                self.read_before += source.position
                self.current = None

    @property
    def bytes_read(self) -> int:
        """Bytes of all files that were read so far."""
        return self.read_before + (self.current.position if self.current is not None else 0)

    def bytes_in_all(self) -> int | None:
        """Return the size of all files, or None if one of them is standard input."""
        return sum(p.stat().st_size for p in self.paths) if all(p.is_file() for p in self.paths) else None

    def total(self, name: str) -> Any:
        """Return a count of the reports, added up."""
        return sum(getattr(report, name) for report in self.reports)

    def dropped(self) -> dict[str, int]:
        """Return what extractors left out by reason, added up."""
        found: dict[str, int] = {}
        for report in self.reports:
            for reason, number in report.dropped.items():
                found[reason] = found.get(reason, 0) + number
        return found


@contextmanager
def _closing(opened: Any) -> Generator[None]:
    try:
        yield
    finally:
        opened.__exit__(None, None, None)


@contextmanager
def _progress_bar(out: Output, load: _Load) -> Generator[OnProgress]:
    """Show a bar on a terminal; the share done is bytes read, times what of the read items is extracted and indexed."""
    if not out.errors.is_terminal:
        yield lambda _: None
        return
    from rich import progress as bars

    columns = (bars.BarColumn(24), bars.TaskProgressColumn(), bars.TextColumn("{task.description}"))
    size = load.bytes_in_all()
    with bars.Progress(*columns, bars.TimeElapsedColumn(), console=out.errors, transient=True) as bar:
        task = bar.add_task("reading", total=size)
        done = 0.0

        def tell(progress: Progress) -> None:
            nonlocal done
            done = max(done, load.bytes_read * progress.share)
            words = (
                f"{progress.received:,} read, {progress.extracted:,} extracted, {progress.written.edges:,} new facts"
            )
            if progress.indexed:
                words += f", {progress.indexed:,} of {progress.to_index:,} indexed"
            bar.update(task, completed=done, description=words)

        yield tell


def _tell_interrupted(out: Output, memory: GraphMemory, load: _Load) -> None:
    waiting = memory.stats().pending_episodes
    read = load.total("received") + (load.progress.received if load.progress is not None else 0)
    out.note(f"interrupted: {read:,} items were read; what was stored is kept, {waiting:,} wait for extraction")
    out.note("to go on, run the same command again: what is there already is not taken in twice")


def _tell_result(out: Output, memory: GraphMemory, load: _Load) -> None:
    stats = memory.stats()
    waiting = stats.pending_episodes
    if stats.queue.state != "running":
        out.note(f"extraction is {stats.queue}")
    if out.as_json:
        names = "received stored known skipped extracted failed entities edges supported ended seconds".split()
        out.document(
            {
                "files": len(load.paths),
                **{name: load.total(name) for name in names},
                "waiting": waiting,
                "dropped": load.dropped(),
                "refused_count": load.refused_count,
                "refused": [{"file": r.source, "line": r.line, "reason": r.reason} for r in load.refused]
                + [{"item": r.item, "reason": r.reason} for report in load.reports for r in report.rejected],
            }
        )
        return
    rows = _summary(load)
    if load.refused_count:
        rows.append(("refused", load.refused_count))
    out.pairs(rows)
    lines = [str(refused) for refused in load.refused]
    lines += [f"{r.item}: {r.reason}" for report in load.reports for r in report.rejected]
    for line in lines[:_TOLD]:
        out.note(f"refused: {line}")
    if load.refused_count > _TOLD:
        out.note(f"and {load.refused_count - _TOLD:,} more; --json lists up to {_KEPT:,}")
    if waiting:
        out.note(
            f"{waiting:,} episodes wait for extraction: graphmem backfill reads them, graphmem stats tells of failures"
        )


def _summary(load: _Load) -> list[tuple[str, Any]]:
    seconds = load.total("seconds")
    received = load.total("received")
    rows: list[tuple[str, Any]] = [
        ("read", f"{received:,} from {len(load.paths):,} {'file' if len(load.paths) == 1 else 'files'}"),
        ("new episodes", load.total("stored")),
        ("known already", load.total("known")),
        ("extracted", load.total("extracted")),
        ("not to be extracted", load.total("skipped")),
        ("failed", load.total("failed")),
        ("new entities", load.total("entities")),
        ("new facts", load.total("edges")),
        ("facts stated again", load.total("supported")),
        ("facts ended", load.total("ended")),
    ]
    rows = [row for row in rows if row[1] or row[0] in ("new episodes", "new facts")]
    if dropped := load.dropped():
        rows.append(("left out", ", ".join(f"{number:,} × {reason}" for reason, number in sorted(dropped.items()))))
    rows.append(
        ("time", f"{seconds:.1f} s" + (f", {received / seconds:,.0f} a second" if seconds and received else ""))
    )
    return rows
