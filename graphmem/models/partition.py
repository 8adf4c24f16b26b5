"""What the detection of communities is asked for and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CommunityAlgorithm = Literal["label_propagation", "leiden"]

MIN_EDGE_WEIGHT = 0.01
"""What an edge of lower confidence weighs when communities are looked for: each active edge counts for something."""


def propagation_tries(edges: int) -> int:
    """Return how many times labels are propagated through a graph of so many edges, to keep the best partition.

    Which of several partitions comes out depends on the order of the nodes. In a small graph that is often one group of
    everything, and trying again costs little; in a large one it makes no difference, in a tiny one there is no choice.
    """
    return max(1, min(10, edges // 5, 20_000 // max(1, edges)))


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups of the n entities of a scope that have active edges; made by `of`.

    Attributes
    ----------
    node_ids
        n entity ids, ascending.
    levels
        int arrays (n,), at least one: the group of each node, numbered from 0 without gaps, in the order of their
        first nodes. The first level is the partition, each group of two nodes or more; each further one splits
        groups of the level before and may leave nodes alone.
    modularity
        Of the first level (Newman, Phys. Rev. E 70, 056131, 2004: weighted, undirected), in [-0.5, 1]; 0 of an empty
        graph.
    """

    node_ids: list[str]
    levels: tuple[NDArray[np.int64], ...]
    modularity: float

    @classmethod
    def of(cls, node_ids: Sequence[str], labels: Sequence[NDArray[np.int64]], modularity: float) -> Partition:
        """Bring what an algorithm found into the form above.

        Parameters
        ----------
        node_ids
            n different entity ids, in any order.
        labels
            Arrays (n,), at least one, the coarsest first: any integers, equal where two nodes are in one group. A level
            is cut along the groups of those before it, and left out where that gives nothing new.
        modularity
            Of the first level.
        """
        import numpy as np  # not at the top: the models are imported before anything is computed

        ids = list(node_ids)
        if sorted(ids) == ids:
            order = np.arange(len(ids))
        else:
            order = np.argsort(np.array(ids, dtype=np.str_), kind="stable")
            ids = [ids[int(i)] for i in order]
        first = _numbered(labels[0][order])
        real = np.bincount(first) > 1
        if not real.all():
            paired = real[first]
            order, ids = order[paired], [ids[i] for i in np.flatnonzero(paired).tolist()]
            first = (np.cumsum(real) - 1)[first[paired]]
        levels = [first]
        for finer in labels[1:]:
            width = int(finer.max(initial=0)) + 1
            level = _numbered(levels[-1] * width + finer[order])
            if not np.array_equal(level, levels[-1]):
                levels.append(level)
        return cls(ids, tuple(levels), modularity)


def _numbered(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the labels as numbers from 0 in the order of their first occurrences."""
    import numpy as np

    found, inverse = np.unique(labels, return_inverse=True)
    first = np.empty(len(found), dtype=np.int64)
    first[inverse[::-1]] = np.arange(len(labels))[::-1]  # of several the last one stays
    rank = np.empty(len(found), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(found))
    return rank[inverse]
