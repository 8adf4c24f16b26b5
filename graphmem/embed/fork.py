"""Per-process values, recreated after a fork: locks, threads and sessions can't be shared with the parent."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

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
        self.forget()
        _LIVING.add(self)

    def get(self) -> T:
        """Return the value."""
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made = [self._make()]
        return self._made[0]

    def forget(self) -> None:
        """Drop the value and replace the lock, which a thread of the parent may have held during the fork."""
        self._made: list[T] = []
        self._lock = threading.Lock()


_LIVING: weakref.WeakSet[PerProcess[Any]] = weakref.WeakSet()


def _forget_all() -> None:
    for value in list(_LIVING):
        value.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
