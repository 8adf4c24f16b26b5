"""Mapping of file records to turns, documents and triples: field names, times, generated ids. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.inputs import TURN_NAMES, Document, Triple, Turn, with_last_day
from graphmem.messages import digest, read_content, unfold
from graphmem.models import EdgeType, Scalar
from graphmem.models.base import first_day, no_time
from graphmem.models.metadata import ATTACHMENTS, TOOL_CALL_ID, TOOL_CALLS, TOOL_STATUS
from graphmem.text.normalize import canonical, relation_name, require_name

TURN_FIELDS = tuple(TURN_NAMES)
TIME_NAMES = TURN_NAMES["occurred_at"]
_TRIPLE_NAMES: Mapping[str, tuple[str, ...]] = {
    "subject": ("subject", "s", "head"),
    "relation": ("relation", "predicate", "p"),
    "object": ("object", "o", "tail"),
    **{name: (name,) for name in ("subject_type", "object_type", "edge_type", "fact", "confidence")},
    **{name: (name,) for name in ("valid_from", "valid_to", "source")},
}
_READ_LISTS = frozenset({*TURN_NAMES["text"], ATTACHMENTS, TOOL_CALLS, "invalid_tool_calls"})
"""Fields whose lists are parts of the message itself."""
_IDENTITY = ("speaker", "role", "title", "text")
_PERSON = ("name", "display_name", "displayName", "username", "login")
_TIMES = ("occurred_at", "valid_from", "valid_to")
_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:\s?[AaPp][Mm])?")
_COUNT = re.compile(r"(\d{10}|\d{13})(?:\.\d{1,9})?")
_MAIL_TIME = re.compile(r"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d(?::\d\d)? (?:[+-]\d{4}|GMT|UTC?)")
_WRITTEN = re.compile(r"(.{6,20}?)(?:,?\s(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s?([AaPp][Mm]))?)?")
_NUMERIC_DAY = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?!\d)")
_DATES_OF_FACTS = ("valid_from", "valid_to")  # a day of a fact is that of UTC, as extractors state it


def is_triple_header(fields: Sequence[str]) -> bool:
    """Return whether these column names are those of triples."""
    names = {name.strip().lower() for name in fields}
    return all(names.intersection(_TRIPLE_NAMES[part]) for part in ("subject", "relation", "object"))


def is_turn_header(fields: Sequence[str]) -> bool:
    """Return whether fields or columns of these names can be a turn."""
    names = {name.strip().lower() for name in fields}
    return bool(names.intersection((*TURN_NAMES["text"], "messages", "tool_calls", "data", "kwargs")))


def column_names(columns: str, known: Collection[str]) -> list[str]:
    """Return the columns of a field in lower case: one of the known ones, or several with commas between them."""
    columns = columns.strip().lower()
    return [columns] if columns in known else [name.strip() for name in columns.split(",")]


def renamed(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return a record whose columns (field → its column) have the names of the fields that they hold.

    If a field has several columns, its value has one line per column ("column: value"). These columns also stay in
    the record, so that filters can use them.
    """
    keys = {key.strip().lower(): key for key in record}
    moved: set[str] = set()
    held: dict[str, Any] = {}
    for field, given in columns.items():
        names = column_names(given, keys)
        values = {name: record[keys[name]] for name in names if name in keys}
        if len(names) == 1:
            moved.update(keys[name] for name in values)
            held.update(zip([field], values.values(), strict=False))
        elif lines := [f"{name}: {one}" for name, one in values.items() if isinstance(one, (str, int, float))]:
            held[field] = "\n".join(lines)
    return {key: value for key, value in record.items() if key not in moved} | held


def other_fields(names: Iterable[str]) -> list[str]:
    """Return the names that are of no field of a turn."""
    known = {"metadata", *_READ_LISTS, *(name for names in TURN_NAMES.values() for name in names)}
    return [name for name in names if name not in known]


def is_three_texts(value: object) -> bool:
    """Return whether a JSON value is a triple written as a list."""
    if not isinstance(value, list):
        return False
    parts = cast("list[object]", value)
    return len(parts) == 3 and all(isinstance(part, str) for part in parts)


def reason_of(error: InvalidInput) -> str:
    """Return the message of an error without class names: "Turn.occurred_at: …" becomes "occurred_at: …"."""
    return re.sub(r"\b(?:Turn|Document|Triple)\.(?=\w+: )", "", str(error))


def thread_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a record and, as messages of its session, the turns in its lists (comments, replies), in reading order."""
    names = (*TURN_NAMES["session_id"], "id", *TURN_NAMES["external_id"])
    session = next((record[name] for name in names if isinstance(record.get(name), (str, int))), None)
    found: list[dict[str, Any]] = []
    waiting = [record]
    while waiting:
        one = waiting.pop()
        lists = {key: item for key, item in one.items() if key not in _READ_LISTS and _holds_turns(item)}
        if lists:
            session = session or _own_digest(record)
            named = {} if any(name in one for name in TURN_NAMES["session_id"]) else {"session_id": session}
            one = {key: item for key, item in one.items() if key not in lists} | named
        found.append(one)
        parts = [part for item in lists.values() for part in item]
        waiting += [{**part, "session_id": session} if isinstance(part, dict) else {} for part in reversed(parts)]
    return found


def _own_digest(record: Mapping[str, Any]) -> str:
    """Return a digest of what a record itself says, the name of a session that has no other."""
    return digest(*(record.get(name) for field in _IDENTITY for name in TURN_NAMES[field]))


def _holds_turns(value: object) -> bool:
    """Return whether a list has objects with a text and with an author, a role or a time."""
    parts = cast("list[object]", value) if isinstance(value, list) else ()
    return any(
        any(part.get(name) for name in TURN_NAMES["text"])
        and any(part.get(name) for field in ("speaker", "role", "occurred_at") for name in TURN_NAMES[field])
        for part in (cast("dict[str, Any]", each) for each in parts if isinstance(each, dict))
    )


def _pick(data: dict[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Remove the known fields from `data` and return them; the first of the names of a field with a value counts."""
    fields: dict[str, Any] = {}
    for name, others in names.items():
        for key in others:
            if data.get(key) not in (None, ""):
                fields[name] = data.pop(key)
                break
    return fields


def _scalars(data: Mapping[str, Any], left_out: set[str]) -> dict[str, Scalar]:
    """Return the fields with a single value; add the names of the other ones to `left_out`."""
    found: dict[str, Scalar] = {
        str(key): value for key, value in data.items() if isinstance(value, (str, int, float, bool))
    }
    left_out.update(str(key) for key, value in data.items() if value and key not in found)
    return found


def to_turn(
    value: Mapping[str, Any],
    zone: tzinfo | None,
    name: str,
    repeats: Counter[str],
    left_out: set[str],
    order: str | None = None,
    *,
    in_table: bool = False,
) -> Turn | Document:
    """Return a turn, or a document if the record has a title, or is a row of a table that nobody says.

    Parameters
    ----------
    value
        The fields, under any of their known names.
    zone
        Time zone of a time without one.
    name, repeats
        File, and how often it had each digest so far: for the generated id of a turn without one.
    left_out
        Gets the names of nested fields, which aren't stored.
    order
        Of day and month in a time, as in `read_time`.
    in_table
        Whether the record is a row of a table; one that names no speaker, no role and no session is a document.

    Raises
    ------
    InvalidInput
        If the text is missing or a field is invalid; the message names the field.
    """
    data = unfold(value)
    metadata: Any = data.pop("metadata", None) or {}
    if not isinstance(metadata, dict):
        raise InvalidInput("metadata: expected an object")
    fields = _pick(data, TURN_NAMES)
    content = read_content(data, fields.get("text"))
    if not content["text"].strip() and not any(content[name] for name in (ATTACHMENTS, TOOL_CALLS, TOOL_CALL_ID)):
        raise InvalidInput("text: missing or empty")
    if data.get("status") == "error" and content[TOOL_CALL_ID]:
        data[TOOL_STATUS] = data.pop("status")
    if isinstance(fields.get("speaker"), dict):
        fields["speaker"] = next((one for key in _PERSON if (one := fields["speaker"].get(key))), None)
        left_out.update(["speaker"] if fields["speaker"] is None else ())
    for key in ("session_id", "external_id", "speaker"):
        if isinstance(fields.get(key), int):
            fields[key] = str(fields[key])
    day, clock = fields.get("occurred_at"), data.get("time")
    if isinstance(day, str) and ":" not in day and isinstance(clock, str) and _CLOCK.fullmatch(clock.strip()):
        fields["occurred_at"] = f"{day.strip()} {data.pop('time').strip()}"
    fields |= {**content, "metadata": {**_scalars(data, left_out), **metadata}}
    _set_times(fields, zone, order)
    if "external_id" not in fields:
        session, at = fields.get("session_id"), fields.get("occurred_at")
        if session in (str(data.get("id")), _own_digest(value)):
            session = None  # named by the record itself, once it has comments
        key = digest(session, *(fields.get(key) for key in _IDENTITY), at and at.astimezone(UTC))
        if data.get("id") not in (None, ""):
            key = f"{data['id']}:{key}"  # a bare `id` is often a running number that other files use as well
        else:
            key = digest(
                key, *map(content.get, (TOOL_CALLS, TOOL_CALL_ID, ATTACHMENTS)), sorted(fields["metadata"].items())
            )
            repeats[key] += 1
            key = key if repeats[key] == 1 else f"{key}:{repeats[key]}"
        fields["external_id"] = f"{name}:{key}"
    said_by = ("session_id", "speaker", "role")
    if "title" not in fields and (not in_table or any(map(fields.get, said_by))):
        return Turn(**fields)
    for key in said_by:
        if key in fields:
            fields["metadata"][key] = fields.pop(key)
    for key in (TOOL_CALLS, TOOL_CALL_ID):
        del fields[key]
    return Document(**fields)


def to_triple(value: object, zone: tzinfo | None, short_names: Collection[str], left_out: set[str]) -> Triple:
    """Return a triple from an object with its fields, under any of their known names, or a list of three strings.

    Parameters
    ----------
    value
        The object or list.
    zone
        Time zone of times without one.
    short_names
        Canonical names that may be shorter than three characters.
    left_out
        As in `to_turn`.

    Raises
    ------
    InvalidInput
        If a part is missing or invalid; the message names the field.
    """
    if isinstance(value, list):
        if not is_three_texts(cast("object", value)):
            raise InvalidInput("expected [subject, relation, object], three strings")
        value = dict(zip(("subject", "relation", "object"), cast("list[str]", value), strict=True))
    if not isinstance(value, dict):
        raise InvalidInput("expected an object with subject, relation and object, or a list of the three")
    data = {**cast("dict[str, Any]", value)}
    metadata: Any = data.pop("metadata", None) or {}
    if not isinstance(metadata, dict):
        raise InvalidInput("metadata: expected an object")
    fields = _pick(data, _TRIPLE_NAMES)
    for name in ("subject", "relation", "object"):
        if not str(fields.get(name, "")).strip():
            raise InvalidInput(f"{name}: missing or empty")
    kinds = [kind.value for kind in EdgeType]
    if fields.get("edge_type", kinds[0]) not in kinds:
        raise InvalidInput(f"edge_type: {fields['edge_type']!r} is not one of {', '.join(kinds)}")
    fields = with_last_day(fields)
    _set_times(fields, zone)
    triple = Triple(**fields, metadata={**_scalars(data, left_out), **metadata})
    _check(triple, short_names)
    return triple


def _check(triple: Triple, short_names: Collection[str]) -> None:
    """Raise the errors that the memory would raise later, here where the line is known."""
    _, subject = require_name(triple.subject, short_names)
    target = canonical(triple.object)
    if not target.isdecimal():  # a number may be short
        require_name(triple.object, short_names)
    relation_name(triple.relation)
    if subject == target and triple.subject_type == triple.object_type:
        raise InvalidInput(f"object: {triple.object!r:.80} is the same as the subject")
    triple.require_period()


def _set_times(fields: dict[str, Any], zone: tzinfo | None, order: str | None = None) -> None:
    for name in _TIMES:
        if name in fields:
            value, of_fact = fields[name], name in _DATES_OF_FACTS and isinstance(fields[name], str)
            if of_fact:
                value = first_day(value.strip())
            fields[name] = read_time(name, value, UTC if of_fact and len(value) == 10 else zone, order)


class AmbiguousDate(InvalidInput):
    """A date whose day and month can be read either way."""


def read_time(name: str, value: object, zone: tzinfo | None, order: str | None = None) -> datetime:
    """Parse a time: ISO 8601, seconds or milliseconds since 1970, RFC 2822, 14.03.2026 17:30, or April 7, 2026.

    A bare date is midnight in `zone`, or in UTC if that is None.

    Raises
    ------
    AmbiguousDate
        If day and month can be read either way and `order` (dmy, mdy) is None.
    InvalidInput
        If it is not a time, or has no offset and `zone` is None; the message names the field.
    """
    text = str(value).strip() if isinstance(value, (str, int, float)) else ""
    try:
        moment = _since_1970(text) or _iso_time(text) or _written_time(text, order)
        if isinstance(moment, datetime):
            moment = moment.replace(tzinfo=moment.tzinfo or zone)
        elif moment is not None:
            return datetime(moment.year, moment.month, moment.day, tzinfo=zone or UTC)
        if moment is not None and moment.tzinfo is not None:
            moment.astimezone(UTC)  # raises if the result is before the year 1
            return moment
    except AmbiguousDate as error:
        raise AmbiguousDate(f"{name}: {error}") from None
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise InvalidInput(f"{name}: {no_time(value if isinstance(value, str) else repr(value))}")
    raise InvalidInput(
        f"{name}: {text!r} has no time zone; write {moment.isoformat()}Z for UTC, or pass --timezone Europe/Berlin"
    )


def _since_1970(text: str) -> datetime | None:
    """Return the time of a count of seconds (of ten digits) or milliseconds (of thirteen) since 1970."""
    found = _COUNT.fullmatch(text)
    return datetime.fromtimestamp(float(found[0]) / (1000 if len(found[1]) > 10 else 1), UTC) if found else None


def _iso_time(text: str) -> datetime | date | None:
    try:
        if len(text) == 10 or (len(text) == 8 and text.isdigit()):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _written_time(text: str, order: str | None) -> datetime | date | None:
    """Return the time of a text as people and programs other than by ISO 8601 write it."""
    if _MAIL_TIME.match(text):
        at = parsedate_to_datetime(text)
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    if (found := _WRITTEN.fullmatch(text)) is None:
        return None
    written, hour, minute, second, half = found.groups()
    day = _numeric_day(written, order) or _named_day(written)
    if day is None or hour is None:
        return day
    return datetime(day.year, day.month, day.day, hour_of(hour, half), int(minute), int(second or 0))  # noqa: DTZ001


def _numeric_day(text: str, order: str | None) -> date | None:
    if (numbers := date_numbers(text)) is None:
        return None
    first, sign, second, _ = numbers
    if len(first) == 4:
        order = "ymd"
    elif sign == ".":
        order = "dmy"
    elif order is None:
        if int(first) <= 12 and int(second) <= 12:
            raise AmbiguousDate(f"day or month first? {text} can be read either way; pass --date-order dmy or mdy")
        order = "dmy" if int(first) > 12 else "mdy"
    return date(*in_order(numbers, order))


def in_order(numbers: tuple[str, str, str, str], order: str) -> tuple[int, int, int]:
    """Return year, month and day of the numbers of a date (`date_numbers`) in an order such as dmy."""
    first, _, second, third = numbers
    year, month, day = (int((first, second, third)[order.index(letter)]) for letter in "ymd")
    return year + 2000 if year < 100 else year, month, day


def hour_of(hour: str, half: str | None) -> int:
    """Return the hour from 0 to 23; `half` is AM, PM or its Japanese or Chinese word, None on a 24-hour clock."""
    return int(hour) % 12 + (12 if half[0] in "Pp下" or half == "午後" else 0) if half else int(hour)


def date_numbers(text: str) -> tuple[str, str, str, str] | None:
    """Return first number, sign, second and third number of a date such as 14.03.2026, with or without a time."""
    found = _NUMERIC_DAY.match(text.strip())
    return (found[1], found[2], found[3], found[4]) if found else None


def _named_day(text: str) -> date | None:
    for form in ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y"):
        with suppress(ValueError):
            return datetime.strptime(text, form).date()  # noqa: DTZ007
    return None
