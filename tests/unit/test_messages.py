"""Messages of common libraries, taken in by `remember` and `ingest`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage, message_to_dict

from graphmem import Attachment, Episode, GraphMemory, InvalidInput, ToolCall, Turn
from graphmem.adapters.message_keys import id_of, lasting_key
from graphmem.inputs import to_item
from graphmem.messages import tool_calls_of
from graphmem.models import Scope

CALL = ToolCall(name="weather", arguments='{"city": "Oslo"}', id="c1")
DOG = "https://example.org/dog.png"


@pytest.fixture
def memory() -> Iterator[GraphMemory]:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as opened:
        yield opened


def stored(memory: GraphMemory, message: Any, **fields: Any) -> Episode:
    [episode] = memory.episodes([memory.remember(message, **fields).episode_id])
    return episode


MESSAGES: list[tuple[Any, tuple[str, str, str | None]]] = [
    ({"role": "user", "content": "Hi"}, ("Hi", "user", None)),
    ({"role": "user", "content": "Hi", "name": "Maya"}, ("Hi", "user", "Maya")),
    (
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        ("a\nb", "user", None),
    ),
    ({"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, ("Hi", "user", None)),
    (
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
        },
        ("Hi", "assistant", None),
    ),
    ({"role": "assistant", "content": None, "refusal": "I can't."}, ("I can't.", "assistant", None)),
    (
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}]},
        ("Hi", "assistant", None),
    ),
    (HumanMessage("Hi", name="Maya"), ("Hi", "user", "Maya")),
    (AIMessage("Hi"), ("Hi", "assistant", None)),
    (ChatMessage(content="Hi", role="critic"), ("Hi", "critic", None)),
    (message_to_dict(HumanMessage("Hi")), ("Hi", "user", None)),
    (AIMessage("Hi").to_json(), ("Hi", "assistant", None)),
    (HumanMessage("Hi").model_dump(), ("Hi", "user", None)),
    (SimpleNamespace(role="assistant", content="Hi", tool_calls=None), ("Hi", "assistant", None)),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES, ids=lambda value: f"{value!r:.60}")
def test_a_message_is_a_turn(memory: GraphMemory, message: Any, expected: tuple[str, str, str | None]) -> None:
    episode = stored(memory, message)
    assert (episode.text, episode.role, episode.speaker) == expected
    assert episode.metadata == {}


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}]),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}],
        },
        {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'},
        AIMessage(
            [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}],
            tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}],
        ),
    ],
    ids=["langchain", "openai", "anthropic", "responses", "langchain-anthropic"],
)
def test_a_call_of_a_tool_is_kept_and_no_facts_are_read_from_it(memory: GraphMemory, message: Any) -> None:
    episode = stored(memory, message)
    assert (episode.role, episode.text) == ("assistant", '[calls weather({"city": "Oslo"})]')
    assert tool_calls_of(episode.metadata) == (CALL,)
    assert episode.metadata["skipped"] == "no_text"


@pytest.mark.parametrize(
    "message",
    [
        ToolMessage("20 degrees", tool_call_id="c1"),
        {"role": "tool", "tool_call_id": "c1", "content": "20 degrees"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "20 degrees"}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "20 degrees"}]}
            ],
        },
        {"type": "function_call_output", "call_id": "c1", "output": "20 degrees"},
    ],
    ids=["langchain", "openai", "anthropic", "anthropic-parts", "responses"],
)
def test_the_result_of_a_tool_names_its_call(memory: GraphMemory, message: Any) -> None:
    episode = stored(memory, message)
    assert (episode.text, episode.role, episode.metadata["tool_call_id"]) == ("20 degrees", "tool", "c1")


@pytest.mark.parametrize(
    ("part", "attachment"),
    [
        ({"type": "image_url", "image_url": {"url": DOG}}, Attachment(kind="image", url=DOG)),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}, "alt": "Rex"},
            Attachment(kind="image", media_type="image/png", size=3, description="Rex"),
        ),
        ({"type": "input_image", "image_url": DOG}, Attachment(kind="image", url=DOG)),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AAA="}},
            Attachment(kind="image", media_type="image/jpeg", size=2),
        ),
        ({"type": "image", "source": {"type": "url", "url": DOG}}, Attachment(kind="image", url=DOG)),
        (
            {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
            Attachment(kind="image", media_type="image/png", size=3),
        ),
        (
            {"type": "file", "file": {"filename": "cv.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
            Attachment(kind="file", name="cv.pdf", media_type="application/pdf", size=3),
        ),
        (
            {
                "type": "document",
                "title": "CV",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            },
            Attachment(kind="file", name="CV", media_type="application/pdf", size=3),
        ),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, Attachment(kind="audio", size=3)),
        ({"type": "hologram", "x": 1}, Attachment(kind="hologram")),
    ],
    ids=lambda value: f"{value!r:.50}",
)
def test_a_part_that_is_no_text_becomes_an_attachment(
    memory: GraphMemory, part: dict[str, Any], attachment: Attachment
) -> None:
    episode = stored(memory, {"role": "user", "content": [{"type": "text", "text": "Look!"}, part]})
    assert episode.text == "Look!"
    assert episode.attachments == (attachment,)


def test_a_message_of_an_image_alone_has_its_description_as_text(memory: GraphMemory) -> None:
    picture = {"type": "image_url", "image_url": {"url": DOG}, "alt": "Rex on the beach"}
    episode = stored(memory, {"role": "user", "content": [picture]})
    assert (episode.text, episode.metadata["no_text"]) == ("[image: Rex on the beach]", True)


@pytest.mark.parametrize("metadata", [{"skipped": "no"}, {"skipped": "injection"}, {"no_text": True}])
def test_metadata_of_a_caller_keep_no_text_from_extraction(memory: GraphMemory, metadata: dict[str, Any]) -> None:
    episode = stored(memory, {"text": "I work at Initech.", "speaker": "Maya", "metadata": {**metadata, "file": "a"}})
    assert (episode.metadata, episode.processed_at) == ({"file": "a"}, None)


def test_what_a_user_adds_to_the_result_of_a_tool_stays_the_text(memory: GraphMemory) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "20 degrees"}
    episode = stored(memory, {"role": "user", "content": [result, {"type": "text", "text": "Is that warm?"}]})
    assert (episode.text, episode.role) == ("Is that warm?", "user")
    assert episode.attachments == (Attachment(kind="tool_result", name="c1", description="20 degrees"),)


def test_fields_of_a_turn_may_be_added_to_a_message(memory: GraphMemory) -> None:
    episode = stored(memory, HumanMessage("Hi", name="M."), speaker="Maya", session_id="s", metadata={"mood": "good"})
    assert (episode.speaker, episode.session_id, episode.metadata) == ("Maya", "s", {"mood": "good"})


def test_a_growing_conversation_is_stored_once(memory: GraphMemory) -> None:
    said: list[BaseMessage] = [HumanMessage("Hi", id="m1"), AIMessage("Hello", id="m2")]
    memory.ingest(said)
    report = memory.ingest([*said, HumanMessage("Bye", id="m3")])
    assert (report.stored, report.known) == (1, 2)


@pytest.mark.parametrize("text", ["content", "message", "body", "text"])
def test_fields_have_the_same_other_names_as_in_files(memory: GraphMemory, text: str) -> None:
    fields = {text: "Hi", "author": "Ann", "timestamp": "2025-01-01T00:00:00Z", "thread_id": "t", "uuid": "u"}
    found = stored(memory, fields)
    assert (found.text, found.speaker, found.session_id, found.external_id) == ("Hi", "Ann", "t", "u")
    assert found.occurred_at.year == 2025
    for more in ({"speaker": "Bob"}, {"channel": "ops"}, {"text": "Hi", "content": "Yo"}):
        with pytest.raises(InvalidInput, match="no such field"):
            memory.remember({**fields, **more})


def test_the_same_id_in_another_conversation_is_another_message(memory: GraphMemory) -> None:
    for session in ("one", "two"):
        assert memory.remember(HumanMessage("Hi", id="1"), session_id=session).created


def test_messages_and_turns_may_be_mixed(memory: GraphMemory) -> None:
    mixed = [HumanMessage("a"), {"role": "user", "content": "b", "name": "Maya"}, {"text": "c"}, "d", Turn(text="e")]
    assert memory.ingest(mixed).stored == 5


def test_the_id_of_a_call_may_be_a_number(memory: GraphMemory) -> None:
    function = {"name": "weather", "arguments": "{}"}
    twice = [{"id": 7, "type": "function", "function": function}, {"id": "7", "function": function}]
    episode = stored(memory, {"role": "assistant", "content": "", "tool_calls": twice})
    assert [call.id for call in tool_calls_of(episode.metadata)] == ["7"]


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("human", "user"),
        ("ai", "assistant"),
        ("function", "tool"),
        ("HumanMessageChunk", "user"),
        ("AIMessageChunk", "assistant"),
        ("message", None),
        ("model", None),
    ],
)
def test_types_of_langchain_stand_for_roles(memory: GraphMemory, kind: str, role: str | None) -> None:
    assert stored(memory, {"type": kind, "content": "Hi there."}).role == role


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"role": "user", "content": "Hi", "speeker": "Maya"}, "Turn.speeker: no such field, the fields are text, "),
        ({"role": "user", "content": 7}, "message content 7: expected a text or a list of parts"),
        ({"role": "user", "content": []}, "Turn.text"),
        (HumanMessage("  "), "Turn.text: contains only white space"),
        ([HumanMessage("a"), HumanMessage("b")], "pass several of them to ingest"),
        ("   ", "Turn.text: contains only white space"),
        ("\n\t\u3000", "Turn.text: contains only white space"),
        ("\ud800", "Turn.text"),
        (" \udfff ", "Turn.text: contains only white space"),
        ({"title": "Page", "text": " "}, "Document.text: contains only white space"),
        ({"text": "", "attachments": []}, "Turn.text"),
        ({"text": "", "attachments": 5}, "Turn.attachments"),
        ({"text": "", "tool_calls": [5]}, "Turn.tool_calls.0"),
        ({"role": "user", "content": [[[[[[[[[["deep"]]]]]]]]]]}, "content: lists are nested"),
    ],
    ids=lambda value: f"{value!r:.40}",
)
def test_what_has_no_words_or_no_known_shape_is_refused(memory: GraphMemory, value: Any, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory.remember(value)
    assert reason in str(refused.value)
    assert memory.stats().episodes == 0


def test_metadata_of_the_same_names_that_is_none_of_ours_is_left_alone() -> None:
    for mine in ("yes", "[1]", '[{"kind": 1}]', json.dumps({"a": 1}), 7):
        episode = Episode(scope=Scope(), text="Hi", metadata={"attachments": mine})
        assert (episode.attachments, episode.metadata) == ((), {"attachments": mine})
        assert tool_calls_of({"tool_calls": mine}) == ()


def test_attachments_in_the_metadata_of_an_episode_become_its_field() -> None:
    episode = Episode(scope=Scope(), text="Hi", metadata={"attachments": '[{"kind": "image", "url": "u"}]', "n": 1})
    assert (episode.attachments, episode.metadata) == ((Attachment(kind="image", url="u"),), {"n": 1})


@pytest.mark.parametrize(
    ("text", "attachment", "searchable", "attached"),
    [
        ("Look!", {"description": "Rex, asleep", "name": "1.png"}, "Look!\nRex, asleep", "[image: Rex, asleep]"),
        ("Look!", {"name": "rex.png", "url": "u"}, "Look!\nrex.png", "[image: rex.png]"),
        ("Look!", {"url": "u"}, "Look!", "[image: u]"),
        ("[image: Rex]", {"description": "Rex"}, "[image: Rex]", ""),
    ],
)
def test_what_is_attached_is_searched_by_its_words(
    text: str, attachment: dict[str, Any], searchable: str, attached: str
) -> None:
    episode = Episode(scope=Scope(), text=text, attachments=(Attachment(kind="image", **attachment),))
    assert (episode.searchable_text, episode.attached) == (searchable, attached)


def test_an_episode_is_found_by_what_its_picture_shows(memory: GraphMemory) -> None:
    picture = Attachment(kind="image", description="a grey dog at the lighthouse")
    memory.ingest([{"text": "Guess who came along?", "speaker": "Maya", "attachments": [picture]}, "We had tea."])
    [found] = memory.search("Who was at the lighthouse?", k=1)
    assert found.episode.attachments == (picture,)
    assert 'Maya: "Guess who came along?" [image: a grey dog at the lighthouse]' in memory.context("the lighthouse?")


def test_a_turn_takes_attachments_by_hand() -> None:
    turn = to_item({"text": "", "attachments": [{"kind": "image", "description": "Rex"}]})
    assert isinstance(turn, Turn)
    assert (turn.text, turn.attachments) == ("[image: Rex]", (Attachment(kind="image", description="Rex"),))


@pytest.mark.parametrize("value", ["Hi.", {"text": "Hi."}, {"text": "Hi.", "title": None}, HumanMessage("Hi.")])
def test_a_title_of_none_is_none(value: Any) -> None:
    turn = to_item(value, speaker="Maya", title=None)
    assert isinstance(turn, Turn)
    assert (turn.text, turn.speaker) == ("Hi.", "Maya")


@pytest.mark.parametrize("number", ["run:id=5", "5", "a\nb"])
def test_the_id_of_a_message_is_read_from_its_key(number: str) -> None:
    assert id_of(number) == number
    assert id_of(lasting_key({"role": "user", "content": "hello"}, number)) == number
