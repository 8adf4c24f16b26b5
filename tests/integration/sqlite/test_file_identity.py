"""A file that is deleted, moved or replaced while it is open, and who can read a new one."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem.errors import BackendUnavailable
from graphmem.models import Episode, EpisodeQuery
from graphmem_sqlite import SQLiteBackend
from tests.integration.sqlite.support import SCOPE, raw, store_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a store that holds the text "old"."""
    path = tmp_path / "memory.db"
    store = store_at(path)
    remember(store, "old")
    store.close()
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteBackend]:
    """Return the same store, open, with the text "new" in its log."""
    store = store_at(path)
    remember(store, "new")
    yield store
    store.close()


def remember(store: SQLiteBackend, text: str) -> None:
    store.add_episodes(SCOPE, [Episode(scope=SCOPE, text=text)])


def texts(path: Path) -> list[str]:
    store = store_at(path)
    try:
        return [episode.text for episode in store.find_episodes([SCOPE], EpisodeQuery())]
    finally:
        store.close()


def refuses_all(store: SQLiteBackend, says: str) -> None:
    for work in (
        lambda: remember(store, "lost"),
        lambda: store.find_episodes([SCOPE], EpisodeQuery()),
        lambda: store.stats(SCOPE),
        store.diagnose,
        store.database.vacuum,
    ):
        with pytest.raises(BackendUnavailable, match=says) as caught:
            work()
        assert "open it again" in str(caught.value)


def test_a_deleted_file_is_noticed(path: Path, store: SQLiteBackend) -> None:
    for file in path.parent.iterdir():
        file.unlink()
    refuses_all(store, "was deleted or moved")
    store.close()
    assert list(path.parent.iterdir()) == []


def test_a_moved_file_is_noticed_and_has_all_that_was_acknowledged(path: Path, store: SQLiteBackend) -> None:
    moved = path.rename(path.with_name("moved.db"))
    refuses_all(store, "was deleted or moved")
    store.close()
    assert texts(moved) == ["old", "new"]


def test_a_backup_that_is_moved_over_the_file_is_noticed_and_is_not_mixed_with_the_log(
    path: Path, tmp_path: Path
) -> None:
    shutil.copy(path, tmp_path / "backup")
    store = store_at(path)
    for n in range(20):
        remember(store, f"newer {n} " + "x" * 10_000)
    (tmp_path / "backup").replace(path)

    refuses_all(store, "was replaced")
    store.close()

    assert texts(path) == ["old"]
    with raw(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_deleted_log_is_noticed_and_what_it_held_is_kept(path: Path, store: SQLiteBackend) -> None:
    path.with_name("memory.db-wal").unlink()
    refuses_all(store, "has lost its log")
    store.close()
    assert texts(path) == ["old", "new"]


def test_a_file_deleted_during_a_transaction_acknowledges_nothing(path: Path, store: SQLiteBackend) -> None:
    def work() -> None:
        remember(store, "lost")
        path.unlink()

    with pytest.raises(BackendUnavailable, match="was deleted or moved"):
        store.atomic(work)


def test_a_file_that_comes_back_can_be_used_again(path: Path, store: SQLiteBackend) -> None:
    away = path.rename(path.with_name("away.db"))
    with pytest.raises(BackendUnavailable):
        remember(store, "lost")
    away.rename(path)
    remember(store, "newest")
    store.close()
    assert texts(path) == ["old", "new", "newest"]


def test_a_link_to_the_file_may_be_named(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    assert texts(tmp_path / "link.db") == ["old"]


@pytest.mark.parametrize("name", ["memory.db", "link.db"])
def test_only_the_owner_can_read_a_new_store_and_its_log(tmp_path: Path, name: str) -> None:
    (tmp_path / "link.db").symlink_to("memory.db")
    before = os.umask(0o022)
    try:
        store = store_at(tmp_path / name)
        remember(store, "secret")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert modes.keys() >= {"memory.db", "memory.db-wal", "memory.db-shm"}
    assert set(modes.values()) == {0o600}


def test_the_mode_of_a_file_that_is_there_stays(path: Path) -> None:
    path.chmod(0o660)
    assert texts(path) == ["old"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_a_database_moved_under_another_program_is_not_touched(path: Path, store: SQLiteBackend) -> None:
    path.rename(path.with_name("moved.db"))
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    before = path.read_bytes()
    refuses_all(store, "was replaced")
    store.close()
    assert path.read_bytes() == before
