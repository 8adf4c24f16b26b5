"""Community detection, in the store if supported, otherwise in this process."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphmem.communities.graph import EntityGraph, Facts, Ints, Pairs, modularity, pairs_of, read_facts
from graphmem.communities.label_propagation import propagate, propagate_from
from graphmem.communities.leiden import LeidenFailed, leiden
from graphmem.communities.matching import Before
from graphmem.errors import GraphTooLarge, InvalidInput
from graphmem.models import CommunityAlgorithm, Partition, Scope, propagation_tries
from graphmem.protocols import CommunityDetector, GraphBackend
from graphmem.settings import Settings

_log = logging.getLogger(__name__)

DEFAULT_CHUNK = 10_000


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


def _partition(pairs: Pairs, levels: Sequence[Ints]) -> Partition:
    return Partition.of(pairs.node_ids, levels, modularity(pairs, levels[0]))


def _propagated(pairs: Pairs, start: Ints | None) -> Ints:
    """Return the labels of a run from `start`, or the best of several runs without one."""
    if start is not None:
        return propagate_from(start, pairs)
    graph = EntityGraph.of(pairs)
    tries = [propagate(graph, order=order) for order in range(propagation_tries(len(graph.neighbor) // 2))]
    return max(tries, key=lambda labels: modularity(pairs, labels))


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
