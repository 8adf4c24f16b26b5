"""From rows to models and back: times, properties, scopes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from graphmem.models import Edge, EdgeType, Entity, Episode, Properties, Scope

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {kind.value: kind for kind in EdgeType}

Row = tuple[Any, ...]
M = TypeVar("M", Entity, Edge, Episode)


def micros(moment: datetime) -> int:
    """Return a time as microseconds since 1970 UTC."""
    passed = moment - _EPOCH
    return (passed.days * 86400 + passed.seconds) * 1_000_000 + passed.microseconds


def micros_or_none(moment: datetime | None) -> int | None:
    """Return a time as microseconds since 1970 UTC, None as None."""
    return None if moment is None else micros(moment)


@lru_cache(maxsize=8192)
def moment(stored: int) -> datetime:
    """Return stored microseconds as a time in UTC; rows that were written together share most of theirs."""
    return _EPOCH + timedelta(microseconds=stored)


def moment_or_none(stored: int | None) -> datetime | None:
    """Return stored microseconds as a time in UTC, None as None."""
    return None if stored is None else moment(stored)


def as_json(values: Iterable[str | int]) -> str:
    """Return values as one parameter that a statement reads with json_each."""
    return json.dumps(list(values))


def packed(properties: Properties) -> str | None:
    """Return properties as they are stored."""
    return json.dumps(properties) if properties else None


def _unpacked(stored: str | None) -> Properties:
    return {} if stored is None else json.loads(stored)


def _ids(stored: str) -> tuple[str, ...]:
    """Read a JSON array of texts that json_group_array wrote; without escapes it needs no parser."""
    if stored == "[]":
        return ()
    return tuple(json.loads(stored)) if "\\" in stored else tuple(stored[2:-2].split('","'))


ENTITY_COLUMNS = (
    "e.id, s.scope_key, e.name, e.canonical_name, e.entity_type, e.summary, e.properties, e.confidence, "
    "e.first_seen_at, e.last_seen_at, e.recorded_at, e.access_count, e.archived_at, e.valid_from, e.valid_to"
)


def entity_of(row: Sequence[Any]) -> Entity:
    """Build an entity from `ENTITY_COLUMNS`."""
    return Entity.trusted(
        id=row[0],
        scope=Scope.from_key(row[1]),
        name=row[2],
        canonical_name=row[3],
        entity_type=row[4],
        summary=row[5],
        properties=_unpacked(row[6]),
        confidence=row[7],
        first_seen_at=moment(row[8]),
        last_seen_at=moment(row[9]),
        recorded_at=moment(row[10]),
        access_count=row[11],
        archived_at=moment_or_none(row[12]),
        valid_from=moment_or_none(row[13]),
        valid_to=moment_or_none(row[14]),
    )


EDGE_COLUMNS = (
    "e.id, s.scope_key, a.id, b.id, e.relation, e.edge_type, e.fact, e.confidence, e.valid_from, e.valid_to, "
    "e.recorded_at, e.expired_at, e.superseded_by, e.retrieval_count, e.last_retrieved_at, e.properties, "
    "(SELECT json_group_array(p.id) FROM (SELECT q.id FROM edge_episodes AS l JOIN episodes AS q "
    "ON q.key = l.episode WHERE l.edge = e.key ORDER BY l.position) AS p)"
)


def edge_of(row: Sequence[Any]) -> Edge:
    """Build an edge from `EDGE_COLUMNS`."""
    return Edge.trusted(
        id=row[0],
        scope=Scope.from_key(row[1]),
        source_id=row[2],
        target_id=row[3],
        relation=row[4],
        edge_type=_TYPES[row[5]],
        fact=row[6],
        confidence=row[7],
        valid_from=moment(row[8]),
        valid_to=moment_or_none(row[9]),
        recorded_at=moment(row[10]),
        expired_at=moment_or_none(row[11]),
        superseded_by=row[12],
        retrieval_count=row[13],
        last_retrieved_at=moment_or_none(row[14]),
        properties=_unpacked(row[15]),
        episode_ids=_ids(row[16]),
    )


EPISODE_COLUMNS = (
    "e.id, s.scope_key, e.source, e.text, e.session_id, e.role, e.speaker, e.title, e.occurred_at, e.recorded_at, "
    "e.metadata, e.external_id, e.processed_at, e.attempts, e.error, e.retry_at"
)


def episode_of(row: Sequence[Any]) -> Episode:
    """Build an episode from `EPISODE_COLUMNS`."""
    return Episode.trusted(
        id=row[0],
        scope=Scope.from_key(row[1]),
        source=row[2],
        text=row[3],
        session_id=row[4],
        role=row[5],
        speaker=row[6],
        title=row[7],
        occurred_at=moment(row[8]),
        recorded_at=moment(row[9]),
        metadata=_unpacked(row[10]),
        external_id=row[11],
        processed_at=moment_or_none(row[12]),
        attempts=row[13],
        error=row[14],
        retry_at=moment_or_none(row[15]),
    )


def edge_type_of(stored: str) -> EdgeType:
    """Return the edge type with this name."""
    return _TYPES[stored]
