"""Files that are written for users: what they may replace, and what they leave alone."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphmem.errors import InvalidInput
from graphmem.output_files import output_file
from tests.integration.sqlite.support import unprivileged

OURS = b'{"format":"graphmem-export","version":1}\n'


def write(path: Path, content: bytes = OURS, *, force: bool = False) -> None:
    with output_file(path, force=force) as file:
        file.write(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return a database in WAL mode, and leave nothing of its log."""
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    return path


def test_only_the_owner_can_read_an_output(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tmp_path / "all.jsonl")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600


def test_an_earlier_output_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "all.jsonl")
    write(tmp_path / "all.jsonl", OURS + b"more\n")

    assert (tmp_path / "all.jsonl").read_bytes() == OURS + b"more\n"
    assert names(tmp_path) == ["all.jsonl"]


def test_an_empty_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").touch()
    write(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() == OURS


def test_a_file_of_the_user_is_replaced_by_force_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("precious")
    with pytest.raises(InvalidInput, match="--force"):
        write(path)
    assert path.read_text() == "precious"

    write(path, force=True)
    assert path.read_bytes() == OURS


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("force", [False, True])
def test_a_database_is_never_replaced(database: Path, suffix: str, force: bool) -> None:
    before = {path.name: path.read_bytes() for path in database.parent.iterdir()}
    with pytest.raises(InvalidInput, match="database"):
        write(database.with_name(database.name + suffix), force=force)
    assert {path.name: path.read_bytes() for path in database.parent.iterdir()} == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_database_is_not_replaced_under_another_name(
    database: Path, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    link(database, tmp_path / "other.jsonl")
    with pytest.raises(InvalidInput, match="database"):
        write(tmp_path / "other.jsonl", force=True)


def test_looking_at_a_database_keeps_the_locks_of_this_process(database: Path) -> None:
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("PRAGMA journal_mode = DELETE")
    holder.execute("BEGIN EXCLUSIVE")
    for _ in range(2):
        with pytest.raises(InvalidInput):
            write(database)
    pid = os.fork()
    if not pid:  # another process has no locks of this one
        other = sqlite3.connect(database, timeout=0, isolation_level=None)
        try:
            other.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    holder.close()


def test_a_link_that_the_user_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_bytes(OURS)
    (tmp_path / "latest.jsonl").symlink_to("real.jsonl")

    write(tmp_path / "latest.jsonl", OURS + b"more\n")

    assert (tmp_path / "latest.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_bytes() == OURS + b"more\n"


def test_a_link_to_a_file_of_the_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "all.jsonl").symlink_to("precious")
    with pytest.raises(InvalidInput, match="did not write"):
        write(tmp_path / "all.jsonl")
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize("to", ["nothing", "all.jsonl"])
def test_a_link_to_nothing_is_refused(tmp_path: Path, to: str) -> None:
    (tmp_path / "all.jsonl").symlink_to(to)
    with pytest.raises(InvalidInput, match="link"):
        write(tmp_path / "all.jsonl", force=True)
    assert names(tmp_path) == ["all.jsonl"]


def test_a_link_planted_under_the_name_of_a_part_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("victim")
    (tmp_path / "all.jsonl.part").symlink_to(victim)

    write(tmp_path / "all.jsonl")

    assert victim.read_text() == "victim"
    assert (tmp_path / "all.jsonl.part").is_symlink()
    assert not (tmp_path / "all.jsonl").is_symlink()


def test_a_users_own_part_stays(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl.part").write_text("precious")
    write(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl.part").read_text() == "precious"


def make_socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


@pytest.mark.parametrize(
    ("make", "says"),
    [(os.mkfifo, "is a FIFO"), (make_socket, "is a socket"), (Path.mkdir, "is a folder")],
)
def test_what_is_no_file_stays_and_is_named(tmp_path: Path, make: Callable[[Path], None], says: str) -> None:
    make(tmp_path / "target")
    before = (tmp_path / "target").stat().st_mode
    with pytest.raises(InvalidInput, match=says):
        write(tmp_path / "target", force=True)
    assert (tmp_path / "target").stat().st_mode == before
    assert names(tmp_path) == ["target"]


@pytest.fixture
def device() -> Generator[Path]:
    """Return a device that no mistake can replace, unlike /dev/null: the folder of terminals takes no other files."""
    ours, theirs = os.openpty()
    yield Path(os.ttyname(theirs))
    os.close(ours)
    os.close(theirs)


def test_a_device_stays_and_is_named(device: Path) -> None:
    with pytest.raises(InvalidInput, match="is a device"):
        write(device, force=True)
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_link_to_a_fifo_says_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "all.jsonl").symlink_to("fifo")
    with pytest.raises(InvalidInput, match="is a FIFO"):
        write(tmp_path / "all.jsonl")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no folder"):
        write(tmp_path / "absent" / "all.jsonl")


def test_a_path_with_nul_is_invalid() -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        write(Path("a\x00b"))


@pytest.fixture
def open_folder() -> Generator[Path]:
    """Return a folder that every user may write; `tmp_path` is closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


@pytest.mark.parametrize(
    ("mode", "says"), [(0o444, "is not writable"), (0o222, "Permission denied"), (0, "Permission denied")]
)
def test_an_output_without_rights_stays(open_folder: Path, mode: int, says: str) -> None:
    path = open_folder / "all.jsonl"
    path.write_bytes(OURS)
    path.chmod(mode)
    with unprivileged(), pytest.raises(InvalidInput, match=says):
        write(path, b"", force=True)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    path.chmod(0o600)
    assert path.read_bytes() == OURS
    assert names(open_folder) == ["all.jsonl"]


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_without_rights_gets_no_output(open_folder: Path, exists: bool) -> None:
    path = open_folder / "all.jsonl"
    if exists:
        path.write_bytes(OURS)
        path.chmod(0o666)
    open_folder.chmod(0o555)
    with unprivileged(), pytest.raises(InvalidInput, match="cannot be written"):
        write(path, b"")
    assert names(open_folder) == (["all.jsonl"] if exists else [])


def test_an_error_of_the_writer_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "all.jsonl")

    def half() -> None:
        with output_file(tmp_path / "all.jsonl") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert (tmp_path / "all.jsonl").read_bytes() == OURS
    assert names(tmp_path) == ["all.jsonl"]


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:

    def slowly() -> None:
        with output_file(tmp_path / "all.jsonl") as file:
            (tmp_path / "all.jsonl").write_text("precious")
            file.write(OURS)

    with pytest.raises(InvalidInput, match="did not write"):
        slowly()
    assert (tmp_path / "all.jsonl").read_text() == "precious"
    assert names(tmp_path) == ["all.jsonl"]


@contextmanager
def another_writer(path: Path) -> Generator[tuple[int, Callable[[], object]]]:
    """Start a process that has written half of a file; yield its id, and what lets it write the rest and end."""
    (begun, begin), (go_on, let) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        with output_file(path) as file:
            file.write(OURS)
            file.flush()
            os.write(begin, b".")
            os.read(go_on, 1)
            file.write(b"by another\n")
        os._exit(0)
    os.read(begun, 1)
    yield pid, lambda: os.write(let, b".")
    os.waitpid(pid, 0)


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_the_same(tmp_path: Path) -> None:
    with another_writer(tmp_path / "all.jsonl") as (pid, _):
        os.kill(pid, signal.SIGKILL)
    assert len(names(tmp_path)) == 1

    write(tmp_path / "other.jsonl")
    assert len(names(tmp_path)) == 2
    write(tmp_path / "all.jsonl")
    assert names(tmp_path) == ["all.jsonl", "other.jsonl"]


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    with another_writer(tmp_path / "all.jsonl") as (_, finish):
        write(tmp_path / "all.jsonl")
        assert (tmp_path / "all.jsonl").read_bytes() == OURS
        finish()
    assert (tmp_path / "all.jsonl").read_bytes() == OURS + b"by another\n"
    assert names(tmp_path) == ["all.jsonl"]
