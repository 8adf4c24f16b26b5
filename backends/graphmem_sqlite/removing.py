"""Deleting rows; what goes with them is in the schema (ON DELETE CASCADE, and the triggers of the index)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from graphmem.models import Removal

_STATEMENTS = {
    "entity": "DELETE FROM entities WHERE id = :id AND scope = :scope",
    "edge": "DELETE FROM edges WHERE id = :id AND scope = :scope",
    "alias": "DELETE FROM aliases WHERE scope = :scope AND alias = :id AND entity_type = :of",
    "mention": """
    DELETE FROM mentions WHERE entity = (SELECT key FROM entities WHERE id = :id AND scope = :scope)
        AND episode = (SELECT key FROM episodes WHERE id = :of AND scope = :scope)
    """,
    "episode": "DELETE FROM episodes WHERE id = :id AND scope = :scope",
    "community": "DELETE FROM communities WHERE id = :id AND scope = :scope",
    "recall": "DELETE FROM recalls WHERE id = :id AND scope = :scope",
    "merge": "DELETE FROM merges WHERE id = :id AND scope = :scope",
}
_DROP_ENTRY = "DELETE FROM index_entries WHERE scope = ? AND kind = ? AND key = ?"
_TELL = "UPDATE index_states SET generation = generation + 1 WHERE scope = ?"


def remove(connection: sqlite3.Connection, scope_key: int, removals: Sequence[Removal]) -> None:
    """Delete rows of a scope; what isn't there is left out."""
    for kind, statement in _STATEMENTS.items():
        rows = [{"id": r.id, "of": r.of, "scope": scope_key} for r in removals if r.kind == kind]
        connection.executemany(statement, rows)
    for removal in removals:
        if removal.kind == "index":
            remove_entry(connection, scope_key, removal.of, removal.id)


def remove_entry(connection: sqlite3.Connection, scope_key: int, kind: str, key: str) -> None:
    """Delete what the index holds of a row or a name, and tell whoever keeps a copy."""
    if connection.execute(_DROP_ENTRY, (scope_key, kind, key)).rowcount:
        connection.execute(_TELL, (scope_key,))
