"""GraphMemorySession and the tools in agents of the OpenAI Agents SDK, with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.memory import Session
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from graphmem import GraphMemory, InvalidInput
from graphmem.adapters.notes import Notes
from graphmem.adapters.openai_agents import GraphMemorySession, memory_tools
from graphmem_sqlite import SQLiteBackend
from tests.integration.agents.blocked import error_without

QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """A model that gives fixed outputs, or raises them, and records what it was asked."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.asked: list[Any] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.asked.append(args[1] if len(args) > 1 else kwargs["input"])
        output = self.outputs.pop(0)
        if isinstance(output, Exception):
            raise output
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def text(words: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=words, annotations=[], type="output_text")
    return ResponseOutputMessage(id="__fake_id__", content=[part], role="assistant", status="completed", type="message")


def call(name: str, **arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        arguments=json.dumps(arguments), call_id=f"c-{name}", name=name, type="function_call", id="f1"
    )


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[GraphMemory]:
    url = f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, scope="maya", extractor="none", embeddings="none", background=False) as opened:
        yield opened


def test_items_come_back_exactly_as_they_were(memory: GraphMemory) -> None:
    items: Any = [
        {"role": "user", "content": "Is it warm in Oslo?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "20 degrees"},
        text("Yes.").model_dump(),
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": " \n"},
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/rex.png"}]},
    ]
    session = GraphMemorySession(memory, "t")

    async def use() -> list[Any]:
        await session.add_items(items)
        return [*await session.get_items()]

    assert isinstance(session, Session)
    assert asyncio.run(use()) == items


def test_limit_pop_and_clear(memory: GraphMemory) -> None:
    session, other = GraphMemorySession(memory, "t"), GraphMemorySession(memory, "other")
    items: Any = [
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "20"},
        {"role": "user", "content": "Thanks."},
    ]

    async def use() -> list[Any]:
        await other.add_items(items[2:])
        await session.add_items(items)
        found: list[Any] = [await session.get_items(2), await session.pop_item(), await session.get_items()]
        await session.clear_session()
        await session.clear_session()
        return [*found, await session.get_items(), await session.pop_item(), await other.get_items()]

    limited, popped, left, cleared, nothing, others = asyncio.run(use())
    assert limited == items[2:]  # a result without its call is refused by the API
    assert (popped, left) == (items[2], items[:2])
    assert (cleared, nothing, others) == ([], None, items[2:])


def test_popped_items_and_notes_are_cleaned_from_the_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned, scrub = list[None](), SQLiteBackend.scrub
    monkeypatch.setattr(SQLiteBackend, "scrub", lambda store: cleaned.append(None) or scrub(store))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    with GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", extractor="none", embeddings="none") as memory:
        memory._engine._expiry.stop()  # type: ignore[union-attr]  # its first round may clean, too
        session, notes = GraphMemorySession(memory, "t"), Notes(memory)
        asyncio.run(session.add_items([{"role": "user", "content": "The door code is xyzzy."}]))
        asyncio.run(session.pop_item())
        said = memory.remember("Maya is here.", metadata={"note": "intake"}).episode_id
        assert "there is no note" in notes.manage_memory(action="delete", id=said)
        memory.forget(episode=said, clean_files=False)
        note = notes.manage_memory("The door code is plugh.").split()[-1].strip(".")
        note = notes.manage_memory("The door code is frotz.", "update", note).split()[-1].strip(".")
        assert notes.manage_memory(action="delete", id=note) == "Deleted."
        assert (memory.stats().episodes, cleaned) == (0, [])
    assert len(cleaned) == 1
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert [word for word in (b"xyzzy", b"plugh", b"frotz") if word in left] == []


def test_an_agent_continues_its_session_and_what_was_said_can_be_searched(memory: GraphMemory) -> None:
    model = Scripted(text("Nice."), text("In Lisbon."))
    session = GraphMemorySession(memory, "t", user="Maya", assistant="Helper")
    agent = Agent(name="Helper", model=model)

    async def use() -> str:
        await Runner.run(agent, "I moved to Lisbon.", session=session, run_config=QUIET)
        done = await Runner.run(agent, "Where do I live?", session=session, run_config=QUIET)
        return done.final_output

    assert asyncio.run(use()) == "In Lisbon."
    assert [item["role"] for item in model.asked[1]] == ["user", "assistant", "user"]
    assert [e.speaker for e in memory.session("t")] == ["Maya", "Helper", "Maya", "Helper"]
    assert "Maya" in memory.context("Who moved to Lisbon?")


def test_a_run_that_failed_and_is_retried_stores_once(memory: GraphMemory) -> None:
    away = RuntimeError("the model is away")
    model = Scripted(away, call("manage_memory", content="Maya prefers tea."), away, text("Nice."), text("Nice."))
    session = GraphMemorySession(memory, "t")
    agent = Agent(name="Helper", model=model, tools=[*memory_tools(memory)])

    async def use() -> None:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="away"):
                await Runner.run(agent, "I moved to Lisbon.", session=session, run_config=QUIET)
        for _ in range(2):  # the second one is said again
            await Runner.run(agent, "I moved to Lisbon.", session=session, run_config=QUIET)

    asyncio.run(use())
    said = [(e.role, e.text) for e in memory.session("t") if e.role == "user" or e.text == "Nice."]
    assert said == [("user", "I moved to Lisbon."), ("assistant", "Nice.")] * 2


def test_only_unanswered_messages_and_identified_items_are_left_out(memory: GraphMemory) -> None:
    first, second, yes = ({"role": "user", "content": words} for words in ("Hello.", "Are you there?", "Yes."))
    answer: Any = {"role": "assistant", "content": "Shall I?"}
    called: Any = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    output: Any = {"type": "function_call_output", "call_id": "c1", "output": "20"}
    session = GraphMemorySession(memory, "t")

    async def use(*batches: Any) -> list[Any]:
        for batch in batches:
            await session.add_items(batch)
        return [*await session.get_items()]

    stored = asyncio.run(use([yes, yes], [answer], [yes], [first], [second], [second, answer], [called, output]))
    assert stored == [yes, yes, answer, yes, first, second, answer, called, output]
    assert asyncio.run(use([called, output])) == stored
    assert asyncio.run(session.pop_item()) == output
    assert asyncio.run(use([output], [answer], [answer])) == [*stored, answer, answer]


def test_ids_of_calls_that_a_provider_gives_again_are_kept_in_each_turn(memory: GraphMemory) -> None:
    turn: list[Any] = [
        {"role": "user", "content": "Is it warm?"},
        {"type": "function_call", "call_id": "call_0", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "20"},
        {"role": "assistant", "content": "Yes."},
    ]
    session = GraphMemorySession(memory, "t")

    async def use() -> list[Any]:
        for batch in (turn[:1], turn[1:], turn[:1], turn[1:3], turn[1:], turn):
            await session.add_items(batch)
        return [*await session.get_items()]

    assert asyncio.run(use()) == turn * 3


def test_an_agent_uses_the_tools(memory: GraphMemory) -> None:
    memory.remember("Nate plays chess in Porto.")
    model = Scripted(
        call("manage_memory", content="Maya prefers tea."),
        call("search_memory", query="What does Maya prefer?"),
        text("Tea."),
    )
    agent = Agent(name="Helper", model=model, tools=[*memory_tools(memory)])
    done = asyncio.run(Runner.run(agent, "I prefer tea. What do I prefer?", run_config=QUIET))
    items: list[Any] = [*done.to_input_list()]
    outputs = [str(item["output"]) for item in items if item.get("type") == "function_call_output"]
    assert outputs[0].startswith("Created note ")
    assert "Maya prefers tea." in outputs[1]


@pytest.mark.parametrize("session_id", ["", None, 5])
def test_a_session_needs_a_name(memory: GraphMemory, session_id: Any) -> None:
    with pytest.raises(InvalidInput, match="session_id"):
        GraphMemorySession(memory, session_id)


def test_without_the_package_the_error_names_the_extra(tmp_path: Path) -> None:
    assert "graphmem[openai-agents]" in error_without("agents", "graphmem.adapters.openai_agents", tmp_path)
