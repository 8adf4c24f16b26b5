"""Parallel calls with hard time limits, each on a thread of its own."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

on_timeout: ContextVar[list[Callable[[], None]]] = ContextVar("on_timeout")
"""Functions to call when the current code exceeds its time limit, which `TimedCalls` sets."""

_ABANDONED_PER_SLOT = 4


class TooManyHanging(TimeoutError):
    """Raised for a new call when too many timed-out calls are still running."""


@dataclass(frozen=True, slots=True)
class _Running(Generic[T]):
    position: int
    future: Future[T]
    deadline: float
    on_timeout: list[Callable[[], None]]


class TimedCalls(Generic[T]):
    """Runner of at most `concurrency` calls at once over all threads, each with a limit of `timeout` seconds.

    Python can't stop a thread: a call past its limit keeps running in a daemon thread, which doesn't block the exit of
    the program, and its slot is released. While four times `concurrency` such calls are still running, new ones fail at
    once.

    Parameters
    ----------
    name
        Name of the threads.
    concurrency
        Maximum number of concurrent calls.
    timeout
        Time limit of a call in seconds.
    """

    def __init__(self, name: str, concurrency: int, timeout: float) -> None:
        self._name = name
        self._slots = threading.BoundedSemaphore(concurrency)
        self._timeout = timeout
        self._max_abandoned = _ABANDONED_PER_SLOT * concurrency
        self._abandoned: set[Future[T]] = set()
        self._lock = threading.Lock()

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | Exception]:
        """Run the calls; return the result or exception of each in order (TimeoutError past the limit)."""
        results: dict[int, T | Exception] = {}
        waiting = list(enumerate(calls))[::-1]
        running: list[_Running[T]] = []
        while waiting or running:
            # block for a slot only while none of these calls is running
            while waiting and self._slots.acquire(blocking=not running):
                position, call = waiting.pop()
                if self._hanging() >= self._max_abandoned:
                    self._slots.release()
                    results[position] = TooManyHanging(f"{self._max_abandoned} earlier calls still hang")
                else:
                    actions: list[Callable[[], None]] = []
                    try:
                        future = _start(self._name, call, actions)
                    except RuntimeError as error:  # no more threads can be started
                        self._slots.release()
                        results[position] = error
                    else:
                        running.append(_Running(position, future, time.monotonic() + self._timeout, actions))
            running = self._settle(running, results)
        return [results[position] for position in range(len(calls))]

    def _settle(self, running: list[_Running[T]], results: dict[int, T | Exception]) -> list[_Running[T]]:
        if not running:
            return running
        first = min(call.deadline for call in running)
        wait([c.future for c in running], max(0.0, first - time.monotonic()), return_when=FIRST_COMPLETED)
        now = time.monotonic()
        left: list[_Running[T]] = []
        for call in running:
            if call.future.done():
                results[call.position] = _outcome(call.future)
            elif call.deadline <= now:
                results[call.position] = TimeoutError(f"no reply within {self._timeout:g} s")
                with self._lock:
                    self._abandoned.add(call.future)
                for action in tuple(call.on_timeout):
                    action()
            else:
                left.append(call)
                continue
            self._slots.release()
        return left

    def _hanging(self) -> int:
        with self._lock:
            self._abandoned = {future for future in self._abandoned if not future.done()}
            return len(self._abandoned)


def _start(name: str, call: Callable[[], T], actions: list[Callable[[], None]]) -> Future[T]:
    future: Future[T] = Future()
    context = contextvars.copy_context()  # keeps the tracing context of the caller
    context.run(on_timeout.set, actions)

    def work() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  (passed to the future)
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future


def _outcome(future: Future[T]) -> T | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
