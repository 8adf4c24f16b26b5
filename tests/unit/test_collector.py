"""Pausing Python's garbage collector: it goes on when the last pause ends, and only if it was on."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Generator

import pytest

from graphmem import GraphMemory
from graphmem.process import gc_paused


@pytest.fixture(autouse=True)
def on() -> Generator[None]:
    """Leave the collector on, whatever a test does."""
    gc.enable()
    yield
    gc.enable()


def test_the_collector_is_off_inside_and_on_after() -> None:
    with gc_paused:
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_last_pause_to_end_sets_it_going() -> None:
    gc_paused.__enter__()
    gc_paused.__enter__()
    gc_paused.__exit__(None, None, None)
    assert not gc.isenabled()
    gc_paused.__exit__(None, None, None)
    assert gc.isenabled()


def test_an_error_ends_the_pause() -> None:
    with pytest.raises(ZeroDivisionError), gc_paused:
        _ = 1 / 0
    assert gc.isenabled()


def in_child(check: Callable[[], bool]) -> bool:
    """Return whether a check succeeds in a process that is forked from this one, within ten seconds."""
    if (child := os.fork()) == 0:
        os._exit(0 if check() else 1)
    until = time.monotonic() + 10
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
        time.sleep(0.01)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return ended[0] == child and ended[1] == 0


def pauses_and_goes_on() -> bool:
    on = gc.isenabled()
    with gc_paused:
        off = not gc.isenabled()
    return on and off and gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_a_process_forked_during_a_pause_of_another_thread_it_is_on() -> None:
    begun, release = threading.Event(), threading.Event()

    def pause() -> None:
        with gc_paused:
            begun.set()
            release.wait(30)

    thread = threading.Thread(target=pause)
    thread.start()
    assert begun.wait(30)
    try:
        assert in_child(pauses_and_goes_on)
        with gc_paused._lock:  # pyright: ignore[reportPrivateUsage]
            assert in_child(pauses_and_goes_on)
        assert not gc.isenabled()
    finally:
        release.set()
        thread.join(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_who_forks_during_its_own_pause_can_end_it_in_the_child() -> None:
    def end() -> bool:
        gc_paused.__exit__(None, None, None)
        return pauses_and_goes_on()

    with gc_paused:
        assert in_child(end)


def test_what_its_user_turned_off_stays_off() -> None:
    gc.disable()
    with gc_paused:
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_it_is_on_again_between_the_batches_of_a_load() -> None:
    seen: list[bool] = []
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:

        def triples() -> Generator[tuple[str, str, str]]:
            for n in range(2500):
                seen.append(gc.isenabled())
                yield (f"person {n}", "knows", f"person {n + 1}")

        memory.add_facts(triples())
    assert len(seen) == 2500
    assert all(seen)
    assert gc.isenabled()
