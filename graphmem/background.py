"""Background threads that report their failures, threads for async code, and pauses of the garbage collector.

The collector goes through the young objects each time that so many more were made, and through all objects of the
process each time that these have grown by a quarter: a quarter of the processor's time of loading triples, for nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal, TypeVar

from graphmem.errors import StoreReadOnly
from graphmem.models import Scope


class _Pauses:
    """The pauses of the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._was_on = False

    @contextmanager
    def paused(self) -> Generator[None]:
        """Pause the collector while the block runs; what isn't in a cycle is freed as ever.

        For batches of a bounded size. Threads may pause it at once: the last to end sets it going, if it was going.
        """
        with self._lock:
            if self._count == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if self._count == 0 and self._was_on:
                    gc.enable()


gc_paused = _Pauses().paused


T = TypeVar("T")

Lane = Literal["turns", "reads", "jobs"]
"""Storing single turns, which is quick; questions; and what takes long: a lane never waits for another."""

_THREADS: dict[Lane, int] = {"turns": 2, "reads": 4, "jobs": 4}


class Workers:
    """A few threads for each kind of call, started when the first one comes."""

    def __init__(self) -> None:
        self._pools: dict[Lane, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()

    async def run(self, lane: Lane, call: Callable[[], T]) -> T:
        """Make a blocking call on a thread of a lane; if the caller is cancelled before it began, it isn't made."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool(lane), context.run, call)

    def _pool(self, lane: Lane) -> ThreadPoolExecutor:
        with self._lock:
            if lane not in self._pools:
                self._pools[lane] = ThreadPoolExecutor(_THREADS[lane], thread_name_prefix=f"graphmem-{lane}")
            return self._pools[lane]

    def close(self) -> None:
        """Let the threads end when they have done what they are doing."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.shutdown(wait=False)


_log = logging.getLogger(__name__)

_LONGEST_PAUSE = 60.0
_QUIET = 0.05  # seconds without a wake: nobody is storing one thing after another
_SHORTEST_WAIT = 1.0
_WAIT_FOR_WORK = 5.0  # times as long as the last run took
_LINGER = 1.0  # seconds after which a thread with nothing to do ends: a process may have a thousand memories open


class BackgroundJob:
    """Runs a job on a daemon thread when woken, again and again while it has something to do.

    The thread ends when the job has been asleep for a second, and the next wake starts another one.

    It gives way to those who wake it: while wakes follow one another it waits, at most a second or five times as long
    as its last run took. Threads share an interpreter, and a caller who stores one thing after another would wait for
    this one at every turn.

    Parameters
    ----------
    name
        Name of the thread.
    job
        Does a piece of work; returns the seconds until it wants to run again (0: at once), or None to
        sleep until it is woken. If it raises, it is run again after a pause that doubles from 0.1 s
        to 60 s; the error is logged and kept in `error` until a run succeeds.
    """

    def __init__(self, name: str, job: Callable[[], float | None]) -> None:
        self._name = name
        self._job = job
        self._wake = threading.Event()
        self._woken_at = 0.0
        self._took = 0.0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called: a long job ends early."""
        return self._stop.is_set()

    def wake(self) -> None:
        """Let the job run soon; a thread starts if there is none."""
        self._woken_at = time.monotonic()
        self._wake.set()
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Let the present run end and stop the thread; return whether it did within `timeout` seconds."""
        with self._lock:
            self._stop.set()
            thread = self._thread
        self._wake.set()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self) -> None:
        pause: float | None = 0.0
        failures = 0
        while not self._stop.is_set():
            if pause is None and not self._wake.wait(_LINGER):
                with self._lock:
                    if not self._wake.is_set():
                        self._thread = None
                        return
            if pause:
                self._wake.wait(pause)
            self._give_way(self._took)
            self._wake.clear()
            if self._stop.is_set():
                return
            begun = time.monotonic()
            try:
                pause = self._job()
                failures, self.error = 0, None
            except BaseException as error:  # noqa: BLE001 - whatever it is, the thread must live and say so
                self.error = error if isinstance(error, Exception) else RuntimeError(repr(error))
                failures += 1
                pause = min(0.1 * 2**failures, _LONGEST_PAUSE)
                _log.warning("%s failed, next try in %.1f s: %s", self._name, pause, error)
            self._took = time.monotonic() - begun

    def _give_way(self, took: float) -> None:
        latest = time.monotonic() + max(_SHORTEST_WAIT, _WAIT_FOR_WORK * took)
        while not self._stop.is_set():
            left = min(self._woken_at + _QUIET, latest) - time.monotonic()
            if left <= 0:
                return
            self._stop.wait(left)


class ScopedJob:
    """Runs a job in one scope after the other, on a thread of its own.

    Parameters
    ----------
    name
        Name of the thread.
    step
        Does the next piece of work in a scope; returns whether it was the last. What it raises is dealt with as by
        `BackgroundJob`, and the scope waits on; in a store that can't be written to it is left to whoever may.
    """

    def __init__(self, name: str, step: Callable[[Scope], bool]) -> None:
        self._step = step
        self._waiting: dict[Scope, None] = {}
        self._lock = threading.Lock()
        self._job = BackgroundJob(name, self._work)

    @property
    def error(self) -> Exception | None:
        """Why the last try failed; None if it didn't."""
        return self._job.error

    def wake(self, scopes: Iterable[Scope]) -> None:
        """Have the work in scopes done soon."""
        with self._lock:
            self._waiting.update(dict.fromkeys(scopes))
        self._job.wake()

    def stop(self, timeout: float | None = None) -> bool:
        """Let the present step end and stop the thread; return whether it did within `timeout` seconds."""
        return self._job.stop(timeout)

    def _work(self) -> float | None:
        with self._lock:
            scope = next(iter(self._waiting), None)
            if scope is None:
                return None
            del self._waiting[scope]  # before the work: what is stored meanwhile wakes it again
        done = False
        try:
            done = self._step(scope)
        except StoreReadOnly:
            done = True
        finally:
            if not done:
                with self._lock:
                    self._waiting[scope] = None
        return 0.0
