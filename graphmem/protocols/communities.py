"""Finding communities: one contract for this process and for stores that can do it themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from graphmem.models import CommunityAlgorithm, Partition, Scope


class CommunityDetector(Protocol):
    """Finds communities: in this process (`graphmem.communities`), or inside of a store.

    The graph is undirected. Its nodes are the entities that are not archived and have an active edge to another such
    one. An edge weighs its confidence, at least `MIN_EDGE_WEIGHT`; those between the same two entities add up. Neither
    retrievals nor the type of an edge count: reading a memory doesn't change its communities, and anybody can project
    the same graph.
    """

    @abstractmethod
    def detect(
        self, scope: Scope, algorithm: CommunityAlgorithm = "label_propagation", seed: Mapping[str, str] | None = None
    ) -> Partition:
        """Return the communities of a scope; the same ones for the same input.

        Parameters
        ----------
        scope
            Whose graph.
        algorithm
            ``label_propagation``: at most 50 rounds in which each node takes the label that weighs most among its
            neighbours, of several the smallest; the partition has one level. ``leiden``: by modularity, with levels.
        seed
            Entity id → key of the community that it is in at present: the search begins with that. Entities without
            a key begin alone; those that aren't in the graph any more don't matter.

        Raises
        ------
        InvalidInput
            If there is no such algorithm.
        MissingExtra
            If the algorithm needs a package that isn't installed.
        GraphTooLarge
            If the store lacks the memory for it; this process may find them then.
        BackendUnavailable
            If the store can't be read.
        """
        ...
