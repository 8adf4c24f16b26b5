"""Lanes of the suite: which tests ``make check``, ``make test`` and ``make test-all`` run, and what a run must keep to.

Each lane holds the ones before it. A file is in one lane (`LANES`); a test marked ``full`` waits for the last one, and
so does an end-to-end test on Neo4j, unless it is marked ``server``. A run fails, beside failed tests, for a test that
takes too long without the mark ``slow``, for a skip whose reason isn't listed, and for what `tests.shared_servers`
finds left on the server.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.shared_servers import (
    EMPTY,
    SHARED,
    ServerUse,
    end_run,
    prepare_server,
    required,
    role_of,
    runs_on_neo4j,
    server_problem,
)

ROOT = Path(__file__).parents[1]

LANES = {
    "check": (
        "tests/unit/*",
        "tests/conformance/test_memory.py",
        "tests/conformance/test_sqlite.py",
    ),
    "test": (
        "tests/conformance/test_detectors.py",
        "tests/conformance/test_kit_catches_bugs.py",
        "tests/conformance/test_neo4j.py",
        "tests/conformance/test_vector_indexes.py",
        "tests/conformance/test_vector_kit_catches_bugs.py",
        "tests/e2e/test_asked_by.py",
        "tests/e2e/test_ends.py",
        "tests/e2e/test_evidence.py",
        "tests/e2e/test_async.py",
        "tests/e2e/test_cli.py",
        "tests/e2e/test_communities.py",
        "tests/e2e/test_demo.py",
        "tests/e2e/test_docs.py",
        "tests/e2e/test_expiry.py",
        "tests/e2e/test_export_beside_writers.py",
        "tests/e2e/test_extraction_failures.py",
        "tests/e2e/test_filters.py",
        "tests/e2e/test_forget_beside_others.py",
        "tests/e2e/test_forget_person.py",
        "tests/e2e/test_listings.py",
        "tests/e2e/test_hostile_input.py",
        "tests/e2e/test_infer.py",
        "tests/e2e/test_lives.py",
        "tests/e2e/test_limits.py",
        "tests/e2e/test_memory.py",
        "tests/e2e/test_migrate.py",
        "tests/e2e/test_migrate_failures.py",
        "tests/e2e/test_migrate_kills.py",
        "tests/e2e/test_odd_memories.py",
        "tests/e2e/test_paces.py",
        "tests/e2e/test_poisoning.py",
        "tests/e2e/test_redaction.py",
        "tests/e2e/test_search.py",
        "tests/e2e/test_strategies.py",
        "tests/e2e/test_telemetry.py",
        "tests/e2e/test_traces.py",
        "tests/e2e/test_transfer.py",
        "tests/e2e/test_upkeep.py",
        "tests/e2e/test_visualize.py",
        "tests/e2e/test_wheel.py",
        "tests/e2e/test_worker.py",
        "tests/integration/agents/test_llama_index.py",
        "tests/integration/agents/test_openai_agents.py",
        "tests/integration/agents/test_pydantic_ai.py",
        "tests/integration/embed/test_hub.py",
        "tests/integration/embed/test_langchain.py",
        "tests/integration/embed/test_minilm.py",
        "tests/integration/langchain/test_compaction.py",
        "tests/integration/embed/test_name_pairs.py",
        "tests/integration/embed/test_paired.py",
        "tests/integration/langchain/test_history.py",
        "tests/integration/langchain/test_middleware.py",
        "tests/integration/langchain/test_retriever.py",
        "tests/integration/langchain/test_tools.py",
        "tests/integration/langgraph/test_agents.py",
        "tests/integration/langgraph/test_kit_catches_bugs.py",
        "tests/integration/langgraph/test_parity.py",
        "tests/integration/langgraph/test_store.py",
        "tests/integration/llm/test_llm_http.py",
        "tests/integration/mcp/test_core.py",
        "tests/integration/mcp/test_full.py",
        "tests/integration/mcp/test_http.py",
        "tests/integration/mcp/test_page.py",
        "tests/integration/mcp/test_state.py",
        "tests/integration/neo4j/test_browser_command.py",
        "tests/integration/neo4j/test_concurrency.py",
        "tests/integration/neo4j/test_doctor.py",
        "tests/integration/neo4j/test_edited_by_hand.py",
        "tests/integration/neo4j/test_errors.py",
        "tests/integration/neo4j/test_foreign_data.py",
        "tests/integration/neo4j/test_gds.py",
        "tests/integration/neo4j/test_hostile.py",
        "tests/integration/neo4j/test_opening.py",
        "tests/integration/neo4j/test_round_trips.py",
        "tests/integration/neo4j/test_saved_queries.py",
        "tests/integration/neo4j/test_server.py",
        "tests/integration/sqlite/test_file_identity.py",
        "tests/integration/sqlite/test_full_text.py",
        "tests/integration/sqlite/test_opening.py",
        "tests/integration/sqlite/test_plans.py",
        "tests/integration/sqlite/test_processes.py",
        "tests/integration/vectors/test_engines.py",
        "tests/integration/vectors/test_search.py",
    ),
    "all": (
        "tests/conformance/test_traced.py",
        "tests/e2e/test_cli_upkeep.py",
        "tests/e2e/test_crash.py",
        "tests/e2e/test_isolation.py",
        "tests/e2e/test_notebooks.py",
        "tests/e2e/test_processes.py",
        "tests/e2e/test_same_ranking.py",
        "tests/e2e/test_server_crash.py",
        "tests/e2e/test_sqlite_container.py",
        "tests/e2e/test_upkeep_crash.py",
        "tests/integration/mcp/test_npm.py",
        "tests/integration/mcp/test_schemas.py",
        "tests/integration/neo4j/test_browser.py",
        "tests/integration/neo4j/test_docker.py",
        "tests/integration/neo4j/test_hubs.py",
        "tests/integration/neo4j/test_plain_server.py",
        "tests/integration/neo4j/test_plans.py",
        "tests/integration/neo4j/test_restored.py",
    ),
}
NAMES = tuple(LANES)

SECONDS = 5.0
"""What a test may take without one of the marks of `MAY_BE_LONG`, on a machine that does nothing else."""
SECONDS_ON_SERVER = 20.0
"""The same for a test on Neo4j: a server that was just started takes seconds to plan the first query of each kind."""
MAY_BE_LONG = {"full", "slow", "soak"}
ON_SERVER = "uses a Neo4j server"  # a keyword of such tests, for reports, which know no fixtures

ALLOWED_SKIPS = (
    r"no shared data at ",
    r"not a git checkout",
    r"no npm: ",
    r"this system ",
    r"sends SIGINT to a process",
    r"the open files of a process are read from /proc",
    r"needs the files of e5-small-v2",
)
# where Neo4j may be absent, so may be what is installed with Docker on a build machine
ALLOWED_WITHOUT_DOCKER = (
    r"Docker's engine doesn't answer",
    r".* can't be pulled here and docker/",
    r"GRAPHMEM_TEST_NEO4J_URL: no answer",
    r"no Chromium",
    r"Graphviz isn't installed",
    r"GRAPHMEM_TEST_MERMAID names no mermaid.min.js",
)


@dataclass(frozen=True)
class Quarantined:
    """A test that fails by chance: it runs in the last lane only, and its failure is printed and doesn't count."""

    test: str
    since: str
    reason: str


QUARANTINE: tuple[Quarantined, ...] = ()


def lane_of_file(path: str) -> str | None:
    """Return the lane of a test file, given relative to the top of the tree; None for a file in no lane."""
    return next((lane for lane, files in LANES.items() if any(fnmatch(path, file) for file in files)), None)


def lane_of(item: pytest.Item) -> str | None:
    """Return the lane of a test."""
    path = item.path.relative_to(ROOT).as_posix()
    lane = lane_of_file(path)
    waits = path.startswith("tests/e2e/") and runs_on_neo4j(item) and item.get_closest_marker("server") is None
    return NAMES[-1] if waits or _is_full(item) or _quarantined(item.nodeid) else lane


def _is_full(item: pytest.Item) -> bool:
    """Return whether a test is marked ``full``: as it is, or for the parameters that the mark names."""
    parameters = getattr(item, "callspec", None)
    values: dict[str, object] = {} if parameters is None else parameters.params
    return any(mark.kwargs.items() <= values.items() for mark in item.iter_markers("full"))


def allowed_seconds(*, on_server: bool = False) -> float:
    """
    Return the seconds that a test may take now: more where more processes want to run than there are cores.

    In CI twice as many, as the load of other machines on the same processor isn't seen, and while coverage is measured.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 1.0
    machine = 2 if os.environ.get("CI") == "true" or "COVERAGE_RUN" in os.environ else 1
    return machine * (SECONDS_ON_SERVER if on_server else SECONDS) * max(1.0, load / (os.cpu_count() or 1))


def is_allowed_skip(reason: str) -> bool:
    """Return whether a run may be green with a test skipped for this reason."""
    allowed = ALLOWED_SKIPS if required() else (*ALLOWED_SKIPS, *ALLOWED_WITHOUT_DOCKER)
    return any(re.match(pattern, reason) for pattern in allowed)


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """Return tests in a random order: files in any order, and the tests of each file, whose fixtures are shared."""
    chance = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    groups = list(files.values())
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    return [item for group in groups for item in group]


def order(item: pytest.Item) -> int:
    """
    Return the place of a test in a run.

    Some that need no server come first, while it starts. Then come those that have it alone, to the first process
    (another one steals tests from the end of its queue), and of these first those that make it plan queries again.
    Tests that share the server come last: by then it is free, and has planned much of what they ask.
    """
    if item.path.is_relative_to(ROOT / "tests" / "unit" / "text"):
        return 0
    if (role := role_of(item)) == EMPTY:
        return 1 if item.path.is_relative_to(ROOT / "tests" / "integration") else 2
    return 5 if role == SHARED else 3 if lane_of(item) == NAMES[0] else 4


def _quarantined(nodeid: str) -> Quarantined | None:
    return next((entry for entry in QUARANTINE if entry.test == nodeid.partition("[")[0]), None)


@dataclass(eq=False)
class Lanes:
    """The plugin of pytest; of several processes the first one judges the run."""

    config: pytest.Config
    problems: list[str] = field(default_factory=list)
    use: ServerUse = field(default_factory=ServerUse)

    @property
    def last(self) -> int:
        """Place of the chosen lane."""
        return NAMES.index(self.config.getoption("lane") or NAMES[-1])

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out files of later lanes."""
        if collection_path.suffix != ".py" or not collection_path.is_relative_to(ROOT):
            return None
        lane = lane_of_file(collection_path.relative_to(ROOT).as_posix())
        return True if lane is not None and NAMES.index(lane) > self.last else None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out tests of later lanes, and mix the rest when asked to."""
        later = [item for item in items if (lane := lane_of(item)) is not None and NAMES.index(lane) > self.last]
        for item in items:
            if role_of(item) or "start_neo4j" in getattr(item, "fixturenames", ()):
                item.keywords[ON_SERVER] = 1
            if (found := _quarantined(item.nodeid)) is not None:
                item.add_marker(pytest.mark.xfail(reason=f"quarantined since {found.since}: {found.reason}"))
        if later:
            self.config.hook.pytest_deselected(items=later)
            left = set(later)
            items[:] = [item for item in items if item not in left]
        if (seed := self.config.getoption("shuffle")) is not None:
            items[:] = shuffled(items, seed)
        items.sort(key=order)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Wait for the server outside of the test's time limit."""
        self.use.begin(item)
        try:
            return (yield)
        finally:
            self.use.end(nextitem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail at once where the server that a test needs has died."""
        if (role := role_of(item)) is None:
            return
        if problem := server_problem(role):
            pytest.fail(problem, pytrace=False)
        prepare_server(role)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what took too long, and what was skipped for no good reason."""
        unmarked = MAY_BE_LONG.isdisjoint(report.keywords)
        on_server = ON_SERVER in report.keywords
        if report.when == "call" and unmarked and report.duration > allowed_seconds(on_server=on_server):
            self.problems.append(f"{report.nodeid} took {report.duration:.1f} s: make it faster, or mark it `slow`")
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not is_allowed_skip(reason):
                self.problems.append(f"{report.nodeid} was skipped, which no list allows: {reason}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop the servers of the run, and make it fail for what was noted."""
        if hasattr(self.config, "workerinput"):
            return
        self.problems += end_run()
        if self.problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was noted, and what is in quarantine."""
        for problem in self.problems:
            terminalreporter.write_line(f"NOT ALLOWED: {problem}", red=True)
        for entry in QUARANTINE if self.last == len(NAMES) - 1 else ():
            terminalreporter.write_line(f"QUARANTINED since {entry.since}: {entry.test}: {entry.reason}", yellow=True)
