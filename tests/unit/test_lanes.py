"""The lanes of the suite: every test file is in one, and a run that breaks a rule of theirs fails."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, nullcontext
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import ReadWriteLock, Timeout

from tests import lanes, shared_servers
from tests.conftest import forget_settings
from tests.lanes import LANES, NAMES, ROOT, Lanes, Quarantined, is_allowed_skip, lane_of_file, shuffled

FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def test_every_test_file_is_in_one_lane() -> None:
    places = {file: [lane for lane, patterns in LANES.items() for p in patterns if fnmatch(file, p)] for file in FILES}
    assert {file: found for file, found in places.items() if len(found) != 1} == {}


def test_every_entry_of_a_lane_names_a_test_file() -> None:
    entries = [entry for entries in LANES.values() for entry in entries]
    assert [entry for entry in entries if not any(fnmatch(file, entry) for file in FILES)] == []


def test_a_file_that_is_listed_nowhere_is_in_no_lane() -> None:
    assert lane_of_file("tests/e2e/test_of_tomorrow.py") is None


def test_quarantined_tests_exist_and_say_since_when_and_why() -> None:
    for entry in lanes.QUARANTINE:
        file, _, name = entry.test.partition("::")
        assert f"def {name.rpartition('::')[2]}(" in (ROOT / file).read_text("utf-8")
        assert entry.reason
        assert len(entry.since.split("-")) == 3


@pytest.mark.parametrize(
    ("reason", "by_hand", "in_ci"),
    [
        ("no shared data at /data: set GRAPHMEM_DATA", True, True),
        ("Docker's engine doesn't answer (DockerException). Start it …", True, False),
        ("no Chromium to open Neo4j Browser in", True, False),
        ("needs the built-in embedding model: .[embeddings]", False, False),
        ("I was in a hurry", False, False),
    ],
)
def test_only_listed_reasons_excuse_a_skip(
    monkeypatch: pytest.MonkeyPatch, reason: str, by_hand: bool, in_ci: bool
) -> None:
    found: list[bool] = []
    for required in ("0", "1"):
        monkeypatch.setenv("GRAPHMEM_REQUIRE_NEO4J", required)
        found.append(is_allowed_skip(reason))
    assert found == [by_hand, in_ci]


# What a run is judged by ------------------------------------------------------------------------------


def ignore(_: object) -> None:
    """Answer as an option that isn't set, or a mark that a test doesn't have."""


def judge(*reports: SimpleNamespace) -> list[str]:
    """Return what a run notes about reports of tests."""
    plugin = Lanes(SimpleNamespace(getoption=ignore))  # pyright: ignore[reportArgumentType]
    for report in reports:
        plugin.pytest_runtest_logreport(report)  # pyright: ignore[reportArgumentType]
    return plugin.problems


def report(**fields: Any) -> SimpleNamespace:
    given: dict[str, Any] = {
        "nodeid": "tests/test_x.py::test_y",
        "when": "call",
        "duration": 0.1,
        "keywords": {},
        "skipped": False,
    }
    return SimpleNamespace(**{**given, **fields})


def test_a_test_that_takes_too_long_is_noted_unless_it_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.delenv("CI", raising=False)
    fine = report(duration=4.9), report(duration=6.0, keywords={"slow": 1}), report(when="setup", duration=9.0)
    assert judge(*fine) == []
    assert judge(report(duration=19.0, keywords={lanes.ON_SERVER: 1})) == []
    for found in (judge(report(duration=6.0)), judge(report(duration=21.0, keywords={lanes.ON_SERVER: 1}))):
        assert ["took" in problem and "tests/test_x.py::test_y" in problem for problem in found] == [True]


def test_what_a_test_may_take_grows_with_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.delenv("CI", raising=False)
    allowed: list[float] = []
    for load in (0.5, 2.0, 8.0):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0))
        allowed.append(lanes.allowed_seconds())
    assert allowed == [5.0, 5.0, 20.0]
    monkeypatch.setenv("CI", "true")
    assert lanes.allowed_seconds() == 40.0


def test_a_skip_for_no_listed_reason_is_noted() -> None:
    skipped = report(when="setup", skipped=True, longrepr=("file", 1, "Skipped: I was in a hurry"))
    [problem] = judge(skipped, report(skipped=True, longrepr=("file", 1, "Skipped: no shared data at /data")))
    assert "I was in a hurry" in problem


def test_a_random_order_keeps_files_together_and_loses_nothing() -> None:
    items: list[Any] = [SimpleNamespace(path=Path(f"{file}.py"), name=n) for file in "abcde" for n in range(10)]
    mixed: list[Any] = list(shuffled(items, seed=1))
    assert mixed != items
    assert sorted((item.path, item.name) for item in mixed) == [(item.path, item.name) for item in items]
    changes = sum(one.path != other.path for one, other in pairwise(mixed))
    assert changes == len("abcde") - 1
    assert [*shuffled(items, seed=1)] == mixed


# The servers of a run ---------------------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


def test_tests_of_a_server_that_died_fail_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listener: socket.socket
) -> None:
    monkeypatch.setenv(shared_servers.RUN, str(tmp_path))
    assert shared_servers.server_problem(shared_servers.SHARED) is None  # nobody has needed one yet
    url = f"bolt://neo4j:secret@localhost:{listener.getsockname()[1]}"
    (tmp_path / "shared.json").write_text(f'{{"url": "{url}"}}', encoding="utf-8")
    assert shared_servers.server_problem(shared_servers.SHARED) is None
    listener.close()
    problem = shared_servers.server_problem(shared_servers.SHARED)
    assert problem is not None
    assert "has died" in problem
    assert "secret" not in problem


@pytest.mark.parametrize(("marks", "alone"), [((), False), ((pytest.mark.whole_store,), True)])
def test_a_file_s_tests_keep_the_server_until_its_last_one_has_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, marks: tuple[pytest.MarkDecorator, ...], alone: bool
) -> None:
    monkeypatch.setenv(shared_servers.RUN, str(tmp_path))
    other = ReadWriteLock(tmp_path / "use.db", is_singleton=False)
    test, use = case(*marks, store_url="neo4j"), shared_servers.ServerUse()

    use.begin(test)
    for following in (test, case(store_url="sqlite")):
        with pytest.raises(Timeout), other.write_lock(blocking=False):
            pass
        with pytest.raises(Timeout) if alone else nullcontext(), other.read_lock(blocking=False):
            pass
        use.end(following)

    with other.write_lock(blocking=False):
        pass


def case(mark: pytest.MarkDecorator | None = None, **parameters: str) -> Any:
    """Return a case of a test in this file, as far as its lane and its use of the server depend on it."""
    marks = [] if mark is None else [mark.mark]

    def marked(name: str) -> list[pytest.Mark]:
        return [found for found in marks if found.name == name]

    def closest(name: str) -> pytest.Mark | None:
        return next(iter(marked(name)), None)

    return SimpleNamespace(
        path=ROOT / "tests/unit/test_lanes.py",
        nodeid="tests/unit/test_lanes.py::test_x[1]",
        callspec=SimpleNamespace(params=parameters),
        get_closest_marker=closest,
        iter_markers=marked,
    )


def test_a_quarantined_test_is_in_the_last_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lanes.lane_of(case()) == NAMES[0]
    monkeypatch.setattr(lanes, "QUARANTINE", (Quarantined("tests/unit/test_lanes.py::test_x", "2026-01-01", "chance"),))
    assert lanes.lane_of(case()) == NAMES[-1]


def test_a_test_marked_full_is_in_the_last_lane_or_its_cases_of_the_parameters_named() -> None:
    some = pytest.mark.full(algorithm="leiden")
    assert lanes.lane_of(case(pytest.mark.full)) == NAMES[-1]
    assert lanes.lane_of(case(some, algorithm="leiden")) == NAMES[-1]
    assert lanes.lane_of(case(some, algorithm="label_propagation")) == NAMES[0]


def test_each_process_of_a_run_knows_of_a_running_server_that_is_not_to_be_emptied() -> None:
    environment = {"GRAPHMEM_TEST_NEO4J_URL": "bolt://host", "GRAPHMEM_STORE": "bolt://host", "PATH": "/bin"}
    forget_settings(environment)
    assert environment == {"GRAPHMEM_TEST_NEO4J_URL": "bolt://host", "PATH": "/bin"}
