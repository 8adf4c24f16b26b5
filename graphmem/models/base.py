"""Shared parts of the models: field types, the frozen base class, ids, the clock, and attachments of episodes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta
from functools import cache
from typing import Annotated, Any, Self, cast

import uuid_utils
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.fields import FieldInfo

from graphmem.errors import InvalidInput
from graphmem.models.metadata import ATTACHMENTS

Scalar = str | int | float | bool | None

_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_BASIC_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)")
_NUMBER = re.compile(r"[+-]?(?:[\d._]+(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)

START_OF_TIME = datetime.min.replace(tzinfo=UTC)
"""The earliest time, before every other."""

END_OF_TIME = datetime.max.replace(tzinfo=UTC)
"""The latest time, after every other."""

TICK = timedelta(microseconds=1)
"""The resolution of times; an interval without its end holds until one tick before it."""

MAX_NAME_BYTES = 512
MAX_RELATION_BYTES = 256
MAX_FACT_BYTES = 2048


def new_id() -> str:
    """Return a new UUIDv7 as text: unique and sortable by creation time (RFC 9562)."""
    return str(uuid_utils.uuid7())


def first_id_at(seconds: float) -> str:
    """Return a lower bound of the ids created at or after a time in seconds since 1970 (`new_id`)."""
    milliseconds = f"{max(0, int(seconds * 1000)):012x}"
    return f"{milliseconds[:8]}-{milliseconds[8:]}"


def utc_now() -> datetime:
    """Return the current time as an aware UTC datetime."""
    return datetime.now(UTC)


def is_placeholder(moment: datetime) -> bool:
    """Return whether a time is in the first or last year of the calendar, by which models and exports mean no date."""
    return moment.year in (MINYEAR, MAXYEAR)


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(
            f"naive datetime {value.isoformat()}: give it a time zone, for example "
            "datetime(2026, 1, 31, tzinfo=timezone.utc) or '2026-01-31T00:00:00Z'"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{value.isoformat()} is in UTC before the year 1 or after the year 9999") from None


def _time(value: Any, parse: ValidatorFunctionWrapHandler) -> datetime:
    # pydantic parses a number, also as a text, as seconds since 1970, which callers don't intend
    if isinstance(value, (int, float)):
        raise ValueError("a time is a datetime or an ISO 8601 text with a time zone, not a number")
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    given = value
    if isinstance(value, str):
        value = first_day(value)
        if _DATE.fullmatch(value):
            value += "T00:00:00Z"
        elif _NUMBER.fullmatch(value.strip()):
            raise ValueError(no_time(value))
    try:
        return parse(value)
    except ValidationError:
        if not isinstance(given, str):
            raise
        raise ValueError(no_time(given)) from None


def first_day(text: str) -> str:
    """Return the first day of a year or a month, and 2026-01-31 for 20260131; another text unchanged."""
    if basic := _BASIC_DATE.fullmatch(text):
        return "-".join(basic.groups())
    return f"{text}-01-01"[:10] if _DATE.fullmatch(text) else text


def no_time(text: str) -> str:
    """Return the message for a text that is no time."""
    return f"{text[:40]!r} is not a time; write ISO 8601, for example 2026-01-31 or 2026-01-31T09:30:00Z"


UTCDateTime = Annotated[datetime, WrapValidator(_time), AfterValidator(_to_utc)]
"""An aware time, stored in UTC. A date, or a text of a year, a month or a day, is parsed as its start in UTC."""
Confidence = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


def _encodable(value: Any) -> Any:
    # lone surrogates can't be encoded as UTF-8; names are stripped of them too (graphmem.text.normalize)
    return value.encode("utf-8", "ignore").decode("utf-8") if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_encodable)]


def _without_nul(value: str) -> str:
    if "\0" in value:  # some stores end a text there when they look for it
        raise ValueError("an identifier can't contain a NUL character")
    return value


Identifier = Annotated[Text, AfterValidator(_without_nul)]
"""A text by which rows are found."""


def _scalars(value: Mapping[str, Any]) -> Mapping[str, Any]:
    for key, item in value.items():
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"property {key!r} is {item}: only finite numbers can be stored")
    return {_encodable(key): _encodable(item) for key, item in value.items()}


def _without_nesting(value: object) -> object:
    # the union of scalars would report each of its types
    for key, item in cast("dict[object, object]", value).items() if isinstance(value, dict) else ():
        if isinstance(item, (list, tuple, set, dict)):
            kind = type(cast("object", item)).__name__
            hint = f"a key for each value, such as '{key}.name'" if isinstance(item, dict) else "one text"
            known = "only a text, a number, a boolean or None can be stored"
            raise ValueError(f"{key!r} is a {kind}: {known}. Write {hint}, or its JSON")
        if isinstance(item, date):
            raise ValueError(f"{key!r} is a {type(item).__name__}, which can't be stored; write its .isoformat()")
    return cast("object", value)


Properties = Annotated[dict[str, Scalar], BeforeValidator(_without_nesting), AfterValidator(_scalars)]


class Model(BaseModel):
    """Frozen base class of the models: rejects unknown fields and raises `InvalidInput` on invalid data."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidInput(_explain(type(self), error)) from error

    def changed(self, **updates: Any) -> Self:
        """Return a copy with some fields replaced; the new values are not validated."""
        return self.model_copy(update=updates)

    @classmethod
    def trusted(cls, **values: Any) -> Self:
        """Return a model built from validated values without validating them again: ten times as fast, for hot paths.

        All fields are required except those with a constant default.
        """
        made = cls.__new__(cls)
        fields, names = _fields(cls)
        fill = object.__setattr__  # the model is frozen
        fill(made, "__dict__", {**fields, **values})
        # the set of a frozen model never changes and copies duplicate it, so complete models share one
        fill(made, "__pydantic_fields_set__", names if len(values) == len(names) else set(values))
        fill(made, "__pydantic_extra__", None)
        fill(made, "__pydantic_private__", None)
        return made


@cache
def _fields(model: type[BaseModel]) -> tuple[Mapping[str, Any], set[str]]:
    """Return all fields with their constant defaults, in the order of JSON serialization, and their names."""
    fields = {name: None if _is_given(field) else field.default for name, field in model.model_fields.items()}
    return fields, set(fields)


def _is_given(field: FieldInfo) -> bool:
    return field.is_required() or field.default_factory is not None or isinstance(field.default, dict)


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    lines: list[str] = []
    for problem in error.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in problem["loc"]) or "value"
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            problem["msg"] = f"no such field, the fields are {', '.join(model.model_fields)}"
        shown = repr(problem.get("input"))
        if len(shown) > 120:
            shown = f"{shown[:117]}…"
        lines.append(f"{model.__name__}.{where:.120}: {problem['msg'].removeprefix('Value error, ')} (got {shown})")
    return "; ".join(lines)


# Attachments --------------------------------------------------------------------------------------


_MAX_SHOWN = 500


class Attachment(Model):
    """Attachment of a message or document: an image, a recording or a file. Its bytes aren't stored.

    Parameters
    ----------
    kind
        ``image``, ``audio``, ``video``, ``file``, or the type of any other part.
    name
        File name.
    media_type
        Media type such as ``image/png``.
    url
        Location; data URLs are not stored.
    description
        Alternative text, caption or transcript. Search covers it like the text of the episode.
    size
        Size in bytes, if the data was in the message.
    """

    kind: Text = Field(min_length=1)
    name: Text | None = None
    media_type: Text | None = None
    url: Text | None = None
    description: Text | None = None
    size: int | None = None

    def __str__(self) -> str:
        """Return its representation in a text, such as ``[image: a dog on a beach]``."""
        shown = self.description or self.name or self.url or self.media_type
        return f"[{self.kind}: {shown[:_MAX_SHOWN]}]" if shown else f"[{self.kind}]"


def with_attachments(metadata: Properties, attachments: Sequence[Attachment]) -> Properties:
    """Return metadata as stores keep it: with the attachments as JSON."""
    if not attachments:
        return metadata
    stored = [each.model_dump(exclude_none=True) for each in attachments]
    return {**metadata, ATTACHMENTS: json.dumps(stored, ensure_ascii=False)}


def split_attachments(metadata: Properties) -> tuple[Properties, tuple[Attachment, ...]]:
    """Return stored metadata without its attachments, and these; other values under the key stay metadata."""
    found = _parsed(metadata.get(ATTACHMENTS))
    return ({k: v for k, v in metadata.items() if k != ATTACHMENTS} if found else metadata), found


def _parsed(stored: object) -> tuple[Attachment, ...]:
    try:
        rows: list[Mapping[str, Any]] = json.loads(stored) if isinstance(stored, str) else []
        return tuple(Attachment(**row) for row in rows)
    except (ValueError, TypeError, RecursionError, InvalidInput):
        return ()
