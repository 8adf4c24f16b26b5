"""Upkeep: search index, merge ledger, states of jobs, decay of retrieval counts, idle entities, erasure of a scope."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    IndexCursor,
    IndexEntry,
    IndexKind,
    IndexState,
    IndexStatus,
    JobState,
    Merge,
    MergeQuery,
    Scope,
    decayed,
)
from graphmem.protocols import IndexStore, MergeStore, UpkeepStore, require_no_cursor
from graphmem_sqlite.connection import SQLiteRole, translated
from graphmem_sqlite.rows import (
    EDGE_KEYS,
    ENTITY_KEYS,
    EPISODE_KEYS,
    as_json,
    micros,
    micros_or_none,
    moment_or_none,
    require_keys,
    scope_keys,
)

STATE = "SELECT model, generation FROM index_states WHERE scope = ?"
PAGE = """
SELECT kind, key, model, vectors, pieces, detail, complete, position FROM index_entries
WHERE scope = :scope AND position > :after ORDER BY position LIMIT :limit
"""
PAGE_OF_KIND = """
SELECT kind, key, model, vectors, pieces, detail, complete, position FROM index_entries
WHERE scope = :scope AND kind = :kind AND position > :after ORDER BY position LIMIT :limit
"""
BY_KEY = """
SELECT i.kind, i.key, i.model, i.vectors, i.pieces, i.detail, i.complete, i.position FROM json_each(:keys) AS wanted
CROSS JOIN index_entries AS i ON i.scope = :scope AND i.kind = :kind AND i.key = wanted.value ORDER BY i.key
"""


_WITHOUT_ENTRY = r"""(
    NOT EXISTS (SELECT 1 FROM index_entries AS i WHERE i.scope = x.scope AND i.kind = '\1' AND i.key = x.id)
    OR EXISTS (
        SELECT 1 FROM index_entries AS i INDEXED BY index_entries_incomplete
        WHERE i.scope = x.scope AND i.kind = '\1' AND i.key = x.id AND NOT i.complete
    )
)"""


def _expanded(statement: str) -> str:
    """Replace UNINDEXED(kind) by the condition that row `x` has no complete entry, read from indexes alone."""
    return re.sub(r"UNINDEXED\((\w+)\)", _WITHOUT_ENTRY, statement)


UNINDEXED = {
    "episode": _expanded("""
    SELECT x.id FROM episodes AS x
    WHERE x.scope = :scope AND x.id > :after AND UNINDEXED(episode) ORDER BY x.id LIMIT :limit
    """),
    "fact": _expanded("""
    SELECT x.id FROM edges AS x
    WHERE x.scope = :scope AND x.id > :after AND x.valid_to IS NULL AND x.expired_at IS NULL AND x.inferred IS NULL
    AND UNINDEXED(fact) ORDER BY x.id LIMIT :limit
    """),
    "entity": _expanded("""
    SELECT x.id FROM entities AS x WHERE x.scope = :scope AND x.id > :after AND x.archived_at IS NULL
    AND UNINDEXED(entity) ORDER BY x.id LIMIT :limit
    """),
}
INDEX_STATUS = _expanded("""
WITH asked AS (
    SELECT
        wanted.key AS place, s.key AS scope, wanted.value ->> 1 AS episode, wanted.value ->> 2 AS fact,
        wanted.value ->> 3 AS position
    FROM json_each(?) AS wanted JOIN scopes AS s ON s.scope_key = wanted.value ->> 0
)
SELECT
    a.place, t.model, coalesce(t.generation, 0),
    EXISTS (
        SELECT 1 FROM episodes AS x WHERE x.scope = a.scope AND x.id > a.episode AND UNINDEXED(episode)
    ) OR EXISTS (
        SELECT 1 FROM edges AS x
        WHERE x.scope = a.scope AND x.id > a.fact AND x.valid_to IS NULL AND x.expired_at IS NULL AND x.inferred IS NULL
        AND UNINDEXED(fact)
    ),
    EXISTS (SELECT 1 FROM index_entries AS i WHERE i.scope = a.scope AND i.position > a.position),
    EXISTS (
        SELECT 1 FROM episodes AS x INDEXED BY episodes_ended WHERE x.scope = a.scope AND x.ended_at IS NOT NULL
    ) OR EXISTS (
        SELECT 1 FROM episodes AS x INDEXED BY episodes_expiring WHERE x.scope = a.scope AND x.expires_at IS NOT NULL
    )
FROM asked AS a LEFT JOIN index_states AS t ON t.scope = a.scope
""")
REMOVE_ENTRY = "DELETE FROM index_entries WHERE scope = ? AND kind = ? AND key = ?"
ADD = """
INSERT INTO index_entries (scope, kind, key, model, vectors, pieces, detail, complete) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
SET_MODEL = """
INSERT INTO index_states (scope, model, generation)
VALUES (?1, ?2, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_entries'), 0))
ON CONFLICT (scope) DO UPDATE SET model = ?2
"""
RESET = "DELETE FROM index_entries WHERE scope = ?"
NEXT_GENERATION = """
INSERT INTO index_states (scope, model, generation)
VALUES (?, NULL, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_entries'), 0))
ON CONFLICT (scope) DO UPDATE SET model = NULL, generation = generation + 1
"""
_ROWS = {"episode": EPISODE_KEYS, "fact": EDGE_KEYS, "entity": ENTITY_KEYS}


class SQLiteIndex(SQLiteRole, IndexStore):
    """The index entries of each scope."""

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        with self._database.reading() as connection:
            known = scope_keys(connection, [scope])
            return _state(connection, known[0]) if known else IndexState()

    def index_status(self, cursors: Sequence[IndexCursor]) -> list[IndexStatus]:
        """Return the index status of each scope, read by one statement."""
        asked = json.dumps([(cursor.scope.key, cursor.episode, cursor.fact, cursor.position) for cursor in cursors])
        found = [IndexStatus() for _ in cursors]
        with self._database.reading() as connection:
            for place, model, generation, *news in connection.execute(INDEX_STATUS, (asked,)):
                found[place] = IndexStatus(IndexState(model, generation), *map(bool, news))
        return found

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries after a position."""
        statement = PAGE if kind is None else PAGE_OF_KIND
        with self._database.reading() as connection:
            return [
                _entry_of(row)
                for key in scope_keys(connection, [scope])
                for row in connection.execute(statement, {"scope": key, "kind": kind, "after": after, "limit": limit})
            ]

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        wanted = as_json(dict.fromkeys(keys))
        with self._database.reading() as connection:
            return [
                _entry_of(row)
                for key in scope_keys(connection, [scope])
                for row in connection.execute(BY_KEY, {"scope": key, "kind": kind, "keys": wanted})
            ]

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        if kind == "name":
            return []
        with self._database.reading() as connection:
            return [
                row_id
                for key in scope_keys(connection, [scope])
                for (row_id,) in connection.execute(UNINDEXED[kind], {"scope": key, "after": after, "limit": limit})
            ]

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model; return the number of removed entries."""
        removed = 0
        with self._database.writing() as connection:
            for key in scope_keys(connection, [scope]):
                removed = connection.execute(RESET, (key,)).rowcount
                connection.execute(NEXT_GENERATION, (key,))
        return removed


def _state(connection: sqlite3.Connection, scope_key: int) -> IndexState:
    row = connection.execute(STATE, (scope_key,)).fetchone()
    return IndexState() if row is None else IndexState(*row)


def put_entries(connection: sqlite3.Connection, scope: Scope, scope_key: int, entries: Sequence[IndexEntry]) -> None:
    """Insert entries, or replace them by kind and key.

    Raises
    ------
    InvalidInput
        If a row isn't in the scope, or the index was built with another model.
    """
    if not entries:
        return
    for kind, statement in _ROWS.items():
        named = dict.fromkeys(entry.key for entry in entries if entry.kind == kind)
        require_keys(connection, statement, scope, scope_key, list(named))
    model = _state(connection, scope_key).model
    for entry in entries:
        if not entry.complete or entry.model == model:
            continue
        if model is not None:
            raise InvalidInput(f"index of scope {scope}: built with {model!r}, not with {entry.model!r}")
        model = entry.model
        connection.execute(SET_MODEL, (scope_key, model))
    rows = {(e.kind, e.key): e for e in entries}
    connection.executemany(REMOVE_ENTRY, [(scope_key, *named) for named in rows])
    connection.executemany(
        ADD,
        [(scope_key, e.kind, e.key, e.model, e.vectors, e.pieces, e.detail, int(e.complete)) for e in rows.values()],
    )


def _entry_of(row: Sequence[Any]) -> IndexEntry:
    kind, key, model, vectors, pieces, detail, complete, position = row
    return IndexEntry(
        kind=kind,
        key=key,
        model=model,
        vectors=vectors,
        pieces=pieces,
        detail=detail,
        complete=bool(complete),
        position=position,
    )


# Merges -----------------------------------------------------------------------------------------

# Upkeep -------------------------------------------------------------------------------------------


_OF_EACH_SCOPE = """
SELECT m.body FROM json_each(:scopes) AS wanted CROSS JOIN merges AS k ON k.key IN (
    SELECT x.key FROM merges AS x INDEXED BY merges_by_scope
    WHERE x.scope = wanted.value AND x.id > :after AND x.undone <= :undone
"""
_SCOPE_END = "ORDER BY x.id LIMIT :limit) CROSS JOIN merges AS m ON m.key = k.key"
_SCOPE_END_NEWEST = "ORDER BY x.id DESC LIMIT :limit) CROSS JOIN merges AS m ON m.key = k.key"
_BY_ID = """
SELECT m.body FROM merges AS m WHERE m.key IN (
    SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN merges AS x ON x.id = wanted.value
)
"""
_BY_ENTITY = """
SELECT m.body FROM merges AS m WHERE m.key IN (
    SELECT x.key FROM json_each(:entities) AS wanted CROSS JOIN merges AS x ON x.kept = wanted.value
    UNION SELECT x.key FROM json_each(:entities) AS wanted CROSS JOIN merges AS x ON x.merged = wanted.value
)
"""
_CHECK = "AND m.scope IN (SELECT value FROM json_each(:scopes)) AND m.id > :after AND m.undone <= :undone"
_ONLY_IDS = "AND m.id IN (SELECT value FROM json_each(:ids))"
_BY_ID_ORDER = "ORDER BY +m.id LIMIT :limit"
_NEWEST_FIRST = "ORDER BY +m.id DESC LIMIT :limit"
KNOWN_MERGES = "SELECT m.id, m.scope FROM json_each(?) AS wanted CROSS JOIN merges AS m ON m.id = wanted.value"
PUT_MERGE = """
INSERT INTO merges (id, scope, kept, merged, undone, body) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    kept = excluded.kept, merged = excluded.merged, undone = excluded.undone, body = excluded.body
"""


class SQLiteMerges(SQLiteRole, MergeStore):
    """The merge ledger."""

    def find_merges(
        self,
        scopes: Sequence[Scope],
        query: MergeQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Merge]:
        """Return a page of the merges that match."""
        require_no_cursor(after, newest_first=newest_first)
        values: dict[str, Any] = {"after": after, "limit": limit, "undone": int(query.undone)}
        if query.ids is not None:
            values["ids"] = as_json(dict.fromkeys(query.ids))
        if query.entity_ids is not None:
            values["entities"] = as_json(dict.fromkeys(query.entity_ids))
        with self._database.reading() as connection:
            values["scopes"] = as_json(scope_keys(connection, scopes))
            rows = connection.execute(merge_statement(query, newest_first=newest_first), values)
            return [Merge.model_validate_json(body) for (body,) in rows]


def merge_statement(query: MergeQuery, *, newest_first: bool = False) -> str:
    """Return the statement that reads a page of a query, assembled from constants."""
    order = _NEWEST_FIRST if newest_first else _BY_ID_ORDER
    if query.entity_ids is not None:
        return " ".join((_BY_ENTITY, _CHECK, *([] if query.ids is None else [_ONLY_IDS]), order))
    if query.ids is not None:
        return " ".join((_BY_ID, _CHECK, order))
    return " ".join((_OF_EACH_SCOPE, _SCOPE_END_NEWEST if newest_first else _SCOPE_END, order))


def put_merges(connection: sqlite3.Connection, scope_key: int, merges: Sequence[Merge]) -> None:
    """Insert merges, or replace them by id.

    Raises
    ------
    Conflict
        If an id is taken in another scope.
    """
    if not merges:
        return
    for merge_id, holder in connection.execute(KNOWN_MERGES, (as_json(m.id for m in merges),)):
        if holder != scope_key:
            raise Conflict(f"merge id {merge_id} is taken")  # says nothing about the other scope
    connection.executemany(
        PUT_MERGE,
        [(m.id, scope_key, m.kept_id, m.merged.id, int(m.undone_at is not None), m.model_dump_json()) for m in merges],
    )


# Upkeep -----------------------------------------------------------------------------------------

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
        ids = as_json(dict.fromkeys(episode_ids))
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
