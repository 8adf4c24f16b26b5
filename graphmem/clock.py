"""Clock that wakes the sleeping jobs of all memories of a process, on one thread."""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol


class Sleeper(Protocol):
    """Something that the clock wakes."""

    def wake(self) -> None:
        """Continue; must not block and must not raise."""
        ...


class Clock:
    """Times at which sleepers are woken; its daemon thread ends when none is left.

    Parameters
    ----------
    name
        Name of the thread.
    """

    def __init__(self, name: str = "graphmem-clock") -> None:
        self._name = name
        self._times: dict[Sleeper, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def wake_after(self, seconds: float, sleeper: Sleeper) -> None:
        """Wake a sleeper after a number of seconds, in place of an earlier request for it."""
        with self._changed:
            self._times[sleeper] = time.monotonic() + seconds
            self._changed.notify()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def cancel(self, sleeper: Sleeper) -> None:
        """Drop the request of a sleeper."""
        with self._changed:
            self._times.pop(sleeper, None)
            self._changed.notify()

    def _run(self) -> None:
        while (due := self._due()) is not None:
            for sleeper in due:
                sleeper.wake()

    def _due(self) -> list[Sleeper] | None:
        """Wait for the next time and return the sleepers to wake, perhaps none; None if no request is left."""
        with self._changed:
            if not self._times:
                self._thread = None
                return None
            self._changed.wait(max(0.0, min(self._times.values()) - time.monotonic()))
            now = time.monotonic()
            due = [sleeper for sleeper, at in self._times.items() if at <= now]
            for sleeper in due:
                del self._times[sleeper]
            return due


_clock = Clock()


def clock() -> Clock:
    """Return the clock of this process."""
    return _clock


def _reset_after_fork() -> None:
    global _clock
    _clock = Clock()  # the thread stayed in the parent process


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
