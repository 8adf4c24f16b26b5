"""Streaming readers of turns, triples, text and Markdown: one record at a time, never a whole file in memory.

An unreadable line is reported to the caller as a `Refused` with its number and the reason; reading continues.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.chats import date_order, subtitle_turns, whatsapp_turns
from graphmem.ingest.formats.documents import html_lines, mails
from graphmem.ingest.formats.exports import messages_of
from graphmem.ingest.formats.json_files import chatgpt_turns, records, slack_turns
from graphmem.ingest.formats.source import (
    DATE_ORDERS,
    FORMATS,
    MAX_LINE_BYTES,
    SUFFIXES,
    CountedStream,
    DateOrder,
    File,
    Format,
    Recoded,
    Refused,
    Report,
    Source,
    delimiter_of,
    first_json,
    guess_format,
    header_of,
    is_other_encoding,
    is_separator_line,
    is_triple,
    modified_at,
    name_in,
    named,
    open_binary,
    read_some,
    require_text,
    size_of,
)
from graphmem.ingest.formats.transcripts import transcript_turns
from graphmem.ingest.records import (
    TIME_NAMES,
    AmbiguousDate,
    column_names,
    date_numbers,
    digest,
    is_triple_header,
    is_turn_header,
    other_fields,
    read_time,
    reason_of,
    renamed,
    to_triple,
    to_turn,
)
from graphmem.inputs import Document, Triple, Turn
from graphmem.ontology import SHORT_NAMES

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

_HEAD_BYTES = 256 << 10  # available for guessing the format
_OWN_ENCODINGS = ("mbox", "eml", "html")
_WHEN = re.compile(r"(?:date|time|[_ ]at)$")
_NOT_WHEN = re.compile(r"birth|due|end|expir|until|deadline|clos|delet|renew|valid")
_MAX_ROW_LINES = 50  # of one CSV row with line breaks inside quotes


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


@contextmanager
def open_source(
    path: str | File,
    *,
    name: str | None = None,
    form: Format | None = None,
    zone: tzinfo | None = None,
    short_names: Collection[str] = SHORT_NAMES,
    date_order: DateOrder | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    stdin: IO[bytes] | None = None,
) -> Generator[Source]:
    """Open a file for reading its records.

    Parameters
    ----------
    path
        A file, on disk or in an archive, or ``-`` for `stdin`.
    name
        Name of the file for ids, sessions and messages; None takes that of `name_in`.
    form
        Format of the file; None guesses it from the suffix and the beginning.
    zone
        Time zone of times without one; if it is None, such lines are refused.
    short_names
        Canonical names of triples that may be shorter than three characters.
    date_order
        Order of day, month and year in a WhatsApp export with ambiguous dates.
    columns, encoding
        As in `FileOptions`.
    stdin
        The stream read for ``-``.

    Yields
    ------
    Source
        Valid inside the ``with`` block.

    Raises
    ------
    InvalidInput
        If the file can't be opened or has no readable format; the message describes the content found.
    """
    path = Path(path) if isinstance(path, str) else path
    make = partial(
        Source,
        format=form or "text",
        zone=zone,
        short_names=short_names,
        date_order=date_order,
        columns=columns or {},
        encoding=encoding,
    )
    if str(path) == "-":
        if stdin is None:
            raise InvalidInput("-: no standard input to read from")
        stream = cast("IO[bytes]", Recoded(stdin, encoding)) if encoding else stdin
        yield _opened(make(name="-", size=None, modified_at=None), stream, guess=form is None)
        return
    try:
        stream = open_binary(path)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    with stream:
        name = name or name_in(path)
        source = make(name=name, size=size_of(path), modified_at=modified_at(path, zone or UTC), path=path)
        coded = BufferedReader(Recoded(stream, encoding)) if encoding else stream
        yield _opened(source, coded, guess=form is None)


def head_of(file: File) -> str:
    """Return the beginning of a file, from which its format is detected."""
    with open_binary(file) as stream:
        return _text_of(stream.read(_HEAD_BYTES))


def _opened(source: Source, stream: IO[bytes], *, guess: bool) -> Source:
    head = stream.read(_HEAD_BYTES) if source.size is not None else _first_of(stream)
    require_text(source.name, head)
    text = _text_of(head)
    if guess:
        fallback = SUFFIXES.get(Path(source.name).suffix.lower(), ("turns" if text.strip() else "text",))[0]
        try:
            source.format = guess_format(source.name, text) or fallback
        except InvalidInput:
            if not source.columns:
                raise
            source.format = fallback  # each record tells whether it has the columns
    is_checked = source.encoding is None and source.format not in _OWN_ENCODINGS
    if is_checked and source.path is not None and is_other_encoding(source.path):
        raise InvalidInput(f"{source.name}: is not UTF-8; save it as UTF-8, or pass its encoding: --encoding cp1252")
    lines = iter(re.split(r"\r\n|\r|\n", text, maxsplit=2) if source.format == "csv" else [])
    header = _fields(source, _header(_header_line(lines)))
    source.holds_triples = (
        source.format == "triples"
        or (source.format == "csv" and (is_triple_header(header) or not is_turn_header(header)))
        or (source.format == "json" and is_triple(first_json(text)))
    )
    source.stream = BufferedReader(CountedStream(head, stream, source))
    return source


def _first_of(stream: IO[bytes]) -> bytes:
    """Return the data received on standard input so far, at least one line; the writer may pause after it."""
    head = b""
    while len(head) < _HEAD_BYTES and b"\n" not in head.lstrip():
        if not (more := read_some(stream, _HEAD_BYTES - len(head))):
            break
        head += more
    return head


def _text_of(head: bytes) -> str:
    return head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


# Lines --------------------------------------------------------------------------------------------


def _json_lines(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    for number, line in source.texts(refused):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            refused(Refused(source.name, number, f"not JSON: {error.msg} at column {error.colno}"))
        except (ValueError, RecursionError) as error:
            refused(Refused(source.name, number, f"not JSON: {error}"))


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _header_line(lines: Iterator[str]) -> str:
    """Return the first line that isn't the note of Excel on the delimiter."""
    return next((line for line in lines if not is_separator_line(line)), "")


def _header(line: str) -> list[str]:
    """Return the columns of a header in lower case; none if it isn't CSV."""
    try:
        return header_of(line)
    except csv.Error:
        return []


def _fields(source: Source, names: Sequence[str]) -> list[str]:
    """Return the names of columns, renamed to the fields that they hold."""
    return list(renamed(dict(zip(names, names, strict=True)), source.columns))


def _split_row(lines: Sequence[str], delimiter: str) -> list[str] | None:
    """Return the fields of one row, or None if a quote is still open at its end."""
    try:
        return next(csv.reader(lines, delimiter=delimiter, strict=True), list[str]())
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return None
        raise InvalidInput(f"not CSV: {error}") from error


def _csv_rows(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    lines = source.texts(refused)
    number, header = next(lines, (1, ""))
    if is_separator_line(header):
        number, header = next(lines, (2, ""))
    delimiter, names = delimiter_of(header), _header(header)
    fields = _fields(source, names)
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
    while first := waiting.popleft() if waiting else next(lines, None):
        number, text = first
        if not text.strip():
            continue
        row_lines = [text]
        try:
            while (row := _split_row(row_lines, delimiter)) is None:
                if len(row_lines) > len(waiting):
                    if len(row_lines) == _MAX_ROW_LINES or (more := next(lines, None)) is None:
                        raise InvalidInput("not CSV: a quote is not closed")
                    waiting.append(more)
                row_lines.append(waiting[len(row_lines) - 1][1])
            if len(row) != len(names):
                raise InvalidInput(f"{len(row)} fields, the header has {len(names)}")
        except InvalidInput as error:
            refused(Refused(source.name, number, reason_of(error)))
            continue  # the lines after an open quote are parsed again, one by one
        for _ in row_lines[1:]:
            waiting.popleft()
        yield number, _record(names, row)


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
            rows = (cast("dict[str, str]", row) for _, row in _csv_rows(again, lambda _: None))
            times = (read_time(column, row[column], source.zone, source.date_order) for row in rows if column in row)
            return max(times, default=datetime.max.replace(tzinfo=UTC)) <= datetime.now(UTC)
    except InvalidInput:
        return False


def _documents(source: Source, refused: Report) -> Iterator[Document]:
    root, dated = source.stem and PurePosixPath(source.stem).name, None
    if source.format == "html":
        try:
            title, lines = html_lines(source)
        except InvalidInput as error:
            refused(Refused(source.name, 1, str(error)))
            return
    else:
        lines = source.texts(refused)
        if source.format == "markdown":
            title, dated, lines = front_matter(lines)
        else:
            title = None
    root, at = title or root, source.dated(dated)
    for passage in passages(lines, markdown=source.format != "text"):
        heading = " > ".join(passage.path) or root
        yield Document(
            text=passage.text,
            title=heading,
            occurred_at=at,
            external_id=f"{source.name}:{digest(heading, passage.text)}",
            metadata={"file": source.name, "line": passage.line},
        )


def _values(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    """Yield the numbered values of a source; those with names have the names of the fields."""
    for line, value in _VALUES[source.format](source, refused):
        yield line, renamed(cast("dict[str, Any]", value), source.columns) if isinstance(value, dict) else value


_VALUES: Mapping[Format, Callable[[Source, Report], Iterator[tuple[int, object]]]] = {
    "turns": _json_lines,
    "triples": _json_lines,
    "json": records,
    "csv": _csv_rows,
}
_READERS: Mapping[Format, Callable[[Source, Report], Iterator[Turn | Document]]] = {
    "text": _documents,
    "markdown": _documents,
    "html": _documents,
    "mbox": mails,
    "eml": mails,
    "whatsapp": whatsapp_turns,
    "slack": slack_turns,
    "chatgpt": chatgpt_turns,
    "transcript": transcript_turns,
    "srt": subtitle_turns,
    "vtt": subtitle_turns,
}


# Passages -----------------------------------------------------------------------------------------


_LIMIT = 2000  # characters of a passage

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(?=[^ \t])")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|(-{2,}))[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*\s")
_FRONT_MATTER_LINES = 100
_FEW_LINES = 3


@dataclass(frozen=True, slots=True)
class Passage:
    """A section of a text: its headings (outermost first), its words, and the number of its first line."""

    path: tuple[str, ...]
    text: str
    line: int


def passages(lines: Iterator[tuple[int, str]], *, markdown: bool = False) -> Iterator[Passage]:
    """Split lines into passages of at most 2,000 characters, at paragraphs where possible.

    A longer paragraph is split at the end of a sentence, else at a space; code, tables and logs at the end of a line. A
    code block that fits into a passage stays together.

    Parameters
    ----------
    lines
        (line number, text) in order.
    markdown
        Whether headings (``#`` and underlined) end a passage and become the path of the next ones.

    Yields
    ------
    Passage
        In the order of the text, stripped of surrounding white space; empty passages are omitted.
    """
    holder = _Holder()
    headings: list[tuple[int, str]] = []
    fence = ""
    for number, line in lines:
        text = line.rstrip()
        if markdown and not fence and (found := _heading(text, holder)):
            yield from holder.drain()
            headings = [known for known in headings if known[0] < found[0]] + [found]
            holder.path = tuple(name for _, name in headings)
            continue
        before = fence
        if markdown:
            fence = _fence_after(text, fence)
            if fence and not before:
                holder.begin_block()
        if (not text and not fence) or (markdown and not fence and _RULE.match(text)):
            yield from holder.end_paragraph()
        else:
            yield from holder.add_line(number, text, in_code=bool(fence or before))
    yield from holder.drain()


def _heading(text: str, holder: _Holder) -> tuple[int, str] | None:
    if match := _HEADING.match(text):
        title = text[match.end() :].rstrip(" \t")
        before = title.rstrip("#")  # "# Title ##"
        return len(match[1]), before.rstrip(" \t") if before.endswith((" ", "\t")) else title
    if (match := _UNDERLINE.match(text)) and (name := holder.take_only_line()):
        return (1 if match[1] else 2), name
    return None


def _fence_after(text: str, fence: str) -> str:
    """Return the fence of the code block that is open after this line, or an empty string."""
    match = _FENCE.match(text)
    if match is None:
        return fence
    if not fence:
        return match[1]
    closes = match[1].startswith(fence) and not text.strip().strip(fence[0])
    return "" if closes else fence


class _Holder:
    """Buffer of the paragraphs of the current passage and of the current paragraph."""

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self._done: list[str] = []
        self._done_size = 0
        self._done_line = 0
        self._lines: list[str] = []
        self._size = 0
        self._line = 0
        self._block = 0  # where a code block begins in the current paragraph

    def take_only_line(self) -> str:
        """Remove and return the current paragraph if it has exactly one line, else return an empty string."""
        if len(self._lines) != 1:
            return ""
        (text,) = self._lines
        self._lines, self._size = [], 0
        return text.strip()

    def begin_block(self) -> None:
        """Note that the next line begins a code block."""
        self._block = self._size

    def add_line(self, number: int, text: str, *, in_code: bool = False) -> Iterator[Passage]:
        if not self._lines:
            self._line = number
        self._lines.append(text)
        self._size += len(text) + 1
        if self._size <= _LIMIT:
            return
        yield from self._emit()
        rest = "\n".join(self._lines)
        while len(rest) > _LIMIT:
            cut = self._block or _cut(rest, by_line=in_code or _is_by_line(rest[:_LIMIT]))
            yield Passage(self.path, rest[:cut].strip(), self._line)
            self._line += rest.count("\n", 0, cut)
            rest, self._block = rest[cut:].lstrip(), 0
        self._lines, self._size = ([rest], len(rest) + 1) if rest else ([], 0)

    def end_paragraph(self) -> Iterator[Passage]:
        if not self._lines:
            return
        if self._done and self._done_size + self._size > _LIMIT:
            yield from self._emit()
        if not self._done:
            self._done_line = self._line
        self._done.append("\n".join(self._lines))
        self._done_size += self._size + 1
        self._lines, self._size, self._block = [], 0, 0

    def drain(self) -> Iterator[Passage]:
        yield from self.end_paragraph()
        yield from self._emit()

    def _emit(self) -> Iterator[Passage]:
        text = "\n\n".join(self._done).strip()
        self._done, self._done_size = [], 0
        if text:
            yield Passage(self.path, text, self._done_line)


def _is_by_line(text: str) -> bool:
    """Return whether the lines of a text are rows of a table or a log: few begin with a small letter, as prose does."""
    lines = text.split("\n")
    wrapped = sum(line[:1].isalpha() and not line[:1].isupper() for line in lines)
    return len(lines) > _FEW_LINES and wrapped * 4 < len(lines)


def _cut(text: str, *, by_line: bool) -> int:
    """Return the split position of a long text: after a line or sentence in the second half of it, else at a space."""
    if by_line and (end := text.rfind("\n", _LIMIT // 2, _LIMIT)) > 0:
        return end + 1
    ends = [match.end() for match in _SENTENCE_END.finditer(text, _LIMIT // 2, _LIMIT)]
    if ends:
        return ends[-1]
    space = max(text.rfind(" ", _LIMIT // 2, _LIMIT), text.rfind("\n", _LIMIT // 2, _LIMIT))
    return space + 1 if space > 0 else _LIMIT


_Lines = Iterator[tuple[int, str]]
_DATE = re.compile(
    r"date:\s*[\"'\[]*(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z| ?[+-]\d\d:?\d\d)?)?)",
    re.IGNORECASE,
)


def front_matter(lines: _Lines) -> tuple[str | None, str | None, _Lines]:
    """Skip YAML front matter between ``---`` lines; return its title, its date or time, and the remaining lines."""
    head: list[tuple[int, str]] = []
    title = dated = None
    for number, line in lines:
        head.append((number, line))
        text = line.strip()
        if len(head) == 1 and text != "---":
            break
        if len(head) > 1 and text in ("---", "..."):
            return title, dated, lines
        if match := re.match(r"title:\s*(.+)", text):
            title = match[1].strip("\"' ") or None
        elif match := _DATE.match(text):
            dated = match[1]
        if len(head) == _FRONT_MATTER_LINES:
            break
    return None, None, chain(head, lines)
