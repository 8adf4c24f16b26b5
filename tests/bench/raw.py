"""The yardstick: plain `sqlite3` that writes the very rows graphmem would write, into the very same tables.

The rows are prepared beforehand, so that what is measured is SQLite alone; what graphmem takes beyond it is its own.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from graphmem.registry import open_backend

Row = tuple[Any, ...]
TABLES = ("scopes", "episodes", "entities", "aliases", "edges", "edge_episodes", "mentions")
# of each table: the rows with the key of the episode that brought them
BY_EPISODE = {
    "scopes": "SELECT (SELECT min(key) FROM episodes), t.* FROM scopes AS t",
    "episodes": "SELECT t.key, t.* FROM episodes AS t ORDER BY t.key",
    "entities": "SELECT (SELECT min(m.episode) FROM mentions AS m WHERE m.entity = t.key), t.* FROM entities AS t",
    "aliases": "SELECT (SELECT min(m.episode) FROM mentions AS m WHERE m.entity = t.entity), t.* FROM aliases AS t",
    "edges": "SELECT l.episode, t.* FROM edges AS t JOIN edge_episodes AS l ON l.edge = t.key AND l.position = 0",
    "edge_episodes": "SELECT t.episode, t.* FROM edge_episodes AS t",
    "mentions": "SELECT t.episode, t.* FROM mentions AS t",
}
PRAGMAS = (  # those of graphmem_sqlite.connection
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",
    "PRAGMA cache_size = -32768",
    "PRAGMA wal_autocheckpoint = 4000",
)
Unit = dict[str, list[Row]]


def connect(path: Path) -> sqlite3.Connection:
    """Make a store with graphmem's tables and nothing in them, and open it without graphmem."""
    open_backend(f"sqlite:///{path}").close()
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in PRAGMAS:
        connection.execute(pragma)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    return connection


def units_of(path: Path) -> list[Unit]:
    """Read a store's rows, one unit for each episode: what it was the first to bring."""
    units: defaultdict[int, Unit] = defaultdict(lambda: {table: [] for table in TABLES})
    with closing(sqlite3.connect(path)) as connection:
        for table, statement in BY_EPISODE.items():
            for episode, *row in connection.execute(statement):
                units[episode][table].append(tuple(row))
    return [units[episode] for episode in sorted(units)]


def batches_of(units: Sequence[Unit], edges: int) -> list[Unit]:
    """Put units together until each has so many edges."""
    batches: list[Unit] = []
    for unit in units:
        if not batches or len(batches[-1]["edges"]) >= edges:
            batches.append({table: [] for table in TABLES})
        for table, rows in unit.items():
            batches[-1][table] += rows
    return batches


def insert(connection: sqlite3.Connection, units: Iterable[Unit]) -> None:
    """Write each unit in a transaction of its own."""
    for unit in units:
        connection.execute("BEGIN IMMEDIATE")
        for table, rows in unit.items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        connection.execute("COMMIT")
