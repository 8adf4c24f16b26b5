"""Time range that a question names, which dates episodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.text.dates import DateSpan

_SINCE, _UNTIL = re.compile(r"\b(?:since|after|from)\s+$", re.I), re.compile(r"\b(?:before|until|till)\s+$", re.I)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The time range of a question, ``[begin, until)``; None means unbounded."""

    begin: datetime | None
    until: datetime | None


def is_open(query: str, date: DateSpan) -> bool:
    """Return whether a date of a question is only the begin or the end of a time: "since May", "before May"."""
    before = query[: date.start]
    return _SINCE.search(before) is not None or _UNTIL.search(before) is not None


def covered(query: str, dates: Sequence[DateSpan], now: datetime) -> TimeRange:
    """Return the range from the first date to the last; "since May" ends now, "before May" has no begin."""
    begin, until = min(date.begin for date in dates), max(date.until for date in dates)
    if len(dates) > 1:
        return TimeRange(begin, until)
    before = query[: dates[0].start]
    if _UNTIL.search(before):
        return TimeRange(None, begin)
    if _SINCE.search(before):
        return TimeRange(begin, max(now, until))
    return TimeRange(begin, until)
