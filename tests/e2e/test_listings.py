"""Lists page by page, beside others that write and erase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

import pytest

from graphmem import GraphMemory
from graphmem.testing.rows import scope_of

OpenMemory = Callable[..., GraphMemory]

DAY = datetime(2026, 1, 1, tzinfo=UTC)


class HasId(Protocol):
    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=HasId)


class Clock:
    """A clock that is set by hand."""

    now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory, clock: Clock) -> GraphMemory:
    return open_memory(store_url, embeddings="none", clock=clock)


def day(number: float) -> datetime:
    return DAY + timedelta(days=number)


def told(memory: GraphMemory, text: str, session: str | None, at: float, **fields: Any) -> str:
    return memory.remember(text, session_id=session, occurred_at=day(at), **fields).episode_id


def pages(read: Callable[..., Sequence[R]], between: Callable[[R], object] = id, **options: Any) -> list[R]:
    """Return all rows of a list; after each page, `between` is called with its last row."""
    found: list[R] = []
    given: dict[str, Any] = {}
    while page := read(limit=2, **given, **options):
        assert len(page) <= 2
        found += page
        between(page[-1])
        given = {"after": page[-1].id}
    return found


@pytest.mark.server
def test_a_session_has_its_live_episodes_their_times_and_speakers(memory: GraphMemory, clock: Clock) -> None:
    told(memory, "Hello", "monday", 3, speaker="Maya")
    told(memory, "Good morning", "monday", 1, speaker="Ravi")
    told(memory, "Bye", "monday", 2, speaker="Maya")
    told(memory, "Hi", "a chat", 4)
    told(memory, "Outside", None, 5)
    told(memory, "Over", "gone", 1, expires_in="1h")
    told(memory, "Over", "monday", 9, speaker="Eve", expires_in="1h")
    clock.now += timedelta(hours=1)
    listed = [(s.id, s.episodes, s.first_at, s.last_at, s.speakers) for s in memory.sessions()]
    assert listed == [("a chat", 1, day(4), day(4), ()), ("monday", 3, day(1), day(3), ("Maya", "Ravi"))]
    [of_ravi] = memory.sessions(filters={"speakers": "Ravi"})
    assert (of_ravi.id, of_ravi.episodes, of_ravi.last_at) == ("monday", 1, day(1))


def test_sessions_of_several_scopes_are_those_that_a_session_is_read_from(memory: GraphMemory) -> None:
    other = memory.in_scope(scope_of("other"))
    told(memory, "One", "s", 1)
    told(other, "Two", "s", 2)
    [both] = memory.sessions(scopes=[memory.scope, other.scope])
    assert both.episodes == len(memory.session("s", scopes=[memory.scope, other.scope])) == 2
    assert [one.episodes for one in memory.sessions()] == [1]


@pytest.mark.server
def test_pages_of_sessions_miss_none_beside_a_writer(memory: GraphMemory) -> None:
    names = [f"s{n}" for n in range(6)]
    for number, name in enumerate(names):
        told(memory, "Hello", name, number)

    def write(last: HasId) -> None:
        told(memory, "Again", "s0", 20)
        told(memory, "Again", "s5", 21)
        if last.id == "s3":
            memory.forget(session="s3")

    assert [session.id for session in pages(memory.sessions, write)] == names
