"""OpenAI Agents SDK: a session whose items are turns of a memory, and tools (docs/how-to/agents.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from graphmem.adapters.conversation import Conversation
from graphmem.adapters.notes import ACTIONS, MANAGE, SEARCH, Action, Notes
from graphmem.errors import InvalidInput, MissingExtra, NotFound
from graphmem.inputs import to_limit, to_text
from graphmem.memory import GraphMemory
from graphmem.messages import digest, is_message
from graphmem.models import Episode, new_id
from graphmem.models.metadata import ATTACHMENTS

try:
    from agents import FunctionTool, TResponseInputItem, function_tool
    from agents.memory import SessionABC, SessionSettings
    from agents.models.fake_id import FAKE_RESPONSES_ID
except ImportError as error:
    raise MissingExtra("graphmem.adapters.openai_agents", "openai-agents") from error

_ITEM = "item"
_COMPARED = 100  # last items of a session among which messages without an answer are found
_FIELDS = ("type", "role", "content", "name", "arguments", "call_id", "output")


class GraphMemorySession(SessionABC):
    """Session of an agent, stored as turns of a memory that are searchable and from which facts are extracted.

    Items come back exactly as they were added, with tool calls and reasoning.

    Parameters
    ----------
    memory
        Memory to store the items in.
    session_id
        Id of the conversation.
    user, assistant
        Names of the speakers; "I" in a message refers to them.
    limit
        Maximum number of items that `get_items` returns by default; the last ones are kept.
    """

    def __init__(
        self,
        memory: GraphMemory,
        session_id: str,
        *,
        user: str | None = None,
        assistant: str | None = None,
        limit: int = 1000,
    ) -> None:
        if not to_text("session_id", session_id or ""):
            raise InvalidInput("session_id: expected the id of a conversation, got an empty value")
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings(limit=to_limit(limit))
        self._memory = memory
        self._conversation = Conversation(memory, session_id, user, assistant)
        self._limit = limit

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last items in order of time; results of tools whose call is beyond the limit are left out."""
        stored = await self._memory.asession(self.session_id, limit=self._limit if limit is None else limit)
        items = [item for episode in stored if (item := _item(episode)) is not None]
        calls = {item.get("call_id") for item in items if not _is_output(item)}
        kept = [item for item in items if not _is_output(item) or item.get("call_id") in calls]
        return cast("list[TResponseInputItem]", kept)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items durably; extraction runs in the background.

        Left out are messages of the user with which the session ends, if they wait for an answer: a run that failed and
        is tried again adds them again. So are calls and results of tools that are stored since the last message of the
        user; later, a provider may give their ids again.
        """
        given = [cast("dict[str, Any]", item) for item in items]
        stored = await self._memory.asession(self.session_id, limit=_COMPARED)
        new = given[_unanswered(given, stored) :]
        known = set[str]() if any(map(_is_input, new)) else self._since_input(stored)
        new = [item for item in new if _key(item) not in known]
        keys = [key and f"{key}:{new_id()}" for key in map(_key, new)]
        await self._conversation.astore([_message(item) for item in new], keys, ())

    def _since_input(self, stored: Sequence[Episode]) -> set[str]:
        """Return the keys of stored items since the last message of the user."""
        keys = set[str]()
        for episode in stored:
            if (item := _item(episode)) is not None and _is_input(item):
                keys.clear()
            elif key := self._conversation.key_of(episode):
                keys.add(key.rpartition(":")[0])
        return keys

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the last item and return it."""
        for episode in await self._memory.asession(self.session_id, limit=1):
            await self._memory.aforget(episode=episode.id, clean_files=False)
            return cast("TResponseInputItem | None", _item(episode))
        return None

    async def clear_session(self) -> None:
        """Erase the session: its items, and the facts that only they state."""
        with suppress(NotFound):
            await self._memory.aforget(session=self.session_id)


def memory_tools(
    memory: GraphMemory, *, user: str | None = None, limit: int = 10, actions: Sequence[Action] = ACTIONS
) -> list[FunctionTool]:
    """Return the tools `manage_memory` and `search_memory`; parameters as in `graphmem.adapters.langchain`."""
    notes = Notes(memory, user, limit, actions)
    return [
        function_tool(notes.manage_memory, name_override="manage_memory", description_override=MANAGE),
        function_tool(notes.search_memory, name_override="search_memory", description_override=SEARCH),
    ]


def _unanswered(given: Sequence[dict[str, Any]], stored: Sequence[Episode]) -> int:
    """Return how many of the first items are messages of the user that wait for an answer in the session."""
    waiting: list[dict[str, Any]] = []
    for episode in stored:
        if (item := _item(episode)) is not None and _is_input(item):
            waiting.append(item)
        elif item is not None and item.get("role") == "assistant":
            waiting.clear()
    most = min(len(given), len(waiting))
    return next((n for n in range(most, 0, -1) if given[:n] == waiting[-n:]), 0)


def _message(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as the fields of a message, with the item itself in the metadata."""
    metadata = {_ITEM: json.dumps(item, ensure_ascii=False)}
    content = item.get("content")
    has_content = bool(content.strip() if isinstance(content, str) else content)
    if is_message(item) and (has_content or "call_id" in item):
        return {**{name: item[name] for name in _FIELDS if name in item}, "metadata": metadata}
    kind = str(item.get("type") or "message")
    role = str(item.get("role") or "assistant")
    return {"role": role, "content": "", ATTACHMENTS: [{"kind": kind}], "metadata": metadata}


def _key(item: dict[str, Any]) -> str | None:
    """Return a key of an item that the API identifies: a call of a tool, its result, reasoning; None for messages."""
    given = item.get("call_id") or item.get("id")
    if item.get("role") or not isinstance(given, str) or given == FAKE_RESPONSES_ID:
        return None
    return f"{given}:{digest(json.dumps(item, sort_keys=True))}"


def _is_input(item: dict[str, Any]) -> bool:
    return item.get("role") == "user"


def _item(episode: Episode) -> dict[str, Any] | None:
    stored = episode.metadata.get(_ITEM)
    try:
        return json.loads(stored) if isinstance(stored, str) else None
    except ValueError:
        return None  # redaction of an earlier version damaged it


def _is_output(item: dict[str, Any]) -> bool:
    return str(item.get("type") or "").endswith("_call_output")
