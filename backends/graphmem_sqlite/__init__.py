"""The store in one SQLite file: the embedded default."""

from __future__ import annotations

from threading import Lock

from graphmem_sqlite.backend import SQLiteBackend
from graphmem_sqlite.connection import Database
from graphmem_sqlite.file import inspect, path_of

__all__ = ["SQLiteBackend", "open_backend"]

_opening = Lock()
"""Keeps a file from being closed after its inspection while another thread opens it (see `file.hold`)."""


def open_backend(url: str, *, busy_timeout: float = 60.0) -> SQLiteBackend:
    """Open a store; create it if the file doesn't exist.

    Parameters
    ----------
    url
        ``sqlite:///relative.db`` or ``sqlite:////absolute.db``.
    busy_timeout
        Seconds that a write waits for another process before it fails (setting `sqlite_busy_timeout`).

    Raises
    ------
    InvalidInput
        If the URL names no file.
    BackendUnavailable
        If the file can't be opened: a missing folder or right, a file that is no store (`NotADatabase`),
        a store of a newer graphmem (`SchemaTooNew`). The file is left unchanged then.
    """
    path = path_of(url)
    with _opening:
        return SQLiteBackend(Database(inspect(path), busy_timeout))
