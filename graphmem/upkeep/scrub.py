"""Cleaning of files after erasures, at once or later for several together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from graphmem.models import FORGETTING, Changes, JobState, Scope, utc_now
from graphmem.protocols import GraphBackend

States = Iterable[tuple[Scope, JobState]]
Clean = Callable[[States], Sequence[str]]
"""Cleans the files after erasures of scopes with these job states; returns what is left, and why."""


def scrub_files(backend: GraphBackend, states: States) -> tuple[str, ...]:
    """Scrub the files and record this in the job states of erasures; return what is left."""
    if not backend.scrub():
        return ("the store's log, which other processes are reading; close them or run the erasure again",)
    for scope, state in states:
        clean = replace(state, begun_at=None, done_at=utc_now())
        backend.write_unless_erased(scope, Changes(job_states=(clean,)), since=state.cursor)
    return ()


class DeferredScrub:
    """Erasures after which the files are cleaned together: a store may have to rewrite a whole file for it."""

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend
        self._waiting: dict[Scope, JobState] = {}
        self._has_taken_over = False
        self._lock = threading.Lock()

    def add(self, states: States) -> tuple[str, ...]:
        """Leave the cleaning after an erasure to `run`."""
        with self._lock:
            self._waiting.update(states)
        return ("bytes in files, until the background work has cleaned them",)

    def take_over(self, scopes: Iterable[Scope], stopping: Callable[[], bool]) -> None:
        """Add the erasures after which an earlier process, perhaps a killed one, didn't clean the files; once."""
        if self._has_taken_over:
            return
        for scope in scopes:
            if stopping():
                return
            state = self._backend.find_job_state(scope, FORGETTING)
            if state.begun_at is not None:
                self.add([(scope, state)])
        self._has_taken_over = True

    def run(self) -> None:
        """Clean the files if an erasure waits for it; what is left waits for the next call."""
        with self._lock:
            states, self._waiting = self._waiting, {}
        if not states:
            return
        is_left = True
        try:
            is_left = bool(scrub_files(self._backend, states.items()))
        finally:
            if is_left:
                with self._lock:
                    self._waiting = states | self._waiting
