"""Conversations in JSON: their messages, as records with the fields of a turn."""

from __future__ import annotations

from typing import Any, cast

from graphmem.errors import InvalidInput
from graphmem.ingest.records import thread_of
from graphmem.inputs import TURN_NAMES

Record = dict[str, Any]

_IDS = ("id", *TURN_NAMES["external_id"])


def messages_of(value: object) -> list[Record]:
    """Return the messages of a record: of a conversation, or the record and its comments.

    Raises
    ------
    InvalidInput
        If the record is no object.
    """
    if not isinstance(value, dict):
        raise InvalidInput(f"expected an object with text, got {value!r:.60}")
    record = cast("Record", value)
    if isinstance(record.get("messages"), list) and "text" not in record and "content" not in record:
        return _conversation(record)
    return thread_of(record)


def _conversation(record: Record) -> list[Record]:
    """Return the messages of a list with the fields of their conversation, whose id is their session."""
    title = next((one for name in ("title", "name") if isinstance(one := record.get(name), str) and one), None)
    number = next((one for name in _IDS if isinstance(one := record.get(name), (str, int)) and one != ""), None)
    about = {key: item for key, item in record.items() if key not in ("messages", "title", "name", *_IDS)}
    named = any(about.get(name) for name in TURN_NAMES["session_id"])
    about |= {} if named or (number or title) is None else {"session_id": number or title}
    about |= {"conversation": title or str(number)} if title or (named and number) else {}
    return [_with_shared(about, _dict(part)) for part in cast("list[object]", record["messages"])]


def _with_shared(about: Record, message: Record) -> Record:
    """Return a message with the fields of its conversation that it lacks; the speaker is that of the user."""
    has = [field for field, names in TURN_NAMES.items() if any(name in message for name in names)]
    if message.get("role") not in (None, "user", "human"):
        has.append("speaker")
    known = {name for field in has for name in TURN_NAMES[field]}
    return {**{key: item for key, item in about.items() if key not in known}, **message} if message else {}


def _dict(value: object) -> Record:
    """Return a JSON value if it is an object, else an empty one."""
    return cast("Record", value) if isinstance(value, dict) else {}
