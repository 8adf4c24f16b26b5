"""Connections to a database: transactions per thread, retried as a whole, with locks by scope."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from threading import local
from typing import Any, LiteralString, TypeVar

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    Bookmarks,
    Driver,
    GraphDatabase,
    Query,
    Session,
)
from neo4j import Transaction as DriverTransaction
from neo4j.exceptions import ClientError, ConstraintError, DriverError, Neo4jError, TransientError

from graphmem.errors import BackendUnavailable, StoreMoved
from graphmem.models import Move, Scope, mark_of
from graphmem_cypher import collected, given, in_one, locked, query
from graphmem_neo4j.retries import Retries
from graphmem_neo4j.rows import moment
from graphmem_neo4j.server import ServerAddress, migrate, translated

T = TypeVar("T")
Rows = list[Any]

_CONSTRAINT_RETRIES = 3
_PAGE = 5000  # rows that a server collects before it sends them
_BEHIND = "Neo.TransientError.Transaction.BookmarkTimeout"
_log = logging.getLogger(__name__)
_FENCED = "Neo.ClientError.Statement.ArithmeticError"
"""How the server refuses a transaction under another mark; see `fragments/fence.cypher`."""


class Transaction:
    """A write transaction of a thread, and the scopes that it has locked.

    A lock is a write to the node of a scope: the server makes every other transaction that writes to it wait
    until this one has ended. So no other writer comes between what this one reads of a scope and what it writes there.
    The writers of one scope are serialized, those of different scopes aren't.

    No statement may set a property of that node from its own value (``SET l.n = l.n + 1``): the server locks the node
    a second time for that, and reports a deadlock to transactions that wait for it. Use `WITH l, l.n + 1 AS next`.
    """

    def __init__(self, transaction: DriverTransaction, adopted: str) -> None:
        self._transaction = transaction
        self._adopted = adopted
        self._locked: set[str] = set()

    def lock(self, scopes: Iterable[Scope]) -> None:
        """Lock scopes that this transaction hasn't locked yet, in order, so that transactions seldom deadlock."""
        if fresh := self._unlocked(scopes):
            self.run("lock_scopes", lock=list(fresh.values()), adopted=self._adopted)
            self._locked.update(fresh)

    def _unlocked(self, scopes: Iterable[Scope]) -> dict[str, dict[str, str | None]]:
        fresh = {s.key: s for s in scopes if s.key not in self._locked}
        return {key: {"key": key, "domain": s.domain, "project": s.project_id} for key, s in sorted(fresh.items())}

    def run_locked(self, name: str, scopes: Iterable[Scope], /, **values: Any) -> Rows:
        """Return the rows of a query, in any order; the scopes are locked first, in the same round trip."""
        return list(self.stream_locked(name, scopes, **values))

    def stream_locked(self, name: str, scopes: Iterable[Scope], /, **values: Any) -> Iterator[Any]:
        """Start a query like `run_locked`, and return its rows as an iterator that doesn't wait for the server."""
        fresh = self._unlocked(scopes)
        if fresh:
            values |= {"lock": list(fresh.values()), "adopted": self._adopted}
        parts = given(name, values)
        result = self._transaction.run(locked(name, parts) if fresh else in_one(name, parts), q=values)
        self._locked.update(fresh)
        return (row for record in result for row in record[0])

    def run(self, name: str, /, **values: Any) -> Rows:
        """Return the rows of a query."""
        return self.execute(query(name, given(name, values)), values)

    def execute(self, text: LiteralString, values: dict[str, Any]) -> Rows:
        """Return the rows of a statement."""
        return [record[0] for record in self._transaction.run(text, q=values)]


class _Current(local):
    transaction: Transaction | None = None


class Database:
    """A database on a server, for several threads at once.

    Parameters
    ----------
    address
        Where the database is.
    driver
        A driver connected to it; closed with this object.
    timeout
        Seconds after which the server cancels a query or a transaction.
    upgrade
        Whether to bring the schema to the newest version.

    Attributes
    ----------
    needs_upgrade
        Whether the database still has no schema, or an older one.
    """

    def __init__(self, address: ServerAddress, driver: Driver, timeout: float, *, upgrade: bool = True) -> None:
        self.address = address
        self._driver = driver
        self.timeout = timeout
        self.adopted = ""
        self._bookmarks = GraphDatabase.bookmark_manager()
        self._retries = Retries(address.name)
        self._current = _Current()
        self._closed = False
        self._process = os.getpid()
        with translated(address.name):
            self.needs_upgrade = migrate(self.session, address.name, upgrade=upgrade)

    @property
    def driver(self) -> Driver:
        """The driver, for a library that shares its connections; closed with this object."""
        self._require_open()
        return self._driver

    def bookmarks(self) -> Bookmarks:
        """Return the bookmarks with which another session sees the writes of this process."""
        self._require_open()
        return Bookmarks.from_raw_values(self._bookmarks.get_bookmarks())

    def session(self, access: str = WRITE_ACCESS) -> Session:
        """Return a session of the driver for one thread; it sees earlier writes of this process."""
        self._require_open()
        return self._driver.session(  # pyright: ignore[reportUnknownMemberType]  options of any type
            database=self.address.database, default_access_mode=access, bookmark_manager=self._bookmarks
        )

    def read(self, name: str, scopes: Iterable[Scope] = (), /, **values: Any) -> Rows:
        """Return the rows of a reading query.

        Parameters
        ----------
        name
            Name of the query.
        scopes
            Scopes that it reads; locked first if the thread is in a transaction.
        **values
            Parameters of the query.
        """
        return self._read(query(name, given(name, values)), scopes, values)

    def read_page(self, name: str, scopes: Iterable[Scope] = (), /, *, limit: int, **values: Any) -> Rows:
        """Return the rows of a query like `read`; a page of usual size is one record, which the driver reads faster."""
        values["limit"] = limit
        parts = given(name, values)
        if limit > _PAGE:
            return self._read(query(name, parts), scopes, values)
        [rows] = self._read(collected(name, parts), scopes, values)
        return rows

    def _read(self, text: LiteralString, scopes: Iterable[Scope], values: dict[str, Any]) -> Rows:
        transaction = self._current.transaction
        if transaction is not None:
            transaction.lock(scopes)
            return transaction.execute(text, values)

        def read() -> Rows:
            with self.session(READ_ACCESS) as session:
                return [record[0] for record in session.run(Query(text, timeout=self.timeout), q=values)]

        with self._translated():
            return self._retries.run(read, mend=self._forget_lost_writes)

    def write(self, work: Callable[[Transaction], T], *, timeout: float | None = None) -> T:
        """Run `work` in the thread's transaction, or in one of its own.

        It is retried if the server asks for it (deadlock, change of leader) or doesn't answer (`Retries`), and a few
        times if another writer took a unique key first: the reads of the retry then see that write.
        """
        if (joined := self._current.transaction) is not None:
            return work(joined)
        seconds = self.timeout if timeout is None else timeout

        def write() -> T:
            return self._write_once(work, seconds)

        with self._translated():
            for _ in range(_CONSTRAINT_RETRIES):
                try:
                    return self._retries.run(write, mend=self._forget_lost_writes)
                except ConstraintError:
                    continue
            return self._retries.run(write, mend=self._forget_lost_writes)

    def _forget_lost_writes(self, error: Neo4jError | DriverError) -> bool:
        """Forget the writes of this process if the database lacks them, as an error says: it was restored from a copy.

        Otherwise each session waited for them until it failed. Of a cluster, a member may only be late: whether they
        are lost, the one that takes writes tells.
        """
        if not isinstance(error, Neo4jError) or error.code != _BEHIND:
            return False
        waited_for = self._bookmarks
        if not self.address.uri.startswith("bolt"):
            try:
                with self.session() as session:
                    session.run("RETURN 1").consume()
            except TransientError as lost:
                if lost.code != _BEHIND:
                    raise
            else:
                return False
        if self._bookmarks is waited_for:  # no other thread was first
            self._bookmarks = GraphDatabase.bookmark_manager()
            _log.warning("%s: lacks writes of this process (%s); was it restored?", self.address.name, error.message)
        return True

    def _write_once(self, work: Callable[[Transaction], T], timeout: float) -> T:
        try:
            with self.session() as session, session.begin_transaction(timeout=timeout) as opened:
                self._current.transaction = Transaction(opened, self.adopted)
                try:
                    result = work(self._current.transaction)
                finally:
                    self._current.transaction = None
                opened.commit()
                return result
        except ClientError as error:
            if error.code == _FENCED and mark_of(self.read_move()) != self.adopted:
                raise StoreMoved(f"{self.address.name}: the store is in a migration; nothing was written") from error
            raise

    def read_move(self) -> Move | None:
        """Return the mark of a migration."""
        return next((Move(*row[:-1], started_at=moment(row[-1])) for row in self.read("read_move")), None)

    def attempt(self, work: Callable[[DriverTransaction], None]) -> None:
        """Run `work` once, in a transaction of its own that is rolled back."""
        with self._translated(), self.session() as session, session.begin_transaction(timeout=self.timeout) as opened:
            work(opened)
            opened.rollback()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self.address.name, self.timeout)

    def server(self) -> tuple[str, str]:
        """Return version and edition of the server."""
        (row, *_) = self.read("server")
        return row[1], row[2]

    def _require_open(self) -> None:
        if self._closed:
            raise BackendUnavailable(f"{self.address.name}: this backend was closed; open it again")
        if self._process != os.getpid():
            raise BackendUnavailable(
                f"{self.address.name}: was opened before this process was forked; open it again here"
            )

    def close(self) -> None:
        """Close all connections; a second call does nothing, nor one in a forked process, whose parent uses them."""
        if not self._closed and self._process == os.getpid():
            self._closed = True
            self._driver.close()


class Neo4jRole:
    """Base class of the role classes of `Neo4jBackend`, which share one open database.

    Parameters
    ----------
    database
        The open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def database(self) -> Database:
        """The connections to the server."""
        return self._database
