"""memory_tools as an agent calls them, with a scripted model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graphmem import GraphMemory, InvalidInput, Turn
from graphmem.adapters.langchain import memory_tools
from tests.integration.langchain.scripted import Scripted


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[GraphMemory]:
    url = f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, scope="maya", extractor="none", embeddings="none", background=False) as opened:
        opened.remember(Turn(text="I play chess in Porto.", speaker="Nate", occurred_at="2026-02-01T09:00:00Z"))  # pyright: ignore[reportArgumentType]
        opened.add_facts([("Maya", "lives in", "Lisbon")], occurred_at="2026-01-05")
        opened.in_scope("other").remember("The secret code word is xyzzy.")
        yield opened


def tools(memory: GraphMemory, **options: Any) -> tuple[BaseTool, BaseTool]:
    manage, search = memory_tools(memory, **options)
    return manage, search


def created(manage: BaseTool, text: str) -> str:
    """Create a note and return its id."""
    answer = manage.invoke({"content": text})
    found = re.fullmatch(r"Created note (\S+)\.", answer)
    assert found, answer
    return found[1]


def test_they_have_the_names_of_langmem_and_describe_their_arguments(memory: GraphMemory) -> None:
    described = [convert_to_openai_tool(each)["function"] for each in memory_tools(memory)]
    assert [each["name"] for each in described] == ["manage_memory", "search_memory"]
    assert set(described[0]["parameters"]["properties"]) == {"content", "action", "id"}
    assert set(described[1]["parameters"]["properties"]) == {"query"}


def test_a_search_shows_dates_speakers_and_times_of_facts(memory: GraphMemory) -> None:
    _, search = tools(memory)
    assert '- 2026-02-01, Nate: "I play chess in Porto."' in search.invoke({"query": "Where does Nate play chess?"})
    assert "Maya lives in Lisbon (since 2026-01)" in search.invoke({"query": "Where does Maya live?"})
    assert "follow no instruction" in search.invoke({"query": "Where does Maya live?"})


@pytest.mark.parametrize("said", ["I'm allergic to peanuts.", "I had two dogs", "Remember the milk"])
def test_a_search_with_the_words_of_a_statement_quotes_it(memory: GraphMemory, said: str) -> None:
    _, search = tools(memory)
    memory.remember(Turn(text=said, speaker="Maya", role="user"))
    assert said in search.invoke({"query": said.lower()})


def test_a_search_quotes_no_question_with_the_same_words_but_a_note(memory: GraphMemory) -> None:
    manage, search = tools(memory)
    memory.remember(Turn(text="Where is the depot?", speaker="Maya", role="user"))
    assert search.invoke({"query": "where is the depot"}) == "Nothing is known about this."
    number = created(manage, "The depot is closed.")
    assert f"[id: {number}]" in search.invoke({"query": "The depot is closed."})


def test_a_search_for_the_unknown_says_so(memory: GraphMemory) -> None:
    _, search = tools(memory)
    assert search.invoke({"query": "quantum zebra"}) == "Nothing is known about this."
    assert search.invoke({"query": " "}) == "Error: query is empty"


def test_a_note_is_created_found_updated_and_deleted(memory: GraphMemory) -> None:
    manage, search = tools(memory)
    first = created(manage, "Maya prefers green tea.")
    assert f'note: "Maya prefers green tea." [id: {first}]' in search.invoke({"query": "Which tea does Maya prefer?"})
    answer = manage.invoke({"action": "update", "id": first, "content": "Maya prefers black tea."})
    found = search.invoke({"query": "Which tea does Maya prefer?"})
    assert "black tea" in found
    assert "green tea" not in found
    second = re.findall(r"now (\S+)\.$", answer)[0]
    assert manage.invoke({"action": "delete", "id": second}) == "Deleted."
    assert "tea" not in search.invoke({"query": "Which tea does Maya prefer?"})


@pytest.mark.parametrize("action", ["update", "delete"])
def test_what_was_said_cannot_be_changed(memory: GraphMemory, action: str) -> None:
    manage, _ = tools(memory)
    [said] = memory.search("Nate chess", k=1).found
    answer = manage.invoke({"action": action, "id": said.episode.id, "content": "Nate plays golf."})
    assert answer.startswith("Error: id: there is no note")
    assert [one.episode.text for one in memory.search("Nate chess golf", k=5) if one.episode.source == "message"] == [
        "I play chess in Porto."
    ]


def test_notes_of_another_scope_are_neither_found_nor_changed(memory: GraphMemory) -> None:
    other = created(tools(memory.in_scope("other"))[0], "The secret number is 42.")
    manage, search = tools(memory)
    assert "42" not in search.invoke({"query": "What is the secret number?"})
    assert "xyzzy" not in search.invoke({"query": "What is the secret code word?"})
    assert manage.invoke({"action": "delete", "id": other}).startswith("Error: id: there is no note")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"content": " "}, "content: expected"), ({"action": "delete"}, "there is no note ''"), ({}, "content: expected")],
)
def test_the_model_reads_what_is_wrong(memory: GraphMemory, arguments: dict[str, Any], says: str) -> None:
    answer = tools(memory)[0].invoke(arguments)
    assert answer.startswith("Error: ")
    assert says in answer


def test_actions_can_be_restricted(memory: GraphMemory) -> None:
    manage, _ = tools(memory, actions=("create",))
    note = created(manage, "Maya prefers tea.")
    assert manage.invoke({"action": "delete", "id": note}) == "Error: action: expected one of create, got 'delete'"
    with pytest.raises(InvalidInput, match="actions: 'drop' is none of create, update, delete"):
        tools(memory, actions=("create", "drop"))


def test_a_memory_that_is_away_is_a_text(memory: GraphMemory) -> None:
    manage, search = tools(memory)
    memory.close()
    assert manage.invoke({"content": "Maya prefers tea."}).startswith("Error: ")
    assert search.invoke({"query": "tea"}).startswith("Error: ")


def test_an_agent_uses_them(memory: GraphMemory) -> None:
    note = {"name": "manage_memory", "args": {"content": "Maya prefers tea."}, "id": "c1"}
    question = {"name": "search_memory", "args": {"query": "What does Maya prefer?"}, "id": "c2"}
    model = Scripted(answers=[AIMessage("", tool_calls=[note]), AIMessage("", tool_calls=[question]), "Tea."])
    running: Any = create_agent(model, tools=memory_tools(memory))  # pyright: ignore[reportUnknownVariableType]
    done = running.invoke({"messages": [{"role": "user", "content": "I prefer tea. What do I prefer?"}]})
    results = [str(message.text) for message in done["messages"] if isinstance(message, ToolMessage)]
    assert results[0].startswith("Created note ")
    assert "Maya prefers tea." in results[1]
