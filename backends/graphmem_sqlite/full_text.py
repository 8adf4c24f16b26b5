"""Full-text search over entities, with an amount of work that is bounded however common a word is.

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

from graphmem.protocols import COLLECTION_SIZE, split_words, word_scores
from graphmem_sqlite.rows import as_json

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
    return " ".join([f"{scope}_{word}" for word in split_words(text)])


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
