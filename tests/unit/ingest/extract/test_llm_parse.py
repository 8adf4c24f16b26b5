"""Lenient reading of entities and edges."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.ingest.extract.llm_parse import (
    edges_in,
    entities_in,
    find_json,
    read_confidence,
    read_edge,
    read_end,
    read_number,
    read_time,
)
from graphmem.protocols import ExtractedEdge, ExtractedEntity

AT = datetime(2026, 2, 9, tzinfo=UTC)


def edge_of(item: Any) -> ExtractedEdge:
    [edge] = edges_in({"edges": [item]}, Counter())
    return edge


@pytest.mark.parametrize(
    "item",
    [
        {"subject": "A", "predicate": "likes", "object": "B"},
        {"from": "A", "relationship": "likes", "to": "B"},
        {"head": "A", "type": "likes", "tail": "B"},
        {"Source": {"name": "A"}, "Relation": "likes", "Target": {"name": "B", "type": "x"}},
        ["A", "likes", "B"],
    ],
)
def test_common_other_field_names_are_read(item: Any) -> None:
    assert edge_of(item) == ExtractedEdge("A", "likes", "B")


@pytest.mark.parametrize("key", ["relationships", "relations", "triples", "facts"])
def test_common_other_names_of_the_list_are_read(key: str) -> None:
    assert len(list(edges_in({key: [["A", "likes", "B"]]}, Counter()))) == 1


@pytest.mark.parametrize(
    "value",
    [
        {"entities": [{"name": "Ann", "type": "person"}]},
        {"nodes": [{"id": "Ann", "type": "person"}]},
        {"entities": [["Ann", "person"]]},
        {"entities": {"Ann": "person"}},
        {"entities": {"person": ["Ann"]}},
        {"entities": {"name": "Ann", "entity_type": "person"}},
        [{"name": "Ann", "type": "person"}],
    ],
)
def test_entities_are_read_in_many_forms(value: Any) -> None:
    assert list(entities_in(value, Counter())) == [ExtractedEntity("Ann", "person")]


def test_one_list_of_both_is_told_apart() -> None:
    value = [{"name": "Ann"}, {"source": "Ann", "relation": "likes", "target": "Bo"}, ["Ann", "likes", "Bo"]]
    assert len(list(entities_in(value, Counter()))) == 1
    assert len(list(edges_in(value, Counter()))) == 2


def test_a_bad_item_is_counted_and_costs_no_other() -> None:
    dropped: Counter[str] = Counter()
    items = [None, 3, {}, {"source": "A", "target": "B"}, {"source": None, "relation": "x", "target": "B"}, ["A", "B"]]
    assert len(list(edges_in({"edges": [*items, ["A", "likes", "B"]]}, dropped))) == 1
    assert dropped == {"malformed edge": 6}


def test_null_in_place_of_the_lists_is_nothing() -> None:
    assert list(entities_in({"entities": None, "edges": None}, Counter())) == []


def test_an_unknown_edge_type_is_passed_on() -> None:
    assert (
        edge_of({"source": "A", "relation": "r", "target": "B", "edge_type": "Hierarchical"}).edge_type
        == "hierarchical"
    )


@pytest.mark.parametrize("field", ["id", "scope", "source_id", "episode_ids", "properties"])
def test_what_a_model_has_no_say_in_is_ignored(field: str) -> None:
    item = {"source": "A", "relation": "likes", "target": "B"}
    assert edge_of({**item, field: "evil"}) == edge_of(item)
    named = {"name": "Ann", "entity_type": "person", field: "evil"}
    assert list(entities_in({"entities": [named]}, Counter())) == [ExtractedEntity("Ann", "person")]


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ("stated", "stated"),
        (None, "stated"),
        ("", "stated"),
        (0.9, "stated"),
        ("90%", "stated"),
        ("High", "stated"),
        ("plan (intended)", "plan"),
        ("scheduled", "plan"),
        ("rumoured", "hearsay"),
        ("overheard", "hearsay"),
        ("guess", "possible"),
        ("likely", "possible"),
        ("uncertain", "possible"),
        ("speculation", "possible"),
        ("low", "possible"),
    ],
)
def test_a_certainty_in_other_words_is_no_surer_than_it_says(stated: object, read: str) -> None:
    edge = edge_of({"source": "A", "relation": "likes", "target": "B", "certainty": stated})
    assert edge.certainty == read


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        (0.9, 0.9),
        ("0.9", 0.9),
        ("90%", 0.9),
        (90, 0.9),
        ("high", 0.9),
        ("LOW", 0.3),
        (-1, 0.0),
        (None, 1.0),
        ("sure thing", 1.0),
        (float("nan"), 1.0),
        (True, 1.0),
        ([], 1.0),
        (10**400, 1.0),
        (500, 1.0),
    ],
)
def test_confidence(stated: object, read: float) -> None:
    assert read_confidence(stated) == pytest.approx(read)


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ("2023-05-07", datetime(2023, 5, 7, tzinfo=UTC)),
        ("2023-05", datetime(2023, 5, 1, tzinfo=UTC)),
        (2023, datetime(2023, 1, 1, tzinfo=UTC)),
        ("2023-05-07T10:00:00", datetime(2023, 5, 7, 10, tzinfo=UTC)),
        ("2023-05-07T10:00:00+02:00", datetime(2023, 5, 7, 8, tzinfo=UTC)),
        ("present", None),
        (None, None),
    ],
)
def test_times_are_read_and_naive_ones_are_utc(stated: object, read: datetime | None) -> None:
    dropped: Counter[str] = Counter()
    assert read_time(stated, dropped) == read
    assert not dropped


@pytest.mark.parametrize("stated", ["last Tuesday", "2023-13", "0000-01-01", "0001-01-01T00:00:00+14:00", "soon"])
def test_a_time_that_cannot_be_read_is_dropped_and_counted(stated: str) -> None:
    dropped: Counter[str] = Counter()
    assert read_time(stated, dropped) is None
    assert dropped == {"unreadable date": 1}


@pytest.mark.parametrize(
    ("stated", "end"),
    [
        ("2026-12-31", "2027-01-01T00:00:00+00:00"),
        ("2026-12", "2027-01-01T00:00:00+00:00"),
        ("2026-02", "2026-03-01T00:00:00+00:00"),
        ("2026", "2027-01-01T00:00:00+00:00"),
        ("20260228", "2026-03-01T00:00:00+00:00"),
        ("2026-12-31T18:30:00Z", "2026-12-31T18:30:00+00:00"),
        ("2026-12-31T00:00:00Z", "2026-12-31T00:00:00+00:00"),
        ("9999", "9999-01-01T00:00:00+00:00"),
    ],
)
def test_an_end_reaches_to_the_last_moment_of_its_day_month_or_year(stated: str, end: str) -> None:
    found = read_end(stated, Counter())
    assert found is not None
    assert found.isoformat() == end


def test_a_list_by_turn_may_have_turns_without_facts() -> None:
    each = [{"episode": 1, "facts": [["Ann", "likes", "tea"]]}, {"episode": 2}, {"episode": 3, "ended": [{"known": 1}]}]
    assert find_json(json.dumps(each)) == {
        "entities": [],
        "facts": [["Ann", "likes", "tea"]],
        "ended": [{"episode": 3, "known": 1}],
    }


def test_entities_with_relations_of_their_own_are_no_list_by_turn() -> None:
    entities: list[dict[str, Any]] = [{"entity": name, "type": "person", "relations": []} for name in ("Ann", "Bob")]
    assert find_json(json.dumps(entities)) == entities


@pytest.mark.parametrize(
    ("stated", "begin", "end"),
    [
        ("May 2024", "2024-05-01", "2024-06-01"),
        ("until 31 December 2024", "2024-12-31", "2025-01-01"),
        ("2024/06/05", "2024-06-05", "2024-06-06"),
        ("last May", "2024-05-01", "2024-06-01"),
        ("yesterday", "2025-02-28", "2025-03-01"),
        ("2025-02-28", "2025-02-28", "2025-03-01"),
        ("2025-02-28T00:00:00Z", "2025-02-28", "2025-03-01"),
        ("2025-02-28 00:00", "2025-02-28", "2025-03-01"),
        ("2025-02-28T00:00:00+02:00", "2025-02-27", "2025-02-27"),
    ],
)
def test_a_date_in_words_is_read_by_the_time_of_telling(stated: str, begin: str, end: str) -> None:
    told, dropped = datetime(2025, 3, 1, 10, tzinfo=UTC), Counter[str]()
    found = read_time(stated, dropped, told), read_end(stated, dropped, told)
    assert [moment and f"{moment:%Y-%m-%d}" for moment in found] == [begin, end]
    assert not dropped


@pytest.mark.parametrize(
    ("stated", "begin", "end"),
    [
        ("June", None, "2025-07-01"),
        ("until May", None, "2025-06-01"),  # of what holds since May, the other one
        ("1 April", None, "2025-04-02"),
        ("15 February", "2025-02-15", "2025-02-16"),
        ("January", "2025-01-01", "2025-02-01"),
        ("in December", "2024-12-01", "2025-01-01"),
        ("August", None, None),  # about as far away as the last one
        ("20 September", None, None),
    ],
)
def test_a_month_without_a_year_is_the_nearer_one_and_a_beginning_is_past(
    stated: str, begin: str | None, end: str | None
) -> None:
    told, dropped = datetime(2025, 3, 1, 10, tzinfo=UTC), Counter[str]()
    found = read_time(stated, dropped, told), read_end(stated, dropped, told)
    assert [moment and f"{moment:%Y-%m-%d}" for moment in found] == [begin, end]
    assert dropped["unreadable date"] == found.count(None)


@pytest.mark.parametrize("stated", ["Monday", "August", "end of 2024", "2024-05-xx", "2024-06-30T25:00", "soon"])
def test_a_date_in_words_that_may_be_another_one_is_not_read(stated: str) -> None:
    told, dropped = datetime(2025, 3, 1, 10, tzinfo=UTC), Counter[str]()
    assert read_end(stated, dropped, told) is None
    assert dropped == {"unreadable date": 1}


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2025-05", datetime(2025, 6, 1, tzinfo=UTC)),
        ("2025", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2025-05-03", None),
        ("2025-05-03T10:00", None),
        (None, None),
    ],
)
def test_an_event_of_a_month_or_year_lasts_until_its_end(begin: str | None, end: datetime | None) -> None:
    item = {"source": "A", "relation": "visited", "target": "B", "valid_from": begin}
    assert edge_of({**item, "kind": "event"}).valid_to == end
    assert edge_of({**item, "kind": "state"}).valid_to is None


def test_an_edge_outlives_its_unreadable_time() -> None:
    edge = edge_of({"source": "A", "relation": "r", "target": "B", "valid_from": "once upon a time", "ended": "yes"})
    assert (edge.valid_from, edge.ended) == (None, True)


@pytest.mark.parametrize(
    ("relation", "read", "ended", "dates"),
    [
        ("no_longer_uses", "uses", True, (None, AT)),
        ("No longer works at", "works_at", True, (None, AT)),
        ("used_to_live_in", "live_in", True, (AT, None)),
        ("uses", "uses", False, (AT, None)),
        ("used_to", "used_to", False, (AT, None)),
        ("used_for", "used_for", False, (AT, None)),
    ],
)
def test_a_relation_that_says_that_a_fact_is_over_ends_it(
    relation: str, read: str, ended: bool, dates: tuple[datetime | None, datetime | None]
) -> None:
    edge = read_edge({"source": "Ann", "relation": relation, "target": "R", "valid_from": "2026-02-09"}, Counter(), AT)
    assert edge is not None
    assert (edge.relation, edge.ended, (edge.valid_from, edge.valid_to)) == (read, ended, dates)


@pytest.mark.parametrize(
    ("sentence", "ended"),
    [
        ("Ninja is used to build R.", False),
        ("Ninja was often used to build R.", False),
        ("Ninja used to build R.", True),
        ("", True),
    ],
)
def test_what_something_is_used_for_is_not_over(sentence: str, ended: bool) -> None:
    said = {"source": "Ninja", "relation": "used_to_build", "target": "R", "fact": sentence}
    edge = read_edge(said, Counter(), AT)
    assert edge is not None
    assert (edge.relation, edge.ended) == ("build" if ended else "used_to_build", ended)


@pytest.mark.parametrize(
    ("stated", "number"), [(3, 3), ("3", 3), ("3.", 3), ("[3]", 3), ("#3", 3), ("3a", None), ("-3", None), (3.5, None)]
)
def test_the_number_of_a_known_fact_may_be_written_as_in_the_prompt(stated: object, number: int | None) -> None:
    assert read_number(stated) == number
