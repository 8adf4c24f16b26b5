"""The communities of a store: found anew, and asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from graphmem.communities.background import assignment_job, refresh_job
from graphmem.communities.centroids import Centroids
from graphmem.communities.refresh import CommunityRefresh
from graphmem.communities.search import CommunitySearch
from graphmem.communities.summarise import Summaries
from graphmem.embed import Embedder
from graphmem.protocols import GraphBackend, Redactor
from graphmem.settings import Settings

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
