"""Questions about a time of the past are answered with what held then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from graphmem import GraphMemory
from graphmem.recall.routing import past_window

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.fixture
def memory() -> Iterator[GraphMemory]:
    with GraphMemory.open(f"memory://{uuid4()}", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts(
            [
                {"subject": "Maya", "relation": "works_at", "object": "Initech", "valid_from": "2019-01-01"},
                {"subject": "Maya", "relation": "works_at", "object": "Globex", "valid_from": "2023-03-01"},
                {
                    "subject": "Maya",
                    "relation": "visited",
                    "object": "Oslo",
                    "valid_from": "2020-05-02",
                    "valid_to": "2020-05-09",
                },
            ]
        )
        yield memory


@pytest.mark.parametrize(
    ("question", "window"),
    [
        ("Where did Maya work in 2020?", ("2020-01-01", "2021-01-01")),
        ("Where did Maya work in May 2021?", ("2021-05-01", "2021-06-01")),
        ("What happened on 3 May 2023?", ("2023-05-03", "2023-05-04")),
        ("Where has Maya worked since 2020?", None),
        ("Where did Maya work before 2020?", None),
        ("What will Maya do in 2030?", None),
        ("What does Maya do this year?", None),
        ("Where does Maya work?", None),
    ],
)
def test_the_window_of_a_question(question: str, window: tuple[str, str] | None) -> None:
    found = past_window(question, NOW)
    assert (found and tuple(moment.date().isoformat() for moment in found)) == window


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Where did Maya work in 2020?", "Maya works at Initech"),
        ("Where did Maya work in June 2024?", "Maya works at Globex"),
        ("Where does Maya work?", "Maya works at Globex"),
    ],
)
def test_the_past_is_answered_with_what_held_then(memory: GraphMemory, question: str, first: str) -> None:
    assert memory.recall(question).facts[0].fact == first


def test_what_held_for_a_part_of_the_time_follows(memory: GraphMemory) -> None:
    found = memory.recall("What did Maya do in 2020?")
    assert [fact.fact for fact in found.facts] == ["Maya works at Initech", "Maya visited Oslo"]
    assert found.as_of is not None
    assert found.as_of.valid.year == 2020


def test_a_time_at_which_nothing_held_changes_nothing(memory: GraphMemory) -> None:
    found = memory.recall("Where did Maya work in 1999?")
    assert found.as_of is None
    assert found.facts[0].fact == "Maya works at Globex"


def test_a_trace_explains_the_answer_if_nothing_held_then(memory: GraphMemory) -> None:
    found = memory.recall("Where did Maya work in 1999?", trace=True)
    assert found.trace_id is not None
    assert memory.why(found.trace_id).facts[0].fact.id == found.facts[0].id


def test_a_given_time_is_kept(memory: GraphMemory) -> None:
    assert memory.recall("Where did Maya work in 2020?", as_of="2024-01-01").facts[0].fact == "Maya works at Globex"
