"""The communities of a store: found anew, and asked for."""

from __future__ import annotations

from graphmem.communities.refresh import CommunityRefresh
from graphmem.communities.search import CommunitySearch
from graphmem.embed import Embedder
from graphmem.protocols import GraphBackend, Redactor
from graphmem.settings import Settings


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
    """

    def __init__(
        self, backend: GraphBackend, settings: Settings, *, embedder: Embedder | None, redactor: Redactor | None
    ) -> None:
        self.refresh = CommunityRefresh(backend, settings, redactor).refresh
        self.find = CommunitySearch(backend, embedder).find
