"""Look-ups from the ids that the outside knows to the keys inside of the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from graphmem.errors import InvalidInput
from graphmem.models import Scope
from graphmem_sqlite.rows import as_json

SCOPE_KEYS = "SELECT key FROM scopes WHERE scope_key IN (SELECT value FROM json_each(?))"
ADD_SCOPE = "INSERT INTO scopes (scope_key) VALUES (?) ON CONFLICT (scope_key) DO NOTHING"

ENTITY_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN entities AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
EDGE_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN edges AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
EPISODE_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN episodes AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
COMMUNITY_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN communities AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
_KIND = {ENTITY_KEYS: "entity", EDGE_KEYS: "edge", EPISODE_KEYS: "episode", COMMUNITY_KEYS: "community"}


def scope_keys(connection: sqlite3.Connection, scopes: Iterable[Scope]) -> list[int]:
    """Return the keys of those scopes that the file knows."""
    wanted = as_json(dict.fromkeys(scope.key for scope in scopes))
    return [key for (key,) in connection.execute(SCOPE_KEYS, (wanted,))]


def add_scope(connection: sqlite3.Connection, scope: Scope) -> int:
    """Return the key of a scope, which is added if it is new."""
    known = scope_keys(connection, [scope])
    if not known:
        connection.execute(ADD_SCOPE, (scope.key,))
        known = scope_keys(connection, [scope])
    return known[0]


def require_keys(
    connection: sqlite3.Connection, statement: str, scope: Scope, scope_key: int, ids: Sequence[str]
) -> dict[str, int]:
    """Return id → key of rows of a scope.

    Parameters
    ----------
    connection
        Where to look.
    statement
        `ENTITY_KEYS`, `EDGE_KEYS`, `EPISODE_KEYS` or `COMMUNITY_KEYS`.
    scope, scope_key
        The scope and its key.
    ids
        Each once.

    Raises
    ------
    InvalidInput
        If one isn't in the scope.
    """
    if not ids:
        return {}
    found: dict[str, int] = dict(connection.execute(statement, {"ids": as_json(ids), "scope": scope_key}))
    if len(found) < len(ids):
        absent = next(i for i in ids if i not in found)
        raise InvalidInput(f"{_KIND[statement]} {absent} is not in scope {scope}")
    return found
