"""Many writers at once: each name becomes one entity, each fact one edge, and nobody is told of a deadlock."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest

from graphmem import GraphMemory
from graphmem.models import Changes, Edge, EdgeQuery, Entity, EntityQuery, IndexEntry, ProcessingResult, Removal
from graphmem.testing.base import in_threads
from graphmem.testing.rows import day, elsewhere, episode, home, scope_of
from graphmem_neo4j import Neo4jBackend, open_backend
from tests.integration.neo4j.support import ask, edge, entity, of

WRITERS = 8
NAMES = [f"Name {n}" for n in range(100)]


@pytest.fixture
def stores(empty_neo4j_url: str) -> Generator[list[Neo4jBackend], None, None]:
    stores = [open_backend(empty_neo4j_url) for _ in range(WRITERS)]
    yield stores
    for store in stores:
        store.close()


def test_eight_writers_that_resolve_the_same_hundred_names_make_a_hundred_entities(stores: list[Neo4jBackend]) -> None:
    def resolve(number: int, store: Neo4jBackend) -> None:
        names = random.Random(number).sample(NAMES, len(NAMES))
        for start in range(0, len(names), 10):
            part = names[start : start + 10]
            store.atomic(lambda part=part: _resolve(store, part))

    in_threads([lambda n=n, s=s: resolve(n, s) for n, s in enumerate(stores)])
    found = stores[0].find_entities([home()], EntityQuery())
    assert sorted(e.name for e in found) == sorted(NAMES)
    assert stores[0].stats(home()).aliases == len(NAMES)


def test_transactions_that_lock_two_scopes_in_either_order_all_come_through(stores: list[Neo4jBackend]) -> None:
    one, two = scope_of("tests", "one"), scope_of("tests", "two")

    def cross(number: int, store: Neo4jBackend) -> None:
        first, second = (one, two) if number % 2 else (two, one)

        def work() -> None:
            store.write(first, of(entity(f"Name {number}", first)))
            store.write(second, of(entity(f"Name {number}", second)))

        store.atomic(work)

    in_threads([lambda n=n, s=s: cross(n, s) for n, s in enumerate(stores[:4])])
    assert [stores[0].stats(scope).entities for scope in (one, two)] == [4, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system doesn't fork")
def test_a_forked_process_that_closes_a_store_leaves_the_connections_of_its_parent(stores: list[Neo4jBackend]) -> None:
    runs: list[int] = []

    def work() -> None:
        stores[0].write(home(), of(entity("Anna", home())))
        runs.append(os.fork())
        if runs[-1] == 0:
            stores[0].close()
            os._exit(0)
        os.waitpid(runs[-1], 0)
        stores[0].stats(home())

    stores[0].atomic(work)
    assert len(runs) == 1  # a lost connection would have it run again


def test_a_fact_that_all_bring_at_once_is_stored_once(stores: list[Neo4jBackend]) -> None:
    anna, berta = entity("Anna", home()), entity("Berta", home())
    stores[0].write(home(), of(anna, berta))

    def bring(store: Neo4jBackend) -> bool:
        return store.atomic(lambda: _bring(store, edge(anna, berta)))

    brought = in_threads([lambda s=s: bring(s) for s in stores])
    assert (sum(brought), stores[0].stats(home()).edges) == (1, 1)


WRITES_THAT_COUNT: dict[str, Callable[[Entity], Changes]] = {
    "index entries": lambda row: Changes(index=(IndexEntry(kind="entity", key=row.id, model="m"),)),
    "a removal": lambda row: Changes(removals=(Removal("entity", row.id),)),
}


@pytest.mark.parametrize("changes_of", WRITES_THAT_COUNT.values(), ids=list(WRITES_THAT_COUNT))
def test_a_writer_that_waits_for_another_is_not_told_of_a_deadlock(
    stores: list[Neo4jBackend], caplog: pytest.LogCaptureFixture, changes_of: Callable[[Entity], Changes]
) -> None:
    caplog.set_level(logging.INFO, "graphmem_neo4j.retries")
    row = entity("Anna", home())
    stores[0].write(home(), Changes(entities=(row,), index=(IndexEntry(kind="entity", key=row.id, model="m"),)))
    waiting = Thread(target=lambda: stores[1].write(home(), of(entity("Berta", home()))))

    def work() -> None:
        stores[0].write(home(), of(entity("Carla", home())))  # locks the scope
        if not waiting.is_alive():
            waiting.start()
        _wait_until_blocked(stores[2])
        stores[0].write(home(), changes_of(row))

    stores[0].atomic(work)
    waiting.join()
    assert "will be retried" not in caplog.text


def test_a_turn_waits_for_the_lock_of_its_own_scope_only(neo4j_url: str) -> None:
    held, released = Event(), Event()
    with GraphMemory.open(neo4j_url, scope=home(), extractor="none", embeddings="none", background=False) as memory:
        backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]

        def hold() -> None:
            backend.write(home(), of(entity("Anna", home())))
            held.set()
            released.wait(30)

        holder = Thread(target=backend.atomic, args=(hold,))
        holder.start()

        async def run() -> bool:
            await asyncio.get_running_loop().run_in_executor(None, held.wait, 30)
            waiting = asyncio.create_task(memory.aremember("waits"))
            await asyncio.sleep(0)
            await memory.in_scope(elsewhere()).aremember("does not wait")
            waited = not waiting.done()
            released.set()
            return waited and (await waiting).created

        assert asyncio.run(run())
        holder.join()


@pytest.mark.parametrize("state", ["dead letter", "delayed", "claimed", "newer"])
def test_a_claim_locks_only_the_scopes_of_the_oldest_episodes_that_are_due(
    stores: list[Neo4jBackend], state: str
) -> None:
    now, due = day(1), episode(1, elsewhere())
    other = episode(2, attempts=3, error="unreadable") if state == "dead letter" else episode(2)
    stores[0].add_episodes(home(), [other])
    stores[0].add_episodes(elsewhere(), [due])
    if state == "delayed":
        stores[0].write(home(), Changes(results=(ProcessingResult(other.id, error="away", retry_at=day(2)),)))
    if state == "claimed":
        stores[0].claim_episodes("another worker", now=now, until=day(2), limit=9, scopes=[home()])
    held, released = Event(), Event()

    def hold() -> None:
        stores[0].write(home(), of(entity("Anna", home())))
        held.set()
        released.wait(30)

    with ThreadPoolExecutor() as threads:
        holder = threads.submit(stores[0].atomic, hold)
        assert held.wait(30)
        claim = threads.submit(stores[1].claim_episodes, "worker", now=now, until=day(2), limit=1)
        try:
            assert [each.id for each in claim.result(10)] == [due.id]
        finally:
            released.set()
            holder.result()


def _wait_until_blocked(store: Neo4jBackend) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if any(status.startswith("Blocked by") for status in ask(store, "SHOW TRANSACTIONS YIELD status")):
            return
    raise AssertionError("nobody waits for the lock")


def _resolve(store: Neo4jBackend, names: list[str]) -> None:
    known = {name for name, _ in store.resolve_names(home(), [name.lower() for name in names])}
    fresh = [entity(name, home()) for name in names if name.lower() not in known]
    store.write(home(), of(*fresh))


def _bring(store: Neo4jBackend, fact: Edge) -> bool:
    if store.find_edges([home()], EdgeQuery(keys=(fact.key,), versions="active")):
        return False
    store.write(home(), Changes(edges=(fact,)))
    return True
