"""`SQLiteBackend`: the union of the role classes, with transactions, counts and diagnosis."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable
from typing import TypeVar

from graphmem.models import Move, Scope, StoreStats, mark_of
from graphmem.protocols import GraphBackend
from graphmem_sqlite.communities import SQLiteCommunities
from graphmem_sqlite.connection import translated
from graphmem_sqlite.edges import SQLiteEdges, SQLiteTraversal
from graphmem_sqlite.entities import SQLiteEntities
from graphmem_sqlite.episodes import SQLiteEpisodes
from graphmem_sqlite.file import schema_number
from graphmem_sqlite.index import SQLiteIndex
from graphmem_sqlite.merges import SQLiteMerges
from graphmem_sqlite.rows import micros, moment, scope_keys
from graphmem_sqlite.traces import SQLiteTraces
from graphmem_sqlite.upkeep import SQLiteUpkeep
from graphmem_sqlite.writing import SQLiteWrites

T = TypeVar("T")

SCOPES = """
SELECT scope_key FROM scopes AS s
WHERE EXISTS (SELECT 1 FROM entities WHERE scope = s.key) OR EXISTS (SELECT 1 FROM episodes WHERE scope = s.key)
    OR EXISTS (SELECT 1 FROM communities WHERE scope = s.key) OR EXISTS (SELECT 1 FROM recalls WHERE scope = s.key)
    OR EXISTS (SELECT 1 FROM merges WHERE scope = s.key)
ORDER BY scope_key
"""
ENTITIES = "SELECT entity_type, count(*), count(archived_at) FROM entities WHERE scope = ? GROUP BY entity_type"
ALIASES = "SELECT count(*) FROM aliases WHERE scope = ?"
EDGES = """
SELECT edge_type, count(*), total(valid_to IS NULL AND expired_at IS NULL) FROM edges WHERE scope = ? GROUP BY edge_type
"""
EPISODES = "SELECT count(*) FROM episodes WHERE scope = ?"
UNPROCESSED = """
SELECT count(*), total(error IS NOT NULL AND retry_at IS NULL) FROM episodes INDEXED BY episodes_unprocessed_by_scope
WHERE scope = ? AND processed_at IS NULL
"""
MENTIONS = """
SELECT count(*) FROM episodes AS p INDEXED BY episodes_by_scope
CROSS JOIN mentions AS m ON m.episode = p.key WHERE p.scope = ?
"""
COMMUNITIES = "SELECT count(*), count(ended_at) FROM communities WHERE scope = ?"
MEMBERS = """
SELECT count(*) FROM communities AS x INDEXED BY communities_by_level
CROSS JOIN memberships AS m ON m.community = x.key WHERE x.scope = ? AND x.level = 0 AND m.until IS NULL
"""
READ_MOVE = "SELECT id, state, source, target, started_at FROM move WHERE one = 1"
DROP_MOVE = "DELETE FROM move WHERE one = 1"
PUT_MOVE = "INSERT INTO move (one, id, state, source, target, started_at) VALUES (1, ?, ?, ?, ?, ?)"
RECALLS = "SELECT count(*) FROM recalls WHERE scope = ?"


class SQLiteBackend(
    SQLiteEntities,
    SQLiteEdges,
    SQLiteEpisodes,
    SQLiteCommunities,
    SQLiteTraces,
    SQLiteIndex,
    SQLiteMerges,
    SQLiteUpkeep,
    SQLiteTraversal,
    SQLiteWrites,
    GraphBackend,
):
    """A store in one SQLite file, for concurrent threads and processes.

    Parameters
    ----------
    database
        The open file.
    """

    @property
    def identity(self) -> Hashable:
        """The path of the file."""
        return self._database.file.path.resolve()

    @property
    def has_one_writer(self) -> bool:
        """True: SQLite allows one write transaction per file."""
        return True

    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` in one write transaction; its lock excludes other threads and processes."""
        with self._database.transaction():
            return work()

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` on one state of the file; writers don't wait, and the log grows until `work` returns."""
        with self._database.snapshot():
            return work(self)

    def scopes(self) -> list[Scope]:
        """Return the scopes that hold anything, ordered by key."""
        with self._database.reading() as connection:
            return [Scope.from_key(key) for (key,) in connection.execute(SCOPES)]

    def stats(self, scope: Scope) -> StoreStats:
        """Count the rows of a scope."""
        with self._database.reading() as connection:
            keys = scope_keys(connection, [scope])
            return _stats(connection, keys[0]) if keys else StoreStats()

    def read_move(self) -> Move | None:
        """Return the mark of a migration."""
        with self._database.reading() as connection:
            row = connection.execute(READ_MOVE).fetchone()
        return None if row is None else Move(*row[:-1], started_at=moment(row[-1]))

    def set_move(self, move: Move | None, *, replacing: Move | None) -> bool:
        """Set the mark if it is `replacing`; the lock of the file excludes running transactions."""
        with self._database.transaction(fenced=False) as connection, translated(self._database.name):
            if mark_of(self.read_move()) != mark_of(replacing):
                return False
            connection.execute(DROP_MOVE)
            if move is not None:
                values = (move.id, move.state, move.source, move.target, micros(move.started_at))
                connection.execute(PUT_MOVE, values)
            return True

    def adopt(self, move: Move | None) -> None:
        """Set the mark under which this object writes."""
        self._database.adopted = mark_of(move)

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (check, whether it passed, detail); the integrity check reads the whole file."""
        with self._database.reading() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            page_size = connection.execute("PRAGMA page_size").fetchone()[0]
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            integrity = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            is_read_only = self._database.is_read_only
            return [
                ("place", not is_read_only, self._database.describe()),
                ("SQLite", True, sqlite3.sqlite_version),
                ("schema", True, str(schema_number(connection))),
                ("journal mode", mode == "wal" or is_read_only, mode),
                ("size", True, f"{pages * page_size:,} bytes"),
                ("integrity", integrity == "ok", integrity),
            ]

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._database.close()


def _stats(connection: sqlite3.Connection, scope_key: int) -> StoreStats:
    key = (scope_key,)
    entities = connection.execute(ENTITIES, key).fetchall()
    edges = connection.execute(EDGES, key).fetchall()
    communities, ended = connection.execute(COMMUNITIES, key).fetchone()
    unprocessed, failed = connection.execute(UNPROCESSED, key).fetchone()
    return StoreStats(
        entities=sum(row[1] for row in entities),
        archived_entities=sum(row[2] for row in entities),
        aliases=connection.execute(ALIASES, key).fetchone()[0],
        edges=sum(row[1] for row in edges),
        active_edges=int(sum(row[2] for row in edges)),
        episodes=connection.execute(EPISODES, key).fetchone()[0],
        pending_episodes=unprocessed - int(failed),
        failed_episodes=int(failed),
        mentions=connection.execute(MENTIONS, key).fetchone()[0],
        communities=communities,
        ended_communities=ended,
        community_members=connection.execute(MEMBERS, key).fetchone()[0],
        recalls=connection.execute(RECALLS, key).fetchone()[0],
        edges_by_type={row[0]: row[1] for row in edges},
        entities_by_type={row[0]: row[1] for row in entities},
    )
