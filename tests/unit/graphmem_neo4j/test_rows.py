"""Stored values that were edited by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from graphmem.errors import GraphMemError
from graphmem.testing.rows import entity_id, home
from graphmem_neo4j.rows import Row, community_of, entity_of, episode_of, moment

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
