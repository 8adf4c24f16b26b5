"""Chat exports in JSON: the messages of each kind, as records with the fields of a turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timezone
from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.records import thread_of
from graphmem.inputs import TURN_NAMES
from graphmem.messages import THOUGHTS, digest

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
    session = number if number is not None else title
    about |= {} if named or session is None else {"session_id": session}
    about |= {"conversation": title or str(number)} if title or (named and number is not None) else {}
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


def _codex(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    payload = _dict(record["payload"])
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


# Messengers -------------------------------------------------------------------------------------------


_TELEGRAM_KINDS = {
    "voice_message": "audio",
    "audio_file": "audio",
    "sticker": "image",
    "video_message": "video",
    "video_file": "video",
    "animation": "video",
}


def _telegram_account(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    for name in ("chats", "left_chats"):
        for chat in _dicts(_dict(record.get(name)).get("list")):
            yield from _telegram({"messages": [], **chat}, left_out, file)


def _telegram(chat: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    for message in _dicts(chat["messages"]):
        if message.get("type") != "message":
            left_out["service messages"] += 1
            continue
        yield {
            "text": _telegram_text(message),
            "speaker": message.get("from") or message.get("from_id"),
            "session_id": str(chat.get("id")),
            "conversation": chat.get("name"),
            "occurred_at": _with_offset(message.get("date_unixtime"), message.get("date")),
            "external_id": f"telegram:{chat.get('id')}:{message.get('id')}",
            "attachments": _telegram_files(message),
            "reply_to": message.get("reply_to_message_id"),
            "forwarded_from": message.get("forwarded_from"),
        }


def _telegram_text(message: Record) -> str:
    text, poll = message.get("text"), _dict(message.get("poll"))
    parts = cast("list[object]", text) if isinstance(text, list) else [text]
    said = "".join(part if isinstance(part, str) else str(_dict(part).get("text") or "") for part in parts)
    choices = [f"- {answer.get('text')}" for answer in _dicts(poll.get("answers"))]
    return "\n".join([said, str(poll.get("question")), *choices]).strip() if poll else said


def _telegram_files(message: Record) -> list[Record]:
    found = [_file("image", message["photo"])] if message.get("photo") else []
    if message.get("file"):
        kind = _TELEGRAM_KINDS.get(str(message.get("media_type")))
        name, emoji = message.get("file_name") or message["file"], message.get("sticker_emoji")
        found.append(_file(kind, name, message.get("mime_type"), emoji))
    contact = _dict(message.get("contact_information"))
    if contact:
        found.append(_file("contact", None, None, " ".join(filter(None, map(str, contact.values())))))
    if place := _dict(message.get("location_information")):
        found.append(_file("location", None, None, f"{place.get('latitude')}, {place.get('longitude')}"))
    return found


def _with_offset(seconds: object, clock: object) -> object:
    """Return a Unix time as ISO text with the offset of a clock without one; the clock if that can't be."""
    try:
        at = datetime.fromtimestamp(int(cast("Any", seconds)), UTC)
        offset = datetime.fromisoformat(cast("Any", clock)) - at.replace(tzinfo=None)
        return at.astimezone(timezone(offset)).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return clock


_MESSENGER_KINDS = dict.fromkeys(("photos", "gifs", "sticker"), "image") | {
    "videos": "video",
    "audio_files": "audio",
    "files": "file",
}


_LAST_MOMENT = 253_402_300_800_000  # end of the year 9999 in milliseconds


def _messenger(record: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    session = record.get("thread_path") or record.get("title")

    def sent(message: Record) -> float:
        at = message.get("timestamp_ms")
        return float(at) if isinstance(at, (int, float)) and abs(at) < _LAST_MOMENT else 0.0

    messages = _dicts(record["messages"])[::-1]  # newest first, so that this sorts messages of one moment, too
    for message in sorted(messages, key=sent):
        if message.get("is_unsent") or "call_duration" in message:
            left_out["calls and withdrawn messages"] += 1
            continue
        speaker, text, share = (_mended(message.get(name)) for name in ("sender_name", "content", "share"))
        files = [
            _file(kind, each.get("uri"))
            for name, kind in _MESSENGER_KINDS.items()
            for each in (_dicts(message.get(name)) or [_dict(message.get(name))])
            if each
        ]
        yield {
            "text": text or _mended(_dict(share).get("share_text")) or _dict(share).get("link"),
            "speaker": speaker,
            "session_id": session,
            "conversation": _mended(record.get("title")),
            "occurred_at": _moment(sent(message) / 1000),
            "external_id": f"messenger:{digest(session, speaker, text, sent(message), files)}",
            "attachments": files,
        }


def _mended(text: object) -> Any:
    """Return a text whose UTF-8 was read as Latin-1 as it was; others unchanged."""
    try:
        return text.encode("latin-1").decode("utf-8") if isinstance(text, str) else text
    except UnicodeError:
        return text


def _google_chat(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    for message in _dicts(record["messages"]):
        if message.get("message_state") == "DELETED":
            left_out["deleted messages"] += 1
            continue
        number, said = str(message.get("message_id") or ""), str(message.get("created_date")).replace("\u202f", " ")
        try:
            at = datetime.strptime(said, "%A, %B %d, %Y at %I:%M:%S %p %Z").replace(tzinfo=UTC).isoformat()
        except ValueError:
            at = said  # the refusal shows it
        yield {
            "text": message.get("text"),
            "speaker": _dict(message.get("creator")).get("name") or _dict(message.get("creator")).get("email"),
            "session_id": number.partition("/")[0] or file,
            "occurred_at": at,
            "external_id": number,
            "attachments": [_file(None, each.get("original_name")) for each in _dicts(message.get("attached_files"))],
        }


def _discord(record: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    session = " / ".join(str(_dict(record.get(name)).get("name") or name) for name in ("guild", "channel"))
    for message in _dicts(record["messages"]):
        if str(message.get("type", "Default")) not in _DISCORD_MESSAGES:
            left_out["service messages"] += 1
            continue
        author = _dict(message.get("author"))
        embeds = (each.get(name) for each in _dicts(message.get("embeds")) for name in ("title", "description"))
        attached = _dicts(message.get("attachments"))
        files = [_file(None, each.get("fileName"), url=each.get("url")) for each in attached]
        stickers = [_file("image", each.get("name")) for each in _dicts(message.get("stickers"))]
        yield {
            "text": message.get("content") or "\n".join(each for each in embeds if isinstance(each, str) and each),
            "speaker": author.get("nickname") or author.get("name"),
            "session_id": session,
            "occurred_at": message.get("timestamp"),
            "external_id": f"discord:{session}:{message.get('id')}",
            "attachments": files + stickers,
            "reply_to": _dict(message.get("reference")).get("messageId"),
        }


_DISCORD_MESSAGES = ("Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "23")


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
        ("Telegram", "about chats", "", "", _telegram_account),
        ("Telegram", "type id messages", "id type date text", "", _telegram),
        ("Messenger", "participants messages", "sender_name timestamp_ms", "", _messenger),
        ("Google Chat", "messages", "creator created_date", "", _google_chat),
        ("Discord", "guild channel messages", "", "", _discord),
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


def _moment(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _dict(value: object) -> Record:
    """Return a JSON value if it is an object, else an empty one."""
    return cast("Record", value) if isinstance(value, dict) else {}


def _dicts(value: object) -> list[Record]:
    """Return the objects in a JSON value that is an array, else none."""
    items = cast("list[object]", value) if isinstance(value, list) else ()
    return [cast("Record", item) for item in items if isinstance(item, dict)]
