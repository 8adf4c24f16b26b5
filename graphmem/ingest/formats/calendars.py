"""Events, to-dos and journal entries of calendars in iCalendar, by the library `icalendar`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, cast
from zoneinfo import ZoneInfo

from graphmem.errors import InvalidInput, MissingExtra
from graphmem.ingest.formats.source import MAX_RECORD_BYTES, Refused, Report, Source, shown_day
from graphmem.ingest.records import reason_of
from graphmem.inputs import Document
from graphmem.models import Scalar

Component = Any
"""A component of `icalendar`, whose properties have a type for each kind."""

_KINDS = {"VEVENT": "", "VTODO": "To do: ", "VJOURNAL": ""}
_UNITS = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year", "HOURLY": "hour"}
_WEEKDAYS = {
    "MO": "Monday",
    "TU": "Tuesday",
    "WE": "Wednesday",
    "TH": "Thursday",
    "FR": "Friday",
    "SA": "Saturday",
    "SU": "Sunday",
}
_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last", -2: "second to last"}


def events(source: Source, refused: Report) -> Iterator[Document]:
    """Yield the events, to-dos and journal entries of a calendar, each dated by its start; a recurring one once."""
    try:
        from icalendar import Calendar
    except ImportError:
        refused(Refused(source.name, 1, str(MissingExtra("a calendar", "calendar"))))
        return
    data = source.stream.read(MAX_RECORD_BYTES + 1)
    try:
        if len(data) > MAX_RECORD_BYTES:
            raise InvalidInput(f"a calendar longer than {MAX_RECORD_BYTES >> 20} MiB")
        parse: Any = Calendar.from_ical
        calendars: list[Component] = parse(data, multiple=True)
    except ValueError as error:
        refused(Refused(source.name, 1, f"not a calendar: {error}"))
        return
    found = False
    for calendar in calendars:
        zone = source.zone or _zone_of(calendar)
        for number, each in enumerate((one for one in calendar.walk() if one.name in _KINDS), 1):
            found = True
            try:
                yield _document(each, source, zone)
            except InvalidInput as error:
                title = _text(each, "SUMMARY") or _text(each, "UID")
                refused(Refused(source.name, number, f"{title:.60}: {reason_of(error)}"))
    if not found:
        refused(Refused(source.name, 1, "a calendar without events"))


def _zone_of(calendar: Component) -> tzinfo | None:
    """Return the zone that a calendar states for its times without one."""
    try:
        return ZoneInfo(_text(calendar, "X-WR-TIMEZONE"))
    except (KeyError, ValueError, OSError):
        return None


def _property(component: Component, name: str) -> Any:
    """Return the first value of a property; None if there is none or it can't be read."""
    return next(iter(_values(component, name)), None)


def _values(component: Component, name: str) -> list[Any]:
    """Return the values of a property, which the library gives as a list only if there are several."""
    given: Any = component.get(name)
    return cast("list[Any]", given) if isinstance(given, list) else [] if given is None else [given]


def _text(component: Component, name: str) -> str:
    value = _property(component, name)
    return "" if value is None else str(value).strip()


def _moment(component: Component, name: str, zone: tzinfo | None) -> datetime | date | None:
    """Return a day, or a time in its zone; one in UTC in the zone of the calendar.

    Raises
    ------
    InvalidInput
        If it is neither, or has no zone.
    """
    value = _property(component, name)
    if value is None:
        return None
    at: object = getattr(value, "dt", None) if not _is_broken(component, name) else None
    if not isinstance(at, date):
        raise InvalidInput(f"{name}: {value!s:.40} is no date or time")
    if not isinstance(at, datetime):
        return at
    if at.tzinfo is None and zone is None:
        raise InvalidInput(f"{name}: {at.isoformat()} has no time zone; pass --timezone Europe/Berlin")
    if at.tzinfo is None:
        return at.replace(tzinfo=zone)
    return at.astimezone(zone) if zone is not None and at.utcoffset() == timedelta(0) else at


def _is_broken(component: Component, name: str) -> bool:
    return any(broken == name for broken, _ in component.errors)


def _document(component: Component, source: Source, zone: tzinfo | None) -> Document:
    start = _moment(component, "DTSTART", zone)
    end = _moment(component, "DTEND", zone)
    due = _moment(component, "DUE", zone)
    length = getattr(_property(component, "DURATION"), "dt", None)
    if end is None and isinstance(start, datetime) and isinstance(length, timedelta):
        end = start + length
    title, place = _text(component, "SUMMARY") or "Event", _text(component, "LOCATION")
    status = _text(component, "STATUS").lower()
    organizer = _people(component, "ORGANIZER")
    coming = _people(component, "ATTENDEE", declined=False)
    declined = _people(component, "ATTENDEE", declined=True)
    others = list(dict.fromkeys((*organizer, *coming)))
    parts = [
        title,
        "" if start is None else _period(start, end),
        f"due {_period(due, None)}" if due is not None else "",
        " ".join(place.split()),
        f"with {_listed(others)}" if others else "",
    ]
    sentences = [f"{_KINDS[component.name or '']}{', '.join(filter(None, parts))}."]
    sentences += ["This is cancelled."] if status == "cancelled" else []
    sentences += ["This is done."] if status == "completed" else []
    sentences += [f"Declined by {_listed(declined)}."] if declined else []
    rule = _property(component, "RRULE")
    sentences += [f"Repeats {_rule(cast('Mapping[str, Sequence[Any]]', rule), zone)}."] if rule is not None else []
    note, number = _text(component, "DESCRIPTION"), _text(component, "UID")
    text = "\n\n".join(filter(None, (" ".join(sentences), note)))
    instance = _moment(component, "RECURRENCE-ID", zone)
    metadata: dict[str, Scalar] = {
        "uid": number,
        "location": place,
        "organizer": ", ".join(organizer),
        "attendees": ", ".join((*coming, *declined)),
        "status": status,
        "categories": ", ".join(_categories(component)),
        "recurrence": "" if rule is None else rule.to_ical().decode(),
        "url": _text(component, "URL"),
        "file": source.name,
    }
    made = (_moment(component, name, zone) for name in ("CREATED", "DTSTAMP"))
    at = start or due or next(filter(None, made), None)
    return Document(
        text=text,
        title=title,
        occurred_at=source.dated() if at is None else _instant(at, zone),
        external_id=f"{number}:{instance.isoformat()}" if number and instance else number or source.id_from(text),
        metadata={key: value for key, value in metadata.items() if value},
    )


def _instant(at: datetime | date, zone: tzinfo | None) -> datetime:
    """Return a time, of a day its beginning."""
    return at if isinstance(at, datetime) else datetime(at.year, at.month, at.day, tzinfo=zone or UTC)


def _people(component: Component, name: str, *, declined: bool = False) -> list[str]:
    """Return the names of people, or else their addresses; of attendees those that declined, or the others."""
    values = _values(component, name)
    chosen = [each for each in values if (str(each.params.get("PARTSTAT")).upper() == "DECLINED") is declined]
    names = (str(each.params.get("CN") or "").strip("\"' ") or str(each) for each in chosen)
    return list(dict.fromkeys(name.removeprefix("mailto:").removeprefix("MAILTO:") for name in names))


def _categories(component: Component) -> list[str]:
    values = _values(component, "CATEGORIES")
    return [str(category) for value in values for category in getattr(value, "cats", [value])]


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _period(start: datetime | date, end: datetime | date | None) -> str:
    """Return days or times as they are said, such as "3 December 2026 14:00–15:00"; the end of days is excluded."""
    if not isinstance(start, datetime):
        last = end - timedelta(days=1) if isinstance(end, date) and not isinstance(end, datetime) else start
        return shown_day(start) + (f" to {shown_day(last)}" if last > start else "")
    at = f"{shown_day(start)} {start:%H:%M}"
    if isinstance(end, datetime) and end > start:
        at += f"–{end:%H:%M}" if end.date() == start.date() else f" to {shown_day(end)} {end:%H:%M}"
    return f"{at} UTC" if start.tzname() == "UTC" else at


def _rule(rule: Mapping[str, Sequence[Any]], zone: tzinfo | None) -> str:
    """Return a rule of recurrence in words, such as "every 2 weeks on Monday until 31 December 2026"."""
    unit = _UNITS.get(str(next(iter(rule.get("FREQ", ())), "")), "time")
    interval = next(iter(rule.get("INTERVAL", ())), 1)
    words = [f"every {interval} {unit}s" if interval != 1 else f"every {unit}"]
    days = [_weekday(str(day)) for day in rule.get("BYDAY", ())] + [f"day {day}" for day in rule.get("BYMONTHDAY", ())]
    words += [f"on {_listed(days)}"] if days else []
    until, count = next(iter(rule.get("UNTIL", ())), None), next(iter(rule.get("COUNT", ())), None)
    if isinstance(until, datetime) and until.tzinfo is not None and zone is not None:
        until = until.astimezone(zone)
    words += [f"until {shown_day(until)}"] if isinstance(until, date) else []
    words += [f"{count} times"] if count is not None else []
    return " ".join(words)


def _weekday(code: str) -> str:
    """Return the name of a weekday such as MO, or of one such as 1MO or -1FR of a month."""
    name, place = _WEEKDAYS.get(code[-2:], code), code[:-2]
    return f"the {_ORDINALS.get(int(place), place)} {name}" if place.lstrip("+-").isdigit() else name
