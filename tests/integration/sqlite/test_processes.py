"""Several processes and threads on one file."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphmem import GraphMemory
from graphmem.errors import BackendUnavailable
from graphmem.models import EdgeQuery, EntityQuery, Episode, EpisodeQuery
from tests.integration.sqlite.support import SCOPE, entity, files_in, of, raw, run_at_once, start, store_at

PROCESSES = 4
NAMES = 30
OPEN_FILES = Path("/proc/self/fd")

# Each process resolves every name and writes those that nobody has written, then states a fact of its own.
WRITE_SAME_NAMES = """
import sys
from datetime import UTC, datetime
from graphmem.models import Alias, Changes, Edge, Entity, Scope
from graphmem_sqlite import open_backend

path, names, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
scope, moment = Scope("tests"), datetime(2026, 1, 1, tzinfo=UTC)
store = open_backend(f"sqlite:///{path}")
print("ready", flush=True)
sys.stdin.readline()

def resolve(name):
    for _, found in store.resolve_names(scope, [name]):
        return found
    made = Entity(scope=scope, name=name, canonical_name=name, entity_type="person",
                  first_seen_at=moment, last_seen_at=moment)
    store.write(scope, Changes(entities=(made,), aliases=(Alias(alias=name, entity_type="person", entity_id=made.id),)))
    return made

def state(n):
    ends = resolve(f"name {n}"), resolve(f"name {n + 1}")
    edge = Edge(scope=scope, source_id=ends[0].id, target_id=ends[1].id, relation=f"stated_by_{number}",
                valid_from=moment)
    store.write(scope, Changes(edges=(edge,)))

for n in range(names - 1):
    store.atomic(lambda: state(n))
store.close()
"""

OPEN_NEW = """
import sys
from graphmem_sqlite import open_backend

print("ready", flush=True)
sys.stdin.readline()
store = open_backend(f"sqlite:///{sys.argv[1]}")
print(dict((what, detail) for what, _, detail in store.diagnose())["schema"])
store.close()
"""

OPEN_AND_CLOSE = """
import sys
from graphmem.models import Episode, Scope
from graphmem_sqlite import open_backend

print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[2])):
    store = open_backend(f"sqlite:///{sys.argv[1]}")
    store.add_episodes(Scope("tests"), [Episode(scope=Scope("tests"), text="said " * 5000)])
    store.close()
"""

ACKNOWLEDGE = """
import sys
from graphmem.models import Episode, Scope
from graphmem_sqlite import open_backend

store = open_backend(f"sqlite:///{sys.argv[1]}")
while True:
    episode = Episode(scope=Scope("tests"), text="said")
    store.add_episodes(Scope("tests"), [episode])
    print(episode.id, flush=True)
"""


DIE_OF_ONE_TEXT = """
import os, sys
from graphmem import GraphMemory
from graphmem.protocols import Extraction

class Dies:
    name, batch_size = "dies", 3

    def extract(self, requests):
        if any(request.episode.text == "too long" for request in requests):
            os._exit(9)
        return [Extraction() for _ in requests]

with GraphMemory.open(f"sqlite:///{sys.argv[1]}", extractor=Dies(), embeddings="none", background=False) as memory:
    memory.flush()
"""


def test_processes_that_write_the_same_names_make_one_entity_each(tmp_path: Path) -> None:
    run_at_once(WRITE_SAME_NAMES, PROCESSES, tmp_path / "memory.db", NAMES)
    store = store_at(tmp_path / "memory.db")
    names = [e.name for e in store.find_entities([SCOPE], EntityQuery())]
    store.close()
    assert sorted(names) == sorted(f"name {n}" for n in range(NAMES))


def test_processes_that_write_at_once_lose_no_write(tmp_path: Path) -> None:
    run_at_once(WRITE_SAME_NAMES, PROCESSES, tmp_path / "memory.db", NAMES)
    store = store_at(tmp_path / "memory.db")
    edges = store.find_edges([SCOPE], EdgeQuery(), limit=10_000)
    store.close()
    assert len({(e.source_id, e.target_id, e.relation) for e in edges}) == PROCESSES * (NAMES - 1)


@pytest.mark.slow
def test_processes_that_open_a_new_file_at_once_all_get_the_whole_schema(tmp_path: Path) -> None:
    for attempt in range(3):
        newest = run_at_once(OPEN_NEW, PROCESSES, tmp_path / f"memory{attempt}.db")
        assert len(set(newest)) == 1


def test_a_migration_is_recorded_once_when_processes_race(tmp_path: Path) -> None:
    run_at_once(OPEN_NEW, PROCESSES, tmp_path / "memory.db")
    with raw(tmp_path / "memory.db") as connection:
        numbers = [n for (n,) in connection.execute("SELECT number FROM schema_migrations ORDER BY number")]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.slow
def test_a_text_that_ends_each_process_that_extracts_it_fails_alone(tmp_path: Path) -> None:
    with GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", extractor="none", background=False) as memory:
        for text in ("one", "two", "too long", "three", "four"):
            memory.remember(text)
        codes = list[int]()
        while not codes or codes[-1]:
            codes.append(start(DIE_OF_ONE_TEXT, tmp_path / "memory.db").wait(60))
        assert codes == [9, 9, 9, 0]
        assert [letter.attempts for letter in memory.admin.dead_letters()] == [3]
        assert memory.stats().pending_episodes == 0


def test_what_was_acknowledged_survives_a_killed_process(tmp_path: Path) -> None:
    process = start(ACKNOWLEDGE, tmp_path / "memory.db")
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(20)]
    os.kill(process.pid, signal.SIGKILL)
    acknowledged += process.communicate(timeout=60)[0].split()
    store = store_at(tmp_path / "memory.db")
    stored = {e.id for e in store.find_episodes([SCOPE], EpisodeQuery(), limit=100_000)}
    store.close()
    assert {i for i in acknowledged if len(i) == 36} <= stored


def test_another_process_sees_a_write_at_once(tmp_path: Path) -> None:
    one, two = store_at(tmp_path / "memory.db"), store_at(tmp_path / "memory.db")
    two.stats(SCOPE)
    one.write(SCOPE, of(entity("Anna")))
    assert two.stats(SCOPE).entities == 1
    one.close()
    two.close()


def test_closing_one_of_two_stores_on_a_file_leaves_the_locks_of_the_other(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    one, two = store_at(path), store_at(path)
    two.close()
    one.write(SCOPE, of(entity("Anna")))
    # were the lock of `one` gone, another process would take itself for the last user and drop the log
    run_at_once(OPEN_NEW, 1, path)
    assert path.with_name("memory.db-wal").exists()
    one.close()


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="the open files of a process are read from /proc")
def test_threads_that_end_leave_no_connections_behind(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")

    def files_open_after_threads() -> int:
        for _ in range(100):
            thread = threading.Thread(target=store.stats, args=[SCOPE])
            thread.start()
            thread.join()
        return len(list(OPEN_FILES.iterdir()))

    assert files_open_after_threads() == files_open_after_threads()
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system doesn't fork")
def test_a_forked_process_is_told_to_open_the_store_again(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    child = os.fork()
    if child == 0:
        try:
            store.stats(SCOPE)
        except BackendUnavailable as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    store.close()
    assert os.waitstatus_to_exitcode(status) == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system doesn't fork")
def test_a_forked_process_can_close_a_store_that_a_thread_of_its_parent_was_writing_to(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    writes, forked = threading.Event(), threading.Event()

    def write() -> None:
        writes.set()
        forked.wait()
        store.write(SCOPE, of(entity("Anna")))

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(store.atomic, write)
        writes.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends this process if it waits for the lock of the thread that stayed in the parent
            store.close()
            again = store_at(tmp_path / "memory.db")
            again.stats(SCOPE)
            again.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        forked.set()
        written.result()
    assert store.stats(SCOPE).entities == 1
    store.close()
    assert os.waitstatus_to_exitcode(status) == 0


def test_processes_that_open_and_close_a_store_at_once_all_find_it_whole(tmp_path: Path) -> None:
    rounds = 25
    run_at_once(OPEN_AND_CLOSE, PROCESSES, tmp_path / "memory.db", rounds)
    store = store_at(tmp_path / "memory.db")
    assert store.stats(SCOPE).episodes == PROCESSES * rounds
    store.close()


def test_threads_that_open_and_close_a_store_at_once_lose_no_write(tmp_path: Path) -> None:
    def write(_: int) -> None:
        for _ in range(10):
            store = store_at(tmp_path / "memory.db")
            store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="said")])
            store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    store = store_at(tmp_path / "memory.db")
    assert store.stats(SCOPE).episodes == 40
    store.close()


def test_closing_leaves_one_file(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    store.write(SCOPE, of(entity("Anna")))
    store.stats(SCOPE)
    store.close()
    assert list(files_in(tmp_path)) == ["memory.db"]


def test_the_log_does_not_grow_with_what_is_written(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    for _ in range(60):
        store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="x" * 1_000_000)])
    log = (tmp_path / "memory.db-wal").stat().st_size
    store.close()
    assert log < 40_000_000
