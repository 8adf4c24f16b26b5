"""The schema and its numbered migrations, each applied and recorded in one transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from graphmem.errors import SchemaTooNew, StoreReadOnly
from graphmem_sqlite.file import APPLICATION_ID

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


def set_application_id(connection: sqlite3.Connection) -> None:
    """Mark a file without a schema as a store of graphmem, before anything else is written.

    Whether the file is new is read through SQLite, not from its bytes: if a process was killed while it set the mark,
    SQLite rolls the mark back when the file is opened again.
    """
    if connection.execute(_APPLICATION_ID).fetchone()[0] == APPLICATION_ID:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute(_TABLES).fetchone()[0]:
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
