"""The schema and its numbered migrations: each and its record in one transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from graphmem.errors import SchemaTooNew, StoreReadOnly
from graphmem_sqlite.place import APPLICATION_ID

_RECORDS = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL
)
"""
_HAS_RECORDS = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'"
_NUMBER = "SELECT coalesce(max(number), 0) FROM schema_migrations"
_RECORD = "INSERT INTO schema_migrations (number, name, applied_at) VALUES (?, ?, ?)"
_TABLES = "SELECT count(*) FROM sqlite_master"
_MARKED = "PRAGMA application_id"
_MARK = f"PRAGMA application_id = {APPLICATION_ID}"


@cache
def migrations() -> dict[int, tuple[str, tuple[str, ...]]]:
    """Return number → (name, statements) of the migrations that this program knows."""
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
    """Return the number of the last migration that a file has; 0 is a new file."""
    if not connection.execute(_HAS_RECORDS).fetchone()[0]:
        return 0
    return connection.execute(_NUMBER).fetchone()[0]


def claim_file(connection: sqlite3.Connection) -> None:
    """Mark a file without a schema as ours; the mark is in its first page before anything else is.

    Whether it is new is asked here and not of its bytes: where a process was killed while it made the mark,
    SQLite takes it back when the file is opened again.
    """
    if connection.execute(_MARKED).fetchone()[0] == APPLICATION_ID:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute(_TABLES).fetchone()[0]:
            connection.execute(_MARK)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_known(connection: sqlite3.Connection, place: str, *, writable: bool) -> None:
    """Check that this program can work with the schema of a file.

    Raises
    ------
    SchemaTooNew
        If a newer program wrote it.
    StoreReadOnly
        If it would have to be migrated and can't be written.
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
    """Bring a file to the newest schema. Several processes may do so at once: one works, the others find it done."""
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
