"""Periods in words: the last day, month or year on which something held."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.text.periods import first_and_last, in_words, known_beginning


def at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        ("2026-01-05", "2026-03-02", "since 2026-01-05, until 2026-03-01"),
        ("2026-01-05", "2026-03-02T09:00", "since 2026-01-05, until 2026-03-02"),
        ("2018-05-03", "2020-01-01", "since 2018-05-03, until 2019-12-31"),
        ("2018-05-01", "2020-01-01", "since 2018-05, until 2019-12"),
        ("2018-01-01", "2020-01-01", "since 2018, until 2019"),
        ("2019-01-01", "2020-01-01", "in 2019"),
        ("2020-02-01", "2020-03-01", "in 2020-02"),
        ("2020-02-29", "2020-03-01", "on 2020-02-29"),
        ("2020-02-29T10:20", "2020-03-01T10:20", "since 2020-02-29, until 2020-03-01"),
        (None, "2020-01-01", "until 2019"),
        (None, "2025-04-01", "until 2025-03"),
        (None, "2025-04-02", "until 2025-04-01"),
        ("2020-01-01", None, "since 2020-01-01"),
    ],
)
def test_a_period_ends_with_what_it_includes(begin: str | None, end: str | None, words: str) -> None:
    assert in_words(*first_and_last(at(begin), at(end))) == words


@pytest.mark.parametrize(
    ("end", "words"),
    [("2020-03-01T10:20", "on 2020-02-29"), ("2020-03-01T10:21", "since 2020-02-29, until 2020-03-01")],
)
def test_an_event_that_began_at_a_time_of_day_is_of_one_day(end: str, words: str) -> None:
    assert in_words(*first_and_last(at("2020-02-29T10:20"), at(end), is_event=True)) == words


@pytest.mark.parametrize(
    ("begin", "end", "assumed", "shown"),
    [
        ("2018-05-03", None, False, ("2018-05", "")),
        ("2018-05-03", "2020-03-15", False, ("2018-05-03", "2020-03-14")),
        ("2018-05-03", "2018-05-09", True, ("2018-05", "2018-05-08")),
        ("2018-05-01", "2018-08-01", False, ("2018-05", "2018-07")),
    ],
)
def test_a_period_by_months_has_its_days_if_it_ended(
    begin: str, end: str | None, assumed: bool, shown: tuple[str, str]
) -> None:
    assert first_and_last(at(begin), at(end), by_month=True, assumed=assumed) == shown


@pytest.mark.parametrize(
    ("begin", "told", "assumed", "is_known"),
    [
        ("2019-12-31", "2026-11-01", True, False),
        ("2019-12-31", "2026-11-01", False, True),
        ("2019-06-01", "2026-11-01", True, True),
        ("2019-12-31", "2019-12-31", True, True),
    ],
)
def test_an_assumed_last_day_is_no_beginning(begin: str, told: str, assumed: bool, is_known: bool) -> None:
    since = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    assert known_beginning(since, at("2020-01-01"), at(told), assumed=assumed) == (since if is_known else None)
