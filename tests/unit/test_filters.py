"""Filters of episodes: what is accepted, what is refused, and what a filter matches."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem.errors import InvalidInput
from graphmem.models import Episode, EpisodeFilter, Scope, filter_matches, metadata_matches

METADATA: dict[str, Any] = {"n": 1, "text": "b", "yes": True, "none": None}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"n": 1}, True),
        ({"n": 1.0}, True),
        ({"n": True}, False),
        ({"n": "1"}, False),
        ({"yes": True}, True),
        ({"yes": 1}, False),
        ({"none": None}, True),
        ({"absent": None}, True),
        ({"absent": {"$ne": 1}}, True),
        ({"absent": {"$ne": None}}, False),
        ({"none": {"$exists": True}}, True),
        ({"absent": {"$exists": True}}, False),
        ({"absent": {"$exists": False}}, True),
        ({"n": {"$in": [2, 1]}}, True),
        ({"n": {"$in": []}}, False),
        ({"n": [2, 1]}, True),
        ({"n": (2, "1")}, False),
        ({"text": {"a", "b"}}, True),
        ({"absent": [None]}, True),
        ({"n": []}, False),
        ({"n": {"$nin": [1]}}, False),
        ({"absent": {"$in": [None]}}, True),
        ({"absent": {"$nin": [1]}}, True),
        ({"n": {"$gt": 0, "$lt": 2}}, True),
        ({"n": {"$gt": 1}}, False),
        ({"n": {"$gte": "0"}}, False),
        ({"text": {"$gte": "b", "$lt": "c"}}, True),
        ({"yes": {"$gt": 0}}, False),
        ({"none": {"$lt": 5}}, False),
        ({"absent": {"$lte": 5}}, False),
        ({"n": 1, "text": "a"}, False),
    ],
)
def test_conditions_on_metadata(conditions: dict[str, Any], expected: bool) -> None:
    assert metadata_matches(METADATA, EpisodeFilter(metadata=conditions).metadata) is expected


INVALID: list[tuple[Any, str]] = [
    ({"topic": {"$regex": "a"}}, r"metadata: .*topic: unknown operator '\$regex'; known are \$eq"),
    ({"topic": {"eq": "a"}}, "topic: unknown operator 'eq'"),
    ({"topic": {}}, "topic: no operator is given"),
    ({"topic": {"$in": "abc"}}, r"topic: \$in takes a list"),
    ({"topic": {"$exists": 1}}, r"topic: \$exists takes true or false"),
    ({"topic": {"$gt": None}}, r"topic: \$gt takes a text or a number"),
    ({"topic": {"$lt": True}}, r"topic: \$lt takes a text or a number"),
    ({"topic": [["a"]]}, r"topic: \$in takes a text, a number, a boolean or null"),
    ({"topic": {"$in": [{}]}}, r"topic: \$in takes a text, a number, a boolean or null"),
    ({"topic": float("nan")}, "property 'topic' is nan"),
    ({1: "a"}, "a metadata key is a text"),
    ({"attachments": "a"}, "attachments: attachments can't be filtered"),
    ("topic", "expected a mapping"),
]


@pytest.mark.parametrize(("conditions", "problem"), INVALID)
def test_invalid_conditions_are_named(conditions: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        EpisodeFilter(metadata=conditions)


@pytest.mark.parametrize("field", ["session_ids", "session_prefix", "speakers", "since", "sources"])
def test_an_invalid_field_is_named(field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"EpisodeFilter\.{field}"):
        EpisodeFilter(**{field: 7})  # pyright: ignore[reportArgumentType]


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"EpisodeFilter\.session_id: "):
        EpisodeFilter(session_id="s")  # pyright: ignore[reportCallIssue]


def test_an_interval_holds_its_begin_and_not_its_end() -> None:
    at = Episode(scope=Scope("a"), text="x", occurred_at="2026-01-02T00:00:00Z")  # pyright: ignore[reportArgumentType]
    since = EpisodeFilter(since="2026-01-02")  # pyright: ignore[reportArgumentType]
    until = EpisodeFilter(until="2026-01-02")  # pyright: ignore[reportArgumentType]
    assert (filter_matches(at, since), filter_matches(at, until)) == (True, False)


def test_only_a_filter_without_conditions_is_empty() -> None:
    given = [
        EpisodeFilter(),
        EpisodeFilter(session_ids=()),
        EpisodeFilter(session_prefix=""),
        EpisodeFilter(metadata={"a": 1}),
    ]
    assert [one.is_empty for one in given] == [True, False, False, False]
