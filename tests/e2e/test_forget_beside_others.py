"""What is forgotten while others work on it does not come back: by no refresh, by no indexing, in no copy."""

from __future__ import annotations

import io
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from chatting import ScriptedChat
from conftest import OpenMemory
from test_communities import described
from toy import FAILS, ToyExtractor

from graphmem import GraphMemory, NotFound
from graphmem.communities.refresh import CommunityRefresh
from graphmem.index.encoder import EpisodeEncoder
from graphmem.models import FORGETTING
from graphmem.protocols import Extraction, ExtractionRequest
from tests.e2e.word_vectors import WordVectors

SECRET = "quimbledon"

SAID: list[dict[str, Any]] = [
    {"text": "Alma | knows | Bruno"},
    {"text": f"Alma | likes | Bruno # whispered {SECRET}", "external_id": "secret"},
    {"text": "Alma | likes | Bruno"},
    {"text": "Bruno | knows | Clara"},
    {"text": "Alma | knows | Clara"},
]


def once_after(monkeypatch: pytest.MonkeyPatch, where: type, name: str, act: Callable[[], object]) -> None:
    """Have something happen right after a method returns for the first time."""
    method, left = getattr(where, name), [act]

    def watched(*args: Any, **options: Any) -> Any:
        result = method(*args, **options)
        if left:
            left.pop()()
        return result

    monkeypatch.setattr(where, name, watched)


def exported(memory: GraphMemory) -> str:
    file = io.StringIO()
    memory.admin.export(file)
    return file.getvalue()


@pytest.mark.server
@pytest.mark.full(store_url="neo4j", refreshed=False)
@pytest.mark.parametrize("refreshed", [False, True])
def test_a_refresh_writes_no_forgotten_sentence_back(
    memory: GraphMemory, monkeypatch: pytest.MonkeyPatch, *, refreshed: bool
) -> None:
    memory.ingest(SAID[:2] if refreshed else SAID)
    if refreshed:
        memory.admin.refresh_communities()
        memory.ingest(SAID[2:])
    once_after(monkeypatch, CommunityRefresh, "_plan", lambda: memory.forget(episode="secret"))
    memory.admin.refresh_communities()
    assert [len(community) for community in memory.communities()] == [3]
    assert SECRET not in exported(memory)


def test_a_model_that_was_asked_before_writes_no_forgotten_sentence_back(
    store_url: str, open_memory: OpenMemory
) -> None:
    forgetting: list[Callable[[], object]] = []

    def answer(prompt: str) -> str:
        if forgetting:
            assert SECRET in prompt
            forgetting.pop()()
            return described(prompt).replace("They met.", f"They met {SECRET}.")
        return described(prompt)

    memory = open_memory(store_url, llm=ScriptedChat(answer=answer), embeddings="none")
    memory.ingest(SAID)
    forgetting.append(lambda: memory.forget(episode="secret"))
    assert memory.admin.refresh_communities().failed == 1
    assert SECRET not in exported(memory)
    assert memory.admin.refresh_communities().summarized == 1


class Talkative(ToyExtractor):
    """Repeats the turn before in the facts of a turn, as a language model may."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._left = [act]

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        results = [self._one(" # after ".join([r.episode.text, *(e.text for e in r.context)])) for r in requests]
        if self._left:
            self._left.pop()()
        return results


@pytest.mark.server
@pytest.mark.full(store_url="neo4j", fails=True)
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("how", ["forget", "clear"])
def test_extraction_writes_no_forgotten_turn_back(
    store_url: str, open_memory: OpenMemory, how: str, *, fails: bool
) -> None:
    opened: list[GraphMemory] = []
    act = (lambda: opened[0].forget(episode="secret")) if how == "forget" else (lambda: opened[0].admin.clear())
    first = open_memory(store_url, embeddings="none")
    first.ingest([] if fails else [{**SAID[1], "session_id": "s", "role": "user"}])
    memory = open_memory(store_url, extractor=Talkative(act), embeddings="none")
    opened.append(memory)
    later = {"text": "Bruno | knows | Clara", "session_id": "s", "role": "user"}
    failing = {"text": f"{SECRET} | {FAILS}", "external_id": "secret"}
    for turn in [failing, later] if fails else [later]:
        memory.remember(turn)
    memory.admin.backfill()
    assert SECRET not in exported(memory)
    assert [f.fact for f in memory.facts("Bruno")] == (["Bruno knows Clara"] if how == "forget" else [])
    stats = memory.stats()
    assert (stats.pending_episodes, stats.failed_episodes) == (0, 0)


def test_turns_read_beside_an_erasure_are_read_again_also_if_one_of_them_fails(
    store_url: str, open_memory: OpenMemory
) -> None:
    erasures: list[Callable[[], object]] = []

    class InGroups(ToyExtractor):
        concurrency, turns_per_call = 2, 4

        def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
            found = super().extract(requests)
            while erasures:
                erasures.pop()()
            return found

    memory = open_memory(store_url, extractor=InGroups(), embeddings="none")
    memory.ingest(SAID[:2])
    turns = ("Alma | visits | Rome", f"{FAILS} | says | nothing", "Alma | visits | Oslo")
    ids = [memory.remember(text, session_id="s").episode_id for text in turns]
    erasures.append(lambda: memory.forget(episode="secret"))
    memory.admin.backfill(3)
    stored = {episode.id: episode for episode in memory.episodes(ids)}
    assert [stored[i].processed_at is not None for i in ids] == [True, False, True]
    assert {fact.target for fact in memory.facts("Alma")} >= {"Rome", "Oslo"}


@pytest.mark.parametrize("step", ["facts", "episodes", "names_of"])
@pytest.mark.parametrize("how", ["forget", "clear"])
def test_indexing_writes_nothing_forgotten_back(
    store_url: str, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch, step: str, how: str
) -> None:
    memory = open_memory(store_url, embeddings=WordVectors(), index_wait=60)
    memory.ingest([{**turn, "session_id": "s"} for turn in SAID])
    backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    backend.reset_index(memory.scope)
    act = (lambda: memory.forget(episode="secret")) if how == "forget" else memory.admin.clear
    once_after(monkeypatch, EpisodeEncoder, step, act)
    memory.search("Who likes Bruno?")
    assert SECRET not in exported(memory)
    details = [str(entry.detail) for entry in backend.all_entries(memory.scope)]
    assert not [detail for detail in details if SECRET in detail.lower()]
    assert bool(details) == (how == "forget")
    assert len(memory.search("Who likes Bruno?").found) == (4 if how == "forget" else 0)


def test_a_search_finds_what_remains_when_an_erasure_intervenes_and_time_is_up(
    open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory("memory://", embeddings=WordVectors(), index_wait=0)
    memory.ingest(SAID)
    memory._engine.backend.reset_index(memory.scope)  # pyright: ignore[reportPrivateUsage]
    once_after(monkeypatch, EpisodeEncoder, "episodes", lambda: memory.forget(episode="secret"))
    assert len(memory.search("Who likes Bruno?").found) == 4


@pytest.mark.parametrize("how", ["forget", "clear"])
def test_no_copy_stays_in_memory(store_url: str, open_memory: OpenMemory, how: str) -> None:
    memory = open_memory(store_url, embeddings=WordVectors())
    memory.ingest(SAID)
    memory.admin.refresh_communities()
    memory.ingest([{"text": "Almah | knows | Bruno"}])
    memory.communities("Who knows whom?")
    engine = memory._engine  # pyright: ignore[reportPrivateUsage]
    similar = engine._parts.similar  # pyright: ignore[reportPrivateUsage]
    assert similar is not None
    centroids = engine.communities.centroids
    assert similar.vectors.scopes == [memory.scope]
    assert centroids.scopes == [memory.scope]
    if how == "forget":
        memory.forget(episode="secret")
    else:
        memory.admin.clear()
    assert similar.vectors.scopes == centroids.scopes == []


def test_what_was_left_in_the_log_goes_when_it_is_run_again_and_that_is_told(
    tmp_path: Path, open_memory: OpenMemory
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    memory = open_memory(url, embeddings="none", sqlite_busy_timeout=0.2)  # for so long a forget waits for readers
    memory.ingest(SAID)

    def is_left() -> bool:
        return any(SECRET.encode() in path.read_bytes() for path in tmp_path.iterdir())

    reader = sqlite3.connect(tmp_path / "memory.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM episodes").fetchall()
    assert "log" in memory.forget(episode="secret").left[0]
    assert is_left()
    with pytest.raises(NotFound, match="left from earlier erasures: the store's log"):
        memory.forget(episode="secret")
    reader.close()
    with pytest.raises(NotFound, match="left from earlier erasures: nothing"):
        memory.forget(episode="secret")
    assert not is_left()
    with pytest.raises(NotFound, match=r"in scope default$"):
        memory.forget(episode="secret")


def test_a_dry_run_and_a_cleaning_left_to_the_background_touch_no_files_where_nothing_is_found(
    tmp_path: Path, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory(f"sqlite:///{tmp_path}/memory.db", embeddings="none", background=True)
    monkeypatch.setattr("graphmem.upkeep.scrub.DeferredScrub.run", list)
    memory.ingest(SAID)
    memory.forget(episode="secret", clean_files=False)
    store = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    left = store.find_job_state(memory.scope, FORGETTING)
    assert left.begun_at is not None
    with pytest.raises(NotFound, match=r"in scope default$"):
        memory.forget(episode="secret", dry_run=True, clean_files=False)
    with pytest.raises(NotFound, match="until the background work"):
        memory.forget(episode="secret", clean_files=False)
    assert store.find_job_state(memory.scope, FORGETTING) == left
    with pytest.raises(NotFound, match="left from earlier erasures: nothing"):
        memory.forget(episode="secret")


class Speaking:
    """Zebulon speaks on a thread of its own until told to stop, and what he says is extracted on another one."""

    def __init__(self, memory: GraphMemory) -> None:
        self.memory = memory
        self.acknowledged = 0
        self.errors: list[BaseException] = []
        self._changed = threading.Condition()
        self._most = 0  # turns that may be said: the backlog of extraction stays short
        self._stopped = False
        self._threads = [
            threading.Thread(target=self._go_on, args=(step,)) for step in (self._say, memory.admin.backfill)
        ]
        for thread in self._threads:
            thread.start()

    def _go_on(self, step: Callable[[], object]) -> None:
        try:
            while not self._stopped:
                step()
        except BaseException as error:  # noqa: BLE001 - none may come
            self.errors.append(error)

    def _say(self) -> None:
        n = self.acknowledged
        with self._changed:
            self._changed.wait_for(lambda: n < self._most or self._stopped)
        turn = {"text": f"Zebulon Quimby | likes | {word(n)}", "external_id": word(n), "session_id": f"s{n % 3}"}
        self.memory.remember(turn, speaker="Zebulon Quimby")
        with self._changed:
            self.acknowledged += 1
            self._changed.notify_all()

    def wait_for(self, turns: int) -> None:
        """Wait until this number of further turns was acknowledged."""
        with self._changed:
            until = self.acknowledged + turns
            self._most = until + 3 * turns
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.acknowledged >= until, 30), self.errors

    def stop(self) -> None:
        """Let both threads end."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()


def word(n: int) -> str:
    return f"quix{n:05}otic"


def words_in(text: str) -> set[str]:
    return {text[found.start() : found.end()] for found in re.finditer(r"quix\d{5}otic", text)}


@pytest.mark.whole_store
@pytest.mark.parametrize(
    "options", [{"speaker": "Zebulon Quimby"}, {"entity": "Zebulon Quimby", "with_episodes": True}]
)
def test_who_speaks_on_is_forgotten_up_to_then_and_keeps_what_comes_after(
    store_url: str, tmp_path: Path, open_memory: OpenMemory, options: dict[str, Any]
) -> None:
    memory = open_memory(store_url, embeddings="none", background=True)

    def everything() -> str:
        """Return the rows, and the bytes of the files of SQLite."""
        files = b"".join(file.read_bytes() for file in tmp_path.glob("memory.db*"))
        return exported(memory) + files.decode("latin1")

    speaking = Speaking(memory)
    facts = after = 0
    for number in range(4):
        speaking.wait_for(30)
        if number == 0:
            memory.flush()  # so that facts are there; the other rounds forget while turns are extracted
        before, done = speaking.acknowledged, memory.forget(**options)
        # The turn that is said just now may have been stored, and erased, before the call that stores it returns.
        after, facts = speaking.acknowledged + 1, facts + done.facts
        assert words_in(everything()) & {word(n) for n in range(before)} == set()
    speaking.wait_for(30)
    speaking.stop()
    assert speaking.errors == []
    memory.flush()
    assert {word(n) for n in range(after, speaking.acknowledged)} <= words_in(exported(memory))
    assert facts

    assert memory.forget(**options).left == ()
    assert (words_in(everything()), "zebulon" in everything().lower()) == (set(), False)
