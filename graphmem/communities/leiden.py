"""Leiden with levels, by graspologic-native (Traag, Waltman and van Eck, Scientific Reports 9, 5233, 2019)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from graphmem.communities.facts import Ints
from graphmem.communities.graph import UNIT, EntityGraph, entries
from graphmem.errors import MissingExtra

SPLIT_ABOVE = 100
"""A group of more entities than this is split once more on the level below."""

_OPTIONS = {"seed": 1, "randomness": 1e-6}  # hardly any: a search that begins with a good partition stays near it
_ITERATIONS = 10
"""Until nothing gets better any more: what is at rest hardly moves when it is the seed of the next search, which makes
one iteration. With two here, 7 % of the members changed their communities after 1 % of new edges; with ten, 1 %."""


def leiden(graph: EntityGraph, start: Ints | None = None) -> list[Ints]:
    """Return labels for each level, int64 arrays (n,), the coarsest first.

    The first level is the best partition of the whole graph; on each further one every group of more than
    `SPLIT_ABOVE` nodes is partitioned as a graph of its own, until nothing can be split any more.

    Parameters
    ----------
    graph
        With n nodes.
    start
        Labels to begin the first level with, in [0, n).

    Raises
    ------
    MissingExtra
        If graspologic-native isn't installed.
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
    _, found = native.leiden_csr(
        graph.begin, graph.neighbour, weight, len(graph.node_ids), iterations=_ITERATIONS, **_OPTIONS
    )
    return np.array([found[n] for n in range(len(graph.node_ids))], dtype=np.int64)


def _best_from(native: Any, graph: EntityGraph, start: Ints) -> Ints:
    # the call that takes arrays can't be given a beginning, this one takes names in place of numbers
    names = [str(n) for n in range(len(graph.node_ids))]
    rows = graph.by_row(np.arange(len(graph.node_ids)))
    once = np.flatnonzero(rows < graph.neighbour)
    ends = zip(rows[once].tolist(), graph.neighbour[once].tolist(), (graph.weight[once] / UNIT).tolist(), strict=True)
    edges: list[tuple[str, str, float]] = [(names[a], names[b], weight) for a, b, weight in ends]
    groups = np.unique(start, return_inverse=True)[1].tolist()
    start_at = dict(zip(names, groups, strict=True))
    _, found = native.leiden(edges, starting_communities=start_at, iterations=1, **_OPTIONS)
    return np.array([found[name] for name in names], dtype=np.int64)


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
    """Return the graph of some nodes, ascending, and of the edges among them."""
    position = np.full(len(graph.node_ids), -1, dtype=np.int32)
    position[members] = np.arange(len(members))
    places = entries(graph.begin, members)
    neighbour = position[graph.neighbour[places]]
    inside = neighbour >= 0
    row = np.repeat(np.arange(len(members)), graph.begin[members + 1] - graph.begin[members])[inside]
    begin = np.zeros(len(members) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=len(members)), out=begin[1:])
    names = [graph.node_ids[int(n)] for n in members]
    return EntityGraph(names, begin, neighbour[inside], graph.weight[places][inside])
