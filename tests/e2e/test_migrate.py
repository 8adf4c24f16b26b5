"""A memory moves to another store while it is written and read: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from children import toy_text
from moving import asking, assert_equal, assert_stored, migration, opened, set_login
from shell import TRIPLES, Shell
from test_transfer import fill

from graphmem import GraphMemory, StoreMoved
from graphmem.migrate.verify import verify
from graphmem.models import Scope
from graphmem.registry import open_backend

PAIRS = ["memory-sqlite", "sqlite-memory", "sqlite-sqlite", "sqlite-neo4j", "neo4j-sqlite"]


@pytest.fixture(params=PAIRS[:3])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Return the URLs of a source and an empty target."""
    kinds = request.param.split("-")
    names = {"memory": f"memory://{tmp_path.name}", "sqlite": f"sqlite:///{tmp_path}/"}
    source, target = (names[kind] + (f"{i}.db" if kind == "sqlite" else "") for i, kind in enumerate(kinds))
    return source, target


class Writers:
    """Threads that remember and recall through memories of their own."""

    def __init__(self, *memories: GraphMemory) -> None:
        self._stop = threading.Event()
        self.acknowledged: list[str] = []
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(m, f"w{i}")) for i, m in enumerate(memories)]

    def _run(self, memory: GraphMemory, name: str) -> None:
        number = 0
        while not self._stop.wait(0.01):
            try:
                receipt = memory.remember(toy_text(name, number), external_id=f"{name}/{number}")
                self.acknowledged.append(receipt.episode_id)
                number += 1
                memory.recall(f"Whom does Person {number % 7} know?")
            except Exception as error:  # noqa: BLE001 - the test has to hear of it
                self.errors.append(error)
                return

    def wait_for(self, more: int) -> None:
        """Wait until that many further turns are acknowledged."""
        goal = len(self.acknowledged) + more
        while len(self.acknowledged) < goal and not self.errors:
            time.sleep(0.01)
        assert self.errors == []

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self.errors == []


def move(source: str, target: str, scope: Scope) -> None:
    """Move a memory there, back and there again, beside two writers."""
    with opened(source) as one, opened(source) as two:
        fill(one)
        with Writers(one, two) as writers, closing(migration(source, target)) as moved:
            assert moved.advance("copy") == "copying"
            moved.copy()  # a process may have copied a small scope before
            writers.wait_for(30)
            assert moved.advance("cutover") == "cut"
            writers.wait_for(30)
            assert moved.advance("rollback") == "copying"
            writers.wait_for(30)
            assert moved.advance("cutover") == "cut"
            writers.wait_for(10)
            busy = verify(*moved.ends(), [scope])
        one.flush()
        with closing(migration(source)) as moved:
            assert_equal(moved, scope)
            assert busy.differences == ()  # a server may be behind all the time
            with ExitStack() as asked:
                found = verify(*moved.ends(), [scope], asking(asked), 20)
            assert (found.is_equal, found.recalls, found.searches) == (True, 20, 20)
            assert moved.advance("cleanup") == "moved"
        receipt = one.remember("Ada | moved | Paris")
        writers.acknowledged.append(receipt.episode_id)
        assert two.search("Ada moved").found[0].episode.id == receipt.episode_id
    with closing(open_backend(target)) as store:
        assert_stored(store, scope, writers.acknowledged)
    with pytest.raises(StoreMoved, match="was moved to"):
        opened(source)


@pytest.mark.slow
@pytest.mark.full
def test_a_memory_moves_there_and_back_while_it_is_written(urls: tuple[str, str]) -> None:
    move(*urls, Scope())


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.whole_store
@pytest.mark.parametrize("pair", ["sqlite-neo4j", "neo4j-sqlite"])
def test_a_memory_moves_to_and_from_a_server(
    pair: str, empty_neo4j_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_login(monkeypatch, empty_neo4j_url)
    file = f"sqlite:///{tmp_path}/memory.db"
    move(*((file, empty_neo4j_url) if pair == "sqlite-neo4j" else (empty_neo4j_url, file)), Scope())


@pytest.mark.slow
def test_the_commands_move_a_memory(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    old, new = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    shell.write("facts.csv", TRIPLES)
    assert shell.run("ingest", "facts.csv", "--store", old).code == 0
    begun = shell.run("migrate", "copy", new, "--store", old, "--rate", "100000", "--json")
    assert (begun.code, begun.document["phase"], begun.document["behind"]) == (0, "copying", [])
    checked = shell.run("migrate", "verify", "--questions", "4", "--store", old, "--json")
    assert (checked.code, checked.document["differences"], checked.document["recalls"]) == (0, [], 4)
    for command, phase in (("cutover", "cut"), ("rollback", "copying"), ("cutover", "cut"), ("cleanup", "moved")):
        done = shell.run("migrate", command, "--store", old, "--yes", "--json")
        assert (done.code, done.document["phase"]) == (0, phase)
        assert ("has answered 4 questions" in done.err) == (command != "cleanup")
    assert "Globex" in shell.run("facts", "Maya Chen", "--store", new).out
    refused = shell.run("facts", "Maya Chen", "--store", old)
    assert (refused.code, "open that store instead" in refused.err) == (3, True)
    assert "phase" in shell.run("migrate", "status", "--store", old).out
