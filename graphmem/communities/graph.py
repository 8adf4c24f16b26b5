"""The graph in which communities are looked for, as arrays; n is the number of nodes, m of pairs with edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphmem.communities.facts import Facts, Floats, Ints
from graphmem.models import MIN_EDGE_WEIGHT

Number = TypeVar("Number", bound=np.generic)

UNIT = 1_000_000
"""Weights are whole numbers of millionths: their sums are exact, so that a tie is one in whatever order they add up."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The weighted edges of an undirected graph, as they come: the same two nodes may be there several times.

    Attributes
    ----------
    node_ids
        n entity ids, ascending; each has an edge.
    source, target
        int arrays of the same length: positions in `node_ids`; the direction doesn't count.
    weight
        int64 array, in millionths, all positive.
    """

    node_ids: list[str]
    source: NDArray[np.integer]
    target: NDArray[np.integer]
    weight: Ints

    @classmethod
    def of(cls, node_ids: list[str], source: NDArray[np.integer], target: NDArray[np.integer], weight: Ints) -> Pairs:
        """Make them of edges between some of these nodes; those without an edge are left out."""
        has_edge = np.zeros(len(node_ids), dtype=bool)
        has_edge[source] = has_edge[target] = True
        if has_edge.all():
            return cls(node_ids, source, target, weight)
        kept = np.flatnonzero(has_edge)
        position = np.zeros(len(node_ids), dtype=np.int32)
        position[kept] = np.arange(len(kept), dtype=np.int32)
        return cls([node_ids[i] for i in kept.tolist()], position[source], position[target], weight)

    def sums(self, values: Ints) -> Floats:
        """Return the sum over the edges of each node, array (m,) to (n,); exact below 2⁵³."""
        count = len(self.node_ids)
        ends = (np.bincount(end, values, count) for end in (self.source, self.target))
        return np.add(*ends, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """An undirected weighted graph in compressed sparse rows, each edge in the rows of both of its ends.

    Attributes
    ----------
    node_ids
        n entity ids, ascending.
    begin
        int64 array (n + 1,): where the row of each node begins, and the end of the last.
    neighbor
        int32 array (2 m,): the nodes at the other ends, each once in a row, ascending.
    weight
        int64 array (2 m,): of those edges, in millionths.
    """

    node_ids: list[str]
    begin: Ints
    neighbor: NDArray[np.int32]
    weight: Ints

    @classmethod
    def of(cls, pairs: Pairs, rows: NDArray[np.bool_] | None = None) -> EntityGraph:
        """Build a graph from its edges; those between the same two nodes add up.

        Parameters
        ----------
        pairs
            The edges.
        rows
            bool array (n,): the nodes whose rows are built, those of the others are empty; all if None.
        """
        every = slice(None)
        out = every if rows is None else np.flatnonzero(rows[pairs.source])
        back = every if rows is None else np.flatnonzero(rows[pairs.target])
        row = np.concatenate([pairs.source[out], pairs.target[back]]).astype(np.int64)
        neighbor = np.concatenate([pairs.target[out], pairs.source[back]])
        weight = np.concatenate([pairs.weight[out], pairs.weight[back]])
        count = len(pairs.node_ids)
        bits = count.bit_length()
        key = row << bits | neighbor
        order = ordered(key, 1 << 2 * bits)
        key, weight = key[order], weight[order]
        del order
        first = runs(key)
        total = np.add.reduceat(weight, first) if len(first) else weight
        row, neighbor = key[first] >> bits, (key[first] & ((1 << bits) - 1)).astype(np.int32)
        begin = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))])
        return cls(pairs.node_ids, begin, neighbor, total)

    def by_row(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return for each entry of `neighbor` the value of the node in whose row it is: array (n,) to array (2 m,)."""
        return np.repeat(values, np.diff(self.begin))


def pairs_of(facts: Facts) -> Pairs:
    """Return the graph that facts make, each weighing its confidence."""
    return Pairs(facts.node_ids, facts.source, facts.target, in_units(facts.confidence))


def in_units(confidence: NDArray[np.float64]) -> Ints:
    """Return what edges of these confidences weigh, in millionths."""
    return np.rint(np.maximum(confidence, MIN_EDGE_WEIGHT) * UNIT).astype(np.int64)


def ordered(values: NDArray[np.integer], end: int) -> Ints:
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


def modularity(pairs: Pairs, labels: Ints) -> float:
    """Return the modularity of a partition: Σ (inside / w - (degree / 2w)²) over the groups; 0 of an empty graph.

    Newman, Phys. Rev. E 70, 056131 (2004): weighted and undirected; w is the sum of all weights.
    """
    total = int(pairs.weight.sum())
    if not total:
        return 0.0
    inside = int(pairs.weight @ (labels[pairs.source] == labels[pairs.target]))
    degree = np.bincount(labels, weights=pairs.sums(pairs.weight)) / (2 * total)
    # not `degree @ degree`: BLAS wakes threads for it, which then spin beside all that follows
    return inside / total - float(np.square(degree).sum())
