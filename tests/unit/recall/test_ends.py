"""Facts that are over in a recall: below what holds now, unless the question is about an end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem import GraphMemory
from graphmem.recall.periods import asks_end
from graphmem.recall.subgraph import PAST_FACTOR

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("episodes", [0, 20])
def test_a_question_about_an_end_ranks_what_is_over_as_what_holds(episodes: int) -> None:
    options = {"extractor": "none", "embeddings": "none", "background": False, "clock": lambda: NOW}
    with GraphMemory.open("memory://", **options) as memory:  # type: ignore[arg-type]
        memory.add_facts(
            [
                {"subject": "Ana", "relation": "works at", "object": "Acme", "valid_to": "2026-03-31"},
                {"subject": "Ana", "relation": "lives in", "object": "Oslo"},
            ],
            occurred_at="2025-01-01",
        )

        def factors(question: str) -> dict[str, float]:
            facts = memory.recall(question, episodes=episodes)
            return {fact.target: fact.parts.past for fact in facts if fact.parts is not None}

        assert factors("When did Ana leave Acme?") == {"Acme": 1.0, "Oslo": 1.0}
        assert factors("Where is Ana?") == {"Acme": PAST_FACTOR, "Oslo": 1.0}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Ana leave Acme?", True),
        ("When is Ana's last day at Acme?", True),
        ("Until when does the contract run?", True),
        ("When does my lease end?", True),
        ("Do you know when the offer expires?", True),
        ("When did I stop smoking?", True),
        ("How long did Ana work at Acme?", True),
        ("How long has Ana worked at Acme?", False),
        ("When did Ana move to Oslo?", False),
        ("Where does Ana work?", False),
        ("Who left Acme?", False),
        ("When is the weekend trip?", False),
    ],
)
def test_questions_about_an_end(question: str, expected: bool) -> None:
    assert asks_end(question) is expected
