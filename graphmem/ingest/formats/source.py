"""Open input files, also in zip archives that stay packed: lines, position, and refused records."""

from __future__ import annotations

import io
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, get_args
from zipfile import BadZipFile, ZipFile, ZipInfo

from graphmem.errors import InvalidInput

MAX_UNPACKED_BYTES = 4 << 30
MAX_RATIO = 200
"""Maximum ratio of unpacked to packed size above `SMALL_BYTES`; typical are 10 for text and 30 for JSON."""
SMALL_BYTES = 64 << 20

_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")  # signatures of an archive and of an empty one
_UNNAMED = "_chat.txt"  # file name in WhatsApp exports of an iPhone; the chat is named by the archive


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
        """Last part of the path; the root and a WhatsApp chat take the name of the archive."""
        archive_name = Path(self.archive.filename or "").stem
        return f"{archive_name}.txt" if self.at == _UNNAMED else PurePosixPath(self.at).name or archive_name

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
    return at.endswith("/") or any(part.startswith(".") or part == "__MACOSX" for part in at.split("/"))


# Open files ---------------------------------------------------------------------------------------


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
