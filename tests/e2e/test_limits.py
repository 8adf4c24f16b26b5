"""Crafted messages, long texts, many open memories and a full disk: nobody waits long, and what only reads answers."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import OpenMemory
from crashed import wait_until
from toy import ToyExtractor

import graphmem_sqlite.connection as sqlite
from graphmem import GraphMemory, StoreFull, background
from graphmem.ingest.extract.spacy import extractor
from graphmem.text.english import english_pipeline
from graphmem_sqlite import SQLiteBackend
from tests.e2e.word_vectors import WordVectors

CODE = "\n".join(["a :" + " " * 596 + "x"] * 4)
DENSE = "Maya Chen moved to Lisbon in May 2021 and works at Initech with Ravi Menon. She likes tea. "


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time that a call takes in this thread."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


@pytest.mark.parametrize(
    "message",
    [CODE, "A" * 20_000, {"text": "some text", "title": "(" * 20_000}, "(" * 20_000, "# a" + " " * 20_000 + "x"],
    ids=["spaces", "one-word", "title", "brackets", "heading"],
)
def test_a_crafted_message_stops_nobody(open_memory: OpenMemory, message: str | dict[str, str]) -> None:
    memory = open_memory("memory://", extractor="none", embeddings="none")
    memory.remember("Hello there")
    memory.search("hello")  # loads what it needs
    assert seconds(lambda: memory.remember(message)) < 2  # of a loaded machine; before, 5 to 10 s of a quiet one
    assert seconds(lambda: memory.search("hello")) < 2


@pytest.mark.slow
def test_a_long_turn_is_parsed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    pipeline = english_pipeline()

    class Watched:
        def make_doc(self, text: str) -> Any:
            parsed.append(len(text))
            return pipeline.make_doc(text)

        def pipe(self, docs: Iterable[Any], **options: Any) -> Iterator[Any]:
            return cast("Iterator[Any]", pipeline.pipe(docs, **options))

        def __call__(self, doc: Any) -> Any:
            return pipeline(doc)

    def watched(_: str | None) -> Watched:
        return Watched()

    monkeypatch.setattr(extractor, "english_pipeline", watched)
    with GraphMemory.open("memory://", extractor="spacy", embeddings="none", background=False) as memory:
        memory.remember((DENSE * 300)[:25_000] + ". I work at Globex.", speaker="Nate")
        memory.flush()
        assert [fact.target for fact in memory.facts("Nate")] == ["Globex"]
    assert len(parsed) == 3
    assert max(parsed) <= 10_000


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("graphmem-")]


def files_in(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open; a loop of another test may open others meanwhile."""
    opened: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            opened.append(str(descriptor.readlink()))
    return [name for name in opened if name.startswith(str(folder))]


@pytest.mark.parametrize("count", [30, pytest.param(1_000, marks=[pytest.mark.full, pytest.mark.timeout(1200)])])
def test_many_open_memories_hold_few_files_and_no_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("the open files of a process are read from /proc")
    monkeypatch.setattr(sqlite, "_ALL_IDLE_READERS", 4)
    monkeypatch.setattr(background, "_LINGER", 0.05)
    monkeypatch.setattr(background, "_KEPT", 0.05)
    extractor = ToyExtractor()
    with ExitStack() as opened:
        urls = [f"sqlite:///{tmp_path}/{i}.db" for i in range(count)]
        memories = [opened.enter_context(GraphMemory.open(url, extractor=extractor, embeddings="none")) for url in urls]
        for i, memory in enumerate(memories):
            memory.remember(f"Person {i} | likes | tea")
            memory.flush()
            memory.recall("tea")
            asyncio.run(memory.asearch("tea"))
        # SQLite leaves descriptors of closed readers open while another connection has a lock on the file: 3 to 5 each
        most = 8 * count + 3 * 4  # and the idle readers, each with its log and shared memory
        # threads that still end may hold a reader each
        wait_until(lambda: len(threads()) < 10 and len(files_in(tmp_path)) <= most, seconds=120)
        assert memories[0].search("tea").found


FILES = """
import resource, sys
from graphmem import BackendUnavailable, GraphMemory

def opened(n):
    return GraphMemory.open(f"sqlite:///{sys.argv[1]}/{n}.db", extractor="none", embeddings="none", background=False)

def use(memory):
    assert memory.remember("Ada likes tea").created
    assert memory.search("tea").found

with opened("first") as memory:
    use(memory)  # imports what it needs
resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
memories = []
try:
    while True:
        memories.append(opened(len(memories)))
        use(memories[-1])
except BackendUnavailable as error:
    print(len(memories), error)
memories.pop().close()
memories.pop().close()
for memory in memories:
    use(memory)
"""


@pytest.mark.full
@pytest.mark.slow  # it syncs some thousand files to disk, which takes 2 to 20 seconds
def test_more_stores_than_the_process_may_open_files_for_is_an_error_that_says_so(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FILES, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, _, message = done.stdout.partition(" ")
    assert int(count) > 200 // 8
    assert "Too many open files" in message
    assert "ulimit -n" in message


def write_chatgpt_export(path: Path, conversations: int) -> None:
    """Write conversations of twenty messages, each beside 25 kB of thoughts or of a discarded branch."""
    chance = random.Random(7)
    words = ["".join(chance.choices("aeioubdfgklmnprst", k=6)) for _ in range(5_000)]
    short, answers, long = ([" ".join(chance.choices(words, k=n)) for _ in range(50)] for n in (40, 400, 3_600))

    def node(name: str, parent: str, role: str, text: str, kind: str = "text") -> dict[str, object]:
        content = {"content_type": kind, "parts": [text]}
        message = {"id": name, "author": {"role": role}, "create_time": 1.7e9, "content": content}
        return {"id": name, "parent": parent, "children": [], "message": message}

    with path.open("w", encoding="utf-8") as file:
        for number in range(conversations):
            mapping, last = dict[str, object](), ""
            for place in range(0, 20, 2):
                asked, thought, said = (f"{number}-{place + step}" for step in (0, 0.5, 1))
                mapping[f"{asked}-old"] = node(f"{asked}-old", last, "user", chance.choice(long))
                mapping[asked] = node(asked, last, "user", f"{chance.choice(short)} in talk{number}")
                mapping[thought] = node(thought, asked, "assistant", chance.choice(long), "thoughts")
                mapping[said] = node(said, thought, "assistant", chance.choice(answers))
                last = said
            talk = {"conversation_id": str(number), "title": f"Talk {number}", "current_node": last, "mapping": mapping}
            file.write(f"{',' if number else '['}{json.dumps(talk)}")
        file.write("]")


INGEST = """
import json, sys
from pathlib import Path
from graphmem import GraphMemory

told = []
with GraphMemory.open(sys.argv[1], extractor="none", embeddings="none", background=False) as memory:
    first = memory.ingest(Path(sys.argv[2]), on_progress=lambda progress: told.append(progress.received))
    again = memory.ingest(Path(sys.argv[2]))
    # ru_maxrss counts the parent, too, as it was before this program was loaded
    status = Path("/proc/self/status").read_text().split()
    peak = int(status[status.index("VmHWM:") + 1])
    counts = [first.stored, again.stored, again.known, memory.stats().episodes]
    found = [each.episode.session_id for each in memory.search("talk123").found]
print(json.dumps({"counts": counts, "told": told, "peak": peak, "found": found}))
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc")
def test_a_chatgpt_export_of_200_megabytes_needs_little_memory(tmp_path: Path) -> None:
    export, count = tmp_path / "conversations.json", 400
    write_chatgpt_export(export, count)
    assert export.stat().st_size > 200_000_000
    command = [sys.executable, "-c", INGEST, f"sqlite:///{tmp_path}/memory.db", str(export)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    export.unlink()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counts"] == [20 * count, 0, 20 * count, 20 * count]
    assert set(told["found"]) == {"123"}
    assert len(told["told"]) >= 8
    assert (told["told"] == sorted(told["told"]), told["told"][-1]) == (True, 20 * count)
    assert told["peak"] < 200_000  # kilobytes, less than the file


@contextmanager
def full_disk(memory: GraphMemory) -> Generator[None]:
    """Let the file of an SQLite store not grow in a block."""
    database = cast("SQLiteBackend", memory._engine.backend).database  # pyright: ignore[reportPrivateUsage]
    database.vacuum()  # no page is free
    [pages] = database.writer.execute("PRAGMA page_count").fetchone()
    database.writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull):
        memory.remember("x" * 100_000)
    yield
    database.writer.execute("PRAGMA max_page_count = 1000000000")


def test_what_only_reads_answers_on_a_full_disk(tmp_path: Path, open_memory: OpenMemory) -> None:
    memory = open_memory(f"sqlite:///{tmp_path}/memory.db", embeddings=WordVectors())
    memory.ingest([{"text": "Ada King | knows | Bob Stone"}])
    assert memory.search("Ada King").found
    for n in range(100):
        memory.remember(f"Turn {n} waits for the index, as those before it do")
    with full_disk(memory):
        found = memory.search("Ada King")
        assert "no space is left" in " ".join(found.degraded)
        assert found.found[0].episode.text.startswith("Ada King")
        assert "Bob Stone" in memory.context("Ada King")
        memory.admin.export(tmp_path / "all.jsonl")


def test_a_traced_recall_answers_on_a_full_disk_and_its_trace_waits_for_room(
    tmp_path: Path, open_memory: OpenMemory
) -> None:
    memory = open_memory(f"sqlite:///{tmp_path}/memory.db", embeddings="none")
    memory.ingest([{"text": "Ada King | knows | Bob Stone"}])
    questions = [f"Whom does Ada King know, asked for the time {n}?" for n in range(100)]  # some fit into a page
    with full_disk(memory):
        for question in questions:
            assert memory.recall(question, trace=True).facts
        assert len(memory.admin.traces(limit=200)) < len(questions)
    assert {trace.query for trace in memory.admin.traces(limit=200)} == set(questions)
