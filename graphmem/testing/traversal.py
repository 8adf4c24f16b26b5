"""Tests of `expand` on graphs small enough to verify by hand."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphmem.models import AsOf, Edge, EdgeType, ExpandLimits, Subgraph
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.rows import (
    day,
    edge,
    edge_id,
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


def chain() -> list[Edge]:
    """Return a chain of facts from entity 1 to entity 5."""
    return [edge(n, n, n + 1) for n in range(1, 5)]


def shown(graph: Subgraph) -> tuple[dict[int, int], list[int]]:
    """Return a subgraph as ({entity number: depth}, sorted edge numbers)."""
    depth = {number_of(node): int(hop) for node, hop in zip(graph.node_ids, graph.depth, strict=True)}
    return depth, sorted(number_of(i) for i in graph.edge_ids)


class TraversalTests(StoreTests):
    """`expand` follows edges in both directions, hop by hop, within its limits, at a point in time."""

    @pytest.mark.parametrize(
        ("hops", "nodes", "edges"),
        [
            (0, {2: 0}, []),
            (1, {2: 0, 1: 1, 3: 1}, [1, 2]),
            (2, {2: 0, 1: 1, 3: 1, 4: 2}, [1, 2, 3]),
            (3, {2: 0, 1: 1, 3: 1, 4: 2, 5: 3}, [1, 2, 3, 4]),
            (9, {2: 0, 1: 1, 3: 1, 4: 2, 5: 3}, [1, 2, 3, 4]),
        ],
    )
    def test_each_hop_goes_one_edge_further_both_ways(
        self, store: GraphBackend, hops: int, nodes: dict[int, int], edges: list[int]
    ) -> None:
        put_graph(store, *chain())
        assert _walk(store, [2], hops) == (nodes, edges)

    def test_a_moved_fact_is_followed_from_its_new_ends_only(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 3, 4))
        put_edges(store, edge(1, 1, 3))
        assert _walk(store, [2], 1) == ({2: 0}, [])
        assert _walk(store, [1], 1) == ({1: 0, 3: 1}, [1])
        assert _walk(store, [3], 1) == ({3: 0, 1: 1, 4: 1}, [1, 2])

    def test_the_arrays_say_what_the_rows_say(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna"), entity(2, name="Acme", entity_type="organization"))
        fields: dict[str, Any] = {
            "relation": "works_at",
            "edge_type": EdgeType.CAUSAL,
            "fact": "Anna works at Acme",
            "confidence": 0.3,
        }
        put_edges(store, edge(1, 1, 2, valid_from=day(2), retrieval_count=2.5, **fields))
        graph = store.expand([home()], [entity_id(2)], hops=1)
        texts = (graph.node_ids, graph.names, graph.entity_types, graph.edge_ids, graph.relations, graph.facts)
        assert texts == (
            [entity_id(2), entity_id(1)],
            ["Acme", "Anna"],
            ["organization", "person"],
            [edge_id(1)],
            ["works_at"],
            ["Anna works at Acme"],
        )
        assert graph.edge_types == [EdgeType.CAUSAL]
        assert type(graph.edge_types[0]) is EdgeType
        arrays = (graph.depth, graph.source, graph.target, graph.confidence, graph.retrieval_count)
        assert [array.tolist() for array in arrays] == [[0, 1], [1], [0], [0.3], [2.5]]
        assert graph.valid_from.tolist() == pytest.approx([day(2).timestamp()], abs=1e-6)
        assert graph.inferred.tolist() == [False]

    def test_an_inferred_edge_is_marked(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3, kind="inferred"), edge(3, 3, 4, kind="event"))
        graph = store.expand([home()], [entity_id(1)], hops=3)
        assert dict(zip(graph.edge_ids, graph.inferred.tolist(), strict=True)) == {
            edge_id(1): False,
            edge_id(2): True,
            edge_id(3): False,
        }

    @pytest.mark.parametrize("seeds", [[], [99], [1]], ids=["no seed", "absent seed", "lonely seed"])
    def test_an_empty_neighborhood_has_arrays_of_the_right_types(self, store: GraphBackend, seeds: list[int]) -> None:
        put_entities(store, entity(1))
        graph = store.expand([home()], [entity_id(n) for n in seeds], hops=2)
        kinds = [a.dtype.kind for a in (graph.depth, graph.source, graph.target, graph.confidence, graph.valid_from)]
        assert (kinds, len(graph.edge_ids)) == (["i", "i", "i", "f", "f"], 0)
        assert graph.node_ids == [entity_id(n) for n in seeds if n == 1]

    def test_nodes_are_ordered_by_depth_then_id(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 5, 9), edge(2, 5, 3), edge(3, 9, 1), edge(4, 3, 8), edge(5, 7, 4))
        graph = store.expand([home()], [entity_id(7), entity_id(5)], hops=2)
        assert [number_of(i) for i in graph.node_ids] == [5, 7, 3, 4, 9, 1, 8]
        assert np.all(np.diff(graph.depth) >= 0)

    def test_a_cycle_ends(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3), edge(3, 3, 1))
        assert _walk(store, [1], 10) == ({1: 0, 2: 1, 3: 1}, [1, 2, 3])

    def test_an_edge_between_two_nodes_of_the_last_hop_is_not_read(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3), edge(3, 3, 1))
        assert _walk(store, [1], 1) == ({1: 0, 2: 1, 3: 1}, [1, 3])

    def test_every_parallel_edge_is_there_once(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 1), edge(3, 1, 2, relation="likes"))
        assert _walk(store, [1, 2], 3) == ({1: 0, 2: 0}, [1, 2, 3])

    def test_depth_is_the_distance_to_the_nearest_seed(self, store: GraphBackend) -> None:
        put_graph(store, *chain())
        assert _walk(store, [1, 5], 2) == ({1: 0, 5: 0, 2: 1, 4: 1, 3: 2}, [1, 2, 3, 4])

    def test_a_seed_that_is_given_twice_is_one(self, store: GraphBackend) -> None:
        put_graph(store, *chain())
        assert _walk(store, [1, 1, 99], 1) == ({1: 0, 2: 1}, [1])

    def test_only_edges_of_the_types_asked_for_are_followed(self, store: GraphBackend) -> None:
        put_graph(
            store,
            edge(1, 1, 2, edge_type=EdgeType.CAUSAL),
            edge(2, 2, 3, edge_type=EdgeType.TEMPORAL),
            edge(3, 2, 4, edge_type=EdgeType.ENTITY),
            edge(4, 1, 5),
        )
        types = [EdgeType.CAUSAL, EdgeType.TEMPORAL]
        assert _walk(store, [1], 3, edge_types=types) == ({1: 0, 2: 1, 3: 2}, [1, 2])

    def test_only_edges_of_the_moment_are_followed(self, store: GraphBackend) -> None:
        put_graph(
            store,
            edge(1, 1, 2, valid_to=day(5), expired_at=day(6)),
            edge(2, 1, 3, valid_from=day(5)),
            edge(3, 3, 4, recorded_at=day(8)),
        )
        moments = (AsOf(day(3), day(9)), AsOf(day(6), day(5.5)), AsOf(day(6), day(7)), AsOf(day(6), day(9)))
        assert [_walk(store, [1], 2, as_of=moment) for moment in moments] == [
            ({1: 0, 2: 1}, [1]),
            ({1: 0, 2: 1, 3: 1}, [1, 2]),
            ({1: 0, 3: 1}, [2]),
            ({1: 0, 3: 1, 4: 2}, [2, 3]),
        ]

    def test_archived_entities_are_not_entered(self, store: GraphBackend) -> None:
        put_graph(store, *chain(), edge(5, 1, 6))
        put_entities(store, entity(3, archived_at=day(1)))
        assert _walk(store, [1], 9) == ({1: 0, 2: 1, 6: 1}, [1, 5])

    def test_a_walk_begins_at_archived_seeds(self, store: GraphBackend) -> None:
        put_graph(store, *chain())
        put_entities(store, entity(3, archived_at=day(1)))
        assert _walk(store, [3, 1], 1) == ({1: 0, 3: 0, 2: 1, 4: 1}, [1, 2, 3])

    def test_scopes_asked_together_are_walked_side_by_side(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        put_graph(store, edge(2, 3, 4, project()))
        put_graph(store, edge(3, 5, 6, elsewhere()))
        graph = store.expand([home(), project()], [entity_id(n) for n in (1, 3, 5)], hops=2)
        assert shown(graph) == ({1: 0, 3: 0, 2: 1, 4: 1}, [1, 2])


class TraversalLimitTests(StoreTests):
    """`expand` omits the lowest ranked rows beyond its limits, by confidence and then by id."""

    def test_the_frontier_keeps_the_nodes_reached_with_the_best_confidence(self, store: GraphBackend) -> None:
        put_graph(store, *_star([0.1, 0.4, 0.3, 0.2]))
        assert _limited_walk(store, 1, max_frontier=2) == ({1: 0, 3: 1, 4: 1}, [3, 4])

    def test_nodes_of_equal_confidence_are_kept_by_id(self, store: GraphBackend) -> None:
        put_graph(store, *(edge(10 - n, 1, n, confidence=0.5) for n in (6, 3, 5, 4, 2)))
        assert _limited_walk(store, 1, max_frontier=3) == ({1: 0, 2: 1, 3: 1, 4: 1}, [6, 7, 8])

    def test_a_node_counts_with_its_best_edge(self, store: GraphBackend) -> None:
        worst_too = edge(9, 4, 1, confidence=0.9)
        put_graph(store, *_star([0.3, 0.2, 0.1]), worst_too)
        assert _limited_walk(store, 1, max_frontier=1) == ({1: 0, 4: 1}, [4, 9])

    def test_the_frontier_limits_every_hop(self, store: GraphBackend) -> None:
        tree = [
            edge(1, 1, 2, confidence=0.9),
            edge(2, 1, 3, confidence=0.1),
            edge(3, 2, 4, confidence=0.2),
            edge(4, 2, 5, confidence=0.8),
            edge(5, 3, 6, confidence=1.0),
        ]
        put_graph(store, *tree)
        assert _limited_walk(store, 2, max_frontier=1) == ({1: 0, 2: 1, 5: 2}, [1, 4])

    def test_of_each_node_the_best_edges_are_read(self, store: GraphBackend) -> None:
        put_graph(store, *_star([0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4, 0.8]))
        nodes, edges = _limited_walk(store, 1, max_degree=6)
        assert (sorted(nodes), edges) == ([1, 3, 5, 6, 7, 8, 9], [3, 5, 6, 7, 8, 9])

    def test_edges_of_equal_confidence_are_read_by_id(self, store: GraphBackend) -> None:
        put_graph(store, *(edge(20 - n, 1, n, confidence=0.5) for n in range(2, 10)))
        _, edges = _limited_walk(store, 1, max_degree=6)
        assert edges == [11, 12, 13, 14, 15, 16]

    def test_incoming_and_outgoing_edges_share_the_limit(self, store: GraphBackend) -> None:
        star = _star([0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4, 0.8])
        put_graph(store, *(_turned(e) if position % 2 else e for position, e in enumerate(star)))
        _, edges = _limited_walk(store, 1, max_degree=6)
        assert edges == [3, 5, 6, 7, 8, 9]

    def test_at_least_five_edges_of_each_node_are_read(self, store: GraphBackend) -> None:
        put_graph(store, *_star([0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4, 0.8]))
        _, edges = _limited_walk(store, 1, max_degree=1, max_edges=1)
        assert edges == [3, 5, 7, 8, 9]

    def test_the_edges_of_a_hop_are_shared_by_its_frontier(self, store: GraphBackend) -> None:
        second = [edge(10 * n + k, n, 10 * n + k, confidence=1 - k / 10) for n in (2, 3) for k in range(8)]
        put_graph(store, edge(1, 1, 2, confidence=0.95), edge(2, 1, 3, confidence=0.95), *second)
        _, edges = _limited_walk(store, 2, max_edges=12)
        assert edges == [1, 2, *range(20, 25), *range(30, 35)]  # six of each node, the edge to entity 1 among them

    def test_edges_that_are_not_visible_do_not_count(self, store: GraphBackend) -> None:
        ended = [edge(n, 1, n, valid_to=day(1), expired_at=day(1)) for n in range(2, 10)]
        put_graph(store, *ended, edge(10, 1, 10, confidence=0.1))
        assert _limited_walk(store, 1, max_degree=5) == ({1: 0, 10: 1}, [10])

    def test_edges_of_other_types_do_not_count(self, store: GraphBackend) -> None:
        put_graph(store, *_star([0.9] * 8), edge(10, 1, 10, confidence=0.1, edge_type=EdgeType.CAUSAL))
        limits = ExpandLimits(max_degree=5)
        graph = store.expand([home()], [entity_id(1)], hops=1, edge_types=[EdgeType.CAUSAL], limits=limits)
        assert shown(graph) == ({1: 0, 10: 1}, [10])

    def test_a_hub_gives_as_many_edges_as_its_limit(self, store: GraphBackend) -> None:
        put_graph(store, *_star([0.5] * 500))
        nodes, edges = _limited_walk(store, 1)
        assert (len(nodes), edges) == (301, list(range(2, 302)))


def _star(confidences: list[float]) -> list[Edge]:
    """Return edges from entity 1 to entities 2, 3, …: the edge to entity n is edge n."""
    return [edge(n, 1, n, confidence=confidence) for n, confidence in enumerate(confidences, start=2)]


def _turned(row: Edge) -> Edge:
    return row.changed(source_id=row.target_id, target_id=row.source_id)


def _walk(store: GraphBackend, seeds: list[int], hops: int, **options: Any) -> tuple[dict[int, int], list[int]]:
    return shown(store.expand([home()], [entity_id(n) for n in seeds], hops=hops, **options))


def _limited_walk(store: GraphBackend, hops: int, **limits: int) -> tuple[dict[int, int], list[int]]:
    return shown(store.expand([home()], [entity_id(1)], hops=hops, limits=ExpandLimits(**limits)))
