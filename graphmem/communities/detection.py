"""Community detection: in the store if supported, otherwise in this process, by Leiden or label propagation.

Leiden is multi-level, by graspologic-native (Traag, Waltman and van Eck, Scientific Reports 9, 5233, 2019).

Label propagation is vectorized, with the result of sequential node visits. A round visits the nodes in a fixed order,
and each node takes the label with the highest weight among its neighbors, the smallest label on ties. Every change
increases the weight of the edges within groups, or keeps it and lowers a label. So the algorithm terminates, even where
synchronous updates would swap labels forever (two nodes; a star; a ring).

Nodes that aren't adjacent can be visited at the same time. A node's *turn* is the length of the longest path to it
along edges from earlier to later nodes: nodes of one turn aren't adjacent, and all their earlier neighbors have been
visited before (semi-synchronous label propagation: Cordasco and Gargano, arXiv 1103.4550; turns instead of colors).
In an order independent of the graph there are few turns, about 60 for 100,000 nodes with 20 neighbors each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmem.communities.graph import UNIT, EntityGraph, Facts, Pairs, modularity, pairs_of, read_facts, runs
from graphmem.communities.matching import Before
from graphmem.errors import GraphTooLarge, InvalidInput, MissingExtra
from graphmem.models import CommunityAlgorithm, Partition, Scope, propagation_tries
from graphmem.models.arrays import Bools, Int64s, entries
from graphmem.protocols import CommunityDetector, GraphBackend
from graphmem.settings import Settings

_log = logging.getLogger(__name__)

DEFAULT_CHUNK = 10_000
_LEIDEN = "graspologic_native"


class InProcessDetector(CommunityDetector):
    """Detector in this process, on arrays of the graph of a scope.

    Parameters
    ----------
    backend
        The store of the graph.
    chunk
        Rows per read.
    """

    def __init__(self, backend: GraphBackend, chunk: int = DEFAULT_CHUNK) -> None:
        self._backend = backend
        self._chunk = chunk

    def detect(
        self, scope: Scope, algorithm: CommunityAlgorithm = "label_propagation", seed: Mapping[str, str] | None = None
    ) -> Partition:
        """Return the communities of a scope; see `CommunityDetector`."""
        facts = read_facts(self._backend, scope, self._chunk)
        return partition_of(facts, algorithm, Before.of(facts.node_ids, seed or {}))


def partition_of(facts: Facts, algorithm: CommunityAlgorithm, before: Before) -> Partition:
    """Return the communities in the graph of facts, starting from the partition `before`; see `CommunityDetector`.

    If Leiden fails, label propagation is used; `Partition.fallback` says so.
    """
    if algorithm not in ("label_propagation", "leiden"):
        raise InvalidInput(f"algorithm {algorithm!r}: expected label_propagation or leiden")
    pairs = pairs_of(facts)
    start = before.labels() if before.keys else None
    if algorithm == "leiden":
        try:
            return _partition(pairs, leiden(EntityGraph.of(pairs), start))
        except LeidenFailed as error:
            _log.warning("leiden failed, falling back to label propagation: %s", error)
            found = _partition(pairs, [_propagated(pairs, start)])
            return replace(found, algorithm="label_propagation", fallback=f"leiden failed: {error}")
    return _partition(pairs, [_propagated(pairs, start)])


def _partition(pairs: Pairs, levels: Sequence[Int64s]) -> Partition:
    return Partition.of(pairs.node_ids, levels, modularity(pairs, levels[0]))


def _propagated(pairs: Pairs, start: Int64s | None) -> Int64s:
    """Return the labels of a run from `start`, or the best of several runs without one."""
    if start is not None:
        return propagate_from(start, pairs)
    graph = EntityGraph.of(pairs)
    tries = [propagate(graph, order=order) for order in range(propagation_tries(len(graph.neighbor) // 2))]
    return max(tries, key=lambda labels: modularity(pairs, labels))


def best_algorithm(backend: GraphBackend | None = None) -> CommunityAlgorithm:
    """Return Leiden if the store or this process has it, else label propagation.

    Label propagation joins what is well connected, such as the persons and topics of a conversation, into one group.
    """
    in_store = backend is not None and backend.community_detector is not None
    return "leiden" if in_store or find_spec(_LEIDEN) is not None else "label_propagation"


def detected_by_store(
    backend: GraphBackend, scope: Scope, algorithm: CommunityAlgorithm, seed: Mapping[str, str] | None
) -> tuple[Partition | None, str]:
    """Return the communities detected by the store; None and the reason if it has no detector or not enough memory."""
    if (detector := backend.community_detector) is None:
        return None, ""
    try:
        return detector.detect(scope, algorithm, seed), ""
    except GraphTooLarge as error:
        _log.warning("scope %s: communities are detected in this process: %s", scope, error)
        return None, f"detected in this process: {error}"


def chunk_of(settings: Settings) -> int:
    """Return the number of rows per read."""
    if not settings.lpa_edge_chunk_size:
        _log.warning("setting lpa_edge_chunk_size: 0 is invalid; using %d", DEFAULT_CHUNK)
    return settings.lpa_edge_chunk_size or DEFAULT_CHUNK


# Label propagation --------------------------------------------------------------------------------


ROUNDS = 50  # at most; propagation ends earlier when nothing changes
_ENTRIES = 1 << 18  # maximum entries per block, so that row, label and entry fit into one sort key


def propagate(graph: EntityGraph, *, order: int = 0) -> Int64s:
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


def propagate_from(start: Int64s, pairs: Pairs) -> Int64s:
    """Return a label for each node like `propagate`, starting from the labels `start`, int array (n,) in [0, n).

    Only the few nodes that may change are visited: their rows of the graph are built for each round, and neighbors of
    changed nodes are visited in the next round.
    """
    label = start.copy()
    waits = ~_has_majority(pairs, label)
    rank = _ranks(len(label), 0)
    for _ in range(ROUNDS):
        if not waits.any():
            break
        graph = EntityGraph.of(pairs, waits)
        _visit(graph, _turns(graph, rank, np.flatnonzero(waits)), label, waits)
    return label


def _visit(graph: EntityGraph, turns: Sequence[Int64s], label: Int64s, waits: Bools) -> None:
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


def _has_majority(pairs: Pairs, label: Int64s) -> Bools:
    """Return for each node whether its label has more than half of its edge weight, so that no other label can win."""
    inside = label[pairs.source] == label[pairs.target]
    return pairs.sums(np.where(inside, pairs.weight, -pairs.weight)) > 0


def _heaviest(graph: EntityGraph, nodes: Int64s, label: Int64s) -> Int64s:
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


def _turns(graph: EntityGraph, rank: NDArray[np.uint64], nodes: Int64s) -> list[Int64s]:
    """Return the nodes of each turn, ascending, if only `nodes` are visited; large turns are split into parts."""
    length = np.diff(graph.begin)
    visited = np.zeros(len(rank), dtype=bool)
    visited[nodes] = True
    row, other = np.repeat(nodes, length[nodes]), graph.neighbor[entries(graph.begin, nodes)]
    later = visited[other] & (rank[other] > rank[row])
    row, other = row[later], other[later]
    begin = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rank)))])
    waiting_for = np.bincount(other, minlength=len(rank))
    turns: list[Int64s] = []
    nodes = nodes[waiting_for[nodes] == 0]
    while len(nodes):
        turns += _parts(nodes, length[nodes])
        reached = other[entries(begin, nodes)]
        np.subtract.at(waiting_for, reached, 1)
        nodes = np.unique(reached[waiting_for[reached] == 0]).astype(np.int64)
    return turns


def _parts(nodes: Int64s, length: Int64s) -> list[Int64s]:
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


# Leiden -------------------------------------------------------------------------------------------


SPLIT_ABOVE = 100
"""Groups with more entities than this are split again on the next level."""

_OPTIONS = {"seed": 1, "randomness": 1e-6}  # low randomness keeps a search near its initial partition
_ITERATIONS = 10
"""Enough to converge: a converged partition hardly changes as the seed of the next search, which makes one iteration.
With two iterations, 7 % of the members changed their communities after 1 % of new edges; with ten, 1 %."""


class LeidenFailed(Exception):
    """A panic of graspologic-native; no communities are available."""


def leiden(graph: EntityGraph, start: Int64s | None = None) -> list[Int64s]:
    """Return labels for each level, int64 arrays (n,), the coarsest first.

    The first level is the best partition of the whole graph; on each further level every group of more than
    `SPLIT_ABOVE` nodes is partitioned as a separate graph, until no group can be split.

    Parameters
    ----------
    graph
        Graph of n nodes.
    start
        Initial labels of the first level, in [0, n).

    Raises
    ------
    MissingExtra
        If graspologic-native isn't installed.
    LeidenFailed
        If it panics.
    """
    native = _native()
    if not graph.node_ids:
        return [np.zeros(0, dtype=np.int64)]
    levels = [_best(native, graph) if start is None else _best_from(native, graph, start)]
    while (finer := _split(native, graph, levels[-1])) is not None:
        levels.append(finer)
    return levels


def _native() -> Any:
    try:
        return import_module(_LEIDEN)
    except ImportError as error:
        raise MissingExtra("the algorithm leiden in process", "leiden") from error


def _best(native: Any, graph: EntityGraph) -> Int64s:
    weight = graph.weight / UNIT
    found = _found(
        native.leiden_csr, graph.begin, graph.neighbor, weight, len(graph.node_ids), iterations=_ITERATIONS, **_OPTIONS
    )
    return np.array([found[n] for n in range(len(graph.node_ids))], dtype=np.int64)


def _best_from(native: Any, graph: EntityGraph, start: Int64s) -> Int64s:
    # leiden_csr accepts no initial partition; leiden does, but takes node names instead of numbers
    names = [str(n) for n in range(len(graph.node_ids))]
    rows = graph.by_row(np.arange(len(graph.node_ids)))
    once = np.flatnonzero(rows < graph.neighbor)
    if not len(once):
        return np.arange(len(names))  # only self-loops: the library rejects a graph without edges
    ends = zip(rows[once].tolist(), graph.neighbor[once].tolist(), (graph.weight[once] / UNIT).tolist(), strict=True)
    edges: list[tuple[str, str, float]] = [(names[a], names[b], weight) for a, b, weight in ends]
    parts = _connected(start.tolist(), rows[once].tolist(), graph.neighbor[once].tolist())
    linked: list[int] = np.unique([rows[once], graph.neighbor[once]]).tolist()
    numbers = {part: number for number, part in enumerate(dict.fromkeys(parts[node] for node in linked))}
    start_at = {names[node]: numbers[parts[node]] for node in linked}
    found = _found(native.leiden, edges, starting_communities=start_at, iterations=1, **_OPTIONS)
    alone = len(names)  # first unused label, for nodes without an edge
    return np.array([found.get(name, alone + n) for n, name in enumerate(names)], dtype=np.int64)


def _connected(labels: Sequence[int], ends: Sequence[int], others: Sequence[int]) -> list[int]:
    """Return for each node the first node of its connected component within its group.

    graspologic-native panics on disconnected groups.
    """
    first = list(range(len(labels)))

    def find(node: int) -> int:
        while first[node] != node:
            first[node] = node = first[first[node]]
        return node

    for one, other in zip(ends, others, strict=True):
        if labels[one] == labels[other]:
            low, high = sorted((find(one), find(other)))
            first[high] = low
    return [find(node) for node in first]


def _found(search: Callable[..., tuple[float, dict[Any, int]]], *graph: Any, **options: Any) -> dict[Any, int]:
    """Return node → community; raise `LeidenFailed` on a panic, which is no subclass of `Exception`."""
    try:
        return search(*graph, **options)[1]
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise LeidenFailed(f"graspologic-native panicked: {error}") from error


def _split(native: Any, graph: EntityGraph, labels: Int64s) -> Int64s | None:
    """Return labels of the next level, or None if no group can be split."""
    labels = np.unique(labels, return_inverse=True)[1]
    by_group = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    ends = np.cumsum(sizes)
    finer, free = labels.copy(), len(sizes)
    for group in np.flatnonzero(sizes > SPLIT_ABOVE).tolist():
        members = by_group[ends[group] - sizes[group] : ends[group]]
        part = _best(native, _induced(graph, members))
        finer[members] = free + part
        free += int(part.max()) + 1
    return None if len(np.unique(finer)) == len(sizes) else finer


def _induced(graph: EntityGraph, members: Int64s) -> EntityGraph:
    """Return the subgraph induced by nodes, given in ascending order."""
    position = np.full(len(graph.node_ids), -1, dtype=np.int32)
    position[members] = np.arange(len(members))
    places = entries(graph.begin, members)
    neighbor = position[graph.neighbor[places]]
    inside = neighbor >= 0
    row = np.repeat(np.arange(len(members)), graph.begin[members + 1] - graph.begin[members])[inside]
    begin = np.zeros(len(members) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=len(members)), out=begin[1:])
    names = [graph.node_ids[int(n)] for n in members]
    return EntityGraph(names, begin, neighbor[inside], graph.weight[places][inside])
