"""Communities are kept up behind the caller's back: new entities join at once, refreshes come now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable

from graphmem.background import BackgroundJob
from graphmem.communities.assign import Assignment
from graphmem.communities.refresh import CommunityRefresh
from graphmem.errors import StoreReadOnly
from graphmem.models import Scope
from graphmem.protocols import GraphBackend
from graphmem.upkeep.schedule import Stopping, UpkeepJob

_log = logging.getLogger(__name__)

JOB = "communities"
"""Name of the job that refreshes."""

_SHARE = 10  # a refresh that takes a second comes at most every ten


class AssignmentJob:
    """Lets new entities join communities on a thread of its own.

    Parameters
    ----------
    backend
        Where the graph is.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._assignment = Assignment(backend)
        self._waiting: dict[Scope, None] = {}
        self._lock = threading.Lock()
        self._job = BackgroundJob("graphmem-communities", self._work)

    @property
    def error(self) -> Exception | None:
        """Why the last try failed; None if it didn't."""
        return self._job.error

    def wake(self, scopes: Iterable[Scope]) -> None:
        """Have the new facts of scopes looked at soon."""
        with self._lock:
            self._waiting.update(dict.fromkeys(scopes))
        self._job.wake()

    def stop(self, timeout: float) -> None:
        """Let the present step end, and the thread."""
        self._job.stop(timeout)

    def _work(self) -> float | None:
        with self._lock:
            scope = next(iter(self._waiting), None)
            if scope is None:
                return None
            del self._waiting[scope]  # before the work: what is stored meanwhile wakes it again
        done = False
        try:
            done = self._assignment.step(scope)
        except StoreReadOnly:
            done = True  # whoever may write to it will do it
        finally:
            if not done:
                with self._lock:
                    self._waiting[scope] = None
        return 0.0


def refresh_job(refresh: CommunityRefresh) -> UpkeepJob:
    """Return the job of upkeep that refreshes communities.

    In a large memory it leaves out rounds, so that it takes a tenth of the time at most.
    """
    next_at: dict[Scope, float] = {}

    def run(scope: Scope, stopping: Stopping) -> bool:
        if stopping() or time.monotonic() < next_at.get(scope, 0.0):
            return False
        done = refresh.refresh(scope, stopping=stopping)
        next_at[scope] = time.monotonic() + _SHARE * done.seconds
        _log.debug("scope %s: %s", scope, done)
        return True

    return UpkeepJob(JOB, run)
