"""What recall keeps beside the rows: entries by their position, and which rows have none."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.models import IndexEntry, IndexKind, IndexLook, IndexNews, IndexState, Scope
from graphmem_sqlite.keys import EDGE_KEYS, ENTITY_KEYS, EPISODE_KEYS, require_keys, scope_keys
from graphmem_sqlite.rows import as_json

STATE = "SELECT model, generation FROM index_states WHERE scope = ?"
PAGE = """
SELECT kind, key, model, vectors, pieces, detail, complete, position FROM index_entries
WHERE scope = :scope AND position > :after ORDER BY position LIMIT :limit
"""
PAGE_OF_KIND = """
SELECT kind, key, model, vectors, pieces, detail, complete, position FROM index_entries
WHERE scope = :scope AND kind = :kind AND position > :after ORDER BY position LIMIT :limit
"""
BY_KEY = """
SELECT i.kind, i.key, i.model, i.vectors, i.pieces, i.detail, i.complete, i.position FROM json_each(:keys) AS wanted
CROSS JOIN index_entries AS i ON i.scope = :scope AND i.kind = :kind AND i.key = wanted.value ORDER BY i.key
"""
UNINDEXED = {
    "episode": """
    SELECT x.id FROM episodes AS x WHERE x.scope = :scope AND x.id > :after AND NOT EXISTS (
        SELECT 1 FROM index_entries AS i
        WHERE i.scope = x.scope AND i.kind = 'episode' AND i.key = x.id AND i.complete
    ) ORDER BY x.id LIMIT :limit
    """,
    "fact": """
    SELECT x.id FROM edges AS x
    WHERE x.scope = :scope AND x.id > :after AND x.valid_to IS NULL AND x.expired_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM index_entries AS i WHERE i.scope = x.scope AND i.kind = 'fact' AND i.key = x.id AND i.complete
    ) ORDER BY x.id LIMIT :limit
    """,
    "entity": """
    SELECT x.id FROM entities AS x WHERE x.scope = :scope AND x.id > :after AND x.archived_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM index_entries AS i WHERE i.scope = x.scope AND i.kind = 'entity' AND i.key = x.id AND i.complete
    ) ORDER BY x.id LIMIT :limit
    """,
}
NEWS = """
WITH asked AS (
    SELECT
        wanted.key AS place, s.key AS scope, wanted.value ->> 1 AS episode, wanted.value ->> 2 AS fact,
        wanted.value ->> 3 AS position
    FROM json_each(?) AS wanted JOIN scopes AS s ON s.scope_key = wanted.value ->> 0
)
SELECT
    a.place, t.model, coalesce(t.generation, 0),
    EXISTS (
        SELECT 1 FROM episodes AS x WHERE x.scope = a.scope AND x.id > a.episode AND NOT EXISTS (
            SELECT 1 FROM index_entries AS i
            WHERE i.scope = x.scope AND i.kind = 'episode' AND i.key = x.id AND i.complete
        )
    ) OR EXISTS (
        SELECT 1 FROM edges AS x
        WHERE x.scope = a.scope AND x.id > a.fact AND x.valid_to IS NULL AND x.expired_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM index_entries AS i
            WHERE i.scope = x.scope AND i.kind = 'fact' AND i.key = x.id AND i.complete
        )
    ),
    EXISTS (SELECT 1 FROM index_entries AS i WHERE i.scope = a.scope AND i.position > a.position)
FROM asked AS a LEFT JOIN index_states AS t ON t.scope = a.scope
"""
DROP = "DELETE FROM index_entries WHERE scope = ? AND kind = ? AND key = ?"
ADD = """
INSERT INTO index_entries (scope, kind, key, model, vectors, pieces, detail, complete) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
SET_MODEL = """
INSERT INTO index_states (scope, model, generation)
VALUES (?1, ?2, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_entries'), 0))
ON CONFLICT (scope) DO UPDATE SET model = ?2
"""
RESET = "DELETE FROM index_entries WHERE scope = ?"
NEXT_GENERATION = """
INSERT INTO index_states (scope, model, generation)
VALUES (?, NULL, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_entries'), 0))
ON CONFLICT (scope) DO UPDATE SET model = NULL, generation = generation + 1
"""
_ROWS = {"episode": EPISODE_KEYS, "fact": EDGE_KEYS, "entity": ENTITY_KEYS}


def index_state(connection: sqlite3.Connection, scope: Scope) -> IndexState:
    """Return the model and the generation of a scope's index."""
    known = scope_keys(connection, [scope])
    return _state(connection, known[0]) if known else IndexState()


def _state(connection: sqlite3.Connection, scope_key: int) -> IndexState:
    row = connection.execute(STATE, (scope_key,)).fetchone()
    return IndexState() if row is None else IndexState(*row)


def index_news(connection: sqlite3.Connection, looks: Sequence[IndexLook]) -> list[IndexNews]:
    """Tell how the index of each scope stands."""
    asked = json.dumps([(look.scope.key, look.episode, look.fact, look.position) for look in looks])
    found = [IndexNews() for _ in looks]
    for place, model, generation, waiting, entries in connection.execute(NEWS, (asked,)):
        found[place] = IndexNews(IndexState(model, generation), bool(waiting), bool(entries))
    return found


def read_index(
    connection: sqlite3.Connection, scope: Scope, kind: IndexKind | None, after: int, limit: int
) -> list[IndexEntry]:
    """Return a page of entries behind a position."""
    known = scope_keys(connection, [scope])
    if not known:
        return []
    values = {"scope": known[0], "kind": kind, "after": after, "limit": limit}
    return [_entry_of(row) for row in connection.execute(PAGE if kind is None else PAGE_OF_KIND, values)]


def find_index(connection: sqlite3.Connection, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
    """Return the entries with these keys, ordered by key."""
    known = scope_keys(connection, [scope])
    if not known:
        return []
    values = {"scope": known[0], "kind": kind, "keys": as_json(dict.fromkeys(keys))}
    return [_entry_of(row) for row in connection.execute(BY_KEY, values)]


def find_unindexed(connection: sqlite3.Connection, scope: Scope, kind: IndexKind, after: str, limit: int) -> list[str]:
    """Return ids of rows without a complete entry, in ascending order."""
    known = scope_keys(connection, [scope])
    if not known or kind == "name":
        return []
    values = {"scope": known[0], "after": after, "limit": limit}
    return [i for (i,) in connection.execute(UNINDEXED[kind], values)]


def put_entries(connection: sqlite3.Connection, scope: Scope, scope_key: int, entries: Sequence[IndexEntry]) -> None:
    """Insert entries, or replace them by kind and key.

    Raises
    ------
    InvalidInput
        If a row isn't in the scope, or the index was built with another model.
    """
    if not entries:
        return
    for kind, statement in _ROWS.items():
        named = dict.fromkeys(entry.key for entry in entries if entry.kind == kind)
        require_keys(connection, statement, scope, scope_key, list(named))
    model = _state(connection, scope_key).model
    for entry in entries:
        if not entry.complete or entry.model == model:
            continue
        if model is not None:
            raise InvalidInput(f"index of scope {scope}: built with {model!r}, not with {entry.model!r}")
        model = entry.model
        connection.execute(SET_MODEL, (scope_key, model))
    rows = {(e.kind, e.key): e for e in entries}
    connection.executemany(DROP, [(scope_key, *named) for named in rows])
    connection.executemany(
        ADD,
        [(scope_key, e.kind, e.key, e.model, e.vectors, e.pieces, e.detail, int(e.complete)) for e in rows.values()],
    )


def reset_index(connection: sqlite3.Connection, scope: Scope) -> int:
    """Delete all entries of a scope and its model."""
    known = scope_keys(connection, [scope])
    if not known:
        return 0
    removed = connection.execute(RESET, (known[0],)).rowcount
    connection.execute(NEXT_GENERATION, (known[0],))
    return removed


def _entry_of(row: Sequence[Any]) -> IndexEntry:
    kind, key, model, vectors, pieces, detail, complete, position = row
    return IndexEntry(
        kind=kind,
        key=key,
        model=model,
        vectors=vectors,
        pieces=pieces,
        detail=detail,
        complete=bool(complete),
        position=position,
    )
