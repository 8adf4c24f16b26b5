"""How often the store asks its server: what a question costs on a network is mostly that."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import pairwise
from threading import get_ident
from typing import Any

import neo4j
import pytest

from graphmem import GraphMemory
from graphmem.models import Changes
from graphmem.testing.rows import home
from graphmem_neo4j import Neo4jBackend, open_backend
from tests.integration.neo4j.support import edge, entity, of


class RoundTrips:
    """Counts what this thread sends and waits for: statements, and begins of transactions."""

    def __init__(self) -> None:
        self.count = 0
        self._thread = get_ident()

    def add(self) -> None:
        """Count one, unless it is made behind the caller's back."""
        if get_ident() == self._thread:
            self.count += 1

    def during(self, work: Callable[[], object]) -> int:
        """Return how many there were while `work` ran."""
        before = self.count
        work()
        return self.count - before


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> RoundTrips:
    counted = RoundTrips()

    def count(kind: type[Any], name: str) -> None:
        original = getattr(kind, name)

        def counting(self: Any, *values: Any, **named: Any) -> Any:
            counted.add()
            return original(self, *values, **named)

        monkeypatch.setattr(kind, name, counting)

    count(neo4j.Session, "run")
    count(neo4j.Session, "begin_transaction")
    count(neo4j.Transaction, "run")
    return counted


@pytest.fixture
def store(neo4j_url: str) -> Generator[Neo4jBackend, None, None]:
    store = open_backend(neo4j_url)
    yield store
    store.close()


def test_expand_asks_once_a_hop_and_once_for_its_seeds(store: Neo4jBackend, round_trips: RoundTrips) -> None:
    people = [entity(f"person {number}", home()) for number in range(5)]
    store.write(home(), of(*people))
    store.write(home(), Changes(edges=tuple(edge(a, b) for a, b in pairwise(people))))

    def walk() -> None:
        assert len(store.expand([home()], [people[0].id], hops=3).node_ids) == 4

    assert round_trips.during(walk) == 3 + 1


def test_recall_asks_at_most_fourteen_times(neo4j_url: str, store: Neo4jBackend, round_trips: RoundTrips) -> None:
    patient: dict[str, Any] = {"embedding_timeout": 300.0, "index_wait": 300.0}  # a busy machine asks no more often
    with GraphMemory.open(neo4j_url, scope=home(), extractor="none", background=False, **patient) as memory:
        babbage = "Charles Babbage"
        memory.add_facts([("Ada Lovelace", "works with", babbage), (babbage, "designed", "Difference Engine")])

        def recall() -> None:
            assert len(memory.recall("Whom did Ada Lovelace work with?").facts) == 2

        recall()  # which reads the index
        assert round_trips.during(recall) <= 14  # one for the trust of the sources, five for the evidence


def test_state_of_a_job_is_stored_without_a_look_at_other_rows(store: Neo4jBackend, round_trips: RoundTrips) -> None:
    """Begin, lock, read and write; the commit isn't counted."""

    def begin_job() -> None:
        state = replace(store.find_job_state(home(), "upkeep"), episodes=1)
        store.write(home(), Changes(job_states=(state,)))

    assert round_trips.during(lambda: store.atomic(begin_job)) == 4
    assert store.find_job_state(home(), "upkeep").episodes == 1


def test_passage_is_stored_in_seven(neo4j_url: str, store: Neo4jBackend, round_trips: RoundTrips) -> None:
    """Begin and commit, episode, names, known facts, what a write looks at, and the write."""
    options: dict[str, Any] = {"extractor": "none", "embeddings": "none", "background": False}
    with GraphMemory.open(neo4j_url, scope=home(), **options) as memory:
        memory.add_facts([("Ada", "works with", "Charles")])

        # the commit is the one that isn't counted
        assert round_trips.during(lambda: memory.add_facts([("Ada", "met", "Charles")])) <= 7 - 1
