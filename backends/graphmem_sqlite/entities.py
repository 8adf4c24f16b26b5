"""Entities and their aliases: reads, and the search for a question by alias and by full text.

Each word is indexed with the key of its scope in front ("12_alice"). A prefix query for "12_ali" then reads only the
words of scope 12: other scopes cost nothing and change no result.

Full text (FTS5) finds the rows; the score is computed here. SQLite's own bm25() would read every row that matches any
word, and weighs words by their number of rows in *all* scopes. Instead:

1. For each word at most `_ROWS_PER_WORD` rows are read whose name matches, and as many whose summary matches. A
   word that reaches that limit is *common*; of a common word only whole matches are read, not longer words that begin
   with it, because FTS5 has to gather all rows of a prefix before it returns the first.
2. If several words are common, the rows that contain all of them are read as well.
3. Rows are ranked by the weights of the words they were found by, and the best `_SCORED` are scored exactly:
   BM25 over name and summary with the name counted ten times (BM25F with one saturation; Robertson and Zaragoza
   2009, section 3.5). The number of rows in the formula is a constant and the average length is that of the
   scored rows, so that nothing outside of the searched scopes has an influence.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from graphmem.models import Alias, Entity, EntityHit, EntityQuery, Scope, utc_now
from graphmem.protocols import COLLECTION_SIZE, EntityStore, index_words, question_words, word_scores
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.rows import ENTITY_COLUMNS, as_json, as_of_values, entity_of, micros, scope_keys

_ROWS_PER_WORD = 1000
_SCORED = 200
_NAMED = 2.0
"""Weight of a match in the name after saturation; a match in the summary weighs 1."""

BY_WORD = "SELECT rowid FROM entity_words WHERE entity_words MATCH ? LIMIT ?"
WORDS_OF = """
SELECT e.key, e.id, e.name_words, e.summary_words
FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.key = wanted.value
"""


def scoped_words(scope: int, text: str) -> str:
    """Return the words of a text as they are indexed for a scope."""
    return " ".join([f"{scope}_{word}" for word in index_words(text)])


def search_words(connection: sqlite3.Connection, scopes: Sequence[int], words: Sequence[str], limit: int) -> list[int]:
    """Return the keys of the entities that match words best."""
    if not words or not scopes or limit < 1:
        return []
    weights: dict[str, float] = {}
    partial: defaultdict[int, float] = defaultdict(float)
    common: list[str] = []
    for word in words:
        names, summaries, is_common = _rows_of(connection, scopes, word)
        weights[word] = _weight(len(names | summaries))
        if is_common:
            common.append(word)
        for key in names:
            partial[key] += _NAMED * weights[word]
        for key in summaries - names:
            partial[key] += weights[word]
    if len(common) > 1:
        for key in _matching(connection, _all_of(scopes, common), _ROWS_PER_WORD):
            partial[key] = max(partial[key], _NAMED * sum(weights[word] for word in common))
    best = sorted((-score, key) for key, score in partial.items())[: max(_SCORED, 2 * limit)]
    return _ranked(connection, [key for _, key in best], weights)[:limit]


def _rows_of(connection: sqlite3.Connection, scopes: Sequence[int], word: str) -> tuple[set[int], set[int], bool]:
    """Return (keys by name, keys by summary, whether the word is common)."""
    is_common = len(_matching(connection, _any_of(scopes, word, ""), _ROWS_PER_WORD)) == _ROWS_PER_WORD
    tail = "" if is_common else "*"
    terms = _any_of(scopes, word, tail)
    names = _matching(connection, f"name_words : ({terms})", _ROWS_PER_WORD)
    summaries = _matching(connection, f"summary_words : ({terms})", _ROWS_PER_WORD)
    return set(names), set(summaries), is_common


def _any_of(scopes: Sequence[int], word: str, tail: str) -> str:
    return " OR ".join(f'"{scope}_{word}"{tail}' for scope in scopes)


def _all_of(scopes: Sequence[int], words: Sequence[str]) -> str:
    return " AND ".join(f"({_any_of(scopes, word, '')})" for word in words)


def _matching(connection: sqlite3.Connection, expression: str, limit: int) -> list[int]:
    return [key for (key,) in connection.execute(BY_WORD, (expression, limit))]


def _weight(rows: int) -> float:
    """Return the inverse document frequency in a collection of fixed size."""
    return math.log1p((COLLECTION_SIZE - rows + 0.5) / (rows + 0.5))


def _ranked(connection: sqlite3.Connection, keys: Sequence[int], weights: dict[str, float]) -> list[int]:
    """Return keys of entities by their exact score, best first, then by id."""
    rows = connection.execute(WORDS_OF, (as_json(keys),)).fetchall()
    scores = word_scores([(name, summary) for _, _, name, summary in rows], weights)
    scored = [(-score, entity_id, key) for score, (key, entity_id, _, _) in zip(scores, rows, strict=True) if score > 0]
    return [key for _, _, key in sorted(scored)]


# Entities -----------------------------------------------------------------------------------------


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
        wanted = {"names": as_json(names), "scope": scope.key}
        with self._database.reading() as connection:
            return [(row[0], entity_of(row[1:])) for row in connection.execute(RESOLVE_NAMES, wanted)]

    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        values: dict[str, Any] = {"after": after, "limit": limit}
        if query.ids is not None:
            values["ids"] = as_json(query.ids)
        if query.entity_types is not None:
            values["types"] = as_json(query.entity_types)
        if query.as_of is not None:
            values |= as_of_values(query.as_of)
        with self._database.reading() as connection:
            values["scopes"] = as_json(scope_keys(connection, scopes))
            return [entity_of(row) for row in connection.execute(entity_statement(query), values)]

    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of the entities, ordered by entity id, then alias."""
        with self._database.reading() as connection:
            values = {"ids": as_json(entity_ids), "scopes": as_json(scope_keys(connection, scopes))}
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
    values = {"scopes": as_json(scopes), "phrases": as_json(phrases)}
    aliases: dict[int, str] = {}
    for key, phrase in connection.execute(BY_PHRASE, values):
        aliases.setdefault(key, phrase)
    return aliases


def _hit(row: Sequence[Any], aliases: dict[int, str]) -> EntityHit:
    degree, _, edge_types = row[-1].partition(" ")
    return EntityHit(entity_of(row), aliases.get(row[-2]), degree=int(degree), edge_types=int(edge_types))
