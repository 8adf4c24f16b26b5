"""Readers of JSON other than JSON Lines: arrays, pretty-printed objects, ChatGPT and Slack exports."""

from __future__ import annotations

import codecs
import html
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.source import (
    MAX_RECORD_BYTES,
    File,
    Refused,
    Report,
    Source,
    modified_at,
    open_binary,
    size_of,
)
from graphmem.ingest.records import reason_of
from graphmem.inputs import Turn
from graphmem.messages import read_content
from graphmem.models import Attachment

_CHUNK = 1 << 20
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_CUT_OFF = 12  # characters at the end of the buffer that may be an incomplete token: \\u12, fals, -
_NOT_SAID = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "system_error")
_SLACK_NOTES = re.compile(r"(?:channel|group)_\w+|bot_(?:add|remove)|pinned_item|unpinned_item|tombstone|reminder_add")
_SLACK_LISTS = ("rich_text", "rich_text_list")
_SLACK_LINK = re.compile(r"<([@#!]?)([^<>|]{1,500})(?:\|([^<>]{0,500}))?>")


def json_values(stream: IO[bytes]) -> Iterator[tuple[int, object]]:
    """Yield the numbered values of a JSON text: the elements of an array, or concatenated values.

    One value at a time is held in memory. An incomplete value is parsed again once the buffer has doubled, so that
    reading takes linear time.

    Raises
    ------
    InvalidInput
        If the text is not JSON or a value is longer than 64 MiB; earlier values have been yielded.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    text, at, number, inside, ended = "", 0, 0, False, False

    def more() -> None:
        nonlocal text, at, ended
        if len(text) - at > MAX_RECORD_BYTES:
            raise InvalidInput(f"record {number + 1} is longer than {MAX_RECORD_BYTES >> 20} MiB")
        data = stream.read(max(_CHUNK, len(text) - at))
        ended = not data
        try:
            text, at = text[at:] + decode(data, ended), 0
        except UnicodeDecodeError as error:
            raise InvalidInput(f"not UTF-8 after record {number} (byte 0x{error.object[error.start]:02x})") from None

    while True:
        at = cast("re.Match[str]", _BETWEEN.match(text, at)).end()
        if at == len(text):
            if ended:
                break
            more()
        elif text[at] == "]" and inside:
            at, inside = at + 1, False
        elif text[at] == "[" and not inside:
            at, inside = at + 1, True
        else:
            try:
                value, end = _DECODER.raw_decode(text, at)
            except json.JSONDecodeError as error:
                if ended or not (error.msg.startswith("Unterminated") or error.pos >= len(text) - _CUT_OFF):
                    raise InvalidInput(f"not JSON in record {number + 1}: {error.msg}") from None
                more()
                continue
            except RecursionError:
                raise InvalidInput(f"unreadable JSON: record {number + 1} is nested too deeply") from None
            except ValueError:
                raise InvalidInput(f"unreadable JSON: a number in record {number + 1} has too many digits") from None
            if end == len(text) and not ended and not isinstance(value, (dict, list, str)):
                more()  # a number may continue
                continue
            at, number = end, number + 1
            yield number, value
    if inside:
        raise InvalidInput(f"the file is cut off: its array doesn't end after record {number}")


def records(source: Source, refused: Report) -> Iterator[tuple[int, object]]:
    """Yield the values of a file; report the first invalid one to `refused`."""
    last = 0
    try:
        for number, value in json_values(source.stream):
            last = number
            yield number, value
    except InvalidInput as error:
        refused(Refused(source.name, last + 1, str(error)))


# ChatGPT -------------------------------------------------------------------------------------------


def chatgpt_turns(source: Source, refused: Report) -> Iterator[Turn]:
    """Yield the turns of the conversations in a ChatGPT export, for each the branch displayed last."""
    for number, value in records(source, refused):
        conversation = _dict(value)
        if not isinstance(conversation.get("mapping"), dict):
            refused(Refused(source.name, number, "not a conversation of a ChatGPT export: mapping is missing"))
            continue
        for message in _branch(_dict(conversation["mapping"]), conversation.get("current_node")):
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
        node = _dict(mapping[last])
        if message := _dict(node.get("message")):
            found.append(message)
        last = cast("object", node.get("parent"))
    return found[::-1]


def _chatgpt_turn(message: dict[str, Any], conversation: dict[str, Any]) -> Turn | None:
    content, about = _dict(message.get("content")), _dict(message.get("metadata"))
    if content.get("content_type") in _NOT_SAID or about.get("is_visually_hidden_from_conversation"):
        return None
    parts = _list(content.get("parts")) or [content.get("text") or content.get("result") or ""]
    said = read_content({}, [_described(part) for part in parts])
    for file in map(_dict, _list(about.get("attachments"))):
        said["attachments"].append(
            Attachment(kind="file", name=file.get("name"), media_type=file.get("mimeType"), size=file.get("size"))
        )
    if not said["text"].strip() and not said["attachments"]:
        return None
    at, title = message.get("create_time"), conversation.get("title")
    return Turn(
        **said,
        role=_dict(message.get("author")).get("role"),
        session_id=conversation.get("conversation_id") or conversation.get("id"),
        occurred_at=_moment(at if at is not None else conversation.get("create_time")),
        external_id=message.get("id"),
        metadata={"conversation": title} if isinstance(title, str) else {},
    )


def _described(part: object) -> object:
    """Return a part of a message; a generated image gets its prompt as the description."""
    made = _dict(_dict(_dict(part).get("metadata")).get("dalle"))
    return {**_dict(part), "description": made.get("prompt")} if made else part


def _moment(seconds: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(cast("Any", seconds)), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


# Slack ---------------------------------------------------------------------------------------------


def slack_turns(source: Source, refused: Report) -> Iterator[Turn]:
    """Yield the messages of one day of a channel in a Slack export, without join and leave notes and empty ones."""
    path = source.path.absolute() if isinstance(source.path, Path) else source.path or Path("slack", "-")
    folder, users = path.parent, path.parent.parent / "users.json"
    known = source.path is not None and users.is_file()
    people: Mapping[str, str] = _slack_people(users, modified_at(users, UTC)) if known else {}
    empty = 0
    for number, value in records(source, refused):
        message = _dict(value)
        if _SLACK_NOTES.fullmatch(str(message.get("subtype"))):
            continue
        text = _slack_text(_slack_words(message), people)
        if message and not text.strip() and not message.get("files"):
            empty += 1
            continue
        try:
            yield _slack_turn(message, text, folder.name, people)
        except InvalidInput as error:
            refused(Refused(source.name, number, reason_of(error)))
    source.note_left_out({"messages without content": empty})


def _slack_words(message: dict[str, Any]) -> str:
    """Return the text of a message, or of its blocks, and of its attachments; of links if it has no other text."""
    found = [str(message.get("text") or "") or "\n".join(_block_words(message.get("blocks")))]
    for each in map(_dict, _list(message.get("attachments"))):
        parts = [each.get(name) for name in ("pretext", "title", "text")]
        fields = [f"{field.get('title')}: {field.get('value')}" for field in map(_dict, _list(each.get("fields")))]
        said = [*(part for part in parts if isinstance(part, str) and part), *fields, *_block_words(each.get("blocks"))]
        if "from_url" not in each or not found[0]:
            found.append("\n".join(said) or str(each.get("fallback") or ""))
    return "\n".join(part for i, part in enumerate(found) if part and not any(part in one for one in found[:i]))


def _block_words(blocks: object, depth: int = 0) -> list[str]:
    """Return the lines of the blocks of a message, without buttons; lists in lists are read to the fourth level."""
    lines: list[str] = []
    for block in map(_dict, _list(blocks)):
        elements = _list(block.get("elements"))
        if str(block.get("type")) in _SLACK_LISTS:
            lines += _block_words(elements, depth + 1) if depth < 4 else []
        elif block.get("type") != "actions":
            lines += [_element_words(each) for each in (block.get("text"), *_list(block.get("fields")))]
            lines.append("".join(map(_element_words, elements)))
    return [line for line in lines if line]


def _element_words(element: object) -> str:
    one = _dict(element)
    words = {"user": f"<@{one.get('user_id')}>", "emoji": f":{one.get('name')}:"}.get(str(one.get("type")))
    text = words or one.get("text") or one.get("url")
    return text if isinstance(text, str) else ""


def _slack_turn(message: dict[str, Any], text: str, channel: str, people: Mapping[str, str]) -> Turn:
    profile = _dict(message.get("user_profile"))
    user, stamp, thread = message.get("user"), str(message.get("ts")), message.get("thread_ts")
    known = people.get(str(user)) or profile.get("real_name") or profile.get("display_name")
    at = _moment(stamp)
    if at is None:
        raise InvalidInput(f"ts: {stamp[:40]!r} is not a timestamp of Slack")
    return Turn(
        text=text,
        speaker=known or message.get("username") or user,
        session_id=channel,
        occurred_at=at,
        external_id=f"slack:{channel}:{stamp}",
        attachments=tuple(_slack_file(_dict(file)) for file in _list(message.get("files"))),
        metadata={"thread": str(thread)} if thread else {},
    )


def _slack_file(file: dict[str, Any]) -> Attachment:
    kind = str(file.get("mimetype") or "").partition("/")[0]
    title = file.get("title") if file.get("title") != file.get("name") else None
    return Attachment(
        kind=kind if kind in ("image", "audio", "video") else "file",
        name=file.get("name"),
        media_type=file.get("mimetype"),
        url=file.get("permalink") or file.get("url_private"),
        description=file.get("alt_txt") or title,
        size=file.get("size"),
    )


def _slack_text(text: str, people: Mapping[str, str]) -> str:
    """Return the plain text of a Slack message: mentions as names, links as label and address."""

    def shown(match: re.Match[str]) -> str:
        sign, target, label = match.groups()
        if sign == "@":
            return f"@{people.get(target) or label or target}"
        if sign:
            return f"{'#' if sign == '#' else '@'}{label or target.partition('^')[0]}"
        return f"{label} ({target})" if label and label not in target else target

    return html.unescape(_SLACK_LINK.sub(shown, text))


@lru_cache(maxsize=8)
def _slack_people(path: File, modified: datetime | None) -> Mapping[str, str]:
    """Return user id → name from the users.json of an export; `modified` is a part of the cache key."""
    del modified
    try:
        with open_binary(path) as stream:
            users: object = json.loads(stream.read()) if size_of(path) <= MAX_RECORD_BYTES else []
    except (OSError, ValueError, RecursionError):
        return {}
    found: dict[str, str] = {}
    for user in map(_dict, _list(users)):
        profile = _dict(user.get("profile"))
        names = (profile.get("real_name"), user.get("real_name"), profile.get("display_name"), user.get("name"))
        found[str(user.get("id"))] = next(
            (name for name in names if isinstance(name, str) and name), str(user.get("id"))
        )
    return found


def _dict(value: object) -> dict[str, Any]:
    """Return a JSON value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    """Return a JSON value if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []
