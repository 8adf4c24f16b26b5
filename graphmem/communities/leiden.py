"""Multi-level Leiden by graspologic-native (Traag, Waltman and van Eck, Scientific Reports 9, 5233, 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from graphmem.communities.graph import UNIT, EntityGraph, Ints
from graphmem.errors import MissingExtra
from graphmem.index.copies import entries

SPLIT_ABOVE = 100
"""Groups with more entities than this are split again on the next level."""

_OPTIONS = {"seed": 1, "randomness": 1e-6}  # low randomness keeps a search near its initial partition
_ITERATIONS = 10
"""Enough to converge: a converged partition hardly changes as the seed of the next search, which makes one iteration.
With two iterations, 7 % of the members changed their communities after 1 % of new edges; with ten, 1 %."""


class LeidenFailed(Exception):
    """A panic of graspologic-native; no communities are available."""


def leiden(graph: EntityGraph, start: Ints | None = None) -> list[Ints]:
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
        return import_module("graspologic_native")
    except ImportError as error:
        raise MissingExtra("the algorithm leiden in process", "leiden") from error


def _best(native: Any, graph: EntityGraph) -> Ints:
    weight = graph.weight / UNIT
    found = _found(
        native.leiden_csr, graph.begin, graph.neighbor, weight, len(graph.node_ids), iterations=_ITERATIONS, **_OPTIONS
    )
    return np.array([found[n] for n in range(len(graph.node_ids))], dtype=np.int64)


def _best_from(native: Any, graph: EntityGraph, start: Ints) -> Ints:
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


def _split(native: Any, graph: EntityGraph, labels: Ints) -> Ints | None:
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


def _induced(graph: EntityGraph, members: Ints) -> EntityGraph:
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
