"""Readers of the records of a file: turns and documents, or triples, one at a time.

An unreadable line is reported to the caller as a `Refused` with its number and the reason; reading continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.calendars import events
from graphmem.ingest.formats.chatgpt import chatgpt_turns
from graphmem.ingest.formats.contacts import contacts
from graphmem.ingest.formats.detection import guess_format, named
from graphmem.ingest.formats.documents import documents
from graphmem.ingest.formats.exports import messages_of
from graphmem.ingest.formats.json_files import json_lines, json_records
from graphmem.ingest.formats.mail import mails
from graphmem.ingest.formats.opening import head_of, open_source
from graphmem.ingest.formats.slack import slack_turns
from graphmem.ingest.formats.source import (
    DATE_ORDERS,
    FORMATS,
    MAX_LINE_BYTES,
    DateOrder,
    Format,
    Refused,
    Report,
    Source,
)
from graphmem.ingest.formats.subtitles import subtitle_turns
from graphmem.ingest.formats.tables import table_rows
from graphmem.ingest.formats.transcripts import transcript_turns
from graphmem.ingest.formats.whatsapp import date_order, whatsapp_turns
from graphmem.ingest.records import (
    TIME_NAMES,
    AmbiguousDate,
    date_numbers,
    other_fields,
    reason_of,
    renamed,
    to_triple,
    to_turn,
)
from graphmem.inputs import Document, Triple, Turn

__all__ = [
    "DATE_ORDERS",
    "FORMATS",
    "MAX_LINE_BYTES",
    "DateOrder",
    "Format",
    "Record",
    "Refused",
    "Source",
    "guess_format",
    "head_of",
    "open_source",
    "read_items",
    "read_triples",
]

Record = Turn | Document | Triple


def read_triples(source: Source, refused: Report) -> Iterator[Triple]:
    """Yield the triples of a source; report unreadable records to `refused`."""
    for line, value in _values(source, refused):
        left_out: set[str] = set()
        try:
            yield to_triple(value, source.zone, source.short_names, left_out)
        except InvalidInput as error:
            refused(Refused(source.name, line, reason_of(error)))
        source.left_out.update(left_out)


def read_items(source: Source, refused: Report) -> Iterator[Turn | Document]:
    """Yield the turns or documents of a source; report unreadable records to `refused`."""
    if reader := _READERS.get(source.format):
        yield from reader(source, refused)
        return
    repeats, no_messages = Counter[str](), Counter[str]()
    for line, value in _values(source, refused):
        try:
            parts = messages_of(value, source.stem, no_messages)
        except InvalidInput as error:
            refused(Refused(source.name, line, reason_of(error)))
            continue
        left_out: set[str] = set()
        for part in parts:
            try:
                yield _dated(source, part, repeats, left_out)
            except _NoOrder as error:
                refused(Refused(source.name, line, f"{error}; nothing after this line was read"))
                return
            except InvalidInput as error:
                reason = reason_of(error)
                if reason.startswith("text: ") and source.format != "csv" and (others := other_fields(part)):
                    reason += f"; --column text=NAME names the field that holds it, such as {named(others)}"
                refused(Refused(source.name, line, reason))
        source.left_out.update(left_out)
    source.note_left_out(no_messages)


class _NoOrder(InvalidInput):
    """Raised if the dates of a file leave open whether day or month comes first."""


def _dated(source: Source, part: dict[str, Any], repeats: Counter[str], left_out: set[str]) -> Turn | Document:
    """Return the item of a record; the first ambiguous date is read as all dates of the file allow."""
    read = partial(to_turn, part, source.zone, source.name, repeats, left_out, in_table=source.format == "csv")
    try:
        return read(source.date_order)
    except AmbiguousDate as error:
        source.date_order = _order_of(source, error)
    return read(source.date_order)


def _order_of(source: Source, unclear: AmbiguousDate) -> DateOrder:
    """Return the order of day and month that fits all times of a file; reads it once more.

    Raises
    ------
    _NoOrder
        If none or several fit, or it can't be read twice.
    """
    if source.path is None:
        raise _NoOrder(str(unclear))
    with open_source(source.path, form=source.format, columns=source.columns, encoding=source.encoding) as again:
        values = (cast("object", value) for _, value in _values(again, lambda _: None) if isinstance(value, dict))
        parts = (part for value in values for part in messages_of(value, source.stem, Counter()))
        times = (str(next((part[name] for name in TIME_NAMES if part.get(name)), "")) for part in parts)
        dates = {numbers for time in times if (numbers := date_numbers(time)) and numbers[1] != "."}
    found = sorted(date for date in dates if len(date[0]) <= 2)
    if not found:
        raise _NoOrder(str(unclear))
    try:
        return date_order(found)
    except InvalidInput as error:
        raise _NoOrder(str(error)) from None


def _values(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    """Yield the numbered values of a source; those with names have the names of the fields."""
    for line, value in _VALUES[source.format](source, refused):
        yield line, renamed(cast("dict[str, Any]", value), source.columns) if isinstance(value, dict) else value


_VALUES: Mapping[Format, Callable[[Source, Report], Iterator[tuple[int, object]]]] = {
    "turns": json_lines,
    "triples": json_lines,
    "json": json_records,
    "csv": table_rows,
}
_READERS: Mapping[Format, Callable[[Source, Report], Iterator[Turn | Document]]] = {
    "text": documents,
    "markdown": documents,
    "html": documents,
    "mbox": mails,
    "eml": mails,
    "ics": events,
    "vcf": contacts,
    "whatsapp": whatsapp_turns,
    "slack": slack_turns,
    "chatgpt": chatgpt_turns,
    "transcript": transcript_turns,
    "srt": subtitle_turns,
    "vtt": subtitle_turns,
}
