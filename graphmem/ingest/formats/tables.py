"""Tables in CSV: rows as records, and what of their columns is read."""

from __future__ import annotations

import csv
import re
import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import count
from typing import cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.detection import delimiter_of, header_of, is_separator_line, named
from graphmem.ingest.formats.opening import fields_of, open_source
from graphmem.ingest.formats.source import MAX_LINE_BYTES, Refused, Report, Source
from graphmem.ingest.records import (
    TIME_NAMES,
    column_names,
    is_triple_header,
    is_turn_header,
    other_fields,
    read_time,
    reason_of,
)

_WHEN = re.compile(r"(?:date|time|[_ ]at)$")
_NOT_WHEN = re.compile(r"birth|due|end|expir|until|deadline|clos|delet|renew|valid")
_FEW_LINES = 50  # lines of a row that are each tried as its last one; of later lines only those that change quoting
_MAX_TRIES = 60  # to end a row
_limit_lock = threading.Lock()


def table_rows(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    """Yield the numbered rows of a table as records of their cells; report unreadable ones to `refused`."""
    lines = source.texts(refused)
    number, header = next(lines, (1, ""))
    if is_separator_line(header):
        number, header = next(lines, (2, ""))
    delimiter, names = delimiter_of(header), header_of(header)
    fields = fields_of(source, names)
    given = [name for columns in source.columns.values() for name in column_names(columns, names)]
    if missing := [name for name in given if name not in names]:
        reason = f"no column {missing[0]!r} in the header, which has {named(names)}"
    elif not is_triple_header(fields) and not is_turn_header(fields):
        reason = (
            "triples need the columns subject, relation and object, a chat needs text, content, message or body "
            f"(--column text=NAME names the column); the header has {named(fields)}"
        )
    else:
        reason = ""
    if reason:
        refused(Refused(source.name, number, f"{reason}; the file was not read"))
        return
    if not source.holds_triples:
        _note_columns(source, fields)
    waiting: deque[tuple[int, str]] = deque()
    read_again = 0  # number of the last line after a long row that wasn't one
    while first := waiting.popleft() if waiting else next(lines, None):
        number, text = first
        if not text.strip():
            continue
        row_lines = [text]
        try:
            row = _read_row(row_lines, _look_ahead(waiting, lines), delimiter, is_known=number <= read_again)
            if len(row) != len(names):
                raise InvalidInput(f"{len(row)} fields, the header has {len(names)}")
        except InvalidInput as error:
            refused(Refused(source.name, number, reason_of(error)))
            if len(row_lines) > _FEW_LINES:
                read_again = max(read_again, waiting[len(row_lines) - 2][0])
            continue  # the lines after an open quote are parsed again, one by one
        for _ in row_lines[1:]:
            waiting.popleft()
        yield number, _record(names, row)


def _look_ahead(waiting: deque[tuple[int, str]], lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Yield the waiting lines and then those of the file, which wait from then on."""
    for place in count():
        if place == len(waiting):
            if (more := next(lines, None)) is None:
                return
            waiting.append(more)
        yield waiting[place][1]


def _read_row(row_lines: list[str], ahead: Iterator[str], delimiter: str, *, is_known: bool) -> list[str]:
    """Return the fields of a row whose first line is given; its other lines are added to the list.

    Raises
    ------
    InvalidInput
        If the line begins no row of a table. Lines that were tried as a part of it are in the list.
    """
    for tries, _ in enumerate(_ends(row_lines, ahead, is_known=is_known), 1):
        if (row := _split_row(row_lines, delimiter)) is not None:
            return row
        if tries == _MAX_TRIES:
            break
    raise InvalidInput("not CSV: a quote is not closed")


def _ends(row_lines: list[str], ahead: Iterator[str], *, is_known: bool) -> Iterator[None]:
    """Add lines to a row one by one, and yield where it may end.

    A long row ends only with a line that changes quoting. One whose lines are known from a longer row that wasn't one
    isn't long.
    """
    size = len(row_lines[0])
    yield
    while size <= MAX_LINE_BYTES:
        is_long = len(row_lines) >= _FEW_LINES
        if (is_long and is_known) or (line := next(ahead, None)) is None:
            return
        row_lines.append(line)
        size += len(line)
        if not is_long or line.count('"') % 2 == 1:
            yield


def _split_row(lines: Sequence[str], delimiter: str) -> list[str] | None:
    """Return the fields of one row, or None if a quote is still open at its end."""
    try:
        with _long_fields() if sum(map(len, lines)) > csv.field_size_limit() else nullcontext():
            return next(csv.reader(lines, delimiter=delimiter, strict=True), list[str]())
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return None
        raise InvalidInput(f"not CSV: {error}") from error


@contextmanager
def _long_fields() -> Generator[None]:
    """Let a row have fields of any length in the block; the limit of `csv` is one for the whole process."""
    with _limit_lock:
        limit = csv.field_size_limit(2 * MAX_LINE_BYTES)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def _record(names: Sequence[str], row: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row that aren't empty; several under the same name become lines of one text."""
    cells: dict[str, list[str]] = {}
    for name, cell in zip(names, map(str.strip, row), strict=True):
        if cell:
            cells.setdefault(name, []).append(cell)
    return {name: "\n".join(lines) for name, lines in cells.items()}


def _note_columns(source: Source, fields: Sequence[str]) -> None:
    """Note which columns of a table of turns aren't searched, and by what its rows are dated."""
    joined = {name for columns in source.columns.values() for name in column_names(columns, fields)}
    others = [name for name in other_fields(fields) if name not in joined]
    if not any(name in TIME_NAMES for name in fields):
        times = [name for name in others if _WHEN.search(name)]
        dated = {**source.columns, "occurred_at": times[0]} if len(times) == 1 else {}
        if dated and not _NOT_WHEN.search(times[0]) and _are_past_times(source, times[0], dated):
            source.columns = dated
            others.remove(times[0])
            source.notes.append(f"dated by the column {times[0]}; --column occurred_at=NAME names another")
        else:
            seen = f" (such as {named(times)})" if times else ""
            hint = f"--column occurred_at=NAME names the column of their time{seen}"
            source.notes.append(f"rows without a time are dated by this load; {hint}")
    if others := [name for name in others if name != "id"]:
        text = source.columns.get("text") or next((name for name in fields if is_turn_header([name])), "text")
        hint = f"--column text={','.join((*others[:3], text))} makes columns a part of the text"
        source.notes.append(f"metadata that isn't searched: {named(others)}; {hint}")


def _are_past_times(source: Source, column: str, columns: Mapping[str, str]) -> bool:
    """Return whether a file has past times in all cells of a column that aren't empty; reads it once more."""
    if source.path is None or not source.path.is_file():
        return False
    try:
        with open_source(source.path, form="csv", zone=source.zone, columns=columns, encoding=source.encoding) as again:
            rows = (cast("dict[str, str]", row) for _, row in table_rows(again, lambda _: None))
            times = (read_time(column, row[column], source.zone, source.date_order) for row in rows if column in row)
            return max(times, default=datetime.max.replace(tzinfo=UTC)) <= datetime.now(UTC)
    except InvalidInput:
        return False
