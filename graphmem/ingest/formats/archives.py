"""Files on disk and in zip archives, which stay packed: names, sizes, times, and the limits on unpacking."""

from __future__ import annotations

import codecs
import io
import lzma
import zlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from graphmem.errors import InvalidInput

MAX_UNPACKED_BYTES = 4 << 30
MAX_RATIO = 200
"""Maximum ratio of unpacked to packed size above `SMALL_BYTES`; typical are 10 for text and 30 for JSON."""
SMALL_BYTES = 64 << 20
SKIPPED_FOLDERS = frozenset({"__MACOSX", "node_modules"})
CHUNK_BYTES = 1 << 20
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


def is_stream(file: File) -> bool:
    """Return whether what a file has can be read only once: ``-`` for standard input, a pipe, or a device."""
    if isinstance(file, Member):
        return False
    return str(file) == "-" or (file.exists() and not file.is_file() and not file.is_dir())


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
        while data := stream.read(CHUNK_BYTES):
            if not data.isascii():
                return decode(data + stream.read(3)).isascii()  # a character has up to four bytes
    return False


def is_archive(path: Path) -> bool:
    """Return whether a file has the signature of a zip archive; a stream, which can't be read again, is none."""
    try:
        if is_stream(path):
            return False
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
