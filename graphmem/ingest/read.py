"""Readers of users' files: turns, triples, text and Markdown, one record at a time, never a whole file in memory.

A line that can't be read is handed to the caller as a `Refused` with its number and the reason; the others are kept.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

from graphmem.errors import InvalidInput
from graphmem.ingest.records import digest, is_three_texts, is_triple_header, messages_of, reason_of, to_triple, to_turn
from graphmem.ingest.split import front_matter_title, passages
from graphmem.inputs import Document, Triple, Turn
from graphmem.ontology import SHORT_NAMES

Format = Literal["turns", "triples", "csv", "text", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)
Record = Turn | Document | Triple

MAX_LINE_BYTES = 4 << 20
_LOOKED_AT = 20  # lines that a guess may look at
_MAX_ROW_LINES = 50  # of one CSV row with line breaks inside quotes

_SUFFIXES: Mapping[str, tuple[Format, ...]] = {
    ".jsonl": ("turns", "triples"),
    ".ndjson": ("turns", "triples"),
    ".csv": ("csv",),
    ".tsv": ("csv",),
    ".md": ("markdown",),
    ".markdown": ("markdown",),
    ".txt": ("text",),
    ".text": ("text",),
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that was not taken, and why."""

    source: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"


Report = Callable[[Refused], None]


@dataclass(slots=True)
class Source:
    """A file, or standard input, whose format is known and whose records can be read once.

    Attributes
    ----------
    name
        File name without folders; ``-`` for standard input.
    format
        What its lines are.
    size
        Bytes, or None where that isn't known.
    position
        Bytes read so far.
    """

    name: str
    format: Format
    size: int | None
    modified_at: datetime | None
    zone: tzinfo | None
    short_names: Collection[str]
    lines: Iterator[tuple[int, bytes]] = field(repr=False)
    position: int = 0

    @property
    def holds_triples(self) -> bool:
        """Whether the records are `Triple`; else they are `Turn` and `Document`."""
        return self.format in ("triples", "csv")

    def triples(self, refused: Report) -> Iterator[Triple]:
        """Yield the triples; what can't be read goes to `refused`."""
        rows = _csv_rows(self, refused) if self.format == "csv" else _json_lines(self, refused)
        for line, value in rows:
            try:
                yield to_triple(value, self.zone, self.short_names)
            except InvalidInput as error:
                refused(Refused(self.name, line, reason_of(error)))

    def items(self, refused: Report) -> Iterator[Turn | Document]:
        """Yield the turns or documents; what can't be read goes to `refused`."""
        if self.format != "turns":
            yield from _documents(self, refused)
            return
        for line, value in _json_lines(self, refused):
            try:
                parts = messages_of(value)
            except InvalidInput as error:
                refused(Refused(self.name, line, reason_of(error)))
                continue
            for number, part in enumerate(parts):
                place = f"{line}.{number}" if len(parts) > 1 else str(line)
                try:
                    yield to_turn(part, self.zone, self.name, place)
                except InvalidInput as error:
                    refused(Refused(self.name, line, reason_of(error)))


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files that these paths name; of a folder those of known kinds, in the order of their names.

    Hidden files and folders are left out, symbolic links to folders are not followed; ``-`` stays as it is.

    Raises
    ------
    InvalidInput
        If a path doesn't exist, or a folder holds no file of a known kind.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [p for p in _walk(path) if p.suffix.lower() in _SUFFIXES]
            if not inside:
                raise InvalidInput(f"{path}: no {', '.join(_SUFFIXES)} file in this folder")
            found += inside
        elif str(path) == "-" or path.exists():
            found.append(path)
        else:
            raise InvalidInput(f"{path}: there is no such file or folder")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(files) if not name.startswith("."))


@contextmanager
def open_source(
    path: str | Path,
    *,
    form: Format | None = None,
    zone: tzinfo | None = None,
    short_names: Collection[str] = SHORT_NAMES,
    stdin: IO[bytes] | None = None,
) -> Generator[Source]:
    """Open a file for reading its records.

    Parameters
    ----------
    path
        A file, or ``-`` for `stdin`.
    form
        What it holds; guessed from the suffix and the first lines where None.
    zone
        Time zone of times that state none; without it such a line is refused.
    short_names
        Canonical names of triples that may be shorter than three characters.
    stdin
        The stream that ``-`` stands for.

    Yields
    ------
    Source
        Valid inside the ``with`` block.

    Raises
    ------
    InvalidInput
        If the file can't be opened, or is nothing that can be read.
    """
    path = Path(path)
    if str(path) == "-":
        if stdin is None:
            raise InvalidInput("-: no standard input to read from")
        yield _source(Source("-", form or "text", None, None, zone, short_names, iter(())), stdin, guess=form is None)
        return
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    with stream:
        about = os.fstat(stream.fileno())
        modified_at = datetime.fromtimestamp(about.st_mtime, UTC)
        source = Source(path.name, form or "text", about.st_size, modified_at, zone, short_names, iter(()))
        yield _source(source, stream, guess=form is None)


def _source(source: Source, stream: IO[bytes], *, guess: bool) -> Source:
    lines = _read_lines(stream, source)
    head: list[tuple[int, bytes]] = []
    found: Format | None = None
    for numbered in lines:
        head.append(numbered)
        if numbered[0] == 1:
            _check_text(source.name, numbered[1])
        found = guess_format(source.name, numbered[1].decode("utf-8", "replace")) if guess else source.format
        if found is not None or len(head) == _LOOKED_AT:
            break
    source.format = found or _SUFFIXES.get(Path(source.name).suffix.lower(), ("turns" if head else "text",))[0]
    source.lines = chain(head, lines)
    return source


def _read_lines(stream: IO[bytes], source: Source) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        source.position += len(line)
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            # the reader of the line refuses it by its length; here the rest of it is passed over
            line = stream.readline(MAX_LINE_BYTES + 1)
            source.position += len(line)


def _check_text(name: str, line: bytes) -> None:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInput(f"{name}: is UTF-16; save it as UTF-8")
    if b"\0" in line:
        raise InvalidInput(f"{name}: is not a text file")


def guess_format(name: str, line: str) -> Format | None:
    """Return what a file holds, by its suffix and, where that leaves a choice, by a line of it.

    None if the line tells nothing.

    Raises
    ------
    InvalidInput
        If it is JSON, but not one record a line.
    """
    known = _SUFFIXES.get(Path(name).suffix.lower(), FORMATS)
    if len(known) == 1:
        return known[0]
    line = line.strip()
    if not line:
        return None
    if line[0] not in "{[":
        return None if known is not FORMATS else _guess_text(line)
    if line in ("{", "["):
        raise InvalidInput(f"{name}: is JSON over several lines; one record a line is needed (jq -c '.[]' makes that)")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        keys = {str(key).lower() for key in cast("dict[Any, Any]", value)}
        return "triples" if is_triple_header(list(keys)) else "turns"
    if is_three_texts(value):
        return "triples"
    raise InvalidInput(f"{name}: is a JSON array; one record a line is needed (jq -c '.[]' makes that)")


def _guess_text(line: str) -> Format:
    if is_triple_header(next(csv.reader([line], delimiter=_delimiter(line)))):
        return "csv"
    return "markdown" if re.match(r"#{1,6} \S", line) else "text"


# Lines ---------------------------------------------------------------------------------------------


def _texts(source: Source, refused: Report) -> Iterator[tuple[int, str]]:
    """Yield the lines that are UTF-8 of a bearable length."""
    for number, line in source.lines:
        if len(line) > MAX_LINE_BYTES:
            refused(Refused(source.name, number, f"longer than {MAX_LINE_BYTES >> 20} MiB"))
            continue
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as error:
            refused(Refused(source.name, number, f"not UTF-8 (byte 0x{line[error.start]:02x} at {error.start + 1})"))


def _json_lines(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    for number, line in _texts(source, refused):
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


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _split_row(lines: Sequence[str], delimiter: str) -> list[str] | None:
    """Return the fields of one row, or None if a quote is still open at its end."""
    try:
        return next(csv.reader(lines, delimiter=delimiter, strict=True), list[str]())
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return None
        raise InvalidInput(f"not CSV: {error}") from error


def _csv_rows(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    lines = _texts(source, refused)
    number, header = next(lines, (1, ""))
    delimiter = _delimiter(header)
    names = [name.strip().lower() for name in next(csv.reader([header.strip()], delimiter=delimiter), list[str]())]
    if not is_triple_header(names):
        reason = f"the header needs the columns subject, relation and object, found {', '.join(names)[:80] or 'none'}"
        refused(Refused(source.name, number, f"{reason}: nothing of this file was read"))
        return
    waiting: deque[tuple[int, str]] = deque()
    while first := waiting.popleft() if waiting else next(lines, None):
        number, text = first
        if not text.strip():
            continue
        taken = [text]
        try:
            while (row := _split_row(taken, delimiter)) is None:
                if len(taken) > len(waiting):
                    if len(taken) == _MAX_ROW_LINES or (more := next(lines, None)) is None:
                        raise InvalidInput("not CSV: a quote is not closed")
                    waiting.append(more)
                taken.append(waiting[len(taken) - 1][1])
            if len(row) != len(names):
                raise InvalidInput(f"{len(row)} fields, the header has {len(names)}")
        except InvalidInput as error:
            refused(Refused(source.name, number, reason_of(error)))
            continue  # the lines after an open quote are read again, each for itself
        for _ in taken[1:]:
            waiting.popleft()
        yield number, {name: cell.strip() for name, cell in zip(names, row, strict=True) if cell.strip()}


def _documents(source: Source, refused: Report) -> Iterator[Document]:
    lines = _texts(source, refused)
    root = Path(source.name).stem if source.name != "-" else None
    if source.format == "markdown":
        title, lines = front_matter_title(lines)
        root = title or root
    for passage in passages(lines, markdown=source.format == "markdown"):
        heading = " > ".join(passage.path) or root
        yield Document(
            text=passage.text,
            title=heading,
            occurred_at=source.modified_at,
            external_id=f"{source.name}:{digest(heading, passage.text)}",
            metadata={"file": source.name, "line": passage.line},
        )
