"""The search index: entries, models and generations, and what isn't indexed yet."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence

from graphmem.errors import InvalidInput
from graphmem.models import IndexCursor, IndexEntry, IndexKind, IndexState, IndexStatus, Scope, index_entry
from graphmem.protocols import IndexStore
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.rows import EDGE_KEYS, ENTITY_KEYS, EPISODE_KEYS, as_json, require_keys, scope_keys

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


_WITHOUT_ENTRY = r"""(
    NOT EXISTS (SELECT 1 FROM index_entries AS i WHERE i.scope = x.scope AND i.kind = '\1' AND i.key = x.id)
    OR EXISTS (
        SELECT 1 FROM index_entries AS i INDEXED BY index_entries_incomplete
        WHERE i.scope = x.scope AND i.kind = '\1' AND i.key = x.id AND NOT i.complete
    )
)"""


def _expanded(statement: str) -> str:
    """Replace UNINDEXED(kind) by the condition that row `x` has no complete entry, read from indexes alone."""
    return re.sub(r"UNINDEXED\((\w+)\)", _WITHOUT_ENTRY, statement)


UNINDEXED = {
    "episode": _expanded("""
    SELECT x.id FROM episodes AS x
    WHERE x.scope = :scope AND x.id > :after AND UNINDEXED(episode) ORDER BY x.id LIMIT :limit
    """),
    "fact": _expanded("""
    SELECT x.id FROM edges AS x
    WHERE x.scope = :scope AND x.id > :after AND x.valid_to IS NULL AND x.expired_at IS NULL AND x.inferred IS NULL
    AND UNINDEXED(fact) ORDER BY x.id LIMIT :limit
    """),
    "entity": _expanded("""
    SELECT x.id FROM entities AS x WHERE x.scope = :scope AND x.id > :after AND x.archived_at IS NULL
    AND UNINDEXED(entity) ORDER BY x.id LIMIT :limit
    """),
}
INDEX_STATUS = _expanded("""
WITH asked AS (
    SELECT
        wanted.key AS place, s.key AS scope, wanted.value ->> 1 AS episode, wanted.value ->> 2 AS fact,
        wanted.value ->> 3 AS position
    FROM json_each(?) AS wanted JOIN scopes AS s ON s.scope_key = wanted.value ->> 0
)
SELECT
    a.place, t.model, coalesce(t.generation, 0),
    EXISTS (
        SELECT 1 FROM episodes AS x WHERE x.scope = a.scope AND x.id > a.episode AND UNINDEXED(episode)
    ) OR EXISTS (
        SELECT 1 FROM edges AS x
        WHERE x.scope = a.scope AND x.id > a.fact AND x.valid_to IS NULL AND x.expired_at IS NULL AND x.inferred IS NULL
        AND UNINDEXED(fact)
    ),
    EXISTS (SELECT 1 FROM index_entries AS i WHERE i.scope = a.scope AND i.position > a.position),
    EXISTS (
        SELECT 1 FROM episodes AS x INDEXED BY episodes_ended WHERE x.scope = a.scope AND x.ended_at IS NOT NULL
    ) OR EXISTS (
        SELECT 1 FROM episodes AS x INDEXED BY episodes_expiring WHERE x.scope = a.scope AND x.expires_at IS NOT NULL
    )
FROM asked AS a LEFT JOIN index_states AS t ON t.scope = a.scope
""")
REMOVE_ENTRY = "DELETE FROM index_entries WHERE scope = ? AND kind = ? AND key = ?"
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


class SQLiteIndex(SQLiteRole, IndexStore):
    """The index entries of each scope."""

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        with self._database.reading() as connection:
            known = scope_keys(connection, [scope])
            return _state(connection, known[0]) if known else IndexState()

    def index_status(self, cursors: Sequence[IndexCursor]) -> list[IndexStatus]:
        """Return the index status of each scope, read by one statement."""
        asked = json.dumps([(cursor.scope.key, cursor.episode, cursor.fact, cursor.position) for cursor in cursors])
        found = [IndexStatus() for _ in cursors]
        with self._database.reading() as connection:
            for place, model, generation, *news in connection.execute(INDEX_STATUS, (asked,)):
                found[place] = IndexStatus(IndexState(model, generation), *map(bool, news))
        return found

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries after a position."""
        statement = PAGE if kind is None else PAGE_OF_KIND
        with self._database.reading() as connection:
            return [
                index_entry(row)
                for key in scope_keys(connection, [scope])
                for row in connection.execute(statement, {"scope": key, "kind": kind, "after": after, "limit": limit})
            ]

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        wanted = as_json(keys)
        with self._database.reading() as connection:
            return [
                index_entry(row)
                for key in scope_keys(connection, [scope])
                for row in connection.execute(BY_KEY, {"scope": key, "kind": kind, "keys": wanted})
            ]

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        if kind == "name":
            return []
        with self._database.reading() as connection:
            return [
                row_id
                for key in scope_keys(connection, [scope])
                for (row_id,) in connection.execute(UNINDEXED[kind], {"scope": key, "after": after, "limit": limit})
            ]

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model; return the number of removed entries."""
        removed = 0
        with self._database.writing() as connection:
            for key in scope_keys(connection, [scope]):
                removed = connection.execute(RESET, (key,)).rowcount
                connection.execute(NEXT_GENERATION, (key,))
        return removed


def _state(connection: sqlite3.Connection, scope_key: int) -> IndexState:
    row = connection.execute(STATE, (scope_key,)).fetchone()
    return IndexState() if row is None else IndexState(*row)


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
    connection.executemany(REMOVE_ENTRY, [(scope_key, *named) for named in rows])
    connection.executemany(
        ADD,
        [(scope_key, e.kind, e.key, e.model, e.vectors, e.pieces, e.detail, int(e.complete)) for e in rows.values()],
    )
