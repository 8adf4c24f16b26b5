"""Killed with SIGKILL at random moments: what was acknowledged is there, whole and once, and the rest goes on."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import children
import pytest
from children import Work, child, ingest_turns, remember_turns, toy_text, toy_triples, toy_turns
from toy import ToyExtractor, lines_of

from graphmem import GraphMemory
from graphmem.models import EdgeQuery, Episode, EpisodeQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend

SCOPE = [Scope("default")]
KILLS_A_STORE = 5
LONGEST_LIFE = 0.2  # seconds

pytestmark = pytest.mark.soak


def kill_at_random_moment(chance: random.Random, work: Work, *arguments: Any) -> list[Any]:
    """Run `work` in a process, kill it, and return what it had said by then."""
    with child(work, *arguments) as (process, pipe):
        if chance.random() < 0.75:  # the others are killed while they start
            pipe.poll(30)
        process.join(chance.uniform(0.0, LONGEST_LIFE))
        process.kill()
        process.join()
        return children.heard(pipe)


def all_episodes(store: GraphBackend) -> list[Episode]:
    found: list[Episode] = []
    while page := store.find_episodes(SCOPE, EpisodeQuery(), after=found[-1].id if found else ""):
        found += page
    return found


def statements(text: str) -> Counter[tuple[str, str, str]]:
    return Counter((s, r, o) for s, r, o, _ in lines_of(text))


def assert_no_episode_is_half_there(store: GraphBackend) -> None:
    """A processed episode has all its mentions and facts, another one has none."""
    episodes = all_episodes(store)
    facts: dict[str, Counter[tuple[str, str, str]]] = {e.id: Counter() for e in episodes}
    edges = list(store.all_edges(SCOPE, EdgeQuery(versions="all")))
    names = {i: e.name for i, e in store.get_entities(SCOPE, list({n for e in edges for n in e.key[:2]})).items()}
    for edge in edges:
        for episode_id in edge.episode_ids:
            facts[episode_id][names[edge.source_id], edge.relation, names[edge.target_id]] += 1
    mentioned = Counter(
        m.episode_id for m in store.find_mentions(SCOPE, episode_ids=[e.id for e in episodes], limit=10**6)
    )
    for episode in episodes:
        stated = statements(episode.text) if episode.processed_at else Counter[tuple[str, str, str]]()
        assert facts[episode.id] == stated, episode
        assert mentioned[episode.id] == len({name for s, _, o in stated for name in (s, o)}), episode


def assert_sound(path: Path) -> None:
    """Read the file without graphmem."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def assert_resumes(url: str) -> None:
    """Opening the store again is enough: what waits is extracted, claims of the dead don't hold it up."""
    begun = time.monotonic()
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, claim_seconds=3600) as memory:
        assert memory.flush(timeout=60) == 0, f"waited {time.monotonic() - begun:.0f} s"
        assert memory.stats().failed_episodes == 0


def check(path: Path, url: str, acknowledged: set[str]) -> None:
    """Look at what a killed process has left, before and after the next one has gone on with it."""
    if not path.exists():
        assert not acknowledged
        return
    store = open_backend(url)
    assert acknowledged <= {e.text for e in all_episodes(store)}
    assert_no_episode_is_half_there(store)
    store.close()
    assert_resumes(url)
    store = open_backend(url)
    texts = Counter(e.text for e in all_episodes(store))
    assert acknowledged <= texts.keys()
    assert [text for text, count in texts.items() if count > 1] == []
    assert_no_episode_is_half_there(store)
    store.close()
    assert_sound(path)


@pytest.fixture
def stores(tmp_path: Path) -> Callable[[int], tuple[Path, str]]:
    """Return what tells the file and URL of the store of a round: a new one after some kills."""

    def of_round(number: int) -> tuple[Path, str]:
        path = tmp_path / f"{number // KILLS_A_STORE}.db"
        return path, f"sqlite:///{path}"

    return of_round


def test_no_remembered_turn_is_lost_halved_or_doubled_by_a_kill(
    rounds: Callable[[int], int], stores: Callable[[int], tuple[Path, str]]
) -> None:
    chance = random.Random(1)
    acknowledged: dict[Path, set[str]] = {}
    for number in range(rounds(200)):
        path, url = stores(number)
        said = kill_at_random_moment(chance, remember_turns, url, str(number))
        known = acknowledged.setdefault(path, set())
        known.update(toy_text(str(number), turn) for turn, _ in said)
        check(path, url, known)
    assert sum(map(len, acknowledged.values())) > 10 * len(acknowledged)


def test_no_ingested_turn_is_lost_halved_or_doubled_by_a_kill_and_the_load_can_be_repeated(
    rounds: Callable[[int], int], stores: Callable[[int], tuple[Path, str]]
) -> None:
    chance, total = random.Random(2), 100
    cut_short = 0
    for number in range(rounds(200)):
        path, url = stores(number)
        name = str(number)
        said = kill_at_random_moment(chance, ingest_turns, url, name, total)
        stored = max(said, default=0)
        cut_short += 0 < stored < total
        check(path, url, {toy_text(name, i) for i in range(stored)})
        if number % KILLS_A_STORE == 0:
            with GraphMemory.open(url, extractor=ToyExtractor(), background=False) as memory:
                report = memory.ingest(toy_turns(name, total))
                assert report.known >= stored
                assert report.known + report.stored == total
            check(path, url, {toy_text(name, i) for i in range(total)})
    assert cut_short


def test_no_added_fact_is_lost_halved_or_doubled_by_a_kill(
    rounds: Callable[[int], int], stores: Callable[[int], tuple[Path, str]]
) -> None:
    chance, total = random.Random(3), 1000
    cut_short = 0
    for number in range(rounds(200)):
        path, url = stores(number)
        name = str(number)
        stored = max(kill_at_random_moment(chance, children.add_triples, url, name, total), default=0)
        cut_short += 0 < stored < total
        if not path.exists():
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
        assert_sound(path)
    assert cut_short


def test_process_that_dies_holding_claims_does_not_hold_up_the_next(sqlite_file: Path) -> None:
    url = f"sqlite:///{sqlite_file}"
    with GraphMemory.open(url, extractor="none") as memory:
        for number in range(5):
            memory.remember(toy_text("a", number))
    with child(claim_and_wait, url) as (process, pipe):
        assert pipe.recv() == "claimed"
        process.kill()
        process.join()
    assert_resumes(url)


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
        memory.backfill()
