"""Open input file: lines, position, and refused records."""

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
"""Maximum size of a mail with attachments, a JSON conversation, or an HTML page, which are read as a whole."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Line or record that was not loaded, with the reason."""

    source: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"


Report = Callable[[Refused], None]


@dataclass(slots=True)
class Source:
    """File or standard input of a known format, whose records can be read once.

    Attributes
    ----------
    name
        File name without folders; ``-`` for standard input.
    format
        Format of the file.
    size
        Size in bytes, or None if unknown.
    holds_triples
        Whether the records are `Triple` rather than `Turn` and `Document`.
    date_order
        Order of day, month and year in dates such as 1/2/24; None infers it from the file.
    columns
        Lower-case name of a CSV column → field of a turn that it holds.
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
        """File name without its suffix; None for standard input."""
        return Path(self.name).stem if self.name != "-" else None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield numbered lines; a line above `MAX_LINE_BYTES` is cut to one byte more than the limit."""
        number = 0
        while line := self.stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                line = self.stream.readline(MAX_LINE_BYTES + 1)  # skip the rest of the line

    def texts(self, refused: Report) -> Iterator[tuple[int, str]]:
        """Yield the numbered lines as text; report lines that are too long or not UTF-8 to `refused`."""
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
        """Return the zone for times without one.

        Raises
        ------
        InvalidInput
            If no zone was given.
        """
        if self.zone is None:
            raise InvalidInput(f"times of {kind} have no time zone; pass --timezone Europe/Berlin")
        return self.zone


def read_some(stream: IO[bytes], size: int) -> bytes:
    """Return at most `size` bytes as soon as any are available; an empty value at the end."""
    return getattr(stream, "read1", stream.read)(size)


class CountedStream(io.RawIOBase):
    """Stream with an already consumed head; it counts the bytes read in the position of the source."""

    def __init__(self, head: bytes, stream: IO[bytes], source: Source) -> None:
        self._head = io.BytesIO(head)
        self._stream = stream
        self._source = source

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, first from the consumed head."""
        data = self._head.read(len(buffer)) or read_some(self._stream, len(buffer))
        buffer[: len(data)] = data
        self._source.position += len(data)
        return len(data)
