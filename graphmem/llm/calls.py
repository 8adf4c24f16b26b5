"""Runs blocking calls beside each other, each with a hard time limit."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

_ABANDONED_PER_SLOT = 4


class TooManyHanging(TimeoutError):
    """So many calls past their limit haven't returned that no more are begun."""


@dataclass(frozen=True, slots=True)
class _Running(Generic[T]):
    position: int
    future: Future[T]
    deadline: float


class TimedCalls(Generic[T]):
    """At most `concurrency` calls at once, over all threads that use it, none waited for longer than `timeout` seconds.

    Python can't stop a thread: a call past its limit is left behind in a daemon thread (so that it doesn't
    hold up the end of the program) and its slot is free again. When four times `concurrency` such calls still
    hang, new ones fail at once instead of adding more.
    """

    def __init__(self, concurrency: int, timeout: float) -> None:
        self._slots = threading.BoundedSemaphore(concurrency)
        self._timeout = timeout
        self._max_abandoned = _ABANDONED_PER_SLOT * concurrency
        self._abandoned: set[Future[T]] = set()
        self._lock = threading.Lock()

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | Exception]:
        """Make the calls and return, in their order, what each returned or raised (TimeoutError past the limit)."""
        results: dict[int, T | Exception] = {}
        waiting = list(enumerate(calls))[::-1]
        running: list[_Running[T]] = []
        while waiting or running:
            # with calls of our own to wait for, a slot that others hold isn't waited for
            while waiting and self._slots.acquire(blocking=not running):
                position, call = waiting.pop()
                if self._hanging() >= self._max_abandoned:
                    self._slots.release()
                    results[position] = TooManyHanging(f"{self._max_abandoned} earlier calls still hang")
                else:
                    running.append(_Running(position, _start(call), time.monotonic() + self._timeout))
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
            else:
                left.append(call)
                continue
            self._slots.release()
        return left

    def _hanging(self) -> int:
        with self._lock:
            self._abandoned = {future for future in self._abandoned if not future.done()}
            return len(self._abandoned)


def _start(call: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    context = contextvars.copy_context()  # tracing follows the caller

    def work() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  (whatever a model raises belongs to its future)
            future.set_exception(error)

    threading.Thread(target=work, name="graphmem-llm", daemon=True).start()
    return future


def _outcome(future: Future[T]) -> T | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
