"""Chat exports in JSON: conversations, coding agents, assistants and messengers, with samples of the real formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.ingest.readers import Refused, open_source, read_items
from graphmem.inputs import Document, Turn


def read(folder: Path, name: str, *lines: object, **options: Any) -> tuple[list[Turn], list[str], list[Refused]]:
    """Write values as lines of a file; return its turns, the notes of reading, and what was refused."""
    path = folder / name
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    refused: list[Refused] = []
    with open_source(path, **options) as source:
        items = list(read_items(source, refused.append))
        assert [item for item in items if isinstance(item, Document)] == []
        return [item for item in items if isinstance(item, Turn)], source.notes, refused


def said(turns: list[Turn]) -> list[tuple[str | None, str | None, str]]:
    """Return role, speaker and text of each turn."""
    return [(turn.role, turn.speaker, turn.text) for turn in turns]


# Conversations


def test_equal_messages_of_a_conversation_are_stored_once_each(tmp_path: Path) -> None:
    def call(number: int) -> dict[str, Any]:
        function = {"name": "book", "arguments": json.dumps({"n": number})}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", "function": function}]}

    ok = {"role": "user", "content": "ok"}
    runs = [{"id": f"run_{n}", "messages": [call(1), ok, call(2), ok]} for n in (1, 2)]
    (tmp_path / "runs.json").write_text(json.dumps(runs))

    with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
        first = memory.ingest(tmp_path / "runs.json")
        again = memory.ingest(tmp_path / "runs.json")
        texts = [turn.text for turn in memory.session("run_1")]

    assert (first.stored, first.known, again.stored, again.known) == (8, 0, 0, 8)
    assert texts == ['[calls book({"n": 1})]', "ok", '[calls book({"n": 2})]', "ok"]


def test_messages_of_a_conversation_keep_their_ids_while_it_grows(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": text} for text in ("ok", "Hi", "ok")]
    before, _, _ = read(tmp_path, "c.json", {"id": 7, "messages": messages[:2]})
    after, _, _ = read(tmp_path, "c.json", {"id": 7, "messages": messages})
    assert [turn.external_id for turn in before] == [turn.external_id for turn in after][:2]
    assert len({turn.external_id for turn in after}) == 3


@pytest.mark.parametrize(
    ("about", "session", "metadata"),
    [
        ({"name": "Trip", "id": 7}, "7", {"conversation": "Trip"}),
        ({"title": "Trip"}, "Trip", {"conversation": "Trip"}),
        ({"title": "Trip", "uuid": "u1"}, "u1", {"conversation": "Trip"}),
        ({"session_id": "s", "id": "run", "model": "m"}, "s", {"conversation": "run", "model": "m"}),
        ({"metadata": {"a": 1}}, None, {"a": 1}),
    ],
)
def test_the_name_of_a_conversation_is_no_speaker_and_its_title_makes_no_documents(
    tmp_path: Path, about: dict[str, Any], session: str | None, metadata: dict[str, Any]
) -> None:
    messages = [{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Nice."}]
    turns, _, _ = read(tmp_path, "c.json", {**about, "messages": messages})
    assert said(turns) == [("user", None, "I live in Oslo."), ("assistant", None, "Nice.")]
    assert {turn.session_id for turn in turns} == {session}
    assert [turn.metadata for turn in turns] == [metadata] * 2
    assert len({turn.external_id for turn in turns}) == 2


def test_fields_of_a_message_come_before_those_of_its_conversation(tmp_path: Path) -> None:
    about = {"session_id": "s", "user": "Maya", "timestamp": "2026-01-01T09:00:00Z"}
    messages = [
        {"role": "user", "content": "Hi", "date": "2026-01-02", "thread_id": "t"},
        {"role": "user", "content": "Yo", "sender": "Tom"},
        {"role": "assistant", "content": "Hello"},
    ]
    turns, _, _ = read(tmp_path, "c.json", {**about, "messages": messages})
    assert [turn.speaker for turn in turns] == ["Maya", "Tom", None]
    assert [turn.session_id for turn in turns] == ["t", "s", "s"]
    assert [turn.occurred_at and turn.occurred_at.day for turn in turns] == [2, 1, 1]
