"""Counts of a scope and facts about the file."""

from __future__ import annotations

import sqlite3

from graphmem.models import Scope, StoreStats
from graphmem_sqlite.keys import scope_keys
from graphmem_sqlite.schema import schema_number

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
RECALLS = "SELECT count(*) FROM recalls WHERE scope = ?"


def scopes(connection: sqlite3.Connection) -> list[Scope]:
    """Return the scopes that hold anything, ordered by key."""
    return [Scope.from_key(key) for (key,) in connection.execute(SCOPES)]


def stats(connection: sqlite3.Connection, scope: Scope) -> StoreStats:
    """Count what a scope holds."""
    keys = scope_keys(connection, [scope])
    if not keys:
        return StoreStats()
    entities = connection.execute(ENTITIES, keys).fetchall()
    edges = connection.execute(EDGES, keys).fetchall()
    communities, ended = connection.execute(COMMUNITIES, keys).fetchone()
    unprocessed, failed = connection.execute(UNPROCESSED, keys).fetchone()
    return StoreStats(
        entities=sum(row[1] for row in entities),
        archived_entities=sum(row[2] for row in entities),
        aliases=connection.execute(ALIASES, keys).fetchone()[0],
        edges=sum(row[1] for row in edges),
        active_edges=int(sum(row[2] for row in edges)),
        episodes=connection.execute(EPISODES, keys).fetchone()[0],
        pending_episodes=unprocessed - int(failed),
        failed_episodes=int(failed),
        mentions=connection.execute(MENTIONS, keys).fetchone()[0],
        communities=communities,
        ended_communities=ended,
        community_members=connection.execute(MEMBERS, keys).fetchone()[0],
        recalls=connection.execute(RECALLS, keys).fetchone()[0],
        edges_by_type={row[0]: row[1] for row in edges},
        entities_by_type={row[0]: row[1] for row in entities},
    )


def diagnose(connection: sqlite3.Connection) -> list[tuple[str, bool, str]]:
    """Return (what, whether it is well, detail) on schema, log, size and integrity; reads the whole file."""
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    page_size = connection.execute("PRAGMA page_size").fetchone()[0]
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    integrity = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return [
        ("SQLite", True, sqlite3.sqlite_version),
        ("schema", True, str(schema_number(connection))),
        ("journal mode", mode == "wal", mode),
        ("size", True, f"{pages * page_size} bytes"),
        ("integrity", integrity == "ok", integrity),
    ]
