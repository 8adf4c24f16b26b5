"""Background threads that report their failures, their timer, threads for async code, and waiting for the queue."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Literal, Protocol, TypeVar

from graphmem.errors import IndexMismatch, StoreAccessDenied, StoreReadOnly
from graphmem.models import Scope
from graphmem.protocols import enter_background


class Wakeable(Protocol):
    """An object that a timer wakes at a time."""

    def wake(self) -> None:
        """Continue; must not block and must not raise."""
        ...


class WakeTimer:
    """Times at which objects are woken; its daemon thread ends when none is left.

    Parameters
    ----------
    name
        Name of the thread.
    """

    def __init__(self, name: str = "graphmem-timer") -> None:
        self._name = name
        self._times: dict[Wakeable, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def wake_after(self, seconds: float, wakeable: Wakeable) -> None:
        """Wake an object after a number of seconds, in place of an earlier request for it.

        If no thread can be started, the request waits for the next one.
        """
        with self._changed:
            self._times[wakeable] = time.monotonic() + seconds
            self._changed.notify()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    _log.warning("%s: no thread can be started: %s", self._name, error)
                else:
                    self._thread = thread

    def cancel(self, wakeable: Wakeable) -> None:
        """Drop the request of an object."""
        with self._changed:
            self._times.pop(wakeable, None)
            self._changed.notify()

    def _run(self) -> None:
        while (due := self._due()) is not None:
            for wakeable in due:
                wakeable.wake()

    def _due(self) -> list[Wakeable] | None:
        """Wait for the next time and return the objects to wake, perhaps none; None if no request is left."""
        with self._changed:
            if not self._times:
                self._thread = None
                return None
            self._changed.wait(max(0.0, min(self._times.values()) - time.monotonic()))
            now = time.monotonic()
            due = [wakeable for wakeable, at in self._times.items() if at <= now]
            for wakeable in due:
                del self._times[wakeable]
            return due


_timer = WakeTimer()


def wake_timer() -> WakeTimer:
    """Return the timer of this process."""
    return _timer


def _reset_after_fork() -> None:
    global _timer
    _timer = WakeTimer()  # the thread stayed in the parent process


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


T = TypeVar("T")

PoolName = Literal["turns", "reads", "jobs", "work"]
"""Kinds of calls with separate threads: storing single turns, reads, long jobs, and workers that run until they are
stopped, each on its own thread. Pools don't block each other."""

_THREADS: dict[PoolName, int] = {"turns": 4, "reads": 4, "jobs": 4, "work": 10_000}


class ThreadPools:
    """Thread pools for each kind of call, started on first use and shut down after a minute without calls."""

    def __init__(self) -> None:
        self._pools: dict[PoolName, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()
        self._running = 0
        self._ended_at = 0.0

    async def run(self, pool: PoolName, call: Callable[[], T]) -> T:
        """Run a blocking call on a thread of a pool; cancelling the caller before it starts prevents the call."""
        context = contextvars.copy_context()
        return await asyncio.wrap_future(self.submit(pool, partial(context.run, call)))

    def submit(self, pool: PoolName, call: Callable[[], T]) -> Future[T]:
        """Schedule a call on a thread of a pool."""
        with self._lock:
            if not self._pools:
                wake_timer().wake_after(_KEPT, self)
            if pool not in self._pools:
                self._pools[pool] = ThreadPoolExecutor(_THREADS[pool], thread_name_prefix=f"graphmem-{pool}")
            future = self._pools[pool].submit(call)
            self._running += 1
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: Future[T]) -> None:
        with self._lock:
            self._running -= 1
            self._ended_at = time.monotonic()

    def wake(self) -> None:
        """Shut the pools down if they are idle for a minute; called by the timer."""
        with self._lock:
            left = _KEPT if self._running else self._ended_at + _KEPT - time.monotonic()
        if left > 0:
            wake_timer().wake_after(left, self)
        else:
            self.close()

    def close(self) -> None:
        """Shut the pools down without waiting; running calls finish."""
        wake_timer().cancel(self)
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.shutdown(wait=False)


_log = logging.getLogger(__name__)

PAUSE_IF_DENIED = 60.0
"""Seconds until the next try after a store refused the password, since a server may lock a user out after a few."""

_LONGEST_PAUSE = 60.0
_DOUBLINGS = 10  # of the pause after a failure; more would overflow
_RETRY = 60.0  # seconds until the next try to start a thread
_QUIET = 0.05  # seconds without a wake after which a series of writes counts as finished
_LONGEST_GATHERING = 1.0  # seconds
_SHORTEST_WAIT = 1.0
_WAIT_FOR_WORK = 5.0  # as a multiple of the duration of the last run
_LINGER = 1.0  # seconds after which an idle thread ends: a process may have a thousand memories open
_AT_EXIT = 3.0  # seconds that a process which ends waits for its jobs, as for the loading of a model
_KEPT = 60.0  # seconds after which the idle threads for async code end


_started: weakref.WeakSet[BackgroundJob] = weakref.WeakSet()


def stop_at_exit(timeout: float = _AT_EXIT) -> None:
    """Stop the jobs of this process and wait for their threads; one that is in native code would abort the process."""
    jobs = list(_started)
    until = time.monotonic() + timeout
    for job in jobs:  # all of them before the first is waited for, so that they end side by side
        job.stop(0.0)
    for job in jobs:
        job.stop(max(0.0, until - time.monotonic()))


# as concurrent.futures does: before other handlers free what the threads still use, as those of spaCy
_register = getattr(threading, "_register_atexit", atexit.register)
_register(stop_at_exit)


class BackgroundJob:
    """A job on a daemon thread that runs when woken, and repeatedly while it has work.

    The thread ends when the job has been idle for a second. The next wake starts a new one; so does the
    `wake_timer`, for a job that asked for another run.

    The job gives way to callers: while wakes follow one another it waits, up to the longer of one second and five times
    the duration of its last run. Threads share an interpreter, so a caller that stores a series of rows would otherwise
    wait for this thread at each row.

    Parameters
    ----------
    name
        Name of the thread.
    job
        Does a piece of work; returns the seconds until its next run (0: at once), or None to sleep until it is woken.
        If it raises, it is run again after a pause that doubles from 0.1 s to 60 s, or is `PAUSE_IF_DENIED`; the error
        is logged and kept in `error` until a run succeeds.
    gather
        Least time without a wake before a run, as a multiple of the duration of the last one, and at most a second: a
        job that costs little more for many rows than for one gathers them while its store is slow.
    """

    def __init__(self, name: str, job: Callable[[], float | None], *, gather: float = 0.0) -> None:
        self._name = name
        self._job = job
        self._gather = gather
        self._wake = threading.Event()
        self._woken_at = 0.0
        self._duration = 0.0
        self._failures = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called; long jobs check this to end early."""
        return self._stop.is_set()

    def wake(self) -> None:
        """Run the job soon, starting a thread if there is none."""
        self._woken_at = time.monotonic()
        self._wake.set()
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    _log.warning("%s: no thread can be started, next try in %.0f s: %s", self._name, _RETRY, error)
                    wake_timer().wake_after(_RETRY, self)
                else:
                    self._thread = thread
                    _started.add(self)

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread after the current run; return whether it ended within `timeout` seconds."""
        with self._lock:
            self._stop.set()
            wake_timer().cancel(self)
            thread = self._thread
        self._wake.set()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self) -> None:
        enter_background()
        pause: float | None = 0.0
        while not self._stop.is_set():
            if self._should_exit(pause):
                return
            self._wait_for_quiet(self._duration)
            self._wake.clear()
            if self._stop.is_set():
                return
            begun = time.monotonic()
            try:
                pause = self._job()
                self._failures, self.error = 0, None
            except BaseException as error:  # noqa: BLE001 - the thread has to survive and report any error
                self.error = error if isinstance(error, Exception) else RuntimeError(repr(error))
                self._failures += 1
                doubled = min(0.1 * 2 ** min(self._failures, _DOUBLINGS), _LONGEST_PAUSE)
                pause = PAUSE_IF_DENIED if isinstance(error, StoreAccessDenied) else doubled
                _log.warning("%s failed, next try in %.1f s: %s", self._name, pause, error)
            self._duration = time.monotonic() - begun

    def _should_exit(self, pause: float | None) -> bool:
        """Wait for a wake, or until a pause is over; return whether the thread ends because that takes longer."""
        if pause is not None and pause <= _LINGER:
            self._wake.wait(pause)
            return False
        if self._wake.wait(_LINGER):
            return False
        with self._lock:
            if self._wake.is_set() or self._stop.is_set():
                return False
            self._thread = None
            if pause is not None:
                wake_timer().wake_after(pause - _LINGER, self)
            return True

    def _wait_for_quiet(self, duration: float) -> None:
        """Wait for a moment in which nobody wakes the job, longer at most if its last run took longer."""
        latest = time.monotonic() + max(_SHORTEST_WAIT, _WAIT_FOR_WORK * duration)
        quiet = max(_QUIET, min(self._gather * duration, _LONGEST_GATHERING))
        while not self._stop.is_set():
            left = min(self._woken_at + quiet, latest) - time.monotonic()
            if left <= 0:
                return
            self._stop.wait(left)


class ScopedJob:
    """A background job that processes one scope after the other on its own thread.

    Parameters
    ----------
    name
        Name of the thread.
    step
        Does the next piece of work in a scope; returns whether it was the last. Errors are handled as in
        `BackgroundJob`, and the scope stays in the queue. In a read-only store, the work is left to other processes;
        a scope whose index is of another model is tried again when the job wakes, at the latest after a minute, and
        delays no other.
    gather
        As for `BackgroundJob`.
    serves
        Whether to process a scope; asked when its turn comes.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[Scope], bool],
        *,
        gather: float = 1.0,
        serves: Callable[[Scope], bool] = lambda _: True,
    ) -> None:
        self._step = step
        self.serves = serves
        self._waiting: dict[Scope, None] = {}
        self._mismatched: dict[Scope, IndexMismatch] = {}
        self._lock = threading.Lock()
        self._job = BackgroundJob(name, self._work, gather=gather)

    @property
    def error(self) -> Exception | None:
        """Error of the last run, or of a scope with the index of another model; None if there is none."""
        with self._lock:
            return self._job.error or next(iter(self._mismatched.values()), None)

    def wake(self, scopes: Iterable[Scope]) -> None:
        """Process these scopes soon."""
        with self._lock:
            self._waiting.update(dict.fromkeys(scopes))
        self._job.wake()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread after the current step; return whether it ended within `timeout` seconds."""
        return self._job.stop(timeout)

    def _work(self) -> float | None:
        with self._lock:
            scope = next(iter(self._waiting), None)
            if scope is None:
                self._waiting.update(dict.fromkeys(self._mismatched))
                return _LONGEST_PAUSE if self._waiting else None
            del self._waiting[scope]  # before the work: rows stored meanwhile add the scope again
        done, mismatch = False, None
        try:
            done = not self.serves(scope) or self._step(scope)
        except StoreReadOnly:
            done = True
        except IndexMismatch as error:
            done, mismatch = True, error
        finally:
            with self._lock:
                if not done:
                    self._waiting[scope] = None
                known = self._mismatched.pop(scope, None)
                if mismatch is not None:
                    self._mismatched[scope] = mismatch
        if mismatch is not None and known is None:
            _log.warning("%s", mismatch)
        return 0.0


class Watchers:
    """Futures of callers that wait until this process has settled an episode: extracted it, or given it up."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[Future[None]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def watching(self, episode_id: str | None) -> Generator[Future[None]]:
        """Yield a future that completes when the episode is settled, or any episode for None."""
        key, future = episode_id or "", Future[None]()
        with self._lock:
            self._waiting.setdefault(key, set()).add(future)
        try:
            yield future
        finally:
            with self._lock:
                self._waiting.get(key, set()).discard(future)
                if not self._waiting.get(key):
                    self._waiting.pop(key, None)

    def complete(self, episode_ids: Sequence[str]) -> None:
        """Complete the futures of settled episodes."""
        if not self._waiting or not episode_ids:
            return
        with self._lock:
            futures = [future for key in ("", *episode_ids) for future in self._waiting.pop(key, ())]
        for future in futures:
            if future.set_running_or_notify_cancel():
                future.set_result(None)
