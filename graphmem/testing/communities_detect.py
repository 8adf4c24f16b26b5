"""Tests of the `CommunityDetector` contract, for detectors of stores and for the one in this process.

::

    class TestMyDetector(CommunityDetectorTests):
        def open_store(self, tmp_path):
            return open_backend(f"mystore:///{tmp_path}/store")
"""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np
import pytest

from graphmem.communities import kept_keys
from graphmem.errors import InvalidInput
from graphmem.models import CommunityAlgorithm, Edge, EdgeType, Partition, Scope
from graphmem.protocols import CommunityDetector, GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.rows import (
    day,
    edge,
    elsewhere,
    entity,
    entity_id,
    home,
    number_of,
    project,
    put_edges,
    put_entities,
    put_graph,
)

Pairs = Sequence[tuple[int, int]]

ALGORITHMS: tuple[CommunityAlgorithm, ...] = get_args(CommunityAlgorithm)

KARATE: Pairs = [
    (int(a), int(b))
    for a, others in (
        line.split(": ")
        for line in (
            "1: 2 3 4 5 6 7 8 9 11 12 13 14 18 20 22 32;2: 3 4 8 14 18 20 22 31;3: 4 8 9 10 14 28 29 33;4: 8 13 14;"
            "5: 7 11;6: 7 11 17;7: 17;9: 31 33 34;10: 34;14: 34;15: 33 34;16: 33 34;19: 33 34;20: 34;21: 33 34;"
            "23: 33 34;24: 26 28 30 33 34;25: 26 28 32;26: 32;27: 30 34;28: 34;29: 32 34;30: 33 34;31: 33 34;"
            "32: 33 34;33: 34"
        ).split(";")
    )
    for b in others.split()
]
"""Zachary's karate club: 34 members, 78 friendships (J. Anthropological Research 33, 452, 1977)."""


def clique(*nodes: int) -> Pairs:
    """Return all pairs of the nodes."""
    return [(a, b) for a in nodes for b in nodes if a < b]


def planted(groups: int, size: int, edges: int, inside: float, seed: int = 0) -> Pairs:
    """Return a graph with known groups: nodes 1 to size × groups, with the share `inside` of edges within groups."""
    chance = np.random.default_rng(seed)
    source = chance.integers(0, groups * size, edges)
    near = source // size * size + chance.integers(0, size, edges)
    target = np.where(chance.random(edges) < inside, near, chance.integers(0, groups * size, edges))
    return [(a + 1, b + 1) for a, b in zip(source.tolist(), target.tolist(), strict=True) if a != b]


def put_pairs(store: GraphBackend, pairs: Pairs, scope: Scope | None = None, first: int = 1, **fields: Any) -> None:
    """Write entities, and an edge for each pair, numbered from `first`."""
    put_graph(store, *_edges(pairs, scope or home(), first, **fields))


def groups_of(partition: Partition, level: int = 0) -> set[frozenset[int]]:
    """Return the groups of a level as sets of entity numbers."""
    found: dict[int, set[int]] = {}
    for node, group in zip(partition.node_ids, partition.levels[level].tolist(), strict=True):
        found.setdefault(group, set()).add(number_of(node))
    return {frozenset(members) for members in found.values()}


def seed_of(partition: Partition) -> dict[str, str]:
    """Return entity id → key of its community, as input of the next detection."""
    return {
        node: f"community {group}" for node, group in zip(partition.node_ids, partition.levels[0].tolist(), strict=True)
    }


def share_that_stayed(before: Partition, after: Partition) -> float:
    """Return the share of community members that stayed in their community."""
    old = seed_of(before)
    keys = kept_keys(after, old)
    new = {node: keys.get(group) for node, group in zip(after.node_ids, after.levels[0].tolist(), strict=True)}
    return sum(new.get(node) == key for node, key in old.items()) / len(old)


class CommunityDetectorTests(StoreTests):
    """Tests of both detection algorithms; override `detector_of` to test another detector than the store's own."""

    def detector_of(self, store: GraphBackend) -> CommunityDetector:
        """Return the detector under test."""
        if (detector := store.community_detector) is None:
            pytest.skip("this store has no detector of its own: communities are found in process")
        return detector

    @pytest.fixture
    def detector(self, store: GraphBackend) -> CommunityDetector:
        """Return the detector of the store under test."""
        return self.detector_of(store)

    @pytest.fixture(params=ALGORITHMS)
    def algorithm(self, request: pytest.FixtureRequest) -> CommunityAlgorithm:
        """Return each of the algorithms, one a test."""
        return request.param

    def test_groups_that_one_edge_connects_are_told_apart(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        put_pairs(store, [*clique(1, 2, 3, 4, 5), *clique(6, 7, 8, 9, 10), (5, 6)])
        assert groups_of(detector.detect(home(), algorithm)) == {frozenset(range(1, 6)), frozenset(range(6, 11))}

    def test_a_graph_without_edges_has_no_communities(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        empty = detector.detect(home(), algorithm)
        put_entities(store, entity(1))
        alone = detector.detect(home(), algorithm)
        assert [(p.node_ids, [level.tolist() for level in p.levels], p.modularity) for p in (empty, alone)] == [
            ([], [[]], 0.0),
            ([], [[]], 0.0),
        ]

    def test_pairs_that_know_nobody_else_are_communities(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        put_pairs(store, [(1, 2), (3, 4), (5, 6)])
        found = detector.detect(home(), algorithm)
        assert groups_of(found) == {frozenset({1, 2}), frozenset({3, 4}), frozenset({5, 6})}
        assert found.modularity == pytest.approx(2 / 3)

    @pytest.mark.parametrize(
        "pairs",
        [
            [(1, 2)],
            [(1, n) for n in range(2, 12)],
            [(n, n % 8 + 1) for n in range(1, 9)],
            [(a, b) for a in range(1, 5) for b in range(5, 9)],
        ],
        ids=["two nodes", "star", "bipartite ring", "complete bipartite graph"],
    )
    def test_graphs_on_which_labels_could_be_swapped_for_ever_come_to_rest(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm, pairs: Pairs
    ) -> None:
        put_pairs(store, pairs)
        found = detector.detect(home(), algorithm)
        _assert_partition(found, {n for pair in pairs for n in pair})
        again = detector.detect(home(), algorithm, seed_of(found))
        _assert_partition(again, {n for pair in pairs for n in pair})

    def test_a_hub_and_those_who_know_only_it_are_one_community(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        put_pairs(store, [(30, n) for n in range(1, 30)])
        assert groups_of(detector.detect(home(), algorithm)) == {frozenset(range(1, 31))}

    def test_every_entity_with_an_active_edge_is_in_one_group_of_each_level(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        pairs = planted(groups=12, size=25, edges=1500, inside=0.8)
        put_pairs(store, pairs)
        found = detector.detect(home(), algorithm)
        _assert_partition(found, {n for pair in pairs for n in pair})
        assert algorithm == "leiden" or len(found.levels) == 1

    def test_what_is_not_in_the_graph_is_not_in_the_partition(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        put_entities(store, *(entity(n) for n in range(1, 8)), entity(8, archived_at=day(1)), entity(9))
        put_edges(store, edge(1, 1, 2), edge(2, 3, 4), edge(3, 1, 8), edge(4, 5, 8))
        put_edges(store, edge(5, 6, 7, valid_to=day(1), expired_at=day(1)), edge(6, 2, 3, valid_to=day(1)))
        put_edges(store, edge(7, 2, 4, kind="inferred"))
        put_pairs(store, [(12, 13), (13, 14)], project(), first=10)
        put_pairs(store, [(22, 23)], elsewhere(), first=20)
        assert groups_of(detector.detect(home(), algorithm)) == {frozenset({1, 2}), frozenset({3, 4})}
        assert groups_of(detector.detect(project(), algorithm)) == {frozenset({12, 13, 14})}

    def test_confidence_decides_and_edges_of_all_types_and_directions_add_up(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        put_pairs(store, [*clique(1, 2, 3), *clique(4, 5, 6)])
        put_entities(store, entity(7))
        put_edges(store, edge(20, 7, 1, confidence=0.9), edge(21, 7, 4, confidence=0.6))
        put_edges(store, edge(22, 4, 7, confidence=0.0), edge(23, 5, 7, edge_type=EdgeType.CAUSAL, confidence=0.7))
        assert frozenset({4, 5, 6, 7}) in groups_of(detector.detect(home(), algorithm))

    def test_an_edge_of_no_confidence_still_connects(self, store: GraphBackend, detector: CommunityDetector) -> None:
        put_pairs(store, [(1, 2), (2, 3)], confidence=0.0)
        assert groups_of(detector.detect(home())) == {frozenset({1, 2, 3})}

    def test_reading_facts_does_not_change_communities(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        edges = _edges(KARATE, home(), 1)
        put_graph(store, *edges)
        before = detector.detect(home(), algorithm)
        for _ in range(3):
            store.record_retrievals([home()], [e.id for e in edges[::3]], day(5))
        _assert_same(before, detector.detect(home(), algorithm))

    def test_the_same_graph_gives_the_same_communities(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        put_pairs(store, planted(groups=10, size=20, edges=900, inside=0.6))
        first = detector.detect(home(), algorithm)
        _assert_same(first, detector.detect(home(), algorithm))
        seed = seed_of(first)
        _assert_same(detector.detect(home(), algorithm, seed), detector.detect(home(), algorithm, seed))

    @pytest.mark.parametrize(("algorithm", "least"), [("label_propagation", 0.33), ("leiden", 0.41)])
    def test_the_karate_club_falls_apart_as_it_did(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm, least: float
    ) -> None:
        put_pairs(store, KARATE)
        found = detector.detect(home(), algorithm)
        assert found.modularity == pytest.approx(_modularity(found, KARATE))
        assert found.modularity >= least

    def test_with_the_present_communities_as_seed_small_changes_move_few_members(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        pairs = planted(groups=20, size=25, edges=3000, inside=0.75)
        put_pairs(store, pairs)
        before = detector.detect(home(), algorithm)
        put_edges(store, *_edges(planted(groups=20, size=25, edges=30, inside=0.75, seed=1), home(), 50_000))
        assert share_that_stayed(before, detector.detect(home(), algorithm, seed_of(before))) >= 0.95

    def test_a_seed_may_name_entities_that_are_gone_and_lack_new_ones(
        self, store: GraphBackend, detector: CommunityDetector, algorithm: CommunityAlgorithm
    ) -> None:
        put_pairs(store, [*clique(1, 2, 3, 4), *clique(5, 6, 7, 8), *clique(9, 10, 11, 12), (4, 5)])
        seed = {entity_id(n): "left" if n < 5 else "right" for n in (1, 2, 3, 5, 6, 7, 99)}
        found = detector.detect(home(), algorithm, seed)
        expected = {frozenset({1, 2, 3, 4}), frozenset({5, 6, 7, 8}), frozenset({9, 10, 11, 12})}
        assert groups_of(found) == expected
        kept = kept_keys(found, seed)
        assert sorted(kept.values()) == ["left", "right"]
        assert kept[int(found.levels[0][found.node_ids.index(entity_id(1))])] == "left"

    def test_an_algorithm_that_does_not_exist_is_named(self, detector: CommunityDetector) -> None:
        name: Any = "louvain"
        with pytest.raises(InvalidInput, match="'louvain'"):
            detector.detect(home(), name)


def _edges(pairs: Pairs, scope: Scope, first: int, **fields: Any) -> list[Edge]:
    # a different relation for each: two edges with the same key would be one fact
    return [edge(n, a, b, scope, relation=f"r{n}", **fields) for n, (a, b) in enumerate(pairs, first)]


def _assert_partition(found: Partition, nodes: Iterable[int]) -> None:
    assert found.node_ids == [entity_id(n) for n in sorted(nodes)]
    coarser = np.zeros(len(found.node_ids), dtype=np.int64)
    for level in found.levels:
        assert level.shape == (len(found.node_ids),)
        seen = list(dict.fromkeys(level.tolist()))
        assert seen == list(range(len(seen)))
        assert len({*zip(level.tolist(), coarser.tolist(), strict=True)}) == len(seen)
        coarser = level
    assert min(len(group) for group in groups_of(found)) >= 2


def _assert_same(one: Partition, other: Partition) -> None:
    assert one.node_ids == other.node_ids
    assert [level.tolist() for level in one.levels] == [level.tolist() for level in other.levels]
    assert one.modularity == other.modularity


def _modularity(found: Partition, pairs: Pairs) -> float:
    """Return the modularity of a graph with edges of weight 1, computed from the definition."""
    group = {number_of(n): g for n, g in zip(found.node_ids, found.levels[0].tolist(), strict=True)}
    inside = sum(group[a] == group[b] for a, b in pairs) / len(pairs)
    degrees = np.bincount([group[n] for pair in pairs for n in pair]) / (2 * len(pairs))
    return inside - float(degrees @ degrees)
