"""Tables: rows in dicts, with indexes and an undo journal, and predicates for the rows that match a query."""

from __future__ import annotations

import string
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar

from graphmem.errors import BackendUnavailable, Conflict, InvalidInput, StoreMoved
from graphmem.models import (
    Alias,
    AsOf,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    IndexEntry,
    IndexState,
    JobState,
    Membership,
    MembershipKey,
    MembershipQuery,
    Mention,
    Merge,
    Move,
    RecallTrace,
    Scope,
    existed,
    filter_matches,
    is_expired,
    is_live,
    is_past,
    is_visible,
    mark_of,
)
from graphmem.protocols import NAME_WEIGHT, index_words


class Row(Protocol):
    """The part that all rows share."""

    @property
    def scope(self) -> Scope:
        """The scope of the row."""
        ...


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scoped(Generic[T]):
    """A value that doesn't name its scope, with its scope."""

    scope: Scope
    value: T


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """The owner of a claimed episode, and the end of the claim."""

    scope: Scope
    owner: str
    until: datetime


K = TypeVar("K", str, tuple[str, ...], MembershipKey)
R = TypeVar("R", bound=Row)

Undo = Callable[[], object]


class Table(Generic[K, R]):
    """Rows by key, with sorted keys per scope and indexes; every change adds its undo to the journal.

    Parameters
    ----------
    noun
        What a row is, for errors.
    journal
        Receives the undo of each change.
    indexes
        Name of an index → function that returns the values of a row in it.
    sorted_index
        Name of the index whose values, of the form (group, text), are also kept in order for `values_under`.
    """

    def __init__(
        self,
        noun: str,
        journal: list[Undo],
        indexes: Mapping[str, Callable[[R], Iterable[Hashable]]],
        sorted_index: str | None = None,
    ) -> None:
        self._noun = noun
        self._journal = journal
        self._indexes = indexes
        self._sorted_index = sorted_index
        self._values: list[Any] = []
        self._rows: dict[K, R] = {}
        self._keys: dict[Scope, list[K]] = {}
        self._indexed: dict[tuple[str, Hashable], set[K]] = {}

    def get(self, key: K) -> R | None:
        """Return a row or None."""
        return self._rows.get(key)

    def held(self, scope: Scope, key: K) -> R | None:
        """Return a row of a scope or None."""
        row = self._rows.get(key)
        return row if row is not None and row.scope == scope else None

    def require(self, scope: Scope, key: K) -> R:
        """Return a row of a scope.

        Raises
        ------
        InvalidInput
            If the scope has no such row.
        """
        row = self.held(scope, key)
        if row is None:
            raise InvalidInput(f"{self._noun} {key} is not in scope {scope}")
        return row

    def require_free(self, scope: Scope, key: K) -> None:
        """Check that no row of another scope has a key.

        Raises
        ------
        Conflict
            If one has it; the error says nothing about the other scope.
        """
        row = self._rows.get(key)
        if row is not None and row.scope != scope:
            raise Conflict(f"{self._noun} id {key} is taken")

    def fill(self, other: Table[K, R]) -> None:
        """Copy the rows of another table into this empty one."""
        self._rows = dict(other._rows)
        self._keys = {scope: list(keys) for scope, keys in other._keys.items()}
        self._indexed = {entry: set(keys) for entry, keys in other._indexed.items()}
        self._values = list(other._values)

    def put(self, key: K, row: R | None) -> None:
        """Insert or replace a row, or delete it with None."""
        old = self._set(key, row)
        self._journal.append(lambda: self._set(key, old))

    def clear(self, scope: Scope) -> None:
        """Delete all rows of a scope."""
        for key in list(self._keys.get(scope, ())):
            self.put(key, None)

    def _set(self, key: K, row: R | None) -> R | None:
        old = self._rows.pop(key, None)
        if old is not None:
            for entry in self._index_entries(old):
                self._leave(entry, key)
            keys = self._keys[old.scope]
            del keys[bisect_right(keys, key) - 1]
        if row is not None:
            self._rows[key] = row
            for entry in self._index_entries(row):
                self._enter(entry, key)
            insort(self._keys.setdefault(row.scope, []), key)
        return old

    def _enter(self, entry: tuple[str, Hashable], key: K) -> None:
        keys = self._indexed.setdefault(entry, set())
        if not keys and entry[0] == self._sorted_index:
            insort(self._values, entry[1])
        keys.add(key)

    def _leave(self, entry: tuple[str, Hashable], key: K) -> None:
        keys = self._indexed[entry]
        keys.discard(key)
        if not keys and entry[0] == self._sorted_index:
            del self._values[bisect_left(self._values, entry[1])]

    def _index_entries(self, row: R) -> Iterator[tuple[str, Hashable]]:
        for name, values in self._indexes.items():
            for value in values(row):
                yield name, value

    def keys_of(self, index: str, values: Iterable[Hashable]) -> set[K]:
        """Return the keys of the rows that have any of the values in an index."""
        found: set[K] = set()
        for value in values:
            found |= self._indexed.get((index, value), set())
        return found

    def values_under(self, group: str, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield the values of the sorted index in a group whose text begins with a prefix."""
        for position in range(bisect_left(self._values, (group, prefix)), len(self._values)):
            value: tuple[str, str] = self._values[position]
            if value[0] != group or not value[1].startswith(prefix):
                return
            yield value

    def count(self, scope: Scope) -> int:
        """Return the number of rows of a scope."""
        return len(self._keys.get(scope, ()))

    def scopes(self) -> list[Scope]:
        """Return the scopes that have rows."""
        return [scope for scope, keys in self._keys.items() if keys]

    def read(
        self, scopes: Sequence[Scope], candidates: Iterable[K] | None = None, *, after: K | None = None
    ) -> Iterator[R]:
        """Yield the rows of some scopes in ascending order of key.

        Parameters
        ----------
        scopes
            Rows of other scopes are absent.
        candidates
            Keys to read; None means all.
        after
            Only keys greater than this one.
        """
        wanted = list(dict.fromkeys(scopes))
        if candidates is not None:
            found = (self._rows.get(key) for key in sorted(set(candidates)) if after is None or key > after)
            yield from (row for row in found if row is not None and row.scope in wanted)
            return
        lists = (self._keys.get(scope, []) for scope in wanted)
        tails = (keys[0 if after is None else bisect_right(keys, after) :] for keys in lists)
        yield from (self._rows[key] for key in merge(*tails))


class Store:
    """All tables of one store, with a lock and an undo journal that makes changes atomic."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._journal: list[Undo] = []
        self._depth = 0
        self.entities = Table[str, Entity](
            "entity", self._journal, {"name": lambda e: [(e.scope, e.canonical_name, e.entity_type)]}
        )
        self.aliases = Table[tuple[str, ...], Scoped[Alias]](
            "alias",
            self._journal,
            {"alias": lambda a: [(a.scope, a.value.alias)], "entity": lambda a: [a.value.entity_id]},
        )
        self.edges = Table[str, Edge](
            "edge",
            self._journal,
            {
                "source": lambda e: [e.source_id],
                "target": lambda e: [e.target_id],
                "active": lambda e: [(e.scope, e.key)] if e.is_active else [],
                "episode": lambda e: e.episode_ids,
                "ended_by": lambda e: e.ended_by,
            },
        )
        self.episodes = Table[str, Episode](
            "episode",
            self._journal,
            {
                "external": lambda e: [(e.scope, e.external_id)] if e.external_id is not None else [],
                "session": lambda e: [(e.scope.key, e.session_id)] if e.session_id is not None else [],
                "unprocessed": lambda e: [e.scope.key] if e.processed_at is None else [],
                "ended": lambda e: [e.scope.key] if e.ended_at is not None else [],
                "expiring": lambda e: [e.scope.key] if e.expires_at is not None else [],
            },
            sorted_index="session",
        )
        self.mentions = Table[tuple[str, ...], Scoped[Mention]](
            "mention",
            self._journal,
            {"entity": lambda m: [m.value.entity_id], "episode": lambda m: [m.value.episode_id]},
        )
        self.communities = Table[str, Community]("community", self._journal, {})
        self.memberships = Table[MembershipKey, Scoped[Membership]](
            "membership",
            self._journal,
            {"community": lambda m: [m.value.community_id], "entity": lambda m: [m.value.entity_id]},
        )
        self.recalls = Table[str, RecallTrace](
            "recall",
            self._journal,
            {
                "entity": lambda r: {*(s.entity_id for s in r.seeds), *(f.entity_id for f in r.facts)},
                "edge": lambda r: {f.edge_id for f in r.facts},
                "episode": lambda r: {e.episode_id for e in r.episodes},
            },
        )
        self.merges = Table[str, Merge]("merge", self._journal, {"entity": lambda m: [m.kept_id, m.merged.id]})
        self.index = Table[tuple[str, ...], Scoped[IndexEntry]](
            "index entry", self._journal, {"key": lambda i: [(i.scope, i.value.kind, i.value.key)]}
        )
        self.job_states = Table[tuple[str, ...], Scoped[JobState]]("job state", self._journal, {})
        self.index_states = Table[str, Scoped[IndexState]]("index state", self._journal, {})
        self.move: Move | None = None
        self._position = 0
        self.claims = Table[str, ClaimRow]("claim", self._journal, {"owner": lambda c: [c.owner]})

    def edges_at(self, entity_ids: Iterable[str]) -> set[str]:
        """Return the ids of the edges that begin or end at any of the entities."""
        ids = list(entity_ids)
        return self.edges.keys_of("source", ids) | self.edges.keys_of("target", ids)

    def copy(self) -> Store:
        """Return another store with the same rows and mark."""
        copied = Store()
        with self.lock:
            copied._position, copied.move = self._position, self.move
            for table, own_table in zip(copied.tables(), self.tables(), strict=True):
                table.fill(own_table)
        return copied

    def tables(self) -> list[Table[Any, Any]]:
        """Return all tables, always in the same order."""
        return [value for value in vars(self).values() if isinstance(value, Table)]

    def next_position(self) -> int:
        """Return a number greater than all before."""
        self._position += 1
        return self._position

    @contextmanager
    def all_or_nothing(self) -> Generator[None, None, None]:
        """Hold the lock, and undo the changes of the block if it raises. Blocks may be nested."""
        with self.lock:
            mark = len(self._journal)
            self._depth += 1
            try:
                yield
            except BaseException:
                while len(self._journal) > mark:
                    self._journal.pop()()
                raise
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._journal.clear()


class MemoryRole:
    """Base class of the role classes of `MemoryBackend`, which share one store.

    Parameters
    ----------
    store
        The rows; several backends may share them.
    """

    def __init__(self, store: Store) -> None:
        self._rows = store
        self._adopted = ""
        self._closed = False

    @property
    def _store(self) -> Store:
        """The rows.

        Raises
        ------
        BackendUnavailable
            If this object was closed.
        """
        if self._closed:
            raise BackendUnavailable("memory: this backend was closed; open it again")
        return self._rows

    @contextmanager
    def _writing(self) -> Generator[None, None, None]:
        """Run a block in a transaction, under the mark that this object has adopted.

        Raises
        ------
        StoreMoved
            If the store has another mark.
        """
        with self._store.all_or_nothing():
            if mark_of(self._store.move) != self._adopted:
                raise StoreMoved("memory: the store is in a migration", self._store.move)
            yield


Copied = TypeVar("Copied", Entity, Edge)


def own(row: Copied) -> Copied:
    """Return the row with a copy of its properties, so that callers can't change the stored row."""
    return row.changed(properties=dict(row.properties)) if row.properties else row


def utc(moment: datetime) -> datetime:
    """Return a time that wasn't validated by a model in UTC, as the models do."""
    if moment.tzinfo is None:
        raise InvalidInput(f"naive datetime {moment.isoformat()}: give it a time zone")
    return moment.astimezone(UTC)


# Predicates ---------------------------------------------------------------------------------------


_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def entity_matches(entity: Entity, query: EntityQuery) -> bool:
    """Return whether a query matches this entity."""
    named = query.ids is not None and entity.id in query.ids
    if query.ids is not None and not named:
        return False
    if query.entity_types is not None and entity.entity_type not in query.entity_types:
        return False
    if entity.archived_at is not None and not (query.archived or named):
        return False
    return query.as_of is None or _entity_existed(entity, query.as_of)


def _entity_existed(entity: Entity, as_of: AsOf) -> bool:
    return (
        entity.recorded_at <= as_of.known
        and entity.first_seen_at <= as_of.valid
        and (entity.valid_from is None or entity.valid_from <= as_of.valid)
        and (entity.valid_to is None or as_of.valid < entity.valid_to)
    )


def edge_matches(edge: Edge, query: EdgeQuery, now: datetime) -> bool:
    """Return whether a query matches this version of a fact."""
    if query.versions == "active" and not edge.is_active:
        return False
    if query.versions == "visible" and not edge_is_visible(edge, query.as_of, now):
        return False
    if query.versions == "past" and not is_past(edge.valid_from, edge.valid_to, edge.superseded_by, now):
        return False
    return (
        (query.ids is None or edge.id in query.ids)
        and (query.source_ids is None or edge.source_id in query.source_ids)
        and (query.target_ids is None or edge.target_id in query.target_ids)
        and (query.touching is None or edge.source_id in query.touching or edge.target_id in query.touching)
        and (query.relations is None or edge.relation in query.relations)
        and (query.edge_types is None or edge.edge_type in query.edge_types)
        and (query.keys is None or edge.key in query.keys)
        and (query.slots is None or (edge.source_id, edge.relation) in query.slots)
        and (query.kinds is None or edge.kind in query.kinds)
        and (query.ended_by is None or not edge.ended_by.isdisjoint(query.ended_by))
        and (query.text is None or _contains(edge, query.text))
        and (query.window is None or _in_window(edge, *query.window))
    )


def edge_is_visible(edge: Edge, as_of: AsOf | None, now: datetime) -> bool:
    """Return whether a read sees this version of a fact (`graphmem.models.is_visible`)."""
    return is_visible(
        edge.valid_from, edge.valid_to, edge.recorded_at, edge.expired_at, edge.prior_valid_to, as_of, now
    )


def _contains(edge: Edge, text: str) -> bool:
    piece = text.translate(_ASCII_LOWER)
    return piece in edge.fact.translate(_ASCII_LOWER) or piece in edge.relation.translate(_ASCII_LOWER)


def _in_window(edge: Edge, axis: str, after: datetime, until: datetime) -> bool:
    moment: datetime | None = getattr(edge, axis)
    return moment is not None and after < moment <= until


def episode_matches(episode: Episode, query: EpisodeQuery) -> bool:
    """Return whether a query matches this episode; the caller checks `before`, which depends on another episode."""
    return (
        (query.ids is None or episode.id in query.ids)
        and (query.external_ids is None or episode.external_id in query.external_ids)
        and (query.session_id is None or episode.session_id == query.session_id)
        and (query.state is None or episode_state(episode) == query.state)
        and (
            query.as_of is None
            or (episode.recorded_at <= query.as_of.known and episode.occurred_at <= query.as_of.valid)
        )
        and (query.filters is None or filter_matches(episode, query.filters))
        and (query.live_at is None or _is_live(episode, query, query.live_at))
        and (query.hidden_at is None or not _is_live(episode, query, query.hidden_at))
        and (query.expired_by is None or is_expired(episode.expires_at, query.expired_by))
    )


def _is_live(episode: Episode, query: EpisodeQuery, now: datetime) -> bool:
    return is_live(episode.ended_at, episode.expires_at, query.as_of, now)


def episode_state(episode: Episode) -> str:
    """Return the state of an episode: processed, pending, or failed (tried, without a next try)."""
    if episode.processed_at is not None:
        return "processed"
    return "failed" if episode.error is not None and episode.retry_at is None else "pending"


def community_matches(community: Community, query: CommunityQuery) -> bool:
    """Return whether a query matches this community; the caller checks `entity_ids`, which depends on the members."""
    return (
        (query.ids is None or community.id in query.ids)
        and (query.level is None or community.level == query.level)
        and existed(community.created_at, community.ended_at, query.as_of, ended=query.ended)
    )


def membership_matches(membership: Membership, query: MembershipQuery) -> bool:
    """Return whether a query matches this membership; the caller checks `level`, which depends on the community."""
    return (
        (query.community_ids is None or membership.community_id in query.community_ids)
        and (query.entity_ids is None or membership.entity_id in query.entity_ids)
        and existed(membership.since, membership.until, query.as_of, ended=query.ended)
    )


def best_first(edge: Edge) -> tuple[float, str]:
    """Return the sort key of an edge: confidence descending, then id."""
    return (-edge.confidence, edge.id)


def follows(edge: Edge, edge_types: Sequence[EdgeType], as_of: AsOf | None, now: datetime) -> bool:
    """Return whether a traversal follows this edge; no types means all."""
    return (not edge_types or edge.edge_type in edge_types) and edge_is_visible(edge, as_of, now)


def text_score(entity: Entity, prefixes: Sequence[str]) -> float:
    """Count the words of an entity that begin with one of the prefixes; words of the name count ten times."""

    def hits(text: str) -> int:
        return sum(token.startswith(prefix) for token in index_words(text) for prefix in prefixes)

    return NAME_WEIGHT * hits(entity.name) + hits(entity.summary)
