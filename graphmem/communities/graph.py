"""The graph in which communities are looked for, as arrays; n is the number of nodes, m of pairs with edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphmem.communities.facts import Facts, Ints
from graphmem.models import MIN_EDGE_WEIGHT

Number = TypeVar("Number", bound=np.generic)

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
        bits = len(node_ids).bit_length()
        key = np.concatenate([source << bits | target, target << bits | source])
        order = ordered(key, 1 << 2 * bits)
        key, both = key[order], np.concatenate([weight, weight])[order]
        del order
        first = runs(key)
        total = np.add.reduceat(both, first) if len(first) else both
        row, neighbour = key[first] >> bits, key[first] & ((1 << bits) - 1)
        del key
        sizes = np.bincount(row, minlength=len(node_ids))
        kept = np.flatnonzero(sizes)
        position = np.zeros(len(node_ids), dtype=np.int32)
        position[kept] = np.arange(len(kept), dtype=np.int32)
        begin = np.concatenate([[0], np.cumsum(sizes[kept])])
        return cls([node_ids[i] for i in kept.tolist()], begin, position[neighbour], total)

    def by_row(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return for each entry of `neighbour` the value of the node in whose row it is: array (n,) to array (2 m,)."""
        return np.repeat(values, np.diff(self.begin))

    def sums(self, values: Ints) -> Ints:
        """Return the sum of each row: array (2 m,) to array (n,)."""
        return np.add.reduceat(values, self.begin[:-1]) if len(values) else values


def graph_of(facts: Facts) -> EntityGraph:
    """Return the graph that facts make, each weighing its confidence."""
    source, target = facts.source.astype(np.int64), facts.target.astype(np.int64)
    return EntityGraph.of(facts.node_ids, source, target, in_units(facts.confidence))


def in_units(confidence: NDArray[np.float64]) -> Ints:
    """Return what edges of these confidences weigh, in millionths."""
    return np.rint(np.maximum(confidence, MIN_EDGE_WEIGHT) * UNIT).astype(np.int64)


def ordered(values: Ints, end: int) -> Ints:
    """Return what brings integers from 0 to below `end` into ascending order, of equal ones the first first.

    By 16 bits at a time, for which numpy has a radix sort: a third of what its sort of wider integers takes.
    """
    order = np.argsort((values & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, max(0, end - 1).bit_length(), 16):
        digit = (values[order] >> shift & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order


def runs(values: Ints) -> Ints:
    """Return where each run of equal values begins."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return np.flatnonzero(changes)


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
    inside = int(graph.weight @ (graph.by_row(labels) == labels[graph.neighbour]))
    degree = np.bincount(labels, weights=graph.sums(graph.weight)) / twice
    return inside / twice - float(degree @ degree)


def seeded(node_ids: list[str], seed: Mapping[str, str]) -> Ints:
    """Return a label for each node: the position of the first node that the seed puts into the same community.

    A node without a key is alone and has its own position.
    """
    first: dict[str, int] = {}
    keys = map(seed.get, node_ids)
    return np.array([n if key is None else first.setdefault(key, n) for n, key in enumerate(keys)], dtype=np.int64)
