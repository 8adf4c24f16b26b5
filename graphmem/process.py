"""Temporary changes of the whole process: one BLAS thread, and a paused garbage collector.

Threads of BLAS, by which numpy multiplies matrices, wait for each other by spinning. The products of a search are
small: where cores are shared, waiting takes ten times as long as computing.

The collector scans the young objects after a fixed number of allocations, and all objects of the process whenever these
have grown by a quarter. In a load of triples this takes a quarter of the CPU time and frees nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import cache
from typing import Any


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
        self._lock = threading.Lock()
        self._inside = 0
        self._undo: Callable[[], None] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._undo is None:
                self._undo = self._make()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
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
