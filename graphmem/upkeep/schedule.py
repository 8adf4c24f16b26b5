"""Schedule of background upkeep jobs, each due after a number of processed episodes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from graphmem.models import Changes, JobState, Scope, utc_now
from graphmem.protocols import GraphBackend
from graphmem.telemetry import span

_log = logging.getLogger(__name__)

Stopping = Callable[[], bool]
"""Returns whether the work has to stop early because the store is being closed."""


@dataclass(frozen=True, slots=True)
class UpkeepJob:
    """An upkeep job.

    Attributes
    ----------
    name
        Name of the job, also of its job state in the store and in `stats`.
    run
        Does the work in a scope; returns False if `Stopping` ended it early. It works in transactions of bounded size
        that each leave the memory consistent; after an interruption, another run finishes the work.
    pause
        Returns the seconds that a scope still has to wait when the job is due; 0 or less for no wait.
    """

    name: str
    run: Callable[[Scope, Stopping], bool]
    pause: Callable[[Scope], float] = lambda _: 0.0


class UpkeepSchedule:
    """Scheduler that runs jobs in a scope when `interval` episodes were processed since their last run there.

    Counts are stored (`JobState.episodes`), so that an interruption loses nothing: a job that was killed has no new
    job state and is due at the next start. Job states written by other processes count as well.

    Parameters
    ----------
    backend
        The store.
    jobs
        Jobs in the order in which they run.
    interval
        Number of processed episodes between two runs.
    serves
        Whether to run jobs in a scope; asked when its turn comes.
    """

    def __init__(
        self,
        backend: GraphBackend,
        jobs: Sequence[UpkeepJob],
        interval: int,
        serves: Callable[[Scope], bool] = lambda _: True,
    ) -> None:
        self._serves = serves
        self._backend = backend
        self._jobs = tuple(jobs)
        self._interval = interval
        self._lock = threading.Lock()
        self._counted: dict[Scope, int] = {}
        self._waiting: dict[Scope, float] = {}  # earliest time by `time.monotonic`

    def add(self, scopes: Iterable[Scope]) -> bool:
        """Add scopes to the next `run` regardless of their counts; return whether it has anything to do."""
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
        """Run the due jobs of one scope.

        Returns
        -------
        float | None
            Seconds until the next scope is due; None if no scope is waiting.

        Raises
        ------
        GraphMemError
            If a job fails; the scope stays in the queue, and the next run tries again.
        """
        with self._lock:
            now = time.monotonic()
            scope = next((scope for scope, earliest in self._waiting.items() if earliest <= now), None)
            if scope is None:
                return self._next_in()
            del self._waiting[scope]  # before the work: episodes processed meanwhile count for the next run
        try:
            pause = self._run_due(scope, stopping) if self._serves(scope) else 0.0
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
        """Run the due jobs that have no pause; return the shortest pause of the others in seconds, or 0."""
        pauses: list[float] = []
        counts = self._backend.stats(scope)
        processed = counts.episodes - counts.pending_episodes - counts.failed_episodes
        for job in self._jobs:
            state = self._backend.find_job_state(scope, job.name)
            # a negative count: episodes were forgotten, so the number processed since is unknown
            if 0 <= processed - state.episodes < self._interval:
                continue
            if (pause := job.pause(scope)) > 0.0:
                pauses.append(pause)
                continue
            begun = utc_now()
            with span("graphmem.upkeep", {"graphmem.job": job.name}):
                done = job.run(scope, stopping)
            if not done:
                break
            self._backend.write(scope, Changes(job_states=(JobState(job.name, begun, processed),)))
            _log.info("scope %s: %s finished", scope, job.name)
        return min(pauses, default=0.0)
