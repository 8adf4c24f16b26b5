"""Communities are kept up behind the caller's back: new entities join at once, refreshes come now and then."""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager

from graphmem.background import ScopedJob
from graphmem.communities.assign import Assignment
from graphmem.communities.refresh import CommunityRefresh
from graphmem.models import Scope
from graphmem.protocols import GraphBackend
from graphmem.upkeep.schedule import Stopping, UpkeepJob

_log = logging.getLogger(__name__)

JOB = "communities"
"""Name of the job that refreshes."""

_SHARE = 10  # a refresh that takes a second comes at most every ten


def assignment_job(backend: GraphBackend, turn: AbstractContextManager[object]) -> ScopedJob:
    """Return the job that lets new entities join communities, on a thread of its own, when it is its turn."""
    assignment = Assignment(backend)

    def step(scope: Scope) -> bool:
        with turn:
            return assignment.step(scope)

    return ScopedJob("graphmem-communities", step)


def refresh_job(refresh: CommunityRefresh) -> UpkeepJob:
    """Return the job of upkeep that refreshes communities.

    In a large memory it waits between rounds, so that it takes a tenth of the time at most.
    """
    next_at: dict[Scope, float] = {}

    def pause(scope: Scope) -> float:
        return next_at.get(scope, 0.0) - time.monotonic()

    def run(scope: Scope, stopping: Stopping) -> bool:
        if stopping():
            return False
        done = refresh.refresh(scope, stopping=stopping)
        next_at[scope] = time.monotonic() + _SHARE * done.seconds
        _log.debug("scope %s: %s", scope, done)
        return True

    return UpkeepJob(JOB, run, pause)
