"""Stored values: those that were edited by hand, and the columns of a fact."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import pytest

from graphmem.errors import GraphMemError
from graphmem.models import EdgeType, RowReader
from graphmem.testing.rows import edge, entity_id, home
from graphmem_neo4j.checked_rows import community_of, entity_of, episode_of
from graphmem_neo4j.rows import Row, Times, edge_row, moment
from graphmem_sqlite.rows import EDGE_COLUMNS

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00", "2026-01-01T00:00:00.000000000"])
def test_a_time_without_a_time_zone_is_one_of_utc(text: str) -> None:
    assert (moment(text), moment(text).tzinfo) == (MIDNIGHT, UTC)


def test_a_time_of_a_named_time_zone_is_read_by_its_offset() -> None:
    assert moment("2026-01-01T01:00+01:00[Europe/Oslo]").isoformat() == MIDNIGHT.isoformat()


AT = "2026-01-01T00:00:00Z"
NODES: list[tuple[str, Callable[[Row], object], list[object]]] = [
    ("Entity", entity_of, ["Ada", "ada", "person", "", None, 1.0, AT, AT, AT, 0, None, None, None]),
    ("Episode", episode_of, ["chat", "Hello", *[None] * 4, AT, AT, None, None, None, 0, *[None] * 4]),
    ("Community", community_of, [0, "Team", "", "", None, AT, AT, None]),
]


@pytest.mark.parametrize(("label", "read", "values"), NODES)
def test_a_node_written_by_hand_is_named_with_the_property_that_it_lacks(
    label: str, read: Callable[[Row], object], values: list[object]
) -> None:
    known = [entity_id(1), home().key]
    assert read([*known, *values])
    missing = [None if value == AT else value for value in values]
    with pytest.raises(GraphMemError, match=rf"\(:{label} {{id: '{entity_id(1)}'}}\) lacks the property '\w+_at'"):
        read([*known, *missing])
    unread = ["never" if value == AT else value for value in values]
    with pytest.raises(GraphMemError, match=f"{entity_id(1)}.* can't be read.*never"):
        read([*known, *unread])


def listed(text: str) -> list[str]:
    """Return what a list of columns or values has between its outermost commas."""
    found, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return found


def places(text: str) -> set[int]:
    """Return the positions of a row that a query reads."""
    return {int(place) for place in re.findall(r"\brow\[(\d+)\]", text)}


class ReadRow(list[object]):
    """A row that knows which of its values were read."""

    def __init__(self) -> None:
        super().__init__([None, home().key, *[None] * 98])
        self.read = set[int]()

    def __getitem__(self, place: Any) -> Any:
        self.read.add(place)
        return super().__getitem__(place)


def test_every_store_has_the_columns_of_a_fact_that_are_read() -> None:
    row = ReadRow()
    RowReader(lambda _: MIDNIGHT, defaultdict(lambda: EdgeType.SEMANTIC), lambda _: (), lambda _: ()).edge(row)
    columns = set(range(len(listed(EDGE_COLUMNS))))
    assert row.read == columns
    cypher = files("graphmem_cypher").joinpath("fragments/edge_row.cypher").read_text("utf-8")
    *values, type_again = listed(cypher.strip()[1:-1])
    assert (set(range(len(values))), type_again.strip()) == (columns, "type(r)")


def test_every_value_of_a_fact_that_is_written_has_a_place_in_the_query() -> None:
    query = files("graphmem_cypher").joinpath("queries/write.cypher").read_text("utf-8")
    [facts] = re.findall(r"nodes\[row\[0\]\] AS s.*?\]->\(t\)", query, re.DOTALL)
    assert places(facts) == set(range(len(edge_row(edge(1, 1, 2), Times()))))
