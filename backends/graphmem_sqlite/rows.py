"""From rows to models and back: times, properties, scopes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from graphmem.models import EdgeType, Properties, RowReader

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {kind.value: kind for kind in EdgeType}

Row = tuple[Any, ...]


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


def as_json(values: Iterable[str | int]) -> str:
    """Return values as one parameter that a statement reads with json_each."""
    return json.dumps(list(values))


def packed(properties: Properties) -> str | None:
    """Return properties as they are stored."""
    return json.dumps(properties) if properties else None


def _ids(stored: str) -> tuple[str, ...]:
    """Read a JSON array of texts that json_group_array wrote; without escapes it needs no parser."""
    if stored == "[]":
        return ()
    return tuple(json.loads(stored)) if "\\" in stored else tuple(stored[2:-2].split('","'))


_READER = RowReader(moment, _TYPES, _ids)
moment_or_none = _READER.moment_or_none
entity_of, edge_of, episode_of, community_of = _READER.entity, _READER.edge, _READER.episode, _READER.community

ENTITY_COLUMNS = (
    "e.id, s.scope_key, e.name, e.canonical_name, e.entity_type, e.summary, e.properties, e.confidence, "
    "e.first_seen_at, e.last_seen_at, e.recorded_at, e.access_count, e.archived_at, e.valid_from, e.valid_to"
)


EDGE_COLUMNS = (
    "e.id, s.scope_key, a.id, b.id, e.relation, e.edge_type, e.fact, e.confidence, e.valid_from, e.valid_to, "
    "e.recorded_at, e.expired_at, e.superseded_by, "
    "(SELECT json_group_array(p.id) FROM (SELECT q.id FROM edge_episodes AS l JOIN episodes AS q "
    "ON q.key = l.episode WHERE l.edge = e.key ORDER BY l.position) AS p), "
    "e.retrieval_count, e.last_retrieved_at, e.properties"
)


EPISODE_COLUMNS = (
    "e.id, s.scope_key, e.source, e.text, e.session_id, e.role, e.speaker, e.title, e.occurred_at, e.recorded_at, "
    "e.metadata, e.external_id, e.processed_at, e.attempts, e.error, e.retry_at"
)


def edge_type_of(stored: str) -> EdgeType:
    """Return the edge type with this name."""
    return _TYPES[stored]
