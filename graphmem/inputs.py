"""What callers hand in: turns of a conversation, documents, ready-made triples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import AfterValidator, Field, model_validator

from graphmem.errors import InvalidInput
from graphmem.messages import (
    ATTACHMENTS,
    NO_TEXT,
    TOOL_CALL_ID,
    TOOL_CALLS,
    Attachment,
    MessageLike,
    ToolCall,
    is_message,
    message_fields,
    stored_beside,
)
from graphmem.models import (
    UTC_OFFSET,
    AsOf,
    Confidence,
    Episode,
    EpisodeSource,
    Model,
    Properties,
    Scalar,
    Scope,
    Text,
    UTCDateTime,
    one_or_many,
    utc_now,
)

INJECTION_FLAG = "has_injection_flags"
"""Field of an input, and metadata of its episode, by which a caller says not to trust the text."""

_MAX_LIMIT = 2**31 - 2

M = TypeVar("M", bound=Model)


def _has_words(text: str) -> str:
    if not text.strip():
        raise ValueError("there is only white space in it")
    return text


class _Item(Model):
    """What turns and documents share."""

    episode_source: ClassVar[EpisodeSource]

    text: Annotated[Text, Field(min_length=1), AfterValidator(_has_words)]
    occurred_at: UTCDateTime | None = None
    external_id: Text | None = None
    metadata: Properties = {}
    has_injection_flags: bool = False

    @model_validator(mode="before")
    @classmethod
    def _keep_offset(cls, fields: Any) -> Any:
        """Note the offset of the time before it becomes UTC."""
        if not isinstance(fields, dict):
            return fields
        given = cast("dict[str, Any]", fields)
        at: object = given.get("occurred_at")
        metadata: object = given.get("metadata") or {}
        try:
            at = datetime.fromisoformat(at) if isinstance(at, str) else at
        except ValueError:
            return given  # what isn't right is told by the field
        if isinstance(at, datetime) and at.utcoffset() and isinstance(metadata, dict):
            return {**given, "metadata": {UTC_OFFSET: f"{at:%z}", **cast("dict[str, Any]", metadata)}}
        return given

    def to_episode(self, scope: Scope) -> Episode:
        """Return the episode that is stored for this item."""
        now = utc_now()
        fields = {name: getattr(self, name) for name in type(self).model_fields if name in Episode.model_fields}
        fields["occurred_at"] = self.occurred_at or now
        fields["external_id"] = self.external_id or None
        fields["metadata"] = {**self.metadata, **self._beside()}
        if self.has_injection_flags:
            fields["metadata"][INJECTION_FLAG] = True
        return Episode(scope=scope, source=self.episode_source, recorded_at=now, **fields)

    def _beside(self) -> Mapping[str, Scalar]:
        """Return what of this item the episode keeps in its metadata."""
        return {}


class Turn(_Item):
    """One message of a conversation.

    Parameters
    ----------
    text
        What was said. It may be empty where there are attachments, tool calls or a tool_call_id: then it names these,
        and no facts are read from it.
    speaker
        Who said it, by name; "I" in the text means them.
    role
        ``user``, ``assistant``, ``tool``, …; what tools say is stored but not extracted.
    session_id
        The conversation that it belongs to.
    occurred_at
        When it was said, aware; "yesterday" in the text counts from here. Defaults to now.
    attachments
        What came with the words: images, recordings, files. Their descriptions are kept, their bytes aren't.
    tool_calls
        The tools that an assistant called.
    tool_call_id
        Of the result of a tool: the call that it answers.
    external_id
        The caller's own id: taking it in again does nothing.
    metadata
        Anything scalar that should stay with it.
    has_injection_flags
        True if the caller's own detector distrusts it: it is stored but not extracted.
    """

    episode_source = "message"

    speaker: Text | None = None
    role: Text | None = None
    session_id: Text | None = None
    attachments: tuple[Attachment, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_what_has_no_words(cls, fields: Any) -> Any:
        """Give a turn without words a text that names its attachments and calls."""
        if not isinstance(fields, dict):
            return fields
        given = cast("dict[str, Any]", fields)
        words = given.get("text", "")
        if not isinstance(words, str) or words.strip():
            return given
        named = [
            str(each) for each in (*_models(Attachment, given, ATTACHMENTS), *_models(ToolCall, given, TOOL_CALLS))
        ]
        if given.get(TOOL_CALL_ID) and not named:
            named = ["[no output]"]
        if not named:
            return given
        metadata: dict[str, Any] = {**(given.get("metadata") or {}), NO_TEXT: True}
        return {**given, "text": "\n".join(named), "metadata": metadata}

    def _beside(self) -> Mapping[str, Scalar]:
        return stored_beside(self.attachments, self.tool_calls, self.tool_call_id)


class Document(_Item):
    """A passage of text: a file, a page, a note. Split long ones before: `graphmem ingest` does.

    Parameters
    ----------
    text, occurred_at, external_id, metadata, has_injection_flags
        As in `Turn`.
    title
        What it is called; "he", "she" or "it" at its beginning may mean that.
    """

    episode_source = "document"

    title: Text | None = None


class Triple(Model):
    """A ready-made fact.

    Parameters
    ----------
    subject, relation, object
        Names and a verb phrase, in any casing.
    subject_type, object_type
        Entity types; where unstated, the well-known relation tells, else ``concept``.
    edge_type
        One of the five edge types; where unstated, the relation's own, else ``semantic``.
    fact
        The fact as a sentence; "subject relation object" where empty.
    confidence
        In [0, 1].
    valid_from, valid_to
        When it held; valid_from defaults to the time of its episode.
    source
        `external_id` of the episode that it comes from; an unknown one makes an episode of that id.
    metadata
        Stored as the properties of the edge.
    """

    subject: Text
    relation: Text
    object: Text
    subject_type: Text | None = None
    object_type: Text | None = None
    edge_type: Text | None = None
    fact: Text = ""
    confidence: Confidence = 1.0
    valid_from: UTCDateTime | None = None
    valid_to: UTCDateTime | None = None
    source: Text | None = None
    metadata: Properties = Field(default_factory=dict[str, Scalar])  # pydantic copies a default value, slowly

    @classmethod
    def of(cls, value: TripleLike) -> Triple:
        """Read a triple from itself, a mapping of its fields, or (subject, relation, object).

        Raises
        ------
        InvalidInput
            If it is none of these.
        """
        if isinstance(value, Triple):
            return value
        if isinstance(value, Mapping):
            return cls(**_fields(value))
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 3:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"triple {value!r:.120}: expected (subject, relation, object), a mapping or a Triple")
        subject, relation, target = value
        return cls(subject=subject, relation=relation, object=target)


Item = Turn | Document
TripleLike = Triple | Mapping[str, Any] | Sequence[str]
ItemLike = Turn | Document | Mapping[str, Any] | MessageLike | str


def to_item(value: ItemLike, **fields: Any) -> Item:
    """Read a turn or document from itself, its text, a mapping of its fields (with a title: a document), or a message.

    A message is that of LangChain, OpenAI or Anthropic, as an object or a mapping with a `role` and a `content`.

    Raises
    ------
    InvalidInput
        If it is none of these, or a field doesn't fit.
    """
    if isinstance(value, (Turn, Document)):
        if fields:
            raise InvalidInput(f"fields {sorted(fields)} can't be added to a {type(value).__name__}")
        return value
    if isinstance(value, str):
        data: dict[str, Any] = {"text": value, **fields}
    elif is_message(value):
        return Turn(**message_fields(value, fields))
    else:
        data = {**_fields(value), **fields}
    return Document(**data) if "title" in data else Turn(**data)


def _models(model: type[M], given: Mapping[str, Any], name: str) -> list[M]:
    """Return what a field lists as models; what doesn't fit is refused by the field."""
    value = given.get(name)
    each: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
    return [model(**one) if isinstance(one, dict) else one for one in each]


def _fields(value: object) -> dict[str, Any]:
    """Return a mapping of fields as one that can be unpacked; what comes from a file may be anything."""
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"item {value!r:.120}: expected a text, a message, a Turn, a Document or a mapping of their "
            "fields; several of them go to ingest"
        )
    return {str(name): field for name, field in cast("Mapping[object, Any]", value).items()}


def to_time(value: datetime | str) -> datetime:
    """Read an aware time from itself or ISO 8601 text (of a bare year, month or day the start, UTC).

    Raises
    ------
    InvalidInput
        If it is naive or no time.
    """
    return AsOf(valid=value).valid


def to_scope(scope: Scope | str) -> Scope:
    """Read a scope from itself or its text (`Scope.from_text`).

    Raises
    ------
    InvalidInput
        If it is neither, or a part of it is empty or too long.
    """
    if isinstance(scope, Scope):
        return scope
    if not isinstance(scope, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"scope: expected a Scope or a text such as 'users/maya', got {scope!r:.120}")
    return Scope.from_text(scope)


def to_scopes(scopes: Scope | str | Iterable[Scope | str]) -> tuple[Scope, ...]:
    """Read the scopes of a call from one or several scopes or texts.

    Raises
    ------
    InvalidInput
        If there is none, or one of them can't be read.
    """
    if isinstance(scopes, (Scope, str)):
        return (to_scope(scopes),)
    if not isinstance(scopes, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"scopes: expected scopes or texts such as 'users/maya', got {scopes!r:.120}")
    return one_or_many(to_scope(scope) for scope in scopes)


def to_as_of(moment: AsOf | datetime | str | None) -> AsOf | None:
    """Read a moment from itself, or from the time at which facts held."""
    return moment if moment is None or isinstance(moment, AsOf) else AsOf(valid=to_time(moment))


def to_limit(limit: int) -> int:
    """Check how many rows are asked for.

    Raises
    ------
    InvalidInput
        If no store could count so far.
    """
    if not 0 <= limit <= _MAX_LIMIT:
        raise InvalidInput(f"limit: expected a number in [0, {_MAX_LIMIT}], got {limit}")
    return limit
