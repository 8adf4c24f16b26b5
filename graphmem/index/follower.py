"""Synchronization of indexes with the rows of the store, which can always rebuild them."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from graphmem.errors import IndexMismatch
from graphmem.index.stored_vectors import unpacked
from graphmem.models import IndexEntry, IndexKind, Scope
from graphmem.protocols import GraphBackend
from graphmem.protocols.vectors import VectorIndex, VectorRows, VectorState

_log = logging.getLogger(__name__)

FOLLOWED: tuple[IndexKind, ...] = ("episode", "entity")
"""Kinds that are copied to the index; facts and names are few and are searched in memory."""

_WITH_IDS: tuple[IndexKind, ...] = ("episode", "fact", "entity")  # kinds with globally unique keys
_PAGE = 1000


class UnindexedScan:
    """Scan for unindexed rows that continues where the last batch ended.

    A scan from the first row would pass all rows that earlier batches have indexed. Rows with earlier ids that were
    committed meanwhile are found by a last scan from the first row.

    Parameters
    ----------
    backend
        The store.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend
        self._reached: dict[tuple[Scope, IndexKind], str] = {}  # last id indexed while later ones wait

    def find(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int) -> list[str]:
        """Return the ids of at most `limit` unindexed rows after `after`; none only if there are none."""
        reached = self._reached.get((scope, kind), "")
        if reached > after:
            if waiting := self._backend.find_unindexed(scope, kind, after=reached, limit=limit):
                return waiting
            self._reached.pop((scope, kind), None)
        return self._backend.find_unindexed(scope, kind, after=after, limit=limit)

    def advance(self, scope: Scope, kind: IndexKind, ids: Sequence[str], limit: int) -> None:
        """Record that a batch is indexed; more rows wait only if it is full."""
        if len(ids) == limit:
            self._reached[scope, kind] = ids[-1]

    def is_complete(self, scope: Scope, kind: IndexKind, found: int, limit: int) -> bool:
        """Return whether a call of `find` that found fewer rows than `limit` was a scan of all rows."""
        return found < limit and (scope, kind) not in self._reached


class ScopeLocks:
    """A lock for each scope."""

    def __init__(self) -> None:
        self._locks: dict[Scope, threading.Lock] = {}

    def is_held(self, scope: Scope) -> bool:
        """Return whether a thread holds the lock of a scope."""
        return scope in self._locks and self._locks[scope].locked()

    @contextmanager
    def held(self, scope: Scope, deadline: float | None = None) -> Generator[bool]:
        """Hold the lock of a scope; False if another thread holds it until the deadline, by `time.monotonic`."""
        lock = self._locks.setdefault(scope, threading.Lock())
        left = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
        acquired = lock.acquire(timeout=min(left, threading.TIMEOUT_MAX))
        try:
            yield acquired
        finally:
            if acquired:
                lock.release()


class VectorFollower:
    """Copies the index entries of a store to a vector index.

    The index records for each scope the model, the generation and the position of the last entry applied. `sync`
    applies later entries, so a crash between the commits of the store and the index only leaves a lag that the next
    `sync` resolves. If the model or the generation has changed, or the state belongs to another store, the scope is
    cleared and refilled.

    Parameters
    ----------
    backend
        The store.
    index
        The vector index to update.
    dimension
        Returns the dimension of the store's vectors.
    """

    def __init__(self, backend: GraphBackend, index: VectorIndex, dimension: Callable[[], int]) -> None:
        self.index = index
        self._backend = backend
        self._dimension = dimension
        self._known: dict[Scope, VectorState] = {}
        self._locks = ScopeLocks()

    def sync(
        self, scope: Scope, *, seconds: float | None = None, on_progress: Callable[[int], None] | None = None
    ) -> bool:
        """Apply the entries of a scope that the index lacks; return whether it is up to date.

        Parameters
        ----------
        scope
            Scope of the entries.
        seconds
            Time limit; the rest is left for the next call.
        on_progress
            Called with the number of entries read so far.

        Raises
        ------
        IndexUnavailable
            If the index can't be reached.
        IndexMismatch
            If the index has vectors of another dimension.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        done = 0
        with self._locks.held(scope, deadline) as acquired:
            if not acquired:
                return False
            state = self._begin(scope)
            while state is not None:
                page = self._backend.read_index(scope, after=state.position, limit=_PAGE)
                if not page:
                    break
                self._apply(scope, page)
                state = self._advance(scope, state, page)
                done += len(page)
                if on_progress is not None:
                    on_progress(done)
                if deadline is not None and time.monotonic() >= deadline and len(page) == _PAGE:
                    return False
            return True

    def restart(self, scope: Scope) -> None:
        """Clear a scope in the index, to be refilled by `sync`.

        An index of another dimension is reset for all scopes, since its vectors can't be compared with the current
        model's.
        """
        with self._locks.held(scope):
            self._known.pop(scope, None)
            self.index.clear(scope)
            try:
                for kind in FOLLOWED:
                    self.index.search([scope], kind, np.ones(self._dimension(), np.float32), limit=1)
            except IndexMismatch as error:
                _log.warning("the vector index is reset for the new embedding model: %s", error)
                self.index.reset()

    def forget(self, scope: Scope, keys: Sequence[tuple[IndexKind, str]] | None) -> None:
        """Delete keys, or with None a whole scope, from the index immediately instead of at the next `sync`.

        Raises
        ------
        IndexUnavailable
            If the index can't be reached; the next successful `sync` refills the scope.
        """
        with self._locks.held(scope):
            if keys is None:
                self._known.pop(scope, None)
                self.index.clear(scope)
                return
            for kind in FOLLOWED:
                if gone := [key for of, key in keys if of == kind]:
                    self.index.delete(scope, kind, gone)

    def _begin(self, scope: Scope) -> VectorState | None:
        """Return the state to continue from, or None if the store has no vectors."""
        built = self._backend.index_state(scope)
        state = self.index.state(scope)
        if state is not None:
            fits = (state.model, state.generation) == (built.model, built.generation)
            if fits and (state == self._known.get(scope) or self._is_ours(scope, state)):
                self._known[scope] = state
                return state
            if fits:
                _log.warning("scope %s: the vector index was built from another store; it is refilled", scope)
        self._known.pop(scope, None)
        if state is not None or built.model:
            self.index.clear(scope)  # also without a state: a crash may have interrupted an earlier clear
        if not built.model:
            return None
        state = VectorState(built.model, built.generation, 0)
        self.index.set_state(scope, state)
        return state

    def _is_ours(self, scope: Scope, state: VectorState) -> bool:
        """Return whether the store has the last applied entry; a store restored from an older copy may not."""
        if not state.last:
            return True
        found = [entry for kind in _WITH_IDS for entry in self._backend.find_index(scope, kind, [state.last])]
        return any(entry.position >= state.last_position for entry in found)

    def _apply(self, scope: Scope, page: Sequence[IndexEntry]) -> None:
        dimension = self._dimension()
        for kind in FOLLOWED:
            items = [(entry.key, searched(entry, dimension)) for entry in page if entry.kind == kind]
            if items:
                self.index.upsert(scope, kind, items)

    def _advance(self, scope: Scope, before: VectorState, page: Sequence[IndexEntry]) -> VectorState:
        """Record the new state; if another process changed it meanwhile, continue from the lower position."""
        after = replace(before, position=page[-1].position)
        if last := next((entry for entry in reversed(page) if entry.kind in _WITH_IDS), None):
            after = replace(after, last=last.key, last_position=last.position)
        there = self.index.state(scope)
        if there not in (before, after) and there is not None and there.position < after.position:
            after = there
        self.index.set_state(scope, after)
        self._known[scope] = after
        return after


def searched(entry: IndexEntry, dimension: int) -> VectorRows:
    """Return the vectors of an entry that are searched, shape (v, dimension).

    For an episode these are its sentences, or its own vector if there are none.
    """
    vectors = unpacked(entry, dimension)
    if entry.kind == "episode" and len(vectors) > 1:
        vectors = vectors[1:]
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    return vectors[usable]
