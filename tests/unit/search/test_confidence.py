"""Confidence of a search: in [0, 1], falling with the rank, and no part of the ranking."""

from __future__ import annotations

import numpy as np
import pytest

from graphmem import GraphMemory
from graphmem.search.confidence import FEATURES, WITH_VECTORS, WORDS_ONLY, overall


@pytest.fixture
def memory() -> GraphMemory:
    memory = GraphMemory.open("memory://", extractor="none", embeddings="none", background=False)
    said = [("Maya", "I adopted a grey cat last week."), ("Tom", "My dog is called Rex."), ("Maya", "It rains again.")]
    memory.ingest([{"text": text, "speaker": who, "session_id": "1"} for who, text in said])
    return memory


def test_confidence_is_a_probability_and_highest_for_the_best(memory: GraphMemory) -> None:
    found = memory.search("Which cat did Maya adopt?")
    each = [one.confidence for one in found]
    assert found[0].episode.text.startswith("I adopted")
    assert each[0] == max(each)
    assert all(0 < value < 1 for value in each)
    assert each[0] < found.confidence or len(each) == 1


def test_a_turn_of_another_speaker_is_less_likely_an_answer() -> None:
    other = FEATURES.index("other speaker")
    assert WITH_VECTORS[other] < -1
    assert WORDS_ONLY[other] < -1


def test_nothing_is_returned_below_the_minimum_and_the_confidence_is_told(memory: GraphMemory) -> None:
    sure = memory.search("Which cat did Maya adopt?")
    none = memory.search("Which cat did Maya adopt?", min_confidence=1.0)
    assert len(none) == 0
    assert none.confidence == sure.confidence
    assert len(memory.search("Which cat did Maya adopt?", min_confidence=sure.confidence)) == len(sure)


def test_an_empty_memory_has_no_confidence() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        assert memory.search("Which cat?").confidence == 0
    assert overall(np.array([])) == 0


def test_a_whole_result_answers_if_one_of_the_best_does() -> None:
    assert overall(np.array([0.5, 0.5])) == pytest.approx(0.75)
    assert overall(np.full(20, 0.1)) == pytest.approx(1 - 0.9**10)
