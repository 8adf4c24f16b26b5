"""The file of a store: path, checks that leave a foreign file untouched, the lock of writers, and the schema."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock, get_ident

from graphmem.errors import BackendUnavailable, InvalidInput, NotADatabase, SchemaTooNew, StoreReadOnly
from graphmem.protocols import in_background

_MAX_CALLERS_FIRST = 20  # callers that go before a waiting background thread


class WriterLock:
    """Reentrant lock that waiting threads get in order of arrival, those of callers before those of background work.

    A `threading.RLock` goes to whoever runs when it is released: a thread that writes in a loop takes it again before a
    waiting one wakes up. Background work isn't starved: after some callers it gets the lock.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._taken = False
        self._holder: int | None = None
        self._depth = 0
        self._callers: deque[Lock] = deque()
        self._background: deque[Lock] = deque()
        self._callers_first = 0

    @property
    def waiting(self) -> int:
        """Number of threads that wait."""
        return len(self._callers) + len(self._background)

    def __enter__(self) -> None:
        if self._holder != get_ident():
            self._wait()
            self._holder = get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None
            with self._guard:
                self._pass_on()

    def _wait(self) -> None:
        queue = self._background if in_background() else self._callers
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            turn = Lock()
            turn.acquire()
            queue.append(turn)
        try:
            turn.acquire()  # released by the thread that had the lock before
        except BaseException:  # the main thread was interrupted
            with self._guard:
                if turn in queue:
                    queue.remove(turn)
                else:
                    self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the lock to the next thread."""
        caller_first = bool(self._callers and self._background) and self._callers_first < _MAX_CALLERS_FIRST
        self._callers_first = self._callers_first + 1 if caller_first else 0
        queue = self._callers if caller_first or not self._background else self._background
        if queue:
            queue.popleft().release()
        else:
            self._taken = False


# File ---------------------------------------------------------------------------------------------


APPLICATION_ID = 0x67724D65
"""Marks files of graphmem ("grMe") in the header of the database (SQLite file format, section 1.3.11)."""

_MAGIC = b"SQLite format 3\x00"
_LEAF_TABLE = 0x0D
_REMEDY = "check the path; a store of graphmem lives in a file of its own"

FileKey = tuple[int, int]
FileVersion = tuple[int, int, bool]
_held: dict[FileKey, tuple[int, int]] = {}
_lock = Lock()
if hasattr(os, "register_at_fork"):  # no thread holds it in a forked process
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file that can hold a store.

    Attributes
    ----------
    path
        Where it is.
    exists
        False if there is no file, an empty file or an empty database.
    writable
        Whether file and folder can be written.
    in_use
        Whether another connection seems to have it open.
    key
        The key returned by `hold`; None if there is no file.
    """

    path: Path
    exists: bool
    writable: bool
    in_use: bool
    key: FileKey | None


def path_of(url: str) -> Path:
    """Return the path of a store URL.

    Raises
    ------
    InvalidInput
        If the URL names no file.
    """
    scheme, separator, rest = url.partition(":///")
    if not separator or scheme != "sqlite":
        raise InvalidInput(f"store URL {url!r}: expected sqlite:///relative.db or sqlite:////absolute.db")
    if not rest or rest == ":memory:":
        raise InvalidInput(f"store URL {url!r}: names no file; a store in memory is memory://")
    if "?" in rest or "\x00" in rest:
        raise InvalidInput(f"store URL {url!r}: '?' and NUL can't stand in the path; options are keyword arguments")
    return Path(rest).absolute()


def inspect(path: Path) -> StoreFile:
    """Check a path before SQLite opens it.

    Raises
    ------
    BackendUnavailable
        If the path is a folder, its folder doesn't exist, it may not be read, or too many files are open.
    NotADatabase
        If the file is no SQLite database, a database of another program, or truncated.
    """
    try:
        if path.is_dir():
            raise BackendUnavailable(f"{path}: is a folder; name a file in it, for example {path / 'memory.db'}")
        if not path.parent.is_dir():
            raise BackendUnavailable(f"{path}: the folder {path.parent} doesn't exist; create it first")
        try:
            path.stat()
        except FileNotFoundError:
            return StoreFile(path, exists=False, writable=True, in_use=False, key=None)
        return _inspect_file(path)
    except OSError as error:
        if isinstance(error, BackendUnavailable):
            raise
        raise BackendUnavailable(f"{path}: {error.strerror}; check the rights of file and folder") from error


def _inspect_file(path: Path) -> StoreFile:
    writable = _may_write(path) and _may_write(path.parent)
    key, descriptor = hold(path)
    try:
        head = _head(descriptor)
        exists = bool(head) and not _is_empty_database(path, head)
        if exists:
            _require_ours(path, head)
            _require_whole(path, descriptor)
    except NotADatabase:
        raise  # the descriptor stays open: closing it could drop locks that other code of this process holds
    except BaseException:
        release(key)
        raise
    in_use = log_path(path).exists() or _held[key][1] > 1
    return StoreFile(path, exists=exists, writable=writable, in_use=in_use, key=key)


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _is_empty_database(path: Path, head: bytes) -> bool:
    cells_on_first_page = int.from_bytes(head[103:105], "big")
    return (
        head.startswith(_MAGIC)
        and head[68:72] == bytes(4)
        and head[100:101] == bytes([_LEAF_TABLE])
        and cells_on_first_page == 0
        and not has_log(path)
    )


def has_log(path: Path) -> bool:
    """Return whether a file has a write-ahead log that isn't empty."""
    log = log_path(path)
    return log.exists() and log.stat().st_size > 0


def log_path(path: Path) -> Path:
    """Return the path of the write-ahead log of a file; SQLite puts it beside the target of a symbolic link."""
    target = path.resolve()
    return target.with_name(target.name + "-wal")


def file_key(path: Path) -> FileKey | None:
    """Return device and inode of the file at a path, which identify it while it is open; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - at each transaction
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def file_version(path: Path) -> FileVersion:
    """Return time of change and size of a file, and whether it has a log; writers change one of them."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, has_log(path)


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its log the same mode.

    Must not be called for a file that this process may have open: closing it drops locks (see `hold`). If creation
    fails, SQLite reports the reason when it opens the file.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _head(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 105)


def _require_ours(path: Path, head: bytes) -> None:
    if not head.startswith(_MAGIC):
        raise NotADatabase(f"{path}: is not an SQLite database; {_REMEDY}")
    if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise _of_another_program(path)


def _of_another_program(place: object) -> NotADatabase:
    return NotADatabase(f"{place}: is an SQLite database of another program; {_REMEDY}")


def _require_whole(path: Path, descriptor: int) -> None:
    size = expected = 0
    for _ in range(2):  # another process may checkpoint and delete the log in between
        if has_log(path):
            return  # with a log, the file may be shorter than its header says
        head = _head(descriptor)
        page_size = int.from_bytes(head[16:18], "big")
        expected = int.from_bytes(head[28:32], "big") * (65536 if page_size == 1 else page_size)
        size = os.fstat(descriptor).st_size
        if size >= expected or has_log(path):
            return
    raise NotADatabase(f"{path}: is cut short ({size} bytes of {expected}); restore the file from a backup")


def too_many_files() -> str:
    """Return an error message if this process can't open another file; otherwise an empty text."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return (
            f"{error.strerror}: an open store needs about six files; close memories that are not in use, or raise the "
            "limit of the process (ulimit -n)"
        )
    return ""


def hold(path: Path) -> tuple[FileKey, int]:
    """Open a file for reading, once per file in this process, and return (key, descriptor).

    Closing any descriptor of a file drops all POSIX locks of the process on it, including those of SQLite
    (sqlite.org/howtocorrupt.html, 2.2). The descriptor is therefore closed with the last store on the file.

    Raises
    ------
    OSError
        If the file can't be opened: `BackendUnavailable` if too many files are open.
    """
    with _lock:
        status = path.stat()
        key = status.st_dev, status.st_ino
        if key in _held:
            descriptor, users = _held[key]
        else:
            descriptor, users = _open(path), 0
        _held[key] = (descriptor, users + 1)
        return key, descriptor


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if reason := too_many_files():
            raise BackendUnavailable(f"{path}: {reason}") from error
        raise


def release(key: FileKey) -> None:
    """Release a file after its connections were closed."""
    with _lock:
        descriptor, users = _held.pop(key)
        if users > 1:
            _held[key] = (descriptor, users - 1)
        else:
            os.close(descriptor)


# Schema -------------------------------------------------------------------------------------------


_RECORDS = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL
)
"""
_HAS_RECORDS = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'"
_NUMBER = "SELECT coalesce(max(number), 0) FROM schema_migrations"
_RECORD = "INSERT INTO schema_migrations (number, name, applied_at) VALUES (?, ?, ?)"
_TABLES = "SELECT count(*) FROM sqlite_master"
_APPLICATION_ID = "PRAGMA application_id"
_SET_APPLICATION_ID = f"PRAGMA application_id = {APPLICATION_ID}"


@cache
def migrations() -> dict[int, tuple[str, tuple[str, ...]]]:
    """Return number → (name, statements) of the migrations of this version."""
    found: dict[int, tuple[str, tuple[str, ...]]] = {}
    for file in files("graphmem_sqlite").joinpath("migrations").iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if file.name.endswith(".sql"):
            found[int(number)] = (name, tuple(_statements(file.read_text(encoding="utf-8"))))
    return dict(sorted(found.items()))


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""


def schema_number(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration applied to a file; 0 for a new file."""
    if not connection.execute(_HAS_RECORDS).fetchone()[0]:
        return 0
    return connection.execute(_NUMBER).fetchone()[0]


def set_application_id(connection: sqlite3.Connection, place: str) -> None:
    """Mark a file without a schema as a store of graphmem, before anything else is written.

    Whether the file is new is read through SQLite, not from its bytes: if a process was killed while it set the mark,
    SQLite rolls the mark back when the file is opened again.

    Raises
    ------
    NotADatabase
        If another program has created tables in the meantime.
    """
    if connection.execute(_APPLICATION_ID).fetchone()[0] == APPLICATION_ID:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute(_APPLICATION_ID).fetchone()[0] != APPLICATION_ID:
            if connection.execute(_TABLES).fetchone()[0]:
                raise _of_another_program(place)
            connection.execute(_SET_APPLICATION_ID)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_known_schema(connection: sqlite3.Connection, place: str, *, writable: bool) -> None:
    """Check that this version supports the schema of a file.

    Raises
    ------
    SchemaTooNew
        If a newer version wrote the file.
    StoreReadOnly
        If the file needs a migration and can't be written.
    """
    number, newest = schema_number(connection), max(migrations())
    if number > newest:
        raise SchemaTooNew(
            f"{place}: has schema {number}, this graphmem knows up to {newest}; upgrade with pip install -U graphmem"
        )
    if number < newest and not writable:
        raise StoreReadOnly(
            f"{place}: has schema {number} and must be brought to {newest}, but can't be written; "
            "check the rights of file and folder"
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate a file to the newest schema. Processes may do so concurrently: one migrates, the others wait for it."""
    for number, (name, statements) in migrations().items():
        if schema_number(connection) >= number:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            if schema_number(connection) < number:
                for statement in statements:
                    connection.execute(statement)
                connection.execute(_RECORDS)
                connection.execute(_RECORD, (number, name, time.time_ns() // 1000))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
