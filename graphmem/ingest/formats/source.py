"""Open files: format, numbered lines, position, date, and refused records."""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import PurePosixPath
from typing import IO, Any, Literal, get_args

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.archives import CHUNK_BYTES, File
from graphmem.ingest.formats.datelines import date_of
from graphmem.inputs import Triple
from graphmem.messages import digest
from graphmem.text.date_patterns import A_MONTH, MONTHS
from graphmem.text.dates import DateSpan, find_dates

Format = Literal[
    "turns", "triples", "json", "csv", "text", "markdown", "html",
    "mbox", "eml", "ics", "vcf", "whatsapp", "slack", "chatgpt", "transcript", "srt", "vtt",
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
DatedBy = Literal["front matter", "name", "text", "modification time"]
_DAY_IN_NAME = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)([-_. ]?)(?P<month>0[1-9]|1[0-2])\2(?P<day>0[1-9]|[12]\d|3[01])(?!\d)"
)
_MONTH_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.](0[1-9]|1[0-2])(?![-_.]?\d)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_MONTH = re.compile(rf"\b{A_MONTH.pattern}(?!\w)", re.IGNORECASE)
_DAY_LENGTH = 10
_MAX_KINDS = 20  # of left out entries in a note


@dataclass(slots=True)
class Source:
    """File or standard input of a known format, whose records can be read once.

    Attributes
    ----------
    name
        File name, with the folders inside the loaded folder or archive; ``-`` for standard input.
    format
        Format of the file.
    size
        Size in bytes, or None if unknown.
    path
        The file, if it can be read again.
    holds_triples
        Whether the records are `Triple` rather than `Turn` and `Document`.
    date_order
        Order of day, month and year in dates such as 1/2/24; None infers it from the file.
    columns
        Field of a turn → name of the CSV column or JSON field that holds it, or several with commas between them.
    encoding
        Encoding that was given; None is UTF-8. Of mail and pages, that of those that state none.
    left_out
        Nested field that isn't stored → number of records that have it.
    notes
        How the columns of a table were read, and what of a chat export is no message.
    dated_by
        What dates its text, if that is the file: see `dated`.
    facts
        Ready-made facts of the items read so far, whose `source` they name.
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
    encoding: str | None = None
    left_out: Counter[str] = field(default_factory=Counter[str])
    notes: list[str] = field(default_factory=list[str])
    dated_by: DatedBy | None = None
    facts: list[Triple] = field(default_factory=list[Triple])
    stream: IO[bytes] = field(default_factory=io.BytesIO, repr=False)
    position: int = 0

    @property
    def stem(self) -> str | None:
        """Name without its suffix; None for standard input."""
        return self.name.removesuffix(PurePosixPath(self.name).suffix) if self.name != "-" else None

    def note_left_out(self, counts: Mapping[str, int]) -> None:
        """Add a note with the numbers of entries by kind that are no messages, if there are any."""
        kinds = [f"{kind} ({count:,})" for kind, count in counts.items() if count]
        if kinds:
            self.notes.append("left out: " + ", ".join(kinds[:_MAX_KINDS]))

    def dated(self, stated: str | None = None, head: Sequence[str] = ()) -> datetime | None:
        """Return the time of a text that the file dates, and note in `dated_by` what it is.

        It is a time stated in the file, the day in its name, the day that its first lines give as theirs, or else its
        modification time. A stated time without an offset or a zone is its day.
        """
        if stated is not None and (found := _time_of(stated, self.zone)):
            self.dated_by = "front matter"
            return found
        if found := self._day_in_name():
            self.dated_by = "name"
            return found
        if (found := date_of(head, self._latest)) is not None and not self._is_late(found):
            self.dated_by = "text"
            return found
        self.dated_by = None if self.modified_at is None else "modification time"
        return self.modified_at

    def _day_in_name(self) -> datetime | None:
        """Return the only day that the file name has, unless it lies after the modification: then it is the subject.

        "March 2025" is the last day of that month, or the modification if that was earlier in the month.
        """
        name = PurePosixPath(self.name).name
        days = {"-".join(found.group("year", "month", "day")) for found in _DAY_IN_NAME.finditer(name)}
        found = _time_of(days.pop(), self.zone) if len(days) == 1 else None
        if found is None and not days and (span := self._date_in_words(name)) is not None:
            begin, last = span.begin, span.until - timedelta(days=1)
            found = max(begin, min(last, self._latest))
        return None if found is None or self._is_late(found) else found

    @property
    def _latest(self) -> datetime:
        """Time until which its text may have been written: its modification, or the present for standard input."""
        return self.modified_at or datetime.now(self.zone or UTC)

    def _is_late(self, day: datetime) -> bool:
        return day > self._latest + timedelta(days=1)

    def _date_in_words(self, name: str) -> DateSpan | None:
        """Return the only day or month with a year that a file name has, in words or as 2025-10; else None."""
        stem = name.removesuffix(PurePosixPath(name).suffix)
        words = _MONTH_IN_NAME.sub(lambda found: f" {MONTHS[int(found[2]) - 1]} {found[1]} ", stem)
        words = re.sub(r"[._-]", " ", words)
        if len(_MONTH.findall(words)) != 1:
            return None
        spans = find_dates(words, self._latest)
        found = [span for span in spans if span.grain in ("day", "month") and any(map(str.isalpha, span.text))]
        return found[0] if len(found) == 1 and _YEAR.search(found[0].text) else None

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

    def id_from(self, *content: object) -> str:
        """Return the external id of an item that states none: the name of the file, and a digest of its content."""
        return f"{self.name}:{digest(*content)}"

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


def shown_day(day: date) -> str:
    """Return a day as it is said, such as 4 May 1988."""
    return f"{day.day} {MONTHS[day.month - 1].capitalize()} {day.year:04}"


def _time_of(text: str, zone: tzinfo | None) -> datetime | None:
    """Return a time in ISO 8601, or its day if it has neither an offset nor a zone; None if it is no time."""
    try:
        found = datetime.fromisoformat(re.sub(r" (?=[+-])", "", text))
        found.astimezone(UTC)  # raises if the result is before the year 1
    except (ValueError, OverflowError):
        return None
    if len(text) > _DAY_LENGTH and found.tzinfo is None and zone is None:
        found = datetime(found.year, found.month, found.day)  # noqa: DTZ001 - it gets one below
    return found if found.tzinfo is not None else found.replace(tzinfo=zone or UTC)


def read_some(stream: IO[bytes], size: int) -> bytes:
    """Return at most `size` bytes as soon as any are available; an empty value at the end."""
    return getattr(stream, "read1", stream.read)(size)


def decoded(data: bytes, stated: str | None, encoding: str | None) -> str:
    """Return the text of a page or of a part of a mail.

    Parameters
    ----------
    stated
        The encoding that it states.
    encoding
        The encoding of those that state none or an unknown one. Without one, these are UTF-8 or, if nothing beyond
        ASCII in it is UTF-8, cp1252, as in browsers.
    """
    for name in (stated, encoding):
        if name and name.lower() not in ("ascii", "us-ascii"):  # stated by default
            with suppress(LookupError):
                return data.decode(name, "replace")
    is_other = not data.isascii() and data.decode("utf-8", "ignore").isascii()
    return data.decode("cp1252" if is_other else "utf-8-sig", "replace")


class CountedStream(io.RawIOBase):
    """Stream with an already consumed head; it counts the bytes read in the position of the source.

    Of a file whose lines end with carriage returns alone, these are line feeds.
    """

    def __init__(self, head: bytes, stream: IO[bytes], source: Source) -> None:
        self._has_cr_only = b"\r" in head and b"\n" not in head
        self._head = io.BytesIO(head)
        self._stream = stream
        self._source = source

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, first from the consumed head."""
        data = self._head.read(len(buffer)) or read_some(self._stream, len(buffer))
        buffer[: len(data)] = data.replace(b"\r", b"\n") if self._has_cr_only else data
        self._source.position += len(data)
        return len(data)


class Recoded(io.RawIOBase):
    """Stream of the bytes in UTF-8 of a stream in another encoding; raises `InvalidInput` if it is in a third one."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding
        self._decode = codecs.getincrementaldecoder(encoding)().decode
        self._left = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with decoded text."""
        data = b"more"
        while not self._left and data:
            data = read_some(self._stream, CHUNK_BYTES)
            try:
                self._left = self._decode(data, not data).encode()
            except UnicodeError as error:
                raise InvalidInput(f"is not text in the encoding {self._encoding}: {error}") from None
        found, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)
