"""Ways from the seeds, on graphs made by hand."""

from __future__ import annotations

import numpy as np

from graphmem.models import EdgeType, Subgraph
from graphmem.recall.bfs import nearer_end, reach


def graph(depths: list[int], edges: list[tuple[int, int, float]]) -> Subgraph:
    n, m = len(depths), len(edges)
    return Subgraph(
        node_ids=[f"n{i}" for i in range(n)],
        names=[f"n{i}" for i in range(n)],
        entity_types=["concept"] * n,
        depth=np.array(depths, dtype=np.int64),
        edge_ids=[f"e{i}" for i in range(m)],
        relations=["r"] * m,
        edge_types=[EdgeType.SEMANTIC] * m,
        facts=[""] * m,
        source=np.array([a for a, _, _ in edges], dtype=np.int64),
        target=np.array([b for _, b, _ in edges], dtype=np.int64),
        confidence=np.array([c for _, _, c in edges]),
        retrieval_count=np.zeros(m),
        valid_from=np.zeros(m),
    )


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


def test_between_two_seeds_the_end_of_the_better_one_counts() -> None:
    pair = graph([0, 0], [(0, 1, 1.0)])
    scores = np.array([0.1, 0.9])
    assert nearer_end(pair, reach(pair, scores), scores).tolist() == [1]


def test_seeds_without_edges_are_no_error() -> None:
    lonely = graph([0], [])
    scores = np.array([1.0])
    assert nearer_end(lonely, reach(lonely, scores), scores).tolist() == []
