"""Open input files, also in zip archives that stay packed: format, lines, position, and refused records."""

from __future__ import annotations

import codecs
import csv
import io
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, cast, get_args
from zipfile import BadZipFile, ZipFile, ZipInfo

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.exports import EXPORT_NAMES, export_of
from graphmem.ingest.formats.transcripts import kind_of
from graphmem.ingest.records import is_three_texts, is_triple_header, is_turn_header

MAX_UNPACKED_BYTES = 4 << 30
MAX_RATIO = 200
"""Maximum ratio of unpacked to packed size above `SMALL_BYTES`; typical are 10 for text and 30 for JSON."""
SMALL_BYTES = 64 << 20

SKIPPED_FOLDERS = frozenset({"__MACOSX", "node_modules"})

_CHUNK = 1 << 20
_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")  # signatures of an archive and of an empty one
_UNNAMED = "_chat.txt"  # file name in WhatsApp exports of an iPhone; the chat is named by the archive or folder


@dataclass(frozen=True, slots=True)
class Member:
    """File or folder inside an archive, with the subset of `pathlib.Path` used for reading.

    Parameters
    ----------
    archive
        The open archive.
    at
        Path inside the archive; empty for its root.
    """

    archive: ZipFile
    at: str

    def __str__(self) -> str:
        return f"{self.archive.filename}/{self.at}"

    def __truediv__(self, name: str) -> Member:
        return Member(self.archive, str(PurePosixPath(self.at) / name))

    @property
    def name(self) -> str:
        """Last part of the path; the root takes the name of the archive."""
        return PurePosixPath(self.at).name or Path(self.archive.filename or "").stem

    @property
    def suffix(self) -> str:
        """Suffix of the name."""
        return PurePosixPath(self.at).suffix

    @property
    def parent(self) -> Member:
        """Parent folder; the root is its own parent."""
        folder = PurePosixPath(self.at).parent
        return Member(self.archive, "" if folder == PurePosixPath() else str(folder))

    @property
    def info(self) -> ZipInfo:
        """Entry of the archive directory."""
        return self.archive.getinfo(self.at)

    def is_file(self) -> bool:
        """Return whether the archive contains this file."""
        return self.at in self.archive.NameToInfo

    def open(self) -> IO[bytes]:
        """Open it for reading.

        Raises
        ------
        InvalidInput
            If it is encrypted, damaged, or uses an unknown compression method.
        """
        try:
            return io.BufferedReader(_Unpacked(self, self.archive.open(self.info)))
        except (BadZipFile, NotImplementedError, RuntimeError) as error:
            raise InvalidInput(f"{self}: {error}; unpack the archive and read the folder") from error


class _Unpacked(io.RawIOBase):
    """Stream of the unpacked bytes of a member; raises `InvalidInput` if they are damaged."""

    def __init__(self, member: Member, stream: IO[bytes]) -> None:
        self._member = member
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except (BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
            raise InvalidInput(f"{self._member}: is damaged: {error}") from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


File = Path | Member


def name_in(file: File, folders: Collection[Path] = ()) -> str:
    """Return the name of a file: its path inside its archive or the outermost of the folders, or else its last part.

    A WhatsApp chat of an iPhone takes the name of its folder or archive.
    """
    if isinstance(file, Member):
        at, home = PurePosixPath(file.at), Member(file.archive, "").name
    else:
        at = file.relative_to(next((each for each in reversed(file.parents) if each in folders), file.parent))
        home = file.absolute().parent.name or "chat"
    if at.name != _UNNAMED:
        return at.as_posix()
    return f"{at.parent.as_posix() if at.parent.name else home}.txt"


def open_binary(file: File) -> IO[bytes]:
    """Open a file on disk or in an archive for reading."""
    return file.open() if isinstance(file, Member) else file.open("rb")


def size_of(file: File) -> int:
    """Return the size of a file in bytes; for an archive member the unpacked size."""
    return file.info.file_size if isinstance(file, Member) else file.stat().st_size


def modified_at(file: File, zone: tzinfo) -> datetime | None:
    """Return the modification time of a file; that of an archive member is local time, interpreted in this zone."""
    if not isinstance(file, Member):
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    try:
        return datetime(*file.info.date_time, tzinfo=zone)
    except ValueError:
        return None


def is_other_encoding(file: File) -> bool:
    """Return whether a file is in another encoding than UTF-8: its first bytes beyond ASCII are none of its characters.

    A single damaged line is left to the reader, as is a damaged archive.
    """
    decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
    with suppress(InvalidInput), open_binary(file) as stream:
        while data := stream.read(_CHUNK):
            if not data.isascii():
                return decode(data + stream.read(3)).isascii()  # a character has up to four bytes
    return False


def is_archive(path: Path) -> bool:
    """Return whether a file has the signature of a zip archive."""
    try:
        with path.open("rb") as stream:
            return stream.read(4) in _BEGINNINGS
    except OSError:
        return False


def members(path: Path) -> list[Member]:
    """Return the files of an archive sorted by name, without hidden ones.

    Raises
    ------
    InvalidInput
        If the archive is damaged.
    """
    try:
        archive = ZipFile(path)
    except (BadZipFile, OSError, NotImplementedError) as error:
        raise InvalidInput(f"{path}: can't open the zip archive: {error}") from error
    return [Member(archive, at) for at in sorted(archive.NameToInfo) if not _is_hidden(at)]


def require_bearable(path: Path, found: list[Member]) -> None:
    """Raise if the unpacked size of an archive exceeds the limits.

    Raises
    ------
    InvalidInput
        If these files are larger than `MAX_UNPACKED_BYTES`, or than both `SMALL_BYTES` and `MAX_RATIO` times their
        packed size.
    """
    unpacked = sum(member.info.file_size for member in found)
    packed = sum(member.info.compress_size for member in found)
    limit = min(MAX_UNPACKED_BYTES, max(SMALL_BYTES, MAX_RATIO * packed))
    if unpacked > limit:
        raise InvalidInput(
            f"{path}: unpacks to {unpacked >> 20:,} MiB, the limit is {limit >> 20:,} MiB (of {packed >> 10:,} KiB "
            "packed); if you trust it, unpack it and read the folder"
        )


def _is_hidden(at: str) -> bool:
    return at.endswith("/") or any(part.startswith(".") or part in SKIPPED_FOLDERS for part in at.split("/"))


# Open files ---------------------------------------------------------------------------------------


Format = Literal[
    "turns", "triples", "json", "csv", "text", "markdown", "html",
    "mbox", "eml", "whatsapp", "slack", "chatgpt", "transcript", "srt", "vtt",
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

DatedBy = Literal["front matter", "name", "modification time"]
_DAY_IN_NAME = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)([-_. ]?)(?P<month>0[1-9]|1[0-2])\2(?P<day>0[1-9]|[12]\d|3[01])(?!\d)"
)
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
    holds_triples
        Whether the records are `Triple` rather than `Turn` and `Document`.
    date_order
        Order of day, month and year in dates such as 1/2/24; None infers it from the file.
    columns
        Field of a turn → name of the CSV column or JSON field that holds it, or several with commas between them.
    encoding
        Encoding that was stated; None is UTF-8.
    left_out
        Nested field that isn't stored → number of records that have it.
    notes
        How the columns of a table were read, and what of a chat export is no message.
    dated_by
        What dates its text, if that is the file: see `dated`.
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

    def dated(self, stated: str | None = None) -> datetime | None:
        """Return the time of a text that the file dates, and note in `dated_by` what it is.

        It is a time stated in the file, the day in its name, or else its modification time. A stated time without an
        offset or a zone is its day.
        """
        if stated is not None and (found := _time_of(stated, self.zone)):
            self.dated_by = "front matter"
            return found
        if found := self._day_in_name():
            self.dated_by = "name"
            return found
        self.dated_by = None if self.modified_at is None else "modification time"
        return self.modified_at

    def _day_in_name(self) -> datetime | None:
        """Return the only day that the file name has, unless it lies after the modification: then it is the subject."""
        named = _DAY_IN_NAME.finditer(PurePosixPath(self.name).name)
        days = {"-".join(found.group("year", "month", "day")) for found in named}
        found = _time_of(days.pop(), self.zone) if len(days) == 1 else None
        late = found is not None and self.modified_at is not None and found > self.modified_at + timedelta(days=1)
        return None if late else found

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
            data = read_some(self._stream, _CHUNK)
            try:
                self._left = self._decode(data, not data).encode()
            except UnicodeError as error:
                raise InvalidInput(f"is not text in the encoding {self._encoding}: {error}") from None
        found, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)


# Formats ------------------------------------------------------------------------------------------


SUFFIXES: Mapping[str, tuple[Format, ...]] = {
    ".jsonl": ("turns", "triples", "json", "chatgpt", "slack"),
    ".ndjson": ("turns", "triples", "json", "chatgpt", "slack"),
    ".json": ("json", "turns", "triples", "chatgpt", "slack"),
    ".csv": ("csv",),
    ".tsv": ("csv",),
    ".md": ("markdown",),
    ".markdown": ("markdown",),
    ".txt": ("text", "whatsapp", "transcript"),
    ".text": ("text", "whatsapp", "transcript"),
    ".html": ("html",),
    ".htm": ("html",),
    ".mbox": ("mbox",),
    ".eml": ("eml",),
    ".srt": ("srt",),
    ".vtt": ("vtt",),
}
_LONGEST_BEGINNING = 20
_EXAMINED = 20  # lines examined for a guess
_LINES = 400  # of a text that may be a transcript
_MAX_NAMED = 8
_BINARY = {
    b"%PDF": "a PDF; save its text first, for example with pdftotext",
    b"PK\x03\x04": "a zip archive; give the archive itself as a path, or unpack it",
    b"\xff\xfe": "UTF-16; save it as UTF-8",
    b"\xfe\xff": "UTF-16; save it as UTF-8",
}
_UNREAD = {
    **dict.fromkeys((".ics", "begin:vcalendar"), "a calendar; write its events to CSV, with columns text and date"),
    **dict.fromkeys((".vcf", "begin:vcard"), "contacts; write them to CSV, and pass --column text=NAME,PHONE,…"),
    **dict.fromkeys(
        (".nt", ".nq", ".ttl", ".n3", ".rdf", ".owl", "@prefix"),
        "RDF; write its statements to CSV, with columns subject, relation and object",
    ),
}
"""Suffix or beginning of a file that isn't read, though it is text → what it is."""
_CONTROLS = bytes({*range(32), 0x7F} - set(b"\t\n\v\f\r\x1b"))
_MAX_CONTROLS = 0.03  # share of bytes; compressed data has 0.1, text in any encoding of bytes nearly none
_SPACE = "[ \u00a0\u202f]"
WHATSAPP_LINE = re.compile(
    rf"[\u200e\u200f\ufeff]{{0,3}}\[?(\d{{1,4}})([./-])(\d{{1,2}})\2(\d{{1,4}}),?(?:{_SPACE}à)?{_SPACE}"
    rf"(午前|午後|上午|下午)?{_SPACE}?(\d{{1,2}})[:.](\d{{2}})"
    rf"(?:[:.](\d{{2}}))?{_SPACE}?([AaPp]\.?{_SPACE}?[Mm]\.?)?(?:\]{_SPACE}?|{_SPACE}-{_SPACE})(.*)",
    re.DOTALL,
)
_SRT = re.compile(r"\d{1,6}\s{0,8}\n\d{1,3}:\d\d:\d\d,\d{1,3} -->")
_HTML = re.compile(r"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_MBOX = re.compile(r"From \S{1,300} .{0,40}\d{4}")
_MAIL = re.compile(
    r"(?:Return-Path|Received|From|To|Date|Subject|Message-ID|MIME-Version|Delivered-To|X-[\w-]{1,60}):", re.IGNORECASE
)


def require_text(name: str, head: bytes) -> None:
    """Raise if a file is not text.

    Raises
    ------
    InvalidInput
        If the first bytes are those of a binary file, or many are control characters; the message names its kind, if
        known.
    """
    for begin, what in _BINARY.items():
        if head.startswith(begin):
            raise InvalidInput(f"{name}: is {what}")
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head.partition(b"\n")[0] or controls > _MAX_CONTROLS * len(head):
        raise InvalidInput(f"{name}: is not a text file")


def guess_format(name: str, head: str) -> Format | None:
    """Return the format of a file by its suffix and, if that is ambiguous, by its beginning.

    Returns None if the beginning is inconclusive.

    Raises
    ------
    InvalidInput
        If it is unrelated JSON, or text of another kind such as a calendar; the message describes the content found.
    """
    suffix = Path(name).suffix.lower()
    known = SUFFIXES.get(suffix, FORMATS)
    begin = head.lstrip()[:_LONGEST_BEGINNING].lower()
    if known is FORMATS and (seen := next((each for each in _UNREAD if suffix == each or begin.startswith(each)), "")):
        raise InvalidInput(f"{name}: is {_UNREAD[seen]}")
    if len(known) == 1:
        return known[0]
    lines = [line for line in head.split("\n", _EXAMINED)[:_EXAMINED] if line.strip()]
    if not lines:
        return None
    if "whatsapp" in known and any(WHATSAPP_LINE.match(line) for line in lines):
        return "whatsapp"
    if known[0] == "text" and kind_of(head.split("\n", _LINES)[:_LINES]) is not None:
        return "transcript"
    if "json" in known and lines[0].lstrip()[0] in "{[":
        return _guess_json(name, head, lines)
    return _guess_text(head.lstrip(), lines[0]) if known is FORMATS else ("text" if known[0] == "text" else None)


def first_json(head: str) -> object:
    """Return the first record of a JSON text, or the first element of an array; None if the head truncates it."""
    start = re.match(r"\s*\[?\s*", head)
    try:
        return json.JSONDecoder().raw_decode(head, start.end() if start else 0)[0]
    except (ValueError, RecursionError):
        return None


def is_triple(value: object) -> bool:
    """Return whether a JSON value is a triple."""
    return is_three_texts(value) or (isinstance(value, dict) and is_triple_header(_keys(cast("object", value))))


def _guess_json(name: str, head: str, lines: Sequence[str]) -> Format | None:
    for number, line in enumerate(each.strip() for each in lines):
        if line[0] not in "{[":
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            if number == 0 and (line in ("{", "[") or re.match(r"\[\s*[{\[]", line)):
                return _classify(name, first_json(head), head)
            continue
        if isinstance(value, list) and not is_three_texts(cast("object", value)):
            return _classify(name, first_json(head), head) if value else "json"
        try:
            found = _classify(name, cast("object", value), head)
        except InvalidInput:
            if len(lines) == 1:
                raise
            continue  # the reader reports this line
        return ("triples" if is_triple(cast("object", value)) else "turns") if found == "json" else found
    return None


def _classify(name: str, value: object, head: str) -> Format:
    """Return the format of a file with this first record; None stands for a record truncated by the head."""
    if value is None:
        return "chatgpt" if '"mapping"' in head else "json"
    if is_triple(value):
        return "json"
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        if isinstance(record.get("mapping"), dict):
            return "chatgpt"
        is_message = any(key in record for key in ("user", "bot_id", "subtype", "username"))
        if re.fullmatch(r"\d{9,11}\.\d{1,6}", str(record.get("ts"))) and is_message:
            return "slack"
        if export_of(record) is not None or is_turn_header(_keys(record)):
            return "json"
        raise InvalidInput(
            f"{name}: is JSON whose objects have the fields {named(_keys(record))}; a turn needs text (or content, "
            "message, body, messages; --column text=NAME names the field), a triple subject, relation and object; "
            f"exports are read of {', '.join(EXPORT_NAMES)}, ChatGPT and Slack"
        )
    raise InvalidInput(f"{name}: is JSON of {type(value).__name__} values; turns are objects with a text")


def _keys(value: object) -> list[str]:
    return [str(key).lower() for key in cast("dict[object, object]", value)]


def named(columns: Collection[str]) -> str:
    """Return column names for a message: the first eight, and the number of further ones."""
    shown = [column if len(column) <= 40 else f"{column[:39]}…" for column in columns][:_MAX_NAMED]
    more = f" and {len(columns) - _MAX_NAMED} more" if len(columns) > _MAX_NAMED else ""
    return (", ".join(shown) + more) or "none"


def delimiter_of(header: str) -> str:
    """Return the delimiter of the columns in a header."""
    return max(",;\t", key=header.count)


def is_separator_line(line: str) -> bool:
    """Return whether the first line of a CSV file is the note of Excel on its delimiter, such as "sep=;"."""
    return re.fullmatch(r"\"?sep=.\"?\s*", line, re.IGNORECASE) is not None


def header_of(line: str) -> list[str]:
    """Return the names of columns, in lower case."""
    row = next(csv.reader([line.strip()], delimiter=delimiter_of(line)), list[str]())
    return [name.strip().lower() for name in row]


def _guess_text(text: str, line: str) -> Format:
    if text.startswith("WEBVTT"):
        return "vtt"
    for pattern, found in ((_SRT, "srt"), (_HTML, "html"), (_MBOX, "mbox"), (_MAIL, "eml")):
        if pattern.match(text):
            return cast("Format", found)
    try:
        header = header_of(line)
    except csv.Error:
        header = []
    if is_triple_header(header) or (len(header) > 1 and all(map(str.isidentifier, header)) and is_turn_header(header)):
        return "csv"
    return "markdown" if re.match(r"#{1,6} \S", line) else "text"
