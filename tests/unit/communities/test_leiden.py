"""Leiden by graspologic-native: from partitions of any kind, and what happens when it panics."""

from __future__ import annotations

import itertools
import logging
import random
from types import SimpleNamespace

import numpy as np
import pytest

from graphmem import GraphMemory
from graphmem.communities import detection
from graphmem.communities.graph import UNIT, EntityGraph, Pairs


class PanicException(BaseException):
    """Stands for pyo3_runtime.PanicException, which can't be imported."""


def graph_of(chance: random.Random) -> EntityGraph:
    """Return a random graph of up to nine nodes, self-loops among its edges."""
    n, density = chance.randint(2, 9), chance.choice([0.2, 0.5, 0.8])
    ends = [pair for pair in itertools.combinations_with_replacement(range(n), 2) if chance.random() < density] or [
        (0, 1)
    ]
    source, target = np.array(ends).T
    weight = np.array([chance.choice([UNIT, UNIT // 2]) for _ in ends], dtype=np.int64)
    return EntityGraph.of(Pairs.of([str(i) for i in range(n)], source, target, weight))


def test_any_partition_may_be_the_start() -> None:
    chance = random.Random(18)
    for _ in range(400):
        graph = graph_of(chance)
        n = len(graph.node_ids)
        start = np.array([chance.randrange(chance.randint(1, n)) for _ in range(n)], dtype=np.int64)
        [labels, *_] = detection.leiden(graph, start)
        assert len(labels) == n


def test_a_group_in_two_parts_is_two_groups_to_begin_with() -> None:
    triangles = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
    source, target = np.array(triangles).T
    pairs = Pairs.of([str(i) for i in range(6)], source, target, np.full(6, UNIT, dtype=np.int64))
    [labels] = detection.leiden(EntityGraph.of(pairs), np.zeros(6, dtype=np.int64))
    assert len(set(labels.tolist())) == 2


def panic(*_: object, **__: object) -> None:
    raise PanicException("index out of bounds")


def test_a_panic_falls_back_to_label_propagation_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(detection, "_native", lambda: SimpleNamespace(leiden=panic, leiden_csr=panic))
    with GraphMemory.open(
        "memory://", extractor="none", embeddings="none", background=False, community_algorithm="leiden"
    ) as memory:
        memory.add_facts([("Ada King", "knows", "Bob Stone"), ("Bob Stone", "knows", "Eve Moss")])
        with caplog.at_level(logging.WARNING):
            done = memory.admin.refresh_communities()
    assert (done.members, done.algorithm) == (3, "label_propagation")
    assert done.fallback == "leiden failed: graspologic-native panicked: index out of bounds"
    assert "label propagation" in caplog.text


def test_without_a_panic_the_algorithm_is_leiden() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([("Ada King", "knows", "Bob Stone")])
        done = memory.admin.refresh_communities("leiden")
    assert (done.algorithm, done.fallback) == ("leiden", "")


def test_what_is_no_panic_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(detection, "_native", lambda: SimpleNamespace(leiden=interrupt, leiden_csr=interrupt))
    with pytest.raises(KeyboardInterrupt):
        detection.leiden(graph_of(random.Random(1)))
