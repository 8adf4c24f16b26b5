"""Search in memories that look like no benchmark: sizes, roles, sessions and languages that a user may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory

FILLER = ["The weather is fine.", "We had soup for lunch.", "The train was late.", "I watered the plants."]
ANSWER = "The piano tuner comes on Friday at noon."
QUESTION = "When does the piano tuner come?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[GraphMemory]:
    url = f"memory://{tmp_path.name}"
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False) as opened:
        yield opened


def first(memory: GraphMemory, turns: Sequence[dict[str, Any]], question: str = QUESTION) -> str:
    """Return the text of the best result."""
    memory.ingest(turns)
    results = memory.search(question, k=3)
    assert results.degraded == ()
    return results[0].episode.text


def chat(*texts: str, **fields: Any) -> list[dict[str, Any]]:
    """Return turns of a user and an assistant, who take turns."""
    roles = ("user", "assistant")
    return [{"text": text, "role": roles[i % 2], "session_id": "s", **fields} for i, text in enumerate(texts)]


def test_a_turn_of_350_kilobytes_does_not_hide_the_answer(memory: GraphMemory) -> None:
    lines = [f"line {i} of the log, request number {i} is done." for i in range(8_000)]
    lines[100], lines[4_000], lines[7_900] = "The piano is loud.", "A guitar tuner broke.", "They come at noon."
    huge = "\n".join(lines)
    assert len(huge) > 330_000
    assert first(memory, chat("Here is my log:", huge, ANSWER, *FILLER)) == ANSWER
    assert ANSWER in memory.context(QUESTION, budget_tokens=300)


def test_turns_of_one_word(memory: GraphMemory) -> None:
    assert first(memory, chat("yes", "no", "piano", "okay", "fine"), "Was it the piano?") == "piano"


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_all_turns_of_one_role(memory: GraphMemory, role: str) -> None:
    assert first(memory, chat(*FILLER, ANSWER, role=role)) == ANSWER


def test_turns_without_speaker_session_and_role(memory: GraphMemory) -> None:
    assert first(memory, [{"text": text} for text in [*FILLER, ANSWER]]) == ANSWER


def test_sessions_that_are_interleaved(memory: GraphMemory) -> None:
    turns = [{"text": f"{text} {i}", "speaker": "Ines", "session_id": str(i % 3)} for i, text in enumerate(FILLER * 3)]
    turns.insert(5, {"text": ANSWER, "speaker": "Ines", "session_id": "1"})
    assert first(memory, turns) == ANSWER


def test_an_assistant_that_repeats_the_user(memory: GraphMemory) -> None:
    turns = chat(*FILLER[:2], f"My {ANSWER[4:]}", f"Noted: My {ANSWER[4:]}", *FILLER[2:])
    assert first(memory, turns, "When does my piano tuner come?") == f"My {ANSWER[4:]}"


def test_a_question_that_is_longer_than_any_turn(memory: GraphMemory) -> None:
    question = f"I have been wondering for a long time, and can't remember it at all: {QUESTION.lower()} " * 6
    assert first(memory, chat(*FILLER, ANSWER), question) == ANSWER


@pytest.mark.parametrize("question", ["when does the piano tuner come", "WHEN DOES THE PIANO TUNER COME"])
def test_a_question_in_one_case(memory: GraphMemory, question: str) -> None:
    assert first(memory, chat(*FILLER, ANSWER), question) == ANSWER


def test_a_question_in_german(memory: GraphMemory) -> None:
    answer = "Der Klavierstimmer kommt am Freitag."
    assert first(memory, chat(*FILLER, answer), "Wann kommt der Klavierstimmer?") == answer


@pytest.mark.parametrize("question", ["What is it that you have?", "?", "the"])
def test_a_question_of_stop_words_fails_nothing(memory: GraphMemory, question: str) -> None:
    memory.ingest(chat(*FILLER, ANSWER))
    assert len(memory.search(question, k=3)) <= 3
    assert memory.context(question) == ""


@pytest.mark.parametrize("question", [QUESTION, "Where do I live?"])
def test_a_memory_of_one_episode(memory: GraphMemory, question: str) -> None:
    assert first(memory, [{"text": ANSWER, "speaker": "Ines"}], question) == ANSWER


def test_a_memory_of_ten_episodes_answers_with_the_right_one(memory: GraphMemory) -> None:
    assert first(memory, chat(*FILLER, ANSWER, *FILLER, "That is all.")) == ANSWER
