"""Work behind the caller's back."""

from __future__ import annotations

import threading
import time

import pytest

from graphmem.background import BackgroundJob, ScopedJob
from graphmem.models import Scope


def test_it_runs_when_woken_and_again_while_there_is_work() -> None:
    left, done = [3], threading.Event()

    def job() -> float | None:
        left[0] -= 1
        if left[0] == 0:
            done.set()
            return None
        return 0.0

    worker = BackgroundJob("t", job)
    worker.wake()
    assert done.wait(5)
    assert worker.stop(5)


@pytest.mark.parametrize("kind", [OSError, SystemExit])
def test_it_outlives_an_error_and_tells_it_until_a_run_succeeds(kind: type[BaseException]) -> None:
    fail, failed, recovered = [True], threading.Event(), threading.Event()

    def job() -> float | None:
        if fail[0]:
            failed.set()
            raise kind("store is away")
        recovered.set()
        return None

    worker = BackgroundJob("t", job)
    worker.wake()
    assert failed.wait(5)
    while worker.error is None:
        pass
    assert "store is away" in str(worker.error)
    fail[0] = False
    assert recovered.wait(5)
    assert worker.stop(5)
    assert worker.error is None


def test_stopping_one_that_never_ran_is_no_error() -> None:
    assert BackgroundJob("t", lambda: None).stop(1)


def test_after_a_stop_it_does_not_start_again() -> None:
    ran = threading.Event()
    worker = BackgroundJob("t", lambda: ran.set())
    worker.stop(1)
    worker.wake()
    assert not ran.wait(0.05)


def test_it_rests_while_more_is_being_stored_and_a_stop_cuts_that_short() -> None:
    begun: list[float] = []
    twice = threading.Event()

    def step(scope: Scope) -> bool:
        begun.append(time.monotonic())
        if len(begun) == 1:
            time.sleep(0.05)
            worker.wake([scope])  # as a load does that goes on
            worker.wake([scope])
        else:
            twice.set()
        return True

    worker = ScopedJob("t", step)
    worker.wake([Scope("a")])
    assert twice.wait(5)
    assert begun[1] - begun[0] >= 0.2
    assert worker.stop(1)


def test_scopes_that_wait_without_anybody_storing_are_worked_on_without_a_rest() -> None:
    left, done = ["a", "b", "c"], threading.Event()

    def step(scope: Scope) -> bool:
        time.sleep(0.01)
        left.remove(scope.domain)
        if not left:
            done.set()
        return True

    worker = ScopedJob("t", step)
    worker.wake([Scope(name) for name in left])
    assert done.wait(5)
    assert worker.stop(1)
