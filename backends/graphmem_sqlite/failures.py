"""The one place where errors of sqlite3 become errors of graphmem."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from graphmem.errors import (
    BackendUnavailable,
    Conflict,
    GraphMemError,
    InvalidInput,
    NotADatabase,
    StoreFull,
    StoreReadOnly,
)

_DAMAGED = "SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"
_TAKEN = "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID"


@contextmanager
def translated(place: str) -> Generator[None, None, None]:
    """Raise what sqlite3 raises inside as an error of `graphmem.errors` that names the place of the store."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, place) from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{place}: a value can't be stored: {error}") from error


def translate(error: sqlite3.Error, place: str) -> GraphMemError:
    """Return the error of graphmem for one of sqlite3."""
    name: str = getattr(error, "sqlite_errorname", "")  # absent where the module, not SQLite, complains
    if name.startswith("SQLITE_CONSTRAINT"):
        if name in _TAKEN:
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
        return BackendUnavailable(f"{place}: another process held the file for too long ({error}); end it, try again")
    if name.startswith("SQLITE_CANTOPEN"):
        return BackendUnavailable(f"{place}: can't be opened ({error}); check that the folder exists and its rights")
    if name.startswith("SQLITE_IOERR"):
        return BackendUnavailable(f"{place}: reading or writing failed ({error}); check the disk")
    if name.startswith(("SQLITE_TOOBIG", "SQLITE_MISMATCH", "SQLITE_RANGE")) or isinstance(error, sqlite3.DataError):
        return InvalidInput(f"{place}: a value can't be stored: {error}")
    return BackendUnavailable(f"{place}: {error}")
