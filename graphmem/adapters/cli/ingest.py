"""Commands that add data: `ingest` for files, with a report of refused lines, and `remember` for one turn."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphmem.adapters.cli.session import FAILED, INTERRUPTED, SOME_REFUSED, Session, command, moment
from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem.text import counted

if TYPE_CHECKING:
    from graphmem.adapters.cli.output import Output
    from graphmem.ingest.bulk import OnProgress, Progress
    from graphmem.ingest.files import FileLoad
    from graphmem.memory import GraphMemory
    from graphmem.results import LoadReport

_PRINTED = 20  # refused lines that are printed
_CONTINUE = "to continue, run the same command again; stored items are not added twice"

LEFT_OUT = {
    "ambiguous name": "first names of several known people, where the session doesn't tell which of them",
    "edge_limit": "facts beyond the 15 of an episode, the least certain ones",
    "end of a reply at the token limit": "what a language model would have said after its limit of tokens",
    "end of a text beyond 16,000 bytes": "ends of long texts, which the language model isn't shown",
    "ending of a relation with several values": "ends that don't say which of several facts is over",
    "ending of an unknown fact": 'statements that something is over ("I left Acme") where no stored fact says that it '
    "held: nothing to end",
    "entity name": "names of fewer than 3 characters, or without a letter or digit",
    "entity_limit": "names beyond the 10 of an episode, those without a fact",
    "limit": "names and facts beyond the 10 and 15 of an episode, the least certain ones",
    "malformed edge": "facts without source, relation or target",
    "malformed end": "ends that name no fact",
    "malformed entity": "entities without a name",
    "malformed triple": "recorded triples that don't have three parts",
    "naive valid_from": "facts whose beginning has no time zone",
    "naive valid_to": "facts whose end has no time zone",
    "not English": "texts in other languages; the local extractor reads English only",
    "personal data": "e-mail and postal addresses and phone numbers, which are redacted",
    "relation": "facts whose relation has no letter or digit",
    "self-loop": "facts from an entity to itself",
    "short name": "names of fewer than 3 characters that the text doesn't write like names",
    "ungrounded": "names, and facts about them, that stand neither in the text nor in its context",
    "unknown number": "ends of facts that the model wasn't shown",
    "unreadable date": "dates that aren't ISO 8601",
    "valid_to before valid_from": "facts that would end before they begin",
}
"""Reason in `LoadReport.dropped` → what was left out; an extractor may have reasons of its own."""

ExtractorOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="spacy, recorded:FILE, llm:PROVIDER:MODEL or none. [default: that of the settings]"
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app)(ingest)
    command(app)(remember)


def ingest(
    session: Session,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES…", help="Files, folders and zip archives; - is standard input.", show_default=False
        ),
    ],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="turns, triples, json, csv, text, markdown, html, mbox, eml, ics, vcf, whatsapp, slack, chatgpt, "
            "transcript, srt or vtt. [default: detected from the file]",
        ),
    ] = None,
    extractor: ExtractorOption = None,
    timezone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Time zone of times without an offset, for example Europe/Berlin."),
    ] = None,
    date_order: Annotated[
        str | None,
        typer.Option(metavar="ORDER", help="Order of day, month and year in dates such as 3/4/2026: dmy, mdy or ymd."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=NAME",
            help="CSV column or JSON field that holds a field, such as text=Message, or columns to join: "
            "text=Customer,Note; may be given several times.",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Encoding of the files, such as cp1252. [default: utf-8]"),
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Trust of records that state none: trusted, external or untrusted. [default: trusted for messages, "
            "external for mails and documents]",
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Replace what these files contained before: erase text that they no longer have, and store records "
            "with other fields again.",
        ),
    ] = False,
    delete_missing: Annotated[
        bool,
        typer.Option(
            "--delete-missing",
            help="With a folder or an archive, update, and erase what was ingested from files that are gone.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, and count what would be stored, replaced and removed.")
    ] = False,
) -> None:
    """Ingest conversations, documents and triples."""
    from graphmem.factory import choose_ontology
    from graphmem.ingest.files import FileLoad, FileOptions, find_files
    from graphmem.text.redact import PatternRedactor

    short_names = choose_ontology(session.settings).short_names
    columns = _columns(column or ())
    options = FileOptions(format_, timezone, date_order, columns, encoding, trust)  # pyright: ignore[reportArgumentType]
    redact = partial(PatternRedactor().redact, names=()) if session.settings.redact == "all" else str
    unread = Counter[str]()
    found = find_files(files, unread, columns)
    load = FileLoad(
        found,
        options,
        short_names,
        stdin=sys.stdin.buffer,
        redact=redact,
        unread=unread,
        folders=[*map(Path, files)],
        update=update,
        delete_missing=delete_missing,
        dry_run=dry_run,
    )
    with _previewed(session) if dry_run else session.open(extractor=extractor, make=True) as memory:
        try:
            with _progress_bar(session.out, load) as on_progress:
                load.run(memory, on_progress, memory.admin)
        except KeyboardInterrupt:
            _print_interrupted(session.out, memory, load)
            raise typer.Exit(INTERRUPTED) from None
        except BackendUnavailable as error:
            if not isinstance(error, StoreReadOnly):
                session.out.note("the store failed; what was stored before is kept")
                session.out.note(_CONTINUE)
            raise
        _print_result(session, memory, load)
    report = load.report
    if report.rejected_count:
        raise typer.Exit(SOME_REFUSED if report.received else FAILED)


def _previewed(session: Session) -> GraphMemory:
    """Return the memory of a dry run, an empty one if the store doesn't exist yet."""
    from graphmem.memory import GraphMemory

    if session.missing_file is None:
        return session.open()
    return GraphMemory.open(
        "memory://", scope=session.scope, settings=session.settings, extractor="none", background=False
    )


def remember(
    session: Session,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="Text of the turn; - reads it from standard input.", show_default=False),
    ],
    speaker: Annotated[
        str | None, typer.Option(metavar="NAME", help='Name of the speaker; "I" in the text refers to them.')
    ] = None,
    conversation: Annotated[str | None, typer.Option("--session", metavar="ID", help="Id of the conversation.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="DATE", help="Time of the turn. [default: now]")] = None,
    expires_in: Annotated[
        str | None,
        typer.Option("--expires-in", metavar="TIME", help="Erase it after 90s, 15m, 12h, 30d or 8w."),
    ] = None,
    extractor: ExtractorOption = None,
) -> None:
    """Store one turn of a conversation.

    Episodes of the scope that still wait are extracted before it, in their order, and the counts are those of all of
    them. With --extractor none, the turn is only stored, and waits as well.
    """
    text = sys.stdin.read() if text == "-" else text
    if not text.strip():
        raise typer.BadParameter("TEXT is empty")
    said_at = None if at is None else moment("--at", at)
    with session.open(extractor=extractor, make=True) as memory:
        receipt = memory.remember(
            text, speaker=speaker, session_id=conversation, occurred_at=said_at, expires_in=expires_in
        )
        report = memory.admin.backfill()
        if session.out.as_json:
            counts = {name: getattr(report, name) for name in ("extracted", "entities", "edges")}
            waiting = memory.stats().pending_episodes
            session.out.document({"episode_id": receipt.episode_id, **counts, "waiting": waiting})
            return
        rows = [("episode", receipt.episode_id), ("extracted", counted(report.extracted, "episode"))]
        session.out.pairs([*rows, ("new entities", report.entities), ("new facts", report.edges)])
        _print_waiting(session, memory)


def _columns(given: Sequence[str]) -> dict[str, str]:
    """Parse FIELD=NAME pairs."""
    from graphmem.ingest.records import TURN_FIELDS

    found: dict[str, str] = {}
    for pair in given:
        field_name, equals, name = pair.partition("=")
        if not equals or not name.strip() or field_name not in TURN_FIELDS:
            fields = ", ".join(TURN_FIELDS)
            raise typer.BadParameter(f"--column: {pair!r} is not FIELD=NAME with a field of {fields}")
        found[field_name] = name
    return found


@contextmanager
def _progress_bar(out: Output, load: FileLoad) -> Generator[OnProgress]:
    """Show a progress bar on a terminal.

    The completed share is the bytes read, times the share of the read items that is extracted and indexed.
    """
    if not out.errors.is_terminal:
        yield lambda _: None
        return
    from rich import progress as bars

    columns = (bars.BarColumn(24), bars.TaskProgressColumn(), bars.TextColumn("{task.description}"))
    size = load.bytes_in_all()
    with bars.Progress(*columns, bars.TimeElapsedColumn(), console=out.errors, transient=True) as bar:
        task = bar.add_task("reading", total=size)
        done = 0.0

        def update(progress: Progress) -> None:
            nonlocal done
            done = max(done, load.bytes_read * progress.share)
            facts = counted(progress.written.edges, "new fact")
            words = f"{progress.received:,} read, {progress.extracted:,} extracted, {facts}"
            if progress.indexed:
                words += f", {progress.indexed:,} of {progress.to_index:,} indexed"
            bar.update(task, completed=done, description=words)

        yield update


def _print_interrupted(out: Output, memory: GraphMemory, load: FileLoad) -> None:
    waiting = memory.stats().pending_episodes
    read = load.report.received + (load.progress.received if load.progress is not None else 0)
    items, wait = counted(read, "item was", "items were"), counted(waiting, "episode waits", "episodes wait")
    out.note(f"interrupted: {items} read; what was stored is kept, {wait} for extraction")
    out.note(_CONTINUE)


def _print_result(session: Session, memory: GraphMemory, load: FileLoad) -> None:
    out, report = session.out, load.report
    items = report.rejected[len(load.refused) :]
    if out.as_json:
        names = (
            "received stored replaced removed known differing skipped extracted failed entities edges supported ended "
            "seconds"
        ).split()
        out.document(
            {
                "files": len(load.files),
                **{name: getattr(report, name) for name in names},
                "waiting": memory.stats().pending_episodes,
                "dropped": report.dropped,
                "unknown_types": report.unknown_types,
                "unread_files": report.unread_files,
                "dated_by": report.dated_by,
                "notes": report.notes,
                "refused_count": report.rejected_count,
                "refused": [{"file": r.source, "line": r.line, "reason": r.reason} for r in load.refused]
                + [{"item": r.item, "reason": r.reason} for r in items],
            }
        )
        return
    if load.dry_run:
        out.note("dry run: nothing is changed")
    out.pairs(_summary(report, len(load.files)))
    for each in report.rejected[:_PRINTED]:
        out.note(f"refused: {each.item}: {each.reason}")
    if report.rejected_count > _PRINTED:
        out.note(f"and {report.rejected_count - _PRINTED:,} more; --json lists up to {len(report.rejected):,}")
    _print_waiting(session, memory)


def _print_waiting(session: Session, memory: GraphMemory) -> None:
    """Print the number of episodes waiting for extraction and the state of the queue."""
    stats, out = memory.stats(), session.out
    if stats.queue.state != "running":
        out.note(f"extraction is {stats.queue}")
    if waiting := stats.pending_episodes:
        waits = counted(waiting, "episode waits", "episodes wait")
        out.note(f"{waits} for extraction: this extracts them, and graphmem stats lists failures")
        is_off = session.settings.extractor == "none"
        out.command(session.command_line("backfill", *(["--extractor", "spacy"] if is_off else [])))


def _summary(report: LoadReport, files: int) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = [
        ("read", f"{report.received:,} from {counted(files, 'file')}"),
        ("new episodes", report.stored),
        ("replaced", report.replaced and f"{counted(report.replaced, 'episode')} whose record has other fields now"),
        ("removed", report.removed and f"{counted(report.removed, 'episode')} that the files no longer have"),
        ("already stored", report.known),
        (
            "left as they were",
            report.differing
            and f"{counted(report.differing, 'known record')} whose fields differ now; --update replaces them",
        ),
        ("extracted", report.extracted),
        ("not to be extracted", report.skipped),
        ("failed", report.failed),
        ("new entities", report.entities),
        ("new facts", report.edges),
        ("facts stated again", report.supported),
        ("facts ended", report.ended),
    ]
    rows = [row for row in rows if row[1] or row[0] in ("new episodes", "new facts")]
    for reason, number in sorted(report.dropped.items(), key=lambda item: -item[1]):
        words = LEFT_OUT.get(reason)
        rows.append(("left out", f"{number:,} × {reason}" + (f": {words}" if words else "")))
    if report.unknown_types:
        types = _numbers(report.unknown_types)
        rows.append(("unknown types", f"{types}: stored as concept; the setting ontology adds types"))
    if report.unread_files:
        rows.append(("files not read", f"{_numbers(report.unread_files)}: of unknown kinds"))
    if report.dated_by:
        rows.append(("files dated by", ", ".join(f"{name} ({n:,})" for name, n in sorted(report.dated_by.items()))))
    rows += [("note", note) for note in report.notes[:_PRINTED]]
    speed = f", {report.received / report.seconds:,.0f} a second" if report.seconds and report.received else ""
    rows.append(("time", f"{report.seconds:.1f} s{speed}"))
    if report.rejected_count:
        rows.append(("refused", report.rejected_count))
    return rows


def _numbers(counts: Mapping[str, int]) -> str:
    """Return what was counted, the most first, cut off after `_PRINTED` names."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{number:,} × {name}" for name, number in ordered[:_PRINTED])
    return f"{listed} and {len(ordered) - _PRINTED:,} more" if len(ordered) > _PRINTED else listed
