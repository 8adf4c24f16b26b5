"""A memory that is exported and imported is the same, on every store; files that can't be taken are refused by line."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from children import child
from conftest import OpenMemory

from graphmem import Conflict, GraphMemory, InvalidInput
from graphmem.models import Changes, EpisodeEnd, EpisodeExpiry, EpisodeQuery, Scope, utc_now
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.rows import FUTURE, home, scope_of
from graphmem.upkeep.importing import ImportOptions, import_rows
from tests.e2e.word_vectors import WordVectors
from tests.unit.test_scope import IDS


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
    memory.admin.merge("Ada L", into="Ada")
    undone = memory.admin.merge("Person 7", into="Person 8")
    memory.admin.unmerge(undone[0].id)
    memory.admin.refresh_communities()
    memory.recall("Who does Person 3 know?", trace=True)
    memory.search("Ada")
    memory.remember("Person 0 | waits | Person 3")
    memory.remember("Person 1 | says | what cannot be read", session_id="s")
    memory.admin.backfill()
    memory.admin.decay()


@pytest.fixture
def told(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    memory = open_memory(store_url, embeddings=WordVectors(), max_attempts=1)
    fill(memory)
    return memory


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.full(store_url="neo4j", other="sqlite")
@pytest.mark.parametrize("other", ["memory://", "sqlite"])
def test_an_imported_memory_is_the_same_in_another_store(
    told: GraphMemory, tmp_path: Path, open_memory: OpenMemory, other: str
) -> None:
    file = tmp_path / "all.jsonl"
    written = told.admin.export(file)
    url = other if other == "memory://" else f"sqlite:///{tmp_path}/other.db"
    there = open_memory(url, embeddings=WordVectors())
    read = there.admin.import_(file)
    assert (read.counts, read.complete) == (written.counts, True)
    assert there.admin.checksum() == written.checksum == told.admin.checksum()
    assert there.stats() == told.stats()
    again = there.admin.export(tmp_path / "again.jsonl")
    assert again.counts == written.counts
    assert sorted((tmp_path / "again.jsonl").read_bytes().splitlines()[1:-1]) == sorted(
        file.read_bytes().splitlines()[1:-1]
    )
    assert [f.episode.id for f in there.search("Ada works").found] == [
        f.episode.id for f in told.search("Ada works").found
    ]


@pytest.mark.server
@pytest.mark.parametrize("kinds", [8])
def test_something_of_every_kind_is_exported(told: GraphMemory, kinds: int) -> None:
    file = io.StringIO()
    counts = told.admin.export(file).counts
    assert len(counts) >= kinds
    assert {"episode", "entity", "alias", "edge", "mention", "merge", "recall", "index", "mark"} <= counts.keys()
    assert len(file.getvalue().splitlines()) >= sum(counts.values()) + 2


def test_an_import_is_repeated_without_a_change(told: GraphMemory, tmp_path: Path, open_memory: OpenMemory) -> None:
    told.admin.export(tmp_path / "all.jsonl")
    there = open_memory("memory://", embeddings=WordVectors())
    for _ in range(2):
        there.admin.import_(tmp_path / "all.jsonl")
        assert there.admin.checksum() == told.admin.checksum()
    told.admin.import_(tmp_path / "all.jsonl")
    assert there.admin.checksum() == told.admin.checksum()


def employed(memory: GraphMemory, since: str, where: str) -> None:
    memory.add_facts(
        [{"subject": "Eve", "relation": "works_at", "object": where, "valid_from": f"{since}-01-01T00:00:00Z"}]
    )


def test_an_export_into_no_folder_is_refused(memory: GraphMemory, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        memory.admin.export(tmp_path / "absent" / "memory.jsonl")
    assert not list(tmp_path.glob("absent*"))


@pytest.mark.parametrize("force", [False, True])
def test_an_export_never_goes_over_the_store(tmp_path: Path, open_memory: OpenMemory, force: bool) -> None:
    memory = open_memory(f"sqlite:///{tmp_path}/memory.db")
    employed(memory, "2020", "Initech")
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        with pytest.raises(InvalidInput, match="database"):
            memory.admin.export(tmp_path / name, force=force)

    employed(memory, "2021", "Globex")
    memory.close()
    assert {fact.target for fact in open_memory(f"sqlite:///{tmp_path}/memory.db").history("Eve")} == {
        "Initech",
        "Globex",
    }


def test_an_export_leaves_out_references_to_deleted_rows(sqlite_file: Path, open_memory: OpenMemory) -> None:
    memory = open_memory(f"sqlite:///{sqlite_file}", embeddings=WordVectors())
    fill(memory)
    memory.close()
    with closing(sqlite3.connect(sqlite_file)) as past, past:  # foreign keys are off there
        past.execute("DELETE FROM entities WHERE canonical_name = 'globex'")
        past.execute("DELETE FROM episodes WHERE external_id = 'e3'")
    memory = open_memory(f"sqlite:///{sqlite_file}", embeddings=WordVectors())
    file = io.StringIO()
    written = memory.admin.export(file)
    [told] = [check.detail for check in memory.admin.doctor() if check.name == "references"]
    there = open_memory("memory://", embeddings=WordVectors())
    file.seek(0)
    assert there.admin.import_(file).counts == written.counts
    assert there.admin.checksum() == written.checksum == memory.admin.checksum()
    assert written.left_out > 0
    assert told.startswith(f"{written.left_out} reference")
    assert [check for check in there.admin.doctor() if check.name == "references"] == []


LOOK = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM episodes').fetchone()"


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_the_open_store_is_neither_imported_nor_ingested_and_keeps_its_locks(
    tmp_path: Path, open_memory: OpenMemory, suffix: str
) -> None:
    store = tmp_path / "memory.db"
    memory = open_memory(f"sqlite:///{store}")
    memory.remember("Ada King | knows | Bob Stone")
    for read in (memory.admin.import_, memory.ingest):
        with pytest.raises(InvalidInput, match="is a database"):
            read(Path(f"{store}{suffix}"))
    # without the lock of this process, another one that looks at the store removes the log when it ends
    subprocess.run([sys.executable, "-c", LOOK, str(store)], check=True)
    memory.remember("Bob Stone | knows | Eve Moss")
    assert memory.stats().episodes == 2


def test_an_export_replaces_a_file_of_the_user_by_force_alone(memory: GraphMemory, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(InvalidInput, match="did not write"):
        memory.admin.export(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "precious"
    memory.admin.export(tmp_path / "notes.txt", force=True)
    assert (tmp_path / "notes.txt").read_text().startswith('{"format":"graphmem-export"')


def test_an_older_export_rewinds_nothing(memory: GraphMemory, tmp_path: Path) -> None:
    employed(memory, "2020", "Initech")
    memory.ingest([{"text": "Ada | knows | Bob"}, {"text": "Ada L | knows | Bob"}, {"text": "Carol | likes | tea"}])
    [undone] = memory.admin.merge("Carol", into="Bob")
    memory.admin.refresh_communities()
    memory.remember("Carol | visited | Rome")
    memory.admin.export(tmp_path / "old.jsonl")
    memory.admin.backfill()
    employed(memory, "2022", "Globex")
    memory.ingest([{"text": "Ada | knows | Bob"}])
    memory.admin.unmerge(undone.id)
    memory.admin.merge("Ada L", into="Ada")
    memory.admin.refresh_communities()
    memory.admin.decay()
    before = memory.admin.checksum()
    memory.admin.import_(tmp_path / "old.jsonl")
    assert [fact.target for fact in memory.facts("Eve")] == ["Globex"]
    assert [fact.target for fact in memory.facts("Ada")] == ["Bob"]
    assert memory.admin.checksum() == before
    assert memory.stats().pending_episodes == 0


def test_a_newer_export_brings_what_is_new(memory: GraphMemory, tmp_path: Path, open_memory: OpenMemory) -> None:
    employed(memory, "2020", "Initech")
    memory.ingest([{"text": "Ada | knows | Bob"}, {"text": "Carol | likes | tea # who is kind"}])
    memory.admin.merge("Carol", into="Bob")
    memory.remember("Dan | visited | Rome")
    memory.admin.export(tmp_path / "old.jsonl")
    there = open_memory("memory://")
    there.admin.import_(tmp_path / "old.jsonl")
    memory.admin.backfill()
    employed(memory, "2022", "Globex")
    memory.ingest([{"text": "ADA | knows | Bob # who is clever"}])
    memory.admin.unmerge(memory.admin.merges()[0].id)
    memory.admin.export(tmp_path / "new.jsonl")
    there.admin.import_(tmp_path / "new.jsonl")
    for name in ("Eve", "Ada", "Bob", "Carol", "Dan"):
        assert there.history(name) == memory.history(name)
    assert there.admin.merges(undone=True) == memory.admin.merges(undone=True)
    assert {entity.id: entity for entity in there.entities()} == {entity.id: entity for entity in memory.entities()}


def test_what_a_retracted_fact_had_ended_goes_on_in_the_copy_too(
    memory: GraphMemory, tmp_path: Path, open_memory: OpenMemory
) -> None:
    employed(memory, "2020", "Initech")
    employed(memory, "2022", "Globex")
    memory.admin.export(tmp_path / "old.jsonl")
    there = open_memory("memory://")
    there.admin.import_(tmp_path / "old.jsonl")
    [wrong] = memory.facts("Eve")
    memory.retract(wrong.id)
    corrected = memory.history("Eve")
    assert [fact.target for fact in memory.facts("Eve")] == ["Initech"]
    memory.admin.export(tmp_path / "new.jsonl")
    there.admin.import_(tmp_path / "new.jsonl")
    assert there.history("Eve") == corrected
    memory.admin.import_(tmp_path / "old.jsonl")
    assert memory.history("Eve") == corrected


def test_entities_merged_in_a_newer_export_are_merged_in_the_copy(
    memory: GraphMemory, tmp_path: Path, open_memory: OpenMemory
) -> None:
    memory.ingest([{"text": "Bob | knows | Ada"}, {"text": "Bobby | knows | Ada"}, {"text": "Bobby | likes | tea"}])
    memory.admin.export(tmp_path / "old.jsonl")
    there = open_memory("memory://")
    there.admin.import_(tmp_path / "old.jsonl")
    there.ingest([{"text": "Bobby | plays | chess"}])
    memory.ingest([{"text": "Bob | visited | Rome"}])
    [merge] = memory.admin.merge("Bobby", into="Bob")
    memory.ingest([{"text": "Rob | visited | Oslo"}])
    memory.admin.merge("Rob", into="Bob")
    memory.admin.export(tmp_path / "new.jsonl")
    for _ in range(2):
        there.admin.import_(tmp_path / "new.jsonl")
        assert {fact.target for fact in there.facts("Bobby")} == {"Ada", "tea", "chess", "Rome", "Oslo"}
        assert [row.id for row in there.admin.merges()] == [row.id for row in memory.admin.merges()]
        assert {"Bobby", "Rob"}.isdisjoint(entity.name for entity in there.entities())
    there.admin.unmerge(merge.id)
    memory.admin.unmerge(merge.id)
    for name in ("Bob", "Bobby"):
        ours = {fact.fact for fact in memory.facts(name)}
        assert {fact.fact for fact in there.facts(name)} == ours | ({"Bobby plays chess"} if name == "Bobby" else set())


def test_ends_and_expiries_of_episodes_are_imported_and_not_rewound(
    memory: GraphMemory, tmp_path: Path, open_memory: OpenMemory
) -> None:
    ended, expiring = (memory.remember(f"Ada | knows | {name}").episode_id for name in ("Bob", "Cy"))
    memory.admin.backfill()
    memory.admin.export(tmp_path / "old.jsonl")
    store = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    end, expiry = EpisodeEnd(ended, FUTURE - timedelta(1)), EpisodeExpiry(expiring, FUTURE)
    store.write(memory.scope, Changes(episode_ends=(end,), episode_expiries=(expiry,)))
    memory.admin.export(tmp_path / "new.jsonl")
    there = open_memory("memory://")
    for name in ("old", "new", "old"):
        there.admin.import_(tmp_path / f"{name}.jsonl")
    imported = there._engine.backend  # pyright: ignore[reportPrivateUsage]
    rows = imported.find_episodes([there.scope], EpisodeQuery(hidden_at=FUTURE))
    assert {row.id: (row.ended_at, row.expires_at) for row in rows} == {
        ended: (end.ended_at, None),
        expiring: (None, FUTURE),
    }
    assert there.admin.checksum() == memory.admin.checksum()


def test_a_scope_is_renamed_where_it_is_asked_for(told: GraphMemory, tmp_path: Path, open_memory: OpenMemory) -> None:
    told.admin.export(tmp_path / "all.jsonl", vectors=False)
    there = open_memory("memory://", scope="other/one", embeddings=WordVectors())
    with pytest.raises(InvalidInput, match=f"line 1: the file is of scope {told.scope}"):
        there.admin.import_(tmp_path / "all.jsonl")
    there.admin.import_(tmp_path / "all.jsonl", rename=True)
    assert there.admin.scopes() == [Scope("other", "one")]
    assert there.admin.checksum() == told.admin.checksum()
    with pytest.raises(Conflict, match=r"line 2: episode: .* in another scope.* import into another store"):
        there.in_scope("third").admin.import_(tmp_path / "all.jsonl", rename=True)


def test_users_with_odd_ids_are_stored_listed_exported_and_imported_apart(
    store_url: str, tmp_path: Path, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none")
    there = open_memory(f"memory://{tmp_path.name}-copy", extractor="none", embeddings="none")
    scopes = [scope_of("users", user_id) for user_id in IDS]
    for number, scope in enumerate(scopes):
        memory.in_scope(str(scope)).remember(f"Remark number {number}.")
    stored = [scope.key for scope in memory.admin.scopes() if scope.domain == scopes[0].domain]
    assert sorted(stored) == sorted(scope.key for scope in scopes)
    for scope in scopes:
        memory.in_scope(str(scope)).admin.export(tmp_path / "one.jsonl")
        there.in_scope(str(scope)).admin.import_(tmp_path / "one.jsonl")
    for number, scope in enumerate(scopes):
        found = there.in_scope(str(scope)).search("remark").found
        assert [each.episode.text for each in found] == [f"Remark number {number}."]


def test_a_memory_is_not_imported_into_the_store_that_it_came_from(memory: GraphMemory, tmp_path: Path) -> None:
    memory.add_facts([("Ada", "likes", "tea")])
    memory.admin.export(tmp_path / "all.jsonl")
    with pytest.raises(Conflict, match="import into another store"):
        memory.in_scope(scope_of("copy")).admin.import_(tmp_path / "all.jsonl", rename=True)


@pytest.mark.parametrize("taken", ["entity", "episode"])
def test_a_name_that_the_scope_has_is_told_before_anything_is_stored(
    memory: GraphMemory, tmp_path: Path, open_memory: OpenMemory, taken: str
) -> None:
    memory.ingest([{"text": f"Person {n} | likes | jam", "external_id": f"e{n}"} for n in range(9)])
    memory.add_facts([("Ada", "likes", "tea")])
    memory.admin.export(tmp_path / "all.jsonl")
    other = open_memory("memory://")
    if taken == "entity":
        other.add_facts([("Ada", "likes", "coffee")])
    else:
        other.remember("Eve | likes | cake", external_id="e7")
    before = other.admin.checksum()
    with pytest.raises(Conflict, match=f"line .*: {taken}: the scope has another .* import into a scope of its own"):
        other.admin.import_(tmp_path / "all.jsonl")
    assert other.admin.checksum() == before
    stream = OneWay((tmp_path / "all.jsonl").read_bytes())
    with pytest.raises(Conflict, match=r"import into a scope of its own; \d+ rows before it stay stored"):
        import_rows(other._engine.backend, other.scope, stream, BETWEEN)  # pyright: ignore[reportPrivateUsage]


# Files that are refused -----------------------------------------------------------------------------


@pytest.fixture
def lines(tmp_path: Path, open_memory: OpenMemory) -> list[bytes]:
    memory = open_memory(f"memory://{tmp_path.name}-from")
    memory.ingest([{"text": f"Person {i} | knows | Person {i + 1}"} for i in range(20)])
    memory.admin.export(tmp_path / "all.jsonl", vectors=False)
    return (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)


def changed(line: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


REFUSED: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "empty": (lambda _: [], "empty"),
    "another file": (lambda _: [b"name,age\n", b"Ada,3\n"], "line 1: is not the first line"),
    "another version": (lambda found: [changed(found[0], version=2), *found[1:]], "line 1: .* version 2"),
    "cut off": (lambda found: found[:-1], r"line \d+: the file is cut off"),
    "cut off in a line": (lambda found: [*found[:9], found[9][:40]], r"line 10: is not JSON.*ends in the middle"),
    "another scope's row": (lambda found: [*found[:6], changed(found[6], scope="x"), *found[7:]], "line 7: .* 'x'"),
    "an unknown kind": (lambda found: [*found[:6], changed(found[6], kind="x"), *found[7:]], "line 7: kind 'x'"),
    "a line is missing": (lambda found: [*found[:6], *found[7:]], r"line \d+: the file had \d+ rows"),
    "a line is changed": (lambda found: [*found[:3], found[3].replace(b"Person", b"Reason"), *found[4:]], "changed"),
    "more behind the end": (lambda found: [*found, found[-2]], "follows the last line"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_not_right_is_refused_before_anything_is_stored(
    name: str, lines: list[bytes], open_memory: OpenMemory
) -> None:
    spoil, message = REFUSED[name]
    there = open_memory("memory://")
    with pytest.raises(InvalidInput, match=message):
        there.admin.import_(io.BytesIO(b"".join(spoil(lines))))
    assert there.admin.scopes() == []


def test_what_there_is_of_a_cut_file_is_taken_where_it_is_asked_for(
    lines: list[bytes], open_memory: OpenMemory
) -> None:
    there = open_memory("memory://")
    done = there.admin.import_(io.BytesIO(b"".join([*lines[:30], lines[30][:20]])), cut_off=True)
    assert (done.rows, done.complete) == (29, False)
    assert there.stats().episodes == 20


def test_facts_that_an_earlier_version_ended_before_they_begin_are_repaired(
    tmp_path: Path, open_memory: OpenMemory, store_url: str
) -> None:
    memory = open_memory(f"memory://{tmp_path.name}-from")
    told = {name: [{"subject": name, "relation": "uses", "object": "vim"}] for name in ("Ada", "Ben", "Maya")}
    for facts in told.values():
        memory.add_facts(facts, occurred_at="2025-03-10")
    memory.end(memory.facts("Ada")[0].id, at="2025-03-20")
    memory.admin.merge("Maya", into="Ben")
    lines = io.StringIO()
    memory.admin.export(lines)
    text = lines.getvalue().replace('"valid_to":"2025-03-20', '"valid_to":"2025-03-05')
    text = text.replace(
        '"valid_from":"2025-03-10T00:00:00Z","rec',
        '"valid_from":"2025-03-10T00:00:00Z","valid_to":"2025-03-05T00:00:00Z","rec',
    )
    there = open_memory(store_url)
    done = there.admin.import_(io.StringIO(text.rpartition('{"end"')[0]), cut_off=True, rename=True)
    assert done.repaired == 4
    assert str(there.history("Ada")[0]).startswith("Ada uses vim (never true)")
    assert str(there.history("Ben")[0]).startswith("Ben uses vim (until 2025-03-04)")
    assert there.admin.merges()[0].folded


class OneWay(io.BytesIO):
    """A file that can't be rewound, so that it isn't checked before it is stored."""

    def seekable(self) -> bool:
        return False


@pytest.fixture(params=[io.BytesIO, OneWay])
def as_file(request: pytest.FixtureRequest) -> Callable[[list[bytes]], io.BytesIO]:
    """Return what makes lines a file, of each of the two kinds."""
    return lambda lines: request.param(b"".join(lines))


@pytest.mark.parametrize(
    "end",
    [
        b'{"end":null}\n',
        b'{"end":5}\n',
        b'{"end":[]}\n',
        b'{"end":{}}\n',
        b'{"end":{"counts":5}}\n',
        b'{"end":{"counts":{"episode":"20"},"digest":""}}\n',
        b'{"end":{"counts":{"episode":true},"digest":""}}\n',
        b'{"end":{"counts":{"episode":[]},"digest":""}}\n',
        b'{"end":{"counts":{},"digest":5}}\n',
        b'{"end":{"counts":{"dream":0},"digest":""}}\n',
        b'{"end":{"counts":{"epi',
    ],
)
def test_a_last_line_that_is_none_is_refused_by_its_number(
    end: bytes, lines: list[bytes], as_file: Callable[[list[bytes]], io.BytesIO], open_memory: OpenMemory
) -> None:
    there = open_memory("memory://")
    with pytest.raises(InvalidInput, match=f"line {len(lines)}: "):
        there.admin.import_(as_file([*lines[:-1], end]))
    assert not there.admin.import_(as_file([*lines[:-1], end]), cut_off=True).complete


def test_kinds_of_which_there_is_no_row_may_be_counted(
    lines: list[bytes], as_file: Callable[[list[bytes]], io.BytesIO], open_memory: OpenMemory
) -> None:
    last = json.loads(lines[-1])
    last["end"]["counts"]["merge"] = 0
    assert (
        open_memory("memory://")
        .admin.import_(as_file([*lines[:-1], json.dumps(last).replace(" ", "").encode()]))
        .complete
    )


def test_rows_behind_the_last_line_are_refused(
    lines: list[bytes], as_file: Callable[[list[bytes]], io.BytesIO], open_memory: OpenMemory
) -> None:
    with pytest.raises(InvalidInput, match=f"line {len(lines) + 1}: follows the last line"):
        open_memory("memory://").admin.import_(as_file([*lines, lines[-2]]))


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_whole_file_is_complete(
    lines: list[bytes], as_file: Callable[[list[bytes]], io.BytesIO], open_memory: OpenMemory, *, cut_off: bool
) -> None:
    assert open_memory("memory://").admin.import_(as_file(lines), cut_off=cut_off).complete


@pytest.mark.parametrize("spoil", ["a line is missing", "a line is changed"])
def test_what_there_is_of_a_spoilt_file_is_not_called_complete(
    spoil: str, lines: list[bytes], as_file: Callable[[list[bytes]], io.BytesIO], open_memory: OpenMemory
) -> None:
    spoilt = {
        "a line is missing": [line for line in lines if b'"kind":"edge"' not in line],
        "a line is changed": [lines[0], lines[1].replace(b"Person", b"Reason"), *lines[2:]],
    }[spoil]
    there = open_memory("memory://")
    done = there.admin.import_(as_file(spoilt), cut_off=True)
    assert (done.rows, done.complete) == (len(spoilt) - 2, False)
    assert there.stats().episodes == 20


def test_a_row_that_no_store_takes_is_named_by_its_line(lines: list[bytes], open_memory: OpenMemory) -> None:
    at = next(i for i, line in enumerate(lines) if b'"kind":"edge"' in line)
    row = json.loads(lines[at])
    row["row"]["confidence"] = 7
    spoilt = [*lines[:at], json.dumps(row).encode() + b"\n"]
    with pytest.raises(InvalidInput, match=rf"line {at + 1}: .*confidence"):
        open_memory("memory://").admin.import_(io.BytesIO(b"".join(spoilt)), cut_off=True)


# Beside a queue that works ------------------------------------------------------------------------------

BETWEEN = ImportOptions(batch_size=2)


@pytest.fixture
def waiting(tmp_path: Path, open_memory: OpenMemory) -> GraphMemory:
    """Return a memory with an episode that waits for its first try, and its export `all.jsonl`."""
    memory = open_memory(f"memory://{tmp_path.name}-waiting", scope=home())
    memory.ingest([{"text": "Ada | knows | Bob"}])
    memory.remember("Ada | likes | tea")
    memory.admin.export(tmp_path / "all.jsonl")
    return memory


@pytest.fixture
def store(store_url: str) -> Iterator[GraphBackend]:
    """Return the store that an import goes to, while `there` works on its queue."""
    with closing(open_backend(store_url)) as backend:
        yield backend


@pytest.fixture
def there(store: GraphBackend, store_url: str, open_memory: OpenMemory) -> GraphMemory:
    """Return the memory that an import goes to."""
    return open_memory(store_url)


class Killed(Exception):
    """The import ends here."""


def killed(_: int) -> None:
    raise Killed


def import_some(store: GraphBackend, file: Path) -> None:
    """Import the first rows of a file, the episodes among them."""
    with pytest.raises(Killed):
        import_rows(store, home(), file, BETWEEN, killed)


def test_a_worker_takes_no_episode_of_a_file_before_all_of_it_is_stored(
    waiting: GraphMemory, store: GraphBackend, there: GraphMemory, tmp_path: Path
) -> None:
    extracted: list[int] = []
    import_rows(
        store, home(), tmp_path / "all.jsonl", BETWEEN, lambda _: extracted.append(there.admin.backfill().extracted)
    )
    assert len(extracted) > 2
    assert sum(extracted) == 0
    assert there.admin.checksum() == waiting.admin.checksum()
    assert there.admin.backfill().extracted == 1
    assert sorted(fact.target for fact in there.facts("Ada")) == ["Bob", "tea"]


def test_a_worker_waits_for_the_import_that_finishes_one_that_was_interrupted(
    waiting: GraphMemory, store: GraphBackend, there: GraphMemory, tmp_path: Path
) -> None:
    for _ in range(2):
        import_some(store, tmp_path / "all.jsonl")
        assert there.admin.backfill().extracted == 0
        assert there.stats().pending_episodes == 1
        assert ["held back" in error.error for error in there.stats().errors] == [True]
    for _ in range(2):
        there.admin.import_(tmp_path / "all.jsonl")
        assert there.admin.checksum() == waiting.admin.checksum()
    assert there.admin.backfill().extracted == 1


def test_the_queue_takes_what_an_import_left_behind_when_a_day_is_over(
    waiting: GraphMemory, store: GraphBackend, there: GraphMemory, tmp_path: Path
) -> None:
    import_some(store, tmp_path / "all.jsonl")
    taken = [
        len(store.claim_episodes("worker", now=now, until=now, limit=9, scopes=[home()]))
        for now in (utc_now() + timedelta(hours=hours) for hours in (0, 23, 24))
    ]
    assert taken == [0, 0, 1]
    there.admin.import_(tmp_path / "all.jsonl")
    assert there.admin.checksum() == waiting.admin.checksum()


def test_a_newer_file_finishes_an_interrupted_import(
    waiting: GraphMemory, store: GraphBackend, there: GraphMemory, tmp_path: Path
) -> None:
    import_some(store, tmp_path / "all.jsonl")
    waiting.admin.backfill()
    waiting.remember("Bob | likes | rum")
    waiting.admin.export(tmp_path / "newer.jsonl")
    there.admin.import_(tmp_path / "newer.jsonl")
    assert there.admin.checksum() == waiting.admin.checksum()
    assert there.admin.backfill().extracted == 1


@pytest.mark.parametrize("delay", [0.001, 60.0, 3 * 86400.0])
def test_a_failed_try_and_the_time_of_the_next_stay_with_an_episode(
    delay: float, store: GraphBackend, there: GraphMemory, tmp_path: Path, open_memory: OpenMemory
) -> None:
    source = open_memory("memory://", retry_delay=delay)
    source.remember("Ada | says | what cannot be read")
    source.admin.backfill(1)
    source.admin.export(tmp_path / "all.jsonl")
    import_some(store, tmp_path / "all.jsonl")
    there.admin.import_(tmp_path / "all.jsonl")
    assert [error.attempts for error in there.stats().errors] == [1]
    assert there.stats().errors == source.stats().errors
    assert there.admin.checksum() == source.admin.checksum()


def test_an_episode_that_waits_here_is_left_to_the_worker_that_holds_it(
    waiting: GraphMemory, store: GraphBackend, there: GraphMemory, tmp_path: Path
) -> None:
    there.admin.import_(tmp_path / "all.jsonl")
    hour = utc_now() + timedelta(hours=1)
    store.claim_episodes(f"worker of {home()}", now=utc_now(), until=hour, limit=1, scopes=[home()])
    there.admin.import_(tmp_path / "all.jsonl")
    assert f"worker of {home()}" in store.claim_owners(utc_now())
    assert there.admin.checksum() == waiting.admin.checksum()


@pytest.mark.usefixtures("waiting")
def test_episodes_of_a_file_that_is_cut_off_are_extracted(there: GraphMemory, tmp_path: Path) -> None:
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)
    assert not there.admin.import_(io.BytesIO(b"".join(lines[:4])), cut_off=True).complete
    assert there.admin.backfill().extracted == 1
    assert there.stats().pending_episodes == 0


# Interrupted ------------------------------------------------------------------------------------------

SMALL = ImportOptions(batch_size=100)


def import_and_stay(pipe: Connection, url: str, scope: str, file: str, most: int) -> None:
    """Import, and say how many rows are stored; from `most` of them on stay where it is."""

    def tell(rows: int) -> None:
        pipe.send(rows)
        if rows >= most:
            threading.Event().wait()

    with closing(open_backend(url)) as backend:
        import_rows(backend, Scope.from_key(scope), file, SMALL, tell)
        pipe.send("done")


def test_an_import_that_is_killed_is_finished_by_the_next(
    durable_url: str, tmp_path: Path, open_memory: OpenMemory
) -> None:
    source = open_memory("memory://", embeddings="none")
    source.add_facts((f"Person {i % 400}", "knows", f"Person {(3 * i + 1) % 400}") for i in range(1500))
    for i in range(50):
        source.remember(f"Person {i} | likes | tea")
    rows = source.admin.export(tmp_path / "all.jsonl").rows
    chance = random.Random(5)
    there = open_memory(durable_url, embeddings="none")
    for _ in range(3):
        with child(import_and_stay, durable_url, home().key, str(tmp_path / "all.jsonl"), rows * 3 // 4) as (
            process,
            pipe,
        ):
            said = [pipe.recv() for _ in range(chance.randrange(1, rows // 200))]  # of the first half
            process.kill()
        assert said[-1] < rows // 2
        assert said[-1] <= there.admin.export(io.BytesIO()).rows < rows
        assert there.admin.checksum() != source.admin.checksum()
        assert there.admin.backfill().extracted == 0
    there.admin.import_(tmp_path / "all.jsonl")
    assert there.admin.checksum() == source.admin.checksum()
    assert there.admin.backfill().extracted == 50
