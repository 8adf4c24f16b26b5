"""LangChain chat history stored as turns of a memory, and messages in an order that chat models accept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from graphmem.adapters.conversation import Conversation
from graphmem.adapters.message_keys import id_of
from graphmem.errors import InvalidInput, NotFound
from graphmem.inputs import to_limit, to_text
from graphmem.memory import GraphMemory
from graphmem.messages import tool_calls_of
from graphmem.models import Episode
from graphmem.models.metadata import NO_TEXT, TOOL_CALL_ID, TOOL_STATUS

_CALLS = ("tool_use", "function_call", "custom_tool_call", "tool_call", "invalid_tool_call")  # parts of a content
_GIVEN_CALLS = ("tool_calls", "function_call")  # as OpenAI gave them, in additional arguments


class GraphMemoryChatMessageHistory(BaseChatMessageHistory):
    """Chat history of a session, stored as turns of a memory that are searchable and from which facts are extracted.

    A message with an id is stored once, even if it is added several times. Tool calls and their results are stored
    without extraction. For images, the URL and the description are stored, not the bytes; reasoning of models isn't
    stored.

    Parameters
    ----------
    memory
        Memory to store the messages in.
    session_id
        Id of the conversation.
    user, assistant
        Names of the speakers of messages without a name; "I" in a message refers to them.
    limit
        Maximum number of messages that `messages` returns; the last ones are kept.
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
        super().__init__()
        if not to_text("session_id", session_id or ""):
            raise InvalidInput("session_id: expected the id of a conversation, got an empty value")
        self._memory = memory
        self._session_id = session_id
        self._conversation = Conversation(memory, session_id, user, assistant)
        self._limit = to_limit(limit)
        self._returned = set[str]()
        """Ids of messages that were read: if they are added again, they aren't new, and may have been forgotten."""

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride] - as LangChain's own
        """The last messages of the session, oldest first, in an order that chat models accept.

        Tool results follow their calls. A result without a call is omitted, and so is a call without a result, unless
        it is the last message.
        """
        said = self._memory.session(self._session_id, limit=self._limit)
        found = [self._message(episode) for episode in said]
        self._returned.update(message.id for message in found if message.id)
        return in_valid_order(found)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages durably; extraction runs in the background. Empty messages are skipped."""
        new = [message for message in messages if message.id not in self._returned]
        self._conversation.store(new, [message.id or None for message in new])

    def clear(self) -> None:
        """Erase the session: its messages, and the facts that only they state."""
        self._returned.clear()
        with suppress(NotFound):
            self._memory.forget(session=self._session_id)

    def _message(self, episode: Episode) -> BaseMessage:
        """Return a turn as a message with its original id, or else the id of the episode."""
        number = id_of(self._conversation.key_of(episode) or episode.id)
        name = None if episode.speaker == self._conversation.names.get(episode.role or "user") else episode.speaker
        shared: dict[str, Any] = {"content": _content(episode), "id": number, "name": name}
        if episode.role == "assistant":
            return AIMessage(**shared, **_calls(episode))
        if episode.role == "system":
            return SystemMessage(**shared)
        if episode.role == "tool":
            status = "error" if episode.metadata.get(TOOL_STATUS) == "error" else "success"
            return ToolMessage(**shared, tool_call_id=str(episode.metadata.get(TOOL_CALL_ID) or ""), status=status)
        if episode.role in ("user", None):
            return HumanMessage(**shared)
        return ChatMessage(**shared, role=episode.role)


def _content(episode: Episode) -> str | list[dict[str, Any]]:
    """Return the text of a message, or a list of parts if it has attachments; those without a URL become text."""
    text = "" if episode.metadata.get(NO_TEXT) else episode.text
    if not episode.attachments:
        return text
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for each in episode.attachments:
        is_image = each.kind == "image" and (each.url or "").startswith(("http://", "https://"))
        image = {"type": "image_url", "image_url": {"url": each.url}}
        parts.append(image if is_image else {"type": "text", "text": str(each)})
    return parts


def _calls(episode: Episode) -> dict[str, Any]:
    """Return the tool calls of a message; calls whose arguments aren't a JSON object are returned as invalid."""
    valid: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for call in tool_calls_of(episode.metadata):
        try:
            arguments: object = json.loads(call.arguments)
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            valid.append({"name": call.name, "args": arguments, "id": call.id})
        else:
            invalid.append({"name": call.name, "args": call.arguments, "id": call.id, "error": None})
    return {"tool_calls": valid, "invalid_tool_calls": invalid}


def in_valid_order(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages with tool results directly after their calls, as chat models require.

    Results without a call are omitted, and calls without a result, unless in the last message.
    """
    answers: dict[str, list[tuple[int, ToolMessage]]] = {}
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            answers.setdefault(message.tool_call_id, []).append((place, message))
    ordered: list[BaseMessage] = []
    last = max((place for place, message in enumerate(messages) if not isinstance(message, ToolMessage)), default=0)
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AIMessage) or not (message.tool_calls or message.invalid_tool_calls):
            ordered.append(message)
            continue
        found: dict[str | None, ToolMessage] = {}
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            later = [answer for answer in answers.get(call["id"] or "", ()) if answer[0] > place]
            if later:
                found[call["id"]] = later[0][1]
                answers[call["id"] or ""].remove(later[0])
        if place != last:
            message = _only_answered(message, found)
        if message is not None:
            ordered += [message, *found.values()]
    return ordered


def _only_answered(message: AIMessage, found: Mapping[str | None, ToolMessage]) -> AIMessage | None:
    """Return a message with only its answered calls, or None if it has neither such a call nor text.

    Providers also send the calls that they find in its content and its additional arguments.
    """
    calls = [call for call in message.tool_calls if call["id"] in found]
    invalid = [call for call in message.invalid_tool_calls if call["id"] in found]
    if len(calls) + len(invalid) == len(message.tool_calls) + len(message.invalid_tool_calls):
        return message
    content = message.content
    if not isinstance(content, str):
        content = [part for part in content if isinstance(part, str) or not _is_open_call(part, found)]
    others = {name: each for name, each in message.additional_kwargs.items() if name not in _GIVEN_CALLS}
    fields = {"content": content, "additional_kwargs": others, "tool_calls": calls, "invalid_tool_calls": invalid}
    left = message.model_copy(update=fields)
    return left if calls or invalid or str(left.text).strip() else None


def _is_open_call(part: Mapping[Any, Any], found: Mapping[str | None, ToolMessage]) -> bool:
    return part.get("type") in _CALLS and (part.get("call_id") or part.get("id")) not in found
