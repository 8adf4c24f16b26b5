"""What has to hold of a store after a crash, read from it by graphmem and by others."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from children import toy_turns
from toy import ToyExtractor, lines_of

from graphmem import GraphMemory
from graphmem.models import EdgeQuery, Episode, EpisodeQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from tests.neo4j_server import run

SCOPE = [Scope("default")]
OTHERS = (
    "SHOW TRANSACTIONS YIELD currentQuery WHERE NOT currentQuery STARTS WITH 'SHOW TRANSACTIONS' RETURN currentQuery"
)
TWICE = "MATCH (n:Graphmem) WHERE n.id IS NOT NULL WITH n.id AS id, count(*) AS times WHERE times > 1 RETURN id"
ASTRAY = (
    "MATCH (a)-[r]->(b) WHERE a:Graphmem AND b:Graphmem AND (a.scope <> b.scope OR r.scope <> a.scope) "
    "RETURN type(r) AS type"
)


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Look again and again until something holds."""
    ticking = threading.Event()
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        ticking.wait(0.01)


def all_episodes(store: GraphBackend) -> list[Episode]:
    found: list[Episode] = []
    while page := store.find_episodes(SCOPE, EpisodeQuery(), after=found[-1].id if found else ""):
        found += page
    return found


def statements(text: str) -> Counter[tuple[str, str, str]]:
    return Counter((s, r, o) for s, r, o, _ in lines_of(text))


def assert_no_episode_is_half_there(store: GraphBackend) -> None:
    """A processed episode of a toy text has all its mentions and facts, a waiting one has none."""
    episodes = [e for e in all_episodes(store) if e.source == "message"]
    facts: dict[str, Counter[tuple[str, str, str]]] = {e.id: Counter() for e in episodes}
    edges = list(store.all_edges(SCOPE, EdgeQuery(versions="all")))
    names = {i: e.name for i, e in store.get_entities(SCOPE, list({n for e in edges for n in e.key[:2]})).items()}
    for edge in edges:
        for episode_id in facts.keys() & set(edge.episode_ids):
            facts[episode_id][names[edge.source_id], edge.relation, names[edge.target_id]] += 1
    mentioned = Counter(
        m.episode_id for m in store.find_mentions(SCOPE, episode_ids=[e.id for e in episodes], limit=10**6)
    )
    for episode in episodes:
        stated = statements(episode.text) if episode.processed_at else Counter[tuple[str, str, str]]()
        assert facts[episode.id] == stated, episode
        assert mentioned[episode.id] == len({name for s, _, o in stated for name in (s, o)}), episode


def assert_whole(url: str, acknowledged: set[str]) -> None:
    """What was acknowledged is there, once, and nothing is half there."""
    store = open_backend(url)
    try:
        texts = Counter(e.text for e in all_episodes(store))
        assert acknowledged <= texts.keys()
        assert [text for text, count in texts.items() if count > 1] == []
        assert_no_episode_is_half_there(store)
    finally:
        store.close()


def assert_resumes(url: str) -> None:
    """Opening the store again is enough: what waits is extracted, claims of the dead don't hold it up."""
    begun = time.monotonic()
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, claim_seconds=3600) as memory:
        assert memory.flush(timeout=60) == 0, f"waited {time.monotonic() - begun:.0f} s"
        assert memory.stats().failed_episodes == 0


def assert_load_can_be_repeated(url: str, name: str, total: int, stored: int) -> None:
    """Ingesting the same turns again stores those that are missing."""
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False) as memory:
        report = memory.ingest(toy_turns(name, total))
    assert report.known >= stored
    assert report.known + report.stored == total


def assert_file_is_sound(path: Path) -> None:
    """Read the file without graphmem."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def assert_graph_is_sound(url: str) -> None:
    """Read the database without graphmem."""
    assert run(url, TWICE) == []
    assert run(url, ASTRAY) == []


def wait_for_the_dead(url: str) -> None:
    """Wait until a server has ended the transactions of processes that are gone."""
    wait_until(lambda: run(url, OTHERS) == [])
