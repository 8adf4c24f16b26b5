"""Turns of asynchronous callers on a store with several writers: groups take turns, and an error stays with its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphmem.errors import InvalidInput
from graphmem.ingest.turn_writer import TurnWriter
from graphmem.models import Episode, EpisodeQuery, Scope
from graphmem_memory.backend import MemoryBackend
from graphmem_memory.tables import Store

BUSY, OTHER = Scope("users", "busy"), Scope("users", "other")


class Written(MemoryBackend):
    """A store with one writer per scope; it records the scopes of its transactions, and refuses one text."""

    def __init__(self) -> None:
        super().__init__(Store(), "memory://")
        self.order: list[Scope] = []

    @property
    def has_one_writer(self) -> bool:
        """False: scopes have separate writers."""
        return False

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Note the scope."""
        self.order.append(scope)
        if any(episode.text == "refused" for episode in episodes):
            raise InvalidInput("refused")
        return super().add_episodes(scope, episodes)

    def texts(self, scope: Scope) -> list[str]:
        """Return the texts of a scope, in the order in which they were stored."""
        return [episode.text for episode in self.find_episodes([scope], EpisodeQuery())]


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def said(scope: Scope, text: str) -> Callable[[], Episode]:
    return lambda: Episode(scope=scope, text=text)


async def stored(
    writer: TurnWriter, thread: ThreadPoolExecutor, turns: Sequence[tuple[Scope, str]]
) -> list[tuple[str, bool] | BaseException]:
    """Store turns that all arrive while the only thread is busy."""
    begin = threading.Event()
    thread.submit(begin.wait, 30)
    tasks = [asyncio.ensure_future(writer.store(scope, said(scope, text))) for scope, text in turns]
    await asyncio.sleep(0)
    begin.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_a_scope_with_many_turns_does_not_hold_up_the_others(thread: ThreadPoolExecutor) -> None:
    backend = Written()
    writer = TurnWriter(backend, thread.submit, lambda scopes: None)
    turns = [(BUSY, f"{n:03}") for n in range(250)]
    asyncio.run(stored(writer, thread, [*turns, (OTHER, "short")]))
    assert backend.order == [BUSY, OTHER, BUSY, BUSY]
    assert backend.texts(BUSY) == [text for _, text in turns]
    assert backend.texts(OTHER) == ["short"]


def test_a_turn_that_the_store_refuses_fails_alone(thread: ThreadPoolExecutor) -> None:
    backend = Written()
    seen: list[Scope] = []
    writer = TurnWriter(backend, thread.submit, seen.extend)
    ended = asyncio.run(stored(writer, thread, [(BUSY, text) for text in ("one", "refused", "two")]))
    assert [isinstance(one, InvalidInput) for one in ended] == [False, True, False]
    assert backend.texts(BUSY) == ["one", "two"]
    assert seen == [BUSY, BUSY]


def test_an_error_behind_the_storing_is_told_and_ends_nothing(thread: ThreadPoolExecutor) -> None:
    backend = Written()

    def fail(_: Sequence[Scope]) -> None:
        raise RuntimeError("can't start new thread")

    writer = TurnWriter(backend, thread.submit, fail)
    turns = [(BUSY, "one"), (BUSY, "two")]
    for _ in range(2):
        ended = asyncio.run(stored(writer, thread, turns))
        assert all(isinstance(one, RuntimeError) for one in ended)
    assert backend.texts(BUSY) == ["one", "two"] * 2
