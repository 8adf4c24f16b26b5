"""Choosing a detector, reading in chunks, and carrying the keys of communities on."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Generator

import numpy as np
import pytest

from graphmem import GraphMemory
from graphmem.communities import InProcessDetector, kept_keys
from graphmem.communities.graph import EntityGraph, pairs_of, read_facts
from graphmem.communities.refresh import CommunityRefresh
from graphmem.errors import MissingExtra
from graphmem.models import ActiveFact, Changes, EdgeQuery, Partition, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings
from graphmem.testing.communities_detect import KARATE, put_pairs
from graphmem.testing.rows import home


@pytest.fixture
def store() -> Generator[GraphBackend, None, None]:
    store = open_backend("memory://")
    put_pairs(store, KARATE)
    yield store
    store.close()


def partition(groups: dict[str, int]) -> Partition:
    return Partition.of(list(groups), [np.array(list(groups.values()), dtype=np.int64)], 0.0)


@pytest.mark.parametrize("chunk", [1, 2, 33, 34, 35, 78, 1000])
def test_the_graph_is_the_same_in_whatever_pieces_it_is_read(store: GraphBackend, chunk: int) -> None:
    read, whole = (EntityGraph.of(pairs_of(read_facts(store, home(), size))) for size in (chunk, 10_000))
    assert read.node_ids == whole.node_ids
    assert [a.tolist() for a in (read.begin, read.neighbor, read.weight)] == [
        a.tolist() for a in (whole.begin, whole.neighbor, whole.weight)
    ]


def test_ids_may_have_any_letters(store: GraphBackend) -> None:
    [known] = store.find_edges([home()], EdgeQuery(), limit=1)
    store.write(home(), Changes(edges=(known.changed(id="ö", relation="knows_too"),)))
    facts = read_facts(store, home(), 10_000)
    assert [fact_id.decode() for fact_id in facts.ids.tolist()][-1] == "ö"


def test_pages_are_as_long_as_the_setting_says(store: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    find_active_facts = store.find_active_facts

    def counted(scope: Scope, *, after: str, limit: int) -> list[ActiveFact]:
        limits.append(limit)
        return find_active_facts(scope, after=after, limit=limit)

    monkeypatch.setattr(store, "find_active_facts", counted)
    CommunityRefresh(store, Settings(lpa_edge_chunk_size=30)).refresh(home())
    assert limits == [30, 30, 30, 30]


def test_a_chunk_of_nothing_is_warned_about_and_taken_as_the_default(
    store: GraphBackend, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        done = CommunityRefresh(store, Settings(lpa_edge_chunk_size=0)).refresh(home())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "lpa_edge_chunk_size" in caplog.text
    assert "10000" in caplog.text
    assert done.members == 34


def test_leiden_without_its_package_names_the_extra(store: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graspologic_native", None)
    detector = InProcessDetector(store)
    with pytest.raises(MissingExtra, match=r"graphmem\[leiden\]"):
        detector.detect(home(), "leiden")
    assert len(detector.detect(home()).node_ids) == 34


def test_by_default_leiden_is_used_where_it_is_installed(store: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CommunityRefresh(store, Settings()).refresh(home()).algorithm == "leiden"
    monkeypatch.setitem(sys.modules, "graspologic_native", None)
    assert CommunityRefresh(store, Settings()).refresh(home()).algorithm == "label_propagation"


def test_a_conversation_is_not_one_community() -> None:
    """Two persons say things about ten topics: label propagation makes a single group of all."""
    chance = random.Random(1)
    facts = [(person, "mentions", f"topic {n}") for person in ("Ada", "Bob") for n in range(100)]
    facts += [
        (f"topic {n}", "goes with", f"topic {n // 10 * 10 + chance.randrange(10)}") for n in range(100) for _ in "ab"
    ]
    with GraphMemory.open("memory://conversation", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([fact for fact in facts if fact[0] != fact[2]])
        assert memory.admin.refresh_communities("label_propagation").communities <= 2
        assert memory.admin.refresh_communities().communities > 4


def test_a_key_goes_to_the_group_that_shares_most_members_with_it() -> None:
    now = partition({"a": 0, "b": 0, "c": 0, "d": 1, "e": 1, "f": 2, "g": 2})
    before = {"a": "x", "b": "x", "c": "y", "d": "x", "e": "y", "gone": "z"}
    assert kept_keys(now, before) == {0: "x", 1: "y"}


def test_of_a_community_that_was_split_one_part_keeps_the_key() -> None:
    now = partition({"a": 0, "b": 0, "c": 1, "d": 1})
    assert kept_keys(now, dict.fromkeys("abcd", "x")) == {0: "x"}


def test_without_a_seed_no_key_is_kept() -> None:
    assert kept_keys(partition({"a": 0, "b": 0}), {}) == {}


def test_levels_are_nested_and_those_that_add_nothing_are_left_out() -> None:
    ids = ["d", "a", "c", "b", "e"]
    coarse, crossing, same = np.array([7, 7, 3, 3, 9]), np.array([1, 2, 1, 1, 5]), np.array([4, 5, 6, 6, 7])
    found = Partition.of(ids, [coarse, crossing, same], 0.5)
    assert found.node_ids == ["a", "b", "c", "d"]
    assert [level.tolist() for level in found.levels] == [[0, 1, 1, 0], [0, 1, 1, 2]]
