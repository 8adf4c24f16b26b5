"""The search index of a scope: entries by position, rows without an entry, model and generation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from graphmem.errors import InvalidInput
from graphmem.models import IndexEntry, IndexKind, IndexState, Scope
from graphmem.protocols import IndexStore
from graphmem_memory.tables import IndexRow, MemoryRole, StateRow, Store


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
            rows = self._store.index.read([scope], after=(f"{after:020d}",))
            return list(islice((row.entry for row in rows if kind in (None, row.entry.kind)), limit))

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        with self._store.lock:
            table = self._store.index
            rows = table.read([scope], table.keys_of("key", [(scope, kind, key) for key in keys]))
            return sorted((row.entry for row in rows), key=lambda entry: entry.key)

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        with self._store.lock:
            entries = [row.entry for row in self._store.index.read([scope])]
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
                self._store.index.put((f"{row.entry.position:020d}",), None)
            _put_state(self._store, scope, IndexState(None, state_of(self._store, scope).generation + 1))
            return len(rows)


def state_of(store: Store, scope: Scope) -> IndexState:
    """Return the model and the generation of a scope's index."""
    row = store.index_states.get(scope.key)
    return IndexState() if row is None else row.state


def _put_state(store: Store, scope: Scope, state: IndexState) -> None:
    store.index_states.put(scope.key, StateRow(scope, state))


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
    store.index.put((f"{position:020d}",), IndexRow(scope, replace(entry, position=position)))


def _require_row(store: Store, scope: Scope, entry: IndexEntry) -> None:
    tables: dict[IndexKind, Callable[[str], object]] = {
        "episode": store.episodes.get,
        "fact": store.edges.get,
        "entity": store.entities.get,
    }
    if entry.kind != "name":
        row = tables[entry.kind](entry.key)
        if row is None or getattr(row, "scope", None) != scope:
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
