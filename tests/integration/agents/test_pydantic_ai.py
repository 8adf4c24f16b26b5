"""GraphMemoryCapability and the toolset in agents of Pydantic AI, with a scripted model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from graphmem import GraphMemory, Turn
from graphmem.adapters.pydantic_ai import GraphMemoryCapability, memory_toolset
from tests.integration.agents.blocked import error_without


class Script:
    """Answers of a model, and what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[list[ModelMessage]] = []
        self.model = FunctionModel(self.answer)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append(list(messages))
        parts = self.answers.pop(0) if self.answers else [TextPart(f"Answer {len(self.asked)}.")]
        return ModelResponse(parts=parts)

    def system(self, call: int = -1) -> list[str]:
        """Return the system prompts of a call."""
        parts = [part for m in self.asked[call] if isinstance(m, ModelRequest) for part in m.parts]
        return [part.content for part in parts if isinstance(part, SystemPromptPart)]


def weather(city: str) -> str:
    """Return the weather."""
    return f"20 degrees in {city}"


def test_context_precedes_each_request_and_is_not_kept(memory: GraphMemory) -> None:
    script = Script([ToolCallPart("weather", {"city": "Lisbon"}, "c1")], [ThinkingPart("Hm."), TextPart("Warm.")])
    agent = Agent(script.model, tools=[weather], system_prompt="Be brief.")
    mine = GraphMemoryCapability(memory, "t", "Maya", "Helper")
    first = agent.run_sync("Is it warm where I live?", capabilities=[mine])
    second = agent.run_sync("Where did I move?", capabilities=[mine], message_history=first.all_messages())
    for number in range(3):
        assert len([text for text in script.system(number) if 'Maya: "I moved to Lisbon."' in text]) == 1
        assert "Be brief." in script.system(number)
    kept = [part for m in second.all_messages() if isinstance(m, ModelRequest) for part in m.parts]
    assert [part.content for part in kept if isinstance(part, SystemPromptPart)] == ["Be brief."]


def test_context_quotes_no_message_that_the_prompt_has(memory: GraphMemory) -> None:
    memory.remember(Turn(text="Rex ate my shoe.", speaker="Maya", session_id="earlier"))
    script, mine = Script(), GraphMemoryCapability(memory, "t", "Maya")
    agent, history = Agent(script.model), list[ModelMessage]()
    for text in ("Rex barks a lot.", "What do you know of Rex?"):
        history = agent.run_sync(text, capabilities=[mine], message_history=history).all_messages()
    [quotes] = script.system()
    assert "Rex ate my shoe." in quotes
    assert "barks" not in quotes


def test_messages_are_stored_once_with_calls_and_speakers(memory: GraphMemory) -> None:
    script = Script([ToolCallPart("weather", {"city": "Lisbon"}, "c1")], [ThinkingPart("Hm."), TextPart("Warm.")])
    agent, mine = Agent(script.model, tools=[weather]), GraphMemoryCapability(memory, "t", "Maya", "Helper")
    history = agent.run_sync("Is it warm?", capabilities=[mine]).all_messages()
    for _ in range(2):
        history = agent.run_sync("Yes?", capabilities=[mine], message_history=history).all_messages()
    said = memory.session("t")
    assert [(e.role, e.speaker, e.text) for e in said] == [
        ("user", "Maya", "Is it warm?"),
        ("assistant", "Helper", '[calls weather({"city":"Lisbon"})]'),
        ("tool", "weather", "20 degrees in Lisbon"),
        ("assistant", "Helper", "Warm."),
        ("user", "Maya", "Yes?"),
        ("assistant", "Helper", "Answer 3."),
        ("user", "Maya", "Yes?"),
        ("assistant", "Helper", "Answer 4."),
    ]


def test_messages_have_their_own_times_and_failed_calls_are_marked(memory: GraphMemory) -> None:
    script = Script([ToolCallPart("weather", {"town": "Lisbon"}, "c1")])
    history = Agent(script.model, tools=[weather]).run_sync("Is it warm?").all_messages()
    long_ago = datetime(2026, 1, 5, 10, tzinfo=UTC)
    for message in history:
        dated: list[Any] = [message] if isinstance(message, ModelResponse) else [*message.parts]
        for each in dated:
            each.timestamp = long_ago
    mine = GraphMemoryCapability(memory, "t", "Maya")
    Agent(script.model).run_sync("Yes?", capabilities=[mine], message_history=history)
    said = memory.session("t")
    assert [e.occurred_at == long_ago for e in said] == [True] * 4 + [False] * 2
    assert (said[2].speaker, said[2].metadata["tool_status"]) == ("weather", "error")


def test_messages_with_times_without_a_time_zone_are_stored(memory: GraphMemory) -> None:
    agent, mine = Agent(TestModel(custom_output_text="ok")), GraphMemoryCapability(memory, "t", "Maya")
    history = agent.run_sync("Is it warm?").all_messages()
    for message in history:
        dated: list[Any] = [message] if isinstance(message, ModelResponse) else [*message.parts]
        for each in dated:
            each.timestamp = datetime(2026, 1, 5, 10)  # noqa: DTZ001
    agent.run_sync("Yes?", capabilities=[mine], message_history=history)
    assert [e.occurred_at.isoformat() for e in memory.session("t")][:2] == ["2026-01-05T10:00:00+00:00"] * 2


@pytest.mark.parametrize("passed", [0, 2, 3, 100])
def test_any_part_of_the_history_may_be_passed(memory: GraphMemory, passed: int) -> None:
    agent, mine = Agent(TestModel(custom_output_text="ok")), GraphMemoryCapability(memory, "t")
    said = ["Good morning.", "Book Oslo.", "Good morning.", "Good morning.", "Book Rome."]
    history: list[ModelMessage] = []
    for text in said:
        part = history[len(history) - passed :] if passed < len(history) else history
        history += agent.run_sync(text, capabilities=[mine], message_history=part).new_messages()
    assert [episode.text for episode in memory.session("t")] == [words for text in said for words in (text, "ok")]


@pytest.mark.parametrize("what", ["first", "last", "session"])
def test_what_was_forgotten_is_not_stored_again(memory: GraphMemory, what: str) -> None:
    agent, mine = Agent(TestModel(custom_output_text="ok")), GraphMemoryCapability(memory, "t")
    history: list[ModelMessage] = []
    for text in ("My code is 17.", "Yes.", "Yes."):
        history = agent.run_sync(text, capabilities=[mine], message_history=history).all_messages()
    if what == "session":
        memory.forget(session="t")
    else:
        memory.forget(episode=memory.session("t")[0 if what == "first" else -1].id)
    left = [episode.text for episode in memory.session("t")]
    for text in ("Yes.", "My code is 17."):  # new messages with the same words
        history = agent.run_sync(text, capabilities=[mine], message_history=history).all_messages()
    assert [episode.text for episode in memory.session("t")] == [*left, "Yes.", "ok", "My code is 17.", "ok"]


def test_the_prompt_of_a_run_that_fails_is_stored_once(memory: GraphMemory) -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(messages)
        if len(asked) == 3:
            return ModelResponse(parts=[ToolCallPart("fail", {}, "c1")])
        if len(asked) == 2:
            raise RuntimeError("the model is away")
        return ModelResponse(parts=[TextPart("OK.")])

    def fail() -> str:
        raise RuntimeError("the tool is away")

    asked: list[Any] = []
    agent, mine = Agent(FunctionModel(answer), tools=[fail]), GraphMemoryCapability(memory, "t")
    history = agent.run_sync("Hi.", capabilities=[mine]).all_messages()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="away"):
            agent.run_sync("I adopted a cat.", capabilities=[mine], message_history=history)
        assert [episode.text for episode in memory.session("t")] == ["Hi.", "OK.", "I adopted a cat."]
    agent.run_sync("I adopted a cat.", capabilities=[mine], message_history=history)
    assert [episode.text for episode in memory.session("t")] == ["Hi.", "OK.", "I adopted a cat.", "OK."]


def test_the_prompt_of_a_stream_that_is_left_is_stored(memory: GraphMemory) -> None:
    async def words(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for word in ("One ", "two ", "three."):
            yield word

    async def use() -> None:
        agent, mine = Agent(FunctionModel(stream_function=words)), GraphMemoryCapability(memory, "t")
        async with agent.run_stream("I adopted a cat.", capabilities=[mine]) as streamed:
            async for _ in streamed.stream_text():
                break

    asyncio.run(use())
    assert [episode.text for episode in memory.session("t")] == ["I adopted a cat."]


def test_runs_of_one_conversation_at_once_store_all_messages(memory: GraphMemory) -> None:
    agent, mine = Agent(TestModel(custom_output_text="ok")), GraphMemoryCapability(memory, "t")

    async def use() -> None:
        await asyncio.gather(*(agent.run(f"Question {n}", capabilities=[replace(mine)]) for n in range(8)))

    asyncio.run(use())
    said = [episode.text for episode in memory.session("t")]
    assert said[1::2] == ["ok"] * 8
    assert sorted(said[::2]) == [f"Question {n}" for n in range(8)]


def test_images_and_files_of_a_prompt_are_kept_as_attachments(memory: GraphMemory) -> None:
    agent, mine = Agent(TestModel(custom_output_text="ok")), GraphMemoryCapability(memory, "t")
    image = ImageUrl("https://example.org/rex.png")
    agent.run_sync(
        ["Who is this?", CachePoint(), image, BinaryContent(b"12345", media_type="application/pdf")],
        capabilities=[mine],
    )
    agent.run_sync([image], capabilities=[mine])
    first, _, second, _ = memory.session("t")
    assert [(a.kind, a.media_type, a.url, a.size) for a in first.attachments] == [
        ("image", "image/png", "https://example.org/rex.png", None),
        ("file", "application/pdf", None, 5),
    ]
    assert [a.kind for a in second.attachments] == ["image"]


def test_conversations_at_once_stay_in_their_scopes(memory: GraphMemory) -> None:
    script = Script()
    agent = Agent(script.model)

    async def talk(number: int) -> None:
        mine = GraphMemoryCapability(memory.in_scope(f"users/{number}"), f"t{number}")
        await agent.run(f"My code word is word{number}.", capabilities=[mine])
        await agent.run("What is my code word?", capabilities=[mine])

    async def all_talk() -> None:
        await asyncio.gather(*(talk(number) for number in range(20)))

    asyncio.run(all_talk())
    prompts = [text for number in range(40) for text in script.system(number)]
    words = [{f"word{n}" for n in range(20) if f"word{n}." in text} for text in prompts]
    assert sorted(len(found) for found in words) == [1] * 20
    assert len(set[str]().union(*words)) == 20


def test_a_run_can_be_closed(memory: GraphMemory) -> None:
    async def use() -> None:
        ctx: Any = SimpleNamespace(prompt="Hi.", messages=[], run_id="1", conversation_id="t")
        run: Any = GraphMemoryCapability(memory).wrap_run(ctx, handler=lambda: asyncio.sleep(0))  # pyright: ignore[reportArgumentType]
        run.send(None)
        run.close()

    asyncio.run(use())


def test_a_run_that_fails_leaves_nothing_in_the_capability(memory: GraphMemory) -> None:
    def fail(*_: object) -> ModelResponse:
        raise RuntimeError("the model is away")

    mine = GraphMemoryCapability(memory, "t", "Maya", "Helper")
    before = deepcopy({name: value for name, value in vars(mine).items() if name != "memory"})
    with pytest.raises(RuntimeError, match="away"):
        Agent(FunctionModel(fail)).run_sync("Where do I live?", capabilities=[mine])
    assert {name: value for name, value in vars(mine).items() if name != "memory"} == before


def test_agent_goes_on_without_its_memory(memory: GraphMemory, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(TestModel(custom_output_text="Hello."))
    memory.close()
    with caplog.at_level(logging.WARNING, "graphmem"):
        done = agent.run_sync("Where do I live?", capabilities=[GraphMemoryCapability(memory, "t")])
    assert done.output == "Hello."
    assert ["read" in r.message or "written" in r.message for r in caplog.records] == [True, True]


def test_an_agent_uses_the_toolset(memory: GraphMemory) -> None:
    script = Script(
        [ToolCallPart("manage_memory", {"content": "Maya prefers tea."}, "c1")],
        [ToolCallPart("search_memory", {"query": "What does Maya prefer?"}, "c2")],
    )
    agent = Agent(script.model, toolsets=[memory_toolset(memory)])
    done = agent.run_sync("I prefer tea. What do I prefer?")
    parts = [part for m in done.all_messages() for part in m.parts if isinstance(part, ToolReturnPart)]
    assert str(parts[0].content).startswith("Created note ")
    assert "Maya prefers tea." in str(parts[1].content)


def test_without_the_package_the_error_names_the_extra(tmp_path: Path) -> None:
    assert "graphmem[pydantic-ai]" in error_without("pydantic_ai", "graphmem.adapters.pydantic_ai", tmp_path)
