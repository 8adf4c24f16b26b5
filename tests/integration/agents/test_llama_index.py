"""GraphMemoryBlock in a `Memory` of LlamaIndex, with its mock model."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory

from graphmem import GraphMemory
from graphmem.adapters.conversation import Conversation
from graphmem.adapters.llama_index import GraphMemoryBlock
from graphmem.adapters.message_keys import turn_keys
from tests.integration.agents.blocked import error_without


def chat(memory: GraphMemory, **options: Any) -> Memory:
    block = GraphMemoryBlock(memory=memory, user="Maya", assistant="Helper")
    kind: Any = Memory  # its types are incomplete
    return kind.from_defaults(session_id="t", memory_blocks=[block], **options)


def test_context_of_the_last_message_is_in_what_the_model_gets(memory: GraphMemory) -> None:
    talk = chat(memory)
    question = ChatMessage(role="user", content="Where did I move?")

    async def use() -> list[ChatMessage]:
        await talk.aput(question)
        return await talk.aget()

    given = asyncio.run(use())
    assert 'Maya: "I moved to Lisbon."' in str(given[0].content)
    assert given[-1].content == question.content


def test_messages_that_leave_the_short_term_part_are_stored_once(memory: GraphMemory) -> None:
    talk = chat(memory, token_limit=300, chat_history_token_ratio=0.3, token_flush_size=40)
    said = [
        ChatMessage(role="user" if number % 2 == 0 else "assistant", content=f"Message {number} about the garden.")
        for number in range(40)
    ]

    async def use() -> list[ChatMessage]:
        for message in said:
            await talk.aput(message)
        return await talk.aget()

    given = asyncio.run(use())
    stored = memory.session("t", limit=100)
    texts = [episode.text for episode in stored]
    assert len(texts) > 10
    assert texts == [message.content for message in said[: len(texts)]]
    assert [e.speaker for e in stored[:2]] == ["Maya", "Helper"]
    assert given[-1].content == said[-1].content


def test_speakers_have_the_roles_and_names_that_providers_give(memory: GraphMemory) -> None:
    said = [
        ChatMessage(role="user", content="Is it warm?"),
        ChatMessage(role=MessageRole.CHATBOT, content="I'll look."),
        ChatMessage(role=MessageRole.MODEL, content="One moment."),
        ChatMessage(role=MessageRole.TOOL, content="20", additional_kwargs={"tool_call_id": "c1", "name": "weather"}),
    ]
    asyncio.run(GraphMemoryBlock(memory=memory, user="Maya", assistant="Helper").aput(said, session_id="t"))
    assert [(e.role, e.speaker) for e in memory.session("t")] == [
        ("user", "Maya"),
        ("assistant", "Helper"),
        ("assistant", "Helper"),
        ("tool", "weather"),
    ]


def test_a_history_that_is_given_again_is_stored_once(memory: GraphMemory) -> None:
    said: list[ChatMessage] = []
    for number in range(20):
        said += [
            ChatMessage(role="user", content="Go on." if number % 3 else f"Tell me of garden {number}."),
            ChatMessage(role="assistant", content=f"Garden {number} has roses."),
        ]

    def stored_after(messages: list[ChatMessage], flush: int) -> list[str]:
        talk = chat(memory, token_limit=200, chat_history_token_ratio=0.3, token_flush_size=flush)  # with nothing in it
        copies = [ChatMessage(role=m.role, content=m.content) for m in messages]
        asyncio.run(talk.aput_messages(copies))
        return [episode.text for episode in memory.session("t", limit=100)]

    def beginning(number: int) -> list[str]:
        return [str(message.content) for message in said[:number]]

    first = stored_after(said[:30], 40)
    assert len(first) > 20
    assert first == beginning(len(first))
    assert stored_after(said[:30], 40) == first
    more = stored_after(said, 30)
    assert len(more) > len(first)
    assert more == beginning(len(more))


@pytest.mark.parametrize("gone", [[0], [2, 3], [0, 1, 2, 4, 5, 6]])
def test_what_was_forgotten_of_a_history_that_is_given_again_is_not_stored_again(
    memory: GraphMemory, gone: list[int]
) -> None:
    said = [ChatMessage(role=("user", "assistant")[n % 2], content=f"Message {n // 3}.") for n in range(12)]

    def give(count: int) -> list[str]:
        block = GraphMemoryBlock(memory=memory)
        for begin in range(0, count, 4):
            asyncio.run(block.aput(said[begin : begin + 4], session_id="t"))
        return [episode.text for episode in memory.session("t")]

    give(8)
    for number in reversed(gone):
        memory.forget(episode=memory.session("t")[number].id)
    left = [f"Message {n // 3}." for n in range(8) if n not in gone]
    assert give(8) == left
    new = [ChatMessage(role="user", content=f"Message {n}.") for n in (0, 2)]  # with the same words
    asyncio.run(GraphMemoryBlock(memory=memory).aput(new, session_id="t"))
    assert [episode.text for episode in memory.session("t")] == [*left, "Message 0.", "Message 2."]


def test_keys_of_an_earlier_version_are_known(memory: GraphMemory) -> None:
    words = ["Yes.", "No.", "Yes.", "Yes."]
    said = [{"role": "user", "content": text} for text in words]
    Conversation(memory, "t").store(said, turn_keys(said, [], []))  # these number equal messages
    for _ in range(2):
        block = GraphMemoryBlock(memory=memory)
        given = [ChatMessage(role="user", content=text) for text in [*words, "No."]]
        asyncio.run(block.aput(given, session_id="t"))
    assert [e.text for e in memory.session("t")] == [*words, "No."]


def test_equal_messages_at_other_places_are_stored(memory: GraphMemory) -> None:
    block = GraphMemoryBlock(memory=memory)
    yes, no, empty = (ChatMessage(role="user", content=words) for words in ("Yes.", "No.", ""))
    for batch in ([yes, yes], [no], [yes], [yes], [no, empty], [no, yes], [yes, no]):
        asyncio.run(block.aput(batch, session_id="t"))
    assert [e.text for e in memory.session("t")] == ["Yes.", "Yes.", "No.", "Yes.", "No.", "Yes.", "No."]


def test_an_exchange_that_occurs_again_is_stored_each_time(memory: GraphMemory) -> None:
    block = GraphMemoryBlock(memory=memory)
    asked = [ChatMessage(role="user", content="What is on my list?"), ChatMessage(role="assistant", content="Milk.")]
    for n in range(3):
        other = [ChatMessage(role="user", content=f"Note {n}."), ChatMessage(role="assistant", content=f"Noted {n}.")]
        for part in (asked, other):
            asyncio.run(block.aput(part, session_id="t"))
    assert [e.text for e in memory.session("t")].count("What is on my list?") == 3


def test_images_and_documents_are_kept_as_attachments(memory: GraphMemory) -> None:
    image = ImageBlock(url="https://example.org/rex.png", image_mimetype="image/png")
    said = [
        ChatMessage(role="user", blocks=[TextBlock(text="Who is this?"), image]),
        ChatMessage(role="user", blocks=[image]),
    ]
    asyncio.run(GraphMemoryBlock(memory=memory).aput(said, session_id="t"))
    found = [[(a.kind, a.url) for a in episode.attachments] for episode in memory.session("t")]
    assert found == [[("image", "https://example.org/rex.png")]] * 2


def test_calls_of_tools_are_kept(memory: GraphMemory) -> None:
    call = ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Oslo"})
    said = [
        ChatMessage(role="assistant", blocks=[TextBlock(text="I look."), call]),
        ChatMessage(role=MessageRole.TOOL, content="20 degrees", additional_kwargs={"tool_call_id": "c1"}),
    ]
    block = GraphMemoryBlock(memory=memory)
    asyncio.run(block.aput(said, session_id="t"))
    [first, second] = memory.session("t")
    assert "weather" in str(first.metadata["tool_calls"])
    assert (second.role, second.metadata["tool_call_id"]) == ("tool", "c1")


def test_an_agent_has_it(memory: GraphMemory) -> None:
    seen: list[str] = []

    class Echo(MockFunctionCallingLLM):
        async def astream_chat_with_tools(self, *args: Any, **kwargs: Any) -> Any:
            seen.extend(str(message.content) for message in kwargs.get("chat_history") or args)
            return await super().astream_chat_with_tools(*args, **kwargs)

    async def use() -> None:
        agent: Any = FunctionAgent(llm=Echo(), tools=[])
        await agent.run(user_msg="Where did I move?", memory=chat(memory))

    asyncio.run(use())
    assert any('Maya: "I moved to Lisbon."' in text for text in seen)


def test_block_is_empty_without_its_memory(memory: GraphMemory, caplog: pytest.LogCaptureFixture) -> None:
    memory.close()
    block = GraphMemoryBlock(memory=memory)

    async def use() -> str:
        await block.aput([ChatMessage(role="user", content="Hello")], session_id="t")
        return await block.aget([ChatMessage(role="user", content="Where did I move?")])

    with caplog.at_level(logging.WARNING, "graphmem"):
        assert asyncio.run(use()) == ""
    assert len(caplog.records) == 2


def test_without_the_package_the_error_names_the_extra(tmp_path: Path) -> None:
    assert "graphmem[llama-index]" in error_without("llama_index.core", "graphmem.adapters.llama_index", tmp_path)
