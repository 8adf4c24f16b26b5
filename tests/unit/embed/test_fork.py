"""Values that every process makes for itself."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphmem.process import PerProcess

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def test_value_is_made_once_however_many_threads_ask() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    value = PerProcess(make)
    gate = threading.Barrier(8)

    def ask(_: int) -> object:
        gate.wait(10)
        return value.get()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {made[0]}
    assert len(made) == 1


def test_value_that_could_not_be_made_is_tried_again() -> None:
    tries: list[int] = []

    def make() -> int:
        tries.append(1)
        return 1 // (len(tries) - 1)

    value = PerProcess(make)
    with pytest.raises(ZeroDivisionError):
        value.get()
    assert value.get() == 1


def in_child(value: PerProcess[int]) -> int:
    """Fork and return what the child gets, as its exit status."""
    child = os.fork()
    if child == 0:
        os._exit(value.get())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fork
def test_child_makes_its_own_value() -> None:
    parent = os.getpid()
    value = PerProcess(lambda: 1 if os.getpid() == parent else 2)
    assert (value.get(), in_child(value), value.get()) == (1, 2, 1)


@needs_fork
def test_child_born_while_a_thread_makes_the_value_is_not_stuck() -> None:
    parent, began, release = os.getpid(), threading.Event(), threading.Event()

    def make() -> int:
        if os.getpid() == parent:
            began.set()
            release.wait(60)
        return 3

    value = PerProcess(make)
    thread = threading.Thread(target=value.get)
    thread.start()
    try:
        assert began.wait(10)
        assert in_child(value) == 3
    finally:
        release.set()
        thread.join(10)
