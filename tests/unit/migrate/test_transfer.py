"""Changes of several processes reach the secondary in any order, and it ends with the rows of the primary."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from graphmem import GraphMemory
from graphmem.background import BackgroundJob
from graphmem.migrate.copy import repair
from graphmem.migrate.follower import Follower
from graphmem.migrate.service import Migration
from graphmem.migrate.tokens import JOB, is_equal
from graphmem.migrate.verify import verify
from graphmem.models import EdgeQuery, JobState, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.random_rows import PairOfStores, outcome
from graphmem.testing.rows import all_scopes, new_world
from graphmem.testing.stateful import StoreMachine
from graphmem.testing.stateful_upkeep import GroupMachine, UpkeepMachine
from graphmem.upkeep.scope_rows import all_rows, count_dangling, to_json
from tests.unit.migrate.processes import open_process, sleep_on

PROCESSES = 3
_ALLOWED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def rows_of(store: GraphBackend, scope: Scope) -> list[tuple[str, str]]:
    """Return all rows of a scope but the tokens."""
    rows = all_rows(store, scope, extras=True)
    return sorted((k, to_json(k, row)) for k, row in rows if not (isinstance(row, JobState) and row.job == JOB))


def run(machine: type[PairOfStores], name: str, repairs: Counter[str], examples: int) -> None:
    """Run the operations of a machine by several processes in a migration, which transfer their changes at random."""
    numbers = count()

    class Machine(machine):
        def __init__(self) -> None:
            self._opened = ExitStack()
            self._opened.enter_context(new_world())
            number = next(numbers)
            urls = f"memory://{name}-{number}a", f"memory://{name}-{number}b"
            self.moved = self._opened.enter_context(closing(Migration.open(*urls, open_backend)))
            self.moved.advance("copy")
            self.chance, self.seconds = random.Random(0), 0.0
            self.processes = [self.process(*urls) for _ in range(PROCESSES)]
            super().__init__(self.processes[0], is_shared=False)

        def process(self, source: str, target: str) -> GraphBackend:
            store = open_process(source, partial(open_backend, target), lambda: self.seconds)
            self._opened.callback(store.close)
            return store

        def read(self, act: Callable[[GraphBackend], object]) -> None:
            """Compare nothing: reads are those of the primary."""

        def write(self, act: Callable[[GraphBackend], object], *, same_error: bool = True) -> None:
            del same_error
            for store in (self._oracle, self.chance.choice(self.processes)):
                outcome(partial(act, store))
            for store in self.chance.sample(self.processes, self.chance.randint(0, PROCESSES)):
                cast("Any", store)._follower.work()
            if self.chance.random() < 0.2:
                self.compare()

        def compare(self) -> None:
            """Let all changes be transferred, and compare the stores."""
            followers: list[Follower] = [cast("Any", store)._follower for store in self.processes]
            while any(cast("Any", follower)._pending for follower in followers):
                for follower in self.chance.sample(followers, PROCESSES):
                    follower.work()
                self.seconds += 0.1
            assert self.seconds < 15.0  # no process has repaired a scope because it waited too long for another one
            self.moved.settle()
            for scope in all_scopes():
                assert is_equal(self.moved.source, self.moved.target, scope) or not rows_of(self.moved.source, scope)
                assert rows_of(self.moved.target, scope) == rows_of(self.moved.source, scope)

        def teardown(self) -> None:
            self.compare()
            super().teardown()
            self._opened.close()

    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=examples, stateful_step_count=20, deadline=None, suppress_health_check=_ALLOWED),
    )


@pytest.fixture
def repairs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the numbers of repairs by the migration and by the processes; nothing runs in the background."""
    monkeypatch.setattr(BackgroundJob, "wake", sleep_on)
    monkeypatch.setattr("graphmem.migrate.backend._CLOSING", 0.0)
    counts = Counter[str]()

    def counted(name: str) -> Callable[..., bool]:
        def repaired(*args: Any, **kwargs: Any) -> bool:
            counts[name] += 1
            return repair(*args, **kwargs)

        return repaired

    monkeypatch.setattr("graphmem.migrate.follower.repair", counted("process"))
    monkeypatch.setattr("graphmem.migrate.service.repair", counted("migration"))
    return counts


@pytest.mark.parametrize("machine", [StoreMachine, GroupMachine, UpkeepMachine])
def test_changes_of_several_processes_reach_the_secondary_in_any_order(
    machine: type[PairOfStores], repairs: Counter[str], tmp_path: Path, rounds: Callable[[int], int]
) -> None:
    run(machine, tmp_path.name, repairs, rounds(200))
    assert repairs["migration"] == 0  # nothing was left out


def test_more_processes_than_slots_of_the_token_wait_for_each_other(
    repairs: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: Callable[[int], int]
) -> None:
    monkeypatch.setattr("graphmem.migrate.tokens._SLOTS", PROCESSES - 1)
    run(StoreMachine, tmp_path.name, repairs, rounds(100))
    assert repairs["migration"] == 0


def test_references_to_rows_that_were_deleted_by_sql_are_left_behind(repairs: Counter[str], tmp_path: Path) -> None:
    file, target = tmp_path / "memory.db", f"memory://{tmp_path.name}"
    options: dict[str, Any] = {"scope": "moved", "extractor": "none", "embeddings": "none", "background": False}
    with GraphMemory.open(f"sqlite:///{file}", **options) as memory:
        memory.add_facts([("Ada", "lives in", "Oslo"), ("Bob", "likes", "tea"), ("Ada", "knows", "Bob")])
        memory.add_facts([("Bob", "likes", "tea")])
        memory.search("Where does Ada live?")  # builds the index
        memory.admin.refresh_communities()
    with closing(sqlite3.connect(file)) as past, past:
        past.execute("DELETE FROM entities WHERE canonical_name = 'oslo'")
        past.execute("DELETE FROM episodes WHERE id = (SELECT max(id) FROM episodes)")
    with closing(Migration.open(f"sqlite:///{file}", target, open_backend)) as moved:
        moved.advance("copy")
        moved.copy()
        assert count_dangling(moved.source, Scope("moved")) > 0
        assert count_dangling(moved.target, Scope("moved")) == 0
        assert verify(*moved.ends(), [Scope("moved")]).differences == ()
        known = {edge.id for edge in moved.target.find_edges([Scope("moved")], EdgeQuery())}
        assert len(known) == 2
        # what a process changes later is transferred without them, too
        with closing(open_process(f"sqlite:///{file}", partial(open_backend, target), lambda: 0.0)) as process:
            process.record_retrievals([Scope("moved")], sorted(known), datetime.now(UTC))
            cast("Any", process)._follower.work()
        assert count_dangling(moved.target, Scope("moved")) == 0
        assert {e.retrieval_count for e in moved.target.find_edges([Scope("moved")], EdgeQuery())} == {1.0}
    assert repairs["process"] == 0
