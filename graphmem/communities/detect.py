"""Detecting communities: in the store where it can, else in this process."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graphmem.communities.facts import Facts, Ints, read_facts
from graphmem.communities.graph import EntityGraph, Pairs, modularity, pairs_of, seeded
from graphmem.communities.leiden import leiden
from graphmem.communities.propagate import propagate, propagate_from
from graphmem.errors import InvalidInput
from graphmem.models import CommunityAlgorithm, Partition, Scope, propagation_tries
from graphmem.protocols import CommunityDetector, GraphBackend
from graphmem.settings import Settings

_log = logging.getLogger(__name__)

DEFAULT_CHUNK = 10_000


class InProcessDetector(CommunityDetector):
    """Finds communities in this process: reads the graph of a scope into arrays and works on those.

    Parameters
    ----------
    backend
        Where the graph is.
    chunk
        Rows that are read at once.
    """

    def __init__(self, backend: GraphBackend, chunk: int = DEFAULT_CHUNK) -> None:
        self._backend = backend
        self._chunk = chunk

    def detect(
        self, scope: Scope, algorithm: CommunityAlgorithm = "label_propagation", seed: Mapping[str, str] | None = None
    ) -> Partition:
        """Return the communities of a scope; see `CommunityDetector`."""
        return partition_of(read_facts(self._backend, scope, self._chunk), algorithm, seed)


def partition_of(facts: Facts, algorithm: CommunityAlgorithm, seed: Mapping[str, str] | None = None) -> Partition:
    """Return the communities in the graph of some facts; see `CommunityDetector`."""
    if algorithm not in ("label_propagation", "leiden"):
        raise InvalidInput(f"algorithm {algorithm!r}: expected label_propagation or leiden")
    pairs = pairs_of(facts)
    start = None if seed is None else seeded(pairs.node_ids, seed)
    levels = leiden(EntityGraph.of(pairs), start) if algorithm == "leiden" else [_propagated(pairs, start)]
    return Partition.of(pairs.node_ids, levels, modularity(pairs, levels[0]))


def _propagated(pairs: Pairs, start: Ints | None) -> Ints:
    """Return the best labels of several tries; where there is something to begin with, there is one."""
    if start is not None:
        return propagate_from(start, pairs)
    graph = EntityGraph.of(pairs)
    tries = [propagate(graph, order=order) for order in range(propagation_tries(len(graph.neighbour) // 2))]
    return max(tries, key=lambda labels: modularity(pairs, labels))


def choose_detector(backend: GraphBackend, settings: Settings) -> CommunityDetector:
    """Return the detector of the store if it has one, else one that works in this process."""
    if (detector := backend.community_detector) is not None:
        return detector
    return InProcessDetector(backend, chunk_of(settings))


def chunk_of(settings: Settings) -> int:
    """Return how many rows are read at once."""
    if not settings.lpa_edge_chunk_size:
        _log.warning("setting lpa_edge_chunk_size: 0 rows can't be read at once; %d are", DEFAULT_CHUNK)
    return settings.lpa_edge_chunk_size or DEFAULT_CHUNK


def kept_keys(
    partition: Partition, seed: Mapping[str, str], level: int = 0, groups: NDArray[np.bool_] | None = None
) -> dict[int, str]:
    """Return group of a level → key of the community of `seed` that it goes on with.

    The group and the community that share the most members belong together, then the next ones; of equal shares the
    smaller group number, then the smaller key, comes first. Each group gets at most one key and each key one group:
    what is left of a community that was split, and what merged into another, go without.

    Parameters
    ----------
    partition
        What was found.
    seed
        Entity id → key of its community on that level.
    level
        Which one.
    groups
        bool array: the groups that may have a key; all if None.
    """
    if not seed or not partition.node_ids:
        return {}
    keys = sorted(set(seed.values()))
    number = {key: n for n, key in enumerate(keys)}
    labels = partition.levels[level]
    old = np.array([-1 if key is None else number[key] for key in map(seed.get, partition.node_ids)])
    known = old >= 0 if groups is None else (old >= 0) & groups[labels]
    pairs, shared = np.unique(labels[known] * len(keys) + old[known], return_counts=True)
    kept: dict[int, str] = {}
    taken: set[int] = set()
    for pair in pairs[np.lexsort([pairs, -shared])].tolist():
        group, key = divmod(pair, len(keys))
        if group not in kept and key not in taken:
            kept[group] = keys[key]
            taken.add(key)
    return kept
