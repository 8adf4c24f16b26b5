"""GraphMemoryChatMessageHistory: LangChain's messages as turns of a memory, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from graphmem import GraphMemory, InvalidInput
from graphmem.adapters.langchain import GraphMemoryChatMessageHistory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[GraphMemory]:
    with GraphMemory.open(
        f"sqlite:///{tmp_path}/memory.db", extractor="none", embeddings="none", background=False
    ) as opened:
        yield opened


def shape(messages: Sequence[BaseMessage]) -> list[tuple[str, str, str | None]]:
    return [(message.type, str(message.text), message.name) for message in messages]


def test_messages_come_back_as_they_were_added(memory: GraphMemory) -> None:
    added = [
        SystemMessage("Be brief."),
        HumanMessage("I moved to Lisbon.", name="Maya"),
        AIMessage("Noted."),
        ToolMessage("20 degrees", tool_call_id="call-7"),
        ChatMessage(content="I agree.", role="critic"),
    ]
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages(added)
    assert shape(history.messages) == shape(added)
    [tool] = [message for message in history.messages if isinstance(message, ToolMessage)]
    assert tool.tool_call_id == "call-7"


def test_what_was_said_can_be_searched_with_its_speaker(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk", user="Maya", assistant="Helper")
    history.add_user_message("I moved to Lisbon.")
    history.add_ai_message("Do you like it there?")
    found = memory.search("Who moved to Lisbon?", k=1).found[0].episode
    assert (found.speaker, found.role, found.session_id) == ("Maya", "user", "talk")


def test_a_message_with_an_id_is_stored_once(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages([HumanMessage("Hello", id="m1")])
    history.add_messages([*history.messages, HumanMessage("again", id="m2")])
    assert [message.id for message in history.messages] == ["m1", "m2"]


def test_the_same_id_in_another_session_is_another_message(memory: GraphMemory) -> None:
    for session in ("one", "two"):
        GraphMemoryChatMessageHistory(memory, session).add_messages([HumanMessage(session, id="m1")])
    assert [str(m.text) for m in GraphMemoryChatMessageHistory(memory, "two").messages] == ["two"]


def test_ids_of_sessions_and_messages_never_run_together(memory: GraphMemory) -> None:
    one, other = (GraphMemoryChatMessageHistory(memory, session) for session in ("user", "user:42"))
    one.add_messages([HumanMessage("from one", id="42:1")])
    other.add_messages([HumanMessage("from the other", id="1")])
    assert [str(message.text) for message in other.messages] == ["from the other"]


def test_a_call_of_a_tool_without_words_is_left_out(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages([AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "call-7"}])])
    assert history.messages == []


def test_blocks_of_text_are_read(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages([HumanMessage([{"type": "text", "text": "I moved to Lisbon."}])])
    assert [str(message.text) for message in history.messages] == ["I moved to Lisbon."]


def test_only_the_last_messages_are_returned(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk", limit=2)
    history.add_messages([HumanMessage(str(number)) for number in range(5)])
    assert [str(message.text) for message in history.messages] == ["3", "4"]


def test_async_code_adds_and_reads(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")

    async def use() -> list[BaseMessage]:
        await history.aadd_messages([HumanMessage("Hello")])
        return await history.aget_messages()

    assert [str(message.text) for message in asyncio.run(use())] == ["Hello"]


def test_a_memory_is_not_cleared(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_user_message("Hello")
    with pytest.raises(InvalidInput, match="talk"):
        history.clear()
    assert len(history.messages) == 1


def test_a_session_needs_a_name(memory: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match="session_id"):
        GraphMemoryChatMessageHistory(memory, "")
