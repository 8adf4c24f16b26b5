"""Real questions about real conversations: every store ranks the episodes alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphmem import Fact, GraphMemory, Scope
from tests.bench.locomo import observations, questions, scope_of, turns
from tests.integration.embed.support import CachedModel

OpenMemory = Callable[..., GraphMemory]

CONVERSATIONS, QUESTIONS, TOP = 3, 200, 10

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def conversations(shared_data: Path) -> list[dict[str, Any]]:
    return json.loads((shared_data / "locomo_dev.json").read_text("utf-8"))[:CONVERSATIONS]


@pytest.fixture(scope="module")
def expected(conversations: list[dict[str, Any]], cached_model: CachedModel) -> dict[tuple[str, str], list[str]]:
    """The ranking of the memory store, the oracle."""
    options: dict[str, Any] = {"extractor": "none", "embeddings": cached_model, "background": False}
    with GraphMemory.open("memory://oracle-of-rankings", **options) as oracle:
        return rankings(oracle, conversations)


def rankings(memory: GraphMemory, conversations: list[dict[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """Return the top episodes for each (scope, question)."""
    found: dict[tuple[str, str], list[str]] = {}
    for conversation in conversations:
        asked = questions(conversation)
        scope = Scope.from_text(asked[0].scope or "")
        here = memory.in_scope(scope)
        here.ingest(turns(conversation))
        for question in asked[: QUESTIONS - len(found)]:
            results = here.search(question.question, k=TOP)
            found[scope.key, question.question] = [one.episode.external_id or "" for one in results]
    return found


@pytest.mark.timeout(900)
@pytest.mark.whole_store
@pytest.mark.parametrize("durable_url", ["sqlite", "neo4j"], indirect=True)
def test_the_top_ten_of_two_hundred_questions_are_those_of_the_memory_store(
    durable_url: str,
    open_memory: OpenMemory,
    conversations: list[dict[str, Any]],
    cached_model: CachedModel,
    expected: dict[tuple[str, str], list[str]],
) -> None:
    memory = open_memory(durable_url, extractor="none", embeddings=cached_model)
    found = rankings(memory, conversations)
    assert len(found) >= 0.95 * QUESTIONS
    shared = [len({*found[key]} & {*expected[key]}) / len(expected[key]) for key in expected]
    assert sum(shared) / len(shared) >= 0.99


@pytest.mark.timeout(900)
def test_two_hundred_recalls_of_a_memory_that_moved_to_neo4j_are_those_of_the_file(
    tmp_path: Path,
    empty_neo4j_url: str,
    open_memory: OpenMemory,
    conversations: list[dict[str, Any]],
    cached_model: CachedModel,
) -> None:
    scope = scope_of(conversations[0])
    options: dict[str, Any] = {"embeddings": cached_model, "scope": scope}
    there = open_memory(f"sqlite:///{tmp_path}/memory.db", extractor="spacy", **options)
    there.ingest(turns(conversations[0]))
    there.add_facts(observations(conversations[0]))
    there.admin.refresh_communities()
    there.admin.export(tmp_path / "memory.jsonl")
    moved = open_memory(empty_neo4j_url, extractor="none", **options)
    moved.admin.import_(tmp_path / "memory.jsonl")
    assert moved.admin.checksum() == there.admin.checksum()
    asked = [question.question for conversation in conversations for question in questions(conversation)][:QUESTIONS]
    overlaps = [overlap(moved.recall(question).facts, there.recall(question).facts) for question in asked]
    assert len(overlaps) == QUESTIONS
    assert sum(overlaps) / len(overlaps) >= 0.99


def overlap(found: Sequence[Fact], expected: Sequence[Fact]) -> float:
    """Return the share of the expected facts that was found; two empty answers agree."""
    ids = {fact.id for fact in expected}
    return len(ids & {fact.id for fact in found}) / len(ids) if ids else float(not found)
