"""An open file: its lines, its bytes, and what isn't taken from it."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import IO, Any, Literal, get_args

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.archive import File

Format = Literal[
    "turns", "triples", "json", "csv", "text", "markdown", "html",
    "mbox", "eml", "whatsapp", "slack", "chatgpt", "srt", "vtt",
]  # fmt: skip
FORMATS: tuple[Format, ...] = get_args(Format)
DateOrder = Literal["dmy", "mdy", "ymd"]
DATE_ORDERS: tuple[DateOrder, ...] = get_args(DateOrder)

MAX_LINE_BYTES = 4 << 20
MAX_RECORD_BYTES = 64 << 20
"""Of a mail with its attachments, a conversation in JSON, or a page of HTML: these are read as a whole."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A line or record that was not taken, and why."""

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
        What it holds.
    size
        Bytes, or None where that isn't known.
    holds_triples
        Whether the records are `Triple`; else they are `Turn` and `Document`.
    date_order
        Order of day, month and year in dates such as 1/2/24; None where the file has to tell.
    columns
        The field of a turn that a column of a CSV file holds, by the name of the column in lower case.
    position
        Bytes read so far.
    """

    name: str
    format: Format
    size: int | None
    modified_at: datetime | None
    zone: tzinfo | None
    short_names: Collection[str]
    path: File | None = None
    holds_triples: bool = False
    date_order: DateOrder | None = None
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    stream: IO[bytes] = field(default_factory=io.BytesIO, repr=False)
    position: int = 0

    @property
    def stem(self) -> str | None:
        """The file name without its suffix; None of standard input."""
        return Path(self.name).stem if self.name != "-" else None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield lines with their numbers; of one that is too long the first bytes, one more than are allowed."""
        number = 0
        while line := self.stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                line = self.stream.readline(MAX_LINE_BYTES + 1)  # the rest of it is passed over

    def texts(self, refused: Report) -> Iterator[tuple[int, str]]:
        """Yield the lines that are UTF-8 of a bearable length; the others go to `refused`."""
        for number, line in self.lines():
            if len(line) > MAX_LINE_BYTES:
                refused(Refused(self.name, number, f"longer than {MAX_LINE_BYTES >> 20} MiB"))
                continue
            try:
                yield number, line.decode("utf-8")
            except UnicodeDecodeError as error:
                reason = f"not UTF-8 (byte 0x{line[error.start]:02x} at {error.start + 1})"
                refused(Refused(self.name, number, reason))

    def require_zone(self, kind: str) -> tzinfo:
        """Return the zone of times that state none.

        Raises
        ------
        InvalidInput
            If none was given.
        """
        if self.zone is None:
            raise InvalidInput(f"times of {kind} have no time zone; pass --timezone Europe/Berlin")
        return self.zone


def read_some(stream: IO[bytes], size: int) -> bytes:
    """Return at most `size` bytes as soon as there are any; none at the end."""
    return getattr(stream, "read1", stream.read)(size)


class CountedStream(io.RawIOBase):
    """A stream whose first bytes were looked at already; it counts what is read as the source's position."""

    def __init__(self, head: bytes, stream: IO[bytes], source: Source) -> None:
        self._head = io.BytesIO(head)
        self._stream = stream
        self._source = source

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, first with what was looked at."""
        data = self._head.read(len(buffer)) or read_some(self._stream, len(buffer))
        buffer[: len(data)] = data
        self._source.position += len(data)
        return len(data)
