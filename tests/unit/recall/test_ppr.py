"""Personalised PageRank, against dense linear algebra and on graphs made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.errors import InvalidInput
from graphmem.models.arrays import Float64s
from graphmem.recall import pagerank
from graphmem.recall.pagerank import personalized_pagerank
from graphmem.recall.strategies import entity_ranks, walk_pagerank
from tests.unit.recall.graphs import graph

Weighted = tuple[int, int, float]


def dense(edges: list[Weighted], restart: Float64s) -> Float64s:
    """Return what the formula gives with whole matrices."""
    n = len(restart)
    matrix = np.zeros((n, n))
    for a, b, weight in edges:
        matrix[b, a] += weight
    start = restart / restart.sum()
    for column in range(n):
        total = matrix[:, column].sum()
        matrix[:, column] = matrix[:, column] / total if total else start
    rank = start
    for _ in range(10):
        rank = 0.7 * matrix @ rank + 0.3 * start
    return rank


def arrays(edges: list[Weighted]) -> tuple[list[int], list[int], list[float]]:
    return [a for a, _, _ in edges], [b for _, b, _ in edges], [w for _, _, w in edges]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(0, 9)), max_size=20),
    st.lists(st.floats(0.01, 5), min_size=6, max_size=6),
)
def test_it_is_the_power_iteration_of_the_definition(edges: list[Weighted], restart: list[float]) -> None:
    edges = [(a, b, w if w > 1e-9 else 0.0) for a, b, w in edges]
    found = personalized_pagerank(*arrays(edges), restart)
    assert found == pytest.approx(dense(edges, np.array(restart)), abs=1e-12)
    assert found.sum() == pytest.approx(1.0)


def test_with_many_rounds_it_is_the_fixed_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagerank, "_ROUNDS", 200)
    edges = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 2.0), (2, 1, 2.0)]
    rank = personalized_pagerank(*arrays(edges), [1.0, 0, 0])
    matrix = np.array([[0, 1 / 3, 0], [1, 0, 1], [0, 2 / 3, 0]])
    assert rank == pytest.approx(np.linalg.solve(np.eye(3) - 0.7 * matrix, [0.3, 0, 0]))


def test_what_reaches_a_node_without_a_way_out_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagerank, "_ROUNDS", 1)
    rank = personalized_pagerank([0], [1], [1.0], [1.0, 0.0])
    assert rank.tolist() == pytest.approx([0.3, 0.7])
    monkeypatch.setattr(pagerank, "_ROUNDS", 2)
    assert personalized_pagerank([0], [1], [1.0], [1.0, 0.0]).sum() == pytest.approx(1.0)


def test_only_the_restart_s_proportions_count() -> None:
    edges = arrays([(0, 1, 1.0), (1, 0, 1.0)])
    assert personalized_pagerank(*edges, [2.0, 6.0]) == pytest.approx(personalized_pagerank(*edges, [0.25, 0.75]))


def test_without_edges_it_is_the_restart() -> None:
    assert personalized_pagerank([], [], [], [1.0, 3.0]).tolist() == [0.25, 0.75]


def test_without_a_restart_it_is_nowhere() -> None:
    assert personalized_pagerank([0], [1], [1.0], [0.0, 0.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"weights": [-1.0]}, "weights"),
        ({"weights": [float("nan")]}, "weights"),
        ({"restart": [1.0, -1.0]}, "restart"),
        ({"targets": [2]}, "node 0 or 2"),
        ({"sources": [-1]}, "node -1"),
        ({"targets": [0, 1]}, "one length"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    given_: dict[str, Any] = {"sources": [0], "targets": [1], "weights": [1.0], "restart": [1.0, 0.0], **changes}
    with pytest.raises(InvalidInput, match=named):
        personalized_pagerank(**given_)


SEED = np.array([1.0, 0.0, 0.0])


def test_two_entities_of_one_episode_are_linked_though_no_fact_says_so() -> None:
    apart = graph([0, 1, 1], [(0, 1, 0.5), (0, 2, 0.5)])
    rank = entity_ranks(apart, SEED, [("n0", "e"), ("n2", "e")], None)
    assert rank[2] > rank[1]


def test_a_surer_fact_carries_more() -> None:
    fork = graph([0, 1, 1], [(0, 1, 0.9), (0, 2, 0.3)])
    rank = entity_ranks(fork, SEED, [], None)
    assert rank[1] / rank[2] == pytest.approx(3.0)


def test_retrievals_make_a_fact_surer() -> None:
    fork = graph([0, 1, 1], [(0, 1, 0.5), (0, 2, 0.5)], retrievals=[10.0, 0.0])
    rank = entity_ranks(fork, SEED, [], None)
    assert rank[1] > rank[2]


def test_a_seed_counts_by_its_score_over_the_episodes_that_mention_it() -> None:
    pairs = graph([0, 0, 1, 1], [(0, 2, 1.0), (1, 3, 1.0)])
    seeds = np.array([1.0, 1.0, 0.0, 0.0])
    mentions = [("n0", f"e{i}") for i in range(4)] + [("n1", "f")]
    rank = entity_ranks(pairs, seeds, mentions, None)
    restart = [1 / 4, 1.0, 0, 0, 0, 0, 0, 0, 0]
    ends = [(0, 2), (1, 3), (0, 4), (0, 5), (0, 6), (0, 7), (1, 8)]
    both = [(a, b, 1.0) for a, b in ends] + [(b, a, 1.0) for a, b in ends]
    assert rank == pytest.approx(personalized_pagerank(*arrays(both), restart)[:4])


def test_mentions_of_entities_elsewhere_are_left_out() -> None:
    pair = graph([0, 1], [(0, 1, 1.0)])
    with_others = entity_ranks(pair, SEED[:2], [("elsewhere", "e")], None)
    assert with_others.tolist() == entity_ranks(pair, SEED[:2], [], None).tolist()


def test_near_synonyms_are_linked_from_a_cosine_of_0_8() -> None:
    lonely = graph([0, 0, 0], [])
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.79, np.sqrt(1 - 0.79**2)]])
    vectors[2, 1] *= -1
    rank = entity_ranks(lonely, SEED, [], vectors)
    assert rank[1] > 0
    assert rank[2] == 0


def test_entities_without_a_vector_have_no_synonyms() -> None:
    assert entity_ranks(graph([0, 0], []), SEED[:2], [], np.zeros((2, 3)))[1] == 0


@pytest.mark.parametrize(("cosine", "linked"), [(0.79, False), (0.8, True)])
def test_similar_to_counts_from_a_cosine_of_0_8(cosine: float, linked: bool) -> None:
    pair = graph([0, 1], [(0, 1, cosine)], relations=["similar_to"])
    assert bool(entity_ranks(pair, SEED[:2], [], None)[1] > 0) is linked


def test_similar_to_is_weighted_by_its_cosine_however_often_it_was_retrieved() -> None:
    fork = graph([0, 1, 1], [(0, 1, 0.9), (0, 2, 0.45)], relations=["similar_to", "r"], retrievals=[99.0, 0.0])
    rank = entity_ranks(fork, SEED, [], None)
    assert rank[1] / rank[2] == pytest.approx(2.0)


def test_the_fact_of_the_highest_rank_has_reach_one() -> None:
    chain = graph([0, 1, 2], [(0, 1, 1.0), (1, 2, 1.0)])
    reach = walk_pagerank(chain, SEED, []).parts["reach"]
    assert reach[0] == 1.0 > reach[1] > 0


def test_a_graph_without_edges_gives_no_facts() -> None:
    assert walk_pagerank(graph([0], []), SEED[:1], []).near.tolist() == []
