"""BLAS has one thread while graphmem multiplies, and as many as before afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from graphmem import GraphMemory
from graphmem.process import one_blas_thread
from graphmem.recall import service as recall_service
from graphmem.search import service as search_service


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Have two threads before a test, on a machine with one core, too."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield


def threads() -> set[int]:
    controller: Any = ThreadpoolController()
    return {library["num_threads"] for library in controller.info() if library["user_api"] == "blas"}


def test_the_last_to_leave_puts_the_threads_back() -> None:
    assert threads() == {2}
    with one_blas_thread:
        with one_blas_thread:
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}


def test_an_error_puts_them_back() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread:
        _ = 1 / 0
    assert threads() == {2}


def test_a_search_and_a_recall_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*given: Any, **options: Any) -> Any:
            seen.append(threads())
            return call(*given, **options)

        return watch

    monkeypatch.setattr(search_service, "rank", watched(search_service.rank))
    monkeypatch.setattr(recall_service, "recall", watched(recall_service.recall))
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([("Maya", "lives in", "Lisbon")])
        memory.remember("Maya likes the sea.")
        assert memory.search("Where does Maya live?")
        assert memory.recall("Where does Maya live?")
    assert seen == [{1}, {1}, {1}]
    assert threads() == {2}
