"""Every rule and limit of spreading activation, on graphs made by hand, against values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from graphmem.errors import InvalidInput
from graphmem.models import EdgeType, Subgraph
from graphmem.recall import strategies
from graphmem.recall.options import RecallOptions, SpreadingOptions
from graphmem.recall.walks import Walk
from graphmem.settings import Settings
from tests.unit.recall.graphs import graph, graphs

DAY = 86_400.0


def options(**changes: Any) -> SpreadingOptions:
    made: dict[str, Any] = {
        "decay_lambda": 0.5,
        "max_hops": 1,
        "activation_threshold": 0.1,
        "inhibition_threshold": 0.8,
        "max_activated_nodes": 50,
        "time_limit": 0.5,
    }
    return SpreadingOptions(**{**made, **changes})


def spread(subgraph: Subgraph, seeds: dict[int, float], *, decay_rate: float = 0.0, **changes: Any) -> Walk:
    scores = np.zeros(len(subgraph.node_ids))
    for node, score in seeds.items():
        scores[node] = score
    return strategies.spread_activation(subgraph, scores, options(**changes), now=10 * DAY, decay_rate=decay_rate)


def received(subgraph: Subgraph, seeds: dict[int, float], **changes: Any) -> float:
    """Return the activation of the last node: that of the last edge, which hangs on it alone."""
    n = len(subgraph.node_ids)
    leaf = graph(
        [*subgraph.depth, int(subgraph.depth.max()) + 1],
        [
            *zip(subgraph.source.tolist(), subgraph.target.tolist(), subgraph.confidence.tolist(), strict=True),
            (n - 1, n, 0.0),
        ],
        edge_types=[*subgraph.edge_types, EdgeType.SEMANTIC],
        retrievals=[*subgraph.retrieval_count, 0.0],
        valid_from=[*subgraph.valid_from, 0.0],
    )
    return float(spread(leaf, seeds, **changes).parts["reach"][-1])


PAIR = graph([0, 1], [(0, 1, 1.0)])


@pytest.mark.parametrize("wrong", [0.0, -0.5, math.nan, math.inf])
def test_lambda_must_be_above_zero(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="decay_lambda"):
        options(decay_lambda=wrong)


def test_there_is_at_least_one_hop() -> None:
    with pytest.raises(InvalidInput, match="max_hops"):
        options(max_hops=0)


@pytest.mark.parametrize("threshold", [0.8, 0.9])
def test_the_activation_threshold_lies_below_the_inhibition_threshold(threshold: float) -> None:
    with pytest.raises(InvalidInput, match=r"activation_threshold .* below inhibition_threshold 0\.8"):
        options(activation_threshold=threshold)


def test_the_settings_refuse_thresholds_in_the_wrong_order() -> None:
    with pytest.raises(InvalidInput, match=r"spreading_activation_threshold 0\.9"):
        Settings(spreading_activation_threshold=0.9)


def test_the_defaults_are_those_of_the_specification() -> None:
    assert RecallOptions.of(Settings()).spreading == SpreadingOptions(
        decay_lambda=0.85,
        max_hops=3,
        activation_threshold=0.1,
        inhibition_threshold=0.8,
        max_activated_nodes=50,
        time_limit=0.5,
    )


def test_a_node_receives_score_times_lambda_times_confidence() -> None:
    assert received(graph([0, 1], [(0, 1, 0.6)]), {0: 0.5}) == pytest.approx(0.5 * 0.5 * 0.6)


def test_activation_flows_against_the_direction_of_an_edge_too() -> None:
    assert received(graph([0, 1], [(1, 0, 0.6)]), {0: 0.5}) == received(graph([0, 1], [(0, 1, 0.6)]), {0: 0.5}) > 0


def test_retrievals_raise_what_an_edge_carries() -> None:
    often = graph([0, 1], [(0, 1, 0.5)], retrievals=[3.0])
    assert received(often, {0: 1.0}) == pytest.approx(0.5 * 0.5 * (1 + 0.2 * math.log(4)))


@pytest.mark.parametrize(
    ("kind", "weight"),
    [("semantic", 1.0), ("temporal", 0.9), ("causal", 1.2), ("entity", 0.8), ("co_occurrence", 0.5)],
)
def test_an_edge_carries_by_the_weight_of_its_type(kind: str, weight: float) -> None:
    typed = graph([0, 1], [(0, 1, 0.6)], edge_types=[EdgeType(kind)])
    assert received(typed, {0: 0.5}) == pytest.approx(0.5 * 0.5 * 0.6 * weight)


def test_an_old_edge_carries_less() -> None:
    aged = graph([0, 1], [(0, 1, 1.0)], valid_from=[6 * DAY])
    assert received(aged, {0: 0.5}, decay_rate=0.5) == pytest.approx(0.5 * 0.5 / (1 + 4 * 0.5))


def test_without_decay_age_does_not_matter() -> None:
    assert received(graph([0, 1], [(0, 1, 1.0)], valid_from=[-1e9]), {0: 0.5}) == 0.25


def test_an_edge_of_the_future_carries_like_one_of_today() -> None:
    assert received(graph([0, 1], [(0, 1, 1.0)], valid_from=[99 * DAY]), {0: 0.5}, decay_rate=2.0) == 0.25


def test_a_node_below_the_threshold_sends_nothing() -> None:
    assert received(PAIR, {0: 0.09}) == 0.0


def test_a_node_at_the_threshold_sends() -> None:
    assert received(PAIR, {0: 0.1}) == pytest.approx(0.05)


def test_what_several_nodes_send_adds_up() -> None:
    fork = graph([0, 0, 1], [(0, 2, 1.0), (1, 2, 1.0)])
    assert received(fork, {0: 0.5, 1: 0.3}) == pytest.approx(0.25 + 0.15)


def test_activation_stays_from_hop_to_hop_and_gains() -> None:
    assert received(PAIR, {0: 0.5}, max_hops=2) > received(PAIR, {0: 0.5}, max_hops=1)


def test_each_hop_goes_one_edge_further() -> None:
    chain = graph([0, 1, 2], [(0, 1, 1.0), (1, 2, 1.0)])
    assert received(chain, {0: 0.6}, max_hops=1) == 0.0
    assert received(chain, {0: 0.6}, max_hops=2) == pytest.approx(0.6 * 0.5 * 0.5)


def test_a_node_that_is_inhibited_in_the_current_map_receives_nothing() -> None:
    pair = graph([0, 0], [(0, 1, 1.0)])
    assert received(pair, {0: 0.5, 1: 0.8}) == 0.8


def test_a_node_that_is_not_inhibited_yet_does_receive() -> None:
    pair = graph([0, 0], [(0, 1, 1.0)])
    assert received(pair, {0: 0.5, 1: 0.79}) == 1.0


def test_a_node_that_becomes_inhibited_in_the_next_map_receives_nothing_more_in_the_same_hop() -> None:
    fork = graph([0, 0, 1], [(0, 2, 1.0), (1, 2, 1.0)])
    assert received(fork, {0: 0.9, 1: 0.5}, decay_lambda=0.95) == pytest.approx(0.855)


def test_the_strongest_contribution_is_let_in_first_whatever_the_order_of_edges() -> None:
    fork = graph([0, 0, 1], [(1, 2, 1.0), (0, 2, 1.0)])
    assert received(fork, {0: 0.9, 1: 0.5}, decay_lambda=0.95) == pytest.approx(0.855)


def test_an_inhibited_node_still_sends() -> None:
    assert received(PAIR, {0: 0.9}) == pytest.approx(0.45)


def test_sums_are_clamped_at_one() -> None:
    causal = graph([0, 0, 1], [(0, 2, 1.0), (1, 2, 1.0)], edge_types=[EdgeType.CAUSAL] * 2)
    assert received(causal, {0: 0.79, 1: 0.6}, decay_lambda=0.8) == 1.0


def test_a_seed_is_clamped_at_one() -> None:
    assert received(PAIR, {0: 7.0}) == 0.5


@pytest.mark.parametrize(("keep", "activated"), [(4, [True, True, True]), (3, [False, True, True])])
def test_after_a_hop_only_the_strongest_nodes_stay(keep: int, activated: list[bool]) -> None:
    rays = [(0, 1, 0.3), (0, 2, 0.9), (0, 3, 0.6)]
    tips = [(1, 4, 0.0), (2, 5, 0.0), (3, 6, 0.0)]
    star = graph([0, 1, 1, 1, 2, 2, 2], [*rays, *tips])
    assert (spread(star, {0: 0.6}, max_activated_nodes=keep).near[3:] >= 0).tolist() == activated


def test_seeds_stay_though_others_are_stronger() -> None:
    pair = graph([0, 0, 1, 1], [(0, 2, 1.0), (1, 3, 0.0)])
    found = spread(pair, {0: 0.9, 1: 0.05}, max_activated_nodes=1)
    assert found.parts["reach"].tolist() == [0.9, 0.05]


def test_a_pruned_node_sends_nothing_in_the_next_hop() -> None:
    chain = graph([0, 1, 2, 3], [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 0.0)])
    assert spread(chain, {0: 0.7}, max_hops=2, max_activated_nodes=1).near.tolist() == [0, -1, -1]


def test_past_its_time_it_gives_what_is_there_and_says_so() -> None:
    chain = graph([0, 1, 2, 3], [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)])
    late = strategies.spread_activation(
        chain,
        np.array([0.7, 0, 0, 0]),
        options(max_hops=3),
        now=0.0,
        decay_rate=0.0,
        deadline=10.0,
        clock=iter([9.9, 10.1]).__next__,
    )
    assert late.timed_out
    assert late.near.tolist() == [0, 1, 2]


def test_even_when_the_store_took_all_the_time_one_hop_is_made() -> None:
    late = strategies.spread_activation(
        graph([0, 1, 2], [(0, 1, 1.0), (1, 2, 1.0)]),
        np.array([0.7, 0, 0]),
        options(max_hops=3),
        now=0.0,
        decay_rate=0.0,
        deadline=10.0,
        clock=lambda: 11.0,
    )
    assert late.timed_out
    assert late.near.tolist() == [0, 1]


def test_within_its_time_it_is_not_marked() -> None:
    assert not spread(PAIR, {0: 0.7}, max_hops=3).timed_out


def test_the_path_is_the_way_the_strongest_activation_came() -> None:
    diamond = graph([0, 1, 1, 2, 3], [(0, 1, 0.4), (0, 2, 0.9), (1, 3, 0.9), (2, 3, 0.9), (3, 4, 1.0)])
    found = spread(diamond, {0: 0.9}, max_hops=3, decay_lambda=0.9)
    assert found.reached.path(4) == [0, 2, 3, 4]


@given(graphs())
def test_on_any_graph_activations_are_shares_and_paths_begin_at_a_seed(subgraph: Subgraph) -> None:
    seeds = np.where(subgraph.depth == 0, 0.9, 0.0)
    found = strategies.spread_activation(
        subgraph, seeds, options(max_hops=3, max_activated_nodes=3), now=0.0, decay_rate=0.0
    )
    assert ((found.parts["reach"] >= 0) & (found.parts["reach"] <= 1)).all()
    for near in found.near[found.near >= 0]:
        assert subgraph.depth[found.reached.path(int(near))[0]] == 0
