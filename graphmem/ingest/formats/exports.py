"""Chat exports in JSON: the messages of each kind, as records with the fields of a turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.records import thread_of
from graphmem.inputs import TURN_NAMES
from graphmem.messages import THOUGHTS

Record = dict[str, Any]

_LISTS = ("messages", "conversations", "contents")
_IDS = ("id", *TURN_NAMES["external_id"])
_SIDES = {"human": "user", "gpt": "assistant", "model": "assistant", "function_call": "assistant"} | dict.fromkeys(
    ("observation", "function", "function_response"), "tool"
)
"""Roles of Claude, ShareGPT and Gemini → roles of a turn; others stay as they are."""
_CONTEXT = re.compile(r"\s*<(?:environment_context|user_instructions|local-command-|command-name)")
"""Beginning of what a coding agent's program adds under the name of its user."""


@dataclass(frozen=True, slots=True)
class Export:
    """Kind of export.

    Attributes
    ----------
    name
        Its program.
    fields, absent
        Fields that its records have, and fields that they don't have.
    message_fields
        Fields of its message, or of at least one of its first messages.
    read
        Yields the messages of a record; counts by kind what is no message. Gets the name of the file.
    """

    name: str
    fields: frozenset[str]
    message_fields: frozenset[str]
    absent: frozenset[str]
    read: Callable[[Record, Counter[str], str | None], Iterable[Record]]

    def fits(self, record: Record) -> bool:
        """Return whether a record is of this kind."""
        if not self.fields <= record.keys() or self.absent & record.keys():
            return False
        messages = [message for name in _LISTS for message in _dicts(record.get(name))[:9]]
        messages.append(_dict(record.get("message")))
        return not self.message_fields or any(self.message_fields <= message.keys() for message in messages)


def export_of(record: Record) -> Export | None:
    """Return the kind of export of a record, or None."""
    return next((export for export in EXPORTS if export.fits(record)), None)


def messages_of(value: object, file: str | None, left_out: Counter[str]) -> list[Record]:
    """Return the messages of a record: of a chat export or a conversation, or the record and its comments.

    Parameters
    ----------
    value
        The record.
    file
        Name of its file without the suffix.
    left_out
        Gets the number of entries of a chat export that are no messages, by kind.

    Raises
    ------
    InvalidInput
        If the record is no object.
    """
    if not isinstance(value, dict):
        raise InvalidInput(f"expected an object with text, got {value!r:.60}")
    record = cast("Record", value)
    if export := export_of(record):
        found = [{key: item for key, item in each.items() if item} for each in export.read(record, left_out, file)]
        said = [each for each in found if _says_something(each)]
        left_out.update(["messages without content"] * (len(found) - len(said)))
        return said
    if isinstance(record.get("messages"), list) and "text" not in record and "content" not in record:
        return _conversation(record)
    return thread_of(record)


def _says_something(message: Record) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in _dicts(cast("object", content)) if part.get("type") not in THOUGHTS]
    return bool(content or any(message.get(name) for name in ("text", "attachments", "tool_calls", "call_id")))


def _conversation(record: Record) -> list[Record]:
    """Return the messages of a list with the fields of their conversation, whose id is their session."""
    title = next((one for name in ("title", "name") if isinstance(one := record.get(name), str) and one), None)
    number = next((one for name in _IDS if isinstance(one := record.get(name), (str, int)) and one != ""), None)
    about = {key: item for key, item in record.items() if key not in ("messages", "title", "name", *_IDS)}
    named = any(about.get(name) for name in TURN_NAMES["session_id"])
    about |= {} if named or (number or title) is None else {"session_id": number or title}
    about |= {"conversation": title or str(number)} if title or (named and number) else {}
    return [_with_shared(about, _of_gemini(_dict(part))) for part in cast("list[object]", record["messages"])]


def _with_shared(about: Record, message: Record) -> Record:
    """Return a message with the fields of its conversation that it lacks; the speaker is that of the user."""
    has = [field for field, names in TURN_NAMES.items() if any(name in message for name in names)]
    if message.get("role") not in (None, "user", "human"):
        has.append("speaker")
    known = {name for field in has for name in TURN_NAMES[field]}
    return {**{key: item for key, item in about.items() if key not in known}, **message} if message else {}


# Coding agents ----------------------------------------------------------------------------------------


def _claude_code(record: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    message = _dict(record.get("message"))
    if not message or record.get("isMeta") or record.get("isCompactSummary") or _is_context(message.get("content")):
        left_out["notes of the program" if message else f"lines of the type {record['type']}"] += 1
        return
    yield {
        "role": message.get("role"),
        "content": message.get("content"),
        "session_id": record.get("sessionId"),
        "occurred_at": record.get("timestamp"),
        "external_id": record.get("uuid"),
        "cwd": record.get("cwd"),
    }


def _codex(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    payload = _dict(record["payload"])
    names = _CODEX_FIELDS.get(str(payload.get("type"))) if record["type"] == "response_item" else None
    if names is None:
        left_out[f"lines of the type {record['type']}"] += 1
    elif payload.get("role") == "developer" or _is_context(payload.get("content")):
        left_out["notes of the program"] += 1
    else:
        yield {name: payload.get(name) for name in names} | {"occurred_at": record["timestamp"], "session_id": file}


_CODEX_FIELDS = {
    "message": ("role", "content"),
    "function_call": ("type", "name", "arguments", "call_id"),
    "function_call_output": ("type", "output", "call_id"),
}


def _is_context(content: object) -> bool:
    """Return whether the first text of a message was added by the program."""
    first = content if isinstance(content, str) else next((part.get("text") for part in _dicts(content)), "")
    return _CONTEXT.match(str(first)) is not None


# Assistants -------------------------------------------------------------------------------------------


def _claude(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    for message in _dicts(record["chat_messages"]):
        parts = [part for part in _dicts(message.get("content")) if part.get("type") in _CLAUDE_PARTS]
        says = any(part.get("text") for part in parts) or not message.get("text")
        files = [*_dicts(message.get("attachments")), *_dicts(message.get("files"))]
        yield {
            "content": parts if says else message["text"],
            "role": _SIDES.get(str(message.get("sender")), message.get("sender")),
            "session_id": record.get("uuid"),
            "conversation": record.get("name"),
            "occurred_at": message.get("created_at"),
            "external_id": message.get("uuid"),
            "attachments": [
                _file(None, each.get("file_name"), each.get("file_type"), each.get("extracted_content"))
                for each in files
            ],
        }


_CLAUDE_PARTS = ("text", "tool_use", "tool_result", "image")


def _share_gpt(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    parts = [
        {"role": _SIDES.get(str(each.get("from")), each.get("from")), "content": each.get("value")}
        for each in _dicts(record["conversations"])
    ]
    about = {key: item for key, item in record.items() if key != "conversations"}
    yield from _conversation({**about, "messages": parts})


def _gemini(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    about = {key: item for key, item in record.items() if key != "contents"}
    yield from _conversation({**about, "messages": record.get("contents")})


def _gemini_message(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    yield _of_gemini(record)


def _of_gemini(message: Record) -> Record:
    """Return a message with the `parts` of Gemini as one with content; others unchanged."""
    if not isinstance(message.get("parts"), list) or "content" in message:
        return message
    content: list[Record] = []
    for part in _dicts(message["parts"]):
        call, answer, data = (_dict(part.get(name)) for name in ("functionCall", "functionResponse", "inlineData"))
        if call:
            content.append({"type": "tool_use", "name": call.get("name"), "input": call.get("args")})
        elif answer:
            number, said = answer.get("id") or answer.get("name"), str(answer.get("response"))
            content.append({"type": "tool_result", "tool_use_id": number, "content": said})
        elif data:
            content.append({"type": "media", "mime_type": data.get("mimeType"), "data": data.get("data")})
        elif not part.get("thought"):
            content.append(part)
    about = {key: item for key, item in message.items() if key not in ("parts", "role")}
    return {**about, "content": content, "role": _SIDES.get(str(message.get("role")), message.get("role"))}


EXPORTS = tuple(
    Export(name, frozenset(fields.split()), frozenset(of_message.split()), frozenset(absent.split()), read)
    for name, fields, of_message, absent, read in (
        ("Claude Code", "type message sessionId", "role content", "", _claude_code),
        ("Claude Code", "type parentUuid sessionId", "", "", _claude_code),
        ("Claude Code", "type operation sessionId", "", "", _claude_code),
        ("Claude Code", "type sessionId", "", "text content message", _claude_code),
        ("Claude Code", "type leafUuid", "", "text content message", _claude_code),
        ("Claude Code", "type messageId snapshot", "", "text content message", _claude_code),
        ("Codex", "type payload timestamp", "", "text content message", _codex),
        ("Claude", "chat_messages", "", "", _claude),
        ("ShareGPT", "conversations", "from value", "", _share_gpt),
        ("Gemini", "contents", "parts", "", _gemini),
        ("Gemini", "role parts", "", "text content", _gemini_message),
    )
)
EXPORT_NAMES = tuple(dict.fromkeys(export.name for export in EXPORTS))


def _file(
    kind: str | None, name: object, media_type: object = None, description: object = None, url: object = None
) -> Record:
    """Return the fields of an attachment, of the kind of its media type unless one is given."""
    media, path = str(media_type or ""), name if isinstance(name, str) else ""
    by_type = media.partition("/")[0]
    return {
        "kind": kind or (by_type if by_type in ("image", "audio", "video") else "file"),
        "name": path.rpartition("/")[2] or None if not path.startswith("(File ") else None,
        "media_type": media or None,
        "description": description[:_MAX_DESCRIPTION] if isinstance(description, str) else None,
        "url": url if isinstance(url, str) else None,
    }


_MAX_DESCRIPTION = 2000


def _dict(value: object) -> Record:
    """Return a JSON value if it is an object, else an empty one."""
    return cast("Record", value) if isinstance(value, dict) else {}


def _dicts(value: object) -> list[Record]:
    """Return the objects in a JSON value that is an array, else none."""
    items = cast("list[object]", value) if isinstance(value, list) else ()
    return [cast("Record", item) for item in items if isinstance(item, dict)]
