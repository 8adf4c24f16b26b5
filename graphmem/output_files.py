"""Output files for users (exports, pictures, health files), which don't replace files that graphmem did not write."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from graphmem.errors import GraphMemError, InvalidInput

_DATABASE = b"SQLite format 3\x00"
_DATABASE_SUFFIXES = ("-wal", "-shm", "-journal")
_HEAD = 8192
_PART = ".part"
_MARKS = (b'<meta name="generator" content="graphmem">', b"\n%% drawn by graphmem\n")
_PREFIXES = (b'{"format":"graphmem-export"', b"digraph graphmem {")
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}

_databases: dict[tuple[int, int], int] = {}
"""Descriptors of the databases that were inspected, by device and inode. They stay open: closing one would drop the
locks that SQLite holds on that file in this process (sqlite.org/howtocorrupt.html, 2.2)."""


@contextmanager
def output_file(
    target: str | os.PathLike[str], *, force: bool = False, replaces: bytes | None = None
) -> Generator[IO[bytes]]:
    """Open a new file that replaces `target` when the block ends; if the block raises, the target stays unchanged.

    The file is written under a random name in the folder of the target and is readable by its owner only (mode 0600).
    If the target is a symbolic link, the file that it points to is replaced. Files that killed processes left behind
    when they wrote the same target are removed.

    Parameters
    ----------
    target
        A path.
    force
        Whether a file that graphmem did not write may be replaced. A database or its log is never replaced.
    replaces
        Beginning of the files that may be replaced without `force`; None permits all files that graphmem writes for
        users.

    Raises
    ------
    InvalidInput
        If the target may not be replaced, is a folder, FIFO, device or broken link, or cannot be written.
    """
    try:
        path = _resolved(Path(target))
        _require_replaceable(path, force=force, replaces=replaces)
        _remove_left_parts(path)
        with _new_part(path) as (descriptor, part):
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _require_replaceable(path, force=force, replaces=replaces)  # the block may have taken long
            part.replace(path)
    except GraphMemError:
        raise
    except OSError as error:
        raise InvalidInput(f"output {target}: cannot be written ({error.strerror or error})") from error


def require_appendable(target: str | os.PathLike[str]) -> None:
    """Raise unless lines can be appended to a target: a file that belongs to no database, or none.

    Raises
    ------
    InvalidInput
        As `output_file` with `force`.
    OSError
        If the target can't be read.
    """
    _require_replaceable(_resolved(Path(target)), force=True)


@contextmanager
def _new_part(path: Path) -> Generator[tuple[int, Path]]:
    """Create a file to write a target, locked (`_remove_left_parts`) until the block ends; remove what is left then."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_part_prefix(path), suffix=_PART, dir=path.parent)
        lock = _lock(descriptor, wait=True)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # it was removed before it was locked
        if lock is not None:
            lock.close()
    with lock or nullcontext():
        try:
            yield descriptor, Path(name)
        finally:
            Path(name).unlink(missing_ok=True)


def _part_prefix(path: Path) -> str:
    return f".graphmem-{hashlib.blake2b(os.fsencode(path.name), digest_size=8).hexdigest()}-"


def _remove_left_parts(path: Path) -> None:
    """Remove the files of processes that were killed while they wrote a target; those of living ones are locked."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    for part in path.parent.glob(f"{_part_prefix(path)}*{_PART}"):
        with suppress(OSError), os.fdopen(os.open(part, flags)) as file:
            if lock := _lock(file.fileno(), wait=False):
                with lock:
                    part.unlink()


def _lock(descriptor: int, *, wait: bool) -> IO[bytes] | None:
    """Lock a file and return what unlocks it when it is closed; None if it is locked, or files can't be locked here."""
    try:
        import fcntl  # absent on Windows, which removes and renames no open file

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return None
    return os.fdopen(os.dup(descriptor), "rb")


def _resolved(path: Path) -> Path:
    if "\x00" in str(path):
        raise InvalidInput(f"output {str(path)!r}: a path can't contain a NUL character")
    if not path.is_symlink():
        return path
    try:
        _require_file(path, path.stat().st_mode)
        return path.resolve(strict=True)
    except PermissionError:
        raise
    except OSError as error:
        raise InvalidInput(f"output {path}: is a broken link; remove it or name another file") from error


def _require_replaceable(path: Path, *, force: bool, replaces: bytes | None = None) -> None:
    if not path.parent.is_dir():
        raise InvalidInput(f"output {path}: there is no folder {path.parent}; create it first")
    if belongs_to_database(path):
        raise InvalidInput(f"output {path}: is a database or belongs to one, and is never replaced; name another file")
    try:
        _require_file(path, path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not may_write(path):
        raise InvalidInput(f"output {path}: is not writable; check its permissions or name another file")
    if force:
        return
    head = _head(path)
    if replaces is not None and head and not head.startswith(replaces):
        raise InvalidInput(f"output {path}: is a file of another kind; name another one")
    if replaces is None and not _is_graphmem_output(head):
        raise InvalidInput(
            f"output {path}: is a file that graphmem did not write; name another one, or replace it with --force "
            "(force=True)"
        )


def may_write(path: Path) -> bool:
    """Return whether this process, with its effective user, may write a file or into a folder."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _require_file(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"output {path}: is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "a link")
        raise InvalidInput(f"output {path}: is {kind}, not a file; name a file, or redirect standard output to it")


def belongs_to_database(path: Path) -> bool:
    """Return whether a file is a database or its log; locks that this process holds on it are kept."""
    suffix = next((suffix for suffix in _DATABASE_SUFFIXES if path.name.endswith(suffix)), "")
    if suffix and _is_database(path.with_name(path.name.removesuffix(suffix) or ".")):
        return True  # the log is not opened, because SQLite holds locks on it as well
    return _is_database(path)


def _is_database(path: Path) -> bool:
    return path.is_file() and _head(path).startswith(_DATABASE)


def _is_graphmem_output(head: bytes) -> bool:
    return not head or head.startswith(_PREFIXES) or any(mark in head for mark in _MARKS)


def _head(path: Path) -> bytes:
    status = path.stat()
    key = (status.st_dev, status.st_ino)
    if (known := _databases.get(key)) is not None:
        os.lseek(known, 0, os.SEEK_SET)
        return os.read(known, _HEAD)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    head = os.read(descriptor, _HEAD)
    if head.startswith(_DATABASE):
        _databases[key] = descriptor
    else:
        os.close(descriptor)
    return head
