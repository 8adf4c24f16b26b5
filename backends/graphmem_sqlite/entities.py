"""Reading entities and aliases."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from graphmem.models import Alias, Entity, EntityQuery, Scope
from graphmem_sqlite.keys import scope_keys
from graphmem_sqlite.rows import ENTITY_COLUMNS, as_json, entity_of, micros

RESOLVE_NAMES = " ".join(
    (
        "SELECT wanted.value,",
        ENTITY_COLUMNS,
        """
        FROM json_each(:names) AS wanted
        CROSS JOIN aliases AS a
        ON a.scope = (SELECT key FROM scopes WHERE scope_key = :scope) AND a.alias = wanted.value
        CROSS JOIN entities AS e ON e.key = a.entity
        CROSS JOIN scopes AS s ON s.key = e.scope
        ORDER BY wanted.key, e.id
        """,
    )
)

_PAGE = ("SELECT", ENTITY_COLUMNS, "FROM entities AS e CROSS JOIN scopes AS s ON s.key = e.scope WHERE e.key IN (")
_END = ") ORDER BY +e.id LIMIT :limit"
# the pluses keep SQLite from reading the whole scope for each id, by the index that has scopes and ids
_BY_ID = """
SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN entities AS x ON x.id = wanted.value
WHERE +x.scope IN (SELECT value FROM json_each(:scopes)) AND +x.id > :after
"""
# a page of each scope, of which the outer statement takes the first
_BY_SCOPE = """
SELECT k.key FROM json_each(:scopes) AS wanted CROSS JOIN entities AS k ON k.key IN (
    SELECT x.key FROM entities AS x WHERE x.scope = wanted.value AND x.id > :after
"""
_BY_SCOPE_END = "ORDER BY x.id LIMIT :limit)"
_TYPES = "AND x.entity_type IN (SELECT value FROM json_each(:types))"
_NOT_ARCHIVED = "AND x.archived_at IS NULL"
_AS_OF = """
AND x.recorded_at <= :known AND x.first_seen_at <= :valid
AND (x.valid_from IS NULL OR x.valid_from <= :valid) AND (x.valid_to IS NULL OR :valid < x.valid_to)
"""

FIND_ALIASES = """
SELECT a.alias, a.entity_type, e.id FROM json_each(:ids) AS wanted
CROSS JOIN entities AS e ON e.id = wanted.value
CROSS JOIN aliases AS a ON a.entity = e.key
WHERE e.scope IN (SELECT value FROM json_each(:scopes))
ORDER BY e.id, a.alias, a.entity_type
"""


def resolve_names(connection: sqlite3.Connection, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
    """Return (name, entity) for each entity of which a name is an alias."""
    wanted = {"names": as_json(dict.fromkeys(names)), "scope": scope.key}
    return [(row[0], entity_of(row[1:])) for row in connection.execute(RESOLVE_NAMES, wanted)]


def entity_statement(query: EntityQuery) -> str:
    """Return the statement that reads a page of a query; it is put together from constants."""
    parts = [*_PAGE, _BY_SCOPE if query.ids is None else _BY_ID]
    if query.entity_types is not None:
        parts.append(_TYPES)
    if query.ids is None and not query.archived:
        parts.append(_NOT_ARCHIVED)
    if query.as_of is not None:
        parts.append(_AS_OF)
    if query.ids is None:
        parts.append(_BY_SCOPE_END)
    return " ".join((*parts, _END))


def find_entities(
    connection: sqlite3.Connection, scopes: Sequence[Scope], query: EntityQuery, after: str, limit: int
) -> list[Entity]:
    """Return a page of the entities that match, in ascending order of id."""
    values: dict[str, Any] = {"scopes": as_json(scope_keys(connection, scopes)), "after": after, "limit": limit}
    if query.ids is not None:
        values["ids"] = as_json(dict.fromkeys(query.ids))
    if query.entity_types is not None:
        values["types"] = as_json(query.entity_types)
    if query.as_of is not None:
        values["valid"], values["known"] = micros(query.as_of.valid), micros(query.as_of.known)
    return [entity_of(row) for row in connection.execute(entity_statement(query), values)]


def find_aliases(connection: sqlite3.Connection, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
    """Return all aliases of these entities, ordered by entity id, then alias."""
    values = {"ids": as_json(dict.fromkeys(entity_ids)), "scopes": as_json(scope_keys(connection, scopes))}
    return [
        Alias.model_construct(None, alias=alias, entity_type=entity_type, entity_id=entity_id)
        for alias, entity_type, entity_id in connection.execute(FIND_ALIASES, values)
    ]
