"""Upkeep that is killed in the middle leaves nothing half done, and the next run finishes it."""

from __future__ import annotations

import random
import threading
from collections import Counter
from multiprocessing.connection import Connection

import pytest
from children import child, heard
from conftest import OpenMemory
from crashed import assert_no_episode_is_half_there
from toy import ToyExtractor

from graphmem import GraphMemory, NotFound
from graphmem.models import Scope
from graphmem.registry import open_backend
from graphmem.testing.base import Contents, contents
from graphmem.testing.rows import day, edge, entity, home, put_entities, put_graph
from graphmem.upkeep.eviction import EvictionRule, evict

SCOPE = Scope()

pytestmark = [pytest.mark.slow, pytest.mark.whole_store]
RULE = EvictionRule(retention=90.0)


def forget_all_sessions(pipe: Connection, url: str, sessions: int) -> None:
    """Forget one session after the other; say each that is done."""
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, embeddings="none") as memory:
        pipe.send("ready")
        for number in range(sessions):
            memory.forget(session=f"s{number}")
            pipe.send(number)


def test_a_forget_that_is_killed_leaves_nothing_half_done_and_can_be_repeated(
    durable_url: str, open_memory: OpenMemory
) -> None:
    sessions = 12
    memory = open_memory(durable_url, embeddings="none")
    memory.ingest(
        [
            {"text": f"Person {i % 5} | visited | Place {i}\nPerson {i % 5} | knows | Person {i % 5 + 1}", **session}
            for i in range(sessions * 6)
            for session in [{"session_id": f"s{i % sessions}"}]
        ]
    )
    chance = random.Random(3)
    done = -1
    for _ in range(3):
        with child(forget_all_sessions, durable_url, sessions) as (process, pipe):
            assert pipe.recv() == "ready"
            threading.Event().wait(chance.random() * 0.05)  # somewhere in the middle of the work
            process.kill()
            done = max([done, *(said for said in _said(pipe) if isinstance(said, int))])
        store = open_backend(durable_url)
        try:
            assert_no_episode_is_half_there(store)
        finally:
            store.close()
    left = [number for number in range(sessions) if memory.session(f"s{number}")]
    assert all(number > done for number in left)
    for number in left:
        memory.forget(session=f"s{number}")
    counts = memory.stats()
    assert (counts.episodes, counts.entities, counts.edges, counts.mentions) == (0, 0, 0, 0)


def _said(pipe: Connection) -> list[object]:
    try:
        return heard(pipe)
    except NotFound:
        return []  # the session that an earlier run had forgotten


def evict_all(pipe: Connection, url: str, scope: Scope) -> None:
    """Evict; say each transaction that is done."""
    store = open_backend(url)

    def told() -> bool:
        pipe.send("step")
        return False

    pipe.send("ready")
    evict(store, scope, RULE, told, now=day(100))


def test_an_eviction_that_is_killed_is_finished_by_the_next(durable_url: str) -> None:
    store = open_backend(durable_url)
    put_graph(store, *(edge(n, n % 40, n % 40 + 1, valid_to=day(1), expired_at=day(1)) for n in range(1, 2201)))
    put_entities(store, *(entity(n) for n in range(100, 900)), entity(999, last_seen_at=day(50)))
    entities = store.stats(home()).entities
    chance = random.Random(11)
    for _ in range(3):
        with child(evict_all, durable_url, home()) as (process, pipe):
            assert pipe.recv() == "ready"
            if chance.random() < 0.7:
                pipe.poll(10)  # the first transaction is done
            threading.Event().wait(chance.random() * 0.03)
            process.kill()
            heard(pipe)
        counts = store.stats(home())
        assert counts.edges % 500 in (0, 200), "a transaction is done or it isn't"
        assert counts.archived_entities == 0 or counts.edges == 0, "one thing after the other"
    done = evict(store, home(), RULE, lambda: False, now=day(100))
    counts = store.stats(home())
    assert done.finished
    assert (counts.edges, counts.archived_entities) == (0, entities - 1)
    store.close()


def merge_all(pipe: Connection, url: str, pairs: int) -> None:
    """Merge pairs until none is left; say each that is done."""
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, embeddings="none") as memory:
        pipe.send("ready")
        merged = {merge.merged.name for merge in memory.admin.merges(limit=pairs)}
        for number in range(pairs):
            if f"Copy {number}" not in merged:
                memory.admin.merge(f"Copy {number}", into=f"Person {number}")
                pipe.send(number)


def unmerge_all(pipe: Connection, url: str, pairs: int) -> None:
    """Undo merges until none is left; say each that is done."""
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, embeddings="none") as memory:
        pipe.send("ready")
        for merge in memory.admin.merges(limit=pairs):
            memory.admin.unmerge(merge.id)
            pipe.send(merge.id)


def rows(found: Contents) -> tuple[object, ...]:
    """Everything but the ledger."""
    return found.entities, found.aliases, sorted(found.edges, key=lambda e: e.id), found.episodes, found.mentions


def test_merges_and_their_undoing_that_are_killed_leave_no_trace(durable_url: str, open_memory: OpenMemory) -> None:
    pairs = 16
    memory = open_memory(durable_url, embeddings="none")
    memory.ingest(
        [
            {"text": f"{name} {n} | visited | Place {n}\nPerson {n} | knows | Copy {n + 1}\n{name} {n} | likes | Tea"}
            for n in range(pairs)
            for name in ("Person", "Copy")
        ]
    )
    store = open_backend(durable_url)
    before, entities = rows(contents(store, SCOPE)), store.stats(SCOPE).entities
    chance = random.Random(12)
    for work in (merge_all, merge_all, unmerge_all, unmerge_all):
        with child(work, durable_url, pairs) as (process, pipe):
            assert pipe.recv() == "ready"
            pipe.poll(10)  # the first is done
            threading.Event().wait(chance.random() * 0.1)
            process.kill()
            heard(pipe)
        open_merges = memory.admin.merges(limit=pairs)
        gone = Counter(merge.merged.id for merge in open_merges)
        there = {entity.id for entity in contents(store, SCOPE).entities}
        assert not gone.keys() & there, "a merge is whole or it isn't"
        assert len(gone) + len(there) == entities
    for merge in memory.admin.merges(limit=pairs):
        memory.admin.unmerge(merge.id)
    assert rows(contents(store, SCOPE)) == before
    store.close()
