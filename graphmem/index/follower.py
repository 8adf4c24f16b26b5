"""Keeps an index up with the store: the store is the truth, and the index can always be filled from it again."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from graphmem.errors import IndexMismatch
from graphmem.index.codec import unpacked
from graphmem.models import IndexEntry, IndexKind, Scope
from graphmem.protocols import GraphBackend
from graphmem.protocols.vectors import VectorIndex, VectorRows, VectorState

_log = logging.getLogger(__name__)

FOLLOWED: tuple[IndexKind, ...] = ("episode", "entity")
"""Kinds that are brought to an index; facts and names are few beside them and stay with the rest of recall."""

_WITH_IDS: tuple[IndexKind, ...] = ("episode", "fact", "entity")  # their keys are of one store only
_PAGE = 1000


class VectorFollower:
    """Brings the entries of a store to an index.

    The index records for each scope the model, the generation and the position up to which it has what the store has.
    `sync` takes in what is behind that, so a process that dies between a commit of the store and one of the index
    leaves nothing but a distance, which the next `sync` makes up for. Where model or generation have changed, or the
    state is of another store, the scope is emptied and filled anew.

    Parameters
    ----------
    backend
        The store.
    index
        Follows it.
    dimension
        Returns how many numbers a vector of the store has.
    """

    def __init__(self, backend: GraphBackend, index: VectorIndex, dimension: Callable[[], int]) -> None:
        self.index = index
        self._backend = backend
        self._dimension = dimension
        self._known: dict[Scope, VectorState] = {}
        self._locks: defaultdict[Scope, threading.Lock] = defaultdict(threading.Lock)

    def sync(
        self, scope: Scope, *, seconds: float | None = None, on_progress: Callable[[int], None] | None = None
    ) -> bool:
        """Take in what the index lacks of a scope; return whether it has everything now.

        Parameters
        ----------
        scope
            Whose entries.
        seconds
            After so much time the rest is left for the next call.
        on_progress
            Called with how many entries were read so far.

        Raises
        ------
        IndexUnavailable
            If the index can't be reached.
        IndexMismatch
            If the index has vectors of another dimension.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        done = 0
        with self._locks[scope]:
            state = self._begin(scope)
            while state is not None:
                page = self._backend.read_index(scope, after=state.position, limit=_PAGE)
                if not page:
                    break
                self._take_in(scope, page)
                state = self._advance(scope, state, page)
                done += len(page)
                if on_progress is not None:
                    on_progress(done)
                if deadline is not None and time.monotonic() >= deadline and len(page) == _PAGE:
                    return False
            return True

    def restart(self, scope: Scope) -> None:
        """Empty a scope in the index, for it to be filled anew.

        An index of another dimension is emptied as a whole: what other scopes have there can't be compared with a
        question of this model any more.
        """
        with self._locks[scope]:
            self._known.pop(scope, None)
            self.index.clear(scope)
            try:
                for kind in FOLLOWED:
                    self.index.search([scope], kind, np.ones(self._dimension(), np.float32), limit=1)
            except IndexMismatch as error:
                _log.warning("the vector index is emptied for the new embedding model: %s", error)
                self.index.reset()

    def forget(self, scope: Scope, keys: Sequence[tuple[IndexKind, str]] | None) -> None:
        """Delete keys from the index at once, or with None a whole scope; `sync` would only do so when it comes.

        Raises
        ------
        IndexUnavailable
            If the index can't be reached; the next `sync` that can reach it fills the scope anew.
        """
        with self._locks[scope]:
            if keys is None:
                self._known.pop(scope, None)
                self.index.clear(scope)
                return
            for kind in FOLLOWED:
                if gone := [key for of, key in keys if of == kind]:
                    self.index.delete(scope, kind, gone)

    def _begin(self, scope: Scope) -> VectorState | None:
        """Return where to go on; None where the store has no vectors."""
        built = self._backend.index_state(scope)
        state = self.index.state(scope)
        if state is not None:
            fits = (state.model, state.generation) == (built.model, built.generation)
            if fits and (state == self._known.get(scope) or self._is_ours(scope, state)):
                self._known[scope] = state
                return state
            if fits:
                _log.warning("scope %s: the vector index followed another store; it is filled anew", scope)
        self._known.pop(scope, None)
        if state is not None or built.model:
            self.index.clear(scope)  # also without a state: what a crash left in the middle of another clear
        if not built.model:
            return None
        state = VectorState(built.model, built.generation, 0)
        self.index.set_state(scope, state)
        return state

    def _is_ours(self, scope: Scope, state: VectorState) -> bool:
        """Return whether the store has the entry that was taken in last; a store put back to a copy hasn't."""
        if not state.last:
            return True
        found = [entry for kind in _WITH_IDS for entry in self._backend.find_index(scope, kind, [state.last])]
        return any(entry.position >= state.last_position for entry in found)

    def _take_in(self, scope: Scope, page: Sequence[IndexEntry]) -> None:
        dimension = self._dimension()
        for kind in FOLLOWED:
            items = [(entry.key, searched(entry, dimension)) for entry in page if entry.kind == kind]
            if items:
                self.index.upsert(scope, kind, items)

    def _advance(self, scope: Scope, before: VectorState, page: Sequence[IndexEntry]) -> VectorState:
        """Record how far it is now; where another process moved the state meanwhile, from the lower of both on."""
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
    """Return the vectors of an entry that a question is compared with, shape (v, dimension).

    Of an episode these are its sentences: the whole, which comes first, only where it has no others.
    """
    vectors = unpacked(entry, dimension)
    if entry.kind == "episode" and len(vectors) > 1:
        vectors = vectors[1:]
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    return vectors[usable]
