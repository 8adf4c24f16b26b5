"""Opening what is no store, or a store in trouble: the named error, and nothing touched."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from graphmem.errors import (
    BackendUnavailable,
    Conflict,
    InvalidInput,
    NotADatabase,
    SchemaTooNew,
    StoreFull,
    StoreReadOnly,
)
from graphmem.models import Changes, Edge, EdgeBeginning, EntityQuery, Episode, EpisodeExpiry, EpisodeQuery, Scope
from graphmem.registry import open_backend
from graphmem_sqlite import connection
from graphmem_sqlite.file import APPLICATION_ID
from tests.integration.sqlite.support import MOMENT, SCOPE, entity, files_in, of, raw, start, store_at, unprivileged


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that other users may enter and write."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    path.chmod(0o777)
    shutil.rmtree(path)


def a_store(path: Path) -> Path:
    store = store_at(path)
    store.write(SCOPE, of(entity("Anna")))
    store.close()
    return path


def names(path: Path) -> list[str]:
    store = store_at(path)
    try:
        return [e.name for e in store.find_entities([SCOPE], EntityQuery())]
    finally:
        store.close()


def refuses(path: Path, error: type[BackendUnavailable], says: str) -> None:
    """Check that opening raises this error, naming the path, and that no byte of the folder changes."""
    before = files_in(path.parent)
    with pytest.raises(error, match=says) as caught:
        store_at(path)
    assert str(path) in str(caught.value)
    assert files_in(path.parent) == before


def test_a_store_is_found_by_its_url(tmp_path: Path) -> None:
    store = open_backend(f"sqlite:///{tmp_path / 'memory.db'}")
    store.close()
    assert (tmp_path / "memory.db").exists()


def test_a_relative_url_is_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_backend("sqlite:///memory.db").close()
    assert (tmp_path / "memory.db").exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:memory.db", "sqlite:///a?b"])
def test_a_url_that_names_no_file_is_invalid(url: str) -> None:
    with pytest.raises(InvalidInput, match="store URL"):
        open_backend(url)


def test_a_store_in_memory_is_asked_for_elsewhere() -> None:
    with pytest.raises(InvalidInput, match="memory://"):
        open_backend("sqlite:///:memory:")


def test_a_text_file_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be taken for one\n" * 100)
    refuses(path, NotADatabase, "is not an SQLite database")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with raw(path) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    refuses(path, NotADatabase, "of another program")


def test_a_database_of_another_program_with_a_write_ahead_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with raw(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    refuses(path, NotADatabase, "of another program")


def test_a_database_in_which_another_program_creates_its_first_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
        commit = threading.Timer(0.3, other.execute, ["COMMIT"])
        commit.start()
        with pytest.raises(NotADatabase, match="of another program"):
            store_at(path)
        commit.join()
        assert [name for (name,) in other.execute("SELECT name FROM sqlite_master")] == ["customers"]


def test_a_database_that_another_program_has_open_keeps_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with raw(path) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(NotADatabase):
            store_at(path)
        with raw(path) as other:
            other.execute("PRAGMA busy_timeout = 0")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN EXCLUSIVE")


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    path.touch()
    assert names(a_store(path)) == ["Anna"]


def test_an_empty_database_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with raw(path) as connection:
        connection.execute("VACUUM")
    assert names(a_store(path)) == ["Anna"]


def test_a_store_whose_making_was_killed_before_its_mark_was_kept_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with raw(path) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    # a journal that says "the file was empty before": SQLite empties it again when it is opened
    journal = struct.pack(">8sIIIII", bytes.fromhex("d9d505f920a163d7"), 0, 0, 0, 512, 4096)
    path.with_name("memory.db-journal").write_bytes(journal.ljust(512, b"\0"))
    for _ in range(2):
        store = store_at(path)
        store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="hello", external_id="1")])
        assert store.stats(SCOPE).episodes == 1
        store.close()


def test_a_truncated_store_is_named_as_cut_short(tmp_path: Path) -> None:
    path = a_store(tmp_path / "memory.db")
    path.write_bytes(path.read_bytes()[:20000])
    refuses(path, NotADatabase, "is cut short")


def test_a_store_with_a_damaged_schema_is_refused(tmp_path: Path) -> None:
    path = a_store(tmp_path / "memory.db")
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)
    refuses(path, NotADatabase, "damaged")


def test_a_store_with_a_damaged_page_of_the_schema_is_refused(tmp_path: Path) -> None:
    path = a_store(tmp_path / "memory.db")
    content = bytearray(path.read_bytes())
    last_schema_page = int.from_bytes(content[108:112], "big")  # right-most child of the root on page 1
    content[(last_schema_page - 1) * 4096 : last_schema_page * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    refuses(path, NotADatabase, "damaged")


def test_damage_that_is_met_later_is_named(tmp_path: Path) -> None:
    path = a_store(tmp_path / "memory.db")
    content = bytearray(path.read_bytes())
    content[40960:] = b"\xff" * (len(content) - 40960)
    path.write_bytes(content)
    with pytest.raises(NotADatabase, match="damaged") as caught:
        names(path)
    assert str(path) in str(caught.value)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = a_store(tmp_path / "memory.db")
    with raw(path) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (99, 'from the future', 0)")
    refuses(path, SchemaTooNew, "has schema 99")


def test_a_file_of_an_older_schema_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    stored = Episode(scope=SCOPE, text="hello", metadata={"n": 1})
    with closing(store_at(path)) as store:
        store.add_episodes(SCOPE, [stored])
    with closing(sqlite3.connect(path)) as connection:  # schema 7 had no mark, no ends and no inferred facts
        connection.executescript(
            "DROP TABLE move; DROP INDEX index_entries_incomplete;"
            "DROP INDEX edges_by_successor; DROP INDEX edges_with_ends; ALTER TABLE edges DROP COLUMN ends;"
            "ALTER TABLE edges DROP COLUMN inferred; ALTER TABLE edges DROP COLUMN beginnings;"
            "DROP INDEX episodes_ended; DROP INDEX episodes_expiring;"
            "ALTER TABLE episodes DROP COLUMN ended_at; ALTER TABLE episodes DROP COLUMN expires_at;"
            "DELETE FROM schema_migrations WHERE number >= 8;"
        )
    with closing(store_at(path)) as store:
        assert store.find_episodes([SCOPE], EpisodeQuery(live_at=MOMENT)) == [stored]
        store.write(SCOPE, Changes(episode_expiries=(EpisodeExpiry(stored.id, MOMENT),)))
        assert store.find_episode_ids([SCOPE], EpisodeQuery(expired_by=MOMENT)) == [stored.id]


def test_facts_of_a_schema_without_stated_beginnings_are_read_and_get_them(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    anna, ben = entity("Anna"), entity("Ben")
    stated = EdgeBeginning(by="a message", at=MOMENT, told_at=MOMENT)
    edge = Edge(scope=SCOPE, source_id=anna.id, target_id=ben.id, relation="knows", valid_from=MOMENT, told_at=MOMENT)
    with closing(store_at(path)) as store:
        store.write(SCOPE, Changes(entities=(anna, ben), edges=(edge,)))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "ALTER TABLE edges DROP COLUMN beginnings; DELETE FROM schema_migrations WHERE number >= 14;"
        )
    with closing(store_at(path)) as store:
        assert store.get_edges([SCOPE], [edge.id]) == {edge.id: edge}
        told = edge.changed(beginnings=(stated,))
        store.write(SCOPE, Changes(edges=(told,)))
        assert store.get_edges([SCOPE], [edge.id]) == {edge.id: told}


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    refuses(tmp_path / "folder", BackendUnavailable, "is a folder")


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="doesn't exist") as caught:
        store_at(tmp_path / "nowhere" / "memory.db")
    assert str(tmp_path / "nowhere") in str(caught.value)
    assert not (tmp_path / "nowhere").exists()


def test_a_store_that_may_not_be_read_is_refused(folder: Path) -> None:
    path = a_store(folder / "memory.db")
    path.chmod(0)
    with unprivileged(), pytest.raises(BackendUnavailable, match="check the rights") as caught:
        store_at(path)
    assert str(path) in str(caught.value)


def test_a_store_cannot_be_made_in_a_folder_that_may_not_be_written(folder: Path) -> None:
    folder.chmod(0o555)
    with unprivileged(), pytest.raises(BackendUnavailable, match="rights"):
        store_at(folder / "memory.db")
    assert files_in(folder) == {}


def test_a_read_only_file_can_be_read(folder: Path) -> None:
    path = a_store(folder / "memory.db")
    path.chmod(0o444)
    with unprivileged():
        assert names(path) == ["Anna"]


def test_a_read_only_file_in_a_read_only_folder_can_be_read(folder: Path) -> None:
    path = a_store(folder / "memory.db")
    path.chmod(0o444)
    folder.chmod(0o555)
    before = files_in(folder)
    with unprivileged():
        assert names(path) == ["Anna"]
    assert files_in(folder) == before


@pytest.mark.parametrize("mode", [0o755, 0o555])
def test_the_diagnosis_of_a_read_only_file_says_so(folder: Path, mode: int) -> None:
    path = a_store(folder / "memory.db")
    path.chmod(0o444)
    folder.chmod(mode)
    with unprivileged(), closing(store_at(path)) as store:
        failed = [(name, detail) for name, ok, detail in store.diagnose() if not ok]
    assert failed == [("place", f"{path}: can be read but not written; check the rights of file and folder")]


WRITE = """
import sys
from graphmem.models import Episode, Scope
from graphmem_sqlite import open_backend

store = open_backend(f"sqlite:///{sys.argv[1]}")
for number in range(2):
    store.add_episodes(Scope("tests"), [Episode(scope=Scope("tests"), text="said " * 9000)])
    print("written", flush=True)
    sys.stdin.readline()
store.close()
"""


def test_a_reader_in_a_read_only_folder_sees_what_another_process_writes_later(folder: Path) -> None:
    path = a_store(folder / "memory.db")
    path.chmod(0o644)
    folder.chmod(0o755)
    with unprivileged():
        reader = store_at(path)
        assert reader.stats(SCOPE).episodes == 0
    writer = start(WRITE, path)
    assert writer.stdin is not None
    assert writer.stdout is not None
    seen: list[int] = []
    for _ in range(2):
        assert writer.stdout.readline() == "written\n"
        with unprivileged():
            seen.append(reader.stats(SCOPE).episodes)
        writer.stdin.write("go on\n")
        writer.stdin.flush()
    assert writer.wait(timeout=60) == 0
    with unprivileged():
        assert [*seen, reader.stats(SCOPE).episodes] == [1, 2, 2]
        reader.close()


def test_a_connection_to_the_state_before_another_process_wrote_is_not_used_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_store(folder / "memory.db")
    path.chmod(0o644)
    folder.chmod(0o755)
    pool, seen = vars(connection)["_pool"], list[int]()
    put = pool.put

    def put_and_read(owner: connection.Database, reader: sqlite3.Connection) -> None:
        put(owner, reader)
        if not seen:
            seen.append(-1)
            seen.append(store.stats(SCOPE).episodes)  # as another thread may read at this moment

    with ExitStack() as snapshot:
        with unprivileged():
            store = store_at(path)
            snapshot.enter_context(vars(store)["_database"].snapshot())
            assert store.stats(SCOPE).episodes == 0
        writer = start(WRITE, path)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        with unprivileged(), ThreadPoolExecutor(1) as thread:
            assert thread.submit(store.stats, SCOPE).result().episodes == 1
            monkeypatch.setattr(pool, "put", put_and_read)
            snapshot.close()
            assert store.stats(SCOPE).episodes == 1
    writer.communicate("go on\ngo on\n", timeout=60)
    store.close()
    assert 0 not in seen


def test_a_log_that_may_not_be_read_is_not_missed_through_a_symbolic_link(folder: Path) -> None:
    path = a_store(folder / "memory.db")  # its log gets the same rights, and keeps them
    link = folder / "link.db"
    link.symlink_to(path)
    with closing(store_at(path)) as writer:
        writer.add_episodes(SCOPE, [Episode(scope=SCOPE, text="hello")])  # in the log so far
        path.chmod(0o644)
        folder.chmod(0o755)
        with unprivileged(), pytest.raises(BackendUnavailable, match="can't be opened"):
            store_at(link)


def test_a_read_only_file_cannot_be_written(folder: Path) -> None:
    path = a_store(folder / "memory.db")
    path.chmod(0o444)
    before = path.read_bytes()
    with unprivileged():
        store = store_at(path)
        with pytest.raises(StoreReadOnly, match="check the rights"):
            store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="hello")])
        store.close()
    assert path.read_bytes() == before


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    fill_up(store.database.writer)
    with pytest.raises(StoreFull, match="no space is left") as caught:
        store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="long " * 50_000)])
    store.close()
    assert "memory.db" in str(caught.value)


def fill_up(writer: sqlite3.Connection) -> None:
    """Leave eight pages in a store."""
    pages: int = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages + 8}")


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    fill_up(store.database.writer)
    others = [Episode(scope=SCOPE, text="short") for _ in range(3)]
    with pytest.raises(StoreFull):
        store.add_episodes(SCOPE, [*others, Episode(scope=SCOPE, text="long " * 50_000)])
    assert store.stats(SCOPE).episodes == 0
    store.close()


def test_a_transaction_that_the_full_disk_ended_takes_no_further_writes(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    fill_up(store.database.writer)

    def work() -> None:
        with pytest.raises(StoreFull):
            store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="long " * 50_000)])
        with pytest.raises(BackendUnavailable, match="nothing was written"):
            store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="short")])

    with pytest.raises(BackendUnavailable, match="nothing was written"):
        store.atomic(work)
    assert store.stats(SCOPE).episodes == 0
    store.close()


def test_a_store_that_was_full_can_be_written_when_there_is_space(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    fill_up(store.database.writer)
    long = Episode(scope=SCOPE, text="long " * 50_000)
    with pytest.raises(StoreFull):
        store.add_episodes(SCOPE, [long])
    store.database.writer.execute("PRAGMA max_page_count = 1000000")
    assert store.add_episodes(SCOPE, [long]) == [(long.id, True)]
    store.close()


def test_a_file_that_stays_locked_is_named_after_the_timeout(tmp_path: Path) -> None:
    path = a_store(tmp_path / "memory.db")
    store = store_at(path, busy_timeout=0.1)
    with raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendUnavailable, match=r"another process.*sqlite_busy_timeout"):
            store.write(SCOPE, of(entity("Ben")))
        other.execute("ROLLBACK")
    store.close()


def test_a_closed_store_says_so_to_readers(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    store.close()
    with pytest.raises(BackendUnavailable, match="was closed"):
        store.stats(SCOPE)


def test_a_closed_store_says_so_to_writers(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    store.close()
    with pytest.raises(BackendUnavailable, match="was closed"):
        store.write(SCOPE, of(entity("Anna")))


def test_the_message_of_a_taken_id_says_nothing_of_other_scopes(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    mine, secret = Scope("mine"), Scope("secret")
    store.write(secret, of(entity("Anna", scope=secret).changed(id="id-of-anna")))
    with pytest.raises(Conflict, match="is taken") as caught:
        store.write(mine, of(entity("Anna", scope=mine).changed(id="id-of-anna")))
    store.close()
    assert "secret" not in str(caught.value)
