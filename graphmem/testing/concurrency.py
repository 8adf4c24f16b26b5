"""Tests with several writers: no write is lost or missed by a reader, and who holds another mark is refused.

The mark is that of a migration.
"""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event

import pytest

from graphmem.errors import Conflict, StoreMoved
from graphmem.models import Changes, EdgeQuery, EntityQuery, EpisodeQuery, IndexEntry, JobState, Move
from graphmem.protocols import GraphBackend
from graphmem.testing.base import PATIENCE, StoreTests, contents, everything, in_threads
from graphmem.testing.rows import (
    FUTURE,
    all_scopes,
    claimer,
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    numbers_of,
    project,
    put_entities,
    put_episodes,
    put_graph,
)

THREADS = 4
ROUNDS = 15


class ThreadTests(StoreTests):
    """Any method may be called from any thread."""

    def test_retrievals_of_many_threads_are_all_counted(self, store: GraphBackend) -> None:
        _count_in_threads([store] * THREADS)

    def test_what_two_threads_write_is_all_there(self, store: GraphBackend) -> None:
        _write_in_threads([store] * THREADS)

    def test_in_threads_a_transaction_reads_and_writes_with_no_other_writer_between(self, store: GraphBackend) -> None:
        _increment_in_threads([store] * THREADS)

    def test_of_writers_of_one_name_one_wins_and_the_others_are_told(self, store: GraphBackend) -> None:
        _race_for_a_name([store] * THREADS)

    def test_in_threads_claimers_never_share_an_episode(self, store: GraphBackend) -> None:
        _claim_in_threads([store] * THREADS)

    def test_an_external_id_that_many_threads_bring_is_stored_once(self, store: GraphBackend) -> None:
        _add_in_threads([store] * THREADS)

    def test_in_threads_a_reader_of_the_index_misses_no_entry(self, store: GraphBackend) -> None:
        _follow_in_threads([store] * THREADS)

    def test_reads_go_on_while_another_thread_writes(self, store: GraphBackend) -> None:
        put_entities(store, entity(1000))

        def write() -> int:
            for n in range(ROUNDS):
                put_graph(store, edge(n, 2 * n, 2 * n + 1))
            return ROUNDS

        def read() -> int:
            counts = [0]
            while counts[-1] < ROUNDS:
                counts.append(len(store.find_edges([home()], EdgeQuery())))
            assert counts == sorted(counts)
            return counts[-1]

        assert in_threads([write, read, read]) == [ROUNDS, ROUNDS, ROUNDS]

    def test_all_reads_of_a_snapshot_are_of_one_state(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        begun, written = Event(), Event()

        def write() -> list[int]:
            assert begun.wait(PATIENCE)
            put_entities(store, entity(2))
            written.set()
            return numbers()

        def numbers(of: GraphBackend = store) -> list[int]:
            return numbers_of(of.find_entities([home()], EntityQuery()))

        def read(at_once: GraphBackend) -> list[int]:
            first = numbers(at_once)
            begun.set()
            written.wait(0.5)  # a store may block the writer
            return [*first, *numbers(at_once)]

        assert in_threads([lambda: store.snapshot(read), write]) == [[1, 1], [1, 2]]
        assert numbers() == [1, 2]

    def test_a_snapshot_inside_of_a_transaction_sees_what_that_wrote(self, store: GraphBackend) -> None:
        def work() -> list[int]:
            put_entities(store, entity(1))
            return store.snapshot(lambda at_once: numbers_of(at_once.find_entities([home()], EntityQuery())))

        assert store.atomic(work) == [1]


class ConnectionTests(StoreTests):
    """Two connections to one store see each other's writes and don't interfere."""

    def test_what_one_connection_wrote_the_other_reads(self, store: GraphBackend, second: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        put_episodes(store, 1)
        assert everything(second) == everything(store)

    def test_every_write_of_either_is_seen_by_the_other_at_once(
        self, store: GraphBackend, second: GraphBackend
    ) -> None:
        for n in range(ROUNDS):
            writer, reader = (store, second) if n % 2 else (second, store)
            put_entities(writer, entity(n))
            assert len(reader.find_entities([home()], EntityQuery())) == n + 1

    def test_closing_one_connection_leaves_the_other_working(self, store: GraphBackend) -> None:
        second = self.reopen(store)
        if second is None:
            pytest.skip("this store has one connection only")
        put_entities(second, entity(1))
        second.close()
        put_entities(store, entity(2))
        assert len(store.find_entities([home()], EntityQuery())) == 2

    def test_retrievals_are_all_counted(self, store: GraphBackend, second: GraphBackend) -> None:
        _count_in_threads([store, second])

    def test_what_both_write_at_once_is_all_there(self, store: GraphBackend, second: GraphBackend) -> None:
        _write_in_threads([store, second])

    def test_through_two_connections_a_transaction_reads_and_writes_with_no_other_writer_between(
        self, store: GraphBackend, second: GraphBackend
    ) -> None:
        _increment_in_threads([store, second])

    def test_of_writers_of_one_name_one_wins_and_the_other_is_told(
        self, store: GraphBackend, second: GraphBackend
    ) -> None:
        _race_for_a_name([store, second])

    def test_through_two_connections_claimers_never_share_an_episode(
        self, store: GraphBackend, second: GraphBackend
    ) -> None:
        _claim_in_threads([store, second])

    def test_claims_are_seen_and_released_by_the_other(self, store: GraphBackend, second: GraphBackend) -> None:
        put_episodes(store, 1)
        one, other = claimer("a"), claimer("b")
        store.claim_episodes(one, now=day(1), until=FUTURE, limit=1, scopes=[home()])
        assert second.claim_episodes(other, now=day(1), until=FUTURE, limit=1, scopes=[home()]) == []
        assert one in second.claim_owners(day(1))
        assert len(second.release_claims([one])) == 1

    def test_through_two_connections_a_reader_of_the_index_misses_no_entry(
        self, store: GraphBackend, second: GraphBackend
    ) -> None:
        _follow_in_threads([store, store, second, second])

    def test_an_external_id_that_both_bring_is_stored_once(self, store: GraphBackend, second: GraphBackend) -> None:
        _add_in_threads([store, second])


def _count_in_threads(stores: list[GraphBackend]) -> None:
    put_graph(stores[0], edge(1, 1, 2), edge(2, 2, 3))

    def count(store: GraphBackend) -> None:
        for _ in range(ROUNDS):
            store.record_retrievals([home()], [edge_id(1)], day(1))

    in_threads([partial(count, store) for store in stores])
    total = ROUNDS * len(stores)
    assert [row.retrieval_count for row in stores[0].find_edges([home()], EdgeQuery())] == [total, 0]
    assert [row.access_count for row in stores[0].find_entities([home()], EntityQuery())] == [total, total, 0]


def _write_in_threads(stores: list[GraphBackend]) -> None:
    def write(store: GraphBackend, start: int) -> None:
        for n in range(ROUNDS):
            put_graph(store, edge(start + n, start + 2 * n, start + 2 * n + 1))

    in_threads([partial(write, store, 1000 * n) for n, store in enumerate(stores)])
    found = stores[0].stats(home())
    assert (found.edges, found.entities) == (ROUNDS * len(stores), 2 * ROUNDS * len(stores))


def _increment_in_threads(stores: list[GraphBackend]) -> None:
    put_entities(stores[0], entity(1))

    def increment(store: GraphBackend) -> None:
        (row,) = store.find_entities([home()], EntityQuery(ids=(entity_id(1),)))
        put_entities(store, row.changed(access_count=row.access_count + 1))

    def many(store: GraphBackend) -> None:
        for _ in range(ROUNDS):
            store.atomic(partial(increment, store))

    in_threads([partial(many, store) for store in stores])
    (row,) = stores[0].find_entities([home()], EntityQuery())
    assert row.access_count == ROUNDS * len(stores)


def _race_for_a_name(stores: list[GraphBackend]) -> None:
    def race(store: GraphBackend, number: int) -> list[bool]:
        return [_succeeds(partial(put_entities, store, entity(100 * n + number, name=f"Name {n}"))) for n in range(9)]

    won = in_threads([partial(race, store, n) for n, store in enumerate(stores)])
    assert [sum(column) for column in zip(*won, strict=True)] == [1] * 9
    winners = [100 * n + column.index(True) for n, column in enumerate(zip(*won, strict=True))]
    assert numbers_of(stores[0].find_entities([home()], EntityQuery())) == winners


def _succeeds(work: Callable[[], None]) -> bool:
    try:
        work()
    except Conflict:
        return False
    return True


def _claim_in_threads(stores: list[GraphBackend]) -> None:
    for scope, start in ((home(), 0), (project(), 30)):
        put_episodes(stores[0], *range(start, start + 30), scope=scope)

    def claim(store: GraphBackend, owner: str) -> list[int]:
        taken: list[int] = []
        while rows := store.claim_episodes(claimer(owner), now=day(1), until=FUTURE, limit=2, scopes=all_scopes()):
            taken += numbers_of(rows)
        return taken

    taken = in_threads([partial(claim, store, f"owner {n}") for n, store in enumerate(stores)])
    assert sorted(n for part in taken for n in part) == list(range(60))


def _add_in_threads(stores: list[GraphBackend]) -> None:
    def add(store: GraphBackend, number: int) -> list[tuple[str, bool]]:
        rows = [episode(100 * number + n, external_id=f"x{n}") for n in range(ROUNDS)]
        return [added for row in rows for added in store.add_episodes(home(), [row])]

    results = in_threads([partial(add, store, n) for n, store in enumerate(stores)])
    for n, answers in enumerate(zip(*results, strict=True)):
        assert len({given for given, _ in answers}) == 1
        assert [created for _, created in answers].count(True) == 1
        assert answers[0][0] in {episode_id(100 * number + n) for number in range(len(stores))}
    assert len(stores[0].find_episodes([home()], EpisodeQuery())) == ROUNDS


def _follow_in_threads(stores: list[GraphBackend]) -> None:
    """Write index entries with all stores but the last, which reads on behind the last position that it saw."""
    *writers, follower = stores
    keys = [[f"name {n} {i}" for i in range(ROUNDS)] for n in range(len(writers))]
    ended = [Event() for _ in writers]

    def write(n: int) -> list[str]:
        try:
            for key in keys[n]:
                entry = IndexEntry(kind="name", key=key, model="m")
                writers[n].write(home(), Changes(index=(entry,)))
        finally:
            ended[n].set()
        return []

    def follow() -> list[str]:
        seen, position, ending = list[str](), 0, False
        while not ending:
            ending = all(event.is_set() for event in ended)  # asked before the last read
            found = follower.read_index(home(), after=position)
            seen += [entry.key for entry in found]
            position = found[-1].position if found else position
        return seen

    *_, seen = in_threads([*(partial(write, n) for n in range(len(writers))), follow])
    assert sorted(seen) == sorted(key for part in keys for key in part)


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
        assert empty_store.snapshot(lambda store: store.read_move()) == MOVE
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
        assert (contents(empty_store, home()), empty_store.claim_owners(day(1))) == (before, [])

    def test_a_mark_is_set_when_transactions_of_the_former_one_have_ended(self, empty_store: GraphBackend) -> None:
        put_entities(empty_store, entity(1))
        begun, moved = Event(), Event()

        def work() -> bool:
            put_entities(empty_store, entity(2))
            begun.set()
            return moved.wait(0.5)  # a store makes `set_move` wait, or refuses the transaction at its end

        def write() -> bool:
            try:
                return empty_store.atomic(work)
            except StoreMoved:
                return False

        def move() -> bool:
            assert begun.wait(PATIENCE)
            was_set = empty_store.set_move(MOVE, replacing=None)
            moved.set()
            return was_set

        assert in_threads([write, move]) == [False, True]

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
