"""Questions about a time of the past are answered with what held then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from math import prod
from uuid import uuid4

import pytest

from graphmem import GraphMemory
from graphmem.models.base import START_OF_TIME
from graphmem.recall.periods import period_of

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
        ("Where has Maya worked since 2020?", ("2020-01-01", "2026-06-15")),
        ("Where did Maya work after she left Rome in 2020?", ("2020-01-01", "2026-06-15")),
        ("Where did Maya work this year?", ("2026-01-01", "2026-06-15")),
        ("Where did Maya work before 2020?", ("0001-01-01", "2020-01-01")),
        ("Where did Maya work prior to 2020?", ("0001-01-01", "2020-01-01")),
        ("Where did Maya work before she moved to Oslo in 2023?", ("0001-01-01", "2023-01-01")),
        ("Where did Maya work until May 2022?", ("0001-01-01", "2022-05-01")),
        ("Where did Anna, whom Maya met in 2019, work in 2020?", ("2020-01-01", "2021-01-01")),
        ("Where did Maya work between 2019 and 2021?", ("2019-01-01", "2022-01-01")),
        ("Where did Maya work during 2019-2020?", ("2019-01-01", "2021-01-01")),
        ("Where did Maya work in 2019–2020?", ("2019-01-01", "2021-01-01")),
        ("Where did Maya work in 2019/2020?", ("2019-01-01", "2021-01-01")),
        ("Where did Maya work between May 2019 and June 2020?", ("2019-05-01", "2020-07-01")),
        ("Where did Maya work from May to June 2020?", ("2020-05-01", "2020-07-01")),
        ("Where did Maya work between November and June 2020?", ("2019-11-01", "2020-07-01")),
        ("Where did Maya work in summer 2020?", ("2020-06-01", "2020-09-01")),
        ("Where did Maya work in '20?", ("2020-01-01", "2021-01-01")),
        ("Maya employer 2020", ("2020-01-01", "2021-01-01")),
        ("What will Maya do in 2030?", None),
        ("What does Maya do this year?", None),
        ("Where does Maya work?", None),
        ("What does Maya do before breakfast?", None),
        ("Is Maya used to the cold?", None),
        ("Did Maya read the novel 2049?", None),
        ("Which plan is limited to 2000 requests?", None),
        ("Which service uses Redis in 1999 containers?", None),
    ],
)
def test_the_time_of_a_question(question: str, window: tuple[str, str] | None) -> None:
    found = period_of(question, NOW)
    assert (found and (found.begin.date().isoformat(), found.until.date().isoformat())) == window


@pytest.mark.parametrize(
    "question",
    [
        "Where did Maya work in 2020?",
        "In which city was Maya in 2020?",
        "Who did Maya meet in 2020?",
        "In May 2020, where did Maya live?",
        "What did Maya do on 3 May 2021",
        "Tom: Where did I work in 2020?",
        "Where did Anna, whom Maya met in 2019, work in 2020?",
        "Did Maya still work at Initech in 2020?",
        "Where did Maya live in Sept. 2020?",
        "Where did Maya live on Oct. 5, 2020?",
        "Where did Maya live in 2020, e.g. in spring?",
    ],
)
def test_a_question_in_the_past_tense_is_about_its_date_alone(question: str) -> None:
    found = period_of(question, NOW)
    assert found is not None
    assert (found.leads, found.alone) == (True, True)


@pytest.mark.parametrize(
    "question",
    [
        "Where does Anna, whom Maya met in 2020, live now?",
        "Where does Anna live, now that she left Rome in 2023?",
        "Does Anna, who moved in 2020, still live in Rome?",
        "Where did Anna, whom Maya met in 2020, live?",
        "I met Anna in 2020. Where does she work?",
        "Where did Anna work? I met her in 2020.",
        "Where is the house that Maya bought in 2020?",
        "Has Maya been to Rome since 2020?",
        "Has Maya ever lived in Rome?",
    ],
)
def test_a_date_that_may_be_about_something_else_only_adds(question: str) -> None:
    found = period_of(question, NOW)
    assert found is not None
    assert (found.leads, found.alone) == (False, False)


@pytest.mark.parametrize(
    ("question", "begin"),
    [
        ("How did Maya's job change?", None),
        ("How has the team that runs billing changed?", None),
        ("How did what Norrland pays change?", None),
        ("How does the rent change over time?", None),
        ("What's changed for Maya?", None),
        ("Show me the history of the contract.", None),
        ("How has the rent changed over the years?", None),
        ("What has changed for Maya?", None),
        ("What is the history of the contract?", None),
        ("How did Maya's diet change in 2020?", "2019-12-31"),
        ("What changed on 3 May 2021?", "2021-05-02"),
    ],
)
def test_a_change_is_about_what_held_before_as_well(question: str, begin: str | None) -> None:
    found = period_of(question, NOW)
    assert found is not None
    assert found.change
    assert found.begin == START_OF_TIME if begin is None else found.begin.date().isoformat() == begin


@pytest.mark.parametrize(
    ("question", "begin", "until"),
    [
        ("How has Maya's rent changed since 2024?", "2023-12-31", "2026-06-15"),
        ("How did Maya's diet change after she met Tom in 2020?", "2019-12-31", "2026-06-15"),
        ("How did Maya's rent change before 2021?", "0001-01-01", "2021-01-01"),
        ("How did Maya's rent change from 2020 to 2021?", "2019-12-31", "2022-01-01"),
        ("We met in 2019. How did Maya's rent change?", "0001-01-01", "2026-06-15"),
    ],
)
def test_the_time_of_a_change_is_that_of_the_words_before_its_date(question: str, begin: str, until: str) -> None:
    found = period_of(question, NOW)
    assert found is not None
    assert (found.change, found.begin.date().isoformat(), found.until.date().isoformat()) == (True, begin, until)


@pytest.mark.parametrize(
    "question",
    [
        "Who changed the plan?",
        "How do I change my password?",
        "What is the changelog?",
        "Where did Maya move?",
        "What is the password since Ben changed it?",
        "What password does the router have after Ben changed it?",
        "What was Maya's job when her name changed?",
        "How long has Maya lived there since the rent changed?",
        "How did Maya feel when her job changed?",
        "How did Maya develop an interest in pottery?",
        "What did Maya say about climate change?",
        "Who teaches history of art?",
        "What do I take before and after meals?",
        "What will Maya do over the weeks ahead?",
    ],
)
def test_other_questions_are_not_about_a_change(question: str) -> None:
    found = period_of(question, NOW)
    assert found is None or not found.change


@pytest.mark.parametrize("episodes", [0, 20])
def test_a_question_about_a_change_finds_what_was_replaced(episodes: int) -> None:
    options = {"extractor": "none", "embeddings": "none", "background": False, "clock": lambda: NOW}
    with GraphMemory.open("memory://", **options) as memory:  # type: ignore[arg-type]
        for amount, since in (("800", "2020-01-01"), ("850", "2020-06-01"), ("900", "2021-02-01")):
            memory.add_facts([("Maya", "has_rent", amount)], occurred_at=since)
        memory.add_facts([("Maya", "knows", f"Person {n}") for n in range(12)], occurred_at="2020-02-01")

        def rents(question: str, limit: int = 3) -> set[str]:
            found = memory.recall(question, limit=limit, episodes=episodes)
            return {fact.target for fact in found if fact.relation == "has_rent"}

        assert rents("How did Maya's rent change?") == {"800", "850", "900"}
        assert {"800", "850"} <= rents("How did Maya's rent change on 1 June 2020?")
        assert rents("What is Maya's rent?") == {"900"}
        assert rents("What is Maya's rent since the owner changed?") == {"900"}


def test_what_holds_now_comes_before_what_a_question_about_its_change_finds() -> None:
    options = {"extractor": "none", "embeddings": "none", "background": False, "clock": lambda: NOW}
    with GraphMemory.open("memory://", **options) as memory:  # type: ignore[arg-type]
        for year in range(2019, 2026):
            memory.add_facts([("Maya", "has_rent", f"{year - 1000} EUR")], occurred_at=f"{year}-01-01")
        found = memory.recall("How did Maya's rent change?", limit=3)
        assert (len(found), next(iter(found)).target) == (3, "1025 EUR")


@pytest.mark.parametrize(
    "question",
    [
        "Where did Maya live in 2020 and where does she live now?",
        "Which friends did Maya have before 2020, and does she still see them?",
        "What did Maya do before the race in May?",
        "Maya home 2020",
        "Anna lived in Rome in 2020.",
        "Where did Maya previously work?",
        "Who was Maya's former employer?",
        "Where did Maya use to work?",
        "What's the town where Maya used to live?",
        "Where did Maya work before Globex?",
        "Where did Maya work before?",
    ],
)
def test_in_doubt_what_holds_now_follows(question: str) -> None:
    found = period_of(question, NOW)
    assert found is not None
    assert (found.leads, found.alone) == (True, False)


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
    assert {fact.fact for fact in found.facts} == {"Maya works at Initech", "Maya visited Oslo"}
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


@pytest.fixture
def moved() -> Iterator[GraphMemory]:
    with GraphMemory.open(f"memory://{uuid4()}", extractor="none", embeddings="none", background=False) as memory:
        homes = [("Lima", "2010"), ("Rome", "2019"), ("Oslo", "2023-03")]
        memory.add_facts(
            [
                *({"subject": "Maya", "relation": "lives_in", "object": home, "valid_from": at} for home, at in homes),
                {"subject": "Maya", "relation": "likes", "object": "tea", "valid_from": "2018-01-01"},
                {"subject": "Tom", "relation": "met", "object": "Maya", "valid_from": "2020-05-01"},
            ]
        )
        yield memory


def homes(memory: GraphMemory, question: str) -> list[str]:
    return [fact.target for fact in memory.recall(question) if fact.relation == "lives_in"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where did Maya live in 2022?", {"Rome"}),
        ("Where did Maya live in 2023?", {"Rome", "Oslo"}),
        ("Where did Maya live before 2019?", {"Lima"}),
        ("Where did Maya live before June 2021?", {"Rome", "Lima"}),
    ],
)
def test_what_held_for_a_part_of_the_time_answers_though_it_was_replaced(
    moved: GraphMemory, question: str, expected: set[str]
) -> None:
    assert set(homes(moved, question)) == expected


@pytest.mark.parametrize(
    "question",
    [
        "Where did Maya live before Oslo?",
        "Where did Maya live before she moved to Oslo?",
        "Where did Maya previously live?",
        "Where did Maya use to live?",
        "Which town is Maya's previous home?",
    ],
)
def test_what_is_over_precedes_what_holds(moved: GraphMemory, question: str) -> None:
    found = homes(moved, question)
    assert (set(found[:2]), found[2]) == ({"Rome", "Lima"}, "Oslo")


def test_before_a_home_are_those_that_it_followed(moved: GraphMemory) -> None:
    assert homes(moved, "Where did Maya live before Rome?")[0] == "Lima"


@pytest.mark.parametrize(
    "question",
    [
        "Where does Maya, whom Tom met in 2020, live now?",
        "Does Maya, whom Tom met in 2020, still live in Rome?",
        "Tom met Maya in 2020. Where does she live?",
    ],
)
def test_a_date_in_a_side_clause_leaves_the_present(moved: GraphMemory, question: str) -> None:
    assert homes(moved, question) == ["Oslo", "Rome"]
    shown = moved.context(question)
    assert shown.find("lives in Oslo (since 2023-03)") < shown.find("lives in Rome (2019-01 to 2023-02)")
    assert "lives in Oslo" in shown


def test_what_was_retracted_never_answers(moved: GraphMemory) -> None:
    moved.retract(next(fact.id for fact in moved.history("Maya") if fact.target == "Rome"))
    assert "Rome" not in homes(moved, "Where did Maya use to live?")
    assert "Rome" not in homes(moved, "Where did Maya live in 2020?")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_past_that_leads_leaves_room_for_the_present(moved: GraphMemory, limit: int) -> None:
    found = moved.recall("Where did Maya use to live?", limit=limit)
    assert len(found) == limit
    assert [fact.target for fact in found if fact.valid_to is not None][:1] == [found[0].target]
    assert limit == 1 or any(fact.valid_to is None for fact in found)


def test_the_parts_of_a_halved_score_still_make_it(moved: GraphMemory) -> None:
    for fact in moved.recall("Where did Maya use to live?"):
        assert fact.parts is not None
        factors = fact.parts.model_dump(exclude={"evidence"}).values()
        assert fact.score == pytest.approx(prod(factors) + fact.parts.evidence)
