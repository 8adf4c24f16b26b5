"""What goes wrong in a migration: two at once, a full disk, processes of the old configuration, foreign targets."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from moving import assert_equal, migration, opened
from shell import Shell

from graphmem import BackendUnavailable, Conflict, InvalidInput, StoreFull, StoreMoved
from graphmem.migrate.service import Migration
from graphmem.migrate.states import Command, plain_url
from graphmem.models import Move, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem_sqlite import SQLiteBackend


@pytest.fixture
def urls(tmp_path: Path) -> tuple[str, str]:
    return f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"


def episodes(url: str) -> int:
    with closing(open_backend(url)) as store:
        return store.stats(Scope()).episodes


def test_a_target_with_rows_is_refused_and_left_unchanged(urls: tuple[str, str]) -> None:
    with opened(urls[1], background=False) as memory:
        memory.remember("Ada | knows | Charles")
        before = memory.admin.checksum()
    with closing(migration(*urls)) as moved, pytest.raises(InvalidInput, match="isn't empty"):
        moved.advance("copy")
    with opened(urls[1], background=False) as memory:
        assert memory.admin.checksum() == before
        memory.remember("Ada | knows | Charles")


def test_rows_that_are_written_to_a_target_before_it_is_marked_are_left_unchanged(
    urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(migration(*urls)) as moved, opened(urls[1], background=False) as memory:
        mark = moved.target.set_move

        def late(move: Move | None, *, replacing: Move | None) -> bool:
            if replacing is None:
                memory.remember("Ada | knows | Charles")
            return mark(move, replacing=replacing)

        monkeypatch.setattr(moved.target, "set_move", late)
        with pytest.raises(InvalidInput, match="isn't empty"):
            moved.advance("copy")
        memory.remember("Ada | knows | George")
        assert moved.phase == "idle"
    assert episodes(urls[1]) == 2


@pytest.mark.parametrize("end", ["cancel", "cleanup"])
def test_a_store_with_the_rows_of_another_one_is_no_target(urls: tuple[str, str], tmp_path: Path, end: Command) -> None:
    with opened(urls[0], background=False) as memory:
        memory.remember("Ada | knows | Charles")
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        moved.copy()
        if end == "cleanup":
            moved.advance("cutover")
        moved.advance(end)
    left = urls[1 if end == "cancel" else 0]
    with (
        closing(migration(f"sqlite:///{tmp_path}/c.db", left)) as other,
        pytest.raises(InvalidInput, match="isn't empty"),
    ):
        other.advance("copy")
    with closing(open_backend(left)) as store:
        assert store.stats(Scope()).episodes == 1


def test_of_two_migrations_of_a_store_at_once_one_is_refused(urls: tuple[str, str], tmp_path: Path) -> None:
    targets = [urls[1], f"sqlite:///{tmp_path}/c.db"]
    both = threading.Barrier(2)
    found: list[object] = []

    def start(target: str) -> None:
        with closing(migration(urls[0], target)) as moved:
            both.wait()
            try:
                found.append(moved.advance("copy"))
            except Conflict as error:
                found.append(error)

    threads = [threading.Thread(target=start, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(each).__name__ for each in found) == ["Conflict", "str"]
    with closing(migration(urls[0])) as moved:
        assert moved.phase == "copying"
        (loser,) = {f"sqlite:///{tmp_path}/{name}.db" for name in "bc"} - {moved.target_url}
    # it was refused after it had marked its target, or before
    refused = pytest.raises((Conflict, InvalidInput), match=r"is under way|is in no migration")
    with refused, closing(migration(loser)) as other:
        other.advance("copy")


def test_a_store_takes_part_in_one_migration_at_a_time(urls: tuple[str, str], tmp_path: Path) -> None:
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        moved.advance("cutover")
    with pytest.raises(Conflict, match="cleanup first"):
        migration(urls[1], f"sqlite:///{tmp_path}/c.db")
    with closing(migration(urls[0])) as moved:
        moved.advance("cleanup")
    with closing(migration(urls[1], f"sqlite:///{tmp_path}/c.db")) as on:
        assert on.advance("copy") == "copying"


def test_a_store_that_was_left_can_be_the_target_of_the_way_back(urls: tuple[str, str]) -> None:
    with closing(migration(*urls)) as moved:
        for command in ("copy", "cutover", "cleanup"):
            moved.advance(command)
    with opened(urls[1], background=False) as memory:
        memory.remember("Ada | knows | Charles")
    with closing(migration(urls[1], urls[0])) as back:
        for command in ("copy", "cutover", "cleanup"):
            back.advance(command)
    with opened(urls[0], background=False) as memory:
        assert memory.stats().episodes == 1


def test_a_copy_after_another_one_was_canceled_copies_what_was_written_meanwhile(urls: tuple[str, str]) -> None:
    with opened(urls[0], background=False) as memory:
        memory.add_facts([("Maya Chen", "lives in", "Lisbon"), ("Tom", "knows", "Ada")])
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        moved.copy()
        moved.advance("cancel")
    with opened(urls[0], background=False) as memory:
        memory.forget("Maya Chen")
        memory.remember("Ada | knows | Charles")
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        assert moved.status().behind == (str(Scope()),)
        assert moved.advance("cutover") == "cut"
        assert_equal(moved, Scope())
    with opened(urls[1], background=False) as memory:
        assert memory.stats().episodes == 2
        assert "Maya Chen" not in {entity.name for entity in memory.entities()}


def test_a_scope_that_was_emptied_before_the_end_of_a_migration_is_copied_by_the_next(urls: tuple[str, str]) -> None:
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        with opened(urls[0], background=False) as memory:
            memory.forget(episode=memory.remember("Ada | knows | Charles").episode_id)
        moved.copy()
        moved.advance("cancel")
    with opened(urls[0], background=False) as memory, closing(migration(*urls)) as moved:
        mark = moved.source.set_move

        def late(move: Move | None, *, replacing: Move | None) -> bool:
            if replacing is None:
                memory.remember("Ada | knows | George")  # outside of a migration to the last
            return mark(move, replacing=replacing)

        moved.source.set_move = late  # type: ignore[method-assign]
        moved.advance("copy")
        moved.advance("cutover")
    assert episodes(urls[1]) == 1


def test_a_way_back_after_the_cleanup_brings_what_was_written_since(urls: tuple[str, str]) -> None:
    with opened(urls[0], background=False) as memory:
        memory.remember("Ada | knows | Charles")
    for pair, copied in ((urls, 1), (urls[::-1], 1)):
        with closing(migration(*pair)) as moved:
            moved.advance("copy")
            assert moved.copy() == copied
            moved.advance("cutover")
            assert_equal(moved, Scope())
            moved.advance("cleanup")
        with opened(pair[1], background=False) as memory:
            memory.remember("Ada | knows | George")
    assert episodes(urls[0]) == 3


def test_a_command_that_does_not_fit_the_phase_is_refused(urls: tuple[str, str]) -> None:
    with closing(migration(*urls)) as moved:
        with pytest.raises(Conflict, match="not possible in phase idle"):
            moved.advance("cutover")
        moved.advance("copy")
        with pytest.raises(Conflict, match="not possible in phase copying"):
            moved.advance("cleanup")


def test_a_migration_to_the_store_itself_is_refused(urls: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="the same store"):
        migration(urls[0], urls[0])


def test_a_migration_to_another_name_of_the_store_is_refused_and_leaves_no_mark(tmp_path: Path) -> None:
    urls = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/link.db"
    open_backend(urls[0]).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(InvalidInput, match="the same store"):
        migration(*urls)
    with closing(open_backend(urls[0])) as store:
        assert store.read_move() is None


def test_the_new_store_names_the_old_one_after_the_end(urls: tuple[str, str]) -> None:
    with closing(migration(*urls)) as moved:
        for command in ("copy", "cutover", "cleanup"):
            moved.advance(command)
    with pytest.raises(InvalidInput, match=rf"has ended; .* --store {re.escape(plain_url(urls[0]))}"):
        Migration.open(urls[1], None, open_backend)


def test_a_process_of_the_old_configuration_follows_or_is_refused(urls: tuple[str, str]) -> None:
    with opened(urls[0], background=False) as idle, opened(urls[0], background=False) as writes:
        writes.remember("Ada | knows | Charles")
        with closing(migration(*urls)) as moved:
            moved.advance("copy")
            writes.remember("Ada | knows | Mary")
            moved.advance("cutover")
            with opened(urls[0], background=False) as late:  # comes back with the old URL
                late.remember("Ada | knows | George")
            moved.advance("cleanup")
        idle.remember("Ada | knows | William")  # has slept through all of it
        writes.remember("Ada | knows | Annabella")
    assert episodes(urls[1]) == 5
    assert episodes(urls[0]) < 5
    with pytest.raises(StoreMoved, match="was moved to"):
        opened(urls[0])


@pytest.mark.parametrize("there", ["nothing", "another store", "another migrated store"])
def test_a_process_that_slept_through_a_move_does_not_take_another_store_for_the_new_one(
    urls: tuple[str, str], tmp_path: Path, there: str
) -> None:
    with opened(urls[0], background=False) as idle:
        with closing(migration(*urls)) as moved:
            for command in ("copy", "cutover", "cleanup"):
                moved.advance(command)
        (tmp_path / "b.db").rename(tmp_path / "memory.db")
        if there == "another store":
            open_backend(urls[1]).close()
        if there == "another migrated store":
            with closing(migration(f"sqlite:///{tmp_path}/c.db", urls[1])) as other:
                for command in ("copy", "cutover", "cleanup"):
                    other.advance(command)
        with pytest.raises(BackendUnavailable, match=r"doesn't exist|isn't in the migration"):
            idle.remember("Ada | knows | Charles")
        assert (tmp_path / "b.db").exists() == (there != "nothing")
    with opened(f"sqlite:///{tmp_path}/memory.db", background=False) as memory:
        memory.remember("Ada | knows | Charles")
    if there != "nothing":
        assert episodes(urls[1]) == 0


def test_a_process_that_only_reads_follows_too(urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.migrate.backend._POLL", 0.0)
    monkeypatch.setattr("graphmem.migrate.backend._POLL_DURING_MOVE", 0.0)
    with opened(urls[0], background=False) as reads, opened(urls[0], background=False) as writes:
        with closing(migration(*urls)) as moved:
            moved.advance("copy")
            moved.advance("cutover")
            moved.advance("cleanup")
        writes.remember("Ada | knows | Charles")
        assert reads.stats().episodes == 1


@pytest.mark.parametrize("state", ["receiving", "abandoned"])
def test_an_incomplete_copy_is_refused_with_the_name_of_the_source(urls: tuple[str, str], state: str) -> None:
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        if state == "abandoned":
            moved.advance("cancel")
    with pytest.raises(StoreMoved, match=r"a\.db; open that store"):
        opened(urls[1])
    with opened(urls[0], background=False) as memory:
        memory.remember("Ada | knows | Charles")


def test_writers_wait_for_a_cutover_and_go_on_in_the_new_store(urls: tuple[str, str]) -> None:
    with opened(urls[0], background=False) as memory, closing(migration(*urls)) as moved:
        moved.advance("copy")
        moved.copy()
        _, source, target = moved._read()  # pyright: ignore[reportPrivateUsage]
        from graphmem.migrate.states import STEPS

        assert moved._set(STEPS["cutover", "copying"], source, target)  # pyright: ignore[reportPrivateUsage]
        writer = threading.Thread(target=memory.remember, args=("Ada | knows | Charles",))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        moved.advance("cutover")
        writer.join(30)
        assert not writer.is_alive()
    assert (episodes(urls[0]), episodes(urls[1])) in {(0, 1), (1, 1)}


def test_writers_are_refused_when_a_cutover_takes_too_long(
    urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.migrate.backend._WAIT", 0.1)
    with opened(urls[0], background=False) as memory, closing(migration(*urls)) as moved:
        moved.advance("copy")
        before = moved.source.read_move()
        assert before is not None
        from dataclasses import replace

        assert moved.source.set_move(replace(before, state="cutting"), replacing=before)
        with pytest.raises(StoreMoved, match="has been switching stores"):
            memory.remember("Ada | knows | Charles")
        moved.advance("cutover")
        memory.remember("Ada | knows | Charles")
    assert episodes(urls[1]) == 1


def test_a_disk_that_is_full_in_the_middle_of_a_copy_loses_nothing(urls: tuple[str, str]) -> None:
    with opened(urls[0], background=False) as memory:
        for number in range(40):
            memory.remember(f"{number} {'x' * 20_000}")
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        target = moved.target
        assert isinstance(target, SQLiteBackend)
        limit = target.database.writer.execute("PRAGMA page_count").fetchone()[0] + 60
        target.database.writer.execute(f"PRAGMA max_page_count = {limit}")
        with pytest.raises(StoreFull):
            moved.copy()
        with pytest.raises(StoreFull):
            moved.advance("cutover")
        target.database.writer.execute("PRAGMA max_page_count = 1000000")
        with closing(migration(*urls)) as again:
            again.copy()
            assert_equal(again, Scope())
            assert again.advance("cutover") == "cut"


def test_stores_of_an_older_schema_are_brought_up_to_date(urls: tuple[str, str]) -> None:
    with opened(urls[0], background=False) as memory:
        memory.remember("Ada | knows | Charles")
    open_backend(urls[1]).close()
    for url in urls:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.executescript(
                "DROP INDEX edges_by_successor; DROP INDEX edges_with_ends; ALTER TABLE edges DROP COLUMN ends;"
                "ALTER TABLE edges DROP COLUMN beginnings;"
                "DROP TABLE move; DROP INDEX index_entries_incomplete; "
                "DELETE FROM schema_migrations WHERE number >= 10"
            )
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        assert moved.advance("cutover") == "cut"
        assert_equal(moved, Scope())


def test_the_old_store_is_erased_and_still_refused(urls: tuple[str, str], tmp_path: Path) -> None:
    shell, text = Shell(tmp_path), "Zaphod | knows | Charles"
    with opened(urls[0], background=False) as memory:
        memory.remember(text)
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        moved.advance("cutover")
        with pytest.raises(Conflict, match="nothing was erased"):
            moved.erase_source()
    assert shell.run("migrate", "cleanup", "--yes", "--erase", "--store", urls[0]).code == 0
    assert b"Zaphod" not in b"".join(file.read_bytes() for file in tmp_path.glob("a.db*"))
    assert "not possible" in shell.run("migrate", "copy", "--store", urls[0]).err
    assert (episodes(urls[0]), episodes(urls[1])) == (0, 1)
    with pytest.raises(StoreMoved, match="was moved to"):
        opened(urls[0])
    gone(urls[1])
    open_backend(urls[1]).close()
    with closing(migration(urls[0])) as moved, pytest.raises(Conflict, match="nothing was erased"):
        moved.erase_source()


def gone(url: str) -> None:
    for file in Path(url.removeprefix("sqlite:///")).parent.glob(f"{Path(url).name}*"):
        file.unlink()


@pytest.mark.full(commands=["copy"], lost=0)
@pytest.mark.full(commands=["copy", "cutover"], lost=1)
@pytest.mark.parametrize(
    ("commands", "lost"), [(["copy"], 1), (["copy"], 0), (["copy", "cutover"], 0), (["copy", "cutover"], 1)]
)
def test_a_way_leads_out_when_the_other_store_is_gone_for_good(
    urls: tuple[str, str], tmp_path: Path, commands: list[Command], lost: int
) -> None:
    with opened(urls[0], background=False) as memory:
        memory.remember("Ada | knows | Charles")
    with closing(migration(*urls)) as moved:
        for command in commands:
            moved.advance(command)
        moved.copy()
    gone(urls[lost])
    left, shell = urls[1 - lost], Shell(tmp_path)
    refused = shell.run("migrate", "cancel", "--yes", "--store", left)
    assert (refused.code != 0, "cancel --force" in refused.err) == (True, True)
    assert shell.run("migrate", "cancel", "--force", "--yes", "--store", left).code == 0
    with opened(left, background=False) as memory:
        memory.remember("Ada | knows | George")
    assert episodes(left) == 2
    assert not Path(urls[lost].removeprefix("sqlite:///")).exists()
    assert shell.run("migrate", "cancel", "--force", "--yes", "--store", left).code != 0


def test_a_copy_to_a_store_that_was_emptied_can_be_canceled(urls: tuple[str, str]) -> None:
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
    gone(urls[1])
    open_backend(urls[1]).close()
    with closing(migration(*urls)) as moved:
        with pytest.raises(Conflict, match="not possible in phase canceling"):
            moved.advance("cutover")
        assert moved.advance("cancel") == "idle"
        assert moved.advance("copy") == "copying"


def test_a_store_whose_counterpart_was_emptied_says_so(urls: tuple[str, str]) -> None:
    with closing(migration(*urls)) as moved:
        moved.advance("copy")
        moved.advance("cutover")
    gone(urls[0])
    open_backend(urls[0]).close()
    with closing(migration(urls[1])) as moved, pytest.raises(Conflict, match=r"a\.db \(no mark\).*cancel --force"):
        moved.advance("cleanup")


@pytest.mark.slow
def test_callers_do_not_feel_a_slow_secondary(urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.migrate.backend._CLOSING", 2.0)
    with closing(migration(*urls)) as moved:
        moved.advance("copy")

    def slow(call: Callable[..., Any]) -> Callable[..., Any]:
        def slowed(*args: Any, **kwargs: Any) -> Any:
            time.sleep(5)
            return call(*args, **kwargs)

        return slowed

    def slow_backend(url: str, **options: Any) -> GraphBackend:
        store = open_backend(url, **options)
        if url == urls[1]:
            for name in ("write", "add_episodes", "read_move"):
                setattr(store, name, slow(getattr(store, name)))
        return store

    monkeypatch.setattr("graphmem.factory.open_backend", slow_backend)
    seconds: list[float] = []
    memory = opened(urls[0], background=False)
    for number in range(40):
        begun = time.monotonic()
        memory.remember(f"Ada | knows | Person {number}")
        seconds.append(time.monotonic() - begun)
    begun = time.monotonic()
    memory.close()
    assert time.monotonic() - begun < 3.5
    assert sorted(seconds)[37] < 1.0
    with closing(migration(*urls)) as moved:
        moved.copy()
        assert_equal(moved, Scope())
        assert moved.target.stats(Scope()).episodes == 40


def test_a_migration_whose_other_store_is_away_says_so(urls: tuple[str, str]) -> None:
    with closing(migration(*urls)) as moved:
        moved.advance("copy")

    def away(url: str) -> object:
        if url.endswith("b.db"):
            raise BackendUnavailable(f"{url}: doesn't answer")
        return open_backend(url)

    with pytest.raises(BackendUnavailable, match="doesn't answer"):
        Migration.open(urls[0], None, away)  # pyright: ignore[reportArgumentType]
    with opened(urls[0], background=False) as memory:
        memory.remember("Ada | knows | Charles")
