"""Lists page by page: sessions, episodes, facts and entities, beside others that write and erase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

import pytest

from graphmem import GraphMemory, InvalidInput, NotFound
from graphmem.testing.rows import scope_of
from tests.e2e.clock import HandSetClock

OpenMemory = Callable[..., GraphMemory]

DAY = datetime(2026, 1, 1, tzinfo=UTC)


class HasId(Protocol):
    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=HasId)


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock(datetime.now(UTC))


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory, clock: HandSetClock) -> GraphMemory:
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
def test_a_session_has_its_live_episodes_their_times_and_speakers(memory: GraphMemory, clock: HandSetClock) -> None:
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


def test_the_latest_sessions_may_come_first(memory: GraphMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.memory.exploration._PAGE", 2)
    for name, at in (("a", 3), ("b", 9), ("c", 1), ("d", 5), ("a", 8)):
        told(memory, "Hello", name, at)
    assert [session.id for session in memory.sessions(newest_first=True)] == ["b", "a", "d", "c"]
    assert [session.id for session in memory.sessions(newest_first=True, limit=2)] == ["b", "a"]
    with pytest.raises(InvalidInput, match=r"after: can't be combined with newest_first"):
        memory.sessions(newest_first=True, after="a")


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


@pytest.mark.server
def test_episodes_are_listed_in_the_order_in_which_they_were_stored(memory: GraphMemory, clock: HandSetClock) -> None:
    ids = [told(memory, f"Turn {n}", "st"[n % 2], 10 - n, speaker="Maya") for n in range(7)]
    told(memory, "Over", "s", 1, expires_in="1h")
    clock.now += timedelta(hours=1)
    assert [episode.id for episode in memory.episodes()] == ids
    in_session = pages(memory.episodes, filters={"session_ids": "s"})
    assert [episode.id for episode in in_session] == ids[::2]


def test_an_erased_episode_does_not_end_a_list(memory: GraphMemory) -> None:
    ids = [told(memory, f"Turn {n}", "s", n) for n in range(5)]

    def erase(last: HasId) -> None:
        memory.forget(episode=last.id)

    assert [episode.id for episode in pages(memory.episodes, erase)] == ids
    assert memory.episodes(ids) == memory.episodes([ids[0], ids[2]])


@pytest.mark.parametrize("options", [{"filters": {"speakers": "Maya"}}, {"after": "0"}])
def test_ids_of_episodes_are_asked_for_alone(memory: GraphMemory, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^ids: can't be combined with filters or after"):
        memory.episodes([], **options)


@pytest.mark.server
def test_a_session_is_read_back_page_by_page(memory: GraphMemory) -> None:
    ids = [told(memory, f"Turn {n}", "s", n) for n in range(5)]
    told(memory, "Another", "t", 1)
    last = [episode.id for episode in memory.session("s", limit=2)]
    memory.forget(episode=last[0])
    middle = [episode.id for episode in memory.session("s", before=last[0], limit=2)]
    first = [episode.id for episode in memory.session("s", before=middle[0], limit=2)]
    assert (last, middle, first) == (ids[3:], ids[1:3], ids[:1])
    assert memory.session("s", before=first[0]) == []
    assert memory.session("s", before=last[0], limit=0) == []


@pytest.mark.server
def test_all_facts_of_a_scope_are_listed_in_the_order_of_their_ids(memory: GraphMemory) -> None:
    memory.add_facts([(f"Person Number{n}", "knows", "Maya Chen") for n in range(5)])
    memory.add_facts([("Maya Chen", "lives in", "Porto")], occurred_at=day(1))
    memory.add_facts([("Maya Chen", "lives in", "Nice")], occurred_at=day(2))
    listed = pages(memory.facts)
    assert [fact.id for fact in listed] == sorted(fact.id for fact in listed)
    assert {fact.target for fact in listed} == {"Maya Chen", "Nice"}
    assert len(listed) == 6
    assert [fact.target for fact in pages(memory.facts, as_of=day(1.5))] == ["Porto"]
    assert memory.facts(limit=3) == tuple(listed[:3])


@pytest.mark.server
def test_the_facts_of_an_entity_go_on_after_a_fact_newest_first(memory: GraphMemory) -> None:
    for n in (3, 1, 4, 0, 2):
        memory.add_facts([(f"Person Number{n}", "knows", "Maya Chen")], occurred_at=day(n))
    memory.add_facts([("Person Number3", "knows", "Ravi Menon")], occurred_at=day(9))
    whole = memory.facts("Maya Chen")
    assert [fact.source[-1] for fact in whole] == ["4", "3", "2", "1", "0"]
    assert pages(partial(memory.facts, "Maya Chen")) == list(whole)
    memory.retract(whole[1].id)
    assert memory.facts("Maya Chen", after=whole[1].id) == whole[2:]
    assert memory.facts("Nobody", after=whole[1].id) == ()


def test_a_list_can_not_go_on_after_a_fact_that_was_erased(memory: GraphMemory) -> None:
    memory.add_facts([("Ravi Menon", "knows", "Maya Chen"), ("Ines Costa", "knows", "Maya Chen")])
    [first] = memory.facts("Maya Chen", limit=1)
    memory.forget(first.source)
    with pytest.raises(NotFound, match=f"^after: there is no fact '{first.id}' in scope"):
        memory.facts("Maya Chen", after=first.id)


def test_entities_are_listed_page_by_page(memory: GraphMemory) -> None:
    memory.add_facts([(f"Person Number{n}", "knows", "Maya Chen") for n in range(4)])
    whole = memory.entities()
    assert len(whole) == 5
    assert pages(memory.entities) == whole
    counts = memory.admin.entity_counts(after="", limit=3)
    assert [one.entity for one in counts] == whole[:3]
    assert [one.entity for one in memory.admin.entity_counts(after=whole[2].id)] == whole[3:]
    assert memory.admin.entity_counts(limit=1)[0].entity.name == "Maya Chen"
    with pytest.raises(InvalidInput, match=r"^after: the entities that a query matches are one page"):
        memory.entities("Maya", after=whole[0].id)
