"""Writes: ids become keys once for a whole write, then every table is one executemany."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.models import Changes, Edge, EdgeExpiry, Entity, Removal, Scope
from graphmem.protocols import require_scope
from graphmem_sqlite.communities import put_communities, put_memberships
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.entities import scoped_words
from graphmem_sqlite.index import REMOVE_ENTRY, put_entries
from graphmem_sqlite.merges import put_merges
from graphmem_sqlite.rows import (
    EDGE_KEYS,
    ENTITY_KEYS,
    EPISODE_KEYS,
    Row,
    add_scope,
    as_json,
    micros,
    micros_or_none,
    properties_json,
    require_free,
    require_keys,
    stated_json,
)
from graphmem_sqlite.traces import add_traces
from graphmem_sqlite.upkeep import put_job_states

KNOWN_ENTITIES = """
SELECT e.id, e.key, e.scope, e.canonical_name, e.entity_type, e.name, e.summary
FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
"""
LAST_ENTITY = "SELECT coalesce(max(key), 0) FROM entities"
INSERT_ENTITY = """
INSERT INTO entities (
    properties, confidence, first_seen_at, last_seen_at, recorded_at, access_count, archived_at, valid_from, valid_to,
    name, canonical_name, entity_type, summary, name_words, summary_words, id, scope, key
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# most writes of a known entity only update when it was seen: they leave the indexes of names and words alone
UPDATE_SEEN = """
UPDATE entities SET
    properties = ?, confidence = ?, first_seen_at = ?, last_seen_at = ?, recorded_at = ?, access_count = ?,
    archived_at = ?, valid_from = ?, valid_to = ?
WHERE key = ?
"""
UPDATE_ENTITY = """
UPDATE entities SET
    properties = ?, confidence = ?, first_seen_at = ?, last_seen_at = ?, recorded_at = ?, access_count = ?,
    archived_at = ?, valid_from = ?, valid_to = ?,
    name = ?, canonical_name = ?, entity_type = ?, summary = ?, name_words = ?, summary_words = ?
WHERE key = ?
"""
PUT_ALIAS = """
INSERT INTO aliases (scope, alias, entity_type, entity) VALUES (?, ?, ?, ?)
ON CONFLICT (scope, alias, entity_type) DO UPDATE SET entity = excluded.entity WHERE entity <> excluded.entity
"""
BEGINS = "SELECT e.key, e.valid_from FROM json_each(?) AS wanted CROSS JOIN edges AS e ON e.key = wanted.value"
EXPIRE_EDGE = """
UPDATE edges SET valid_to = ?, expired_at = ?, superseded_by = ?, end_reason = ?, ends = ?
WHERE key = ? AND valid_to IS NULL AND expired_at IS NULL
"""
KNOWN_EDGES = """
SELECT e.id, e.key, e.scope FROM json_each(?) AS wanted CROSS JOIN edges AS e ON e.id = wanted.value
"""
LAST_EDGE = "SELECT coalesce(max(key), 0) FROM edges"
INSERT_EDGE = """
INSERT INTO edges (
    source, target, relation, edge_type, fact, confidence, valid_from, valid_to, recorded_at, expired_at,
    superseded_by, retrieval_count, last_retrieved_at, properties, certainty, kind, inferred, valid_from_assumed,
    told_at, prior_valid_to, end_reason, ends, beginnings, id, scope, key
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
UPDATE_EDGE = """
UPDATE edges SET
    source = ?, target = ?, relation = ?, edge_type = ?, fact = ?, confidence = ?, valid_from = ?, valid_to = ?,
    recorded_at = ?, expired_at = ?, superseded_by = ?, retrieval_count = ?, last_retrieved_at = ?, properties = ?,
    certainty = ?, kind = ?, inferred = ?, valid_from_assumed = ?, told_at = ?, prior_valid_to = ?, end_reason = ?,
    ends = ?, beginnings = ?
WHERE key = ?
"""
DROP_EDGE_EPISODES = "DELETE FROM edge_episodes WHERE edge = ?"
ADD_EDGE_EPISODE = "INSERT INTO edge_episodes (edge, position, episode) VALUES (?, ?, ?)"
CORROBORATE_EDGE = """
INSERT INTO edge_episodes (edge, position, episode)
SELECT ?1, coalesce((SELECT max(position) + 1 FROM edge_episodes WHERE edge = ?1), 0), ?2
WHERE NOT EXISTS (SELECT 1 FROM edge_episodes WHERE episode = ?2 AND edge = ?1)
"""
RAISE_CONFIDENCE = "UPDATE edges SET confidence = ?1 WHERE key = ?2 AND confidence < ?1"
ADD_MENTION = """
INSERT INTO mentions (entity, episode, surface, confidence, seen_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (entity, episode) DO NOTHING
"""
SET_RESULT = """
UPDATE episodes SET
    processed_at = ?, error = ?, attempts = ?, retry_at = ?, claimed_by = NULL, claimed_until = NULL
WHERE key = ?
"""
REDACT = "UPDATE episodes SET text = ? WHERE key = ?"
END_EPISODE = "UPDATE episodes SET ended_at = ? WHERE key = ?"
SET_EXPIRY = "UPDATE episodes SET expires_at = ? WHERE key = ?"
_REMOVE = {
    "entity": "DELETE FROM entities WHERE id = :id AND scope = :scope",
    "edge": "DELETE FROM edges WHERE id = :id AND scope = :scope",
    "alias": "DELETE FROM aliases WHERE scope = :scope AND alias = :id AND entity_type = :qualifier",
    "mention": """
    DELETE FROM mentions WHERE entity = (SELECT key FROM entities WHERE id = :id AND scope = :scope)
        AND episode = (SELECT key FROM episodes WHERE id = :qualifier AND scope = :scope)
    """,
    "episode": "DELETE FROM episodes WHERE id = :id AND scope = :scope",
    "community": "DELETE FROM communities WHERE id = :id AND scope = :scope",
    "recall": "DELETE FROM recalls WHERE id = :id AND scope = :scope",
    "merge": "DELETE FROM merges WHERE id = :id AND scope = :scope",
}
_NEXT_GENERATION = "UPDATE index_states SET generation = generation + 1 WHERE scope = ?"


class SQLiteWrites(SQLiteRole):
    """Atomic writes of `Changes`."""

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes`, all or nothing."""
        with self._database.writing() as connection:
            _Write(connection, scope, changes).run()


class _Write:
    def __init__(self, connection: sqlite3.Connection, scope: Scope, changes: Changes) -> None:
        self._connection = connection
        self._scope = scope
        self._changes = changes
        self._scope_key = 0
        self._entities: dict[str, int] = {}
        self._episodes: dict[str, int] = {}

    def run(self) -> None:
        require_scope(self._scope, self._changes)
        self._scope_key = add_scope(self._connection, self._scope)
        self._put_entities()
        self._find_entities()
        self._find_episodes()
        self._put_aliases()
        self._expire_edges()
        self._put_edges()
        self._corroborate_edges()
        self._add_mentions()
        self._set_results()
        self._redact_episodes()
        self._limit_episodes()
        self._put_communities()
        self._add_traces()
        put_entries(self._connection, self._scope, self._scope_key, self._changes.index)
        put_merges(self._connection, self._scope_key, self._changes.merges)
        put_job_states(self._connection, self._scope_key, self._changes.job_states)
        _remove(self._connection, self._scope_key, self._changes.removals)

    # Entities -------------------------------------------------------------------------------------

    def _put_entities(self) -> None:
        rows = {e.id: e for e in self._changes.entities}
        if not rows:
            return
        found = self._connection.execute(KNOWN_ENTITIES, (as_json(rows),)).fetchall()
        known = {row[0]: row for row in found}
        require_free("entity", ((row[0], row[2]) for row in found), self._scope_key)
        self._entities = {row[0]: row[1] for row in found}
        (last,) = self._connection.execute(LAST_ENTITY).fetchone()
        fresh = (i for i in rows if i not in known)
        self._entities.update((i, key) for key, i in enumerate(fresh, last + 1))

        def kind(entity: Entity) -> str:
            before = known.get(entity.id)
            if before is None:
                return INSERT_ENTITY
            same = before[3:] == (entity.canonical_name, entity.entity_type, entity.name, entity.summary)
            return UPDATE_SEEN if same else UPDATE_ENTITY

        _run_in_order(self._connection, rows.values(), kind, self._entity_row)

    def _entity_row(self, statement: str, entity: Entity) -> Row:
        key = self._entities[entity.id]
        seen = (
            properties_json(entity.properties),
            entity.confidence,
            micros(entity.first_seen_at),
            micros(entity.last_seen_at),
            micros(entity.recorded_at),
            entity.access_count,
            micros_or_none(entity.archived_at),
            micros_or_none(entity.valid_from),
            micros_or_none(entity.valid_to),
        )
        if statement is UPDATE_SEEN:
            return (*seen, key)
        named = (
            *seen,
            entity.name,
            entity.canonical_name,
            entity.entity_type,
            entity.summary,
            scoped_words(self._scope_key, entity.name),
            scoped_words(self._scope_key, entity.summary),
        )
        return (*named, key) if statement is UPDATE_ENTITY else (*named, entity.id, self._scope_key, key)

    def _find_entities(self) -> None:
        """Add the keys of entities that are referenced but not written to id → key."""
        changes, known = self._changes, self._entities
        named = dict.fromkeys(a.entity_id for a in changes.aliases)
        named.update(dict.fromkeys(e.source_id for e in changes.edges))
        named.update(dict.fromkeys(e.target_id for e in changes.edges))
        named.update(dict.fromkeys(m.entity_id for m in changes.mentions))
        named.update(dict.fromkeys(m.entity_id for m in changes.memberships))
        for trace in changes.recalls:
            named.update(dict.fromkeys(seed.entity_id for seed in trace.seeds))
            named.update(dict.fromkeys(fact.entity_id for fact in trace.facts))
        absent = [i for i in named if i not in known]
        known.update(require_keys(self._connection, ENTITY_KEYS, self._scope, self._scope_key, absent))

    def _find_episodes(self) -> None:
        changes = self._changes
        named = dict.fromkeys(i for e in changes.edges for i in e.episode_ids)
        named.update(dict.fromkeys(i for s in changes.corroborations for i in s.episode_ids))
        named.update(dict.fromkeys(m.episode_id for m in changes.mentions))
        named.update(dict.fromkeys(o.episode_id for o in changes.results))
        timed = (*changes.redactions, *changes.episode_ends, *changes.episode_expiries)
        named.update(dict.fromkeys(r.episode_id for r in timed))
        named.update(dict.fromkeys(found.episode_id for trace in changes.recalls for found in trace.episodes))
        self._episodes = require_keys(self._connection, EPISODE_KEYS, self._scope, self._scope_key, list(named))

    def _put_aliases(self) -> None:
        scope, keys = self._scope_key, self._entities
        rows = [(scope, a.alias, a.entity_type, keys[a.entity_id]) for a in self._changes.aliases]
        self._connection.executemany(PUT_ALIAS, rows)

    # Edges ----------------------------------------------------------------------------------------

    def _edge_keys(self, ids: Iterable[str]) -> dict[str, int]:
        return require_keys(self._connection, EDGE_KEYS, self._scope, self._scope_key, list(dict.fromkeys(ids)))

    def _expire_edges(self) -> None:
        expiries = self._changes.expiries
        if not expiries:
            return
        keys = self._edge_keys(c.edge_id for c in expiries)
        begins = dict(self._connection.execute(BEGINS, (as_json(keys.values()),)))

        def row(expiry: EdgeExpiry) -> Row:
            key, valid_to = keys[expiry.edge_id], micros(expiry.valid_to)
            if valid_to < begins[key]:
                raise InvalidInput(
                    f"edge {expiry.edge_id}: valid_to {expiry.valid_to.isoformat()} lies before its valid_from"
                )
            expired_at, ends = micros(expiry.expired_at), stated_json(expiry.ends)
            return (valid_to, expired_at, expiry.superseded_by, expiry.reason, ends, key)

        self._connection.executemany(EXPIRE_EDGE, [row(c) for c in expiries])

    def _put_edges(self) -> None:
        rows = {e.id: e for e in self._changes.edges}
        if not rows:
            return
        found = self._connection.execute(KNOWN_EDGES, (as_json(rows),)).fetchall()
        require_free("edge", ((row[0], row[2]) for row in found), self._scope_key)
        keys: dict[str, int] = {row[0]: row[1] for row in found}
        known = frozenset(keys)
        (last,) = self._connection.execute(LAST_EDGE).fetchone()
        keys.update((i, key) for key, i in enumerate((i for i in rows if i not in known), last + 1))

        def kind(edge: Edge) -> str:
            return UPDATE_EDGE if edge.id in known else INSERT_EDGE

        def row(statement: str, edge: Edge) -> Row:
            values = self._edge_values(edge)
            key = keys[edge.id]
            return (*values, key) if statement is UPDATE_EDGE else (*values, edge.id, self._scope_key, key)

        _run_in_order(self._connection, rows.values(), kind, row)
        self._connection.executemany(DROP_EDGE_EPISODES, [(keys[i],) for i in known])
        episodes = self._episodes
        self._connection.executemany(
            ADD_EDGE_EPISODE,
            [
                (keys[e.id], position, episodes[i])
                for e in rows.values()
                for position, i in enumerate(dict.fromkeys(e.episode_ids))
            ],
        )

    def _edge_values(self, edge: Edge) -> Row:
        return (
            self._entities[edge.source_id],
            self._entities[edge.target_id],
            edge.relation,
            edge.edge_type.value,
            edge.fact,
            edge.confidence,
            micros(edge.valid_from),
            micros_or_none(edge.valid_to),
            micros(edge.recorded_at),
            micros_or_none(edge.expired_at),
            edge.superseded_by,
            edge.retrieval_count,
            micros_or_none(edge.last_retrieved_at),
            properties_json(edge.properties),
            None if edge.certainty == "stated" else edge.certainty,
            "event" if edge.kind == "event" else None,
            edge.is_inferred or None,
            edge.valid_from_assumed or None,
            micros_or_none(edge.told_at),
            micros_or_none(edge.prior_valid_to),
            edge.end_reason,
            stated_json(edge.ends),
            stated_json(edge.beginnings),
        )

    def _corroborate_edges(self) -> None:
        corroborations = self._changes.corroborations
        if not corroborations:
            return
        keys = self._edge_keys(s.edge_id for s in corroborations)
        self._connection.executemany(RAISE_CONFIDENCE, [(s.confidence, keys[s.edge_id]) for s in corroborations])
        self._connection.executemany(
            CORROBORATE_EDGE, [(keys[s.edge_id], self._episodes[i]) for s in corroborations for i in s.episode_ids]
        )

    # Episodes -------------------------------------------------------------------------------------

    def _add_mentions(self) -> None:
        rows = [
            (self._entities[m.entity_id], self._episodes[m.episode_id], m.surface, m.confidence, micros(m.seen_at))
            for m in self._changes.mentions
        ]
        self._connection.executemany(ADD_MENTION, rows)

    def _set_results(self) -> None:
        rows = [
            (
                micros_or_none(o.processed_at),
                o.error,
                o.attempts,
                micros_or_none(o.retry_at),
                self._episodes[o.episode_id],
            )
            for o in self._changes.results
        ]
        self._connection.executemany(SET_RESULT, rows)

    def _redact_episodes(self) -> None:
        redactions = self._changes.redactions
        self._connection.executemany(REDACT, [(r.text, self._episodes[r.episode_id]) for r in redactions])
        for redaction in redactions:
            _remove_entry(self._connection, self._scope_key, "episode", redaction.episode_id)

    def _limit_episodes(self) -> None:
        keys, changes = self._episodes, self._changes
        ends = [(micros_or_none(e.ended_at), keys[e.episode_id]) for e in changes.episode_ends]
        expiries = [(micros_or_none(e.expires_at), keys[e.episode_id]) for e in changes.episode_expiries]
        self._connection.executemany(END_EPISODE, ends)
        self._connection.executemany(SET_EXPIRY, expiries)

    # Communities and traces ----------------------------------------------------------------------

    def _put_communities(self) -> None:
        where = (self._connection, self._scope, self._scope_key)
        put_communities(*where, self._changes.communities)
        put_memberships(*where, self._changes.memberships, self._entities)

    def _add_traces(self) -> None:
        traces = self._changes.recalls
        edges = self._edge_keys(fact.edge_id for trace in traces for fact in trace.facts)
        add_traces(
            self._connection,
            self._scope_key,
            traces,
            entities=self._entities,
            edges=edges,
            episodes=self._episodes,
        )


def _run_in_order(
    connection: sqlite3.Connection,
    models: Iterable[Any],
    kind: Callable[[Any], str],
    row: Callable[[str, Any], Row],
) -> None:
    """Run the statement of each model in the given order; adjacent models with the same statement share a call."""
    for statement, group in groupby(models, key=kind):
        connection.executemany(statement, [row(statement, model) for model in group])


def _remove(connection: sqlite3.Connection, scope_key: int, removals: Sequence[Removal]) -> None:
    """Delete rows of a scope, ignoring absent ones; the schema deletes dependent rows (ON DELETE CASCADE, triggers)."""
    for kind, statement in _REMOVE.items():
        rows = [{"id": r.id, "qualifier": r.qualifier, "scope": scope_key} for r in removals if r.kind == kind]
        connection.executemany(statement, rows)
    for removal in removals:
        if removal.kind == "index":
            _remove_entry(connection, scope_key, removal.qualifier, removal.id)


def _remove_entry(connection: sqlite3.Connection, scope_key: int, kind: str, key: str) -> None:
    """Delete the index entry of a row or a name; the next generation tells readers to drop their copies."""
    if connection.execute(REMOVE_ENTRY, (scope_key, kind, key)).rowcount:
        connection.execute(_NEXT_GENERATION, (scope_key,))
