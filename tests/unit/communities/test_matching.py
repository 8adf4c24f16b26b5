"""Which groups are communities, and which ids they go on with."""

from __future__ import annotations

import numpy as np

from graphmem.communities.matching import Before, match_levels, moves
from graphmem.models import Partition


def partition(*levels: str) -> Partition:
    ids = [f"e{n:02}" for n in range(len(levels[0]))]
    labels = [np.array([int(c) for c in level], dtype=np.int64) for level in levels]
    return Partition.of(ids, labels, 0.0)


def test_parts_have_the_whole_as_parent() -> None:
    episode_vectors, parts = match_levels(partition("00001111", "00112222"), {})
    assert [g.parent_id for g in episode_vectors] == [None, None]
    assert [(g.number, g.parent_id) for g in parts] == [(0, episode_vectors[0].id), (1, episode_vectors[0].id)]


def test_a_group_of_one_and_one_that_was_not_split_are_no_parts() -> None:
    _, parts = match_levels(partition("00001111", "00012222"), {})
    assert [g.number for g in parts] == [0]


def test_parts_of_parts_have_the_nearest_community_as_parent() -> None:
    levels = match_levels(partition("000000000011", "000000000122", "000011111233"), {})
    assert [len(groups) for groups in levels] == [2, 1, 2]
    assert {g.parent_id for g in levels[2]} == {levels[1][0].id}


def test_ids_go_on_on_each_level() -> None:
    found = partition("00001111", "00112222")
    first = {i: "left" if n < 4 else "right" for n, i in enumerate(found.node_ids)}
    second = dict.fromkeys(found.node_ids[2:4], "inner")
    before = {level: Before.of(found.node_ids, keys) for level, keys in ((0, first), (1, second))}
    episode_vectors, parts = match_levels(found, before)
    assert [g.id for g in episode_vectors] == ["left", "right"]
    assert parts[1].id == "inner"
    assert parts[0].id != "inner"


def test_nothing_has_no_communities() -> None:
    assert match_levels(Partition.of([], [np.zeros(0, dtype=np.int64)], 0.0), {}) == [[]]


def test_before_tells_where_nodes_were_and_who_is_gone() -> None:
    before = Before.of(["a", "b", "c"], {"b": "y", "a": "x", "gone": "y"})
    assert before.keys == ["x", "y"]
    assert before.places.tolist() == [0, 1, -1]
    assert before.gone == {"gone"}


def test_nothing_before_keeps_no_key() -> None:
    before = Before.of(["a", "b"], {})
    assert before.kept_by(np.array([0, 0])) == {}
    assert not before.gone


def test_who_leaves_and_comes_where_some_groups_are_no_communities() -> None:
    found = partition("00001111", "00112223")  # the last one is alone on the second level
    before = Before.of(found.node_ids, dict.fromkeys(found.node_ids[6:], "pair"))
    levels = match_levels(found, {1: before})
    ids = {group.number: group.id for group in levels[1]}
    assert ids[2] == "pair"
    left, came = moves(found, levels[1], 1, before)
    assert left == ["e07"]
    assert came == [(f"e{n:02}", ids[n // 2]) for n in range(6)]
    assert moves(found, (), 2, before) == (["e06", "e07"], [])
