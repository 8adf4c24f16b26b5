"""Lock of the connection that writes."""

from __future__ import annotations

from collections import deque
from threading import Lock, get_ident

from graphmem.protocols import in_background

_MAX_CALLERS_FIRST = 20  # callers that go before a waiting background thread


class WriterLock:
    """Reentrant lock that waiting threads get in order of arrival, those of callers before those of background work.

    A `threading.RLock` goes to whoever runs when it is released: a thread that writes in a loop takes it again before a
    waiting one wakes up. Background work isn't starved: after some callers it gets the lock.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._taken = False
        self._holder: int | None = None
        self._depth = 0
        self._callers: deque[Lock] = deque()
        self._background: deque[Lock] = deque()
        self._callers_first = 0

    @property
    def waiting(self) -> int:
        """Number of threads that wait."""
        return len(self._callers) + len(self._background)

    def __enter__(self) -> None:
        if self._holder != get_ident():
            self._wait()
            self._holder = get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None
            with self._guard:
                self._pass_on()

    def _wait(self) -> None:
        queue = self._background if in_background() else self._callers
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            turn = Lock()
            turn.acquire()
            queue.append(turn)
        try:
            turn.acquire()  # released by the thread that had the lock before
        except BaseException:  # the main thread was interrupted
            with self._guard:
                if turn in queue:
                    queue.remove(turn)
                else:
                    self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the lock to the next thread."""
        caller_first = bool(self._callers and self._background) and self._callers_first < _MAX_CALLERS_FIRST
        self._callers_first = self._callers_first + 1 if caller_first else 0
        queue = self._callers if caller_first or not self._background else self._background
        if queue:
            queue.popleft().release()
        else:
            self._taken = False
