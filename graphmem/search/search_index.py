"""Maintenance of a store's search index: which rows wait to be indexed, and when they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from graphmem.errors import IndexMismatch, StoreReadOnly
from graphmem.index.copies import MEMORY
from graphmem.index.encoder import EpisodeEncoder
from graphmem.index.follower import ScopeLocks, UnindexedScan, VectorFollower
from graphmem.models import (
    IndexCursor,
    IndexKind,
    Scope,
    first_id_at,
)
from graphmem.protocols import GraphBackend, VectorIndex
from graphmem.search.entry_writer import KINDS, EntryWriter
from graphmem.search.snapshots import Snapshot, Snapshots

_BATCH = 64
_BATCH_IN_TIME = 16  # rows of the first batch if the time is limited: 16 turns of 2 kB take about a second
_MOST_IN_TIME = 512  # rows of a later one: without a model, or of short facts, many take less than that
_REFUSED = 10.0  # seconds for which a store that refused to be written isn't asked again
_ATTEMPTS = 3  # to index a batch that erasures intervene in
_LATENESS = (5.0, 60.0, 600.0)  # seconds within which most, nearly all, and all rows are committed after their id
_INTERVALS = (0.0, 1.0, 30.0)  # seconds between scans for rows of each lateness


def _next_batch(rows: int, seconds: float) -> int:
    """Return the number of rows of the next batch, given those of the last one and its duration."""
    if seconds < 0.2:
        return min(2 * rows, _MOST_IN_TIME)
    return max(rows // 2, _BATCH_IN_TIME) if seconds > 0.5 else rows


@dataclass(frozen=True, slots=True)
class _Seen:
    """Times of the last scans over each lateness that found no unindexed rows; seconds since 1970."""

    times: tuple[float, ...]

    def due(self, now: float) -> int:
        """Return the index of the longest lateness that is due to be scanned."""
        return max(n for n, time in enumerate(self.times) if now - time >= _INTERVALS[n])


def _cursor(seen: _Seen | None, now: float) -> str:
    """Return the id after which rows may be unindexed; later rows are covered only at intervals."""
    if seen is None:
        return ""
    due = seen.due(now)
    return first_id_at(seen.times[due] - _LATENESS[due])


class SearchIndex:
    """The search index of one store.

    Parameters
    ----------
    backend
        The store, which contains the index.
    encoder
        Encoder of the index entries.
    vectors
        An external index that holds the vectors of sentences instead of the snapshot.
    memory
        Maximum bytes of the snapshots; those used last are kept.
    """

    def __init__(
        self, backend: GraphBackend, encoder: EpisodeEncoder, vectors: VectorIndex | None = None, memory: int = MEMORY
    ) -> None:
        self.follower = None if vectors is None else VectorFollower(backend, vectors, lambda: encoder.dimension)
        self._backend = backend
        self._encoder = encoder
        self._writer = EntryWriter(backend, encoder)
        self._snapshots = Snapshots(backend, encoder, sentences=vectors is None, memory=memory)
        self._indexed: dict[tuple[Scope, IndexKind], _Seen] = {}
        self._unindexed = UnindexedScan(backend)
        self._looked_at = 0.0  # wall clock time of the last scan for unindexed rows
        self._refused = 0.0, ""  # until when, and why
        self._generations: dict[Scope, int] = {}
        self._lock = threading.Lock()
        self._indexing = ScopeLocks()

    def copy(self, scopes: Sequence[Scope]) -> AbstractContextManager[Snapshot]:
        """Lend an up-to-date snapshot of the scopes; see `Snapshots.copy`."""
        return self._snapshots.copy(scopes)

    def index_waiting(self, scope: Scope, *, seconds: float | None = None, limit: int | None = None) -> bool:
        """Index the unindexed rows of a scope, episodes before facts; return whether none are left.

        Parameters
        ----------
        scope
            Scope to index.
        seconds, limit
            Maximum time and number of rows; the rest is left for the next call.

        Raises
        ------
        EmbeddingFailed
            If the model fails; episodes are then indexed by their words only.
        IndexUnavailable
            If the external vector index can't be reached; the store's own index is up to date.
        """
        self._require_model(scope)
        deadline = None if seconds is None else time.monotonic() + seconds
        left, batch = limit, _BATCH if deadline is None else _BATCH_IN_TIME
        for kind in KINDS:
            complete = False
            while not complete:
                began = time.monotonic()
                done, complete = self._index_batch(scope, kind, min(batch, left or batch), deadline)
                if not done and not complete:
                    return False
                left = None if left is None else left - done
                if deadline is not None:
                    batch = _next_batch(batch, time.monotonic() - began)
                if done and (left == 0 or (deadline is not None and time.monotonic() >= deadline)):
                    return False
        if self.follower is None:
            return True
        return self.follower.sync(scope, seconds=None if deadline is None else max(0.0, deadline - time.monotonic()))

    def stale_scopes(self, scopes: Sequence[Scope]) -> list[Scope]:
        """Return the scopes that need `index_waiting`; one round trip. With an external index, return all."""
        if self.follower is not None:
            return list(scopes)
        now = self._now()
        generations = {scope: self._generations.get(scope) for scope in scopes}  # first: see `_require_model`
        seen = {(scope, kind): self._indexed.get((scope, kind)) for scope in scopes for kind in KINDS}
        cursors = [
            IndexCursor(scope, _cursor(seen[scope, "episode"], now), _cursor(seen[scope, "fact"], now))
            for scope in scopes
        ]
        found: list[Scope] = []
        for scope, news in zip(scopes, self._backend.index_status(cursors), strict=True):
            is_known = generations[scope] == news.state.generation
            if news.waiting or not is_known or news.state.model not in (None, self._encoder.model):
                found.append(scope)
            else:
                for kind in KINDS:
                    self._settle(scope, kind, now, seen[scope, kind])
        return found

    def _settle(self, scope: Scope, kind: IndexKind, now: float, seen: _Seen | None) -> None:
        """Record a scan that found no unindexed rows after the cursor of `seen`, unless that was reset meanwhile."""
        with self._lock:
            if self._indexed.get((scope, kind)) is seen:
                later = () if seen is None else seen.times[seen.due(now) + 1 :]
                self._indexed[scope, kind] = _Seen((now,) * (len(_LATENESS) - len(later)) + later)

    def _now(self) -> float:
        """Return the time. Reset all cursors if the clock went back, since new ids may be below indexed ones."""
        with self._lock:  # or a thread that took its time earlier would seem to show a clock that went back
            now = time.time()
            if now < self._looked_at:
                self._indexed.clear()
            self._looked_at = now
            return now

    def _index_batch(self, scope: Scope, kind: IndexKind, limit: int, deadline: float | None) -> tuple[int, bool]:
        """Index a batch of unindexed rows; return their number, and whether none are left.

        Another thread that indexes the scope is waited for until the deadline; (0, False) if it takes longer.
        """
        if self._indexing.is_held(scope) and not self._waiting(scope, kind, 1, self._now()):
            return 0, True  # no need to wait for another thread
        with self._indexing.held(scope, deadline) as acquired:  # two threads don't index the same batch
            if not acquired:
                return 0, False
            for _ in range(_ATTEMPTS):
                now, seen = self._now(), self._indexed.get((scope, kind))
                waiting = self._waiting(scope, kind, limit, now)
                if not waiting:
                    return 0, True
                if self._index_unless_refused(scope, kind, waiting):
                    self._unindexed.advance(scope, kind, waiting, limit)
                    complete = self._unindexed.is_complete(scope, kind, len(waiting), limit)
                    if complete:
                        self._settle(scope, kind, now, seen)
                    return len(waiting), complete
        return limit, False  # none of them, as erasures intervened; the caller goes on if there is time

    def _index_unless_refused(self, scope: Scope, kind: IndexKind, ids: Sequence[str]) -> bool:
        """Index rows, but for a while after a store refused to be written, without encoding them in vain."""
        until, refusal = self._refused
        if time.monotonic() < until:
            raise StoreReadOnly(refusal)
        try:
            return self._writer.index(scope, kind, ids)
        except StoreReadOnly as error:
            self._refused = time.monotonic() + _REFUSED, str(error)
            raise

    def _require_model(self, scope: Scope) -> None:
        """Raise `IndexMismatch` for an index of another model; reset an index that was built without a model."""
        state = self._backend.index_state(scope)
        built = state.model
        if self._generations.get(scope) != state.generation:
            self.reset_cursor(scope)  # entries were removed, so indexed rows may be unindexed again
            self._generations[scope] = state.generation  # last: who reads it reads the new cursors
        if built is None or built == self._encoder.model:
            return
        if built == "":
            self._backend.reset_index(scope)
        elif self._encoder.model:
            raise IndexMismatch(
                f"scope {scope}: its index was built with the embedding model {built!r}, not with "
                f"{self._encoder.model!r}; configure that model, or rebuild the index: graphmem reindex"
            )

    def _waiting(self, scope: Scope, kind: IndexKind, limit: int, now: float) -> list[str]:
        """Return the ids of unindexed rows after the cursor."""
        seen = self._indexed.get((scope, kind))
        waiting = self._unindexed.find(scope, kind, after=_cursor(seen, now), limit=limit)
        if not waiting:
            self._settle(scope, kind, now, seen)
        return waiting

    def reset_cursor(self, scope: Scope) -> None:
        """Reset the cursors of a scope, so that rows with old ids are checked again."""
        for kind in KINDS:
            self._indexed.pop((scope, kind), None)

    def rebuild(self, scope: Scope, on_progress: Callable[[int], None] | None = None) -> int:
        """Rebuild the index of a scope; return the number of indexed rows, also reported to `on_progress`.

        The old index is removed first. An interrupted rebuild continues with the next `index_waiting`.
        """
        self._backend.reset_index(scope)
        if self.follower is not None:
            self.follower.restart(scope)
        self.reset_cursor(scope)
        done = 0
        for kind in KINDS:
            complete = False
            while not complete:
                indexed, complete = self._index_batch(scope, kind, _BATCH, None)
                if not indexed:
                    break
                done += indexed
                if self.follower is not None:
                    self.follower.sync(scope)
                if on_progress is not None:
                    on_progress(done)
        return done

    def forget(self, scope: Scope, keys: Sequence[tuple[IndexKind, str]] | None) -> None:
        """Drop the data of removed rows from memory and from the external index.

        Parameters
        ----------
        scope
            Scope of the rows.
        keys
            Kinds and keys of the rows; None means all rows of the scope.

        Raises
        ------
        IndexUnavailable
            If the external index can't be reached; the next synchronization refills the scope.
        """
        self._snapshots.drop(scope)
        self._encoder.forget()
        if self.follower is not None:
            self.follower.forget(scope, keys)
