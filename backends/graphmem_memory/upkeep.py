"""Upkeep: search index, merge ledger, states of jobs, decay of retrieval counts, idle entities, erasure of a scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from graphmem.errors import InvalidInput
from graphmem.models import Edge, Entity, IndexEntry, IndexKind, IndexState, JobState, Merge, MergeQuery, Scope, decayed
from graphmem.protocols import IndexStore, MergeStore, UpkeepStore, require_no_cursor
from graphmem_memory.tables import MemoryRole, Scoped, Store, edge_is_visible


class MemoryIndex(MemoryRole, IndexStore):
    """The index entries of each scope."""

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        with self._store.lock:
            return state_of(self._store, scope)

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries after a position."""
        with self._store.lock:
            rows = self._store.index.read([scope], after=_index_key(after))
            return list(islice((row.value for row in rows if kind in (None, row.value.kind)), limit))

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        with self._store.lock:
            table = self._store.index
            rows = table.read([scope], table.keys_of("key", [(scope, kind, key) for key in keys]))
            return sorted((row.value for row in rows), key=lambda entry: entry.key)

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        with self._store.lock:
            entries = [row.value for row in self._store.index.read([scope])]
            indexed = {entry.key for entry in entries if entry.kind == kind and entry.complete}
            return list(islice((i for i in self._ids(scope, kind, after) if i not in indexed), limit))

    def _ids(self, scope: Scope, kind: IndexKind, after: str) -> Iterator[str]:
        store = self._store
        if kind == "episode":
            yield from (row.id for row in store.episodes.read([scope], after=after))
        elif kind == "fact":
            yield from (
                row.id for row in store.edges.read([scope], after=after) if row.is_active and not row.is_inferred
            )
        elif kind == "entity":
            yield from (row.id for row in store.entities.read([scope], after=after) if row.archived_at is None)

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model; return the number of removed entries."""
        with self._writing():
            rows = list(self._store.index.read([scope]))
            for row in rows:
                self._store.index.put(_index_key(row.value.position), None)
            _put_state(self._store, scope, IndexState(None, state_of(self._store, scope).generation + 1))
            return len(rows)


def state_of(store: Store, scope: Scope) -> IndexState:
    """Return the model and the generation of a scope's index."""
    row = store.index_states.get(scope.key)
    return IndexState() if row is None else row.value


def _put_state(store: Store, scope: Scope, state: IndexState) -> None:
    store.index_states.put(scope.key, Scoped(scope, state))


def put_entry(store: Store, scope: Scope, entry: IndexEntry) -> None:
    """Insert or replace an entry."""
    _require_row(store, scope, entry)
    state = state_of(store, scope)
    if entry.complete:
        if state.model is None:
            _put_state(store, scope, replace(state, model=entry.model))
        elif state.model != entry.model:
            raise InvalidInput(f"index of scope {scope}: built with {state.model!r}, not with {entry.model!r}")
    _remove_entry(store, scope, entry.kind, entry.key)
    position = store.next_position()
    store.index.put(_index_key(position), Scoped(scope, replace(entry, position=position)))


def _index_key(position: int) -> tuple[str]:
    return (f"{position:020d}",)


def _require_row(store: Store, scope: Scope, entry: IndexEntry) -> None:
    held: dict[IndexKind, Callable[[Scope, str], object]] = {
        "episode": store.episodes.held,
        "fact": store.edges.held,
        "entity": store.entities.held,
    }
    if entry.kind != "name" and held[entry.kind](scope, entry.key) is None:
        raise InvalidInput(f"{entry.kind} {entry.key} is not in scope {scope}")


def _remove_entry(store: Store, scope: Scope, kind: IndexKind, key: str) -> None:
    for old in store.index.keys_of("key", [(scope, kind, key)]):
        store.index.put(old, None)


def unindex(store: Store, scope: Scope, kind: IndexKind, key: str) -> None:
    """Delete the entry of a row; the next generation tells readers to drop their copies."""
    if store.index.keys_of("key", [(scope, kind, key)]):
        _remove_entry(store, scope, kind, key)
        state = state_of(store, scope)
        _put_state(store, scope, replace(state, generation=state.generation + 1))


# Upkeep -------------------------------------------------------------------------------------------


_DECAY_PAGE = 1000


class MemoryMerges(MemoryRole, MergeStore):
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
        with self._store.lock:
            table = self._store.merges
            candidates = None if query.entity_ids is None else table.keys_of("entity", query.entity_ids)
            if query.ids is not None:
                candidates = set(query.ids) if candidates is None else candidates & set(query.ids)
            rows = table.read(scopes, candidates, after=after)
            found: Iterable[Merge] = (row for row in rows if query.undone or row.undone_at is None)
            if newest_first:
                found = sorted(found, key=lambda m: m.id, reverse=True)
            return list(islice(found, limit))


class MemoryUpkeep(MemoryRole, UpkeepStore):
    """States of jobs, decay, idle entities and erasure."""

    def find_job_states(self, scope: Scope) -> list[JobState]:
        """Return the job states of a scope, ordered by job."""
        with self._store.lock:
            return [row.value for row in self._store.job_states.read([scope])]

    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts."""
        with self._writing():
            counted = (edge for edge in self._store.edges.read([scope], after=after) if edge.retrieval_count > 0)
            page = list(islice(counted, _DECAY_PAGE))
            for edge in page:
                count = decayed(
                    edge.retrieval_count, edge.last_retrieved_at, rate=rate, idle_since=idle_since, since=since, now=now
                )
                self._store.edges.put(edge.id, edge.changed(retrieval_count=count))
            return len(page), page[-1].id if len(page) == _DECAY_PAGE else ""

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities last seen and recorded by `before`, without visible facts or ones expired later."""
        with self._store.lock:
            idle = (
                entity.id
                for entity in self._unarchived(scope)
                if entity.last_seen_at <= before
                and entity.recorded_at <= before
                and not any(
                    edge_is_visible(edge, None, now) or (edge.expired_at is not None and edge.expired_at > before)
                    for edge in self._edges_about(entity.id)
                )
            )
            return list(islice(idle, limit))

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities, those with the fewest active facts first, then those last seen earliest."""
        with self._store.lock:
            ranked = sorted((self._degree(e.id), e.last_seen_at, e.id) for e in self._unarchived(scope))
            return [entity_id for _, _, entity_id in ranked[:limit]]

    def _unarchived(self, scope: Scope) -> Iterator[Entity]:
        return (entity for entity in self._store.entities.read([scope]) if entity.archived_at is None)

    def _degree(self, entity_id: str) -> int:
        return sum(edge.is_active for edge in self._edges_about(entity_id))

    def _edges_about(self, entity_id: str) -> Iterator[Edge]:
        keys = self._store.edges_at([entity_id])
        return (edge for key in keys if (edge := self._store.edges.get(key)) is not None)

    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts stated by these episodes."""
        with self._store.lock:
            table = self._store.edges
            return [edge.id for edge in table.read([scope], table.keys_of("episode", episode_ids))]

    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope; the generation of its index stays, so that no value is used twice."""
        with self._writing():
            store = self._store
            state = state_of(store, scope)
            for table in store.tables():
                table.clear(scope)
            _put_state(store, scope, IndexState(None, state.generation + 1))

    def scrub(self) -> bool:
        """Do nothing: nothing is on disk."""
        return True


def put_job_state(store: Store, scope: Scope, job_state: JobState) -> None:
    """Insert or replace a job state."""
    store.job_states.put((scope.key, job_state.job), Scoped(scope, job_state))
