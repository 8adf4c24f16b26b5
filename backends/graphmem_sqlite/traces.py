"""Recall traces: reads and writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from graphmem.models import AsOf, RecallQuery, RecallTrace, Scope, TracedEpisode, TracedFact, TracedSeed
from graphmem.protocols import RecallStore, require_no_cursor
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.rows import Row, as_json, micros, moment, require_free, scope_keys

T = TypeVar("T")

# A way in selects keys of recalls `x`, and ends where filters are added.
_PAGE = """
SELECT r.key, r.id, s.scope_key, r.query, r.strategy, r.asked_at, r.valid, r.known
FROM recalls AS r CROSS JOIN scopes AS s ON s.key = r.scope WHERE r.key IN (
"""
_BY_ID_ORDER = ") ORDER BY +r.id LIMIT :limit"
_NEWEST_FIRST = ") ORDER BY +r.id DESC LIMIT :limit"
_SCOPE_CHECK = "AND x.scope IN (SELECT value FROM json_each(:scopes)) AND x.id > :after"
_BY_ID = "SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN recalls AS x WHERE x.id = wanted.value"
_BY_EDGE = """
SELECT x.key FROM json_each(:edges) AS wanted CROSS JOIN edges AS e ON e.id = wanted.value
CROSS JOIN recall_facts AS f ON f.edge = e.key CROSS JOIN recalls AS x ON x.key = f.recall WHERE 1
"""
_BY_EPISODE = """
SELECT x.key FROM json_each(:episodes) AS wanted CROSS JOIN episodes AS e ON e.id = wanted.value
CROSS JOIN recall_episodes AS f ON f.episode = e.key CROSS JOIN recalls AS x ON x.key = f.recall WHERE 1
"""
_BY_ENTITY = """
SELECT x.key FROM json_each(:entities) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
CROSS JOIN recalls AS x ON x.key IN (
    SELECT f.recall FROM recall_seeds AS f WHERE f.entity = e.key
    UNION SELECT f.recall FROM recall_facts AS f WHERE f.entity = e.key
) WHERE 1
"""
_OF_EACH_SCOPE = """
SELECT k.key FROM json_each(:scopes) AS wanted CROSS JOIN recalls AS k ON k.key IN (
    SELECT x.key FROM recalls AS x INDEXED BY recalls_by_scope WHERE x.scope = wanted.value AND x.id > :after
"""
_SCOPE_END = "ORDER BY x.id LIMIT :limit)"
_SCOPE_END_NEWEST = "ORDER BY x.id DESC LIMIT :limit)"
_FILTERS = {
    "ids": "AND x.id IN (SELECT value FROM json_each(:ids))",
    "edge_ids": """
    AND EXISTS (SELECT 1 FROM recall_facts AS g CROSS JOIN edges AS d ON d.key = g.edge
        WHERE g.recall = x.key AND d.id IN (SELECT value FROM json_each(:edges)))
    """,
    "episode_ids": """
    AND EXISTS (SELECT 1 FROM recall_episodes AS g CROSS JOIN episodes AS d ON d.key = g.episode
        WHERE g.recall = x.key AND d.id IN (SELECT value FROM json_each(:episodes)))
    """,
    "entity_ids": """
    AND (EXISTS (SELECT 1 FROM recall_seeds AS g CROSS JOIN entities AS d ON d.key = g.entity
            WHERE g.recall = x.key AND d.id IN (SELECT value FROM json_each(:entities)))
        OR EXISTS (SELECT 1 FROM recall_facts AS g CROSS JOIN entities AS d ON d.key = g.entity
            WHERE g.recall = x.key AND d.id IN (SELECT value FROM json_each(:entities))))
    """,
}
_WAYS_IN = {"ids": _BY_ID, "edge_ids": _BY_EDGE, "episode_ids": _BY_EPISODE, "entity_ids": _BY_ENTITY}

SEEDS = """
SELECT f.recall, e.id, f.score FROM json_each(?) AS wanted
CROSS JOIN recall_seeds AS f ON f.recall = wanted.value CROSS JOIN entities AS e ON e.key = f.entity
ORDER BY f.recall, f.position
"""
FACTS = """
SELECT f.recall, d.id, e.id, f.score, f.hop, f.channel, f.rank FROM json_each(?) AS wanted
CROSS JOIN recall_facts AS f ON f.recall = wanted.value
CROSS JOIN edges AS d ON d.key = f.edge CROSS JOIN entities AS e ON e.key = f.entity
ORDER BY f.recall, f.position
"""
EPISODES = """
SELECT f.recall, e.id, f.score, f.channel, f.rank FROM json_each(?) AS wanted
CROSS JOIN recall_episodes AS f ON f.recall = wanted.value CROSS JOIN episodes AS e ON e.key = f.episode
ORDER BY f.recall, f.position
"""
KNOWN_RECALLS = "SELECT r.id, r.scope FROM json_each(?) AS wanted CROSS JOIN recalls AS r ON r.id = wanted.value"
LAST_RECALL = "SELECT coalesce(max(key), 0) FROM recalls"
ADD_RECALL = """
INSERT INTO recalls (key, id, scope, query, strategy, asked_at, valid, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
ADD_SEED = "INSERT INTO recall_seeds (recall, position, entity, score) VALUES (?, ?, ?, ?)"
ADD_FACT = """
INSERT INTO recall_facts (recall, position, edge, entity, score, hop, channel, rank) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
ADD_EPISODE = """
INSERT INTO recall_episodes (recall, position, episode, score, channel, rank) VALUES (?, ?, ?, ?, ?, ?)
"""


class SQLiteTraces(SQLiteRole, RecallStore):
    """The traces of recalls."""

    def find_recalls(
        self,
        scopes: Sequence[Scope],
        query: RecallQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[RecallTrace]:
        """Return a page of the traces that match, each with all of its rows."""
        require_no_cursor(after, newest_first=newest_first)
        asked = {"ids": query.ids, "edges": query.edge_ids, "episodes": query.episode_ids, "entities": query.entity_ids}
        values: dict[str, Any] = {name: as_json(ids) for name, ids in asked.items() if ids is not None}
        with self._database.reading() as connection:
            values.update(scopes=as_json(scope_keys(connection, scopes)), after=after, limit=limit)
            found = connection.execute(trace_statement(query, newest_first=newest_first), values).fetchall()
            return _traces_of(connection, found)


def trace_statement(query: RecallQuery, *, newest_first: bool = False) -> str:
    """Return the statement that reads a page of a query, assembled from constants."""
    asked = [name for name in _WAYS_IN if getattr(query, name) is not None]
    if asked:
        parts = [_WAYS_IN[asked[0]], _SCOPE_CHECK, *(_FILTERS[name] for name in asked[1:])]
    else:
        parts = [_OF_EACH_SCOPE, _SCOPE_END_NEWEST if newest_first else _SCOPE_END]
    return " ".join((_PAGE, *parts, _NEWEST_FIRST if newest_first else _BY_ID_ORDER))


def _traces_of(connection: sqlite3.Connection, rows: Sequence[Row]) -> list[RecallTrace]:
    """Return the traces of rows of `recalls`, with their seeds, facts and episodes."""
    keys = (as_json(row[0] for row in rows),)
    seeds = _grouped(connection.execute(SEEDS, keys), lambda row: TracedSeed.trusted(entity_id=row[1], score=row[2]))
    facts = _grouped(connection.execute(FACTS, keys), _fact_of)
    episodes = _grouped(connection.execute(EPISODES, keys), _episode_of)
    return [
        RecallTrace.trusted(
            id=row[1],
            scope=Scope.from_key(row[2]),
            query=row[3],
            strategy=row[4],
            asked_at=moment(row[5]),
            as_of=None if row[6] is None else AsOf(moment(row[6]), moment(row[7])),
            seeds=seeds.get(row[0], ()),
            facts=facts.get(row[0], ()),
            episodes=episodes.get(row[0], ()),
        )
        for row in rows
    ]


def _grouped(rows: sqlite3.Cursor, build: Callable[[Row], T]) -> dict[int, tuple[T, ...]]:
    return {key: tuple(build(row) for row in group) for key, group in groupby(rows, key=lambda row: row[0])}


def _fact_of(row: Row) -> TracedFact:
    return TracedFact.trusted(edge_id=row[1], entity_id=row[2], score=row[3], hop=row[4], channel=row[5], rank=row[6])


def _episode_of(row: Row) -> TracedEpisode:
    return TracedEpisode.trusted(episode_id=row[1], score=row[2], channel=row[3], rank=row[4])


def add_traces(
    connection: sqlite3.Connection,
    scope_key: int,
    traces: Sequence[RecallTrace],
    *,
    entities: Mapping[str, int],
    edges: Mapping[str, int],
    episodes: Mapping[str, int],
) -> None:
    """Insert traces; one that is already stored stays unchanged. The maps give id → key of the rows they name.

    Raises
    ------
    Conflict
        If an id is taken in another scope.
    """
    if not traces:
        return
    held: dict[str, int] = dict(connection.execute(KNOWN_RECALLS, (as_json(trace.id for trace in traces),)))
    require_free("recall", held.items(), scope_key)
    (last,) = connection.execute(LAST_RECALL).fetchone()
    fresh: dict[str, RecallTrace] = {}
    for trace in traces:
        if trace.id not in held:
            fresh.setdefault(trace.id, trace)
    new = list(enumerate(fresh.values(), last + 1))
    connection.executemany(ADD_RECALL, [_trace_row(key, scope_key, trace) for key, trace in new])
    connection.executemany(
        ADD_SEED, [(key, n, entities[s.entity_id], s.score) for key, t in new for n, s in enumerate(t.seeds)]
    )
    connection.executemany(
        ADD_FACT,
        [
            (key, n, edges[f.edge_id], entities[f.entity_id], f.score, f.hop, f.channel, f.rank)
            for key, t in new
            for n, f in enumerate(t.facts)
        ],
    )
    connection.executemany(
        ADD_EPISODE,
        [
            (key, n, episodes[e.episode_id], e.score, e.channel, e.rank)
            for key, t in new
            for n, e in enumerate(t.episodes)
        ],
    )


def _trace_row(key: int, scope_key: int, trace: RecallTrace) -> Row:
    as_of = (None, None) if trace.as_of is None else (micros(trace.as_of.valid), micros(trace.as_of.known))
    return (key, trace.id, scope_key, trace.query, trace.strategy, micros(trace.asked_at), *as_of)
