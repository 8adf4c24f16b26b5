"""Ways from the seeds, on graphs made by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphmem.recall import strategies
from graphmem.recall.walks import Walk, nearer_end, reach, walk_breadth_first
from tests.unit.recall.graphs import graph


def test_a_path_leads_from_the_seed_to_the_node_whatever_the_direction_of_edges() -> None:
    chain = graph([0, 1, 2], [(1, 0, 1.0), (1, 2, 1.0)])
    assert reach(chain, np.array([1.0, 0.0, 0.0])).path(2) == [0, 1, 2]


def test_among_equally_near_seeds_the_better_one_counts() -> None:
    fork = graph([0, 0, 1], [(0, 2, 1.0), (1, 2, 1.0)])
    assert reach(fork, np.array([0.2, 0.9, 0.0])).seed[2] == 1


def test_from_one_seed_the_surest_way_is_taken() -> None:
    diamond = graph([0, 1, 1, 2], [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 0.3), (2, 3, 0.8)])
    assert reach(diamond, np.array([1.0, 0, 0, 0])).path(3) == [0, 2, 3]


def test_a_cycle_ends() -> None:
    ring = graph([0, 1, 1], [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)])
    reached = reach(ring, np.array([1.0, 0.0, 0.0]))
    assert [reached.path(i) for i in range(3)] == [[0], [0, 1], [0, 2]]


def test_the_nearer_end_of_an_edge_is_the_one_closer_to_a_seed() -> None:
    chain = graph([0, 1, 2], [(1, 0, 1.0), (2, 1, 1.0)])
    scores = np.array([1.0, 0.0, 0.0])
    assert nearer_end(chain, reach(chain, scores), scores).tolist() == [0, 1]


@pytest.mark.parametrize("walk", [walk_breadth_first, strategies.walk_cheapest_paths])
def test_a_fact_that_no_seed_leads_to_is_not_reached(walk: Callable[..., Walk]) -> None:
    parted = graph([0, 1, 2, 3, 0], [(1, 2, 1.0), (3, 4, 1.0), (2, 3, 1.0)])  # the fact between 0 and 1 was left out
    found = walk(parted, np.array([1.0, 0.0, 0.0, 0.0, 0.5]))
    if walk is walk_breadth_first:  # node 3 was found on the way over 1 and 2
        assert found.near.tolist() == [-1, 4, -1]
    else:
        assert found.near.tolist() == [2, 4, 3]
    alone = walk(graph([0, 1, 2], [(1, 2, 1.0)]), np.array([1.0, 0.0, 0.0]))
    assert alone.near.tolist() == [-1]


def test_between_two_seeds_the_end_of_the_better_one_counts() -> None:
    pair = graph([0, 0], [(0, 1, 1.0)])
    scores = np.array([0.1, 0.9])
    assert nearer_end(pair, reach(pair, scores), scores).tolist() == [1]


def test_seeds_without_edges_are_no_error() -> None:
    lonely = graph([0], [])
    scores = np.array([1.0])
    assert nearer_end(lonely, reach(lonely, scores), scores).tolist() == []


def test_a_fact_scores_by_its_seed_and_its_distance() -> None:
    chain = graph([0, 1, 2], [(1, 0, 1.0), (2, 1, 1.0)])
    parts = walk_breadth_first(chain, np.array([0.8, 0.0, 0.0])).parts
    assert (parts["seed"] * parts["proximity"]).tolist() == [0.8, 0.4]
