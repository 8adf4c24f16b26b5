"""Periods in words: the first and the last day, month or year on which something held."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from graphmem.models.base import TICK

_DAY, _MONTH, _YEAR = 10, 7, 4  # characters of a date in ISO form


def known_beginning(
    begin: datetime, end: datetime | None, told_at: datetime | None, *, assumed: bool
) -> datetime | None:
    """Return the beginning of a fact, None if it was only assumed to be the last day of what was told as over."""
    is_assumed = assumed and end is not None and end <= (told_at or end) and end - begin <= timedelta(days=1)
    return None if is_assumed and begin != end else begin


def first_and_last(
    begin: datetime | None,
    end: datetime | None,
    *,
    is_event: bool = False,
    by_month: bool = False,
    assumed: bool = False,
) -> tuple[str, str]:
    """Return the first and the last day of a period in ISO form, the months or years if it covers whole ones.

    Parameters
    ----------
    begin
        Its beginning, "" in the result if None.
    end
        The moment after it, as `valid_to` is, "" in the result if None.
    is_event
        Whether it is that of an event, whose unit is a day: 24 hours from 10:20 on are the day on which they began.
    by_month
        Whether the day is left out of a beginning if there is no end or the beginning is `assumed`.
    assumed
        Whether the beginning wasn't told.
    """
    first = _MONTH if by_month and (end is None or assumed) else _DAY
    last = _DAY
    ends = [moment for moment in (begin, end) if moment is not None]
    if end is not None and all(moment.day == 1 and moment.time() == time.min for moment in ends):
        first = last = _YEAR if all(moment.month == 1 for moment in ends) else _MONTH
    if end is not None and end != begin:
        is_of_a_day = is_event and begin is not None and end - begin == timedelta(days=1)
        end = begin if is_of_a_day else end - TICK
    return _date(begin, first), _date(end, last)


def in_words(first: str, last: str, since: str = "since") -> str:
    """Return a period in words: "since 2019, until 2021", "until 2021-03", "in 2020", "on 2020-05-01".

    `since` is the word before the first day: "from" before one that lies ahead.
    """
    if first and first == last:
        return f"{'on' if len(first) == _DAY else 'in'} {first}"
    return ", ".join(f"{word} {date}" for word, date in ((since, first), ("until", last)) if date)


def _date(moment: datetime | None, length: int) -> str:
    return "" if moment is None else moment.date().isoformat()[:length]
