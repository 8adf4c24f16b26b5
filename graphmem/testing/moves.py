"""Tests of the mark of a migration: who writes under another one is refused."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from graphmem.errors import StoreMoved
from graphmem.models import Changes, JobState, Move
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents
from graphmem.testing.rows import day, edge, edge_id, entity, episode, home, put_entities, put_episodes, put_graph

MOVE = Move("m1", "copying", "sqlite:////a.db", "neo4j://host", day(1))
WRITES: dict[str, Callable[[GraphBackend], object]] = {
    "write": lambda store: put_entities(store, entity(9)),
    "atomic": lambda store: store.atomic(lambda: store.write(home(), Changes(job_states=(JobState("a"),)))),
    "add_episodes": lambda store: store.add_episodes(home(), [episode(9)]),
    "claim_episodes": lambda store: store.claim_episodes("me", now=day(99), until=day(100), limit=1, scopes=[home()]),
    "record_retrievals": lambda store: store.record_retrievals([home()], [edge_id(1)], day(9)),
    "decay_retrievals": lambda store: store.decay_retrievals(
        home(), rate=1.0, idle_since=day(9), since=None, now=day(10)
    ),
    "reset_index": lambda store: store.reset_index(home()),
    "clear": lambda store: store.clear(home()),
}


class MoveTests(StoreTests):
    """A store has one mark, and is written only by objects that have adopted it."""

    def test_a_mark_comes_back_as_it_was_set(self, empty_store: GraphBackend) -> None:
        assert empty_store.read_move() is None
        assert empty_store.set_move(MOVE, replacing=None)
        assert empty_store.read_move() == MOVE
        assert empty_store.set_move(None, replacing=MOVE)
        assert empty_store.read_move() is None

    def test_a_mark_is_set_only_in_place_of_the_expected_one(self, empty_store: GraphBackend) -> None:
        other, cutting = replace(MOVE, id="m2"), replace(MOVE, state="cutting")
        assert not empty_store.set_move(cutting, replacing=MOVE)
        assert empty_store.set_move(MOVE, replacing=None)
        assert not empty_store.set_move(other, replacing=None)
        assert not empty_store.set_move(None, replacing=cutting)
        assert empty_store.read_move() == MOVE

    @pytest.mark.parametrize("name", WRITES)
    @pytest.mark.parametrize("stale", [False, True], ids=["none", "stale"])
    def test_a_write_under_another_mark_is_refused(self, empty_store: GraphBackend, name: str, stale: bool) -> None:
        put_graph(empty_store, edge(1, 1, 2, retrieval_count=2.0, last_retrieved_at=day(0)))
        put_episodes(empty_store, 1)
        before = contents(empty_store, home())
        if stale:
            empty_store.adopt(MOVE)
        now = replace(MOVE, state="cutting")
        assert empty_store.set_move(now, replacing=None)
        with pytest.raises(StoreMoved):
            WRITES[name](empty_store)
        assert (contents(empty_store, home()), empty_store.claim_owners()) == (before, [])

    def test_a_write_under_the_adopted_mark_is_stored(self, empty_store: GraphBackend) -> None:
        assert empty_store.set_move(MOVE, replacing=None)
        empty_store.adopt(MOVE)
        put_entities(empty_store, entity(1))
        assert empty_store.stats(home()).entities == 1

    def test_reads_and_scrub_need_no_mark(self, empty_store: GraphBackend) -> None:
        put_entities(empty_store, entity(1))
        assert empty_store.set_move(MOVE, replacing=None)
        empty_store.scrub()
        assert empty_store.stats(home()).entities == 1
