"""Finding entities for a question: by alias, and by full text with work that is bounded however common a word is.

Full text (FTS5) finds the rows, the score is computed here. SQLite's own bm25() would read every row that any
word matches, and weighs words by how many rows of *all* scopes there are. Here:

1. For each word at most `_ROWS_PER_WORD` rows are read whose name matches, and as many whose summary does. A
   word that fills that is *common*; of a common word only whole matches are read, not longer words that begin
   with it, because FTS5 has to gather all rows of a prefix before it gives the first.
2. Where several words are common, the rows that hold all of them are read as well.
3. Rows are ranked by the weights of the words they were found by, and the best `_SCORED` are scored exactly:
   BM25 over name and summary with the name counted ten times (BM25F with one saturation; Robertson and Zaragoza
   2009, section 3.5). The number of rows in the formula is a constant and the average length is that of the
   rows scored, so that nothing outside of the scopes asked has an influence.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.models import EntityHit, Scope
from graphmem.protocols import question_words
from graphmem_sqlite.keys import scope_keys
from graphmem_sqlite.rows import ENTITY_COLUMNS, as_json, entity_of, micros

_ROWS_PER_WORD = 1000
_SCORED = 200
_COLLECTION = 1e6
_K1, _B = 1.2, 0.75
_NAME_WEIGHT = 10
_NAMED = 2.0
"""What a match in the name is worth after saturation, against 1 for one in the summary."""

BY_PHRASE = """
SELECT e.key, wanted.value FROM json_each(:scopes) AS asked CROSS JOIN json_each(:phrases) AS wanted
CROSS JOIN aliases AS a ON a.scope = asked.value AND a.alias = wanted.value
CROSS JOIN entities AS e ON e.key = a.entity
ORDER BY length(wanted.value) DESC, e.id, wanted.value
"""
BY_WORD = "SELECT rowid FROM entity_words WHERE entity_words MATCH ? LIMIT ?"
WORDS_OF = """
SELECT e.key, e.id, e.name_words, e.summary_words
FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.key = wanted.value
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


def search_entities(
    connection: sqlite3.Connection,
    scopes: Sequence[Scope],
    *,
    words: Sequence[str],
    phrases: Sequence[str],
    limit: int,
    now: datetime,
) -> list[EntityHit]:
    """Find entities by alias and by words; see `graphmem.protocols.EntityStore.search_entities`."""
    asked = scope_keys(connection, scopes)
    aliases = _by_phrase(connection, asked, phrases)
    found = dict.fromkeys(list(aliases)[:limit])
    found.update(dict.fromkeys(_by_words(connection, asked, question_words(words), limit)))
    rows = connection.execute(HITS, {"keys": as_json(found), "now": micros(now)})
    return [_hit(row, aliases) for row in rows]


def _hit(row: Sequence[Any], aliases: dict[int, str]) -> EntityHit:
    degree, _, edge_types = row[-1].partition(" ")
    return EntityHit(entity_of(row), aliases.get(row[-2]), degree=int(degree), edge_types=int(edge_types))


def _by_phrase(connection: sqlite3.Connection, scopes: Sequence[int], phrases: Sequence[str]) -> dict[int, str]:
    """Return entity key → its longest alias among the phrases; longest alias first, then by entity id."""
    if not phrases:
        return {}
    values = {"scopes": as_json(scopes), "phrases": as_json(dict.fromkeys(phrases))}
    aliases: dict[int, str] = {}
    for key, phrase in connection.execute(BY_PHRASE, values):
        aliases.setdefault(key, phrase)
    return aliases


def _by_words(connection: sqlite3.Connection, scopes: Sequence[int], words: Sequence[str], limit: int) -> list[int]:
    """Return the keys of the best entities by words."""
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
    """Inverse document frequency in a collection of fixed size."""
    return math.log1p((_COLLECTION - rows + 0.5) / (rows + 0.5))


def _saturated(count: float, length: float) -> float:
    return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length))


def _ranked(connection: sqlite3.Connection, keys: Sequence[int], weights: dict[str, float]) -> list[int]:
    """Return keys of entities by their exact score, best first, then by id."""
    rows = connection.execute(WORDS_OF, (as_json(keys),)).fetchall()
    lengths = [name.count(" ") + summary.count(" ") + 2 for _, _, name, summary in rows]
    average = sum(lengths) / max(1, len(lengths))
    scored: list[tuple[float, str, int]] = []
    for (key, entity_id, name, summary), length in zip(rows, lengths, strict=True):
        scope, _, _ = (name or summary).partition("_")
        name, summary = f" {name}", f" {summary}"
        score = 0.0
        for word, weight in weights.items():
            begin = f" {scope}_{word}"
            if count := _NAME_WEIGHT * name.count(begin) + summary.count(begin):
                score += weight * _saturated(count, length / average)
        if score > 0:
            scored.append((-score, entity_id, key))
    return [key for _, _, key in sorted(scored)]
