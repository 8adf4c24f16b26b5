"""Facts that are still to begin in a recall: below what holds now, unless the question is about the future."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from graphmem import GraphMemory
from graphmem.recall.periods import asks_ahead
from graphmem.recall.subgraph import PAST_FACTOR

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["memory://", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphMemory]:
    place = tmp_path_factory.mktemp("store") / "memory.db"
    url = f"sqlite:///{place}" if request.param == "sqlite" else request.param
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False, clock=lambda: NOW) as memory:
        yield memory


def recalled(memory: GraphMemory, question: str, **options: object) -> list[str]:
    return [f.target for f in memory.recall(question, **options)]  # type: ignore[arg-type]


def factors(memory: GraphMemory, question: str) -> dict[str, float]:
    return {f.target: f.parts.past for f in memory.recall(question) if f.parts is not None}


def test_what_holds_now_comes_before_what_a_wrong_clock_told(memory: GraphMemory) -> None:
    memory.add_facts([("Ana", "lives in", "Paris")], occurred_at=LATER)
    memory.add_facts([("Ana", "lives in", "Oslo")], occurred_at=NOW)
    assert recalled(memory, "Where does Ana live?") == ["Oslo", "Paris"]
    assert recalled(memory, "Where does Ana live?", strategy="bfs", episodes=0) == ["Oslo", "Paris"]
    assert recalled(memory, "Where does Ana live?", as_of=LATER)[0] == "Paris"
    lines = [line for line in memory.context("Where does Ana live?").splitlines() if "lives" in line]
    assert [line.split(" [")[0] for line in lines] == [
        "- Ana lives in Oslo (2026-05-01 to 2030-12-31)",
        "- Ana lives in Paris (from 2031-01)",
    ]


def test_a_question_about_the_future_ranks_what_is_to_begin_as_before(memory: GraphMemory) -> None:
    memory.add_facts([("Ana", "lives in", "Oslo")], occurred_at=NOW - timedelta(days=90))
    memory.add_facts(
        [{"subject": "Ana", "relation": "lives in", "object": "Paris", "valid_from": LATER}], occurred_at=NOW
    )
    assert factors(memory, "Where will Ana live?") == {"Oslo": 1.0, "Paris": 1.0}
    assert factors(memory, "Where does Ana live?") == {"Oslo": 1.0, "Paris": PAST_FACTOR}


def test_a_clock_that_is_ahead_by_less_than_a_day_tells_the_present(memory: GraphMemory) -> None:
    memory.add_facts([("Ana", "lives in", "Oslo")], occurred_at=NOW - timedelta(days=90))
    memory.add_facts([("Ana", "lives in", "Paris")], occurred_at=NOW + timedelta(hours=20))
    assert factors(memory, "Where does Ana live?") == {"Oslo": 1.0, "Paris": 1.0}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where will Ana live?", True),
        ("Where's Ana going to live?", True),
        ("What'll she do?", True),
        ("Which trips are coming up in 2040?", True),
        ("Where does Ana live?", False),
        ("Where did Ana live in 2020?", False),
        ("Who wrote Willow?", False),
        ("What does Ana plan to do?", True),
        ("What is planned?", True),
        ("Will you tell me where Ana will live?", True),
        ("Will you tell me where I live?", False),
        ("Would you tell me where I live?", False),
        ("What is my plan type?", False),
        ("Which plans does Acme sell?", False),
    ],
)
def test_questions_about_the_future(question: str, expected: bool) -> None:
    assert asks_ahead(question, NOW) is expected
