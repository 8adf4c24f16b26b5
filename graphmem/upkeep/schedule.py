"""When the work that keeps a memory in order is done: every so many processed episodes, behind the caller's back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from graphmem.models import Changes, JobState, Scope, utc_now
from graphmem.protocols import GraphBackend

_log = logging.getLogger(__name__)

Stopping = Callable[[], bool]
"""Tells whether the work has to end early: the store is being closed."""


@dataclass(frozen=True, slots=True)
class UpkeepJob:
    """A piece of upkeep.

    Attributes
    ----------
    name
        Of the job; its mark in the store bears it, and `stats` tells it.
    run
        Does the work in a scope; returns False if it ended early because `Stopping` said so. It works in transactions
        of bounded size, each of which leaves the memory right, and run again after an interruption it finishes.
    pause
        Returns the seconds for which a scope where it is due has to wait for it; 0 or less where it needn't.
    """

    name: str
    run: Callable[[Scope, Stopping], bool]
    pause: Callable[[Scope], float] = lambda _: 0.0


class UpkeepSchedule:
    """Runs jobs in a scope when it has processed so many episodes since they last ran there.

    Counts are in the store (`JobState.episodes`), so that an interruption loses nothing: a job that was killed has
    no new mark and is due at the next start. Another process that has done the work meanwhile left its mark, too.

    Parameters
    ----------
    backend
        The store.
    jobs
        In the order in which they run.
    interval
        Processed episodes between two runs.
    """

    def __init__(self, backend: GraphBackend, jobs: Sequence[UpkeepJob], interval: int) -> None:
        self._backend = backend
        self._jobs = tuple(jobs)
        self._interval = interval
        self._lock = threading.Lock()
        self._counted: dict[Scope, int] = {}
        self._waiting: dict[Scope, float] = {}  # not before that time by `time.monotonic`

    @property
    def jobs(self) -> tuple[UpkeepJob, ...]:
        """The jobs, in the order in which they run."""
        return self._jobs

    def look_at(self, scopes: Iterable[Scope]) -> bool:
        """Have scopes looked at by the next `run`, whatever was counted; return whether it has anything to do."""
        if self._jobs:
            with self._lock:
                for scope in scopes:
                    self._waiting.setdefault(scope, 0.0)
        return bool(self._waiting)

    def processed(self, scope: Scope, episodes: int) -> bool:
        """Count episodes that were processed in a scope; return whether `run` has anything to do."""
        if self._jobs:
            with self._lock:
                self._counted[scope] = self._counted.get(scope, 0) + episodes
                if self._counted[scope] >= self._interval:
                    self._counted[scope] = 0
                    self._waiting.setdefault(scope, 0.0)
        return bool(self._waiting)

    def run(self, stopping: Stopping) -> float | None:
        """Do what is due in one scope; return in how many seconds there is more to do, None if nothing waits.

        Raises
        ------
        GraphMemError
            If a job fails; the scope waits on, and the next run tries again.
        """
        with self._lock:
            now = time.monotonic()
            scope = next((scope for scope, earliest in self._waiting.items() if earliest <= now), None)
            if scope is None:
                return self._next_in()
            del self._waiting[scope]  # before the work: what is processed meanwhile counts for the next
        try:
            pause = self._run_due(scope, stopping)
        except BaseException:
            with self._lock:
                self._waiting[scope] = 0.0
            raise
        with self._lock:
            if pause > 0.0:
                self._waiting[scope] = time.monotonic() + pause
            return self._next_in()

    def _next_in(self) -> float | None:
        return max(0.0, min(self._waiting.values()) - time.monotonic()) if self._waiting else None

    def _run_due(self, scope: Scope, stopping: Stopping) -> float:
        """Run what is due and needn't wait; return for how many seconds the first of the others has to."""
        pauses: list[float] = []
        counts = self._backend.stats(scope)
        processed = counts.episodes - counts.pending_episodes - counts.failed_episodes
        for job in self._jobs:
            mark = self._backend.find_job_state(scope, job.name)
            # fewer than at the last run: some were forgotten, and how many came since isn't known
            if 0 <= processed - mark.episodes < self._interval:
                continue
            if (pause := job.pause(scope)) > 0.0:
                pauses.append(pause)
                continue
            begun = utc_now()
            if not job.run(scope, stopping):
                break
            self._backend.write(scope, Changes(marks=(JobState(job.name, begun, processed),)))
            _log.info("scope %s: %s is done", scope, job.name)
        return min(pauses, default=0.0)
