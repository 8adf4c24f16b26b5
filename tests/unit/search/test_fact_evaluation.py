"""Evaluation of stored facts against a key."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory, InvalidInput
from graphmem.search.fact_evaluation import FactEvaluation, read_key

WORKS = {"subject": "Ann Lee", "relation": "works_at", "object": "Acme"}


@pytest.fixture
def memory() -> Any:
    with GraphMemory.open("memory://key", extractor="none", embeddings="none", background=False) as opened:
        opened.add_facts(
            [
                {**WORKS, "valid_from": datetime(2025, 3, 3, tzinfo=UTC), "subject_type": "person"},
                {
                    "subject": "Ann Lee",
                    "relation": "has_budget",
                    "object": "40k",
                    "valid_from": datetime(2025, 1, 1, tzinfo=UTC),
                    "valid_to": datetime(2025, 4, 1, tzinfo=UTC),
                    "subject_type": "person",
                },
                {"subject": "Ann", "relation": "owns", "object": "Checkout", "fact": "Ann owns Checkout."},
            ]
        )
        yield opened


def verdict(memory: GraphMemory, **fact: Any) -> str:
    found = memory.admin.evaluate_facts([{**WORKS, **fact}])
    [name] = [name for name, count in found.verdicts.items() if count]
    return name


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ({}, "right"),
        ({"valid_from": "2025-03-03"}, "right"),
        ({"valid_from": "2025-03"}, "right"),
        ({"valid_from": "2025"}, "right"),
        ({"valid_from": "2025-03-10"}, "wrong_interval"),
        ({"valid_to": "2025-05-01"}, "wrong_interval"),
        ({"relation": "has_budget", "object": "40k", "valid_to": "2025-03-31"}, "right"),
        ({"relation": "has_budget", "object": "40k", "valid_to": "2025-03"}, "right"),
        ({"relation": "has_budget", "object": "40k"}, "wrong_interval"),
        ({"relation": "owns", "object": "Checkout"}, "wrong_entity"),
        ({"object": "Globex"}, "lost"),
        ({"subject": "Bob Ray"}, "lost"),
        ({"subject": "Bob Ray / Ann Lee", "object": "Globex / Acme"}, "right"),
        ({"object": "Globex / Acme", "valid_from": "2025-03-10"}, "wrong_interval"),
        ({"object": "Globex / Initech"}, "lost"),
        ({"subject": "Ann Lee (the painter)", "object": "Acme (in Ghent)"}, "right"),
        ({"subject": "Ann Lee and Bob"}, "right"),
    ],
)
def test_verdict_on_a_fact(memory: GraphMemory, fact: dict[str, Any], expected: str) -> None:
    assert verdict(memory, **fact) == expected


def test_facts_of_an_archived_entity_are_judged() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False, max_entities=1) as memory:
        memory.add_facts([WORKS])
        assert memory.admin.evict().archived_entities == 1
        assert verdict(memory) == "right"


def test_facts_that_say_the_same_one_after_the_other_are_one_interval(memory: GraphMemory) -> None:
    months = [datetime(2025, month, 1, tzinfo=UTC) for month in (1, 4, 6, 9)]
    moves = {"subject": "Ann Lee", "relation": "deploys_on", "object": "Kubernetes"}
    memory.add_facts(
        [
            {**moves, "valid_from": months[0], "valid_to": months[1]},
            {**moves, "valid_from": months[1], "valid_to": months[2]},
            {**moves, "valid_from": months[3]},
        ]
    )
    assert verdict(memory, **moves, valid_from="2025-01-01", valid_to="2025-05-31") == "right"
    assert verdict(memory, **moves, valid_from="2025-09-01") == "right"
    assert verdict(memory, **moves, valid_from="2025-01-01") == "wrong_interval"  # not from June to August


def test_a_longer_name_with_the_subject_does_not_hide_the_sentence_that_tells_it(memory: GraphMemory) -> None:
    memory.add_facts(
        [
            ("Ann Lee", "plans", "review of the May travel spending"),
            {"subject": "Ann Lee", "relation": "spent", "object": "900", "fact": "The May travel spending was 900."},
        ]
    )
    assert verdict(memory, subject="travel spending", relation="was", object="900") == "right"


def test_a_relation_may_be_told_by_a_derived_word(memory: GraphMemory) -> None:
    memory.add_facts(
        [{"subject": "Ann Lee", "relation": "affected_by", "object": "outage", "fact": "It failed 42 minutes."}]
    )
    assert verdict(memory, relation="failure", object="42 minutes") == "right"
    assert verdict(memory, relation="duration", object="42 minutes") == "wrong_entity"


def test_claim_that_a_current_fact_states_is_counted(memory: GraphMemory) -> None:
    found = memory.admin.evaluate_facts([{"claim": "Ann owns Checkout"}, {"claim": "Ann owns Payments"}])
    assert ([claim for claim, _ in found.never_current], found.never) == (["Ann owns Checkout"], 2)


def test_fact_that_is_right_by_the_key_states_no_claim(memory: GraphMemory) -> None:
    claim = {"claim": "Ann gets a credit on the March invoice"}
    told = "Ann gets a credit on the April invoice, as the March invoice is closed."
    memory.add_facts([{"subject": "Ann Lee", "relation": "gets_credit_on", "object": "April invoice", "fact": told}])
    assert len(memory.admin.evaluate_facts([claim]).never_current) == 1
    right = {"subject": "Ann Lee", "relation": "gets credit on", "object": "April invoice"}
    assert memory.admin.evaluate_facts([right, claim]).never_current == ()


@pytest.mark.parametrize(("gate", "current"), [("Gate 12", 1), ("Gate 14", 0)])
def test_claim_with_another_number_is_not_stated(memory: GraphMemory, gate: str, current: int) -> None:
    memory.add_facts([("Ann", "opens", "Gate 12 of the northern parking lot")])
    found = memory.admin.evaluate_facts([{"claim": f"Ann opens {gate} of the northern parking lot"}])
    assert len(found.never_current) == current


def test_question_is_answered_by_one_word_of_each_group(memory: GraphMemory) -> None:
    question = "Where does Ann Lee work?"
    found = memory.admin.evaluate_facts(
        [
            {"question": question, "needles": [["acme", "globex"], "lee"]},
            {"question": question, "needles": [["globex"]]},
        ]
    )
    assert (found.questions, found.answered, found.answered_clean) == (2, 1, 1)
    assert found.unanswered == (question,)


def test_another_relation_to_a_former_object_is_not_stale(memory: GraphMemory) -> None:
    memory.add_facts([("Ann Lee", "has_brother", "Tom"), ("Ann Lee", "jogs_with", "Tom")], occurred_at="2025-01-01")
    over = {"subject": "Ann Lee", "object": "Tom", "valid_to": "2025-03-01"}
    question = {"question": "Who is the brother of Ann Lee?", "needles": [["tom"]]}
    clean = {
        relation: memory.admin.evaluate_facts([{**over, "relation": relation}, question]).answered_clean
        for relation in ("jogs with", "rows with")
    }
    assert clean == {"jogs with": 0, "rows with": 1}


def test_a_state_that_was_resumed_is_not_stale(memory: GraphMemory) -> None:
    memory.add_facts([("Ann Lee", "attends", "choir")], occurred_at="2025-06-01")
    course = {"subject": "Ann Lee", "relation": "attends", "object": "choir"}
    found = memory.admin.evaluate_facts(
        [
            {**course, "valid_from": "2024-01-01", "valid_to": "2024-03-01"},
            {**course, "valid_from": "2025-06-01"},
            {"question": "What does Ann Lee attend?", "needles": [["choir"]]},
        ]
    )
    assert (found.answered, found.answered_clean) == (1, 1)


def test_question_about_an_end_is_answered_by_the_last_day(memory: GraphMemory) -> None:
    rented = {"subject": "Ann Lee", "relation": "rents", "object": "Flat 4", "valid_to": "2025-07-01"}
    memory.add_facts([rented], occurred_at="2025-01-01")
    question = "Until when did Ann Lee rent Flat 4?"
    answered = {
        day: memory.admin.evaluate_facts([{"question": question, "needles": [[day]]}]).answered
        for day in ("2025-06-30", "2025-07-01")
    }
    assert answered == {"2025-06-30": 1, "2025-07-01": 0}


def test_stale_fact_beside_the_answer_is_counted(memory: GraphMemory) -> None:
    found: FactEvaluation = memory.admin.evaluate_facts(
        [
            {**WORKS, "valid_to": "2025-06-01"},
            {"question": "Where does Ann Lee work?", "needles": [["acme"]]},
        ]
    )
    assert (found.answered, found.answered_clean) == (1, 0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2"),
        ('{"subject": "Ann"}', "line 2: relation: missing"),
        (json.dumps({**WORKS, "valid_from": "soon"}), "line 2.*'soon' is not a date"),
        (json.dumps({**WORKS, "valid_from": "2025-13"}), "line 2.*'2025-13' is not a date"),
        (json.dumps({**WORKS, "objekt": "x"}), "line 2.*objekt"),
        ('{"claim": ""}', "line 2.*claim"),
        ('{"question": "Who?"}', "line 2.*needles"),
        ("[]", "line 2: expected an object"),
    ],
)
def test_fault_in_a_key_is_told_with_line_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "key.jsonl"
    path.write_text(f"{json.dumps(WORKS)}\n{line}\n")
    with pytest.raises(InvalidInput, match=reason):
        read_key([path])


def test_empty_key_is_refused(memory: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        memory.admin.evaluate_facts([])
