"""When a search looks for rows that aren't indexed yet, and how far back."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
import uuid_utils

from graphmem import GraphMemory
from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem.index.encoder import EpisodeEncoder
from graphmem.index.follower import VectorFollower
from graphmem.migrate.verify import read_only
from graphmem.models import (
    Changes,
    Episode,
    EpisodeQuery,
    EpisodeSource,
    IndexCursor,
    IndexEntry,
    IndexKind,
    IndexStatus,
    Removal,
    Scope,
    first_id_at,
)
from graphmem.protocols import GraphBackend, VectorIndex
from graphmem.registry import open_backend
from graphmem.search import search_index as module
from graphmem.search import snapshots
from graphmem.search.search_index import SearchIndex
from graphmem.text.names import PlainPhrases

HOME, ELSEWHERE = Scope("home"), Scope("elsewhere")
SOURCES: tuple[EpisodeSource, ...] = ("message", "message", "message", "document")


class Clock:
    """A clock that stands still; time 0 is now."""

    def __init__(self) -> None:
        self.begin = time.time()
        self.seconds = 0.0

    def time(self) -> float:
        """Return seconds since 1970."""
        return self.begin + self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(time=made.time, monotonic=time.monotonic))
    return made


@pytest.fixture
def store() -> Iterator[GraphBackend]:
    backend = open_backend("memory://")
    yield backend
    backend.close()


def put(store: GraphBackend, clock: Clock, seconds: float, scope: Scope = HOME) -> None:
    """Store an episode whose id was made at some second."""
    at = clock.begin + seconds
    made = str(uuid_utils.uuid7(timestamp=int(at), nanos=int(at % 1 * 1e9)))
    store.add_episodes(scope, [Episode(id=made, scope=scope, text="We met in Porto.")])


def settled(store: GraphBackend, *scopes: Scope) -> SearchIndex:
    """Return an index for which nothing waits."""
    index = SearchIndex(store, EpisodeEncoder(None, PlainPhrases()))
    for scope in scopes:
        assert index.index_waiting(scope)
    assert index.stale_scopes(scopes) == []
    return index


def test_only_scopes_in_which_something_waits_are_looked_at(store: GraphBackend, clock: Clock) -> None:
    index = settled(store, HOME, ELSEWHERE)
    put(store, clock, 0.0, ELSEWHERE)

    assert index.stale_scopes([HOME, ELSEWHERE]) == [ELSEWHERE]
    assert index.index_waiting(ELSEWHERE)
    assert index.stale_scopes([HOME, ELSEWHERE]) == []


@pytest.mark.parametrize(("made_at", "found_at"), [(-4.0, 0.0), (-50.0, 1.0), (-300.0, 30.0), (-590.0, 30.0)])
def test_what_is_committed_late_is_found_at_the_next_look_so_far_back(
    store: GraphBackend, clock: Clock, made_at: float, found_at: float
) -> None:
    index = settled(store, HOME)
    put(store, clock, made_at)

    if found_at:
        clock.seconds = found_at - 0.5
        assert index.stale_scopes([HOME]) == []
    clock.seconds = found_at
    assert index.stale_scopes([HOME]) == [HOME]
    assert index.index_waiting(HOME)
    assert index.stale_scopes([HOME]) == []


def test_rows_from_before_the_last_indexing_are_not_scanned_again(
    store: GraphBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = settled(store, HOME)
    clock.seconds = 20.0
    put(store, clock, 20.0)
    assert index.index_waiting(HOME)
    cursors: list[IndexCursor] = []
    status = store.index_status

    def recorded(asked: Sequence[IndexCursor]) -> list[IndexStatus]:
        cursors.extend(asked)
        return status(asked)

    monkeypatch.setattr(store, "index_status", recorded)
    clock.seconds = 25.0
    assert index.stale_scopes([HOME]) == []
    [cursor] = cursors
    assert cursor.episode == first_id_at(clock.begin + 20.0 - module._LATENESS[1])  # pyright: ignore[reportPrivateUsage]


def test_a_scan_that_began_before_a_reset_hides_nothing(
    store: GraphBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, clock, -3600.0)
    index = settled(store, HOME)
    clock.seconds = 1.0
    store.reset_index(HOME)  # by another process
    status = store.index_status

    def reset_meanwhile(asked: Sequence[IndexCursor]) -> list[IndexStatus]:
        monkeypatch.undo()
        index._require_model(HOME)  # pyright: ignore[reportPrivateUsage] - the first step of another thread's indexing
        return status(asked)

    monkeypatch.setattr(store, "index_status", reset_meanwhile)
    assert index.stale_scopes([HOME]) == [HOME]
    assert index.index_waiting(HOME)
    with index.copy([HOME]) as copy:
        assert len(copy.corpus.ids) == 1


def test_scopes_in_any_order_are_one_copy(store: GraphBackend, clock: Clock) -> None:
    index = settled(store, HOME, ELSEWHERE)
    with index.copy([HOME, ELSEWHERE]) as one, index.copy([ELSEWHERE, HOME]) as other:
        assert one is other


def test_titles_are_found_in_the_texts_of_all_pages_of_the_index(
    store: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"Review": "she writes for the new york times.", "New York": "A city.", "New York Times": "A daily."}
    for title, text in texts.items():
        store.add_episodes(HOME, [Episode(scope=HOME, source="document", title=title, text=text)])
    settled(store, HOME)
    found: list[list[str]] = []
    for page in (1, 1000):
        monkeypatch.setattr(snapshots, "_PAGE", page)
        with SearchIndex(store, EpisodeEncoder(None, PlainPhrases())).copy([HOME]) as copy:
            names = copy.corpus.names
            found.append([names.texts[number] for number in names.of_episode(0)])

    assert found == [["review", "new york times"]] * 2


def test_a_search_of_several_scopes_waits_once_for_their_indexing(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def wait(_: SearchIndex, scope: Scope, *, seconds: float) -> bool:
        waits.append(seconds)
        time.sleep(0.05)
        return True

    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False, index_wait=9.0) as memory:
        for scope in ("a/1", "a/2"):
            memory.in_scope(scope).remember("We met in Porto.")
        monkeypatch.setattr(SearchIndex, "index_waiting", wait)
        memory.search("Porto", scopes=["a/1", "a/2"])
    assert waits[1] <= waits[0] - 0.05


@pytest.mark.parametrize("read", ["index_status", "entry_pages", "get_episodes"])
def test_what_a_failed_read_missed_is_read_by_the_next(
    store: GraphBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    index = settled(store, HOME)
    put(store, clock, 0.0)
    assert index.index_waiting(HOME)

    def away(*_: object, **__: object) -> None:
        raise BackendUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(store, read, away)
        with pytest.raises(BackendUnavailable), index.copy([HOME]):
            pass
    with index.copy([HOME]) as copy:
        assert len(copy.corpus.ids) == 1


def test_a_read_that_fails_midway_leaves_a_copy_that_others_can_read_and_refresh(
    store: GraphBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = settled(store, HOME)
    monkeypatch.setattr(snapshots, "_PAGE", 1)
    with index.copy([HOME]) as held:
        corpus = held.corpus
    for _ in range(3):
        put(store, clock, 0.0)
    assert index.index_waiting(HOME)
    read, reads, copied = store.get_episodes, iter(range(9)), list[int]()

    def copy() -> None:
        with index.copy([HOME]) as found:
            copied.append(len(found.corpus))

    other = threading.Thread(target=copy)

    def away_once(scopes: Sequence[Scope], ids: Sequence[str]) -> Any:
        if next(reads) == 1:
            other.start()
            time.sleep(0.1)  # until the other thread waits for the copy
            raise BackendUnavailable("away")
        return read(scopes, ids)

    monkeypatch.setattr(store, "get_episodes", away_once)
    with pytest.raises(BackendUnavailable):
        copy()
    assert len([corpus.names.of_episode(position) for position in range(len(corpus))]) == 1
    other.join()
    assert copied == [3]


def test_what_is_of_long_ago_is_found_when_it_is_told(store: GraphBackend, clock: Clock) -> None:
    index = settled(store, HOME)
    put(store, clock, -3600.0)
    clock.seconds = 100.0

    assert index.stale_scopes([HOME]) == []
    index.reset_cursor(HOME)
    assert index.stale_scopes([HOME]) == [HOME]


def test_a_clock_that_was_set_back_hides_nothing(store: GraphBackend, clock: Clock) -> None:
    index = settled(store, HOME)
    clock.seconds = -7200.0
    put(store, clock, -7200.0)

    assert index.stale_scopes([HOME]) == [HOME]


def test_a_backlog_is_scanned_once_and_rows_committed_meanwhile_are_indexed(
    store: GraphBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    for second in range(-10, -4):
        put(store, clock, float(second))
    ids = [episode.id for episode in store.all_episodes([HOME], EpisodeQuery())]
    scans: list[str] = []
    find = store.find_unindexed

    def recorded(scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        found = find(scope, kind, after=after, limit=limit)
        if kind == "episode":
            scans.append(after)
            if after == ids[3] and store.stats(HOME).episodes == 6:
                put(store, clock, -20.0)  # by a transaction that began earlier
        return found

    monkeypatch.setattr(store, "find_unindexed", recorded)
    index = SearchIndex(store, EpisodeEncoder(None, PlainPhrases()))

    assert index.index_waiting(HOME)
    assert scans == ["", ids[1], ids[3], ids[5], ""]  # the last one finds the late row
    assert find(HOME, "episode") == []


class PairsEncoder(EpisodeEncoder):
    """Encoder that keeps which episode it was given before each one."""

    def __init__(self) -> None:
        super().__init__(None, PlainPhrases())
        self.pairs: dict[str, str | None] = {}

    def episodes(
        self, episodes: Sequence[tuple[Episode, Episode | None]], listed: Any = MappingProxyType({})
    ) -> list[IndexEntry]:
        self.pairs.update((episode.id, earlier and earlier.id) for episode, earlier in episodes)
        return super().episodes(episodes, listed)


@pytest.mark.parametrize("seed", range(20))
def test_a_message_is_encoded_with_the_one_before_it_whatever_else_is_indexed(store: GraphBackend, seed: int) -> None:
    chance = random.Random(seed)
    turns = [
        Episode(scope=HOME, text=f"turn {n}", session_id=chance.choice("ab"), source=chance.choice(SOURCES))
        for n in range(150)
    ]
    for turn in turns:
        store.add_episodes(HOME, [turn])
    before: dict[str, str | None] = {}
    for turn in turns:
        last = next((t for t in reversed(turns[: turns.index(turn)]) if t.session_id == turn.session_id), None)
        follows = turn.source == "message" and last is not None and last.source == "message"
        before[turn.id] = last.id if follows and last is not None else None
    encoder = PairsEncoder()
    index = SearchIndex(store, encoder)
    assert index.index_waiting(HOME)
    assert encoder.pairs == before
    again = chance.sample(turns, 40)
    store.write(HOME, Changes(removals=tuple(Removal("index", turn.id, "episode") for turn in again)))
    encoder.pairs.clear()
    index.reset_cursor(HOME)
    assert index.index_waiting(HOME)
    assert encoder.pairs == {turn.id: before[turn.id] for turn in again}


class WaitingEncoder(PairsEncoder):
    """Encoder that waits in one scope until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def episodes(
        self, episodes: Sequence[tuple[Episode, Episode | None]], listed: Any = MappingProxyType({})
    ) -> list[IndexEntry]:
        if episodes[0][0].scope == HOME:
            self.begun.set()
            assert self.may_go_on.wait(10.0)
        return super().episodes(episodes, listed)


def test_a_search_waits_for_another_thread_that_indexes_its_scope_only_for_its_time(
    store: GraphBackend, clock: Clock
) -> None:
    put(store, clock, 0.0, HOME)
    put(store, clock, 0.0, ELSEWHERE)
    encoder = WaitingEncoder()
    index = SearchIndex(store, encoder)
    with ThreadPoolExecutor() as pool:
        whole = pool.submit(index.index_waiting, HOME)
        try:
            assert encoder.begun.wait(10.0)
            assert index.index_waiting(ELSEWHERE, seconds=5.0)
            assert not index.index_waiting(HOME, seconds=0.05)
        finally:
            encoder.may_go_on.set()
        assert whole.result(10.0)
    assert index.index_waiting(HOME, seconds=math.inf)


def test_a_search_waits_for_another_thread_that_fills_the_vector_index_only_for_its_time(store: GraphBackend) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def state(_: Scope) -> None:
        begun.set()
        assert may_go_on.wait(10.0)

    follower = VectorFollower(store, cast("VectorIndex", SimpleNamespace(state=state, clear=print)), lambda: 4)
    with ThreadPoolExecutor() as pool:
        whole = pool.submit(follower.sync, HOME)
        try:
            assert begun.wait(10.0)
            assert not follower.sync(HOME, seconds=0.05)
        finally:
            may_go_on.set()
        assert whole.result(10.0)


def test_rows_are_not_encoded_again_for_a_store_that_refuses_to_be_written(
    store: GraphBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, clock, 0.0)
    encoded: list[int] = []
    episodes = EpisodeEncoder.episodes

    def counted(self: EpisodeEncoder, some: Sequence[Any], listed: Any) -> list[IndexEntry]:
        encoded.append(len(some))
        return episodes(self, some, listed)

    monkeypatch.setattr(EpisodeEncoder, "episodes", counted)
    index = SearchIndex(read_only(store), EpisodeEncoder(None, PlainPhrases()))
    for _ in range(3):
        with pytest.raises(StoreReadOnly, match="writes nothing"):
            index.index_waiting(HOME)
    assert encoded == [1]
    monkeypatch.setattr(index, "_refused", (0.0, ""))  # as later
    with pytest.raises(StoreReadOnly):
        index.index_waiting(HOME)
    assert encoded == [1, 1]
