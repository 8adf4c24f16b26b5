"""Questions in the first person are about who asks them."""

from __future__ import annotations

import pytest
from conftest import OpenMemory

from graphmem import GraphMemory

FACTS = [
    ("Maya", "works_at", "Globex"),
    ("Tom", "works_at", "Initech"),
    ("Maya", "lives_in", "Ghent"),
    ("Tom", "lives_in", "Turin"),
]


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    memory = open_memory(store_url, embeddings="none")
    memory.add_facts(FACTS)
    memory.ingest(
        [
            {"speaker": "Maya", "text": "I adopted a parrot.", "session_id": "one"},
            {"speaker": "Tom", "text": "I adopted a turtle.", "session_id": "two"},
        ]
    )
    return memory


@pytest.mark.parametrize(
    ("question", "asked_by", "first"),
    [
        ("Where do I work?", "Maya", "Maya works at Globex"),
        ("Where do I work?", "Tom", "Tom works at Initech"),
        ("what's my home?", "Tom", "Tom"),
        ("Where does Tom work?", "Maya", "Tom works at Initech"),
    ],
)
def test_recall_answers_about_who_asks(memory: GraphMemory, question: str, asked_by: str, first: str) -> None:
    assert memory.recall(question, asked_by=asked_by).facts[0].fact.startswith(first)


def test_without_an_asker_nobody_is_meant(memory: GraphMemory) -> None:
    assert memory.recall("Where do I work?").facts == ()


@pytest.mark.parametrize(("asked_by", "pet"), [("Maya", "parrot"), ("Tom", "turtle")])
def test_search_and_context_prefer_the_words_of_who_asks(memory: GraphMemory, asked_by: str, pet: str) -> None:
    found = memory.search("Which animal did I adopt?", asked_by=asked_by)
    quotes = memory.context("Which animal did I adopt?", asked_by=asked_by).partition("## Episodes")[2]
    assert pet in found.found[0].episode.text
    assert min((quotes.find(word) % 10_000, word) for word in ("parrot", "turtle"))[1] == pet
