"""Jobs run when they are due; one that has to pause is made up, and the others don't wait for it."""

from __future__ import annotations

import pytest

from graphmem.models import Scope
from graphmem.registry import open_backend
from graphmem.testing.rows import day, episode, home
from graphmem.upkeep.schedule import Stopping, UpkeepJob, UpkeepSchedule


class Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("graphmem.upkeep.schedule.time.monotonic", lambda: self.now)


def never() -> bool:
    return False


def test_what_had_to_pause_is_done_when_the_pause_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ran = Clock(monkeypatch), list[str]()

    def job(name: str, pause: float) -> UpkeepJob:
        def run(_: Scope, stopping: Stopping) -> bool:
            ran.append(name)
            return not stopping()

        return UpkeepJob(name, run, lambda _: 100.0 + pause - clock.now)

    store = open_backend("memory://")
    schedule = UpkeepSchedule(store, [job("slow", 30.0), job("quick", 0.0)], interval=2)
    store.add_episodes(home(), [episode(n, processed_at=day(1)) for n in range(2)])
    assert schedule.processed(home(), 2)
    assert schedule.run(never) == 30.0
    assert ran == ["quick"]
    clock.now += 29.0
    assert schedule.run(never) == 1.0
    assert ran == ["quick"]
    clock.now += 1.0
    assert schedule.run(never) is None
    assert ran == ["quick", "slow"]
    assert schedule.run(never) is None
    assert ran == ["quick", "slow"]


def test_another_scope_does_not_wait_for_one_that_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    ran: list[Scope] = []

    def run(scope: Scope, _: Stopping) -> bool:
        ran.append(scope)
        return True

    other = Scope("other")
    store = open_backend("memory://")
    job = UpkeepJob("job", run, lambda scope: 30.0 if scope == home() else 0.0)
    schedule = UpkeepSchedule(store, [job], interval=1)
    for scope in (home(), other):
        store.add_episodes(scope, [episode(int(scope == other), scope=scope, processed_at=day(1))])
    assert schedule.add([home(), other])
    assert schedule.run(never) == 0.0
    assert schedule.run(never) == 30.0
    assert ran == [other]


def test_a_scope_that_is_not_served_when_its_turn_comes_is_passed_over() -> None:
    served, ran = [home(), Scope("other")], list[Scope]()

    def run(scope: Scope, _: Stopping) -> bool:
        ran.append(scope)
        return True

    store = open_backend("memory://")
    for n, scope in enumerate(served):
        store.add_episodes(scope, [episode(n, processed_at=day(1)).changed(scope=scope)])
    schedule = UpkeepSchedule(store, [UpkeepJob("job", run)], 1, served.__contains__)
    assert schedule.add([Scope("other"), home()])
    served.remove(Scope("other"))
    while schedule.run(never) is not None:
        pass
    assert ran == [home()]
