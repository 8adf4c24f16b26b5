"""Label propagation over arrays does what visiting node after node does, ends, and stays within its memory."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.communities import detection as module
from graphmem.communities.detection import propagate, propagate_from
from graphmem.communities.graph import UNIT, EntityGraph, Pairs, in_units, modularity
from graphmem.models.arrays import Int64s

Edges = list[tuple[int, int, int]]


def pairs_of(edges: Edges) -> Pairs:
    count = 1 + max((max(a, b) for a, b, _ in edges), default=-1)
    source, target, weight = (np.array([e[i] for e in edges], dtype=np.int64) for i in range(3))
    return Pairs.of([f"{n:04}" for n in range(count)], source, target, weight)


def graph_of(edges: Edges) -> EntityGraph:
    return EntityGraph.of(pairs_of(edges))


def random_pairs(nodes: int, edges: int, seed: int = 0) -> Pairs:
    chance = np.random.default_rng(seed)
    source, target = chance.integers(0, nodes, edges), chance.integers(0, nodes, edges)
    different = source != target
    weight = in_units(chance.integers(0, 11, int(different.sum())) / 10)
    return Pairs.of([f"{n:07}" for n in range(nodes)], source[different], target[different], weight)


def one_by_one(graph: EntityGraph, rounds: int) -> list[int]:
    """Visit the nodes in their order, one after the other."""
    label = list(range(len(graph.node_ids)))
    order = np.argsort(module._ranks(len(label), 0)).tolist()  # pyright: ignore[reportPrivateUsage]
    for _ in range(rounds):
        before = list(label)
        for node in order:
            votes: Counter[int] = Counter()
            for place in range(graph.begin[node], graph.begin[node + 1]):
                votes[label[graph.neighbor[place]]] += int(graph.weight[place])
            label[node] = min(votes, key=lambda found: (-votes[found], found))
        if label == before:
            break
    return label


edges_of_small_graphs = st.lists(
    st.tuples(st.integers(0, 14), st.integers(0, 14), st.integers(1, 3)).filter(lambda e: e[0] != e[1]), max_size=60
)


@given(edges_of_small_graphs)
def test_it_does_what_visiting_one_node_after_the_other_does(edges: Edges) -> None:
    graph = graph_of(edges)
    assert propagate(graph).tolist() == one_by_one(graph, 50)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_each_round_does_what_visiting_all_nodes_once_does(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = EntityGraph.of(random_pairs(400, 1500))
    monkeypatch.setattr(module, "ROUNDS", rounds)
    assert propagate(graph).tolist() == one_by_one(graph, rounds)


def test_working_in_small_parts_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = EntityGraph.of(random_pairs(400, 1500))
    whole = propagate(graph).tolist()
    monkeypatch.setattr(module, "_ENTRIES", 16)
    assert propagate(graph).tolist() == whole


@given(edges_of_small_graphs)
def test_it_comes_to_rest_long_before_its_last_round(edges: Edges) -> None:
    graph = graph_of(edges)
    rested = propagate(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROUNDS", 49)
        assert propagate(graph).tolist() == rested.tolist()
    assert propagate_from(rested, pairs_of(edges)).tolist() == rested.tolist()


@given(edges_of_small_graphs, st.lists(st.integers(0, 14), min_size=15, max_size=15))
def test_from_whatever_beginning_no_node_has_a_reason_to_change_in_the_end(edges: Edges, labels: list[int]) -> None:
    pairs = pairs_of(edges)
    graph = EntityGraph.of(pairs)
    count = len(pairs.node_ids)
    found = propagate_from(np.array(labels[:count], dtype=np.int64) % max(1, count), pairs)
    for node in range(count):
        votes: Counter[int] = Counter()
        for place in range(graph.begin[node], graph.begin[node + 1]):
            votes[int(found[graph.neighbor[place]])] += int(graph.weight[place])
        assert votes[int(found[node])] == max(votes.values())


def test_after_a_small_change_the_others_stay_as_they_are() -> None:
    pairs = random_pairs(400, 1500)
    begun = propagate(EntityGraph.of(pairs))
    source, target = np.append(pairs.source, 0), np.append(pairs.target, len(begun) - 1)
    found = propagate_from(begun, Pairs(pairs.node_ids, source, target, np.append(pairs.weight, UNIT)))
    assert np.count_nonzero(found != begun) < 20


def test_a_chain_in_the_order_of_its_ids_takes_few_turns() -> None:
    count = 20_000
    graph = graph_of([(n, n + 1, 1) for n in range(count - 1)])
    rank = module._ranks(count, 0)  # pyright: ignore[reportPrivateUsage]
    assert len(module._turns(graph, rank, np.arange(count))) < 20  # pyright: ignore[reportPrivateUsage]
    assert len(propagate(graph)) == count


def test_edges_between_the_same_two_add_up_whatever_their_direction_and_order() -> None:
    one = graph_of([(0, 1, 2), (1, 0, 3), (2, 1, 1)])
    other = graph_of([(2, 1, 1), (0, 1, 5)])
    assert [a.tolist() for a in (one.begin, one.neighbor, one.weight)] == [
        a.tolist() for a in (other.begin, other.neighbor, other.weight)
    ]
    assert (one.neighbor.tolist(), one.weight.tolist()) == ([1, 0, 2, 1], [5, 5, 1, 1])


def test_confidences_that_add_up_to_the_same_are_a_tie() -> None:
    # 0.1 + 0.2 is more than 0.3 in floating point
    weights = in_units(np.array([0.1, 0.2, 0.3]))
    assert weights[0] + weights[1] == weights[2] == 0.3 * UNIT


def test_modularity_is_that_of_the_formula() -> None:
    pairs = pairs_of([(0, 1, 1), (1, 2, 1), (0, 2, 1), (3, 4, 1), (2, 3, 1)])
    labels: Int64s = np.array([0, 0, 0, 3, 3])
    assert modularity(pairs, labels) == pytest.approx(4 / 5 - (7 / 10) ** 2 - (3 / 10) ** 2)


def test_memory_stays_below_200_bytes_an_edge() -> None:
    chance = np.random.default_rng(1)
    nodes, edges = 20_000, 200_000
    names = [f"{n:07}" for n in range(nodes)]
    source, target = chance.integers(0, nodes, edges), chance.integers(0, nodes, edges)
    target[source == target] += 1
    tracemalloc.start()
    propagate(EntityGraph.of(Pairs.of(names, source, target % nodes, in_units(chance.random(edges)))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / edges < 200
