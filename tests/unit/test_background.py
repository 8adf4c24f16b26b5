"""Work behind the caller's back."""

from __future__ import annotations

import threading

import pytest

from graphmem import background
from graphmem.background import BackgroundJob


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


def test_it_gives_way_while_wakes_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_QUIET", 60.0)
    monkeypatch.setattr(background, "_SHORTEST_WAIT", 60.0)
    ran = threading.Event()
    worker = BackgroundJob("t", ran.set)
    worker.wake()
    assert not ran.wait(0.2)
    worker.wake()
    assert not ran.wait(0.2)
    assert worker.stop(5)
    assert not ran.is_set()


@pytest.mark.parametrize(("quiet", "shortest"), [(60.0, 0.1), (0.1, 60.0)], ids=["no-longer-than-it-may", "till-quiet"])
def test_it_gives_way_for_a_while(monkeypatch: pytest.MonkeyPatch, quiet: float, shortest: float) -> None:
    monkeypatch.setattr(background, "_QUIET", quiet)
    monkeypatch.setattr(background, "_SHORTEST_WAIT", shortest)
    ran = threading.Event()
    worker = BackgroundJob("t", ran.set)
    worker.wake()
    assert ran.wait(5)
    assert worker.stop(5)
