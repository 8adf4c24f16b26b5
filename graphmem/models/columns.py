"""Conversion of store rows to models: one column order for every store's encoding of times, edge types and ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from graphmem.models.base import split_attachments
from graphmem.models.communities import Community
from graphmem.models.index import IndexEntry
from graphmem.models.rows import Edge, EdgeBeginning, EdgeEnd, EdgeType, Entity, Episode, Scope

Row = Sequence[Any]
S = TypeVar("S", EdgeBeginning, EdgeEnd)


@dataclass(frozen=True, slots=True)
class RowReader:
    """Builder of models from rows; data from a store isn't validated again.

    Attributes
    ----------
    moment
        Stored time → the time.
    edge_types
        Stored edge type → the type.
    ids
        Stored list of ids → the ids.
    stated
        Stored ends or beginnings of a fact → (id, stored time, stored time of telling) of each.
    """

    moment: Callable[[Any], datetime]
    edge_types: Mapping[str, EdgeType]
    ids: Callable[[Any], tuple[str, ...]]
    stated: Callable[[Any], Iterable[tuple[str, Any, Any]]]

    def moment_or_none(self, stored: Any) -> datetime | None:
        """Return a stored time, None as None."""
        return None if stored is None else self.moment(stored)

    def entity(self, row: Row) -> Entity:
        """Build an entity from a row in the column order below; properties are JSON or None."""
        return Entity.trusted(
            id=row[0],
            scope=Scope.from_key(row[1]),
            name=row[2],
            canonical_name=row[3],
            entity_type=row[4],
            summary=row[5],
            properties=_properties(row[6]),
            confidence=row[7],
            first_seen_at=self.moment(row[8]),
            last_seen_at=self.moment(row[9]),
            recorded_at=self.moment(row[10]),
            access_count=row[11],
            archived_at=self.moment_or_none(row[12]),
            valid_from=self.moment_or_none(row[13]),
            valid_to=self.moment_or_none(row[14]),
        )

    def edge(self, row: Row) -> Edge:
        """Build an edge from a row in the column order below; properties are JSON or None, as are default values."""
        return Edge.trusted(
            id=row[0],
            scope=Scope.from_key(row[1]),
            source_id=row[2],
            target_id=row[3],
            relation=row[4],
            edge_type=self.edge_types[row[5]],
            fact=row[6],
            confidence=row[7],
            valid_from=self.moment(row[8]),
            valid_to=self.moment_or_none(row[9]),
            recorded_at=self.moment(row[10]),
            expired_at=self.moment_or_none(row[11]),
            superseded_by=row[12],
            episode_ids=self.ids(row[13]),
            retrieval_count=row[14],
            last_retrieved_at=self.moment_or_none(row[15]),
            properties=_properties(row[16]),
            certainty=row[17] or "stated",
            kind=row[18] or "state",
            valid_from_assumed=bool(row[19]),
            told_at=self.moment_or_none(row[20]),
            prior_valid_to=self.moment_or_none(row[21]),
            end_reason=row[22],
            ends=() if row[23] is None else self._stated(EdgeEnd, row[23]),
            beginnings=() if row[24] is None else self._stated(EdgeBeginning, row[24]),
        )

    def _stated(self, model: type[S], stored: Any) -> tuple[S, ...]:
        moment = self.moment
        return tuple(model.trusted(by=by, at=moment(at), told_at=moment(told)) for by, at, told in self.stated(stored))

    def episode(self, row: Row) -> Episode:
        """Build an episode from a row in the column order below; metadata is JSON with the attachments, or None."""
        metadata, attachments = split_attachments(_properties(row[10]))
        return Episode.trusted(
            id=row[0],
            scope=Scope.from_key(row[1]),
            source=row[2],
            text=row[3],
            session_id=row[4],
            role=row[5],
            speaker=row[6],
            title=row[7],
            occurred_at=self.moment(row[8]),
            recorded_at=self.moment(row[9]),
            metadata=metadata,
            attachments=attachments,
            external_id=row[11],
            processed_at=self.moment_or_none(row[12]),
            attempts=row[13],
            error=row[14],
            retry_at=self.moment_or_none(row[15]),
            ended_at=self.moment_or_none(row[16]),
            expires_at=self.moment_or_none(row[17]),
        )

    def community(self, row: Row) -> Community:
        """Build a community from a row in the column order below."""
        return Community.trusted(
            id=row[0],
            scope=Scope.from_key(row[1]),
            level=row[2],
            name=row[3],
            summary=row[4],
            fingerprint=row[5],
            parent_id=row[6],
            created_at=self.moment(row[7]),
            updated_at=self.moment(row[8]),
            ended_at=self.moment_or_none(row[9]),
        )


def index_entry(row: Row) -> IndexEntry:
    """Return an index entry from a row in the order of its fields."""
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


def _properties(stored: str | None) -> dict[str, Any]:
    return {} if stored is None else json.loads(stored)
