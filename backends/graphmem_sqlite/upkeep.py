"""Upkeep: states of jobs, decay of retrieval counts, idle entities, erasure of a scope."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from graphmem.models import JobState, Scope, decayed
from graphmem.protocols import UpkeepStore
from graphmem_sqlite.connection import SQLiteRole, translated
from graphmem_sqlite.rows import as_json, micros, micros_or_none, moment_or_none, scope_keys

_DECAY_PAGE = 1000

JOB_STATES = "SELECT job, done_at, episodes, begun_at, cursor FROM upkeep_marks WHERE scope = ? ORDER BY job"
PUT_JOB_STATE = """
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
        AND (x.valid_to IS NULL OR (x.valid_to > :now AND x.valid_to > x.valid_from) OR x.expired_at > :before))
    AND NOT EXISTS (SELECT 1 FROM edges AS x WHERE x.target = e.key
        AND (x.valid_to IS NULL OR (x.valid_to > :now AND x.valid_to > x.valid_from) OR x.expired_at > :before))
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
# a sequence never goes back: a new index of this scope starts above the removed generation
RAISE_SEQUENCE = """
UPDATE sqlite_sequence SET seq = max(seq, coalesce((SELECT generation FROM index_states WHERE scope = ?), 0)) + 1
WHERE name = 'index_entries'
"""
CREATE_SEQUENCE = """
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
    RAISE_SEQUENCE,
    "DELETE FROM index_states WHERE scope = ?",
    "DELETE FROM scopes WHERE key = ?",
)
OPTIMIZE_FULL_TEXT = "INSERT INTO entity_words (entity_words) VALUES ('optimize')"


class SQLiteUpkeep(SQLiteRole, UpkeepStore):
    """States of jobs, decay, idle entities and erasure."""

    def find_job_states(self, scope: Scope) -> list[JobState]:
        """Return the job states of a scope, ordered by job."""
        with self._database.reading() as connection:
            return [
                JobState(job, moment_or_none(done), episodes, moment_or_none(begun), cursor)
                for key in scope_keys(connection, [scope])
                for job, done, episodes, begun, cursor in connection.execute(JOB_STATES, (key,))
            ]

    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts."""

        def decayed_count(count: float, retrieved: int | None) -> float:
            return decayed(count, moment_or_none(retrieved), rate=rate, idle_since=idle_since, since=since, now=now)

        with self._database.writing() as connection:
            page = [
                row
                for key in scope_keys(connection, [scope])
                for row in connection.execute(RETRIEVED, (key, after, _DECAY_PAGE)).fetchall()
            ]
            counts = [(decayed_count(count, retrieved), key) for key, _, count, retrieved in page]
            connection.executemany(SET_COUNT, counts)
        return len(page), page[-1][1] if len(page) == _DECAY_PAGE else ""

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities last seen and recorded by `before`, without visible facts or ones expired later."""
        values = {"before": micros(before), "now": micros(now), "limit": limit}
        with self._database.reading() as connection:
            return [
                entity_id
                for key in scope_keys(connection, [scope])
                for (entity_id,) in connection.execute(IDLE, {"scope": key, **values})
            ]

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities, those with the fewest active facts first, then those last seen earliest."""
        with self._database.reading() as connection:
            return [
                entity_id
                for key in scope_keys(connection, [scope])
                for (entity_id,) in connection.execute(LEAST_CONNECTED, {"scope": key, "limit": limit})
            ]

    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts stated by these episodes."""
        ids = as_json(episode_ids)
        with self._database.reading() as connection:
            return [
                edge_id
                for key in scope_keys(connection, [scope])
                for (edge_id,) in connection.execute(OF_EPISODES, {"ids": ids, "scope": key})
            ]

    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope, its name included, in one transaction; dependent rows go by cascade."""
        with self._database.writing() as connection:
            for key in scope_keys(connection, [scope]):
                connection.execute(CREATE_SEQUENCE)
                for statement in CLEAR:
                    connection.execute(statement, (key,))

    def scrub(self) -> bool:
        """Rewrite full text and file and truncate the log, which takes as long as copying the file.

        Full text keeps the words of deleted rows in its segments until they are merged.
        """
        with self._database.transaction(fenced=False) as connection, translated(self._database.name):
            connection.execute(OPTIMIZE_FULL_TEXT)
        return self._database.vacuum()


def put_job_states(connection: sqlite3.Connection, scope_key: int, job_states: Sequence[JobState]) -> None:
    """Insert job states, or replace them by job."""
    connection.executemany(
        PUT_JOB_STATE,
        [
            (scope_key, m.job, micros_or_none(m.done_at), m.episodes, micros_or_none(m.begun_at), m.cursor)
            for m in job_states
        ],
    )
