"""Slack exports: the messages of a channel, a file for each day."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.ingest.formats.archives import File, modified_at, open_binary, size_of
from graphmem.ingest.formats.json_files import json_records
from graphmem.ingest.formats.source import MAX_RECORD_BYTES, Refused, Report, Source
from graphmem.ingest.formats.values import as_dict, as_list, moment
from graphmem.ingest.records import (
    reason_of,
)
from graphmem.inputs import Turn
from graphmem.models import Attachment

_SLACK_NOTES = re.compile(r"(?:channel|group)_\w+|bot_(?:add|remove)|pinned_item|unpinned_item|tombstone|reminder_add")
_SLACK_LISTS = ("rich_text", "rich_text_list")
_SLACK_LINK = re.compile(r"<([@#!]?)([^<>|]{1,500})(?:\|([^<>]{0,500}))?>")


def slack_turns(source: Source, refused: Report) -> Iterator[Turn]:
    """Yield the messages of one day of a channel in a Slack export, without join and leave notes and empty ones."""
    path = source.path.absolute() if isinstance(source.path, Path) else source.path or Path("slack", "-")
    folder, users = path.parent, path.parent.parent / "users.json"
    known = source.path is not None and users.is_file()
    people: Mapping[str, str] = _slack_people(users, modified_at(users, UTC)) if known else {}
    empty = 0
    for number, value in json_records(source, refused):
        message = as_dict(value)
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
    for each in map(as_dict, as_list(message.get("attachments"))):
        parts = [each.get(name) for name in ("pretext", "title", "text")]
        fields = [f"{field.get('title')}: {field.get('value')}" for field in map(as_dict, as_list(each.get("fields")))]
        said = [*(part for part in parts if isinstance(part, str) and part), *fields, *_block_words(each.get("blocks"))]
        if "from_url" not in each or not found[0]:
            found.append("\n".join(said) or str(each.get("fallback") or ""))
    return "\n".join(part for i, part in enumerate(found) if part and not any(part in one for one in found[:i]))


def _block_words(blocks: object, depth: int = 0) -> list[str]:
    """Return the lines of the blocks of a message, without buttons; lists in lists are read to the fourth level."""
    lines: list[str] = []
    for block in map(as_dict, as_list(blocks)):
        elements = as_list(block.get("elements"))
        if str(block.get("type")) in _SLACK_LISTS:
            lines += _block_words(elements, depth + 1) if depth < 4 else []
        elif block.get("type") != "actions":
            lines += [_element_words(each) for each in (block.get("text"), *as_list(block.get("fields")))]
            lines.append("".join(map(_element_words, elements)))
    return [line for line in lines if line]


def _element_words(element: object) -> str:
    one = as_dict(element)
    words = {"user": f"<@{one.get('user_id')}>", "emoji": f":{one.get('name')}:"}.get(str(one.get("type")))
    text = words or one.get("text") or one.get("url")
    return text if isinstance(text, str) else ""


def _slack_turn(message: dict[str, Any], text: str, channel: str, people: Mapping[str, str]) -> Turn:
    profile = as_dict(message.get("user_profile"))
    user, stamp, thread = message.get("user"), str(message.get("ts")), message.get("thread_ts")
    known = people.get(str(user)) or profile.get("real_name") or profile.get("display_name")
    at = moment(stamp)
    if at is None:
        raise InvalidInput(f"ts: {stamp[:40]!r} is not a timestamp of Slack")
    return Turn(
        text=text,
        speaker=known or message.get("username") or user,
        session_id=channel,
        occurred_at=at,
        external_id=f"slack:{channel}:{stamp}",
        attachments=tuple(_slack_file(as_dict(file)) for file in as_list(message.get("files"))),
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
    for user in map(as_dict, as_list(users)):
        profile = as_dict(user.get("profile"))
        names = (profile.get("real_name"), user.get("real_name"), profile.get("display_name"), user.get("name"))
        found[str(user.get("id"))] = next(
            (name for name in names if isinstance(name, str) and name), str(user.get("id"))
        )
    return found
