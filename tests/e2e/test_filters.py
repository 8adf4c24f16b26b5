"""Search, recall and context with filters of episodes, on every store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from graphmem import EpisodeFilter, GraphMemory, InvalidInput
from graphmem.search import pipeline
from tests.e2e.word_vectors import TokenWordVectors

OpenMemory = Callable[..., GraphMemory]

WORK = {"topic": "work", "page": 1}
TURNS: list[dict[str, Any]] = [
    {"session_id": "one", "speaker": "Ann", "metadata": WORK, "text": "Maya | visits | Initech"},
    {"session_id": "one", "speaker": "Bob", "metadata": {"topic": "home", "page": 2}, "text": "Maya | lives in | Nice"},
    {"session_id": "two", "speaker": "Ann", "metadata": {**WORK, "page": 3}, "text": "Maya | visits | Globex"},
    {"session_id": "two", "speaker": "Bob", "role": "user", "text": "Maya | likes | Porto"},
]
DATES = [f"2026-01-0{n}T10:00:00Z" for n in (1, 2, 3, 4)]


@pytest.fixture
def filled(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    memory = open_memory(store_url, embeddings=TokenWordVectors())
    memory.ingest([{**turn, "occurred_at": at} for turn, at in zip(TURNS, DATES, strict=True)])
    return memory


@pytest.mark.server
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"session_ids": "one"}, [0, 1]),
        ({"session_prefix": "on"}, [0, 1]),
        ({"speakers": ["Bob"]}, [1, 3]),
        ({"roles": "user"}, [3]),
        ({"sources": ["document"]}, []),
        ({"since": "2026-01-02", "until": "2026-01-04"}, [1, 2]),
        ({"metadata": {"topic": "work"}}, [0, 2]),
        ({"metadata": {"page": {"$gte": 2}}}, [1, 2]),
        ({"metadata": {"topic": {"$exists": False}}}, [3]),
        ({"metadata": {"topic": {"$nin": ["work"]}}, "session_ids": "one"}, [1]),
        ({}, [0, 1, 2, 3]),
    ],
)
def test_a_search_ranks_exactly_the_episodes_that_match(
    filled: GraphMemory, filters: Mapping[str, Any], expected: list[int]
) -> None:
    found = filled.search("What does Maya visit?", k=10, filters=filters)
    texts = [turn["text"] for turn in TURNS]
    assert sorted(texts.index(one.episode.text) for one in found) == expected


@pytest.mark.parametrize("strategy", ["bfs", "spreading", "ppr", "astar"])
def test_a_recall_returns_the_facts_that_matching_episodes_state(filled: GraphMemory, strategy: Any) -> None:
    found = filled.recall("Maya", filters={"session_ids": "one"}, strategy=strategy)
    assert sorted(fact.target for fact in found.facts) == ["Initech", "Nice"]
    assert filled.recall("Maya", filters={"session_ids": "three"}, strategy=strategy).facts == ()


def test_a_fact_of_two_episodes_is_returned_if_one_of_them_matches(filled: GraphMemory) -> None:
    filled.ingest([{**TURNS[1], "session_id": "three"}])
    for session in ("one", "three"):
        facts = filled.recall("Where does Maya live?", filters={"session_ids": session}).facts
        assert "Nice" in {fact.target for fact in facts}


def test_facts_of_a_hub_are_found_behind_more_confident_ones(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.add_facts([("Maya", "knows", f"Person {n}") for n in range(600)])
    memory.ingest([{"text": "Maya | keeps | Rex", "session_id": "pets"}])
    assert [fact.target for fact in memory.recall("Maya", filters={"session_ids": "pets"}).facts] == ["Rex"]


@pytest.mark.server
def test_a_context_quotes_only_matching_episodes(filled: GraphMemory) -> None:
    context = filled.context("What does Maya visit?", filters=EpisodeFilter(metadata={"topic": "work", "page": 1}))
    assert "Initech" in context
    assert not any(word in context for word in ("Globex", "Nice", "Porto"))


def test_k_matching_episodes_are_found_among_many_better_ones(
    store_url: str, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "CANDIDATES", 10)
    memory = open_memory(store_url, extractor="none", embeddings=TokenWordVectors())
    better = [{"text": f"Maya plays chess in Porto {n}."} for n in range(30)]
    matching = [{"text": f"The weather was fine on day {n}.", "metadata": {"wanted": True}} for n in range(7)]
    memory.ingest([*better[:15], *matching, *better[15:]])
    found = memory.search("Who had fine weather in Porto?", k=5, filters={"metadata": {"wanted": True}})
    assert [one.episode.metadata for one in found] == [{"wanted": True}] * 5
    assert any(reason.detail == "late interaction" for one in found for reason in one.reasons)


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_the_parts_of_a_score_add_up_under_a_filter(store_url: str, open_memory: OpenMemory, fusion: Any) -> None:
    memory = open_memory(store_url, extractor="none", embeddings=TokenWordVectors())
    memory.ingest([{**turn, "occurred_at": at} for turn, at in zip(TURNS, DATES, strict=True)])
    found = memory.search("What does Maya visit?", fusion=fusion, filters={"session_ids": "one"})
    assert [one.episode.text for one in found] == [TURNS[0]["text"], TURNS[1]["text"]]
    for one in found:
        assert one.score == pytest.approx(sum(reason.score for reason in one.reasons))


def test_an_invalid_filter_is_refused_by_name(filled: GraphMemory) -> None:
    wrong: list[Any] = [{"metadata": {"topic": {"$like": "w"}}}, {"topic": "work"}, "work"]
    for filters in wrong:
        for read in (filled.search, filled.recall, filled.context):
            with pytest.raises(InvalidInput, match=r"\$like|topic|filters"):
                read("Maya", filters=filters)


def test_redacted_speakers_sessions_and_metadata_are_found(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none", redact="all", redact_key="k" * 20)
    mail = "maya@example.org"
    memory.remember("Hello there.", speaker=mail, session_id=f"chat {mail}", metadata={"mail": mail})
    memory.remember("Hello you.", speaker="Ann", session_id="chat", metadata={"mail": "none"})
    for filters in (
        {"speakers": mail},
        {"session_ids": f"chat {mail}"},
        {"session_prefix": f"chat {mail}"},
        {"metadata": {"mail": mail}},
    ):
        assert [one.episode.text for one in memory.search("hello", filters=filters)] == ["Hello there."]
