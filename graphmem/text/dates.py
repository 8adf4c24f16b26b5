"""Detection of absolute and relative English dates in text. Pure functions.

A hand-written grammar of the common forms instead of a general date parser: one regular expression over a
message takes microseconds, where `dateparser.search` takes tens of milliseconds and reads "may" and "sat" as dates.

Conventions: weeks begin on Monday; "last Friday" is the latest one before the day of the reference, "next Friday"
the first one after it; "Friday the 9th" is the latest or next 9th that is a Friday; "three weeks ago" is the calendar
week, "three months ago" the month, "three years ago" the year; seasons are those of the northern hemisphere, and "this
winter" is the one that goes on. 3/4/2023 is ignored because the order of day and month is ambiguous, and so is a date
that another one counts from ("a week from Monday").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, cast

from graphmem.errors import InvalidInput
from graphmem.text.date_patterns import (
    A_MONTH,
    ACTS,
    AHEAD,
    ANOTHER_DAY,
    ANY_DAY,
    COUNTED_FROM,
    HABIT,
    HOLIDAY,
    HOLIDAYS,
    IN_DATE,
    JOINED,
    LEADING,
    LOOKED_AT,
    MONTHS,
    NUMBERS,
    ORDINALS,
    OTHER_DAY,
    OTHER_YEAR,
    PART_OF_COUNT,
    PAST,
    PATTERN,
    PLANNED_THEN,
    POLITE,
    SEASONS,
    TO_NOW,
    WEEKDAY,
    WEEKDAYS,
    WITH_MONTH,
    YEARS,
)
from graphmem.text.years import is_number, may_end

Grain = Literal["hour", "day", "week", "weekend", "month", "season", "quarter", "year", "decade"]


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A date found in a text.

    Attributes
    ----------
    start, end
        Position in the text: ``text[start:end]``.
    text
        The matched words.
    begin, until
        The interval that it covers, ``[begin, until)``, in the time zone of the reference.
    grain
        Its precision.
    """

    start: int
    end: int
    text: str
    begin: datetime
    until: datetime
    grain: Grain


_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_HALVES = {"hour": (30, "minute"), "week": (3, "day"), "month": (2, "week"), "year": (6, "month")}
_SENTENCE_BEFORE = 200  # characters before a holiday that tell its year
_ASCII = str.maketrans("ſıİ\u212a", "siik")  # a case-insensitive pattern matches these as ASCII letters

Interval = tuple[datetime, datetime, Grain]
_Found = tuple[re.Match[str], int, Interval]
"""A match, the length of the preposition before its date, and what the date covers."""


def find_dates(text: str, reference: datetime, *, future: bool = False) -> list[DateSpan]:
    """Return the dates in an English text, in order of position.

    Parameters
    ----------
    text
        Any text.
    reference
        The aware time that relative dates refer to.
    future
        Whether a bare "in March" or "on Friday" means the next one; by default it means the latest.

    Returns
    -------
    list
        Spans that don't overlap. A leading preposition ("in March") is not part of the span, except in forms such
        as "in two weeks".

    Raises
    ------
    InvalidInput
        If the reference is naive.
    """
    if reference.utcoffset() is None:
        raise InvalidInput(f"reference {reference.isoformat()} is naive: give it a time zone")
    read: dict[str, tuple[int, Interval] | None] = {}
    found: list[_Found] = []
    for match in PATTERN.finditer(text if text.isascii() else text.translate(_ASCII)):
        words = match[0]
        if (month := _month_before(match, found, reference)) is not None:
            date = _read(match, month, True)
        elif words in read:
            date = read[words]
        else:
            date = read[words] = _read(match, reference, future)
        if date is not None and not _is_misread(match, date[0]):
            found.append((match, *date))
    spans = ((match.start() + lead, match.end(), interval) for match, lead, interval in _with_shared_years(found))
    return [DateSpan(start, end, text[start:end], *interval) for start, end, interval in spans]


def _month_before(match: re.Match[str], found: Sequence[_Found], reference: datetime) -> datetime | None:
    """Return the date with a month that the day of a month follows: "my last day is 17 April, I start on the 28th"."""
    if match.lastgroup not in ("nth", "only") or not found:
        return None
    before, _, (begin, *_) = found[-1]
    if before.lastgroup not in ("dmy", "mdy") or _SENTENCE_END.search(match.string, before.end() - 1, match.start()):
        return None
    return begin if abs(begin - reference) < timedelta(days=366) else None


def periods_to(text: str, reference: datetime) -> list[DateSpan]:
    """Return the periods that last until the reference ("the past two weeks") in an English text, by position."""
    found: list[DateSpan] = []
    for match in TO_NOW.finditer(text if text.isascii() else text.translate(_ASCII)):
        unit = match["u"].lower()
        if (begin := day_ago(match["n"], unit, reference)) is not None:
            found.append(DateSpan(*match.span(), match[0], begin, reference, cast("Grain", unit)))
    return found


def holidays(text: str, reference: datetime) -> list[DateSpan]:
    """Return the holidays in an English question, by position: "over Christmas", "on Halloween last year".

    Without a year, it is the latest one; the next one after "will" or "is going to". After another present tense ("What
    does she cook at Christmas?") it is that of any year, and left out.
    """
    found: list[DateSpan] = []
    for match in HOLIDAY.finditer(text if text.isascii() else text.translate(_ASCII)):
        start = match.start("name" if match["which"] is None else "which")
        before = text[max(0, start - _SENTENCE_BEFORE) : start]
        if COUNTED_FROM.search(before):
            continue
        try:
            days = _days_of_holiday(match, before, reference)
        except (ValueError, OverflowError):
            continue  # before the year 1 or after 9999
        found += [DateSpan(start, match.end(), text[start : match.end()], *days, "day")] if days else []
    return found


def _days_of_holiday(match: re.Match[str], before: str, reference: datetime) -> tuple[datetime, datetime] | None:
    name = re.sub(r"[^a-z ]", "", " ".join(match["name"].lower().split())).replace("xmas", "christmas")
    month, day, length = HOLIDAYS[re.sub(r"^(?:saint|st) ", "", name)]

    def of(year: int) -> tuple[datetime, datetime]:
        begin = _midnight(reference).replace(year=year, month=month, day=day)
        return begin, begin + timedelta(days=length)

    if match["year"]:
        return of(int(match["year"]))
    year, which = reference.year, (match["which"] or "").lower()
    before = POLITE.sub(" ", before)
    if match["of_year"]:
        return of(year + {"last": -1, "this": 0, "next": 1}[match["of_year"].lower()])
    if which == "this":
        return of(year)
    if which in ("next", "coming") or (not which and AHEAD.search(PLANNED_THEN.sub(" ", before))):
        return of(year) if of(year)[0] > reference else of(year + 1)
    if which:
        return of(year) if of(year)[1] <= reference else of(year - 1)
    if HABIT.search(before) and not PAST.search(before):
        return None
    return of(year) if of(year)[0] <= reference else of(year - 1)


def dates_and_periods(text: str, reference: datetime) -> list[DateSpan]:
    """Return the dates of an English question: dates, then periods that last until the reference, then holidays."""
    named = holidays(text, reference)
    dates = find_dates(text, reference)
    if named:  # "last year" is a part of "Christmas last year"
        dates = [date for date in dates if not any(n.start < date.end and date.start < n.end for n in named)]
    return [*dates, *periods_to(text, reference), *named]


def with_ranges(text: str) -> str:
    """Return a text with its ranges of years in the form that `find_dates` reads: "from 2019 to 2020"."""
    return YEARS.sub(lambda m: f"from {m['first'] or m['begin']} to {m['last'] or m['end']}", text)


def _read(match: re.Match[str], reference: datetime, future: bool) -> tuple[int, Interval] | None:
    """Return the length of the preposition before the date, and the interval that it covers; None for invalid dates."""
    try:
        interval = _READERS[match.lastgroup or ""](match, reference, future)
    except (ValueError, OverflowError):
        return None  # 31 February, the year 9999 and 8,000 years on
    lead = LEADING.match(match[0]) if match.lastgroup != "ahead" else None
    return None if interval is None else (lead.end() if lead else 0, interval)


def _with_shared_years(found: list[_Found]) -> list[_Found]:
    """Return dates with the year that is told once, after the last of joined ones: "from March to June 2019"."""
    kept: list[_Found] = []
    year_from: tuple[re.Match[str], datetime] | None = None
    for match, lead, interval in reversed(found):
        kind, shared = match.lastgroup or "", interval
        if kind == "month" or (kind in ("dmy", "mdy") and match[f"{kind}_y"] is None):
            joined = year_from and JOINED.fullmatch(match.string, match.end(), year_from[0].start())
            if year_from is not None and joined:
                before = match.string[max(0, match.start() - len("between ")) : match.start() + lead]
                is_range = joined["range"] is not None or "between" in before.lower()
                shared = _before(interval, year_from[1], is_range=is_range)
                year_from = (match, shared[0]) if shared else None
            else:
                year_from = None
        else:
            year_from = (match, interval[0]) if kind in ("dmy", "mdy", "my") else None
        if shared is not None:
            kept.append((match, lead, shared))
    return kept[::-1]


def _before(interval: Interval, last: datetime, *, is_range: bool) -> Interval | None:
    """Return a day or month in the year of a date that follows it; of a range it may be in the year before."""
    begin, _, grain = interval
    is_later = (begin.month, begin.day) > (last.month, last.day)
    if is_later and not is_range:
        return None  # "in December and January 2020"
    try:
        begin = begin.replace(year=last.year - is_later)
    except ValueError:
        return None  # 29 February of a short year
    return _day(begin) if grain == "day" else _month(begin, begin.year, begin.month)


def _is_misread(match: re.Match[str], lead: int) -> bool:
    """Return whether a match is only a part of a date that isn't read: "a year ago" of "half a year ago"."""
    text, start, kind = match.string, match.start(), match.lastgroup
    before = text[max(0, start - LOOKED_AT) : start]
    if kind in ("ago", "hence"):
        return PART_OF_COUNT.search(before + match[0][:1]) is not None
    if kind in ("mdy", "my") and match[f"{kind}_m"] in ("march", "may") and _is_verb(match, before):
        return True
    if kind in ("dmy", "mdy") and match[f"{kind}_y"] is None and OTHER_YEAR.match(text, match.end()):
        return True
    if kind == "only" and WITH_MONTH.match(text, match.end()):
        return True
    if kind == "dmy" and (other := OTHER_DAY.search(before)) is not None and not _is_month(other[1] or ""):
        return True
    if kind == "day" and (ANOTHER_DAY.match(text, match.end()) is not None or ANY_DAY.search(before) is not None):
        return True
    if kind == "year" and match["year_y"] is not None:
        word = text[start : start + lead].strip().lower()
        if is_number(text, start, match.end(), word, int(match["year_y"])):
            return True
    counted = COUNTED_FROM.search(before + text[start : start + lead])
    return counted is not None and (kind in ("day", "rel", "word") or not counted[0].rstrip().endswith("from"))


def _is_verb(match: re.Match[str], before: str) -> bool:
    """Return whether "march" or "may" is rather a verb: "may 2 people join", "we march 10 miles"."""
    kind = match.lastgroup or ""
    is_whole = kind == "mdy" and (match["mdy_y"] is not None or not match[0][-1].isdigit())  # "may 2nd", "may 2, 2020"
    if is_whole or IN_DATE.search(before) is not None:
        return False
    acts = ACTS.search(before)
    if acts is not None and (match[f"{kind}_m"] == "may" or acts[0].strip().lower() != "you"):
        return True
    return not may_end(match.string, match.end())


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _day(moment: datetime) -> Interval:
    begin = _midnight(moment)
    return begin, begin + timedelta(days=1), "day"


def _week(moment: datetime) -> Interval:
    begin = _midnight(moment) - timedelta(days=moment.weekday())
    return begin, begin + timedelta(days=7), "week"


def _weekend(moment: datetime) -> Interval:
    monday = _week(moment)[0]
    return monday + timedelta(days=5), monday + timedelta(days=7), "weekend"


def _month(like: datetime, year: int, month: int) -> Interval:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    begin = _midnight(like).replace(year=year, month=month, day=1)
    after = begin.replace(year=year + month // 12, month=month % 12 + 1)
    return begin, after, "month"


def _year(like: datetime, year: int, years: int = 1) -> Interval:
    begin = _midnight(like).replace(year=year, month=1, day=1)
    return begin, begin.replace(year=year + years), "decade" if years == 10 else "year"


def _season(like: datetime, year: int, name: str) -> Interval:
    begin = _month(like, year, SEASONS[name])[0]
    return begin, _month(like, year, SEASONS[name] + 3)[0], "season"


def _month_number(word: str) -> int:
    return next(i for i, name in enumerate(MONTHS, 1) if name.startswith(word.lower().rstrip(".")[:3]))


def _is_month(word: str) -> bool:
    return A_MONTH.fullmatch(word) is not None


def _weekday_number(word: str) -> int:
    return next(i for i, name in enumerate(WEEKDAYS) if name.startswith(word.lower()[:3]))


def _count(word: str) -> int:
    word = word.lower()
    if word.isdigit():
        return int(word)
    word = "few" if "few" in word else "couple" if "couple" in word else word
    return sum(NUMBERS[part] for part in re.split(r"[\s-]", word))  # twenty-five


def _shifted(reference: datetime, count: int, unit: str) -> Interval:
    """Return the calendar unit that lies `count` units away."""
    unit = unit.lower().rstrip("s")
    if unit in ("minute", "hour"):
        begin = reference + timedelta(**{f"{unit}s": count})
        return begin, begin + timedelta(hours=1), "hour"
    if unit == "day":
        return _day(reference + timedelta(days=count))
    if unit == "week":
        return _week(reference + timedelta(weeks=count))
    if unit == "weekend":
        return _weekend(reference + timedelta(weeks=count))
    if unit == "month":
        return _month(reference, reference.year, reference.month + count)
    return _year(reference, reference.year + count * (10 if unit == "decade" else 1))


def day_ago(count: str, unit: str, reference: datetime) -> datetime | None:
    """Return midnight of the day `count` units before the reference: for "two", "year" the same day two years ago.

    Parameters
    ----------
    count, unit
        A number as digits or as words below a hundred; "day", "week", "month", "year" or "decade".
    reference
        The time to count back from.

    Returns
    -------
    datetime or None
        None before the year 1. A day missing in its month becomes the last day of the month.
    """
    number = _count(count)
    try:
        if unit in ("day", "week"):
            return _midnight(reference) - timedelta(days=number * (7 if unit == "week" else 1))
        back = number * {"month": 1, "year": 12, "decade": 120}[unit]
        begin, after, _ = _month(reference, reference.year, reference.month - back)
    except (ValueError, OverflowError):
        return None
    return min(begin + timedelta(days=reference.day - 1), after - timedelta(days=1))


def _absolute(match: re.Match[str], reference: datetime, future: bool, kind: str) -> Interval:
    month, day, year = (match[f"{kind}_{part}"] for part in "mdy")
    number = int(month) if month.isdigit() else _month_number(month)
    day = str(ORDINALS.index(day.lower()) + 1) if day.lower() in ORDINALS else day
    full = _bare_year(reference, number, int(day), future) if year is None else _full_year(year, reference)
    return _day(_midnight(reference).replace(year=full, month=number, day=int(day)))


def _bare_year(reference: datetime, month: int, day: int, future: bool) -> int:
    here, there = (reference.month, reference.day), (month, day)
    if future:
        return reference.year + (there < here)
    return reference.year - (there > here)


def _iso(match: re.Match[str], reference: datetime, future: bool) -> Interval | None:
    if match["iso_d"] is None and match["iso_s"] == "/":
        return None  # 2019/10 may be 2019 to 2010
    if match["iso_d"] is None:
        return _month(reference, int(match["iso_y"]), int(match["iso_m"]))
    return _absolute(match, reference, future, "iso")


def _relative(match: re.Match[str], reference: datetime, _future: bool) -> Interval | None:
    which, unit = match["rel_w"].lower().split()[-1], match["rel_u"].lower()
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1}[which]
    if match["rel_w"].lower().startswith("this "):
        step = 1 if which == "coming" else -1
    if unit == "night":
        return _day(reference + timedelta(days=-1)) if step == -1 else None
    if unit == "week":
        return _week(reference + timedelta(weeks=step))
    if unit == "weekend":
        # a Sunday belongs to the current weekend: "last weekend" is always the one before it
        return _weekend(reference + timedelta(weeks=0 if which == "coming" else step))
    if unit in ("month", "year"):
        return _shifted(reference, step, unit)
    if unit == "decade":
        return _year(reference, reference.year // 10 * 10 + 10 * step, 10)
    if unit in SEASONS:
        return _relative_season(reference, step, unit)
    if re.fullmatch(WEEKDAY, unit):
        return _relative_weekday(reference, step, unit)
    return _relative_month(reference, step, unit)


def _relative_season(reference: datetime, step: int, unit: str) -> Interval:
    year = reference.year
    if step == 0:
        last = _season(reference, year - 1, unit)  # a winter goes on in the next year
        return last if reference < last[1] else _season(reference, year, unit)
    if step < 0:
        return max(s for y in (year - 2, year - 1, year) if (s := _season(reference, y, unit))[1] <= reference)
    return min(s for y in (year, year + 1) if (s := _season(reference, y, unit))[0] > reference)


def _relative_weekday(reference: datetime, step: int, unit: str) -> Interval:
    ahead = _weekday_number(unit) - reference.weekday()
    if step < 0:
        return _day(reference + timedelta(days=(ahead % 7 or 7) - 7 if ahead % 7 else -7))
    return _day(reference + timedelta(days=ahead if step == 0 else ahead % 7 or 7))


def _relative_month(reference: datetime, step: int, unit: str) -> Interval:
    month = _month_number(unit)
    year = reference.year
    if step < 0:
        year -= month >= reference.month
    elif step > 0:
        year += month <= reference.month
    return _month(reference, year, month)


def _day_of_month(match: re.Match[str], reference: datetime, future: bool) -> Interval | None:
    """Return the latest or next 9th; with a weekday the latest or next one that is such a day, within a year."""
    kind = match.lastgroup or ""
    day = int(match[f"{kind}_d"])
    weekday = _weekday_number(match["nth_w"]) if kind == "nth" else None
    for months in range(13):
        first = _month(reference, reference.year, reference.month + (months if future else -months))[0]
        date = first + timedelta(days=day - 1)
        fits = date >= _midnight(reference) if future else date <= reference
        if fits and date.month == first.month and weekday in (None, date.weekday()):
            return _day(date)
    return None


def _day_of_week(match: re.Match[str], reference: datetime, _future: bool) -> Interval:
    """Return the day of "Monday last week" or "last week on Monday"."""
    kind = match.lastgroup or ""
    step = {"last": -1, "this": 0, "next": 1}[match[f"{kind}_w"].lower()]
    monday = _week(reference + timedelta(weeks=step))[0]
    return _day(monday + timedelta(days=_weekday_number(match[f"{kind}_d"])))


def _bare_weekday(match: re.Match[str], reference: datetime, future: bool) -> Interval:
    ahead = (_weekday_number(match["day_w"] or match["day_s"]) - reference.weekday()) % 7
    return _day(reference + timedelta(days=ahead if future or not ahead else ahead - 7))


def _bare_month(match: re.Match[str], reference: datetime, future: bool) -> Interval:
    month = _month_number(match["month_m"])
    return _month(reference, _bare_year(reference, month, reference.day, future), month)


def _numbers(match: re.Match[str], reference: datetime, _future: bool) -> Interval | None:
    """Return the day of 25.12.2024, 12/25/2024 or 5/5/2024; None if either of two numbers may be the month."""
    first, second = int(match["dots_a"]), int(match["dots_b"])
    if (first > 12) == (second > 12) and first != second:
        return None
    day, month = (first, second) if first > 12 else (second, first)
    return _day(_midnight(reference).replace(year=int(match["dots_y"]), month=month, day=day))


def _half(match: re.Match[str], reference: datetime, _future: bool) -> Interval | None:
    """Return the time half an hour, a week, a month or a year ago; None for other units."""
    half = _HALVES.get(match["half_u"].lower().rstrip("s"))
    return None if half is None else _shifted(reference, -half[0], half[1])


def _quarter(match: re.Match[str], reference: datetime, _future: bool) -> Interval:
    named = match["quarter_n"]
    number = int(match["quarter_q"]) if named is None else ORDINALS.index(named.lower()) + 1
    begin, year = 3 * number - 2, int(match["quarter_y"])
    return _month(reference, year, begin)[0], _month(reference, year, begin + 3)[0], "quarter"


def _named_year(match: re.Match[str], reference: datetime, _future: bool) -> Interval:
    """Return a year; '98 is the latest one that isn't in the future."""
    return _year(reference, int(match["year_y"] or _latest_year(match["year_s"], reference)))


def _century(match: re.Match[str], reference: datetime, _future: bool) -> Interval:
    return _year(reference, int(match["century_y"] or _latest_year(match["century_s"], reference)), 10)


def _full_year(year: str, reference: datetime) -> int:
    """Return 2019 of "2019" or "'19"; with a month, a short year may be one of the next three."""
    if year.isdigit():
        return int(year)
    return _latest_year(year[1:], reference.replace(year=min(reference.year + 3, 9999), day=1))


def _latest_year(digits: str, reference: datetime) -> int:
    """Return the latest year with these last two digits that isn't in the future."""
    year = reference.year // 100 * 100 + int(digits)
    return year if year <= reference.year else year - 100


def _named_day(match: re.Match[str], reference: datetime, _future: bool) -> Interval:
    step = {"yesterday": -1, "tomorrow": 1}.get(match["word"].lower(), 0)
    return _day(reference + timedelta(days=step))


_READERS: dict[str, Callable[[re.Match[str], datetime, bool], Interval | None]] = {
    "iso": _iso,
    "dmy": lambda m, r, f: _absolute(m, r, f, "dmy"),
    "mdy": lambda m, r, f: _absolute(m, r, f, "mdy"),
    "my": lambda m, r, _: _month(r, _full_year(m["my_y"], r), _month_number(m["my_m"])),
    "ago": lambda m, r, _: _shifted(r, -_count(m["ago_n"]), m["ago_u"]),
    "ahead": lambda m, r, _: _shifted(r, _count(m["ahead_n"]), m["ahead_u"]),
    "hence": lambda m, r, _: _shifted(r, _count(m["hence_n"]), m["hence_u"]),
    "rel": _relative,
    "dw": _day_of_week,
    "wd": _day_of_week,
    "part": lambda _m, r, _f: _day(r),
    "two": lambda m, r, _: _day(r + timedelta(days=-2 if m["two_w"].lower().startswith("before") else 2)),
    "word": _named_day,
    "century": _century,
    "year": _named_year,
    "of": lambda m, r, _: _season(r, int(m["of_y"]), m["of_s"].lower()),
    "quarter": _quarter,
    "dots": _numbers,
    "half": _half,
    "month": _bare_month,
    "day": _bare_weekday,
    "nth": _day_of_month,
    "only": _day_of_month,
}


def written(begin: datetime, grain: Grain) -> str:
    """Return a date in words that need no context: "on 7 May 2023", "in May 2023", "in the week of 1 May 2023"."""
    day = f"{begin.day} {MONTHS[begin.month - 1].title()} {begin.year}"
    if grain in ("hour", "day"):
        return f"on {day}"
    if grain == "week":
        return f"in the week of {day}"
    if grain == "weekend":
        return f"on the weekend of {day}"
    if grain == "month":
        return f"in {MONTHS[begin.month - 1].title()} {begin.year}"
    if grain == "season":
        name = {3: "spring", 6: "summer", 9: "autumn", 12: "winter"}[begin.month]
        return f"in {name} {begin.year}"
    if grain == "quarter":
        return f"in Q{(begin.month + 2) // 3} {begin.year}"
    return f"in {begin.year}" if grain == "year" else f"in the {begin.year}s"
