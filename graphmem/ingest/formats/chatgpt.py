"""ChatGPT exports: of each conversation the branch displayed last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.json_files import json_records
from graphmem.ingest.formats.source import Refused, Report, Source
from graphmem.ingest.formats.values import as_dict, as_list, moment
from graphmem.ingest.records import (
    reason_of,
)
from graphmem.inputs import Turn
from graphmem.messages import read_content
from graphmem.models import Attachment

_NOT_SAID = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "system_error")


def chatgpt_turns(source: Source, refused: Report) -> Iterator[Turn]:
    """Yield the turns of the conversations in a ChatGPT export, for each the branch displayed last."""
    for number, value in json_records(source, refused):
        conversation = as_dict(value)
        if not isinstance(conversation.get("mapping"), dict):
            refused(Refused(source.name, number, "not a conversation of a ChatGPT export: mapping is missing"))
            continue
        for message in _branch(as_dict(conversation["mapping"]), conversation.get("current_node")):
            try:
                turn = _chatgpt_turn(message, conversation)
            except InvalidInput as error:
                refused(Refused(source.name, number, reason_of(error)))
                continue
            if turn is not None:
                yield turn


def _branch(mapping: dict[str, Any], last: object) -> list[dict[str, Any]]:
    """Return the messages from the root to the last node, following the parents."""
    if not isinstance(last, str) or last not in mapping:
        last = next(reversed(mapping), None)
    found: list[dict[str, Any]] = []
    visited: set[str] = set()
    while isinstance(last, str) and last in mapping and last not in visited:
        visited.add(last)
        node = as_dict(mapping[last])
        if message := as_dict(node.get("message")):
            found.append(message)
        last = cast("object", node.get("parent"))
    return found[::-1]


def _chatgpt_turn(message: dict[str, Any], conversation: dict[str, Any]) -> Turn | None:
    content, about = as_dict(message.get("content")), as_dict(message.get("metadata"))
    if content.get("content_type") in _NOT_SAID or about.get("is_visually_hidden_from_conversation"):
        return None
    parts = as_list(content.get("parts")) or [content.get("text") or content.get("result") or ""]
    said = read_content({}, [_described(part) for part in parts])
    for file in map(as_dict, as_list(about.get("attachments"))):
        said["attachments"].append(
            Attachment(kind="file", name=file.get("name"), media_type=file.get("mimeType"), size=file.get("size"))
        )
    if not said["text"].strip() and not said["attachments"]:
        return None
    at, title = message.get("create_time"), conversation.get("title")
    return Turn(
        **said,
        role=as_dict(message.get("author")).get("role"),
        session_id=conversation.get("conversation_id") or conversation.get("id"),
        occurred_at=moment(at if at is not None else conversation.get("create_time")),
        external_id=message.get("id"),
        metadata={"conversation": title} if isinstance(title, str) else {},
    )


def _described(part: object) -> object:
    """Return a part of a message; a generated image gets its prompt as the description."""
    made = as_dict(as_dict(as_dict(part).get("metadata")).get("dalle"))
    return {**as_dict(part), "description": made.get("prompt")} if made else part
