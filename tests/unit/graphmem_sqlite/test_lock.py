"""The lock of the writer: callers go before background work, each in order of arrival."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from graphmem.protocols import enter_background
from graphmem_sqlite.file import WriterLock

SECONDS = 20


class Line:
    """Threads that queue up at a lock one after the other, and the order in which they get it."""

    def __init__(self) -> None:
        self.lock = WriterLock()
        self.order: list[str] = []
        self._threads: list[threading.Thread] = []

    def join(self, name: str, before: Callable[[], None] = lambda: None) -> None:
        """Start a thread and return when it waits."""

        def run() -> None:
            before()
            with self.lock:
                self.order.append(name)

        thread = threading.Thread(target=run)
        thread.start()
        self._threads.append(thread)
        deadline = time.monotonic() + SECONDS
        while self.lock.waiting < len(self._threads):
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def end(self) -> list[str]:
        for thread in self._threads:
            thread.join(SECONDS)
        return self.order


def test_a_waiting_caller_goes_before_background_work_that_waited_first() -> None:
    line = Line()
    with line.lock:
        line.join("background 1", enter_background)
        line.join("background 2", enter_background)
        line.join("caller 1")
        line.join("caller 2")
    assert line.end() == ["caller 1", "caller 2", "background 1", "background 2"]


def test_background_work_that_writes_in_a_loop_lets_a_waiting_caller_in_after_one_write() -> None:
    line, writes = Line(), list[int]()
    enter = threading.Event()

    def work() -> None:
        enter_background()
        for n in range(100):
            with line.lock:
                if n == 0:
                    enter.set()
                    while not line.lock.waiting:
                        time.sleep(0.001)
                if "caller" in line.order:
                    return
                writes.append(n)

    thread = threading.Thread(target=work)
    thread.start()
    assert enter.wait(SECONDS)
    with line.lock:
        line.order.append("caller")
    thread.join(SECONDS)
    assert writes == [0]


def test_background_work_is_not_starved() -> None:
    line = Line()
    with line.lock:
        line.join("background", enter_background)
        for n in range(25):
            line.join(f"caller {n}")
    assert line.end().index("background") == 20


def test_the_thread_that_has_the_lock_may_take_it_again() -> None:
    line = Line()
    with line.lock:
        with line.lock:
            line.join("other")
        assert not line.order
    assert line.end() == ["other"]


class Interrupted:
    """A `threading.Lock` for which the program is interrupted while it waits."""

    def __init__(self) -> None:
        self._taken = False

    def acquire(self) -> None:
        if self._taken:
            raise KeyboardInterrupt
        self._taken = True


def test_a_thread_interrupted_while_it_waits_leaves_the_lock_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    line, entered, leave = Line(), threading.Event(), threading.Event()

    def hold() -> None:
        with line.lock:
            entered.set()
            leave.wait(SECONDS)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(SECONDS)
    with monkeypatch.context() as patched:
        patched.setattr("graphmem_sqlite.file.Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt), line.lock:
            pass
    line.join("next")
    leave.set()
    holder.join(SECONDS)
    assert line.end() == ["next"]
