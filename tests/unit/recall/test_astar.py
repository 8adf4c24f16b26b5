"""Cheapest paths, on graphs made by hand and against exhaustive search."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.models import Subgraph
from graphmem.models.arrays import Float64s
from graphmem.recall import strategies
from graphmem.recall.walks import walk_breadth_first
from tests.unit.recall.graphs import graph, graphs


def cost(subgraph: Subgraph, cosines: Float64s | None = None) -> list[float]:
    """Return the cost of each fact from the first node."""
    scores = np.where(subgraph.depth == 0, 1.0, 0.0)
    return (1.0 / strategies.walk_cheapest_paths(subgraph, scores, cosines).parts["reach"] - 1.0).tolist()


def test_without_vectors_a_step_costs_the_doubt_in_it() -> None:
    assert cost(graph([0, 1, 2], [(0, 1, 0.9), (2, 1, 0.6)])) == pytest.approx([0.1, 0.1 + 0.4])


def test_a_step_towards_what_the_question_means_is_cheaper() -> None:
    fork = graph([0, 1, 1], [(0, 1, 0.5), (0, 2, 0.5)])
    assert cost(fork, np.array([0.0, 0.9, 0.2])) == pytest.approx([0.5 * 0.1, 0.5 * 0.8])


def test_the_distance_is_at_least_a_hundredth() -> None:
    assert cost(graph([0, 1], [(0, 1, 0.5)]), np.array([0.0, 1.0])) == pytest.approx([0.5 * 0.01])


def test_it_is_the_entity_stepped_to_that_counts_against_the_direction_of_the_edge_too() -> None:
    assert cost(graph([0, 1], [(1, 0, 0.5)]), np.array([0.0, 0.9])) == pytest.approx([0.5 * 0.1])


def test_an_entity_without_a_vector_costs_the_doubt() -> None:
    assert cost(graph([0, 1], [(0, 1, 0.5)]), np.array([math.nan, math.nan])) == pytest.approx([0.5])


def test_retrievals_make_a_step_cheaper() -> None:
    often = graph([0, 1], [(0, 1, 0.5)], retrievals=[3.0])
    assert cost(often) == pytest.approx([1 - 0.5 * (1 + 0.2 * math.log(4))])


def test_a_sure_detour_is_taken() -> None:
    detour = graph([0, 1, 1, 2], [(0, 1, 0.1), (0, 2, 0.9), (2, 1, 0.9), (1, 3, 0.9)])
    found = strategies.walk_cheapest_paths(detour, np.array([1.0, 0, 0, 0]))
    assert found.reached.path(3) == [0, 2, 1, 3]


def test_among_ways_of_one_cost_the_shorter_counts() -> None:
    ring = graph([0, 1, 1], [(0, 1, 1.0), (0, 2, 1.0), (2, 1, 1.0)])
    assert strategies.walk_cheapest_paths(ring, np.array([1.0, 0, 0])).reached.path(1) == [0, 1]


def test_among_equal_ways_that_of_the_better_seed_counts() -> None:
    fork = graph([0, 0, 1], [(0, 2, 0.5), (1, 2, 0.5)])
    assert strategies.walk_cheapest_paths(fork, np.array([0.2, 0.9, 0.0])).reached.path(2) == [1, 2]


@given(graphs(), st.booleans())
def test_it_reaches_the_facts_that_bfs_reaches(subgraph: Subgraph, with_vectors: bool) -> None:
    scores = np.where(subgraph.depth == 0, 0.5, 0.0)
    cosines = np.linspace(-1, 1, len(scores)) if with_vectors else None
    reached = strategies.walk_cheapest_paths(subgraph, scores, cosines).near >= 0
    assert reached.tolist() == (walk_breadth_first(subgraph, scores).near >= 0).tolist()


@given(graphs())
def test_no_path_is_cheaper_than_the_one_found(subgraph: Subgraph) -> None:
    scores = np.where(subgraph.depth == 0, 0.5, 0.0)
    n = len(scores)
    best = np.where(subgraph.depth == 0, 0.0, np.inf)
    ends = list(zip(subgraph.source, subgraph.target, 1.0 - subgraph.confidence, strict=True))
    for _, (a, b, step) in itertools.product(range(n), ends):  # Bellman-Ford
        best[a], best[b] = min(best[a], best[b] + step), min(best[b], best[a] + step)
    found = 1.0 / strategies.walk_cheapest_paths(subgraph, scores).parts["reach"] - 1.0
    expected = [min(best[a], best[b]) + step for a, b, step in ends]
    assert found.tolist() == pytest.approx(expected)
