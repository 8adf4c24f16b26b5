"""The merge ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from graphmem.models import Merge, MergeQuery, Scope
from graphmem.protocols import MergeStore, require_no_cursor
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.rows import as_json, require_free, scope_keys

_OF_EACH_SCOPE = """
SELECT m.body FROM json_each(:scopes) AS wanted CROSS JOIN merges AS k ON k.key IN (
    SELECT x.key FROM merges AS x INDEXED BY merges_by_scope
    WHERE x.scope = wanted.value AND x.id > :after AND x.undone <= :undone
"""
_SCOPE_END = "ORDER BY x.id LIMIT :limit) CROSS JOIN merges AS m ON m.key = k.key"
_SCOPE_END_NEWEST = "ORDER BY x.id DESC LIMIT :limit) CROSS JOIN merges AS m ON m.key = k.key"
_BY_ID = """
SELECT m.body FROM merges AS m WHERE m.key IN (
    SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN merges AS x ON x.id = wanted.value
)
"""
_BY_ENTITY = """
SELECT m.body FROM merges AS m WHERE m.key IN (
    SELECT x.key FROM json_each(:entities) AS wanted CROSS JOIN merges AS x ON x.kept = wanted.value
    UNION SELECT x.key FROM json_each(:entities) AS wanted CROSS JOIN merges AS x ON x.merged = wanted.value
)
"""
_CHECK = "AND m.scope IN (SELECT value FROM json_each(:scopes)) AND m.id > :after AND m.undone <= :undone"
_ONLY_IDS = "AND m.id IN (SELECT value FROM json_each(:ids))"
_BY_ID_ORDER = "ORDER BY +m.id LIMIT :limit"
_NEWEST_FIRST = "ORDER BY +m.id DESC LIMIT :limit"
KNOWN_MERGES = "SELECT m.id, m.scope FROM json_each(?) AS wanted CROSS JOIN merges AS m ON m.id = wanted.value"
PUT_MERGE = """
INSERT INTO merges (id, scope, kept, merged, undone, body) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    kept = excluded.kept, merged = excluded.merged, undone = excluded.undone, body = excluded.body
"""


class SQLiteMerges(SQLiteRole, MergeStore):
    """The merge ledger."""

    def find_merges(
        self,
        scopes: Sequence[Scope],
        query: MergeQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Merge]:
        """Return a page of the merges that match."""
        require_no_cursor(after, newest_first=newest_first)
        values: dict[str, Any] = {"after": after, "limit": limit, "undone": int(query.undone)}
        if query.ids is not None:
            values["ids"] = as_json(query.ids)
        if query.entity_ids is not None:
            values["entities"] = as_json(query.entity_ids)
        with self._database.reading() as connection:
            values["scopes"] = as_json(scope_keys(connection, scopes))
            rows = connection.execute(merge_statement(query, newest_first=newest_first), values)
            return [Merge.model_validate_json(body) for (body,) in rows]


def merge_statement(query: MergeQuery, *, newest_first: bool = False) -> str:
    """Return the statement that reads a page of a query, assembled from constants."""
    order = _NEWEST_FIRST if newest_first else _BY_ID_ORDER
    if query.entity_ids is not None:
        return " ".join((_BY_ENTITY, _CHECK, *([] if query.ids is None else [_ONLY_IDS]), order))
    if query.ids is not None:
        return " ".join((_BY_ID, _CHECK, order))
    return " ".join((_OF_EACH_SCOPE, _SCOPE_END_NEWEST if newest_first else _SCOPE_END, order))


def put_merges(connection: sqlite3.Connection, scope_key: int, merges: Sequence[Merge]) -> None:
    """Insert merges, or replace them by id.

    Raises
    ------
    Conflict
        If an id is taken in another scope.
    """
    if not merges:
        return
    require_free("merge", connection.execute(KNOWN_MERGES, (as_json(m.id for m in merges),)), scope_key)
    connection.executemany(
        PUT_MERGE,
        [(m.id, scope_key, m.kept_id, m.merged.id, int(m.undone_at is not None), m.model_dump_json()) for m in merges],
    )
