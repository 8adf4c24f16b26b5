"""Stores with one bug each in values, times, searches, the index or upkeep, to try the conformance kit on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from broken_backends import Sound, round_trip

from graphmem.models import (
    Changes,
    Edge,
    EntityHit,
    IndexEntry,
    IndexKind,
    Move,
    Scalar,
    Scope,
    mark_of,
)


class NumbersEntriesBeforeItsTurn(Sound):
    """Takes the positions of index entries from a sequence, before other writers have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.next_position = self._store.next_position

    def write(self, scope: Scope, changes: Changes) -> None:
        with self._store.lock:
            positions = [self.next_position() for _ in changes.index]
        for _ in range(positions[0] % 3 if positions else 0):
            round_trip()
        with self._store.lock:
            self._store.next_position = lambda: positions.pop(0) if positions else self.next_position()
            super().write(scope, changes)


class MovesWithoutWaiting(Sound):
    """Sets the mark of a migration while transactions of the former one run."""

    def set_move(self, move: Move | None, *, replacing: Move | None) -> bool:
        if mark_of(self._store.move) != mark_of(replacing):
            return False
        self._store.move = move
        return True


class ReadsOnePageOfTheUnindexed(Sound):
    """Returns the first facts and entities without an index entry, however many and behind which id it is asked."""

    def find_unindexed(self, scope: Scope, kind: IndexKind, **paging: Any) -> list[str]:
        return super().find_unindexed(scope, kind, **(paging if kind == "episode" else {}))


class FindsEntriesAsAsked(Sound):
    """Returns index entries in the order of the keys that it is asked for."""

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        found = {entry.key: entry for entry in super().find_index(scope, kind, keys)}
        return [found[key] for key in keys if key in found]


class FadesOnePage(Sound):
    """Lowers the counts of the first thousand facts only."""

    def decay_retrievals(self, scope: Scope, **options: Any) -> tuple[int, str]:
        return super().decay_retrievals(scope, **options)[0], ""


class FadesTheSamePage(Sound):
    """Lowers the counts of the first thousand facts again and again."""

    def decay_retrievals(self, scope: Scope, *, after: str = "", **options: Any) -> tuple[int, str]:
        return super().decay_retrievals(scope, **options)


class LosesAddedAliases(Sound):
    """Stores a merge without the aliases that the kept entity received."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, replace(changes, merges=tuple(merge.changed(added=()) for merge in changes.merges)))


def doubles(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return values with every number as a double, and those without a fraction as integers."""
    return {k: v if isinstance(v, bool) or not isinstance(v, int | float) else _double(v) for k, v in values.items()}


def _double(value: float) -> float:
    return int(float(value)) if float(value).is_integer() and abs(value) < 1e15 else float(value)


class StoresNumbersAsDoubles(Sound):
    """Keeps one type of number in properties."""

    def write(self, scope: Scope, changes: Changes) -> None:
        entities = tuple(row.changed(properties=doubles(row.properties)) for row in changes.entities)
        edges = tuple(row.changed(properties=doubles(row.properties)) for row in changes.edges)
        super().write(scope, replace(changes, entities=entities, edges=edges))


class KeepsWhatItIsGiven(Sound):
    """Stores the properties of an entity as they are given, not a copy."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, changes)
        for entity in changes.entities:
            self._store.entities.put(entity.id, entity)


class LimitsAliasesAndWordsTogether(Sound):
    """Takes the limit of a search for that of all hits."""

    def search_entities(self, scopes: Sequence[Scope], *, limit: int, **asked: Any) -> list[EntityHit]:
        hits = super().search_entities(scopes, limit=limit, **asked)
        return sorted(hits, key=lambda hit: hit.alias is None)[:limit]


class LimitsEachScope(Sound):
    """Takes the limit of a search for that of each scope."""

    def search_entities(self, scopes: Sequence[Scope], **asked: Any) -> list[EntityHit]:
        search = super().search_entities
        return [hit for scope in scopes for hit in search([scope], **asked)]


class ExcludesTheMomentOfIdling(Sound):
    """Finds the entities that were seen before a time, but not at it."""

    def find_idle(self, scope: Scope, *, before: datetime, **options: Any) -> list[str]:
        return super().find_idle(scope, before=before - timedelta(microseconds=1), **options)


class OrdersTiesByNewestId(Sound):
    """Orders the least connected entities that were seen at the same time by id, the newest first."""

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        rows = [self._store.entities.get(found) for found in super().find_least_connected(scope, limit=10**9)]
        degrees = {row.id: self._degree(row.id) for row in rows if row is not None}
        newest = sorted((row for row in rows if row is not None), key=lambda row: row.id, reverse=True)
        return [row.id for row in sorted(newest, key=lambda row: (degrees[row.id], row.last_seen_at))][:limit]


def as_double(moment: datetime) -> datetime:
    """Return a time as a double of seconds since 1970 keeps it."""
    return datetime.fromtimestamp(moment.timestamp(), UTC)


class KeepsTimesAsDoubles(Sound):
    """Keeps times as seconds since 1970, which are exact for some centuries."""

    def write(self, scope: Scope, changes: Changes) -> None:
        def rounded(row: Edge) -> Edge:
            return row.changed(valid_from=as_double(row.valid_from))

        super().write(scope, replace(changes, edges=tuple(rounded(row) for row in changes.edges)))
