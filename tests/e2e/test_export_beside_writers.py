"""What is exported while others write is the memory of one moment: any other store takes it."""

from __future__ import annotations

import io
from collections.abc import Callable
from threading import Event, Thread

import pytest
from conftest import OpenMemory
from toy import ToyExtractor

from graphmem import GraphMemory


class Interrupted(io.BytesIO):
    """Lets a writer begin when the first row of a kind comes, and waits a while for it to end."""

    def __init__(self, kind: str, writer: Callable[[], object]) -> None:
        super().__init__()
        self._marker = f'{{"kind":"{kind}"'.encode()
        self._ended = Event()
        self.thread = Thread(target=self._run, args=(writer,))

    def _run(self, writer: Callable[[], object]) -> None:
        try:
            writer()
        finally:
            self._ended.set()

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        if data.startswith(self._marker) and self.thread.ident is None:
            self.thread.start()
            self._ended.wait(0.5)  # a store may keep it waiting until all is read
        return super().write(data)


def merge(memory: GraphMemory) -> None:
    memory.admin.merge("Ada L", into="Ada")


def unmerge(memory: GraphMemory) -> None:
    memory.admin.unmerge(next(m.id for m in memory.admin.merges() if m.undone_at is None))


def change_and_change_back(memory: GraphMemory) -> None:
    memory.ingest(
        [
            {"text": "Eve | works_at | Globex", "occurred_at": "2021-01-01T00:00:00Z"},
            {"text": "Eve | works_at | Initech", "occurred_at": "2022-01-01T00:00:00Z"},
        ]
    )


def forget(memory: GraphMemory) -> None:
    memory.forget("tea")


WRITERS = {"merge": merge, "unmerge": unmerge, "facts": change_and_change_back, "forget": forget}


@pytest.mark.parametrize("kind", ["entity", "edge", "mention"])
@pytest.mark.parametrize("writer", WRITERS)
def test_an_export_is_of_one_moment(store_url: str, open_memory: OpenMemory, writer: str, kind: str) -> None:
    memory = open_memory(store_url, extractor=ToyExtractor(), embeddings="none")
    memory.ingest(
        [
            {"text": "Ada | knows | Bob"},
            {"text": "Ada L | likes | tea"},
            {"text": "Ada Lovelace | likes | tea"},
            {"text": "Eve | works_at | Initech", "occurred_at": "2020-01-01T00:00:00Z"},
        ]
    )
    memory.admin.merge("Ada Lovelace", into="Ada")
    before = memory.admin.checksum()
    file = Interrupted(kind, lambda: WRITERS[writer](memory))
    written = memory.admin.export(file)
    file.thread.join()
    assert memory.admin.checksum() != before, "the writer changed nothing"
    assert written.checksum == before
    there = open_memory("memory://", extractor=ToyExtractor(), embeddings="none")
    there.admin.import_(io.BytesIO(file.getvalue()))
    assert there.admin.checksum() == before
