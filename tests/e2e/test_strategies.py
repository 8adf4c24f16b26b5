"""Every strategy of recall through the facade: the same facts, in the same order, from any store."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from typing import Any, get_args

import pytest

from graphmem import GraphMemory, InvalidInput
from graphmem.results import RecallResult, Strategy
from tests.integration.embed.support import real_model

OpenMemory = Callable[..., GraphMemory]

TURNS = """
Maya | works at | Globex
Globex | based in | Austin
Maya | knows | Jonas
Jonas | works at | Initech
Jonas | lives in | Berlin
Maya | uses | Rust
Jonas | uses | Rust
Priya | leads | Orion
Orion | depends on | Rust
Rust | caused | the outage
the outage | led to | a rewrite
Priya | knows | Maya
Orion | part of | Globex
""".strip().splitlines()

QUESTIONS = (
    "Where does Maya work?",
    "How is Maya related to Jonas?",
    "Why was there an outage after Rust?",
    "What is Orion part of?",
    "Who lives in Berlin?",
    "Rust",
    "What did Priya do last week?",
)
STRATEGIES = (*get_args(Strategy), "auto")


def filled(memory: GraphMemory) -> GraphMemory:
    """Store the turns, two to an episode, so that names are mentioned together."""
    numbers = count()
    memory.ingest({"text": "\n".join(pair), "external_id": f"t{next(numbers)}"} for pair in pairwise(TURNS))
    return memory


def told(found: RecallResult) -> list[tuple[Any, ...]]:
    return [(f.source, f.relation, f.target, f.path, f.hop, round(f.score or 0.0, 9)) for f in found]


@pytest.mark.server
@pytest.mark.full(store_url="memory")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_store_gives_the_same_facts_in_the_same_order(
    memory: GraphMemory, open_memory: OpenMemory, strategy: Any
) -> None:
    oracle = filled(open_memory("memory://oracle-of-strategies"))
    filled(memory)
    for question in QUESTIONS:
        found = memory.recall(question, strategy=strategy, limit=20)
        assert told(found) == told(oracle.recall(question, strategy=strategy, limit=20))
        assert found.facts


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_a_result_says_by_which_strategy_it_was_found(memory: GraphMemory, strategy: Any) -> None:
    assert filled(memory).recall("Maya", strategy=strategy).strategy == strategy


def test_an_unknown_strategy_is_an_error_that_names_the_known(memory: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match=r"strategy.*bfs.*dfs"):
        memory.recall("Maya", strategy="dfs")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "answer"), [("Who makes music?", "Ben plays the violin"), ("Who has a dog?", "Eve has a retriever")]
)
def test_a_question_without_a_word_of_any_name_is_answered_by_meaning(
    store_url: str, open_memory: OpenMemory, question: str, answer: str
) -> None:
    memory = open_memory(store_url, embeddings=real_model())
    facts = [("Anna", "drives", "a Volvo"), ("Ben", "plays", "the violin"), ("Eve", "has", "a retriever")]
    memory.add_facts(facts)
    assert [f.fact for f in memory.recall(question)][:1] == [answer]


def test_a_question_about_nothing_that_is_known_finds_nothing(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings=real_model())
    memory.add_facts([("Anna", "drives", "a Volvo"), ("Ben", "plays", "the violin")])
    assert not memory.recall("When does photosynthesis produce oxygen?").facts


@pytest.mark.server
@pytest.mark.parametrize("episodes", [0, 20])
def test_a_number_or_a_letter_tells_entities_apart(store_url: str, open_memory: OpenMemory, episodes: int) -> None:
    memory = open_memory(store_url, embeddings="none")
    memory.add_facts([(f"Room {n} East", "has_lamp", f"Lamp {n % 7}") for n in range(120)])
    memory.add_facts([(f"Customer {n}", "located_in", f"Town {n}") for n in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"])
    assert memory.recall("Which lamp is in Room 77 East?", episodes=episodes)[0].source == "Room 77 East"
    assert memory.recall("Where is Customer Q?", episodes=episodes)[0].source == "Customer Q"
