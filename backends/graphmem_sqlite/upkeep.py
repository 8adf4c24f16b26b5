"""What upkeep needs: marks, fading counts, entities that nothing holds, and a whole scope that goes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from graphmem.models import Mark, Scope, decayed
from graphmem_sqlite.keys import scope_keys
from graphmem_sqlite.rows import as_json, micros, micros_or_none, moment_or_none

_PAGE = 1000

MARKS = "SELECT job, done_at, episodes, begun_at, cursor FROM upkeep_marks WHERE scope = ? ORDER BY job"
PUT_MARK = """
INSERT INTO upkeep_marks (scope, job, done_at, episodes, begun_at, cursor) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (scope, job) DO UPDATE SET
    done_at = excluded.done_at, episodes = excluded.episodes, begun_at = excluded.begun_at, cursor = excluded.cursor
"""
RETRIEVED = """
SELECT key, id, retrieval_count, last_retrieved_at FROM edges INDEXED BY edges_retrieved
WHERE scope = ? AND id > ? AND retrieval_count > 0 ORDER BY id LIMIT ?
"""
SET_COUNT = "UPDATE edges SET retrieval_count = ? WHERE key = ?"
IDLE = """
SELECT e.id FROM entities AS e INDEXED BY entities_by_scope
WHERE e.scope = :scope AND e.archived_at IS NULL AND e.last_seen_at <= :before AND e.recorded_at <= :before
    AND NOT EXISTS (SELECT 1 FROM edges AS x WHERE x.source = e.key
        AND (x.valid_to IS NULL OR (x.valid_to > :now AND x.valid_to > x.valid_from)))
    AND NOT EXISTS (SELECT 1 FROM edges AS x WHERE x.target = e.key
        AND (x.valid_to IS NULL OR (x.valid_to > :now AND x.valid_to > x.valid_from)))
ORDER BY e.id LIMIT :limit
"""
LEAST_CONNECTED = """
SELECT e.id FROM entities AS e INDEXED BY entities_by_scope WHERE e.scope = :scope AND e.archived_at IS NULL
ORDER BY
    (SELECT count(*) FROM edges AS x WHERE x.source = e.key AND x.valid_to IS NULL AND x.expired_at IS NULL)
    + (SELECT count(*) FROM edges AS x WHERE x.target = e.key AND x.valid_to IS NULL AND x.expired_at IS NULL),
    e.last_seen_at, e.id
LIMIT :limit
"""
OF_EPISODES = """
SELECT DISTINCT x.id FROM json_each(:ids) AS wanted
CROSS JOIN episodes AS p ON p.id = wanted.value AND p.scope = :scope
CROSS JOIN edge_episodes AS l ON l.episode = p.key CROSS JOIN edges AS x ON x.key = l.edge ORDER BY x.id
"""
# a sequence never goes back: who begins an index of this scope anew begins it above the generation that goes
LIFT_SEQUENCE = """
UPDATE sqlite_sequence SET seq = max(seq, coalesce((SELECT generation FROM index_states WHERE scope = ?), 0)) + 1
WHERE name = 'index_entries'
"""
BEGIN_SEQUENCE = """
INSERT INTO sqlite_sequence (name, seq)
SELECT 'index_entries', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'index_entries')
"""
CLEAR = (
    "DELETE FROM index_entries WHERE scope = ?",
    "DELETE FROM recalls WHERE scope = ?",
    "DELETE FROM communities WHERE scope = ?",
    "DELETE FROM merges WHERE scope = ?",
    "DELETE FROM edges WHERE scope = ?",
    "DELETE FROM entities WHERE scope = ?",
    "DELETE FROM episodes WHERE scope = ?",
    "DELETE FROM upkeep_marks WHERE scope = ?",
    LIFT_SEQUENCE,
    "DELETE FROM index_states WHERE scope = ?",
    "DELETE FROM scopes WHERE key = ?",
)
MERGE_WORDS = "INSERT INTO entity_words (entity_words) VALUES ('optimize')"


def find_marks(connection: sqlite3.Connection, scope: Scope) -> list[Mark]:
    """Return the marks of a scope, ordered by job."""
    return [
        Mark(job, moment_or_none(done), episodes, moment_or_none(begun), cursor)
        for key in scope_keys(connection, [scope])
        for job, done, episodes, begun, cursor in connection.execute(MARKS, (key,))
    ]


def put_marks(connection: sqlite3.Connection, scope_key: int, marks: Sequence[Mark]) -> None:
    """Insert marks, or replace them by job."""
    connection.executemany(
        PUT_MARK,
        [
            (scope_key, m.job, micros_or_none(m.done_at), m.episodes, micros_or_none(m.begun_at), m.cursor)
            for m in marks
        ],
    )


def decay_retrievals(
    connection: sqlite3.Connection,
    scope: Scope,
    *,
    rate: float,
    idle_since: datetime,
    since: datetime | None,
    now: datetime,
    after: str,
) -> tuple[int, str]:
    """Lower the retrieval counts of a page of facts."""
    page = [
        row
        for key in scope_keys(connection, [scope])
        for row in connection.execute(RETRIEVED, (key, after, _PAGE)).fetchall()
    ]

    def faded(count: float, retrieved: int | None) -> float:
        return decayed(count, moment_or_none(retrieved), rate=rate, idle_since=idle_since, since=since, now=now)

    connection.executemany(SET_COUNT, [(faded(count, retrieved), key) for key, _, count, retrieved in page])
    return len(page), page[-1][1] if len(page) == _PAGE else ""


def find_idle(connection: sqlite3.Connection, scope: Scope, before: datetime, now: datetime, limit: int) -> list[str]:
    """Return ids of entities that were last seen and recorded by `before`, and that no visible fact is about."""
    values = {"before": micros(before), "now": micros(now), "limit": limit}
    found = [connection.execute(IDLE, {"scope": key, **values}) for key in scope_keys(connection, [scope])]
    return [entity_id for rows in found for (entity_id,) in rows]


def find_least_connected(connection: sqlite3.Connection, scope: Scope, limit: int) -> list[str]:
    """Return ids of entities, those with the fewest active facts first, then those seen longest ago."""
    keys = scope_keys(connection, [scope])
    found = [connection.execute(LEAST_CONNECTED, {"scope": key, "limit": limit}) for key in keys]
    return [entity_id for rows in found for (entity_id,) in rows]


def find_edges_of_episodes(connection: sqlite3.Connection, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
    """Return ids of the facts that one of these episodes stated."""
    ids = as_json(dict.fromkeys(episode_ids))
    keys = scope_keys(connection, [scope])
    found = [connection.execute(OF_EPISODES, {"ids": ids, "scope": key}) for key in keys]
    return [edge_id for rows in found for (edge_id,) in rows]


def clear(connection: sqlite3.Connection, scope: Scope) -> None:
    """Remove everything of a scope, its name included; what hangs on the rows goes by ON DELETE CASCADE."""
    for key in scope_keys(connection, [scope]):
        connection.execute(BEGIN_SEQUENCE)
        for statement in CLEAR:
            connection.execute(statement, (key,))


def merge_words(connection: sqlite3.Connection) -> None:
    """Write full text anew without the words of what was deleted, which stay in its segments until they merge."""
    connection.execute(MERGE_WORDS)
