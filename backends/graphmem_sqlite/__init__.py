"""The store in one SQLite file: the embedded default."""

from __future__ import annotations

from threading import Lock

from graphmem_sqlite.backend import SQLiteBackend
from graphmem_sqlite.connection import Database
from graphmem_sqlite.place import inspect, path_of

__all__ = ["SQLiteBackend", "open_backend"]

_opening = Lock()
"""A file that is looked at must not be closed again while another thread opens it (see `place.hold`)."""


def open_backend(url: str, *, busy_timeout: float = 60.0) -> SQLiteBackend:
    """Open a store, and create it if nothing is there.

    Parameters
    ----------
    url
        ``sqlite:///relative.db`` or ``sqlite:////absolute.db``.
    busy_timeout
        Seconds that a write waits for another process before it gives up.

    Raises
    ------
    InvalidInput
        If the URL names no file.
    BackendUnavailable
        If the file can't be opened: a missing folder or right, a file that is something else (`NotADatabase`),
        a store of a newer graphmem (`SchemaTooNew`). Nothing is touched then.
    """
    path = path_of(url)
    with _opening:
        return SQLiteBackend(Database(inspect(path), busy_timeout))
