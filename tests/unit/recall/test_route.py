"""Kinds of questions, the part of the graph they are about, and the time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.models import EdgeType
from graphmem.recall.routing import PLANS, SUBGRAPH_MARKERS, HeuristicRouter, Route, classify_subgraph, narrowed, plan
from graphmem.search.question import TimeRange, covered
from graphmem.text.dates import dates_and_periods

NOW = datetime(2026, 1, 14, 12, tzinfo=UTC)  # a Wednesday
MARKERS = [(kind, marker) for kind, markers in SUBGRAPH_MARKERS.items() for marker in markers]


def day(month: int, number: int, year: int = 2026) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def route(query: str, known: tuple[str, ...] = (), *, graph: bool = True) -> Route:
    return HeuristicRouter(graph=graph).route(query, known, now=NOW)


@pytest.mark.parametrize(("kind", "marker"), MARKERS)
def test_a_marker_gives_its_type_and_semantic(kind: EdgeType, marker: str) -> None:
    assert classify_subgraph(f"xx {marker.upper()}, yy") == {kind, EdgeType.SEMANTIC}


@pytest.mark.parametrize(("kind", "marker"), MARKERS)
def test_a_marker_counts_as_a_whole_word_only(kind: EdgeType, marker: str) -> None:
    assert classify_subgraph(f"x{marker} {marker}x {marker}_1") == frozenset()


def test_the_markers_are_those_of_the_specification() -> None:
    listed = {
        EdgeType.CAUSAL: "why because cause caused reason result led_to consequence trigger effect",
        EdgeType.TEMPORAL: ("before after first then when timeline sequence preceded followed started ended during"),
        EdgeType.ENTITY: "is_a type_of kind_of part_of instance same_as alias belongs_to",
    }
    assert {k: {m.replace(" ", "_") for m in v} for k, v in SUBGRAPH_MARKERS.items()} == {
        k: set(v.split()) for k, v in listed.items()
    }


def test_several_types_can_be_asked_for() -> None:
    assert classify_subgraph("Why did it fail after the release?") == {
        EdgeType.CAUSAL,
        EdgeType.TEMPORAL,
        EdgeType.SEMANTIC,
    }


def test_without_a_marker_there_is_no_restriction() -> None:
    assert classify_subgraph("Where does Maya work?") == frozenset()


@pytest.mark.parametrize(
    ("query", "begin", "until"),
    [
        ("What did Maya do yesterday?", day(1, 13), day(1, 14)),
        ("What happened last week?", day(1, 5), day(1, 12)),
        ("Who was there on 3 May 2025?", day(5, 3, 2025), day(5, 4, 2025)),
        ("What changed since March 2025?", day(3, 1, 2025), NOW),
        ("Who led it before 2024?", None, day(1, 1, 2024)),
        ("Everything between March 2025 and May 2025", day(3, 1, 2025), day(6, 1, 2025)),
    ],
)
def test_a_question_with_a_date_is_episodic_and_has_its_range(
    query: str, begin: datetime | None, until: datetime | None
) -> None:
    assert route(query, ("Maya",)).kind == "episodic"
    assert covered(query, dates_and_periods(query, NOW), NOW) == TimeRange(begin, until)


@pytest.mark.parametrize("query", ["When did Maya move?", "How long ago was that?", "When will Maya move?"])
def test_a_question_about_a_time_is_episodic(query: str) -> None:
    assert route(query, ("Maya",)).kind == "episodic"


@pytest.mark.parametrize(
    "query",
    [
        "How is Maya related to Jonas?",
        "What does the user think about vim?",
        "the relationship of the two",
        "history of the project",
    ],
)
def test_a_question_about_relations_is_for_the_graph(query: str) -> None:
    assert route(query).kind == "graph"


def test_a_question_that_names_a_known_entity_is_for_the_graph() -> None:
    found = route("Which tools would Maya pick?", ("Jonas", "maya"))
    assert (found.kind, found.reasons) == ("graph", ("names maya",))


def test_a_name_inside_of_a_word_is_not_named() -> None:
    assert route("What is the best artichoke recipe around here?", ("art",)).kind == "semantic"


@pytest.mark.parametrize("query", ["How is Maya related to Jonas?", "Tell me about Maya please"])
def test_with_the_graph_off_such_a_question_is_hybrid(query: str) -> None:
    assert route(query, ("Maya",), graph=False).kind == "hybrid"


@pytest.mark.parametrize(
    "query",
    [
        "where is src/app/main.rs used",
        "/etc/hosts",
        "std::vec::Vec in that module of theirs",
        "max_hops",
    ],
)
def test_paths_and_code_are_keywords(query: str) -> None:
    assert route(query).kind == "keyword"


@pytest.mark.parametrize("query", ["vim", "neovim key bindings"])
def test_up_to_three_words_are_keywords(query: str) -> None:
    assert route(query).kind == "keyword"


@pytest.mark.parametrize("query", ["is it tea and/or coffee", "can one ride at 30 km/h", "what does 24/7 mean"])
def test_a_slash_alone_makes_no_path(query: str) -> None:
    assert route(query).kind == "semantic"


@pytest.mark.parametrize("query", ["Which editor is best?", "tell me all about the best editor there"])
def test_a_question_word_first_or_six_words_are_semantic(query: str) -> None:
    assert route(query).kind == "semantic"


def test_anything_else_is_hybrid() -> None:
    assert route("a question without end").kind == "hybrid"


def test_a_time_goes_before_a_name() -> None:
    assert route("What did Maya do yesterday?", ("Maya",)).kind == "episodic"


def test_nothing_is_hybrid() -> None:
    assert route("").kind == "hybrid"


@given(st.text(max_size=600), st.lists(st.text(max_size=10), max_size=3))
def test_no_question_is_an_error(query: str, known: list[str]) -> None:
    found = route(query, tuple(known))
    assert found.kind in PLANS
    assert 0 <= found.confidence <= 1


def test_a_plan_has_the_strategy_of_its_kind_and_the_types_of_its_words() -> None:
    query = "Why did Maya leave?"
    assert plan(query, route(query, ("Maya",))) == (PLANS["graph"], (EdgeType.CAUSAL, EdgeType.SEMANTIC))


@pytest.mark.parametrize(
    "query",
    [
        "What are the main topics?",
        "what is this memory about?",
        "Which themes come up most?",
        "Give me an overview of our conversations",
        "What do you know about Maya, and everything you know?",
        "Please summarise everything.",
        "Please summarize everything.",
    ],
)
def test_a_question_about_everything_is_global(query: str) -> None:
    assert route(query, ("Maya",)).kind == "global"


def test_a_time_goes_before_everything() -> None:
    assert route("What were the main topics last week?").kind == "episodic"


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("What are the main topics?", None),
        ("What is this memory about?", None),
        ("What are the main topics about sailing boats?", "sailing boats"),
        ("Give me an overview of our conversations", None),
    ],
)
def test_what_a_question_about_everything_asks_in_particular(query: str, rest: str | None) -> None:
    assert narrowed(query) == rest
