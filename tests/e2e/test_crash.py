"""Killed with SIGKILL at random moments: what was acknowledged is there, whole and once, and the rest goes on."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import children
import pytest
from children import Work, child, ingest_turns, remember_turns, toy_text, toy_triples
from conftest import fresh_store
from crashed import (
    assert_file_is_sound,
    assert_graph_is_sound,
    assert_load_can_be_repeated,
    assert_resumes,
    assert_whole,
    wait_for_the_dead,
)
from toy import ToyExtractor

from graphmem import GraphMemory
from tests.shared_servers import empty

KILLS_A_STORE = 5

pytestmark = [pytest.mark.soak, pytest.mark.whole_store]


class Stores(Protocol):
    """A kind of store, for a process to be killed on: a new one after some kills."""

    longest_life: float
    """Seconds."""

    def kills(self, full: int) -> int:
        """Return how many kills of the full number this kind has time for."""
        ...

    def of_round(self, number: int) -> str:
        """Return the URL of the store of a round."""
        ...

    def exists(self, url: str) -> bool:
        """Return whether the killed process came to make the store; wait until it is dead to the store too."""
        ...

    def assert_sound(self, url: str) -> None:
        """Read the store without graphmem."""
        ...


class Files:
    """Files of SQLite."""

    longest_life = 0.2

    def __init__(self, folder: Path, rounds: Callable[[int], int]) -> None:
        self._folder = folder
        self._rounds = rounds

    def kills(self, full: int) -> int:
        return self._rounds(full)

    def of_round(self, number: int) -> str:
        return f"sqlite:///{self._folder}/{number // KILLS_A_STORE}.db"

    def exists(self, url: str) -> bool:
        return _path(url).exists()

    def assert_sound(self, url: str) -> None:
        assert_file_is_sound(_path(url))


class Databases:
    """A database of Neo4j, emptied again and again: a quarter of the kills, since each takes as long as ten."""

    longest_life = 0.5

    def __init__(self, url: str, rounds: Callable[[int], int]) -> None:
        self._url = url
        self._rounds = rounds

    def kills(self, full: int) -> int:
        return self._rounds(full // 4)

    def of_round(self, number: int) -> str:
        if number % KILLS_A_STORE == 0:
            empty(self._url)
        return self._url

    def exists(self, url: str) -> bool:
        wait_for_the_dead(url)
        return True

    def assert_sound(self, url: str) -> None:
        assert_graph_is_sound(url)


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


@pytest.fixture(params=["sqlite", "neo4j"])
def stores(request: pytest.FixtureRequest, tmp_path: Path, rounds: Callable[[int], int]) -> Stores:
    url = fresh_store(request, tmp_path)
    return Files(tmp_path, rounds) if url.startswith("sqlite") else Databases(url, rounds)


def kill_at_random_moment(chance: random.Random, longest_life: float, work: Work, *arguments: Any) -> list[Any]:
    """Run `work` in a process, kill it, and return what it had said by then."""
    with child(work, *arguments) as (process, pipe):
        if chance.random() < 0.75:  # the others are killed while they start
            pipe.poll(30)
        process.join(chance.uniform(0.0, longest_life))
        process.kill()
        process.join()
        return children.heard(pipe)


def check(stores: Stores, url: str, acknowledged: set[str]) -> None:
    """Look at what a killed process has left, before and after the next one has gone on with it."""
    if not stores.exists(url):
        assert not acknowledged
        return
    assert_whole(url, acknowledged)
    assert_resumes(url)
    assert_whole(url, acknowledged)
    stores.assert_sound(url)


def test_no_remembered_turn_is_lost_halved_or_doubled_by_a_kill(stores: Stores) -> None:
    chance = random.Random(1)
    acknowledged: dict[int, set[str]] = {}
    for number in range(stores.kills(200)):
        url = stores.of_round(number)
        said = kill_at_random_moment(chance, stores.longest_life, remember_turns, url, str(number))
        known = acknowledged.setdefault(number // KILLS_A_STORE, set())
        known.update(toy_text(str(number), turn) for turn, _ in said)
        check(stores, url, known)
    assert all(acknowledged.values())


def test_no_ingested_turn_is_lost_halved_or_doubled_by_a_kill_and_the_load_can_be_repeated(stores: Stores) -> None:
    chance, total = random.Random(2), 100
    cut_short = 0
    for number in range(stores.kills(200)):
        url, name = stores.of_round(number), str(number)
        said = kill_at_random_moment(chance, stores.longest_life, ingest_turns, url, name, total)
        stored = max(said, default=0)
        cut_short += 0 < stored < total
        check(stores, url, {toy_text(name, i) for i in range(stored)})
        if number % KILLS_A_STORE == 0:
            assert_load_can_be_repeated(url, name, total, stored)
            check(stores, url, {toy_text(name, i) for i in range(total)})
    assert cut_short


def test_no_added_fact_is_lost_halved_or_doubled_by_a_kill(stores: Stores) -> None:
    chance, total = random.Random(3), 1000
    cut_short = 0
    for number in range(stores.kills(200)):
        url, name = stores.of_round(number), str(number)
        said = kill_at_random_moment(chance, stores.longest_life, children.add_triples, url, name, total)
        stored = max(said, default=0)
        cut_short += 0 < stored < total
        if not stores.exists(url):
            assert not stored
            continue
        expected = {triple["object"] for triple in toy_triples(name, total)[:stored]}
        with GraphMemory.open(url, extractor="none") as memory:
            spots = Counter(e.name for e in memory.entities(limit=10**6) if e.name.startswith("Spot "))
            held = Counter(f.target for p in range(7) for f in memory.facts(f"Person {p}", limit=10**6))
            episodes = memory.stats().episodes
        assert expected <= spots.keys()
        assert max(spots.values(), default=1) == 1
        assert held == dict.fromkeys(spots, 1)
        assert episodes == len(spots)
        stores.assert_sound(url)
    assert cut_short


def test_process_that_dies_holding_claims_does_not_hold_up_the_next(durable_url: str) -> None:
    with GraphMemory.open(durable_url, extractor="none") as memory:
        for number in range(5):
            memory.remember(toy_text("a", number))
    with child(claim_and_wait, durable_url) as (process, pipe):
        assert pipe.recv() == "claimed"
        process.kill()
        process.join()
    assert_resumes(durable_url)


class Hanging(ToyExtractor):
    """Takes episodes and never gives them back."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe = pipe

    def extract(self, requests: Any) -> Any:
        """Tell that the episodes are claimed, and wait to be killed."""
        self._pipe.send("claimed")
        while True:
            time.sleep(60)


def claim_and_wait(pipe: Connection, url: str) -> None:
    """Take the queue and hang."""
    with GraphMemory.open(url, extractor=Hanging(pipe), background=False) as memory:
        memory.admin.backfill()
