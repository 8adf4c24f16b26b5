"""Connections to one file: a writer and a pool of readers. Errors of sqlite3 become errors of graphmem here."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from threading import Lock, get_ident, local
from urllib.parse import quote

from graphmem.errors import (
    BackendUnavailable,
    Conflict,
    GraphMemError,
    InvalidInput,
    NotADatabase,
    StoreFull,
    StoreMoved,
    StoreReadOnly,
)
from graphmem_sqlite.file import (
    FileKey,
    FileVersion,
    StoreFile,
    WriterLock,
    create_private,
    file_key,
    file_version,
    has_log,
    hold,
    log_path,
    migrate,
    release,
    require_known_schema,
    set_application_id,
    too_many_files,
)
from graphmem_sqlite.rows import stored_metadata_matches

_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # erased rows leave no bytes in free pages; see `vacuum`
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -32768",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
)
_IDLE_READERS = 8
_ALL_IDLE_READERS = 64  # in all stores of the process: each holds two files open
_RETRYABLE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}  # in use, or no room for a second copy
_DAMAGED = "SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"
_UNIQUE_VIOLATIONS = "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID"
_POLL = 0.001  # seconds between attempts while another connection writes
_IMMUTABLE = "ro&immutable=1"
_READ_ONLY = "can be read but not written; check the rights of file and folder"
MIGRATION_MARKER = "SELECT id || ' ' || state FROM move WHERE one = 1"


class _ReaderPool:
    """The idle readers of all stores; if there are too many, the least recently used ones are closed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owners: OrderedDict[sqlite3.Connection, Database] = OrderedDict()

    def take(self, owner: Database) -> sqlite3.Connection | None:
        """Return the most recently used reader of a store, None if it has none."""
        with self._lock:
            if not owner.idle:
                return None
            connection = owner.idle.pop()
            del self._owners[connection]
            return connection

    def put(self, owner: Database, connection: sqlite3.Connection) -> None:
        """Return a reader of a store to the pool."""
        with self._lock:
            owner.idle.append(connection)
            self._owners[connection] = owner
            surplus = [owner.idle[0]] if len(owner.idle) > _IDLE_READERS else []
            surplus += [next(iter(self._owners))] if len(self._owners) > _ALL_IDLE_READERS else []
            for reader in dict.fromkeys(surplus):
                self._owners.pop(reader).idle.remove(reader)
        for reader in dict.fromkeys(surplus):
            reader.close()

    def close(self, owner: Database) -> None:
        """Close all idle readers of a store."""
        while (connection := self.take(owner)) is not None:
            connection.close()


_pool = _ReaderPool()
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_inherited: list[object] = []


def _reset_after_fork() -> None:
    global _pool
    _inherited.extend((_pool, *_databases))  # connections of the parent process must not be closed here
    _pool = _ReaderPool()
    _databases.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


class _Snapshot(local):
    connection: sqlite3.Connection | None = None


class Database:
    """One file with its writer connection and its readers.

    A read borrows a reader that no other thread uses, and sees one state of the file from its first
    statement to its last. Readers return to a pool, not to a thread, so that a thread leaves none behind when it
    ends. Inside of `writing` the reads of that thread use the writer.

    Parameters
    ----------
    file
        The file.
    busy_timeout
        Seconds that a writer waits for another process.
    """

    def __init__(self, file: StoreFile, busy_timeout: float) -> None:
        self.file = file
        self.name = f"sqlite:///{file.path}"
        self._timeout = busy_timeout
        self._mode = "rwc" if not file.exists else "rw" if file.writable else "ro"
        self.adopted = ""
        self._lock = WriterLock()
        self._owner: int | None = None
        self._closed = False
        self._process = os.getpid()
        self.idle: deque[sqlite3.Connection] = deque()
        self._snapshot = _Snapshot()
        self._key = file.key
        self._log = log_path(file.path)
        self._log_key: FileKey | None = None
        self._version: FileVersion | None = None  # of a file that was opened as immutable
        try:
            if file.key is None:
                create_private(file.path)
            with translated(self.name):
                self._writer = self._first_connection()
                self._writer.execute("PRAGMA busy_timeout = 0")  # see `_execute_when_free`
            if self._key is None:
                self._key = self._held()
            if not self.is_read_only:
                self._log_key = file_key(self._log)
        except BaseException:
            if self._key is not None:
                release(self._key)
            raise
        _databases.add(self)

    def _held(self) -> FileKey:
        try:
            return hold(self.file.path)[0]
        except BaseException:
            self._writer.close()
            raise

    @property
    def is_read_only(self) -> bool:
        """Whether the file, or its folder, can't be written."""
        return self._mode.startswith("ro")

    def describe(self) -> str:
        """Return the path of the file, and that it can't be written if so."""
        return f"{self.file.path}: {_READ_ONLY}" if self.is_read_only else str(self.file.path)

    @property
    def writer(self) -> sqlite3.Connection:
        """The connection that writes, for tests."""
        return self._writer

    def _connect(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self.file.path))}?mode={self._mode}"
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            for pragma in _PRAGMAS:
                connection.execute(pragma)
            connection.create_function("metadata_matches", 2, stored_metadata_matches, deterministic=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _first_connection(self) -> sqlite3.Connection:
        if self._mode == "ro":
            return self._connect_read_only()
        if self.file.exists and not self.file.in_use:
            self._read_schema_untouched()
        connection = self._connect()
        try:
            set_application_id(connection, self.name)
            self._execute_when_free(connection, "PRAGMA journal_mode = WAL")
            require_known_schema(connection, self.name, writable=True)
            migrate(connection)
        except BaseException:
            connection.close()
            raise
        self._mode = "rw"
        return connection

    def _read_schema_untouched(self) -> None:
        """Detect a damaged or a newer schema before SQLite creates a log next to the file."""
        mode, self._mode = self._mode, _IMMUTABLE
        try:
            self._connect_to_known(writable=True).close()
        except sqlite3.DatabaseError:
            if not has_log(self.file.path):  # with a log, another process wrote in between
                raise
        finally:
            self._mode = mode

    def _connect_read_only(self) -> sqlite3.Connection:
        try:
            connection = self._connect_to_known(writable=False)
        except sqlite3.OperationalError:
            if has_log(self.file.path):
                raise  # the rows in the log would be missing
            # SQLite can't create a log in a read-only folder; as long as nobody writes there, none is needed
            self._mode, self._version = _IMMUTABLE, file_version(self.file.path)
            return self._connect_to_known(writable=False)
        self._version = None
        return connection

    def _follow_writers(self) -> None:
        """Reopen a file that was opened as immutable, once another process writes to it."""
        with self._lock:
            if self._closed or self._version in (None, file_version(self.file.path)):
                return
            _pool.close(self)
            before, self._mode = self._writer, "ro"
            try:
                self._writer = self._connect_read_only()
            except BaseException:
                self._mode = _IMMUTABLE  # the next read tries again
                raise
            before.close()

    def _connect_to_known(self, *, writable: bool) -> sqlite3.Connection:
        connection = self._connect()
        try:
            require_known_schema(connection, self.name, writable=writable)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """Yield a connection that sees one state of the file."""
        if self._owner == get_ident():
            with translated(self.name):
                yield self._writer
            return
        if (shared := self._snapshot.connection) is not None:
            with translated(self.name):
                yield shared
            return
        self._require_open()
        self._require_same_file()
        with translated(self.name):
            if self._version is not None:
                self._follow_writers()
            version = self._version
            connection = _pool.take(self)
            if connection is None:
                connection = self._connect()
                connection.execute("PRAGMA query_only = ON")
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._put_back(connection, version)

    @contextmanager
    def snapshot(self) -> Generator[None, None, None]:
        """Make all reads of this thread in a block see the state of the file at the first of them."""
        with self.reading() as connection:
            before, self._snapshot.connection = self._snapshot.connection, connection
            try:
                yield
            finally:
                self._snapshot.connection = before

    def _put_back(self, connection: sqlite3.Connection, version: FileVersion | None) -> None:
        if version is None:
            _pool.put(self, connection)
        else:
            with self._lock:  # of `_follow_writers`, after which nobody may take the connection
                if self._version == version:
                    _pool.put(self, connection)
                else:
                    connection.close()
        if self._closed:
            _pool.close(self)

    @contextmanager
    def transaction(self, *, fenced: bool = True) -> Generator[sqlite3.Connection, None, None]:
        """Run a block in a write transaction, which is rolled back if the block raises. Inner blocks use savepoints.

        Raises
        ------
        StoreMoved
            If the file has another mark of a migration than `adopted`, unless `fenced` is False.
        """
        if self._owner == get_ident():
            self._require_transaction()
            with self._bracket("SAVEPOINT inner", "RELEASE inner", ("ROLLBACK TO inner", "RELEASE inner")):
                yield self._writer
            return
        self._require_open()
        with self._lock:
            self._require_open()
            self._require_same_file()
            if self.is_read_only:
                raise StoreReadOnly(f"{self.name}: {_READ_ONLY}")
            with self._bracket("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",)):
                self._owner = get_ident()
                try:
                    if fenced:
                        self._require_adopted()
                    yield self._writer
                finally:
                    self._owner = None

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """Run a block of SQL in a write transaction (`transaction`) and translate its errors."""
        with self.transaction() as connection, translated(self.name):
            yield connection

    def vacuum(self) -> bool:
        """Rewrite the whole file and truncate the log; return False if other connections prevented it.

        `secure_delete` alone isn't enough: a row that moved to another page when a tree was balanced may have left a
        copy in the unused part of its former page.
        """
        with self._lock, translated(self.name):
            self._require_open()
            self._require_same_file()
            if self._writer.in_transaction:
                return False
            with closing(self._connect()) as connection:  # it waits for others, unlike the writer
                connection.execute("PRAGMA temp_store = FILE")  # the file may be larger than memory
                try:
                    connection.execute("VACUUM")
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF in _RETRYABLE:
                        return False
                    raise
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not busy

    @contextmanager
    def _bracket(self, begin: str, commit: str, undo: tuple[str, ...]) -> Generator[None, None, None]:
        connection = self._writer
        with translated(self.name):
            self._execute_when_free(connection, begin)
        try:
            yield
            self._require_transaction()
            if commit == "COMMIT":
                self._require_same_file()
            with translated(self.name):
                connection.execute(commit)
        except BaseException:
            if connection.in_transaction:  # SQLite itself rolls back if the disk is full or fails
                with translated(self.name):
                    for statement in undo:
                        connection.execute(statement)
            raise

    def _execute_when_free(self, connection: sqlite3.Connection, statement: str) -> None:
        """Begin a transaction, or switch the mode, as soon as no other connection prevents it.

        SQLite's own wait sleeps for up to 100 ms at a time, longer than most transactions last, and doesn't cover two
        connections that switch the mode of a new file concurrently.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_POLL)
            else:
                return

    def _require_transaction(self) -> None:
        """Check that SQLite hasn't rolled back; a block that went on after that error would write on its own."""
        if not self._writer.in_transaction:
            raise BackendUnavailable(f"{self.name}: the transaction ended with an earlier error; nothing was written")

    def _require_adopted(self) -> None:
        with translated(self.name):
            row = self._writer.execute(MIGRATION_MARKER).fetchone()
        if self.adopted != ("" if row is None else row[0]):
            raise StoreMoved(f"{self.name}: the store is in a migration; nothing was written")

    def _require_open(self) -> None:
        if self._closed:
            raise BackendUnavailable(f"{self.name}: this backend was closed; open it again")
        if self._process != os.getpid():
            raise BackendUnavailable(f"{self.name}: was opened before this process was forked; open it again here")

    def _require_same_file(self) -> None:
        """Check that the file and its log weren't deleted, moved or replaced: writes would be lost.

        Raises
        ------
        BackendUnavailable
            If another file is at the path, or none.
        """
        try:
            found = file_key(self.file.path)
            if found == self._key and self._log_key in (None, file_key(self._log)):
                return
        except OSError as error:
            raise BackendUnavailable(f"{self.name}: can't be examined ({error.strerror}); check its rights") from error
        what = "was deleted or moved" if found is None else "was replaced" if found != self._key else "has lost its log"
        raise BackendUnavailable(
            f"{self.name}: the file {what} while it was open, and nothing is written any more; close this memory in "
            "all processes, put the right file in place without the -wal and -shm of another one, and open it again"
        )

    def _release_log(self) -> None:
        """Checkpoint the log of a file that was moved, so that no log is left for another file.

        SQLite does so when the last connection is closed, but not for a file that was moved: its log would be read as
        that of a file put in its place.
        """
        if self.is_read_only:
            return
        try:
            self._require_same_file()
        except BackendUnavailable:
            with suppress(sqlite3.Error):
                self._writer.execute("PRAGMA busy_timeout = 1000")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close all connections; closing the last one checkpoints the log. In a forked process, do nothing.

        There the connections are the parent's, and a thread of the parent may have held a lock during the fork.
        """
        if self._process != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            _pool.close(self)
            self._release_log()
            with translated(self.name):
                self._writer.close()
            if self._key is not None:
                release(self._key)


class SQLiteRole:
    """Base class of the role classes of `SQLiteBackend`, which share one open file.

    Parameters
    ----------
    database
        The open file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def database(self) -> Database:
        """The connections to the file."""
        return self._database


@contextmanager
def translated(place: str) -> Generator[None, None, None]:
    """Translate errors of sqlite3 raised in a block into errors of `graphmem.errors` that name the store."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, place) from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{place}: a value can't be stored: {error}") from error


def translate(error: sqlite3.Error, place: str) -> GraphMemError:
    """Return the error of graphmem for an error of sqlite3."""
    name: str = getattr(error, "sqlite_errorname", "")  # absent if the module raised it, not SQLite
    if name.startswith("SQLITE_CONSTRAINT"):
        if name in _UNIQUE_VIOLATIONS:
            return Conflict(f"{place}: another row holds this key ({error}); nothing was written")
        return InvalidInput(f"{place}: a row breaks a rule of the store ({error}); nothing was written")
    if name.startswith(_DAMAGED):
        return NotADatabase(
            f"{place}: damaged, or no SQLite database ({error}); check the path, or restore the file from a backup"
        )
    if name.startswith("SQLITE_READONLY"):
        return StoreReadOnly(f"{place}: can be read but not written ({error}); check the rights of file and folder")
    if name.startswith("SQLITE_FULL"):
        return StoreFull(f"{place}: no space is left ({error}); nothing was written; free some on that disk")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BackendUnavailable(
            f"{place}: another process held the file for too long ({error}); end it and try again, or wait for longer "
            "(setting sqlite_busy_timeout)"
        )
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR")) and (reason := too_many_files()):
        return BackendUnavailable(f"{place}: {reason}")
    if name.startswith("SQLITE_CANTOPEN"):
        return BackendUnavailable(f"{place}: can't be opened ({error}); check that the folder exists and its rights")
    if name.startswith("SQLITE_IOERR"):
        return BackendUnavailable(f"{place}: reading or writing failed ({error}); check the disk")
    if name.startswith(("SQLITE_TOOBIG", "SQLITE_MISMATCH", "SQLITE_RANGE")) or isinstance(error, sqlite3.DataError):
        return InvalidInput(f"{place}: a value can't be stored: {error}")
    return BackendUnavailable(f"{place}: {error}")
