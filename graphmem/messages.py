"""Conversion of chat messages of common libraries to turns, with their attachments and tool calls.

Messages are recognized by their attributes and keys; no library is imported. Non-text parts become attachments or tool
calls; an episode keeps the calls as JSON in its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol, cast

from pydantic import Field

from graphmem.errors import InvalidInput
from graphmem.models import Attachment, Model, Text
from graphmem.models.metadata import ATTACHMENTS, TOOL_CALL_ID, TOOL_CALLS, TOOL_STATUS
from graphmem.trust import role_kind

_TYPES = ("human", "ai", "system", "tool", "function")
"""Types of messages of LangChain; those of chunks are made of the same words."""

_READ = tuple(
    "role type content name id status refusal audio function_call call_id output arguments tool_calls "
    "invalid_tool_calls tool_call_id".split()
)
# envelope fields of the libraries, which a turn doesn't keep
_AROUND = tuple(
    "type id object model usage stop_reason stop_sequence example lc annotations additional_kwargs response_metadata "
    "usage_metadata artifact cache_control status".split()
)
_CALLS = ("tool_use", "server_tool_use", "tool_call", "function_call", "invalid_tool_call")
_RESULTS = ("tool_result", "function_call_output")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
_MAX_SHOWN = 500
_MAX_DEPTH = 8


class MessageLike(Protocol):
    """Message of LangChain, OpenAI or Anthropic: an object with `content` and a role or type."""

    @property
    def content(self) -> Any:
        """Text, or a list of parts."""
        ...


class ToolCall(Model):
    """Tool call of an assistant; `arguments` is JSON, or the raw text of the model if it is invalid."""

    name: Text = Field(min_length=1)
    arguments: Text = "{}"
    id: Text | None = None

    def __str__(self) -> str:
        """Return its representation in a text."""
        return f"[calls {self.name}({self.arguments[:_MAX_SHOWN]})]"


@dataclass(slots=True)
class Content:
    """Content of a message, by kind."""

    texts: list[str] = field(default_factory=list[str])
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, content: object, depth: int = 0) -> None:
        """Add a text, a part, or a list of these; raise `InvalidInput` if lists are nested too deeply."""
        if depth > _MAX_DEPTH:
            raise InvalidInput(f"content: lists are nested more than {_MAX_DEPTH} levels deep")
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, (list, tuple)):
            for part in cast("Sequence[object]", content):
                self.add(part, depth + 1)
        elif (part := _mapping(content)) is not None:
            self._add_part(part, depth)

    def _add_part(self, part: Mapping[str, Any], depth: int) -> None:
        kind = part.get("type")
        if kind in _CALLS:
            self.add_calls([part])
        elif kind in _RESULTS:
            inner = Content()
            inner.add(part.get("content", part.get("output")), depth + 1)
            self.results.append((str(part.get("tool_use_id") or part.get("call_id") or ""), "\n".join(inner.texts)))
            self.attachments += inner.attachments
        elif isinstance(text := part.get("text", part.get("refusal")), str):
            self.texts.append(text)
        elif kind not in THOUGHTS and part:
            self.attachments.append(_attachment(part))

    def add_calls(self, calls: Iterable[object]) -> None:
        """Add tool calls in any known format; calls with the id of an earlier one are skipped."""
        for each in calls:
            call = _mapping(each) or {}
            inner = _mapping(call.get("function")) or call
            given: Any = next((inner[k] for k in ("arguments", "args", "input") if inner.get(k) is not None), "{}")
            number = call.get("id") if call.get("call_id") is None else call["call_id"]
            number = str(number) if isinstance(number, int) else number
            if number is None or all(known.id != number for known in self.calls):
                arguments = given if isinstance(given, str) else _json(given)
                self.calls.append(ToolCall(name=str(inner.get("name") or "tool"), arguments=arguments, id=number))


def is_message(value: object) -> bool:
    """Return whether a value is a chat message rather than the fields of a turn."""
    if not isinstance(value, Mapping):
        return hasattr(value, "content") or getattr(value, "type", None) in ("function_call", "function_call_output")
    data = cast("Mapping[str, Any]", value)
    if "text" in data:
        return False
    inner = data.get("data") or data.get("kwargs")
    return any(key in data for key in ("content", "tool_calls")) or (
        data.get("type") in ("function_call", "function_call_output")
        or (isinstance(inner, dict) and "content" in inner)
    )


def unfold(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of any library as a flat mapping with a role and a content."""
    data: dict[str, Any] = {**message}
    for inner in ("data", "kwargs"):  # the two serializations of LangChain
        if isinstance(data.get(inner), dict) and "content" in data[inner]:
            data |= data.pop(inner)
    if isinstance(data.get("id"), list):
        del data["id"]  # path of the LangChain class
    kind = data.get("type")
    if kind == "function_call":  # this and the next: items of the OpenAI Responses API
        call = {key: data.pop(key, None) for key in ("name", "arguments", "call_id")}
        data |= {"role": "assistant", "content": "", "tool_calls": [call]}
    elif kind == "function_call_output":
        data |= {"role": "tool", "content": data.pop("output", ""), TOOL_CALL_ID: data.pop("call_id", None)}
    elif (
        isinstance(kind, str) and (name := kind.removesuffix("MessageChunk").lower()) in _TYPES and not data.get("role")
    ):
        data["role"] = role_kind(name)
        data.pop("type")
    return data


def read_content(data: dict[str, Any], content: object) -> dict[str, Any]:
    """Remove the content of a message from `data` and return it as the fields of a turn.

    Parameters
    ----------
    data
        The message; its tool calls and attachments are removed.
    content
        Its content: a text, or a list of parts.

    Returns
    -------
    dict
        `text`, `attachments`, `tool_calls`, `tool_call_id`, and `role` if tool results change it.
    """
    said = Content()
    said.add(content)
    said.add_calls(_pop_list(data, TOOL_CALLS))
    said.add_calls(_pop_list(data, "invalid_tool_calls"))
    said.add_calls([call] if (call := data.pop("function_call", None)) else ())
    if isinstance(refusal := data.pop("refusal", None), str):
        said.texts.append(refusal)
    if audio := _mapping(data.pop("audio", None)):
        said.attachments.append(Attachment(kind="audio", description=audio.get("transcript")))
    for each in _pop_list(data, ATTACHMENTS):
        if (part := _mapping(each)) is not None:
            said.attachments.append(Attachment(**part) if "kind" in part else _attachment(part))
    fields: dict[str, Any] = {ATTACHMENTS: said.attachments, TOOL_CALLS: said.calls}
    number = data.pop(TOOL_CALL_ID, None)
    fields[TOOL_CALL_ID] = None if number is None else str(number)
    if said.results and not "".join(said.texts).strip():
        fields |= {"role": "tool", TOOL_CALL_ID: ",".join(number for number, _ in said.results)}
        said.texts = [text for _, text in said.results]
    elif said.results:
        said.attachments += [Attachment(kind="tool_result", name=n, description=text) for n, text in said.results]
    return {"text": "\n".join(said.texts), **fields}


def message_fields(message: object, added: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a turn for a chat message, with the additional fields of the caller.

    A message with an id gets an `external_id` made of that id and its content, so that ingesting a growing conversation
    repeatedly stores it once.

    Raises
    ------
    InvalidInput
        If its content can't be read.
    """
    if isinstance(message, Mapping):
        given = {str(key): item for key, item in cast("Mapping[object, Any]", message).items()}
    else:
        given = {name: item for name in _READ if (item := getattr(message, name, None)) is not None}
    data = unfold(given)
    content: object = data.pop("content", None)
    if content is not None and not isinstance(content, (str, list, tuple)):
        raise InvalidInput(f"message content {content!r:.120}: expected a text or a list of parts")
    said = read_content(data, cast("object", content))
    speaker, number = data.pop("name", None), data.get("id")
    status = {TOOL_STATUS: "error"} if data.get("status") == "error" else {}
    fields = {"speaker": speaker, **{key: item for key, item in data.items() if key not in _AROUND}, **said, **added}
    fields["metadata"] = {**status, **(fields.get("metadata") or {})}
    if isinstance(number, str) and number and not fields.get("external_id"):
        identity = [fields.get(key) for key in ("session_id", "speaker", "role", "text", "occurred_at")]
        fields["external_id"] = f"{number}:{digest(*identity, fields[TOOL_CALLS])}"
    return fields


def stored_calls(calls: Sequence[ToolCall], call_id: str | None) -> dict[str, str]:
    """Return the metadata in which an episode stores tool calls."""
    found = {
        TOOL_CALLS: _json([each.model_dump(exclude_none=True) for each in calls]) if calls else None,
        TOOL_CALL_ID: call_id,
    }
    return {name: value for name, value in found.items() if value}


def tool_calls_of(metadata: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the tool calls stored in the metadata of an episode; other metadata of that name gives an empty tuple."""
    stored = metadata.get(TOOL_CALLS)
    try:
        return tuple(ToolCall(**each) for each in json.loads(stored)) if isinstance(stored, str) else ()
    except (ValueError, TypeError, InvalidInput):
        return ()


def digest(*parts: object) -> str:
    """Return a digest of these values, 16 hexadecimal digits."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _pop_list(data: dict[str, Any], name: str) -> list[object]:
    """Remove and return a list field of a message; a field of another type stays."""
    value = data.get(name)
    if value is None or isinstance(value, (list, tuple)):
        data.pop(name, None)
        return [*cast("Sequence[object]", value or ())]
    return []


def _mapping(value: object) -> Mapping[str, Any] | None:
    """Return a part of a message as a mapping: itself, or the dump of a library object."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    dump = getattr(value, "model_dump", None)
    return cast("Mapping[str, Any]", dump()) if callable(dump) else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _attachment(part: Mapping[str, Any]) -> Attachment:
    """Return the attachment for a part in the formats of LangChain, OpenAI, Anthropic or ChatGPT exports."""
    given = str(part.get("type") or part.get("content_type") or "part")
    inner = _mapping(part.get(given)) or _mapping(part.get("source")) or _mapping(part.get("file")) or {}

    def first(*names: str) -> Any:
        found = (place.get(name) for name in names for place in (part, inner))
        return next((value for value in found if value not in (None, "")), None)

    url = first("url", "image_url", "file_url", "file_uri", "asset_pointer")
    data = first("data", "base64", "file_data")
    media_type = first("media_type", "mime_type", "mimetype")
    inline = next((text for text in (url, data) if isinstance(text, str) and text.startswith("data:")), None)
    if inline is not None:
        head, _, data = inline.partition(",")
        url, media_type = None if url is inline else url, media_type or head[5:].partition(";")[0]
    named = f"{given} {media_type or ''}"
    kind = next((word for word in ("image", "audio", "video") if word in named), None)
    described = first("alt", "alt_text", "description", "caption", "transcript")
    return Attachment(
        kind=kind or ("file" if given in ("file", "input_file", "document", "media") else given),
        name=_text(first("filename", "name", "title", "file_id")),
        media_type=_text(media_type),
        url=_text(url),
        description=_text(described),
        size=len(data) * 3 // 4 - data[-2:].count("=") if isinstance(data, str) and data else None,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
