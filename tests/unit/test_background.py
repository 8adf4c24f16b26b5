"""Work behind the caller's back."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from graphmem import GraphMemory, background
from graphmem.background import BackgroundJob, ScopedJob, ThreadPools, WakeTimer
from graphmem.errors import BackendUnavailable, IndexMismatch, StoreAccessDenied
from graphmem.models import Scope, utc_now
from graphmem.worker import Worker, WorkerState


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
    assert done.wait(30)
    assert worker.stop(30)


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
    assert failed.wait(30)
    while worker.error is None:
        pass
    assert "store is away" in str(worker.error)
    fail[0] = False
    assert recovered.wait(30)
    assert worker.stop(30)
    assert worker.error is None


def test_after_a_refused_password_it_waits_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()

    def job() -> float | None:
        failed.set()
        raise StoreAccessDenied("wrong password")

    worker = BackgroundJob("t", job)
    with caplog.at_level("WARNING"):
        worker.wake()
        assert failed.wait(30)
        while not caplog.messages:
            pass
    assert worker.stop(30)
    assert caplog.messages == ["t failed, next try in 60.0 s: wrong password"]


@pytest.mark.parametrize(("kind", "seconds"), [(StoreAccessDenied, 60.0), (BackendUnavailable, 1.0)])
def test_a_worker_waits_a_minute_after_a_refused_password(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception], seconds: float
) -> None:
    class Stopping(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            self.set()
            return True

    def poll(_: Worker) -> WorkerState:
        raise kind("the store is away")

    waits: list[float | None] = []
    states: list[str] = []
    monkeypatch.setattr(Worker, "_poll", poll)
    with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
        worker = Worker(memory._engine)  # pyright: ignore[reportPrivateUsage]
        worker.run(Stopping(), lambda state: states.append(state.state))
    assert (waits, states) == ([seconds], ["store unavailable", "stopped"])


def test_a_worker_logs_an_error_of_the_store_once_until_it_has_passed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stopping = threading.Event()
    polls = iter(["away", "away", "full", None, "full"])

    def poll(_: Worker) -> WorkerState:
        if (problem := next(polls, "end")) == "end":
            stopping.set()
        if problem is not None:
            raise BackendUnavailable(problem)
        return WorkerState(state="idle", at=utc_now())

    monkeypatch.setattr(Worker, "_poll", poll)
    with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
        worker = Worker(memory._engine, seconds=0.0)  # pyright: ignore[reportPrivateUsage]
        worker.run(stopping, lambda _: None)
    assert caplog.messages == [f"worker: {problem}" for problem in ("away", "full", "full", "end")]


def test_it_goes_on_after_thousands_of_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_LONGEST_PAUSE", 0.0)
    done, runs = threading.Event(), iter(range(2000))

    def job() -> float | None:
        if next(runs, None) is None:
            done.set()
            return None
        raise OSError("store is away")

    worker = BackgroundJob("t", job)
    worker.wake()
    assert done.wait(30)
    assert worker.stop(30)


def named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def own_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the timer of the process by one for this test; its thread ends with the last request."""
    mine = WakeTimer("test-timer")
    monkeypatch.setattr(background, "wake_timer", lambda: mine)


def test_jobs_that_run_again_later_have_no_threads_but_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    own_timer(monkeypatch)
    monkeypatch.setattr(background, "_LINGER", 0.01)
    pauses = [iter([0.1, 0.2, 60.0]) for _ in range(50)]
    last = threading.Semaphore(0)

    def job(n: int) -> float:
        pause = next(pauses[n])
        if pause == 60.0:
            last.release()
        return pause

    workers = [BackgroundJob("sleeper", lambda n=n: job(n)) for n in range(50)]
    for worker in workers:
        worker.wake()
    assert all(last.acquire(timeout=20) for _ in workers)
    for sleeper in named("sleeper"):
        sleeper.join(30)
    assert named("sleeper") == []
    [timer] = named("test-timer")
    assert all(worker.stop(30) for worker in workers)
    timer.join(30)
    assert not timer.is_alive()


def test_a_job_for_which_no_thread_can_be_started_runs_later(monkeypatch: pytest.MonkeyPatch) -> None:
    own_timer(monkeypatch)
    monkeypatch.setattr(background, "_RETRY", 0.01)
    ran = threading.Event()
    worker = BackgroundJob("late", ran.set)
    start, refused = threading.Thread.start, [True]

    def refuse_once(thread: threading.Thread) -> None:
        if thread.name == "late" and refused:
            refused.clear()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    worker.wake()
    assert ran.wait(30)
    assert worker.stop(30)


def test_without_any_thread_a_job_waits_for_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    own_timer(monkeypatch)
    monkeypatch.setattr(background, "_RETRY", 0.01)
    ran, other = threading.Event(), threading.Event()
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    worker, next_worker = BackgroundJob("late", ran.set), BackgroundJob("next", other.set)
    worker.wake()
    monkeypatch.setattr(threading.Thread, "start", start)
    background.wake_timer().wake_after(0.01, next_worker)
    assert ran.wait(30)
    assert other.wait(30)
    assert worker.stop(30)
    assert next_worker.stop(30)


def test_a_scope_that_is_not_served_when_its_turn_comes_is_passed_over() -> None:
    done, ran = threading.Event(), list[str]()

    def serves_now(scope: Scope) -> bool:
        return str(scope) != "b"

    def step(scope: Scope) -> bool:
        ran.append(str(scope))
        if len(ran) == 1:
            job.serves = serves_now
        if str(scope) == "c":
            done.set()
        return True

    job = ScopedJob("t", step)
    job.wake(map(Scope, "abc"))
    assert done.wait(30)
    assert job.stop(30)
    assert ran == ["a", "c"]


def test_scopes_whose_index_is_of_another_model_do_not_delay_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    own_timer(monkeypatch)
    left, matches = {f"old{n}" for n in range(20)}, [False]
    tried, done, recovered = threading.Event(), threading.Event(), threading.Event()

    def step(scope: Scope) -> bool:
        if scope.key == "new":
            done.set()
        elif not matches[0]:
            tried.set()
            raise IndexMismatch("built with another model")
        left.discard(scope.key)
        if not left:
            recovered.set()
        return True

    job = ScopedJob("t", step)
    job.wake(map(Scope, list(left)))
    assert tried.wait(30)
    job.wake([Scope("new")])
    assert done.wait(30)  # pauses that double after each failure would last for ten minutes
    assert isinstance(job.error, IndexMismatch)
    matches[0] = True
    job.wake([Scope("new")])  # the others are tried again before it
    assert recovered.wait(30)
    assert job.stop(30)
    assert job.error is None


def test_idle_threads_for_async_code_end_and_running_calls_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    own_timer(monkeypatch)
    monkeypatch.setattr(background, "_KEPT", 0.05)
    before = named("graphmem-reads")
    pools = ThreadPools()
    release = threading.Event()
    running = pools.submit("reads", lambda: release.wait(30))
    [timer] = named("test-timer")
    timer.join(0.3)
    assert timer.is_alive()
    [thread] = [one for one in named("graphmem-reads") if one not in before]
    release.set()
    assert running.result(10)
    thread.join(30)
    timer.join(30)
    assert not thread.is_alive()
    assert not timer.is_alive()
    assert pools.submit("reads", lambda: 7).result(10) == 7
    pools.close()


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
    assert worker.stop(30)
    assert not ran.is_set()


@pytest.mark.parametrize(("quiet", "shortest"), [(60.0, 0.1), (0.1, 60.0)], ids=["no-longer-than-it-may", "till-quiet"])
def test_it_gives_way_for_a_while(monkeypatch: pytest.MonkeyPatch, quiet: float, shortest: float) -> None:
    monkeypatch.setattr(background, "_QUIET", quiet)
    monkeypatch.setattr(background, "_SHORTEST_WAIT", shortest)
    ran = threading.Event()
    worker = BackgroundJob("t", ran.set)
    worker.wake()
    assert ran.wait(30)
    assert worker.stop(30)


def test_after_a_slow_run_a_gathering_job_waits_longer_for_quiet() -> None:
    runs: list[float] = []
    again = threading.Event()

    def job() -> None:
        runs.append(time.monotonic())
        if len(runs) == 1:
            time.sleep(1.0)
        else:
            again.set()

    worker = BackgroundJob("t", job, gather=1.0)
    worker.wake()
    while not runs:
        time.sleep(0.01)
    for _ in range(12):
        worker.wake()
        time.sleep(0.15)
    assert len(runs) == 1
    assert again.wait(30)
    assert worker.stop(30)


def test_a_program_that_ends_waits_for_a_run_and_starts_no_further_one() -> None:
    # native code in a thread that the interpreter no longer waits for aborts the process
    program = """
import time
from graphmem.background import BackgroundJob
def job():
    print("begun", flush=True)
    time.sleep(0.5)
    print("done", flush=True)
    return 0.0
worker = BackgroundJob("t", job)
worker.wake()
while not worker._duration and not worker._thread: pass
time.sleep(0.2)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["begun", "done"]
