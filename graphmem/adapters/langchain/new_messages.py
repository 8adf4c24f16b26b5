"""Selection of the messages of an agent that a run stores: neither repetitions nor what was forgotten.

System messages and what a middleware made, such as a summary, are never stored; nor is, in a session, a message of the
user that a retried run repeats before anything was answered. The rest depends on the run:

- With a session and a checkpointer, messages have lasting ids. Those are stored that no earlier run of the thread has
  stored: what was stored and is gone was forgotten. A thread that doesn't say what was stored may hold anything, so all
  before its last turn counts as stored once something was erased from the scope.
- With a session only, messages are known by their content (`turn_keys`): the last turn is stored, and messages before
  it unless something was erased. After the agent, what follows the messages that were stored before the model was
  called is new.
- Without a session, the messages since the last one of the user are stored, known by their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.config import get_config

from graphmem.adapters.conversation import Conversation
from graphmem.adapters.message_keys import lasting_key, new_keys


def said_in(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that were said: no system messages, and none that a middleware made."""
    return [message for message in messages if not isinstance(message, SystemMessage) and not _is_made(message)]


def is_of_user(message: BaseMessage) -> bool:
    """Return whether the user said a message."""
    return isinstance(message, HumanMessage) and not _is_made(message)


def _is_made(message: BaseMessage) -> bool:
    return "lc_source" in message.additional_kwargs


def is_checkpointed(conversation: Conversation) -> bool:
    """Return whether the messages of a run have lasting ids; a thread id alone doesn't say so."""
    has_checkpointer = get_config().get("configurable", {}).get("__pregel_checkpointer") is not None
    return conversation.session_id is not None and has_checkpointer


def key_of(message: BaseMessage) -> str:
    """Return the key of a message with a lasting id: its content, which may be edited, and the id."""
    return lasting_key(message, message.id or "")


def presumed_keys(messages: Iterable[BaseMessage], conversation: Conversation) -> list[str]:
    """Return the keys of messages that count as stored in a thread that doesn't say what was.

    Messages that the application or an earlier version left there are new, unless something was erased from the scope:
    it may have been one of them.
    """
    said = said_in(messages) if conversation.has_erased() else []
    return [key_of(message) for message in said[: _begin_of_turn(said)]]


def select_new(
    conversation: Conversation, said: Sequence[BaseMessage], before: Set[str], begun: Set[str], stored: Sequence[str]
) -> tuple[Sequence[object], Sequence[str | None]]:
    """Return the messages of a conversation to store, and their keys.

    Parameters
    ----------
    conversation
        The conversation.
    said
        Its messages.
    before
        Keys of messages that earlier runs stored.
    begun
        Ids of messages that this run stored.
    stored
        Keys of the stored messages of the conversation, in order.
    """
    if is_checkpointed(conversation):
        known = {*stored, *before}
        new = [message for message in _without_retries(said, known) if key_of(message) not in before]
        return new, [_stored_key(message, known) for message in new]
    if conversation.session_id is None:
        new = said[max(0, last_of_user(said)) :]
        return new, [message.id for message in new]
    if begun:
        new = [message for message in said if message.id not in begun]
        return new, new_keys(new, stored)
    begin = _begin_of_turn(said)
    history, turn = (_without_retries(part, stored) for part in (said[:begin], said[begin:]))
    return conversation.select_turn(history, turn, stored)


def last_of_user(said: Sequence[BaseMessage]) -> int:
    """Return the place of the last message of the user; -1 without one."""
    return max((place for place, message in enumerate(said) if is_of_user(message)), default=-1)


def _begin_of_turn(said: Sequence[BaseMessage]) -> int:
    """Return the place of the messages of the user with which the last turn begins."""
    begin = max(0, last_of_user(said))
    while begin > 0 and is_of_user(said[begin - 1]):
        begin -= 1
    return begin


def _stored_key(message: BaseMessage, stored: Collection[str]) -> str:
    """Return the key with which a message is stored; earlier versions stored messages by their ids alone."""
    return message.id if message.id is not None and message.id in stored else key_of(message)


def _without_retries(messages: Sequence[BaseMessage], stored: Iterable[str]) -> list[BaseMessage]:
    """Return messages without repetitions of a user message that wasn't answered yet, as a retried run adds them.

    The last stored message is the end of a turn, which may be the result of a tool.
    """
    kept: list[BaseMessage] = []
    waiting: list[Any] = []
    known = set(stored)
    last = next((message for message in reversed(messages) if _stored_key(message, known) in known), None)
    for message in messages:
        if is_of_user(message):
            if message.content in waiting:
                continue
            waiting.append(message.content)
        elif message is last or (isinstance(message, AIMessage) and not message.tool_calls):
            waiting.clear()
        kept.append(message)
    return kept
