"""The store in a compiled graph, with create_agent, and with the tools of LangMem."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pytest
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.runtime import Runtime
from langmem import (  # pyright: ignore[reportMissingTypeStubs]
    create_manage_memory_tool,  # pyright: ignore[reportUnknownVariableType]
    create_search_memory_tool,
)

from graphmem import GraphMemory
from graphmem.adapters.langgraph import GraphMemoryStore
from graphmem.testing.langgraph import keys
from tests.integration.langchain.scripted import Scripted

NAMESPACE = ("memories", "{user_id}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GraphMemoryStore]:
    url = f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, scope="app", extractor="none", embeddings="none", background=False) as memory:
        yield GraphMemoryStore(memory)


class State(TypedDict):
    user: str
    text: str
    found: NotRequired[list[str]]


def graph(store: GraphMemoryStore) -> Any:
    """Return a compiled graph that finds notes of the user and then stores one."""

    def read(state: State, runtime: Runtime) -> dict[str, Any]:
        assert runtime.store is not None
        found = runtime.store.search(("notes", state["user"]), query=state["text"])
        return {"found": [item.value["text"] for item in found]}

    async def write(state: State, runtime: Runtime) -> dict[str, Any]:
        assert runtime.store is not None
        await runtime.store.aput(("notes", state["user"]), state["text"], {"text": state["text"]})
        return {}

    built: Any = StateGraph(State)
    built.add_node("read", read)
    built.add_node("write", write)
    built.add_edge(START, "read")
    built.add_edge("read", "write")
    built.add_edge("write", END)
    return built.compile(store=store)


def test_nodes_of_a_compiled_graph_read_and_write_it(store: GraphMemoryStore) -> None:
    compiled = graph(store)
    asyncio.run(compiled.ainvoke({"user": "maya", "text": "green tea"}))
    answer = asyncio.run(compiled.ainvoke({"user": "maya", "text": "black tea"}))
    assert answer["found"] == ["green tea"]
    assert asyncio.run(compiled.ainvoke({"user": "nate", "text": "tea"}))["found"] == []


def test_many_runs_at_once_stay_in_their_namespaces(store: GraphMemoryStore) -> None:
    async def run() -> list[Any]:
        compiled = graph(store)
        users = [f"user {n}" for n in range(20)]
        for text in ("first tea", "second tea"):
            await asyncio.gather(*(compiled.ainvoke({"user": u, "text": f"{text} of {u}"}) for u in users))
        return await asyncio.gather(*(compiled.ainvoke({"user": u, "text": "tea"}) for u in users))

    for n, answer in enumerate(asyncio.run(run())):
        assert sorted(answer["found"]) == [f"first tea of user {n}", f"second tea of user {n}"]


def call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}", "type": "tool_call"}])


def told(answer: dict[str, Any]) -> list[str]:
    return [str(message.text) for message in answer["messages"] if isinstance(message, ToolMessage)]


def test_tools_of_an_agent_get_it_by_their_runtime(store: GraphMemoryStore) -> None:
    @tool
    def note(text: str, runtime: ToolRuntime[None, Any]) -> str:
        """Store a note."""
        assert runtime.store is not None
        runtime.store.put(("notes",), "note", {"text": text})
        return "Noted."

    agent: Any = create_agent(  # pyright: ignore[reportUnknownVariableType]
        Scripted(answers=[call("note", text="Call Nate."), "Done."]), [note], store=store
    )
    answer = agent.invoke({"messages": [HumanMessage("Remind me.")]})
    assert told(answer) == ["Noted."]
    assert keys(store.search(("notes",), query="Nate")) == ["note"]


def test_langmems_tools_store_search_change_and_delete_by_user(store: GraphMemoryStore) -> None:
    tools = [create_manage_memory_tool(namespace=NAMESPACE), create_search_memory_tool(namespace=NAMESPACE)]

    def run(user: str, *answers: Any) -> dict[str, Any]:
        agent: Any = create_agent(  # pyright: ignore[reportUnknownVariableType]
            Scripted(answers=[*answers, "Done."]), tools, store=store
        )
        return agent.invoke({"messages": [HumanMessage("Hi.")]}, config={"configurable": {"user_id": user}})

    run("maya", call("manage_memory", content="Maya drinks green tea.", action="create"))
    [item] = store.search(("memories", "maya"))
    assert item.value == {"content": "Maya drinks green tea."}
    assert "green tea" in told(run("maya", call("search_memory", query="Which tea?")))[0]
    assert "green tea" not in told(run("nate", call("search_memory", query="Which tea?")))[0]
    assert "green tea" not in told(run("maya/x", call("search_memory", query="Which tea?")))[0]
    run("maya", call("manage_memory", content="Maya drinks oolong.", action="update", id=item.key))
    assert [old.value["content"] for old in store.history(item.namespace, item.key)] == [
        "Maya drinks green tea.",
        "Maya drinks oolong.",
    ]
    run("nate", call("manage_memory", action="delete", id=item.key))
    assert keys(store.search(("memories",))) == [item.key]
    run("maya", call("manage_memory", action="delete", id=item.key))
    assert store.search(("memories",)) == []
