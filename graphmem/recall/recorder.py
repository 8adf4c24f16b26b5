"""What recalls leave in the store, written behind the caller's back: counts of retrievals, and traces."""

from __future__ import annotations

import logging
import time
from collections import deque
from threading import Lock

from graphmem.background import BackgroundJob
from graphmem.errors import Conflict, InvalidInput, StoreFull, StoreReadOnly
from graphmem.models import Changes, RecallTrace, Scope, utc_now
from graphmem.protocols import GraphBackend

_log = logging.getLogger(__name__)

_WAITING = 10_000  # recalls of which counts or traces may wait to be written
_TOGETHER = 0.2  # seconds that a recall waits for others, so that they share a transaction


class RecallRecorder:
    """Writes what recalls leave, those of a moment together; what couldn't be written is tried again.

    Parameters
    ----------
    backend
        Where it is written.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend
        self._counts: deque[tuple[tuple[Scope, ...], list[str]]] = deque(maxlen=_WAITING)
        self._traces: deque[RecallTrace] = deque(maxlen=_WAITING)
        self._job = BackgroundJob("graphmem-recalls", self._work)
        self._due = 0.0
        self._writing = Lock()

    @property
    def error(self) -> Exception | None:
        """Why the last try to write failed; None if it didn't."""
        return self._job.error

    def count(self, scopes: tuple[Scope, ...], edge_ids: list[str]) -> None:
        """Count one retrieval of each returned fact."""
        if edge_ids:
            self._counts.append((scopes, edge_ids))
            self._wake()

    def keep(self, trace: RecallTrace) -> None:
        """Store a trace."""
        self._traces.append(trace)
        self._wake()

    def _wake(self) -> None:
        if len(self._counts) + len(self._traces) == 1:
            self._due = time.monotonic() + _TOGETHER
        self._job.wake()

    def _work(self) -> float | None:
        if (self._counts or self._traces) and (early := self._due - time.monotonic()) > 0:
            return early
        self.write()
        return None

    def write(self) -> None:
        """Write what waits; on return it is in the store."""
        with self._writing:
            try:
                self._write_counts()
                self._write_traces()
            except StoreReadOnly:
                _log.debug("retrievals and traces are not kept: the store is read-only")

    def write_if_room(self) -> None:
        """Write what waits, for a caller that only reads: where the store is full, it goes on waiting."""
        try:
            self.write()
        except StoreFull as error:
            _log.warning("retrievals and traces are written later: %s", error)

    def _write_counts(self) -> None:
        batch = [self._counts.popleft() for _ in range(len(self._counts))]

        def work() -> None:
            for scopes, edge_ids in batch:
                self._backend.record_retrievals(scopes, edge_ids, utc_now())

        try:
            if batch:
                self._backend.atomic(work)
        except StoreReadOnly:
            self._traces.clear()
            raise
        except BaseException:
            self._counts.extendleft(reversed(batch))
            raise

    def _write_traces(self) -> None:
        while self._traces:
            trace = self._traces.popleft()
            try:
                self._backend.write(trace.scope, Changes(recalls=(trace,)))
            except (InvalidInput, Conflict) as error:
                _log.warning("the trace of a recall is not kept, what it names is gone: %s", error)
            except StoreReadOnly:
                self._traces.clear()
                raise
            except BaseException:
                self._traces.appendleft(trace)
                raise

    def stop(self) -> None:
        """Let the thread end; what waits stays until `write`."""
        self._job.stop()
