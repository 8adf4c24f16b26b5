"""The threads of BLAS, by which numpy multiplies matrices."""

from __future__ import annotations

from contextlib import ContextDecorator
from threading import Lock
from typing import Any


class OneThread(ContextDecorator):
    """
    Limit BLAS to one thread, in the whole process, while any thread is inside; as a decorator, during a call.

    Threads of BLAS wait for each other by spinning. The products of a search are small: where cores are shared, waiting
    takes ten times as long as computing.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._controller: Any = None
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                if self._controller is None:
                    from threadpoolctl import ThreadpoolController  # 20 ms

                    libraries: Any = ThreadpoolController()  # has no types
                    self._controller = libraries.select(user_api="blas")
                self._limiter = self._controller.limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limiter.restore_original_limits()


one_blas_thread = OneThread()
