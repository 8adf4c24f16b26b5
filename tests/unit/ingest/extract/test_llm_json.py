"""What is found in a model's reply, however it is wrapped or broken."""

from __future__ import annotations

import json
import time

import pytest

from graphmem.errors import ExtractionFailed
from graphmem.ingest.extract.llm_parse import find_json

pytest.importorskip("json_repair", reason="json-repair isn't installed (graphmem[langchain])")

ANSWER = {"entities": [{"name": "Alice"}], "edges": []}
TEXT = json.dumps(ANSWER)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Sure! Here is the JSON:\n\n```\n{TEXT}\n```\nLet me know if you need more.",
        f"Here is {{the answer}} you wanted: {TEXT} (I hope [it] helps)",
        f"<think>The user wants {{'entities': []}} maybe.</think>\n{TEXT}",
        f"reasoning without its opening tag {{}} </think>{TEXT}",
        f"```json\n{TEXT}",
        json.dumps({"extraction": ANSWER}),
        json.dumps([ANSWER]),
        json.dumps({"Entities": ANSWER["entities"], "Edges": []}),
    ],
    ids="bare fenced fenced-in-prose in-prose thinking cut-thinking open-fence wrapped listed capitals".split(),
)
def test_the_answer_is_found(reply: str) -> None:
    assert find_json(reply) == ANSWER


@pytest.mark.parametrize(
    "reply",
    [
        '{"entities": [{"name": "Alice",}], "edges": []',
        "{'entities': [{'name': 'Alice'}], 'edges': []}",
        '{"entities": [{"name": "Alice"}] "edges": []}',
        '{entities: [{name: "Alice"}], edges: []} // done',
    ],
    ids=["comma and cut off", "single quotes", "missing comma", "bare keys"],
)
def test_broken_json_is_mended(reply: str) -> None:
    assert find_json(reply) == ANSWER


@pytest.mark.parametrize(
    "reply",
    [
        "I see that Alice works at Acme.",
        "I'm sorry, but I can't help with that.",
        'Alice [my friend] said "hello" {smiling} today.',
        '{"answer": "Alice works at Acme"}',
        json.dumps({"type": "object", "properties": {"entities": {"type": "array"}}}),
        "42",
        '["Alice", "Acme"]',
    ],
    ids=["prose", "refusal", "brackets in prose", "other object", "the schema back", "a number", "a list of words"],
)
def test_a_reply_without_an_extraction_fails(reply: str) -> None:
    with pytest.raises(ExtractionFailed, match="no JSON"):
        find_json(reply)


@pytest.mark.parametrize("reply", ["", "  \n", "<think>hm</think>", "<think>never ends"])
def test_an_empty_reply_fails(reply: str) -> None:
    with pytest.raises(ExtractionFailed, match="empty"):
        find_json(reply)


def test_an_empty_object_says_that_there_is_nothing() -> None:
    assert find_json("{}") == {}


@pytest.mark.parametrize(
    "reply",
    ["[" * 200_000, "{" * 200_000, '{"a":' * 100_000, "[{" * 100_000, "```" * 100_000, "<think>" * 50_000],
    ids=["brackets", "braces", "nested keys", "both", "fences", "tags"],
)
def test_hostile_nesting_fails_quickly(reply: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(ExtractionFailed):
        find_json(reply)
    assert time.perf_counter() - begun < 5.0
