"""Several processes on one store: nothing twice, nothing lost, nobody told to wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from children import child, run_all, toy_text, work_queue, write_same_names
from moving import opened, write_turns

from graphmem import GraphMemory
from graphmem.models import EpisodeQuery, Scope
from graphmem.registry import open_backend

NAMES = ("one", "two", "three", "four")

pytestmark = [pytest.mark.soak, pytest.mark.whole_store]


def test_four_processes_that_write_the_same_names_make_one_entity_each_and_lose_nothing(
    durable_url: str, rounds: Callable[[int], int]
) -> None:
    url, count = durable_url, rounds(200)
    assert run_all(write_same_names, [(url, name, count) for name in NAMES]) == [[2 * count]] * 4
    with GraphMemory.open(url, extractor="none") as memory:
        names = Counter(e.canonical_name for e in memory.entities(limit=10**6))
        stats = memory.stats()
    assert max(names.values()) == 1
    people = {f"person {i}" for i in range(count + 2)}
    own = {f"{thing} {name} {i}" for thing in ("place", "sight") for name in NAMES for i in range(count)}
    assert names.keys() == people | own
    # "knows" and "met" are the same facts for all four, "visited" and "saw" are each one's own
    assert stats.active_edges == stats.edges == (1 + 1 + 4 + 4) * count
    assert stats.episodes == 2 * 4 * count
    assert stats.pending_episodes == stats.failed_episodes == 0


def test_a_fact_that_four_processes_state_has_the_episodes_of_all_four(
    durable_url: str, rounds: Callable[[int], int]
) -> None:
    url, count = durable_url, rounds(50)
    run_all(write_same_names, [(url, name, count) for name in NAMES])
    with GraphMemory.open(url, extractor="none") as memory:
        supports = [
            len(set(fact.episode_ids))
            for i in range(count)
            for fact in memory.facts(f"Person {i}", limit=1000)
            if fact.relation in ("knows", "met") and fact.source.lower() == f"person {i}"
        ]
    assert supports == [4] * (2 * count)


def test_four_processes_on_one_queue_extract_each_episode_once(durable_url: str, rounds: Callable[[int], int]) -> None:
    url, count = durable_url, rounds(2000)
    with GraphMemory.open(url, extractor="none") as memory:
        memory.ingest(toy_text("x", i) for i in range(count))
    said = run_all(work_queue, [(url,)] * 4)
    read = Counter(text for [(texts, _)] in said for text in texts)
    assert read == {toy_text("x", i): 1 for i in range(count)}
    assert sum(extracted for [(_, extracted)] in said) == count
    store = open_backend(url)
    episodes = store.find_episodes([Scope("default")], EpisodeQuery(), limit=count + 1)
    store.close()
    assert Counter(e.attempts for e in episodes) == {1: count}


def test_a_process_reads_what_another_has_written_without_opening_again(durable_url: str) -> None:
    with (
        GraphMemory.open(durable_url, extractor="none") as here,
        GraphMemory.open(durable_url, extractor="none") as there,
    ):
        assert len(here.recall("Alice Stone")) == 0
        there.add_facts([("Alice Stone", "knows", "Bob Miller")])
        assert [fact.target for fact in here.recall("Alice Stone")] == ["Bob Miller"]


def test_a_search_finds_what_another_process_has_stored_since_the_last_one(durable_url: str) -> None:
    text = toy_text("other", 0)
    with opened(durable_url, background=False) as memory:
        memory.remember("Nobody was there.")
        assert text not in {found.episode.text for found in memory.search(text).found}
        with child(write_turns, durable_url, "other", 0.005) as (_, said):
            _, episode_id = said.recv()
        assert episode_id in {found.episode.id for found in memory.search(text).found}
