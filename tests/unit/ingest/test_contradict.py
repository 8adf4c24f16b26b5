"""The contradiction check and its judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from graphmem.errors import ExtractionFailed
from graphmem.ingest.contradictions import ContradictionCheck
from graphmem.ingest.interpretation import InterpretedEpisode, read_extraction
from graphmem.ingest.write import Writer
from graphmem.models import EdgeQuery, Episode, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import ExtractedEdge, Extraction, GraphBackend
from graphmem.registry import open_backend

SCOPE = Scope("tests")


def tell(backend: GraphBackend, check: ContradictionCheck, year: int, *edges: ExtractedEdge) -> None:
    episode = Episode(scope=SCOPE, text="…", occurred_at=datetime(year, 1, 1, tzinfo=UTC))
    backend.add_episodes(SCOPE, [episode])
    reading = read_extraction(episode, Extraction(edges=edges), DEFAULT_ONTOLOGY, Counter())
    Writer(backend, DEFAULT_ONTOLOGY).write(SCOPE, check.check(backend, SCOPE, [reading]))


def active(backend: GraphBackend) -> list[str]:
    return [e.fact for e in backend.find_edges([SCOPE], EdgeQuery(versions="active"))]


def test_a_fact_that_the_judge_names_is_ended() -> None:
    backend = open_backend("memory://")
    check = ContradictionCheck(lambda new, known: [(0, i) for i, fact in enumerate(known) if "meat" in fact])
    tell(backend, check, 2020, ExtractedEdge("Maya", "avoids", "meat"), ExtractedEdge("Maya", "knows", "Jonas"))
    tell(backend, check, 2024, ExtractedEdge("Maya", "eats", "steak"))
    assert active(backend) == ["Maya knows Jonas", "Maya eats steak"]


def test_the_judge_sees_at_most_ten_facts_of_the_same_source_nearest_first() -> None:
    backend = open_backend("memory://")
    seen: list[Sequence[str]] = []

    def judge(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        seen.append(known)
        return []

    quiet = ContradictionCheck(lambda new, known: [])
    tell(backend, quiet, 2020, *(ExtractedEdge("Maya", "knows", f"Person {i}") for i in range(20)))
    tell(backend, quiet, 2020, ExtractedEdge("Maya", "drinks", "espresso"), ExtractedEdge("Jonas", "drinks", "tea"))
    tell(backend, ContradictionCheck(judge), 2021, ExtractedEdge("Maya", "drinks", "decaf"))
    assert len(seen[0]) == 10
    assert seen[0][0] == "Maya drinks espresso (since 2020-01-01)"
    assert not any("Jonas" in fact for fact in seen[0])


def test_a_judge_that_fails_contradicts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    backend = open_backend("memory://")

    def judge(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        raise TimeoutError("no reply")

    tell(backend, ContradictionCheck(lambda new, known: []), 2020, ExtractedEdge("Maya", "avoids", "meat"))
    tell(backend, ContradictionCheck(judge), 2021, ExtractedEdge("Maya", "eats", "steak"))
    assert len(active(backend)) == 2
    assert "no reply" in caplog.text


def test_numbers_that_stand_for_nothing_are_ignored() -> None:
    backend = open_backend("memory://")
    check = ContradictionCheck(lambda new, known: [(0, 99), (7, 0), (-5, -5)])
    tell(backend, check, 2020, ExtractedEdge("Maya", "avoids", "meat"))
    tell(backend, check, 2021, ExtractedEdge("Maya", "eats", "steak"))
    assert len(active(backend)) == 2


def test_facts_of_one_target_meet_and_all_are_judged_in_one_call() -> None:
    backend = open_backend("memory://")
    seen: list[tuple[list[str], list[str]]] = []

    def judge(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        seen.append((list(new), list(known)))
        return [(0, 0)]

    quiet = ContradictionCheck(lambda new, known: [])
    tell(backend, quiet, 2020, ExtractedEdge("Jonas", "owns", "Checkout"), ExtractedEdge("Sam", "likes", "tea"))
    new = (ExtractedEdge("Sam", "owns", "Checkout"), ExtractedEdge("Sam", "drinks", "water"))
    tell(backend, ContradictionCheck(judge), 2021, *new)
    assert seen == [
        (
            ["Sam owns Checkout", "Sam drinks water"],
            ["Jonas owns Checkout (since 2020-01-01)", "Sam likes tea (since 2020-01-01)"],
        )
    ]
    assert "Jonas owns Checkout" not in active(backend)


def test_facts_that_the_extractor_was_shown_and_unrelated_ones_are_not_judged() -> None:
    backend = open_backend("memory://")

    def judge(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        raise AssertionError(known)

    quiet = ContradictionCheck(lambda new, known: [])
    tell(backend, quiet, 2020, ExtractedEdge("Jonas", "owns", "Checkout"), ExtractedEdge("Sam", "likes", "tea"))
    shown = [e.id for e in backend.find_edges([SCOPE], EdgeQuery()) if e.relation == "owns"]
    episode = Episode(scope=SCOPE, text="…")
    edges = (ExtractedEdge("Sam", "owns", "Checkout"), ExtractedEdge("Sam", "drinks", "water"))
    reading = read_extraction(episode, Extraction(edges=edges), DEFAULT_ONTOLOGY, Counter())
    assert ContradictionCheck(judge).check(backend, SCOPE, [reading], shown) == [reading]


def together(*told: tuple[int, ExtractedEdge]) -> list[InterpretedEpisode]:
    """Return readings of episodes that come in one batch, each in a year."""
    readings: list[InterpretedEpisode] = []
    for year, edge in told:
        episode = Episode(scope=SCOPE, text="…", occurred_at=datetime(year, 1, 1, tzinfo=UTC))
        readings.append(read_extraction(episode, Extraction(edges=(edge,)), DEFAULT_ONTOLOGY, Counter()))
    return readings


def test_facts_of_one_batch_meet_in_one_call_and_the_later_one_ends_the_earlier() -> None:
    backend = open_backend("memory://")
    seen: list[tuple[list[str], list[str]]] = []

    def judge(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        seen.append((list(new), list(known)))
        return [(0, 0)]

    readings = together(
        (2022, ExtractedEdge("Sam", "owns", "Checkout")),
        (2020, ExtractedEdge("Jonas", "owns", "Checkout")),
        (2023, ExtractedEdge("Mia", "drinks", "tea")),
    )
    backend.add_episodes(SCOPE, [reading.episode for reading in readings])
    checked = ContradictionCheck(judge).check(backend, SCOPE, readings, shown=())
    Writer(backend, DEFAULT_ONTOLOGY).write(SCOPE, sorted(checked, key=lambda r: r.episode.occurred_at))
    assert seen == [(["Sam owns Checkout"], ["Jonas owns Checkout (since 2020-01-01)"])]
    [ended] = [e for e in backend.find_edges([SCOPE], EdgeQuery(versions="all")) if e.valid_to is not None]
    assert (ended.fact, ended.valid_to) == ("Jonas owns Checkout", datetime(2022, 1, 1, tzinfo=UTC))
    assert active(backend) == ["Sam owns Checkout", "Mia drinks tea"]


def test_facts_of_one_batch_meet_by_relation_target_or_words_alone() -> None:
    backend = open_backend("memory://")

    def judge(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        raise AssertionError((new, known))

    unrelated = together(
        (2020, ExtractedEdge("Jonas", "owns", "Checkout")),
        (2021, ExtractedEdge("Jonas", "drinks", "tea")),
        (2022, ExtractedEdge("Jonas", "owns", "Checkout")),
        (2023, ExtractedEdge("Mia", "owns", "a bike")),
    )
    assert ContradictionCheck(judge).check(backend, SCOPE, unrelated, shown=()) == unrelated


def test_a_plan_of_a_batch_contradicts_nothing() -> None:
    backend = open_backend("memory://")
    told = together(
        (2020, ExtractedEdge("Jonas", "owns", "Checkout")), (2021, ExtractedEdge("Sam", "owns", "Checkout"))
    )
    plan = replace(told[1].statements[0].stated, certainty="plan")
    told[1] = replace(told[1], statements=(replace(told[1].statements[0], stated=plan),))
    asked: list[Sequence[str]] = []
    ContradictionCheck(lambda new, known: asked.append(new) or []).check(backend, SCOPE, told, shown=())
    assert asked == []


@pytest.mark.parametrize(
    ("reply", "pairs"),
    [
        ('{"pairs": [{"new": 1, "known": 2}]}', [(0, 1)]),
        ('<think>{"pairs": [{"new": 1, "known": 1}]}</think>{"pairs": []}', []),
        ('First {"pairs": [{"new": 1, "known": 1}]}, no: {"pairs": [{"new": 1, "known": 3}]}', [(0, 2)]),
        ('{"pairs": [{"new": "1", "known": "2"}, {"new": true, "known": 1}]}', [(0, 1)]),
        ('{"pairs": [{"new": 1, "known": 9}, {"new": 0, "known": 1}, {"new": "x"}, 5]}', []),
    ],
    ids=["one", "thoughts", "a draft", "quoted numbers", "numbers of nothing"],
)
def test_the_language_model_s_pairs_are_read(reply: str, pairs: list[tuple[int, int]]) -> None:
    models = pytest.importorskip("langchain_core.language_models", reason="pip install 'graphmem[langchain]'")
    from graphmem.ingest.judges import llm_judge

    judge = llm_judge(models.FakeListChatModel(responses=[reply]), timeout=5)
    assert judge(["new"], ["a", "b", "c"]) == pairs


def test_a_reply_without_pairs_is_a_failure() -> None:
    models = pytest.importorskip("langchain_core.language_models", reason="pip install 'graphmem[langchain]'")
    from graphmem.ingest.judges import llm_judge

    with pytest.raises(ExtractionFailed, match="no list of pairs"):
        llm_judge(models.FakeListChatModel(responses=["none of them [1]"]), timeout=5)(["new"], ["a"])
