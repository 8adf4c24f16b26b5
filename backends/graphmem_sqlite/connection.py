"""Connections to one file: one writer, and readers that are lent for the time of a read."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import OrderedDict, deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Lock, RLock, get_ident, local
from urllib.parse import quote

from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem_sqlite.failures import translated
from graphmem_sqlite.place import FileKey, Place, create_private, has_log, hold, key_of, log_of, release
from graphmem_sqlite.schema import claim_file, migrate, require_known

_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is forgotten leaves no bytes in free pages; see `write_anew`
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -32768",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
)
_IDLE_READERS = 8
_ALL_IDLE_READERS = 64  # of all stores of the process: each holds two files open
_LATER = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}  # others use it; no room for a second one


class _Idle:
    """Readers that wait to be lent, of all stores: where there are too many, those go that were used longest ago."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owners: OrderedDict[sqlite3.Connection, Database] = OrderedDict()

    def take(self, owner: Database) -> sqlite3.Connection | None:
        """Return the reader of a store that was used last, None if it has none."""
        with self._lock:
            if not owner.idle:
                return None
            connection = owner.idle.pop()
            del self._owners[connection]
            return connection

    def put(self, owner: Database, connection: sqlite3.Connection) -> None:
        """Keep a reader of a store for later."""
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
        """Close all of a store."""
        while (connection := self.take(owner)) is not None:
            connection.close()


_idle = _Idle()
_inherited: list[_Idle] = []


def _forget_after_fork() -> None:
    global _idle
    _inherited.append(_idle)  # what a parent opened must not be closed here
    _idle = _Idle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


class _Pinned(local):
    connection: sqlite3.Connection | None = None


class Database:
    """One file, its writer connection and its readers.

    A read borrows a reader that no other thread has, and sees one state of the file from its first
    statement to its last. Connections go back to a pool, not to a thread, so that threads which end leave
    none behind. Inside of `writing` the reads of that thread use the writer.

    Parameters
    ----------
    place
        The file.
    busy_timeout
        Seconds that a writer waits for another process.
    """

    def __init__(self, place: Place, busy_timeout: float) -> None:
        self.place = place
        self.name = f"sqlite:///{place.path}"
        self._timeout = busy_timeout
        self._mode = "rwc" if not place.exists else "rw" if place.writable else "ro"
        self._lock = RLock()
        self._owner: int | None = None
        self._closed = False
        self._process = os.getpid()
        self.idle: deque[sqlite3.Connection] = deque()
        self._pinned = _Pinned()
        self._key = place.key
        self._log = log_of(place.path)
        self._log_key: FileKey | None = None
        try:
            if place.key is None:
                create_private(place.path)
            with translated(self.name):
                self._writer = self._first_connection()
            if self._key is None:
                self._key, _ = hold(place.path)
            if not self._mode.startswith("ro"):
                self._log_key = key_of(self._log)
        except BaseException:
            if self._key is not None:
                release(self._key)
            raise

    @property
    def writer(self) -> sqlite3.Connection:
        """The connection that writes, for `diagnose` and tests."""
        return self._writer

    def _connect(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self.place.path))}?mode={self._mode}"
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
        except BaseException:
            connection.close()
            raise
        return connection

    def _first_connection(self) -> sqlite3.Connection:
        if self._mode == "ro":
            return self._connect_read_only()
        if self.place.exists and not self.place.in_use:
            self._read_schema_untouched()
        connection = self._connect()
        try:
            claim_file(connection)
            self._use_write_ahead_log(connection)
            require_known(connection, self.name, writable=True)
            migrate(connection)
        except BaseException:
            connection.close()
            raise
        self._mode = "rw"
        return connection

    def _read_schema_untouched(self) -> None:
        """Let a damaged schema or a newer one be noticed before SQLite makes a log beside the file."""
        mode, self._mode = self._mode, "ro&immutable=1"
        try:
            self._connect_to_known(writable=True).close()
        except sqlite3.DatabaseError:
            if not has_log(self.place.path):  # else another process came in between: it wrote while this one read
                raise
        finally:
            self._mode = mode

    def _connect_read_only(self) -> sqlite3.Connection:
        try:
            return self._connect_to_known(writable=False)
        except sqlite3.OperationalError:
            if has_log(self.place.path):
                raise  # what the log holds would be missing
            # the log can't be created in a folder that can't be written; nobody writes there, so none is needed
            self._mode = "ro&immutable=1"
            return self._connect_to_known(writable=False)

    def _connect_to_known(self, *, writable: bool) -> sqlite3.Connection:
        connection = self._connect()
        try:
            require_known(connection, self.name, writable=writable)
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        # SQLite doesn't wait by itself where two connections switch the mode of a new file at once
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """Lend a connection that sees one state of the file."""
        if self._owner == get_ident():
            with translated(self.name):
                yield self._writer
            return
        if (pinned := self._pinned.connection) is not None:
            with translated(self.name):
                yield pinned
            return
        self._require_open()
        self._require_same_file()
        with translated(self.name):
            connection = _idle.take(self)
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
            self._put_back(connection)

    @contextmanager
    def snapshot(self) -> Generator[None, None, None]:
        """Let all reads of this thread in a block see the state of the file at the first of them."""
        with self.reading() as connection:
            before, self._pinned.connection = self._pinned.connection, connection
            try:
                yield
            finally:
                self._pinned.connection = before

    def _put_back(self, connection: sqlite3.Connection) -> None:
        _idle.put(self, connection)
        if self._closed:
            _idle.close(self)

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Run a block in a write transaction; what it did is undone if it raises. Inner blocks join the outer one."""
        if self._owner == get_ident():
            with self._bracket("SAVEPOINT inner", "RELEASE inner", ("ROLLBACK TO inner", "RELEASE inner")):
                yield self._writer
            return
        self._require_open()
        with self._lock:
            self._require_open()
            self._require_same_file()
            if self._mode.startswith("ro"):
                raise StoreReadOnly(f"{self.name}: can be read but not written; check the rights of file and folder")
            with self._bracket("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",)):
                self._owner = get_ident()
                try:
                    yield self._writer
                finally:
                    self._owner = None

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """Run a block of SQL in a write transaction (`transaction`) and translate its errors."""
        with self.transaction() as connection, translated(self.name):
            yield connection

    def write_anew(self) -> bool:
        """Write the whole file anew, and cut the log to nothing; return False where others kept that from being done.

        `secure_delete` leaves something: a row that was moved to another page when a tree was balanced may have left a
        copy in the unused part of its former page.
        """
        with self._lock, translated(self.name):
            self._require_open()
            self._require_same_file()
            if self._writer.in_transaction:
                return False
            self._writer.execute("PRAGMA temp_store = FILE")  # the file may be larger than memory
            try:
                self._writer.execute("VACUUM")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF in _LATER:
                    return False
                raise
            finally:
                self._writer.execute("PRAGMA temp_store = MEMORY")
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

    @contextmanager
    def _bracket(self, begin: str, commit: str, undo: tuple[str, ...]) -> Generator[None, None, None]:
        connection = self._writer
        with translated(self.name):
            connection.execute(begin)
        try:
            yield
            if commit == "COMMIT":
                self._require_same_file()
            with translated(self.name):
                connection.execute(commit)
        except BaseException:
            if connection.in_transaction:  # SQLite has rolled back by itself where the disk is full or fails
                with translated(self.name):
                    for statement in undo:
                        connection.execute(statement)
            raise

    def _require_open(self) -> None:
        if self._closed:
            raise BackendUnavailable(f"{self.name}: this backend was closed; open it again")
        if self._process != os.getpid():
            raise BackendUnavailable(f"{self.name}: was opened before this process was forked; open it again here")

    def _require_same_file(self) -> None:
        """Refuse to work where the file or its log was deleted, moved or replaced: what is written would be lost.

        Raises
        ------
        BackendUnavailable
            If another file is at the path, or none.
        """
        try:
            found = key_of(self.place.path)
            if found == self._key and self._log_key in (None, key_of(self._log)):
                return
        except OSError as error:
            raise BackendUnavailable(f"{self.name}: can't be examined ({error.strerror}); check its rights") from error
        what = "was deleted or moved" if found is None else "was replaced" if found != self._key else "has lost its log"
        raise BackendUnavailable(
            f"{self.name}: the file {what} while it was open, and nothing is written any more; close this memory in "
            "all processes, put the right file in place without the -wal and -shm of another one, and open it again"
        )

    def _release_log(self) -> None:
        """Write the log into the file that was opened, wherever it is now, so that none is left for another file.

        SQLite does so when the last connection is closed, but not for a file that was moved: its log would be taken for
        that of the file that is put in its place.
        """
        if self._mode.startswith("ro"):
            return
        try:
            self._require_same_file()
        except BackendUnavailable:
            with suppress(sqlite3.Error):
                self._writer.execute("PRAGMA busy_timeout = 1000")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close all connections; the last one writes the log back into the file."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._process == os.getpid():
                _idle.close(self)
                self._release_log()
            with translated(self.name):
                self._writer.close()
            if self._key is not None:
                release(self._key)
