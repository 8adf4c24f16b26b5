"""Pausing Python's garbage collector: it goes on when the last pause ends, and only if it was on."""

from __future__ import annotations

import gc
from collections.abc import Generator

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
