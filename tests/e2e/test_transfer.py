"""A memory that is exported and imported is the same, on every store; files that can't be taken are refused by line."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from children import child
from conftest import OpenMemory
from test_search import WordVectors
from toy import ToyExtractor

from graphmem import Conflict, GraphMemory, InvalidInput
from graphmem.models import Scope


def fill(memory: GraphMemory) -> None:
    """Give a memory something of every kind of row."""
    turns: list[dict[str, Any]] = [
        {
            "text": f"Person {i} | knows | Person {i + 1} # née “{i}”",
            "session_id": "s",
            "external_id": f"e{i}",
            "metadata": {"a": None, "b": 1.5, "ü": "a\u2028b\n"},
            "occurred_at": f"2026-01-0{i + 1}T10:00:00.123457Z",
        }
        for i in range(8)
    ]
    memory.ingest(turns)
    memory.add_facts(
        [
            {"subject": "Ada", "relation": "works_at", "object": "Initech", "valid_from": "2024-01-01T00:00:00Z"},
            {"subject": "Ada", "relation": "works_at", "object": "Globex", "valid_from": "2025-01-01T00:00:00Z"},
            {"subject": "Ada L", "relation": "knows", "object": "Person 1"},
        ]
    )
    memory.merge("Ada L", into="Ada")
    undone = memory.merge("Person 7", into="Person 8")
    memory.unmerge(undone[0].id)
    memory.refresh_communities()
    memory.recall("Who does Person 3 know?", trace=True)
    memory.search("Ada")
    memory.remember("Person 0 | waits | Person 3")
    memory.remember("Person 1 | says | what cannot be read", session_id="s")
    memory.backfill()
    memory.decay()


@pytest.fixture
def told(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    memory = open_memory(store_url, embeddings=WordVectors(), max_attempts=1)
    fill(memory)
    return memory


@pytest.mark.parametrize("other", ["memory://", "sqlite"])
def test_an_imported_memory_is_the_same_in_another_store(
    told: GraphMemory, tmp_path: Path, open_memory: OpenMemory, other: str
) -> None:
    file = tmp_path / "all.jsonl"
    written = told.export(file)
    url = other if other == "memory://" else f"sqlite:///{tmp_path}/other.db"
    there = open_memory(url, embeddings=WordVectors())
    read = there.import_(file)
    assert (read.counts, read.complete) == (written.counts, True)
    assert there.checksum() == written.checksum == told.checksum()
    assert there.stats() == told.stats()
    again = there.export(tmp_path / "again.jsonl")
    assert again.counts == written.counts
    assert sorted((tmp_path / "again.jsonl").read_bytes().splitlines()[1:-1]) == sorted(
        file.read_bytes().splitlines()[1:-1]
    )
    assert [f.episode.id for f in there.search("Ada works").found] == [
        f.episode.id for f in told.search("Ada works").found
    ]


@pytest.mark.parametrize("kinds", [8])
def test_something_of_every_kind_is_exported(told: GraphMemory, kinds: int) -> None:
    file = io.StringIO()
    counts = told.export(file).counts
    assert len(counts) >= kinds
    assert {"episode", "entity", "alias", "edge", "mention", "merge", "recall", "index", "mark"} <= counts.keys()
    assert len(file.getvalue().splitlines()) >= sum(counts.values()) + 2


def test_an_import_is_repeated_without_a_change(told: GraphMemory, tmp_path: Path, open_memory: OpenMemory) -> None:
    told.export(tmp_path / "all.jsonl")
    there = open_memory("memory://", embeddings=WordVectors())
    for _ in range(2):
        there.import_(tmp_path / "all.jsonl")
        assert there.checksum() == told.checksum()
    told.import_(tmp_path / "all.jsonl")
    assert there.checksum() == told.checksum()


def employed(memory: GraphMemory, since: str, where: str) -> None:
    memory.add_facts(
        [{"subject": "Eve", "relation": "works_at", "object": where, "valid_from": f"{since}-01-01T00:00:00Z"}]
    )


def test_an_export_into_no_folder_is_refused(memory: GraphMemory, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        memory.export(tmp_path / "absent" / "memory.jsonl")
    assert not list(tmp_path.glob("absent*"))


def test_an_older_export_rewinds_nothing(memory: GraphMemory, tmp_path: Path) -> None:
    employed(memory, "2020", "Initech")
    memory.ingest([{"text": "Ada | knows | Bob"}, {"text": "Ada L | knows | Bob"}, {"text": "Carol | likes | tea"}])
    [undone] = memory.merge("Carol", into="Bob")
    memory.refresh_communities()
    memory.remember("Carol | visited | Rome")
    memory.export(tmp_path / "old.jsonl")
    memory.backfill()
    employed(memory, "2022", "Globex")
    memory.ingest([{"text": "Ada | knows | Bob"}])
    memory.unmerge(undone.id)
    memory.merge("Ada L", into="Ada")
    memory.refresh_communities()
    memory.decay()
    before = memory.checksum()
    memory.import_(tmp_path / "old.jsonl")
    assert [fact.target for fact in memory.facts("Eve")] == ["Globex"]
    assert [fact.target for fact in memory.facts("Ada")] == ["Bob"]
    assert memory.checksum() == before
    assert memory.stats().pending_episodes == 0


def test_a_newer_export_brings_what_is_new(memory: GraphMemory, tmp_path: Path, open_memory: OpenMemory) -> None:
    employed(memory, "2020", "Initech")
    memory.ingest([{"text": "Ada | knows | Bob"}, {"text": "Carol | likes | tea # who is kind"}])
    memory.merge("Carol", into="Bob")
    memory.remember("Dan | visited | Rome")
    memory.export(tmp_path / "old.jsonl")
    there = open_memory("memory://")
    there.import_(tmp_path / "old.jsonl")
    memory.backfill()
    employed(memory, "2022", "Globex")
    memory.ingest([{"text": "ADA | knows | Bob # who is clever"}])
    memory.unmerge(memory.merges()[0].id)
    memory.export(tmp_path / "new.jsonl")
    there.import_(tmp_path / "new.jsonl")
    for name in ("Eve", "Ada", "Bob", "Carol", "Dan"):
        assert there.history(name) == memory.history(name)
    assert there.merges(undone=True) == memory.merges(undone=True)
    assert {entity.id: entity for entity in there.entities()} == {entity.id: entity for entity in memory.entities()}


def test_a_scope_is_renamed_where_it_is_asked_for(told: GraphMemory, tmp_path: Path, open_memory: OpenMemory) -> None:
    told.export(tmp_path / "all.jsonl", vectors=False)
    there = open_memory("memory://", scope="other/one", embeddings=WordVectors())
    with pytest.raises(InvalidInput, match="line 1: the file is of scope default"):
        there.import_(tmp_path / "all.jsonl")
    there.import_(tmp_path / "all.jsonl", rename=True)
    assert there.scopes() == [Scope("other", "one")]
    assert there.checksum() == told.checksum()
    with pytest.raises(Conflict, match=r"line 2: episode: .* in another scope already.* import into another store"):
        there.in_scope("third").import_(tmp_path / "all.jsonl", rename=True)


def test_a_memory_is_not_imported_into_the_store_that_it_came_from(memory: GraphMemory, tmp_path: Path) -> None:
    memory.add_facts([("Ada", "likes", "tea")])
    memory.export(tmp_path / "all.jsonl")
    with pytest.raises(Conflict, match="import into another store"):
        memory.in_scope("copy").import_(tmp_path / "all.jsonl", rename=True)


def test_a_name_that_the_scope_has_is_told(memory: GraphMemory, tmp_path: Path, open_memory: OpenMemory) -> None:
    memory.add_facts([("Ada", "likes", "tea")])
    memory.export(tmp_path / "all.jsonl")
    other = open_memory("memory://")
    other.add_facts([("Ada", "likes", "coffee")])
    with pytest.raises(Conflict, match="import into a scope of its own"):
        other.import_(tmp_path / "all.jsonl")


# Files that are refused -----------------------------------------------------------------------------


@pytest.fixture
def lines(tmp_path: Path, open_memory: OpenMemory) -> list[bytes]:
    memory = open_memory(f"memory://{tmp_path.name}-from")
    memory.ingest([{"text": f"Person {i} | knows | Person {i + 1}"} for i in range(20)])
    memory.export(tmp_path / "all.jsonl", vectors=False)
    return (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)


def changed(line: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


REFUSED: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "empty": (lambda _: [], "empty"),
    "another file": (lambda _: [b"name,age\n", b"Ada,3\n"], "line 1: is not the first line"),
    "another version": (lambda found: [changed(found[0], version=2), *found[1:]], "line 1: .* version 2"),
    "cut off": (lambda found: found[:-1], r"line \d+: the file is cut off"),
    "cut off in a line": (lambda found: [*found[:9], found[9][:40]], r"line 10: is no JSON.*ends in the middle"),
    "another scope's row": (lambda found: [*found[:6], changed(found[6], scope="x"), *found[7:]], "line 7: .* 'x'"),
    "an unknown kind": (lambda found: [*found[:6], changed(found[6], kind="x"), *found[7:]], "line 7: kind 'x'"),
    "a line is missing": (lambda found: [*found[:6], *found[7:]], r"line \d+: the file had \d+ rows"),
    "a line is changed": (lambda found: [*found[:3], found[3].replace(b"Person", b"Reason"), *found[4:]], "changed"),
    "more behind the end": (lambda found: [*found, found[-2]], "stands behind the last line"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_not_right_is_refused_before_anything_is_stored(
    name: str, lines: list[bytes], open_memory: OpenMemory
) -> None:
    spoil, message = REFUSED[name]
    there = open_memory("memory://")
    with pytest.raises(InvalidInput, match=message):
        there.import_(io.BytesIO(b"".join(spoil(lines))))
    assert there.scopes() == []


def test_what_there_is_of_a_cut_file_is_taken_where_it_is_asked_for(
    lines: list[bytes], open_memory: OpenMemory
) -> None:
    there = open_memory("memory://")
    done = there.import_(io.BytesIO(b"".join([*lines[:30], lines[30][:20]])), cut_off=True)
    assert (done.rows, done.complete) == (29, False)
    assert there.stats().episodes == 20


def test_a_row_that_no_store_takes_is_named_by_its_line(lines: list[bytes], open_memory: OpenMemory) -> None:
    at = next(i for i, line in enumerate(lines) if b'"kind":"edge"' in line)
    row = json.loads(lines[at])
    row["row"]["confidence"] = 7
    spoilt = [*lines[:at], json.dumps(row).encode() + b"\n"]
    with pytest.raises(InvalidInput, match=rf"line {at + 1}: .*confidence"):
        open_memory("memory://").import_(io.BytesIO(b"".join(spoilt)), cut_off=True)


# Interrupted ------------------------------------------------------------------------------------------


def import_for_ever(pipe: Connection, url: str, file: str) -> None:
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, embeddings="none") as memory:
        memory.import_(file, on_rows=pipe.send)
        pipe.send("done")


def test_an_import_that_is_killed_is_finished_by_the_next(
    durable_url: str, tmp_path: Path, open_memory: OpenMemory
) -> None:
    source = open_memory("memory://", embeddings="none")
    source.add_facts((f"Person {i % 400}", "knows", f"Person {(3 * i + 1) % 400}") for i in range(1500))
    source.export(tmp_path / "all.jsonl")
    chance = random.Random(5)
    for _ in range(3):
        with child(import_for_ever, durable_url, str(tmp_path / "all.jsonl")) as (process, pipe):
            for _ in range(chance.randrange(1, 3)):
                if pipe.recv() == "done":
                    break
            process.kill()
    there = open_memory(durable_url, embeddings="none")
    assert there.checksum() != source.checksum() or there.stats().edges
    there.import_(tmp_path / "all.jsonl")
    assert there.checksum() == source.checksum()
