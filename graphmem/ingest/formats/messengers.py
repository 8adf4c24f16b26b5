"""Exports of messengers in JSON, as records with the fields of a turn."""

from __future__ import annotations

import mimetypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timezone
from typing import Any, cast

from graphmem.ingest.formats.values import Record, as_dict, dicts, file_fields, moment
from graphmem.messages import digest

_TELEGRAM_KINDS = {
    "voice_message": "audio",
    "audio_file": "audio",
    "sticker": "image",
    "video_message": "video",
    "video_file": "video",
    "animation": "video",
}


def telegram_account(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    """Yield the messages of all chats of a Telegram account."""
    for name in ("chats", "left_chats"):
        for chat in dicts(as_dict(record.get(name)).get("list")):
            yield from telegram({"messages": [], **chat}, left_out, file)


def telegram(chat: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    """Yield the messages of a Telegram chat."""
    for message in dicts(chat["messages"]):
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
    text, poll = message.get("text"), as_dict(message.get("poll"))
    parts = cast("list[object]", text) if isinstance(text, list) else [text]
    said = "".join(part if isinstance(part, str) else str(as_dict(part).get("text") or "") for part in parts)
    choices = [f"- {answer.get('text')}" for answer in dicts(poll.get("answers"))]
    return "\n".join([said, str(poll.get("question")), *choices]).strip() if poll else said


def _telegram_files(message: Record) -> list[Record]:
    found = [file_fields("image", message["photo"])] if message.get("photo") else []
    if message.get("file"):
        kind = _TELEGRAM_KINDS.get(str(message.get("media_type")))
        name, emoji = message.get("file_name") or message["file"], message.get("sticker_emoji")
        found.append(file_fields(kind, name, message.get("mime_type"), emoji))
    contact = as_dict(message.get("contact_information"))
    if contact:
        found.append(file_fields("contact", None, None, " ".join(filter(None, map(str, contact.values())))))
    if place := as_dict(message.get("location_information")):
        found.append(file_fields("location", None, None, f"{place.get('latitude')}, {place.get('longitude')}"))
    return found


def _with_offset(seconds: object, clock: object) -> object:
    """Return a Unix time as ISO text with the offset of a clock without one; the clock if that can't be."""
    try:
        at = datetime.fromtimestamp(int(cast("Any", seconds)), UTC)
        offset = datetime.fromisoformat(cast("Any", clock)) - at.replace(tzinfo=None)
        return at.astimezone(timezone(offset)).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return clock


_MESSENGER_KINDS: Mapping[str, str | None] = dict.fromkeys(("photos", "gifs", "sticker"), "image") | {
    "media": None,
    "videos": "video",
    "audio_files": "audio",
    "files": "file",
}
_LAST_MOMENT = 253_402_300_800_000  # end of the year 9999 in milliseconds


def messenger(record: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    """Yield the messages of a thread of Facebook or Instagram, in the order of time."""
    session = record.get("thread_path") or record.get("title")

    def sent(message: Record) -> float:
        at = message.get("timestamp_ms")
        return float(at) if isinstance(at, (int, float)) and abs(at) < _LAST_MOMENT else 0.0

    messages = dicts(record["messages"])[::-1]  # newest first, so that this sorts messages of one moment, too
    for message in sorted(messages, key=sent):
        if message.get("is_unsent") or "call_duration" in message:
            left_out["calls and withdrawn messages"] += 1
            continue
        speaker, text, share = (_mended(message.get(name)) for name in ("sender_name", "content", "share"))
        files = [
            file_fields(kind, each.get("uri"), None if kind else mimetypes.guess_type(str(each.get("uri")))[0])
            for name, kind in _MESSENGER_KINDS.items()
            for each in (dicts(message.get(name)) or [as_dict(message.get(name))])
            if each
        ]
        yield {
            "text": text or _mended(as_dict(share).get("share_text")) or as_dict(share).get("link"),
            "speaker": speaker,
            "session_id": session,
            "conversation": _mended(record.get("title")),
            "occurred_at": (at := moment(sent(message) / 1000)) and at.isoformat(),
            "external_id": f"messenger:{digest(session, speaker, text, sent(message), files)}",
            "attachments": files,
        }


def encrypted_messenger(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    """Yield the messages of a thread of Messenger as exported since chats are encrypted end to end."""
    names = {"senderName": "sender_name", "timestamp": "timestamp_ms", "text": "content", "isUnsent": "is_unsent"}
    messages = [{names.get(key, key): item for key, item in one.items()} for one in dicts(record["messages"])]
    thread = str(record["threadName"])
    title = re.sub(r"_\d{1,9}$", "", thread)
    yield from messenger({"thread_path": thread, "title": title, "messages": messages}, left_out, file)


def _mended(text: object) -> Any:
    """Return a text whose UTF-8 was read as Latin-1 as it was; others unchanged."""
    try:
        return text.encode("latin-1").decode("utf-8") if isinstance(text, str) else text
    except UnicodeError:
        return text


def google_chat(record: Record, left_out: Counter[str], file: str | None) -> Iterator[Record]:
    """Yield the messages of a space of Google Chat."""
    for message in dicts(record["messages"]):
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
            "speaker": as_dict(message.get("creator")).get("name") or as_dict(message.get("creator")).get("email"),
            "session_id": number.partition("/")[0] or file,
            "occurred_at": at,
            "external_id": number,
            "attachments": [
                file_fields(None, each.get("original_name")) for each in dicts(message.get("attached_files"))
            ],
        }


def discord(record: Record, left_out: Counter[str], _: str | None) -> Iterator[Record]:
    """Yield the messages of a channel, as DiscordChatExporter writes them."""
    session = " / ".join(str(as_dict(record.get(name)).get("name") or name) for name in ("guild", "channel"))
    for message in dicts(record["messages"]):
        if str(message.get("type", "Default")) not in _DISCORD_MESSAGES:
            left_out["service messages"] += 1
            continue
        author = as_dict(message.get("author"))
        embeds = (each.get(name) for each in dicts(message.get("embeds")) for name in ("title", "description"))
        attached = dicts(message.get("attachments"))
        files = [file_fields(None, each.get("fileName"), url=each.get("url")) for each in attached]
        stickers = [file_fields("image", each.get("name")) for each in dicts(message.get("stickers"))]
        yield {
            "text": message.get("content") or "\n".join(each for each in embeds if isinstance(each, str) and each),
            "speaker": author.get("nickname") or author.get("name"),
            "session_id": session,
            "occurred_at": message.get("timestamp"),
            "external_id": f"discord:{session}:{message.get('id')}",
            "attachments": files + stickers,
            "reply_to": as_dict(message.get("reference")).get("messageId"),
        }


_DISCORD_MESSAGES = ("Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "23")
