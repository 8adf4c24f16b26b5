"""State of the process: one BLAS thread, a paused garbage collector, and values that are recreated after a fork.

Threads of BLAS, by which numpy multiplies matrices, wait for each other by spinning. The products of a search are
small: where cores are shared, waiting takes ten times as long as computing.

The collector scans the young objects after a fixed number of allocations, and all objects of the process whenever these
have grown by a quarter. In a load of triples this takes a quarter of the CPU time and frees nothing.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import cache
from typing import Any, Generic, Protocol, TypeVar


class _Resettable(Protocol):
    def reset_after_fork(self) -> None: ...


_LIVING: weakref.WeakSet[_Resettable] = weakref.WeakSet()
"""Objects that a fork resets in the child."""


class _SharedChange(ContextDecorator):
    """
    A change of the process that the first thread to enter makes, and the last one to leave undoes.

    Parameters
    ----------
    make
        Makes the change and returns a function that undoes it.
    """

    def __init__(self, make: Callable[[], Callable[[], None]]) -> None:
        self._make = make
        self._undo: Callable[[], None] | None = None
        self.reset_after_fork()
        _LIVING.add(self)

    def reset_after_fork(self) -> None:
        """Undo the change after a fork: the threads that made it, and may hold the lock, stayed in the parent."""
        if self._undo is not None:
            self._undo()
        self._undo = None
        self._inside = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._undo is None:
                self._undo = self._make()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)  # 0 for a thread that forked inside, in the child
            if not self._inside and self._undo is not None:
                self._undo()
                self._undo = None


def _limit_blas() -> Callable[[], None]:
    return _blas().limit(limits=1).restore_original_limits


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # 20 ms

    libraries: Any = ThreadpoolController()  # has no types
    return libraries.select(user_api="blas")


def _pause_collector() -> Callable[[], None]:
    if not gc.isenabled():
        return _do_nothing
    gc.disable()
    return gc.enable


def _do_nothing() -> None:
    """Leave the collector off."""


one_blas_thread = _SharedChange(_limit_blas)
"""Context manager and decorator: BLAS has one thread meanwhile, in the whole process."""

gc_paused = _SharedChange(_pause_collector)
"""Context manager: the collector pauses; objects outside of cycles are still freed by reference counting.

Use it for batches of bounded size. A collector that was off before stays off.
"""


# Values of a process ------------------------------------------------------------------------------


T = TypeVar("T")


class PerProcess(Generic[T]):
    """Thread-safe value that is created on first use, once per process.

    Parameters
    ----------
    make
        Creates the value. Its exceptions reach the caller, and the next use calls it again.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self.reset_after_fork()
        _LIVING.add(self)

    def get(self) -> T:
        """Return the value."""
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made = [self._make()]
        return self._made[0]

    def reset_after_fork(self) -> None:
        """Drop the value and replace the lock, which a thread of the parent may have held during the fork."""
        self._made: list[T] = []
        self._lock = threading.Lock()


def _reset_all() -> None:
    for value in list(_LIVING):
        value.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
