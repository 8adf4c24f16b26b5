"""Conversations with assistants and coding agents in JSON, as records with the fields of a turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import cast

from graphmem.ingest.formats.values import Record, as_dict, dicts, file_fields
from graphmem.inputs import TURN_NAMES

_IDS = ("id", *TURN_NAMES["external_id"])
_SIDES = {"human": "user", "gpt": "assistant", "model": "assistant", "function_call": "assistant"} | dict.fromkeys(
    ("observation", "function", "function_response"), "tool"
)
"""Roles of Claude, ShareGPT and Gemini → roles of a turn; others stay as they are."""
_CONTEXT = re.compile(r"<(?:environment_context|user_instructions|local-command-|command-name)")
"""Beginning of what a coding agent's program adds under the name of its user."""


def conversation(record: Record) -> list[Record]:
    """Return the messages of a list with the fields of their conversation, whose id is their session."""
    title = next((one for name in ("title", "name") if isinstance(one := record.get(name), str) and one), None)
    number = next((one for name in _IDS if isinstance(one := record.get(name), (str, int)) and one != ""), None)
    about = {key: item for key, item in record.items() if key not in ("messages", "title", "name", *_IDS)}
    named = any(about.get(name) for name in TURN_NAMES["session_id"])
    session = number if number is not None else title
    about |= {} if named or session is None else {"session_id": session}
    about |= {"conversation": title or str(number)} if title or (named and number is not None) else {}
    return [_with_shared(about, _of_gemini(as_dict(part))) for part in cast("list[object]", record["messages"])]


def _with_shared(about: Record, message: Record) -> Record:
    """Return a message with the fields of its conversation that it lacks; the speaker is that of the user."""
    has = [field for field, names in TURN_NAMES.items() if any(name in message for name in names)]
    if message.get("role") not in (None, "user", "human"):
        has.append("speaker")
    known = {name for field in has for name in TURN_NAMES[field]}
    return {**{key: item for key, item in about.items() if key not in known}, **message} if message else {}


def claude_code(record: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    """Yield the message of a line of Claude Code."""
    message = as_dict(record.get("message"))
    if not message or record.get("isMeta") or record.get("isCompactSummary") or _is_context(message.get("content")):
        left_out["notes of the program" if message else f"lines of the type {record['type']!s:.40}"] += 1
        return
    yield {
        "role": message.get("role"),
        "content": message.get("content"),
        "session_id": record.get("sessionId"),
        "occurred_at": record.get("timestamp"),
        "external_id": record.get("uuid"),
        "cwd": record.get("cwd"),
    }


def codex(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    """Yield the message, or the call of a tool or its result, of a line of Codex."""
    payload = as_dict(record["payload"])
    names = _CODEX_FIELDS.get(str(payload.get("type"))) if record["type"] == "response_item" else None
    if names is None:
        left_out[f"lines of the type {record['type']!s:.40}"] += 1
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
    first = content if isinstance(content, str) else next((part.get("text") for part in dicts(content)), "")
    return _CONTEXT.match(str(first).lstrip()) is not None


def claude(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    """Yield the messages of a conversation of a Claude export."""
    for message in dicts(record["chat_messages"]):
        parts = [part for part in dicts(message.get("content")) if part.get("type") in _CLAUDE_PARTS]
        says = any(part.get("text") for part in parts) or not message.get("text")
        files = [*dicts(message.get("attachments")), *dicts(message.get("files"))]
        yield {
            "content": parts if says else message["text"],
            "role": _SIDES.get(str(message.get("sender")), message.get("sender")),
            "session_id": record.get("uuid"),
            "conversation": record.get("name"),
            "occurred_at": message.get("created_at"),
            "external_id": message.get("uuid"),
            "attachments": [
                file_fields(None, each.get("file_name"), each.get("file_type"), each.get("extracted_content"))
                for each in files
            ],
        }


_CLAUDE_PARTS = ("text", "tool_use", "tool_result", "image")


def share_gpt(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    """Yield the messages of a conversation in the form of ShareGPT."""
    parts = [
        {"role": _SIDES.get(str(each.get("from")), each.get("from")), "content": each.get("value")}
        for each in dicts(record["conversations"])
    ]
    about = {key: item for key, item in record.items() if key != "conversations"}
    yield from conversation({**about, "messages": parts})


def open_webui(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    """Yield the messages of a chat of Open WebUI, of the branch displayed last, without reasoning."""
    history = as_dict(as_dict(record["chat"]).get("history"))
    messages, last, branch = {**as_dict(history.get("messages"))}, history.get("currentId"), list[Record]()
    while isinstance(last, str) and (message := as_dict(messages.pop(last, None))):
        branch.append(message)
        last = cast("object", message.get("parentId"))
    for message in reversed(branch):
        files = [(str(each.get("url") or ""), each) for each in dicts(message.get("files"))]
        yield {
            "content": _without_details(str(message.get("content") or "")),
            "role": message.get("role"),
            "session_id": record.get("id"),
            "conversation": record.get("title") or as_dict(record["chat"]).get("title"),
            "occurred_at": message.get("timestamp") or record.get("created_at"),
            "external_id": message.get("id"),
            "attachments": [
                file_fields("image" if each.get("type") == "image" else None, each.get("name"), url=url or None)
                for url, each in files
                if not url.startswith("data:") or each.get("name")
            ],
        }


def _without_details(text: str) -> str:
    """Return a text without the folded parts in which Open WebUI shows reasoning and calls of tools."""
    kept: list[str] = []
    while (begin := text.find("<details type=")) >= 0 and (end := text.find("</details>", begin)) >= 0:
        kept.append(text[:begin])
        text = text[end + len("</details>") :]
    return "".join((*kept, text)).strip()


def gemini(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    """Yield the messages of the `contents` of Gemini."""
    about = {key: item for key, item in record.items() if key != "contents"}
    yield from conversation({**about, "messages": record.get("contents")})


def gemini_message(record: Record, _: Counter[str], __: str | None) -> Iterator[Record]:
    """Yield a single message of Gemini."""
    yield _of_gemini(record)


def _of_gemini(message: Record) -> Record:
    """Return a message with the `parts` of Gemini as one with content; others unchanged."""
    if not isinstance(message.get("parts"), list) or "content" in message:
        return message
    content: list[Record] = []
    for part in dicts(message["parts"]):
        call, answer, data = (as_dict(part.get(name)) for name in ("functionCall", "functionResponse", "inlineData"))
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
