"""Why a recall returned what it did, asked later, on every store."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import OpenMemory

from graphmem import GraphMemory, InvalidInput, NotFound, registry
from graphmem.models import utc_now
from graphmem.testing.rows import scope_of
from tests.integration.sqlite.support import unprivileged

FACTS = [
    ("Maya", "works at", "Globex"),
    ("Maya", "knows", "Jonas"),
    ("Jonas", "lives in", "Rome"),
    ("Bettina", "lives in", "Oslo"),
]


@pytest.fixture
def filled(memory: GraphMemory) -> GraphMemory:
    memory.add_facts(FACTS)
    return memory


@pytest.mark.server
def test_a_trace_tells_seeds_and_returned_and_considered_facts(filled: GraphMemory) -> None:
    found = filled.recall("Where does Maya work?", limit=2, trace=True)
    assert found.trace_id is not None
    told = filled.why(found.trace_id)
    assert (told.id, told.query, told.strategy) == (found.trace_id, "Where does Maya work?", found.strategy)
    assert [(s.entity_id, s.score) for s in told.seeds] == [(s.entity_id, s.score) for s in found.seeds]
    rows = [(row.rank, row.fact.id, row.score, row.hop) for row in told.facts if row.rank is not None]
    assert rows == [(n, fact.id, fact.score, fact.hop) for n, fact in enumerate(found.facts, 1)]
    assert [(row.fact.fact, row.found_at, row.hop) for row in told.facts if row.rank is None] == [
        ("Jonas lives in Rome", "Rome", 1)
    ]


def test_a_fact_is_found_at_the_end_that_is_farther_from_the_seed(filled: GraphMemory) -> None:
    found = filled.recall("Who is in Rome?", trace=True)
    told = filled.why(found.trace_id or "")
    assert [(row.fact.fact, row.found_at) for row in told.facts[:2]] == [
        ("Jonas lives in Rome", "Jonas"),
        ("Maya knows Jonas", "Maya"),
    ]


def test_without_being_asked_for_no_trace_is_kept(filled: GraphMemory) -> None:
    assert filled.recall("Where does Maya work?").trace_id is None
    assert filled.admin.traces() == []


def test_a_recall_that_found_nothing_is_traced_too(memory: GraphMemory) -> None:
    found = memory.recall("What about Xanthippe?", trace=True)
    told = memory.why(found.trace_id or "")
    assert (told.seeds, told.facts) == ((), ())


def test_recalls_are_listed_newest_first_by_entity_and_by_fact(filled: GraphMemory) -> None:
    questions = ("Where does Maya work?", "Where does Bettina live?", "Whom does Maya know?")
    [first, _, _] = [filled.recall(question, trace=True) for question in questions]
    assert [trace.query for trace in filled.admin.traces()] == list(reversed(questions))
    assert [trace.query for trace in filled.admin.traces(limit=1)] == [questions[2]]
    assert [trace.query for trace in filled.admin.traces("Oslo")] == [questions[1]]
    assert [trace.query for trace in filled.admin.traces(fact_id=first.facts[0].id)] == [questions[2], questions[0]]
    assert filled.admin.traces("Nobody") == []
    assert filled.stats().recalls == 3


@pytest.mark.server
def test_a_trace_is_of_one_scope(filled: GraphMemory) -> None:
    found = filled.recall("Where does Maya work?", trace=True)
    other = filled.in_scope(scope_of("other"))
    with pytest.raises(NotFound):
        other.why(found.trace_id or "")
    assert other.admin.traces() == []
    with pytest.raises(InvalidInput, match="one scope"):
        filled.recall("Maya", trace=True, scopes=[filled.scope, other.scope])


def test_a_trace_is_of_the_moment_that_was_asked_about(filled: GraphMemory) -> None:
    found = filled.recall("Where does Maya work?", trace=True, as_of="2020-01-01T00:00:00Z")
    told = filled.why(found.trace_id or "")
    assert (told.as_of, told.facts) == (found.as_of, ())


def test_traces_can_be_asked_for_from_async_code(filled: GraphMemory) -> None:
    async def ask() -> tuple[str, int]:
        found = await filled.arecall("Where does Maya work?", trace=True)
        return (await filled.awhy(found.trace_id or "")).query, len(await filled.admin.atraces("Maya"))

    assert asyncio.run(ask()) == ("Where does Maya work?", 1)


def test_a_trace_is_written_by_the_end_at_the_latest(
    sqlite_file: Path, open_memory: Callable[..., GraphMemory]
) -> None:
    url = f"sqlite:///{sqlite_file}"
    with GraphMemory.open(url, extractor="none") as first:
        first.add_facts(FACTS)
        found = first.recall("Where does Maya work?", trace=True)
    assert open_memory(url).why(found.trace_id or "").query == "Where does Maya work?"


def test_a_store_that_cannot_be_written_still_recalls(open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tempfile.mkdtemp())  # others may come to it, which they may not to `tmp_path`
    url = f"sqlite:///{folder}/memory.db"
    with GraphMemory.open(url, extractor="none", embeddings="none") as first:
        first.add_facts(FACTS)
        # the project may lie where only root can read: what is loaded from it is, before root's rights are given up
        first.recall("Where does Maya work?", trace=True)
        found_now = registry.installed_backends()
        monkeypatch.setattr(registry, "installed_backends", lambda: found_now)
        traced = len(first.admin.traces())
    with sqlite3.connect(folder / "memory.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (folder / "memory.db").chmod(0o444)
    folder.chmod(0o555)
    try:
        with unprivileged():
            reader = open_memory(url, embeddings="none")
            found = reader.recall("Where does Maya work?", trace=True)
            assert len(found) > 0
            assert len(reader.admin.traces()) == traced
            reader.close()
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_trace_is_kept_though_its_memory_is_put_in_order_at_once(memory: GraphMemory) -> None:
    memory.ingest([{"text": "Ada | knows | Carol"}, {"text": "Bob | uses | Rust"}, {"text": "Bob | uses | Python"}])
    asked = memory.recall("Bob", trace=True)
    [made] = memory.admin.merge("Bob", into="Ada")
    assert asked.trace_id is not None
    assert {told.fact.id for told in memory.why(asked.trace_id).facts} >= {fact.id for fact in asked.facts}
    asked = memory.recall("Ada", trace=True)
    memory.admin.unmerge(made.id)
    assert asked.trace_id is not None
    assert memory.why(asked.trace_id).seeds


def test_a_trace_is_kept_though_what_it_found_is_evicted_at_once(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, expired_edge_retention_days=0)
    memory.ingest([{"text": "Ada | works_at | Initech"}])
    then = utc_now()
    memory.add_facts([("Ada", "works_at", "Globex")])
    asked = memory.recall("Ada", as_of=then, trace=True)
    assert [fact.target for fact in asked.facts] == ["Initech"]
    memory.admin.evict()
    assert asked.trace_id is not None
    assert memory.why(asked.trace_id).seeds
