"""Names and summaries: from facts alone, and what of a model's answer is taken."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from graphmem.communities.summaries import (
    MAX_PROMPT_BYTES,
    Description,
    Material,
    TopFact,
    _read,  # pyright: ignore[reportPrivateUsage]
    name_of,
    prompt_for,
    summary_of,
)
from graphmem.errors import ExtractionFailed

BEGIN, END = (datetime(2023, month, 1, tzinfo=UTC).timestamp() for month in (5, 10))
MATERIAL = Material(
    names=("Caroline", "support group", "Sweden", "adoption"),
    size=12,
    facts=30,
    top=(
        TopFact(frozenset({"1", "2"}), "Caroline went to a support group", "on 2023-05-07"),
        TopFact(frozenset({"1", "2"}), "Caroline likes the support group."),
        TopFact(frozenset({"1", "3"}), "Caroline's home country is Sweden.", "told 2023-10-01, hearsay"),
    ),
    period=(BEGIN, END),
)


def test_a_community_is_named_after_its_central_members() -> None:
    assert name_of(MATERIAL) == "Caroline · support group · Sweden"


def test_a_name_stays_while_all_in_it_are_central() -> None:
    assert name_of(MATERIAL, "Sweden · adoption · Caroline") == "Sweden · adoption · Caroline"
    assert name_of(MATERIAL, "Sweden · adoption · Berlin") == "Caroline · support group · Sweden"


def test_a_long_name_is_cut_and_stays_the_same_name() -> None:
    long = replace(MATERIAL, names=("word " * 40, "x · y"))
    name = name_of(long)
    assert len(name) < 80
    assert name_of(long, name) == name


def test_a_summary_tells_names_facts_and_period() -> None:
    assert summary_of(MATERIAL) == (
        "Caroline, support group, Sweden, adoption and 8 more; 30 facts, 2023-05 to 2023-10. "
        "Caroline went to a support group. Caroline's home country is Sweden. Caroline likes the support group."
    )


def test_a_summary_of_one_fact_says_one_month() -> None:
    one = replace(MATERIAL, names=("Caroline", "Sweden"), size=2, facts=1, top=MATERIAL.top[2:], period=(BEGIN, BEGIN))
    assert summary_of(one) == "Caroline, Sweden; 1 fact, 2023-05. Caroline's home country is Sweden."


def test_a_prompt_has_the_best_facts_that_fit() -> None:
    many = replace(MATERIAL, top=tuple(TopFact(frozenset({str(n)}), f"Fact {n} " + "ü" * 400) for n in range(100)))
    prompt = prompt_for(many)
    assert len(prompt.encode()) <= MAX_PROMPT_BYTES
    assert "Fact 0 " in prompt
    assert "Fact 99 " not in prompt


def test_a_prompt_dates_facts_and_marks_unsure_ones() -> None:
    prompt = prompt_for(MATERIAL)
    assert "- Caroline went to a support group (on 2023-05-07)\n" in prompt
    assert "- Caroline's home country is Sweden. (told 2023-10-01, hearsay)" in prompt
    assert "- Caroline likes the support group.\n" in prompt


def test_names_cannot_fill_a_prompt() -> None:
    prompt = prompt_for(replace(MATERIAL, names=tuple("ü" * 5000 for _ in range(8))))
    assert len(prompt.encode()) <= MAX_PROMPT_BYTES


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps({"name": "Support", "summary": "Caroline went to a support group in Sweden."}),
        'Sure!\n```json\n{"name": "Support", "summary": "Caroline went to a support group in Sweden."}\n```',
        '<think>{"summary": 1}</think>{"name": "Support", "summary": "Caroline went to a support group in Sweden."}',
    ],
)
def test_an_answer_is_found_in_what_stands_around_it(reply: str) -> None:
    assert _read(reply, MATERIAL) == Description("Support", "Caroline went to a support group in Sweden.")


def test_plain_sentences_are_a_summary_without_a_name() -> None:
    text = "Caroline went to a support group in Sweden."
    assert _read(text, MATERIAL) == Description("", text)


def test_summary_in_a_script_without_spaces_counts_by_its_length() -> None:
    text = "Caroline于二〇二三年在瑞典参加了互助小组。"
    assert _read(json.dumps({"summary": text}), MATERIAL) == Description("", text)


def test_example_of_braces_before_the_answer_is_ignored() -> None:
    summary = "Caroline went to a support group in Sweden."
    assert _read(f"I use {{name, summary}}:\n{json.dumps({'summary': summary})}", MATERIAL) == Description("", summary)


@pytest.mark.parametrize(
    "reply",
    ["", "I can't help.", "{broken", "[1, 2]", '{"summary": ""}', json.dumps({"summary": "Caroline " * 400})],
)
def test_what_is_no_summary_is_refused(reply: str) -> None:
    assert isinstance(_read(reply, MATERIAL), ExtractionFailed)


def test_what_has_nothing_to_do_with_the_facts_is_refused() -> None:
    reply = json.dumps({"summary": "Quarterly earnings of the shipping company rose."})
    assert isinstance(_read(reply, MATERIAL), ExtractionFailed)
