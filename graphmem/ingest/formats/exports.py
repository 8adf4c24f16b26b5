"""Kinds of exports in JSON, told by their fields: conversations with assistants, messengers, trackers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.assistants import (
    claude,
    claude_code,
    codex,
    conversation,
    gemini,
    gemini_message,
    open_webui,
    share_gpt,
)
from graphmem.ingest.formats.messengers import (
    discord,
    encrypted_messenger,
    google_chat,
    messenger,
    telegram,
    telegram_account,
)
from graphmem.ingest.formats.trackers import github
from graphmem.ingest.formats.values import Record, as_dict, dicts
from graphmem.ingest.records import thread_of
from graphmem.messages import THOUGHTS

_LISTS = ("messages", "conversations", "contents")
_PARTS = ("message", "chat", "author", "user")


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
        Fields of its message, chat or author, or of at least one of its first messages.
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
        messages = [message for name in _LISTS for message in dicts(record.get(name))[:9]]
        messages += [as_dict(record.get(name)) for name in _PARTS]
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
        return conversation(record)
    return thread_of(record)


def _says_something(message: Record) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in dicts(cast("object", content)) if part.get("type") not in THOUGHTS]
    return bool(content or any(message.get(name) for name in ("text", "attachments", "tool_calls", "call_id")))


EXPORTS = tuple(
    Export(name, frozenset(fields.split()), frozenset(of_message.split()), frozenset(absent.split()), read)
    for name, fields, of_message, absent, read in (
        ("Claude Code", "type message sessionId", "role content", "", claude_code),
        ("Claude Code", "type parentUuid sessionId", "", "", claude_code),
        ("Claude Code", "type operation sessionId", "", "", claude_code),
        ("Claude Code", "type sessionId", "", "text content message", claude_code),
        ("Claude Code", "type leafUuid", "", "text content message", claude_code),
        ("Claude Code", "type messageId snapshot", "", "text content message", claude_code),
        ("Codex", "type payload timestamp", "", "text content message", codex),
        ("Claude", "chat_messages", "", "", claude),
        ("ShareGPT", "conversations", "from value", "", share_gpt),
        ("Gemini", "contents", "parts", "", gemini),
        ("Gemini", "role parts", "", "text content", gemini_message),
        ("Open WebUI", "chat", "history", "text content messages", open_webui),
        ("Telegram", "about chats", "", "", telegram_account),
        ("Telegram", "type id messages", "id type date text", "", telegram),
        ("Messenger", "participants messages", "sender_name timestamp_ms", "", messenger),
        ("Messenger", "participants threadName messages", "senderName timestamp", "", encrypted_messenger),
        ("Google Chat", "messages", "creator created_date", "", google_chat),
        ("GitHub", "title body author", "login", "text content message", github),
        ("GitHub", "title body user", "login", "text content message", github),
        ("Discord", "guild channel messages", "", "", discord),
    )
)
EXPORT_NAMES = tuple(dict.fromkeys(export.name for export in EXPORTS))
