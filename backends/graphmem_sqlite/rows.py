"""Stored values: conversion between rows and models, and look-ups of the integer keys behind ids and scopes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import AsOf, EdgeBeginning, EdgeEnd, EdgeType, Properties, RowReader, Scope, metadata_matches

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {kind.value: kind for kind in EdgeType}

Row = tuple[Any, ...]

ENTITY_COLUMNS = (
    "e.id, s.scope_key, e.name, e.canonical_name, e.entity_type, e.summary, e.properties, e.confidence, "
    "e.first_seen_at, e.last_seen_at, e.recorded_at, e.access_count, e.archived_at, e.valid_from, e.valid_to"
)
EDGE_COLUMNS = (
    "e.id, s.scope_key, a.id, b.id, e.relation, e.edge_type, e.fact, e.confidence, e.valid_from, e.valid_to, "
    "e.recorded_at, e.expired_at, e.superseded_by, "
    "(SELECT json_group_array(p.id) FROM (SELECT q.id FROM edge_episodes AS l JOIN episodes AS q "
    "ON q.key = l.episode WHERE l.edge = e.key ORDER BY l.position) AS p), "
    "e.retrieval_count, e.last_retrieved_at, e.properties, e.certainty, iif(e.inferred, 'inferred', e.kind), "
    "e.valid_from_assumed, e.told_at, "
    "e.prior_valid_to, e.end_reason, e.ends, e.beginnings"
)
EPISODE_COLUMNS = (
    "e.id, s.scope_key, e.source, e.text, e.session_id, e.role, e.speaker, e.title, e.occurred_at, e.recorded_at, "
    "e.metadata, e.external_id, e.processed_at, e.attempts, e.error, e.retry_at, "
    "e.ended_at, e.expires_at"
)


def micros(moment: datetime) -> int:
    """Return a time as microseconds since 1970 UTC."""
    passed = moment - _EPOCH
    return (passed.days * 86400 + passed.seconds) * 1_000_000 + passed.microseconds


def micros_or_none(moment: datetime | None) -> int | None:
    """Return a time as microseconds since 1970 UTC, None as None."""
    return None if moment is None else micros(moment)


@lru_cache(maxsize=8192)
def moment(stored: int) -> datetime:
    """Return stored microseconds as a time in UTC; cached, because rows written together share most of their times."""
    return _EPOCH + timedelta(microseconds=stored)


def as_json(values: Iterable[str | int | tuple[str, ...]]) -> str:
    """Return values, each once, as one parameter that a statement reads with json_each.

    Texts with NUL, where json_each would end them, are left out: no row is found by them.
    """
    return json.dumps([value for value in dict.fromkeys(values) if isinstance(value, int) or "\0" not in value])


def as_of_values(as_of: AsOf) -> dict[str, int]:
    """Return the parameters of a moment."""
    return {"valid": micros(as_of.valid), "known": micros(as_of.known)}


def stated_json(stated: Sequence[EdgeBeginning | EdgeEnd]) -> str | None:
    """Return the stated beginnings or ends of a fact as they are stored."""
    return json.dumps([(each.by, micros(each.at), micros(each.told_at)) for each in stated]) if stated else None


def properties_json(properties: Properties) -> str | None:
    """Return properties as they are stored."""
    return json.dumps(properties) if properties else None


@lru_cache(maxsize=64)
def _conditions(stored: str) -> dict[str, dict[str, Any]]:
    return json.loads(stored)


def stored_metadata_matches(stored: str | None, conditions: str) -> bool:
    """Return whether stored metadata meets the conditions of a filter (JSON); a function of the statements."""
    return metadata_matches({} if stored is None else json.loads(stored), _conditions(conditions))


def _ids(stored: str) -> tuple[str, ...]:
    """Read a JSON array of texts written by json_group_array; without escapes it needs no parser."""
    if stored == "[]":
        return ()
    return tuple(json.loads(stored)) if "\\" in stored else tuple(stored[2:-2].split('","'))


_READER = RowReader(moment, _TYPES, _ids, json.loads)
moment_or_none = _READER.moment_or_none
entity_of, edge_of, episode_of, community_of = _READER.entity, _READER.edge, _READER.episode, _READER.community


def edge_type_of(stored: str) -> EdgeType:
    """Return the edge type with this name."""
    return _TYPES[stored]


# Look-ups ---------------------------------------------------------------------------------------

SCOPE_KEYS = "SELECT key FROM scopes WHERE scope_key IN (SELECT value FROM json_each(?))"
ADD_SCOPE = "INSERT INTO scopes (scope_key) VALUES (?) ON CONFLICT (scope_key) DO NOTHING"
ENTITY_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN entities AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
EDGE_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN edges AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
EPISODE_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN episodes AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
COMMUNITY_KEYS = """
SELECT e.id, e.key FROM json_each(:ids) AS wanted
CROSS JOIN communities AS e ON e.id = wanted.value WHERE e.scope = :scope
"""
_KIND = {ENTITY_KEYS: "entity", EDGE_KEYS: "edge", EPISODE_KEYS: "episode", COMMUNITY_KEYS: "community"}


def scope_keys(connection: sqlite3.Connection, scopes: Iterable[Scope]) -> list[int]:
    """Return the keys of the scopes; unknown ones are left out."""
    wanted = as_json(scope.key for scope in scopes)
    return [key for (key,) in connection.execute(SCOPE_KEYS, (wanted,))]


def add_scope(connection: sqlite3.Connection, scope: Scope) -> int:
    """Return the key of a scope; a new scope is added."""
    known = scope_keys(connection, [scope])
    if not known:
        connection.execute(ADD_SCOPE, (scope.key,))
        known = scope_keys(connection, [scope])
    return known[0]


def require_keys(
    connection: sqlite3.Connection, statement: str, scope: Scope, scope_key: int, ids: Sequence[str]
) -> dict[str, int]:
    """Return id → key of rows of a scope.

    Parameters
    ----------
    connection
        The connection to read with.
    statement
        `ENTITY_KEYS`, `EDGE_KEYS`, `EPISODE_KEYS` or `COMMUNITY_KEYS`.
    scope, scope_key
        The scope and its key.
    ids
        Ids, each once.

    Raises
    ------
    InvalidInput
        If an id isn't in the scope.
    """
    if not ids:
        return {}
    found: dict[str, int] = dict(connection.execute(statement, {"ids": as_json(ids), "scope": scope_key}))
    if len(found) < len(ids):
        absent = next(i for i in ids if i not in found)
        raise InvalidInput(f"{_KIND[statement]} {absent} is not in scope {scope}")
    return found


def require_free(noun: str, holders: Iterable[tuple[str, int]], scope_key: int) -> None:
    """Check that ids are not taken in another scope, by (id, key of the scope that has it).

    Raises
    ------
    Conflict
        If another scope has an id; the error says nothing about that scope.
    """
    for row_id, holder in holders:
        if holder != scope_key:
            raise Conflict(f"{noun} id {row_id} is taken")
