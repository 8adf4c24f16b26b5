"""The gauges of a store: read rarely, and by nobody who would wait for another reader."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import Any, cast

import pytest

from graphmem import diagnostics
from graphmem.diagnostics import Gauges
from graphmem.models import Episode, Scope, StoreStats
from graphmem.protocols import GraphBackend


class Store:
    """A store of two scopes that can hang, fail, and counts its readings."""

    identity = "a store"

    def __init__(self) -> None:
        self.read, self.fails = 0, False
        self.entered, self.released = threading.Event(), threading.Event()
        self.released.set()

    def stats(self, scope: Scope) -> StoreStats:
        self.read += 1
        self.entered.set()
        assert self.released.wait(60)
        if self.fails:
            raise OSError("away")
        return StoreStats(entities=5, archived_entities=1, active_edges=3, pending_episodes=2, failed_episodes=1)

    def find_episodes(self, *_: Any, **__: Any) -> list[Episode]:
        return []


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def gauges(store: Store) -> Gauges:
    return Gauges(cast("GraphBackend", store), lambda: [Scope(), Scope.from_text("other")])


EXPECTED = {
    "graph_entities_count": 4,
    "graph_relationships_count": 3,
    "graph_queue_depth": 2,
    "graph_queue_failed": 1,
}


def expected(gauges: Gauges) -> dict[Hashable, Mapping[str, float]]:
    """Return the gauges of both scopes, and the age."""
    scopes = ("a store", Scope()), ("a store", Scope.from_text("other"))
    return {**dict.fromkeys(scopes, EXPECTED), gauges: {"graph_queue_age_seconds": 0}}


def test_they_are_read_for_each_scope_once_in_a_while(store: Store, gauges: Gauges) -> None:
    assert gauges.read() == gauges.read() == expected(gauges)
    assert store.read == 2


def test_a_second_reader_does_not_wait_for_a_store_that_hangs(store: Store, gauges: Gauges) -> None:
    store.released.clear()
    first = threading.Thread(target=gauges.read)
    first.start()
    assert store.entered.wait(60)
    assert gauges.read() == {}
    store.released.set()
    first.join(60)
    assert gauges.read() == expected(gauges)


def test_a_store_that_fails_has_none_until_it_answers(
    store: Store, gauges: Gauges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "_GAUGE_SECONDS", 0.0)
    monkeypatch.setattr(diagnostics, "_GAUGE_SHARE", 0)
    assert gauges.read() == expected(gauges)
    store.fails = True
    assert gauges.read() == {}
    store.fails = False
    assert gauges.read() == expected(gauges)


def test_after_the_end_nothing_is_read(store: Store, gauges: Gauges) -> None:
    gauges.close()
    assert gauges.read() == {}
    assert store.read == 0


def test_a_reading_that_ends_after_the_end_counts_for_nothing(store: Store, gauges: Gauges) -> None:
    store.released.clear()
    first = threading.Thread(target=gauges.read)
    first.start()
    assert store.entered.wait(60)
    gauges.close()
    store.released.set()
    first.join(60)
    assert gauges.read() == {}
