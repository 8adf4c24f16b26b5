"""Stored values that were edited by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem_neo4j.rows import moment

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00", "2026-01-01T00:00:00.000000000"])
def test_a_time_without_a_time_zone_is_one_of_utc(text: str) -> None:
    assert (moment(text), moment(text).tzinfo) == (MIDNIGHT, UTC)


def test_a_time_of_a_named_time_zone_is_read_by_its_offset() -> None:
    assert moment("2026-01-01T01:00+01:00[Europe/Oslo]").isoformat() == MIDNIGHT.isoformat()
