"""Vectorized label propagation with the result of sequential node visits.

A round visits the nodes in a fixed order, and each node takes the label with the highest weight among its neighbors,
the smallest label on ties. Every change increases the weight of the edges within groups, or keeps it and lowers a
label. So the algorithm terminates, even where synchronous updates would swap labels forever (two nodes; a star; a
ring).

Nodes that aren't adjacent can be visited at the same time. A node's *turn* is the length of the longest path to it
along edges from earlier to later nodes: nodes of one turn aren't adjacent, and all their earlier neighbors have been
visited before (semi-synchronous label propagation: Cordasco and Gargano, arXiv 1103.4550; turns instead of colors).
In an order independent of the graph there are few turns, about 60 for 100,000 nodes with 20 neighbors each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphmem.communities.graph import EntityGraph, Ints, Pairs, runs
from graphmem.index.copies import entries

ROUNDS = 50  # at most; propagation ends earlier when nothing changes
_ENTRIES = 1 << 18  # maximum entries per block, so that row, label and entry fit into one sort key


def propagate(graph: EntityGraph, *, order: int = 0) -> Ints:
    """Return a label for each node, int64 array (n,); nodes with equal labels form a group.

    Parameters
    ----------
    graph
        Graph of n nodes.
    order
        Number of the visiting order; each is an arbitrary permutation.
    """
    count = len(graph.node_ids)
    label = np.arange(count, dtype=np.int64)
    waits = np.ones(count, dtype=bool)  # whether a neighbor changed since the node's last visit
    turns = _turns(graph, _ranks(count, order), np.arange(count))
    for _ in range(ROUNDS):
        if not waits.any():
            break
        _visit(graph, turns, label, waits)
    return label


def propagate_from(start: Ints, pairs: Pairs) -> Ints:
    """Return a label for each node like `propagate`, starting from the labels `start`, int array (n,) in [0, n).

    Only the few nodes that may change are visited: their rows of the graph are built for each round, and neighbors of
    changed nodes are visited in the next round.
    """
    label = start.copy()
    waits = ~_settled(pairs, label)
    rank = _ranks(len(label), 0)
    for _ in range(ROUNDS):
        if not waits.any():
            break
        graph = EntityGraph.of(pairs, waits)
        _visit(graph, _turns(graph, rank, np.flatnonzero(waits)), label, waits)
    return label


def _visit(graph: EntityGraph, turns: Sequence[Ints], label: Ints, waits: NDArray[np.bool_]) -> None:
    """Update the pending nodes to their heaviest labels, turn by turn, and mark the neighbors of changed nodes."""
    for turn in turns:
        nodes = turn[waits[turn]]
        if not len(nodes):
            continue
        waits[nodes] = False
        best = _heaviest(graph, nodes, label)
        moved = best != label[nodes]
        label[nodes] = best
        waits[graph.neighbor[entries(graph.begin, nodes[moved])]] = True


def _settled(pairs: Pairs, label: Ints) -> NDArray[np.bool_]:
    """Return for each node whether its label has more than half of its edge weight, so that no other label can win."""
    inside = label[pairs.source] == label[pairs.target]
    return pairs.sums(np.where(inside, pairs.weight, -pairs.weight)) > 0


def _heaviest(graph: EntityGraph, nodes: Ints, label: Ints) -> Ints:
    """Return the label with the highest weight among the neighbors of each node, the smallest on ties."""
    places = entries(graph.begin, nodes)
    length = graph.begin[nodes + 1] - graph.begin[nodes]
    entry_bits, label_bits = len(places).bit_length(), len(label).bit_length()
    row = np.repeat(np.arange(len(nodes), dtype=np.int64), length)
    # row, label and entry are packed into one integer, so that a plain sort groups the weights to add
    key = ((row << label_bits) | label[graph.neighbor[places]]) << entry_bits
    key |= np.arange(len(places), dtype=np.int64)
    key.sort()
    weight = graph.weight[places[key & ((1 << entry_bits) - 1)]]
    key >>= entry_bits
    first = runs(key)
    total = np.add.reduceat(weight, first)
    row, candidate = key[first] >> label_bits, key[first] & ((1 << label_bits) - 1)
    of_row = runs(row)
    most = np.maximum.reduceat(total, of_row)
    winning = np.flatnonzero(total == np.repeat(most, np.diff(of_row, append=len(row))))
    return candidate[winning[runs(row[winning])]]


def _turns(graph: EntityGraph, rank: NDArray[np.uint64], nodes: Ints) -> list[Ints]:
    """Return the nodes of each turn, ascending, if only `nodes` are visited; large turns are split into parts."""
    length = np.diff(graph.begin)
    visited = np.zeros(len(rank), dtype=bool)
    visited[nodes] = True
    row, other = np.repeat(nodes, length[nodes]), graph.neighbor[entries(graph.begin, nodes)]
    later = visited[other] & (rank[other] > rank[row])
    row, other = row[later], other[later]
    begin = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rank)))])
    waiting_for = np.bincount(other, minlength=len(rank))
    turns: list[Ints] = []
    nodes = nodes[waiting_for[nodes] == 0]
    while len(nodes):
        turns += _parts(nodes, length[nodes])
        reached = other[entries(begin, nodes)]
        np.subtract.at(waiting_for, reached, 1)
        nodes = np.unique(reached[waiting_for[reached] == 0]).astype(np.int64)
    return turns


def _parts(nodes: Ints, length: Ints) -> list[Ints]:
    """Split a turn so that the rows of each part have about `_ENTRIES` entries; a row is never split."""
    part = np.cumsum(length) // _ENTRIES
    return np.split(nodes, np.flatnonzero(np.diff(part)) + 1)


def _ranks(count: int, order: int) -> NDArray[np.uint64]:
    """Return sort keys for an order independent of the graph (SplitMix64 of the positions).

    The order of ids would be correct too, but a chain of facts would then have as many turns as nodes.
    """
    mixed = np.arange(order * count + 1, (order + 1) * count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
