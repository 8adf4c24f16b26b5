"""Inputs of the memory: turns of a conversation, documents and ready-made triples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from math import inf
from operator import index
from typing import Annotated, Any, ClassVar, Self, TypedDict, TypeVar, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from graphmem.errors import InvalidInput
from graphmem.messages import (
    MessageLike,
    ToolCall,
    is_message,
    message_fields,
    stored_calls,
)
from graphmem.models import (
    AsOf,
    Attachment,
    Confidence,
    Episode,
    EpisodeFilter,
    EpisodeSource,
    Identifier,
    Model,
    Properties,
    Scalar,
    Scope,
    Text,
    UTCDateTime,
    one_or_many,
    utc_now,
)
from graphmem.models.base import is_placeholder
from graphmem.models.metadata import (
    ATTACHMENTS,
    INJECTION_FLAG,
    NO_TEXT,
    SKIPPED,
    TOOL_CALL_ID,
    TOOL_CALLS,
    TRUST,
    UTC_OFFSET,
)
from graphmem.trust import Trust, without_raised_trust

MAX_LIMIT = 2**31 - 2

M = TypeVar("M", bound=Model)


def _has_words(text: str) -> str:
    if not text.strip():
        raise ValueError("contains only white space" if text else "is empty")
    return text


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([smhdw])")


def _duration(value: object) -> timedelta:
    """Return a duration, a number of seconds, or a text such as ``30d`` as a duration."""
    found: timedelta | None = value if isinstance(value, timedelta) else None
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found = timedelta(seconds=value)
        elif isinstance(value, str) and (parts := _DURATION.fullmatch(value.strip())):
            found = timedelta(**{_UNITS[parts[2]]: float(parts[1])})
    except (ValueError, OverflowError):
        found = None
    if found is None or found <= timedelta(0):
        raise ValueError("expected a positive duration: a timedelta, seconds, or a text such as 90s, 15m, 12h, 30d, 8w")
    return found


Duration = Annotated[timedelta, BeforeValidator(_duration)]
"""A positive duration; a number is seconds, a text a number and one of s, m, h, d, w."""


def _in_calendar(moment: datetime) -> datetime:
    if is_placeholder(moment):
        raise ValueError(f"the year {moment.year} stands for no date; leave the field out")
    return moment


class _Item(Model):
    """Common fields of turns and documents."""

    episode_source: ClassVar[EpisodeSource]

    text: Annotated[Text, AfterValidator(_has_words)]
    occurred_at: Annotated[UTCDateTime, AfterValidator(_in_calendar)] | None = None
    external_id: Identifier | None = None
    metadata: Properties = {}
    attachments: tuple[Attachment, ...] = ()
    has_injection_flags: bool = False
    trust: Trust | None = None
    expires_at: UTCDateTime | None = None
    expires_in: Duration | None = None

    @model_validator(mode="after")
    def _expire_once(self) -> Self:
        if self.expires_at is not None and self.expires_in is not None:
            raise ValueError("give expires_at or expires_in, not both")
        return self

    @model_validator(mode="before")
    @classmethod
    def _leave_out_none(cls, fields: Any) -> Any:
        """Return the fields without those that are None, which stand for their defaults; the text isn't optional."""
        if not isinstance(fields, dict):
            return fields
        given, optional = cast("dict[str, Any]", fields), cls.model_fields.keys() - {"text"}
        return {name: value for name, value in given.items() if value is not None or name not in optional}

    @model_validator(mode="before")
    @classmethod
    def _keep_offset(cls, fields: Any) -> Any:
        """Store the UTC offset of the time in the metadata before its conversion to UTC."""
        if not isinstance(fields, dict):
            return fields
        given = cast("dict[str, Any]", fields)
        at: object = given.get("occurred_at")
        metadata: object = given.get("metadata") or {}
        try:
            at = datetime.fromisoformat(at) if isinstance(at, str) else at
        except ValueError:
            return given  # the field reports the error
        if isinstance(at, datetime) and at.utcoffset() and isinstance(metadata, dict):
            return {**given, "metadata": {UTC_OFFSET: f"{at:%z}", **cast("dict[str, Any]", metadata)}}
        return given

    def to_episode(self, scope: Scope, expires_from: datetime | None = None) -> Episode:
        """Return the episode to store for this item; `expires_in` counts from `expires_from`, by default now."""
        now = utc_now()
        fields = {name: getattr(self, name) for name in type(self).model_fields if name in Episode.model_fields}
        fields["occurred_at"] = self.occurred_at or now
        fields["external_id"] = self.external_id or None
        fields["metadata"] = {**_without_reserved(self.metadata), **self._call_metadata()}
        if self.expires_in is not None:
            try:
                fields["expires_at"] = (expires_from or now) + self.expires_in
            except OverflowError:
                raise InvalidInput(f"expires_in: {self.expires_in} from now is after the year 9999") from None
        if self.has_injection_flags:
            fields["metadata"][INJECTION_FLAG] = True
        if self.trust is not None:
            fields["metadata"][TRUST] = self.trust
        return Episode(scope=scope, source=self.episode_source, recorded_at=now, **fields)

    def _call_metadata(self) -> Mapping[str, Scalar]:
        """Return what the episode stores of tool calls in its metadata."""
        return {}


def _without_reserved(metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the metadata of a caller without what only the library sets: the reason of a skip, and a raised trust."""
    return {k: value for k, value in without_raised_trust(metadata).items() if k not in (SKIPPED, NO_TEXT)}


class Turn(_Item):
    """One message of a conversation.

    Parameters
    ----------
    text
        The message. It may be empty if there are attachments, tool calls or a tool_call_id; the stored text then lists
        these, and no facts are extracted.
    speaker
        Name of the speaker, to whom "I" in the text refers.
    role
        ``user``, ``assistant``, ``tool``, …; output of tools is stored but not extracted.
    session_id
        Id of the conversation.
    occurred_at
        Aware time of the message, to which "yesterday" in the text refers. Defaults to now.
    attachments
        Images, recordings and files. Search covers their descriptions; their bytes aren't stored.
    tool_calls
        The tool calls of an assistant.
    tool_call_id
        Id of the call that a tool result answers.
    external_id
        Id given by the caller; ingesting the same id again has no effect.
    metadata
        Additional scalar values; `skipped` and `no_text`, which the library sets, are left out.
    has_injection_flags
        True if a detector of the caller flagged the text: it is stored but not extracted.
    trust
        ``trusted``, ``external`` or ``untrusted``; by default ``external`` for outputs of tools and for mails read from
        files, else ``trusted``. Untrusted text is stored but not extracted, and not quoted by `context`.
    expires_at, expires_in
        When the turn expires, or after which time: a `timedelta`, seconds, or a text such as ``12h`` or ``30d``. From
        then on nothing of it is returned, and it is erased as by `GraphMemory.forget`.
    """

    episode_source = "message"

    speaker: Identifier | None = None
    role: Identifier | None = None
    session_id: Identifier | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_empty_text(cls, fields: Any) -> Any:
        """Set the text of a turn without one to a list of its attachments and calls."""
        if not isinstance(fields, dict):
            return fields
        given = cast("dict[str, Any]", fields)
        words = given.get("text", "")
        if not isinstance(words, str) or words.strip():
            return given
        attachments, calls = _models(Attachment, given, ATTACHMENTS), _models(ToolCall, given, TOOL_CALLS)
        listed = _text_of(attachments, calls, given.get(TOOL_CALL_ID))
        return {**given, "text": listed} if listed else given

    def _call_metadata(self) -> Mapping[str, Scalar]:
        is_listed = self.text == _text_of(self.attachments, self.tool_calls, self.tool_call_id)
        return {**stored_calls(self.tool_calls, self.tool_call_id), **({NO_TEXT: True} if is_listed else {})}


def _text_of(attachments: Sequence[object], calls: Sequence[object], call_id: object) -> str:
    """Return the text of a turn without one: a list of its attachments and calls; "" if there are none."""
    return "\n".join(map(str, (*attachments, *calls))) or ("[no output]" if call_id else "")


class Document(_Item):
    """A passage of text: a file, a page, a note. Split long texts first, as `graphmem ingest` does.

    Parameters
    ----------
    text, occurred_at, external_id, metadata, attachments, has_injection_flags, expires_at, expires_in
        As in `Turn`.
    trust
        As in `Turn`; ``external`` by default.
    title
        Its title, to which "he", "she" or "it" at its beginning may refer.
    """

    episode_source = "document"

    title: Text | None = None


def with_last_day(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a fact that begins and ends on one bare date with the next day as the end."""
    begin, end = fields.get("valid_from"), fields.get("valid_to")
    if not isinstance(begin, str) or not isinstance(end, str) or begin.strip() != end.strip():
        return fields
    try:
        return {**fields, "valid_to": (date.fromisoformat(end.strip()) + timedelta(days=1)).isoformat()}
    except (ValueError, OverflowError):
        return fields  # a time, a month or a year, or the last day of the calendar


def _number_as_text(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class Triple(Model):
    """A ready-made fact.

    Parameters
    ----------
    subject, relation, object
        Names and a verb phrase, in any casing; the object may be a number.
    subject_type, object_type
        Entity types; the default is that of a well-known relation, else ``concept``.
    edge_type
        One of the five edge types; the default is that of the relation, else ``semantic``.
    fact
        The fact as a sentence; "subject relation object" if empty.
    confidence
        In [0, 1].
    valid_from, valid_to
        Interval in which the fact holds, without its end; valid_from defaults to the time of its episode. The same date
        for both, as a text without a time, is that day.
    source
        `external_id` of its episode, which is created if it doesn't exist.
    metadata
        Stored as the properties of the edge.
    """

    subject: Text
    relation: Text
    object: Annotated[Text, BeforeValidator(_number_as_text)]
    subject_type: Text | None = None
    object_type: Text | None = None
    edge_type: Text | None = None
    fact: Text = ""
    confidence: Confidence = 1.0
    valid_from: UTCDateTime | None = None
    valid_to: UTCDateTime | None = None
    source: Identifier | None = None
    metadata: Properties = Field(
        default_factory=dict[str, Scalar]
    )  # a factory, as pydantic copies default values slowly

    @model_validator(mode="before")
    @classmethod
    def _include_last_day(cls, fields: Any) -> Any:
        return with_last_day(cast("dict[str, Any]", fields)) if isinstance(fields, dict) else fields

    def require_period(self) -> None:
        """Raise `InvalidInput` if the fact would end before or when it begins."""
        begin, end = self.valid_from, self.valid_to
        if begin is None or end is None or end > begin:
            return
        if end < begin:
            raise InvalidInput(f"valid_to: {end} is before valid_from {begin}")
        raise InvalidInput(
            f"valid_to: {end} is also valid_from; it is the time at which the fact stopped being true. For a single "
            "day give its date for both, as a text without a time"
        )

    @classmethod
    def of(cls, value: TripleLike) -> Triple:
        """Convert a triple, a mapping of its fields, or (subject, relation, object) to a `Triple`.

        Raises
        ------
        InvalidInput
            If the value has another type, or a field is invalid.
        """
        if isinstance(value, Triple):
            return value
        if isinstance(value, Mapping):
            return cls(**_fields(value))
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 3:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"triple {value!r:.120}: expected (subject, relation, object), a mapping or a Triple")
        subject, relation, target = value
        return cls(subject=subject, relation=relation, object=target)


class ItemFields(TypedDict, total=False):
    """Fields of a `Turn` or `Document` that `GraphMemory.remember` takes beside a text, a message or a mapping."""

    speaker: str | None
    role: str | None
    session_id: str | None
    title: str | None
    occurred_at: datetime | str | None
    external_id: str | None
    metadata: Mapping[str, Scalar] | None
    attachments: Sequence[Attachment | Mapping[str, Any]] | None
    tool_calls: Sequence[ToolCall | Mapping[str, Any]] | None
    tool_call_id: str | None
    has_injection_flags: bool
    trust: Trust | None
    expires_at: datetime | str | None
    expires_in: timedelta | float | str | None


TURN_NAMES: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "content", "message", "body"),
    "speaker": ("speaker", "author", "name", "user", "sender", "from"),
    "role": ("role",),
    "session_id": ("session_id", "session", "conversation_id", "thread_id"),
    "occurred_at": ("occurred_at", "timestamp", "created_at", "date", "datetime", "time"),
    "external_id": ("external_id", "message_id", "uuid"),
    "title": ("title",),
    "has_injection_flags": ("has_injection_flags",),
}
"""Field of a turn → names under which mappings and records of files have it."""

Item = Turn | Document
TripleLike = Triple | Mapping[str, Any] | Sequence[str]
FilterLike = EpisodeFilter | Mapping[str, Any]
ItemLike = Turn | Document | Mapping[str, Any] | MessageLike | str


def to_item(value: ItemLike, **fields: Any) -> Item:
    """Convert a turn, a document, a text, a mapping of fields (a document if it has a title) or a message to an item.

    A message has the format of LangChain, OpenAI or Anthropic, as an object or a mapping with `role` and `content`.
    Fields of a mapping may have any of their `TURN_NAMES`.

    Raises
    ------
    InvalidInput
        If the value has another type, or a field is invalid.
    """
    if fields.get("title", "") is None:
        del fields["title"]
    if isinstance(value, (Turn, Document)):
        if fields:
            raise InvalidInput(f"fields {sorted(fields)} can't be added to a {type(value).__name__}")
        return value
    if isinstance(value, str):
        data: dict[str, Any] = {"text": value, **fields}
    elif is_message(value):
        message = _renamed(_fields(value), is_message=True) if isinstance(value, Mapping) else value
        return Turn(**message_fields(message, fields))
    else:
        data = {**_renamed(_fields(value)), **fields}
    if data.get("title") is not None:
        return Document(**data)
    data.pop("title", None)
    return Turn(**data)


def _models(model: type[M], given: Mapping[str, Any], name: str) -> list[M]:
    """Return the entries of a list field as models; entries of other types are left to field validation."""
    value = given.get(name)
    each: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
    return [model(**one) if isinstance(one, dict) else one for one in each]


def _fields(value: object) -> dict[str, Any]:
    """Return a mapping of fields with string keys; raise `InvalidInput` for other values, which files may contain."""
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"item {value!r:.120}: expected a text, a message, a Turn, a Document or a mapping of their "
            "fields; pass several of them to ingest"
        )
    return {str(name): field for name, field in cast("Mapping[object, Any]", value).items()}


def _renamed(fields: dict[str, Any], *, is_message: bool = False) -> dict[str, Any]:
    """Rename the fields of a turn that have another of their names; the content and name of a message stay."""
    for field, names in TURN_NAMES.items():
        name = next((each for each in names if each in fields), field)
        if name != field and not (is_message and (field == "text" or name == "name")):
            fields[field] = fields.pop(name)
    return fields


def to_time(value: datetime | str, name: str = "time") -> datetime:
    """Convert an aware time or ISO 8601 text to a time; a bare year, month or day gives its start in UTC.

    `name` is that of the argument, for the message.

    Raises
    ------
    InvalidInput
        If it is naive or not a time.
    """
    try:
        return AsOf(valid=value).valid
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("AsOf.valid", name, 1)) from error


def to_scope(scope: Scope | str) -> Scope:
    """Convert a scope or its text (`Scope.from_text`) to a scope.

    Raises
    ------
    InvalidInput
        If it has another type, or a part of it is empty or too long.
    """
    if isinstance(scope, Scope):
        return scope
    if not isinstance(scope, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"scope: expected a Scope or a text such as 'users/maya', got {scope!r:.120}")
    return Scope.from_text(scope)


def to_scopes(scopes: Scope | str | Iterable[Scope | str]) -> tuple[Scope, ...]:
    """Convert one or several scopes or texts to a tuple of scopes.

    Raises
    ------
    InvalidInput
        If there is none, or one of them is invalid.
    """
    if isinstance(scopes, (Scope, str)):
        return (to_scope(scopes),)
    if not isinstance(scopes, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"scopes: expected scopes or texts such as 'users/maya', got {scopes!r:.120}")
    return one_or_many(to_scope(scope) for scope in scopes)


def to_as_of(moment: AsOf | datetime | str | None) -> AsOf | None:
    """Convert a moment or a valid time to `AsOf`; None stays None."""
    return moment if moment is None or isinstance(moment, AsOf) else AsOf(valid=to_time(moment, "as_of"))


def to_filter(wanted: FilterLike | None) -> EpisodeFilter | None:
    """Convert a filter or a mapping of its fields to a filter; None for one without conditions.

    Raises
    ------
    InvalidInput
        If it has another type, an unknown field or operator, or an invalid value.
    """
    if wanted is None or isinstance(wanted, EpisodeFilter):
        found = wanted
    elif isinstance(wanted, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = EpisodeFilter(**{str(name): value for name, value in wanted.items()})
    else:
        raise InvalidInput(f"filters: expected an EpisodeFilter or a mapping of its fields, got {wanted!r:.120}")
    return None if found is None or found.is_empty else found


def to_limit(limit: int, name: str = "limit") -> int:
    """Return a limit after checking its type and range; `name` is that of the argument.

    Raises
    ------
    InvalidInput
        If it is no whole number, negative or above 2,147,483,646.
    """
    try:
        number = index(limit)
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_LIMIT:
        raise InvalidInput(f"{name}: expected a number in [0, {MAX_LIMIT}], got {limit!r:.120}")
    return number


def to_text(name: str, value: str) -> str:
    """Return the value of an argument after checking that it is a text.

    Raises
    ------
    InvalidInput
        If it has another type.
    """
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        has_id = isinstance(getattr(value, "id", None), str)
        raise InvalidInput(f"{name}: expected a text, got {value!r:.120}{'; pass its .id' if has_id else ''}")
    return value


def to_number(name: str, value: float) -> float:
    """Return the value of an argument after checking that it is a finite number.

    Raises
    ------
    InvalidInput
        If it has another type, is infinite or NaN.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -inf < value < inf:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{name}: expected a finite number, got {value!r:.120}")
    return value


def to_texts(name: str, values: Iterable[str] | str) -> tuple[str, ...]:
    """Return the values of an argument, one text or several, after checking that they are texts.

    Raises
    ------
    InvalidInput
        If it has another type.
    """
    if not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{name}: expected texts, got {values!r:.120}")
    return tuple(to_text(name, value) for value in ((values,) if isinstance(values, str) else values))
