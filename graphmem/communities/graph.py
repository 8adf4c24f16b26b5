"""The graph in which communities are looked for, as arrays; n is the number of nodes, m of pairs with edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphmem.communities.facts import Facts, Ints
from graphmem.models import MIN_EDGE_WEIGHT

UNIT = 1_000_000
"""Weights are whole numbers of millionths: their sums are exact, so that a tie is one in whatever order they add up."""


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """An undirected weighted graph in compressed sparse rows, each edge in the rows of both of its ends.

    Attributes
    ----------
    node_ids
        n entity ids, ascending; each has an edge.
    begin
        int64 array (n + 1,): where the row of each node begins, and the end of the last.
    neighbour
        int32 array (2 m,): the nodes at the other ends, each once in a row, ascending.
    weight
        int64 array (2 m,): of those edges, in millionths.
    """

    node_ids: list[str]
    begin: Ints
    neighbour: NDArray[np.int32]
    weight: Ints

    @classmethod
    def of(cls, node_ids: list[str], source: Ints, target: Ints, weight: Ints) -> EntityGraph:
        """Build a graph from its edges.

        Parameters
        ----------
        node_ids
            Entity ids, ascending; those without an edge are left out.
        source, target
            int arrays of the same length: positions in `node_ids`; the direction doesn't count, edges between the same
            two nodes add up.
        weight
            int64 array, in millionths, all positive.
        """
        pair, place = np.unique(
            np.minimum(source, target) * max(1, len(node_ids)) + np.maximum(source, target), return_inverse=True
        )
        total = np.zeros(len(pair), dtype=np.int64)
        np.add.at(total, place, weight)
        del place
        low, high = np.divmod(pair, max(1, len(node_ids)))
        del pair
        kept = np.zeros(len(node_ids), dtype=bool)
        kept[low] = kept[high] = True
        position = (np.cumsum(kept) - 1).astype(np.int32)
        low, high = position[low], position[high]
        rows = np.concatenate([high, low])  # the pairs are in order: in each row the lower neighbours come first
        order = np.argsort(rows, kind="stable")
        neighbour = np.concatenate([low, high])[order]
        begin = np.zeros(int(kept.sum()) + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=len(begin) - 1), out=begin[1:])
        names = [node_ids[i] for i in np.flatnonzero(kept).tolist()]
        return cls(names, begin, neighbour, np.concatenate([total, total])[order])

    @property
    def rows(self) -> NDArray[np.int32]:
        """The node of each entry of `neighbour`, int32 array (2 m,)."""
        return np.repeat(np.arange(len(self.node_ids), dtype=np.int32), np.diff(self.begin))


def graph_of(facts: Facts) -> EntityGraph:
    """Return the graph that facts make, each weighing its confidence."""
    source, target = facts.source.astype(np.int64), facts.target.astype(np.int64)
    return EntityGraph.of(facts.node_ids, source, target, in_units(facts.confidence))


def in_units(confidence: NDArray[np.float64]) -> Ints:
    """Return what edges of these confidences weigh, in millionths."""
    return np.rint(np.maximum(confidence, MIN_EDGE_WEIGHT) * UNIT).astype(np.int64)


def entries(begin: Ints, nodes: Ints) -> Ints:
    """Return where the rows of some nodes stand in the arrays of a graph, one row after the other."""
    first, length = begin[nodes], begin[nodes + 1] - begin[nodes]
    offset = np.cumsum(length) - length
    return np.arange(int(length.sum()), dtype=np.int64) + np.repeat(first - offset, length)


def modularity(graph: EntityGraph, labels: Ints) -> float:
    """Return the modularity of a partition: Σ (inside / 2w - (degree / 2w)²) over the groups; 0 of an empty graph.

    Newman, Phys. Rev. E 70, 056131 (2004): weighted and undirected; w is the sum of all weights.
    """
    twice = int(graph.weight.sum())
    if not twice:
        return 0.0
    rows = graph.rows
    inside = int(graph.weight[labels[rows] == labels[graph.neighbour]].sum())
    degree = np.bincount(labels[rows], weights=graph.weight) / twice
    return inside / twice - float(degree @ degree)


def seeded(node_ids: list[str], seed: Mapping[str, str]) -> Ints:
    """Return a label for each node: the position of the first node that the seed puts into the same community.

    A node without a key is alone and has its own position.
    """
    first: dict[str, int] = {}
    keys = map(seed.get, node_ids)
    return np.array([n if key is None else first.setdefault(key, n) for n, key in enumerate(keys)], dtype=np.int64)
