"""Rows as the queries that write take them: lists, not maps, and each time once.

Rows that are written together share most of their times, and making a time of its text is what costs the server
most: a query gets the texts of all different times, and rows say at which position theirs stands.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.models import Edge, Entity, Episode
from graphmem_neo4j.rows import index_key, packed, type_labels
from graphmem_neo4j.words import scoped_words

StoredRow = list[Any]


class Times:
    """The different times of a query, in the order they came."""

    def __init__(self) -> None:
        self._positions: dict[datetime, int] = {}

    def at(self, moment: datetime | None) -> int | None:
        """Return the position of a time; None for None.

        Raises
        ------
        InvalidInput
            If it has no time zone.
        """
        if moment is None:
            return None
        if moment.tzinfo is None:
            raise InvalidInput(f"naive datetime {moment.isoformat()}: give it a time zone")
        return self._positions.setdefault(moment, len(self._positions))

    @property
    def texts(self) -> list[str]:
        """What the query makes times of."""
        return [moment.astimezone(UTC).isoformat() for moment in self._positions]


def entity_row(entity: Entity, times: Times) -> StoredRow:
    """Return what the fragment ``entity_values`` takes, then the labels of the type."""
    hidden = entity.archived_at is not None
    return [
        entity.id,
        entity.name,
        entity.canonical_name,
        entity.entity_type,
        entity.summary,
        packed(entity.properties),
        entity.confidence,
        entity.access_count,
        # full text doesn't hold archived entities
        None if hidden else scoped_words(entity.scope, entity.name),
        None if hidden else scoped_words(entity.scope, entity.summary),
        times.at(entity.first_seen_at),
        times.at(entity.last_seen_at),
        times.at(entity.recorded_at),
        times.at(entity.archived_at),
        times.at(entity.valid_from),
        times.at(entity.valid_to),
        list(type_labels(entity.entity_type)),
    ]


def edge_row(edge: Edge, held: tuple[str, str], episode_ids: tuple[str, ...], times: Times) -> StoredRow:
    """Return an edge as ``write`` takes it; `held` is its relationship type and active key."""
    return [
        edge.source_id,
        edge.target_id,
        held[0],
        edge.id,
        held[1] if edge.is_active else None,
        edge.relation,
        edge.fact,
        edge.confidence,
        edge.superseded_by,
        list(episode_ids),
        float(edge.retrieval_count),
        packed(edge.properties),
        times.at(edge.valid_from),
        times.at(edge.valid_to),
        times.at(edge.recorded_at),
        times.at(edge.expired_at),
        times.at(edge.last_retrieved_at),
    ]


def episode_row(episode: Episode, times: Times) -> StoredRow:
    """Return an episode as ``add_episodes`` takes it."""
    return [
        episode.id,
        index_key(episode.external_id),
        episode.external_id,
        episode.source,
        episode.text,
        episode.session_id,
        index_key(episode.session_id),
        episode.role,
        episode.speaker,
        episode.title,
        packed(episode.metadata),
        episode.attempts,
        episode.error,
        episode.scope.key if episode.processed_at is None else None,
        times.at(episode.occurred_at),
        times.at(episode.recorded_at),
        times.at(episode.processed_at),
        times.at(episode.retry_at),
    ]
