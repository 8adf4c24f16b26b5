"""The communities of a store: refreshed, kept up in the background, and asked for."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from graphmem.background import ScopedJob
from graphmem.communities.assignment import Assignment
from graphmem.communities.centroids import Centroids
from graphmem.communities.refresh import CommunityRefresh
from graphmem.communities.search import CommunitySearch
from graphmem.communities.summaries import Summaries
from graphmem.embed import Embedder
from graphmem.models import Scope
from graphmem.protocols import GraphBackend, Redactor
from graphmem.settings import Settings
from graphmem.upkeep.schedule import Stopping, UpkeepJob

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class Communities:
    """What works on communities, made once for a store.

    Parameters
    ----------
    backend
        Where they are.
    settings
        How they are found.
    embedder
        The embedding model, for questions; None leaves them to words.
    redactor
        Takes personal data out of summaries.
    llm
        A LangChain chat model, or ``provider:model``, that writes summaries.
    """

    def __init__(
        self,
        backend: GraphBackend,
        settings: Settings,
        *,
        embedder: Embedder | None = None,
        redactor: Redactor | None = None,
        llm: BaseChatModel | str | None = None,
    ) -> None:
        summaries = None if llm is None else Summaries(llm, timeout=settings.extraction_timeout)
        turn = threading.RLock()
        refresh = CommunityRefresh(backend, settings, redactor, summaries, turn)
        self.refresh = refresh.refresh
        self.jobs = [refresh_job(refresh)] if settings.community_refresh else []
        self.assignment = assignment_job(backend, turn) if settings.community_assignment else None
        self.centroids = Centroids(backend)
        self.find = CommunitySearch(backend, embedder, self.centroids).find


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
