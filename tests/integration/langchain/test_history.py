"""GraphMemoryChatMessageHistory: LangChain's messages as turns of a memory, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

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
        AIMessage("I look.", tool_calls=[{"name": "weather", "args": {}, "id": "call-7"}]),
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


def test_messages_that_threads_add_stay_together(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")

    def add(thread: int) -> None:
        for n in range(5):
            history.add_messages([HumanMessage(f"{thread} asks {n}"), AIMessage(f"{thread} asks {n}: yes")])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    said = [str(message.text) for message in history.messages]
    assert said[1::2] == [f"{question}: yes" for question in said[::2]]


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


def call(number: str, city: str = "Oslo") -> dict[str, Any]:
    return {"name": "weather", "args": {"city": city}, "id": number, "type": "tool_call"}


def test_calls_of_tools_come_back_before_their_results(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages(
        [
            HumanMessage("Is it warm?"),
            AIMessage("", tool_calls=[call("c1")]),
            ToolMessage("20 degrees", tool_call_id="c1"),
            AIMessage("Yes."),
        ]
    )
    back = history.messages
    assert [message.type for message in back] == ["human", "ai", "tool", "ai"]
    assert isinstance(back[1], AIMessage)
    assert (back[1].content, back[1].tool_calls) == ("", [call("c1")])
    assert convert_to_openai_messages(back)[1]["tool_calls"][0]["function"]["name"] == "weather"


def test_words_beside_a_call_are_kept(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages([AIMessage("I look.", tool_calls=[call("c1")])])
    [message] = history.messages
    assert isinstance(message, AIMessage)
    assert (message.content, message.tool_calls) == ("I look.", [call("c1")])


def test_results_follow_their_calls_in_their_order_whatever_came_between(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages(
        [
            AIMessage("", tool_calls=[call("c1"), call("c2", "Rome")]),
            ToolMessage("25", tool_call_id="c2"),
            HumanMessage("And?"),
            ToolMessage("20", tool_call_id="c1"),
            AIMessage("", tool_calls=[call("c1")]),  # models of one's own number the calls of each message anew
            ToolMessage("21", tool_call_id="c1"),
        ]
    )
    back = [(message.type, message.content) for message in history.messages]
    assert back == [("ai", ""), ("tool", "20"), ("tool", "25"), ("human", "And?"), ("ai", ""), ("tool", "21")]


def test_a_result_whose_call_is_beyond_the_limit_is_not_returned(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk", limit=2)
    history.add_messages(
        [AIMessage("", tool_calls=[call("c1")]), ToolMessage("20", tool_call_id="c1"), AIMessage("Warm.")]
    )
    assert [message.type for message in history.messages] == ["ai"]


def test_a_call_that_nobody_answered_is_returned_only_where_its_result_may_still_come(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages([HumanMessage("Hi"), AIMessage("", tool_calls=[call("c1")])])
    assert [message.type for message in history.messages] == ["human", "ai"]
    history.add_messages([HumanMessage("Never mind.")])
    assert [message.type for message in history.messages] == ["human", "human"]


def test_a_tool_that_returned_nothing_or_failed_did_answer(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages(
        [AIMessage("", tool_calls=[call("c1")]), ToolMessage("", tool_call_id="c1", status="error"), AIMessage("Hm.")]
    )
    [_, tool, _] = history.messages
    assert isinstance(tool, ToolMessage)
    assert (tool.content, tool.status) == ("", "error")


def test_a_call_with_arguments_that_are_no_json_comes_back_invalid(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    broken = {"name": "weather", "args": "{city", "id": "c1", "error": None, "type": "invalid_tool_call"}
    history.add_messages([AIMessage("", invalid_tool_calls=[broken])])
    [message] = history.messages
    assert isinstance(message, AIMessage)
    assert message.tool_calls == []
    assert [(each["name"], each["args"]) for each in message.invalid_tool_calls] == [("weather", "{city")]


def test_a_message_of_nothing_is_left_out(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages([AIMessage(""), HumanMessage("  ")])
    assert history.messages == []


def test_an_image_comes_back_as_its_address_or_named_in_words(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    address = {"type": "image_url", "image_url": {"url": "https://example.org/rex.png"}}
    inline = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    history.add_messages([HumanMessage([{"type": "text", "text": "My dog"}, address, inline])])
    [message] = history.messages
    assert message.content == [
        {"type": "text", "text": "My dog"},
        address,
        {"type": "text", "text": "[image: image/png]"},
    ]
    assert memory.search("dog", k=1).found[0].episode.text == "My dog"


def test_a_default_name_is_stored_but_is_not_the_message_s_own(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk", user="Maya Chen")
    history.add_messages([HumanMessage("Hi"), HumanMessage("Hello", name="Tom")])
    assert [message.name for message in history.messages] == [None, "Tom"]
    assert [episode.speaker for episode in memory.session("talk")] == ["Maya Chen", "Tom"]


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


def test_a_cleared_session_is_empty_and_others_stay(memory: GraphMemory) -> None:
    history, other = (GraphMemoryChatMessageHistory(memory, session) for session in ("talk", "other"))
    for each in (history, other):
        each.add_messages([HumanMessage("I moved to Lisbon.", id="m1")])
    history.clear()
    history.clear()
    assert (history.messages, len(other.messages)) == ([], 1)
    history.add_messages([HumanMessage("Hello", id="m1")])
    assert [message.content for message in history.messages] == ["Hello"]


@pytest.mark.parametrize("session_id", ["", None, 5])
def test_a_session_needs_a_name(memory: GraphMemory, session_id: Any) -> None:
    with pytest.raises(InvalidInput, match="session_id"):
        GraphMemoryChatMessageHistory(memory, session_id)


def test_what_is_forgotten_in_a_run_is_not_stored_again_by_it(memory: GraphMemory) -> None:
    """LangChain adds the end of the messages that it was given, by the number of messages that are stored now."""

    def answer(messages: list[BaseMessage]) -> AIMessage:
        if messages[-1].text == "Forget it.":
            memory.forget(session="talk")
        return AIMessage("OK.")

    def history(session_id: str) -> GraphMemoryChatMessageHistory:
        return GraphMemoryChatMessageHistory(memory, session_id)

    chain = RunnableWithMessageHistory(RunnableLambda(answer), history)
    for text in ("My code is 17.", "Forget it.", "My code is 17."):
        chain.invoke([HumanMessage(text)], {"configurable": {"session_id": "talk"}})
    assert [episode.text for episode in memory.session("talk")] == ["Forget it.", "OK.", "My code is 17.", "OK."]


def test_messages_can_be_added_again_after_the_history_was_cleared(memory: GraphMemory) -> None:
    history = GraphMemoryChatMessageHistory(memory, "talk")
    history.add_messages([HumanMessage("One."), AIMessage("Two."), HumanMessage("Three.")])
    last = history.messages[-2:]
    history.clear()
    history.add_messages(last)
    assert [message.text for message in history.messages] == ["Two.", "Three."]
