"""What recalls leave is written behind the caller's back, together, and not lost by an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem.models import Changes, RecallQuery, Scope
from graphmem.recall.traces import RecallRecorder
from graphmem.testing.rows import edge, edge_id, home, numbers_of, put_graph, recall_id, recall_trace
from graphmem_memory import MemoryBackend
from graphmem_memory.tables import Store

T = TypeVar("T")


class Failing(MemoryBackend):
    """Raises this error at every write, while there is one."""

    def __init__(self) -> None:
        super().__init__(Store(), "memory://")
        self.error: Exception | None = None

    def write(self, scope: Scope, changes: Changes) -> None:
        if self.error is not None:
            raise self.error
        super().write(scope, changes)

    def atomic(self, work: Callable[[], T]) -> T:
        if self.error is not None:
            raise self.error
        return super().atomic(work)


@pytest.fixture
def store() -> Failing:
    store = Failing()
    put_graph(store, edge(1, 1, 2))
    return store


def kept(store: Failing) -> tuple[float, list[int]]:
    count = store.get_edges([home()], [edge_id(1)])[edge_id(1)].retrieval_count
    return count, numbers_of(store.find_recalls([home()], RecallQuery()))


def test_counts_and_traces_are_written_in_the_background(store: Failing) -> None:
    recorder = RecallRecorder(store)
    recorder.count((home(),), [edge_id(1)])
    recorder.keep(recall_trace(1, seeds=[1]))
    while kept(store) != (1.0, [1]):
        pass
    recorder.stop()


def test_writing_does_not_wait_for_the_background(store: Failing) -> None:
    recorder = RecallRecorder(store)
    recorder.keep(recall_trace(1, seeds=[1]))
    recorder.count((home(),), [edge_id(1)])
    recorder.write()
    assert kept(store) == (1.0, [1])
    recorder.stop()


def test_what_a_store_that_is_away_did_not_take_is_written_later(store: Failing) -> None:
    recorder = RecallRecorder(store)
    store.error = BackendUnavailable("away")
    recorder.count((home(),), [edge_id(1)])
    recorder.keep(recall_trace(1, seeds=[1]))
    recorder.keep(recall_trace(2, seeds=[2]))
    recorder.stop()
    with pytest.raises(BackendUnavailable):
        recorder.write()
    store.error = None
    recorder.write()
    assert kept(store) == (1.0, [1, 2])


def test_a_store_that_is_read_only_takes_nothing_and_that_is_no_error(store: Failing) -> None:
    recorder = RecallRecorder(store)
    store.error = StoreReadOnly("read-only")
    recorder.count((home(),), [edge_id(1)])
    recorder.keep(recall_trace(1, seeds=[1]))
    recorder.stop()
    recorder.write()
    store.error = None
    recorder.write()
    assert (kept(store), recorder.error) == ((0.0, []), None)


def test_a_trace_of_what_is_gone_does_not_keep_the_others_back(store: Failing) -> None:
    recorder = RecallRecorder(store)
    recorder.keep(recall_trace(1, seeds=[9]))
    recorder.keep(recall_trace(2, seeds=[1]))
    recorder.write()
    recorder.stop()
    assert [trace.id for trace in store.find_recalls([home()], RecallQuery())] == [recall_id(2)]
