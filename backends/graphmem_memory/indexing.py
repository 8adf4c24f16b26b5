"""What recall keeps beside the rows: entries by their position, and which rows have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from graphmem.errors import InvalidInput
from graphmem.models import IndexEntry, IndexKind, IndexState, Scope
from graphmem_memory.tables import IndexRow, StateRow, Store


def put_entry(store: Store, scope: Scope, entry: IndexEntry) -> None:
    """Insert or replace an entry."""
    _require_row(store, scope, entry)
    state = state_of(store, scope)
    if entry.complete:
        if state.model is None:
            _put_state(store, scope, replace(state, model=entry.model))
        elif state.model != entry.model:
            raise InvalidInput(f"index of scope {scope}: built with {state.model!r}, not with {entry.model!r}")
    remove_entry(store, scope, entry.kind, entry.key)
    position = store.next_position()
    store.index.put((f"{position:020d}",), IndexRow(scope, replace(entry, position=position)))


def remove_entry(store: Store, scope: Scope, kind: IndexKind, key: str) -> None:
    """Delete the entry of a row, if there is one; to be read by who replaces it, or raises the generation."""
    for old in store.index.keys_of("key", [(scope, kind, key)]):
        store.index.put(old, None)


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


def state_of(store: Store, scope: Scope) -> IndexState:
    """Return the model and the generation of a scope's index."""
    row = store.index_states.get(scope.key)
    return IndexState() if row is None else row.state


def _put_state(store: Store, scope: Scope, state: IndexState) -> None:
    store.index_states.put(scope.key, StateRow(scope, state))


def read_index(store: Store, scope: Scope, kind: IndexKind | None, after: int, limit: int) -> list[IndexEntry]:
    """Return a page of entries behind a position."""
    rows = store.index.read([scope], after=(f"{after:020d}",))
    return list(islice((row.entry for row in rows if kind in (None, row.entry.kind)), limit))


def find_index(store: Store, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
    """Return the entries with these keys, ordered by key."""
    rows = store.index.read([scope], store.index.keys_of("key", [(scope, kind, key) for key in keys]))
    return sorted((row.entry for row in rows), key=lambda entry: entry.key)


def find_unindexed(store: Store, scope: Scope, kind: IndexKind, after: str, limit: int) -> list[str]:
    """Return ids of rows without a complete entry, in ascending order."""
    indexed = {row.entry.key for row in store.index.read([scope]) if row.entry.kind == kind and row.entry.complete}
    return list(islice((i for i in _ids(store, scope, kind, after) if i not in indexed), limit))


def _ids(store: Store, scope: Scope, kind: IndexKind, after: str) -> Iterator[str]:
    if kind == "episode":
        yield from (row.id for row in store.episodes.read([scope], after=after))
    elif kind == "fact":
        yield from (row.id for row in store.edges.read([scope], after=after) if row.is_active)
    elif kind == "entity":
        yield from (row.id for row in store.entities.read([scope], after=after) if row.archived_at is None)


def reset_index(store: Store, scope: Scope) -> int:
    """Delete all entries of a scope and its model."""
    rows = list(store.index.read([scope]))
    for row in rows:
        store.index.put((f"{row.entry.position:020d}",), None)
    _put_state(store, scope, IndexState(None, state_of(store, scope).generation + 1))
    return len(rows)
