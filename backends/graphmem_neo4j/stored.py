"""Rows as the queries that write take them: lists, not maps, and each time once.

Rows that are written together share most of their times, and making a time of its text is what costs the server
most: a query gets the texts of all different times, and rows say at which position theirs stands.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.models import Edge, Entity, Episode
from graphmem_neo4j.rows import TYPE_NAMES, active_key, index_key, packed, type_labels
from graphmem_neo4j.words import scoped_words

StoredRow = list[Any]

ENTITY_STANDS_FOR = 16
"""Where in the row of an entity it says for whom its name stands if not for itself."""


class Times(dict[datetime | None, int | None]):
    """Position of each time of a query, in the order in which they were looked up; None of None.

    Looking up a time without a zone raises `InvalidInput`.
    """

    def __missing__(self, moment: datetime | None) -> int | None:
        """Give a time its position."""
        if moment is not None and moment.tzinfo is None:
            raise InvalidInput(f"naive datetime {moment.isoformat()}: give it a time zone")
        self[moment] = position = None if moment is None else len(self) - (None in self)
        return position

    @property
    def texts(self) -> list[str]:
        """What the query makes times of."""
        return [moment.astimezone(UTC).isoformat() for moment in self if moment is not None]


def entity_row(entity: Entity, times: Times) -> StoredRow:
    """Return what the fragment ``entity_values`` takes, then the labels of the type.

    At `ENTITY_STANDS_FOR` is None: the name of the entity stands for itself.
    """
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
        times[entity.first_seen_at],
        times[entity.last_seen_at],
        times[entity.recorded_at],
        times[entity.archived_at],
        times[entity.valid_from],
        times[entity.valid_to],
        None,
        list(type_labels(entity.entity_type)),
    ]


def edge_row(edge: Edge, times: Times) -> StoredRow:
    """Return an edge as ``write`` takes it."""
    return [
        edge.source_id,
        edge.target_id,
        TYPE_NAMES[edge.edge_type],
        edge.id,
        active_key(edge.key) if edge.is_active else None,
        edge.relation,
        edge.fact,
        edge.confidence,
        edge.superseded_by,
        list(dict.fromkeys(edge.episode_ids)),
        float(edge.retrieval_count),
        packed(edge.properties),
        times[edge.valid_from],
        times[edge.valid_to],
        times[edge.recorded_at],
        times[edge.expired_at],
        times[edge.last_retrieved_at],
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
        times[episode.occurred_at],
        times[episode.recorded_at],
        times[episode.processed_at],
        times[episode.retry_at],
    ]
