"""Entities and their aliases: reads, and the search for a question by alias and by full text."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from graphmem.models import Alias, Entity, EntityHit, EntityQuery, Scope, utc_now
from graphmem.protocols import EntityStore, question_words
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.full_text import search_words
from graphmem_sqlite.rows import ENTITY_COLUMNS, as_json, entity_of, micros, scope_keys

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
# unary plus keeps SQLite from reading the whole scope for each id through the index of scopes and ids
_BY_ID = """
SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN entities AS x ON x.id = wanted.value
WHERE +x.scope IN (SELECT value FROM json_each(:scopes)) AND +x.id > :after
"""
# a page of each scope; the outer statement takes the first rows of their union
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

BY_PHRASE = """
SELECT e.key, wanted.value FROM json_each(:scopes) AS asked CROSS JOIN json_each(:phrases) AS wanted
CROSS JOIN aliases AS a ON a.scope = asked.value AND a.alias = wanted.value
CROSS JOIN entities AS e ON e.key = a.entity
ORDER BY length(wanted.value) DESC, e.id, wanted.value
"""
_OPEN = """
SELECT edge_type, confidence, id FROM edges INDEXED BY edges_open_by_source
WHERE source = wanted.value AND valid_to IS NULL
UNION ALL
SELECT edge_type, confidence, id FROM edges INDEXED BY edges_open_by_target
WHERE target = wanted.value AND valid_to IS NULL
UNION ALL
SELECT edge_type, confidence, id FROM edges INDEXED BY edges_ended_by_source
WHERE source = wanted.value AND valid_to > :now AND valid_to > valid_from
UNION ALL
SELECT edge_type, confidence, id FROM edges INDEXED BY edges_ended_by_target
WHERE target = wanted.value AND valid_to > :now AND valid_to > valid_from
ORDER BY confidence DESC, id LIMIT 1000
"""
HITS = " ".join(
    (
        "SELECT",
        ENTITY_COLUMNS,
        ", e.key, (SELECT count(*) || ' ' || count(DISTINCT edge_type) FROM (",
        _OPEN,
        """
        )) FROM json_each(:keys) AS wanted CROSS JOIN entities AS e ON e.key = wanted.value
        CROSS JOIN scopes AS s ON s.key = e.scope
        """,
    )
)


class SQLiteEntities(SQLiteRole, EntityStore):
    """Entities and their aliases."""

    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity that has a name as alias."""
        wanted = {"names": as_json(dict.fromkeys(names)), "scope": scope.key}
        with self._database.reading() as connection:
            return [(row[0], entity_of(row[1:])) for row in connection.execute(RESOLVE_NAMES, wanted)]

    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        values: dict[str, Any] = {"after": after, "limit": limit}
        if query.ids is not None:
            values["ids"] = as_json(dict.fromkeys(query.ids))
        if query.entity_types is not None:
            values["types"] = as_json(query.entity_types)
        if query.as_of is not None:
            values["valid"], values["known"] = micros(query.as_of.valid), micros(query.as_of.known)
        with self._database.reading() as connection:
            values["scopes"] = as_json(scope_keys(connection, scopes))
            return [entity_of(row) for row in connection.execute(entity_statement(query), values)]

    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of the entities, ordered by entity id, then alias."""
        with self._database.reading() as connection:
            values = {"ids": as_json(dict.fromkeys(entity_ids)), "scopes": as_json(scope_keys(connection, scopes))}
            return [
                Alias.model_construct(None, alias=alias, entity_type=entity_type, entity_id=entity_id)
                for alias, entity_type, entity_id in connection.execute(FIND_ALIASES, values)
            ]

    def search_entities(
        self, scopes: Sequence[Scope], *, words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[EntityHit]:
        """Find entities for a question: by alias and by full text."""
        with self._database.reading() as connection:
            keys = scope_keys(connection, scopes)
            aliases = _search_phrases(connection, keys, phrases)
            found = dict.fromkeys(list(aliases)[:limit])
            found.update(dict.fromkeys(search_words(connection, keys, question_words(words), limit)))
            rows = connection.execute(HITS, {"keys": as_json(found), "now": micros(utc_now())})
            return [_hit(row, aliases) for row in rows]


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


def _search_phrases(connection: sqlite3.Connection, scopes: Sequence[int], phrases: Sequence[str]) -> dict[int, str]:
    """Return entity key → its longest alias among the phrases; longest alias first, then by entity id."""
    if not phrases:
        return {}
    values = {"scopes": as_json(scopes), "phrases": as_json(dict.fromkeys(phrases))}
    aliases: dict[int, str] = {}
    for key, phrase in connection.execute(BY_PHRASE, values):
        aliases.setdefault(key, phrase)
    return aliases


def _hit(row: Sequence[Any], aliases: dict[int, str]) -> EntityHit:
    degree, _, edge_types = row[-1].partition(" ")
    return EntityHit(entity_of(row), aliases.get(row[-2]), degree=int(degree), edge_types=int(edge_types))
