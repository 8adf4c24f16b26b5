"""The community service of a store: refresh, background jobs, and search."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from graphmem.background import ScopedJob
from graphmem.communities.assignment import Assignment
from graphmem.communities.refresh import CommunityRefresh
from graphmem.communities.search import Centroids, CommunitySearch
from graphmem.communities.summaries import Summaries
from graphmem.embed import Embedder
from graphmem.models import Scope
from graphmem.protocols import GraphBackend, Redactor
from graphmem.settings import Settings
from graphmem.upkeep.schedule import Stopping, UpkeepJob

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class Communities:
    """The components for communities of one store.

    Parameters
    ----------
    backend
        The store.
    settings
        Settings of detection and background jobs.
    embedder
        The embedding model for questions; None searches by words only.
    redactor
        Removes personal data from summaries.
    llm
        A LangChain chat model, or ``provider:model``, that writes summaries.
    serves
        Whether the background work of this process assigns new entities of a scope to communities.
    """

    def __init__(
        self,
        backend: GraphBackend,
        settings: Settings,
        *,
        embedder: Embedder | None = None,
        redactor: Redactor | None = None,
        llm: BaseChatModel | str | None = None,
        serves: Callable[[Scope], bool],
    ) -> None:
        summaries = None if llm is None else Summaries(llm, timeout=settings.extraction_timeout)
        turn = threading.RLock()
        refresh = CommunityRefresh(backend, settings, redactor, summaries, turn)
        self.refresh = refresh.refresh
        self.jobs = [refresh_job(refresh)] if settings.community_refresh else []
        self.assignment = assignment_job(backend, turn, serves) if settings.community_assignment else None
        self.centroids = Centroids(backend)
        search = CommunitySearch(backend, embedder, self.centroids)
        self.find, self.overview = search.find, search.overview


_log = logging.getLogger(__name__)

JOB = "communities"
"""Name of the refresh job."""

_GATHERING = 5.0  # new facts of a while are assigned together, as multiple of the duration of an assignment
_SHARE = 10  # minimum interval between refreshes, as a multiple of their duration


def assignment_job(
    backend: GraphBackend, turn: AbstractContextManager[object], serves: Callable[[Scope], bool]
) -> ScopedJob:
    """Return the job that assigns new entities to communities on its own thread, holding the lock `turn`."""
    assignment = Assignment(backend)

    def step(scope: Scope) -> bool:
        with turn:
            return assignment.step(scope)

    return ScopedJob("graphmem-communities", step, gather=_GATHERING, serves=serves)


def refresh_job(refresh: CommunityRefresh) -> UpkeepJob:
    """Return the maintenance job that refreshes communities.

    It pauses between runs so that it runs at most a tenth of the time.
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
