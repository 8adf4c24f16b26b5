"""Episodes that can't be extracted, extractors that misbehave, and a store that is away for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenMemory
from toy import FAILS, ToyExtractor, read

from graphmem import BackendUnavailable, GraphMemory, MissingExtra
from graphmem.ingest.interpretation import InterpretedEpisode
from graphmem.models import Episode
from graphmem.models.base import END_OF_TIME, START_OF_TIME
from graphmem.protocols import ExtractedEdge, ExtractedEnding, ExtractedEntity, Extraction, ExtractionRequest
from graphmem.registry import open_backend

GOOD = "Alice Stone | knows | Bob Miller"
NAIVE = datetime(2026, 1, 31)  # noqa: DTZ001 - what an extractor should not return
FAST = {"retry_delay": 0.001}


class FailsAtFirst(ToyExtractor):
    """Fails so many times for every text, then reads it."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self._failures = failures

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Count the tries of each text."""
        for request in requests:
            self.seen.append(request.episode.text)
        return [
            read(r.episode.text) if self.seen.count(r.episode.text) > self._failures else TimeoutError("no answer")
            for r in requests
        ]


class FailsTwice(ToyExtractor):
    """Fails for some texts in the first two attempts."""

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Return the facts of such a text in its third attempt."""
        return [
            read(r.episode.text)
            if f"{FAILS} at first" in r.episode.text and r.episode.attempts == 2
            else self._one(r.episode.text)
            for r in requests
        ]


class Forgets(ToyExtractor):
    """Has something forgotten while it reads for the first time."""

    forget: Callable[[], object] | None = None

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read the episodes."""
        forget, self.forget = self.forget, None
        if forget is not None:
            forget()
        return super().extract(requests)


class Returns(ToyExtractor):
    """Returns what it was told to for every episode that says so, and reads the others."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read the episodes."""
        return [self._result if FAILS in r.episode.text else read(r.episode.text) for r in requests]


class Better(ToyExtractor):
    """Extracts other relations from the same texts, except from those of one person."""

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Find other relations."""
        return [read(r.episode.text.replace("Alice Stone | knows", "Alice Stone | employs")) for r in requests]


class RaisesOrShort(ToyExtractor):
    """Gives back fewer results than it was asked for."""

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Lose one."""
        return super().extract(requests)[1:]


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Look again and again until something holds."""
    ticking = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if holds():
            return
        ticking.wait(0.01)
    raise AssertionError(f"not within {seconds} s")


@pytest.mark.server
def test_failing_episode_is_tried_three_times_and_told_in_stats_while_the_others_go_on(
    store_url: str, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url, **FAST)
    bad = memory.remember(f"this {FAILS}").episode_id
    memory.remember(GOOD)
    assert memory.flush(timeout=60) == 0
    stats = memory.stats()
    assert (stats.pending_episodes, stats.failed_episodes, stats.active_edges) == (0, 1, 1)
    [told] = stats.errors
    assert (told.episode_id, told.attempts, told.retry_at) == (bad, 3, None)
    assert FAILS in told.error


def test_a_dead_letter_that_is_retried_has_all_attempts_again(store_url: str, open_memory: OpenMemory) -> None:
    extractor = ToyExtractor()
    memory = open_memory(store_url, extractor=extractor, **FAST)
    memory.remember(f"this {FAILS}")
    assert memory.flush() == 0
    for _ in range(2):
        extractor.seen.clear()
        memory.admin.backfill(failed=True)
        assert memory.flush() == 0
        assert len(extractor.seen) == 3
        assert [told.attempts for told in memory.admin.dead_letters()] == [3]


def test_failing_episode_succeeds_at_a_later_try(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor=FailsAtFirst(2), **FAST)
    memory.remember(GOOD)
    assert memory.flush(timeout=60) == 0
    assert (memory.stats().failed_episodes, memory.stats().errors) == (0, ())
    assert len(memory.facts("Alice Stone")) == 1


def test_a_load_counts_an_episode_that_is_tried_again_once(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor=FailsTwice(), retry_delay=1e-6)
    report = memory.ingest([f"Eve Moss {FAILS} at first | knows | Bob Miller", GOOD])
    assert (report.extracted, report.failed) == (2, 0)
    report = memory.ingest([f"this {FAILS}"])
    assert (report.extracted, report.failed) == (0, 1)


def test_a_load_ends_when_all_of_it_is_extracted(store_url: str, open_memory: OpenMemory) -> None:
    class Wakes(ToyExtractor):
        """Wakes the background work while it reads."""

        def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
            memory._engine.wake(memory.scope)  # pyright: ignore[reportPrivateUsage]
            threading.Event().wait(0.02)
            return super().extract(requests)

    memory = open_memory(store_url, extractor=Wakes(), embeddings="none", batch_size=20, background=True)
    for _ in range(3):
        report = memory.ingest(f"Alice Stone | knows | Person {n:03d}" for n in range(60))
        assert (report.stored, report.extracted, report.edges) == (60, 60, report.edges)
        assert memory.stats().pending_episodes == 0


def test_a_load_waits_for_what_another_process_extracts(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor=ToyExtractor(), embeddings="none", background=False)
    memory.remember(GOOD)
    store = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    now = datetime.now(UTC)
    [claimed] = store.claim_episodes("another process", now=now, until=now + timedelta(hours=1), limit=1)
    timer = threading.Timer(0.3, lambda: store.release_claims(["another process"]))
    timer.start()
    memory.ingest(["Alice Stone | knows | Eve Adams"])
    timer.join()
    assert store.get_episodes([memory.scope], [claimed.id])[claimed.id].processed_at is not None


def test_a_load_counts_an_episode_that_is_read_again_after_an_erasure_once(
    store_url: str, open_memory: OpenMemory
) -> None:
    extractor = Forgets()
    memory = open_memory(store_url, extractor=extractor)
    gone = memory.remember("Eve Moss | knows | Bob Miller").episode_id
    memory.flush()
    extractor.forget = lambda: memory.forget(episode=gone)
    assert memory.ingest([GOOD]).extracted == 1
    assert extractor.seen.count(GOOD) == 2


def test_waiting_try_is_told_with_its_time(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, retry_delay=3600.0)
    memory.remember(f"this {FAILS}")
    assert memory.admin.backfill().failed == 1
    assert memory.flush(timeout=0.05) == 1
    [told] = memory.stats().errors
    assert told.attempts == 1
    assert told.retry_at is not None


@pytest.mark.whole_store
def test_background_extraction_tries_again_by_itself(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor=FailsAtFirst(1), background=True, **FAST)
    memory.remember(GOOD)
    wait_until(lambda: memory.stats().active_edges == 1)


def test_backfill_again_replaces_what_a_weaker_extractor_said_and_history_keeps_it(
    store_url: str, open_memory: OpenMemory
) -> None:
    with open_memory(store_url) as memory:
        memory.ingest([f"Alice Stone | knows | Person {n}" for n in range(30)] + ["Eve Moss | knows | Bob Miller"])
        memory.add_facts([("Alice Stone", "knows", "Ready Made")])
    again = open_memory(store_url, extractor=Better(), extraction_concurrency=4)
    assert again.admin.backfill(again=True).extracted == 31
    assert {(fact.relation, fact.target) for fact in again.facts("Alice Stone")} == {
        *(("employs", f"Person {n}") for n in range(30)),
        ("knows", "Ready Made"),
    }
    assert [fact.relation for fact in again.facts("Eve Moss")] == ["knows"]
    assert len(again.history("Alice Stone", "knows")) == 31
    assert again.stats().pending_episodes == 0


def test_a_dead_letter_of_a_second_extraction_still_replaces_the_first(store_url: str, open_memory: OpenMemory) -> None:
    with open_memory(store_url) as memory:
        memory.ingest(["Alice Stone | knows | Bob Miller"])
    with open_memory(store_url, extractor=RaisesOrShort(), max_attempts=1) as memory:
        memory.admin.backfill(again=True)
        assert memory.stats().failed_episodes == 1
    again = open_memory(store_url, extractor=Better())
    assert again.admin.backfill(failed=True).extracted == 1
    assert [fact.relation for fact in again.facts("Alice Stone")] == ["employs"]


def test_what_an_unavailable_model_has_delayed_is_extracted_when_the_store_is_reopened(
    store_url: str, open_memory: OpenMemory
) -> None:
    with open_memory(store_url, extractor=FailsAtFirst(100), retry_delay=3600.0) as memory:
        memory.remember(GOOD)
        memory.admin.backfill()
        assert memory.stats().queue.state == "waiting"
        [told] = memory.stats().errors
        assert (told.attempts, told.retry_at is None) == (0, False)
    again = open_memory(store_url)
    assert again.flush(timeout=0.01) == 1
    assert again.admin.backfill().extracted == 1


@pytest.mark.whole_store
def test_background_extraction_resumes_when_the_store_is_reopened(store_url: str, open_memory: OpenMemory) -> None:
    keep = open_memory(store_url, extractor="none")
    with open_memory(store_url, extractor=FailsAtFirst(100), retry_delay=3600.0) as memory:
        memory.remember(GOOD)
        memory.admin.backfill()
    again = open_memory(store_url, background=True)
    wait_until(lambda: again.stats().active_edges == 1)
    assert keep.stats().queue.state == "running"


def test_an_extractor_without_its_package_fails_when_the_memory_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.factory.spacy_available", lambda: False)
    with pytest.raises(MissingExtra, match="graphmem\\[spacy\\]"):
        GraphMemory.open(f"memory://{tmp_path.name}", extractor="spacy")


HOSTILE = {
    "a naive valid_to": Extraction(edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", valid_to=NAIVE),)),
    "a naive valid_from": Extraction(edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", valid_from=NAIVE),)),
    "NaN confidence": Extraction(edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", confidence=float("nan")),)),
    "no number as confidence": Extraction(
        edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", confidence="high"),)  # pyright: ignore[reportArgumentType]
    ),
    "None as fact": Extraction(
        edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", fact=None),)  # pyright: ignore[reportArgumentType]
    ),
    "text as valid_from": Extraction(
        edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", valid_from="2026"),)  # pyright: ignore[reportArgumentType]
    ),
    "text as summary and confidence": Extraction(
        entities=(ExtractedEntity("Ann Lee", summary=None, confidence="1"),)  # pyright: ignore[reportArgumentType]
    ),
    "None as name": Extraction(entities=(ExtractedEntity(None),)),  # pyright: ignore[reportArgumentType]
    "None in place of an extraction": None,
    "an unknown edge type": Extraction(edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", edge_type="Semantic"),)),
    "an unknown certainty": Extraction(
        edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", certainty="sure"),)  # pyright: ignore[reportArgumentType]
    ),
    "an unknown kind": Extraction(
        edges=(ExtractedEdge("Ann Lee", "knows", "Bob Miller", kind="thing"),)  # pyright: ignore[reportArgumentType]
    ),
    "the first and the last date": Extraction(
        edges=(
            ExtractedEdge("Ann Lee", "knows", "Bob Miller", valid_from=END_OF_TIME, kind="event"),
            ExtractedEdge("Ann Lee", "owns", "Skiff", valid_to=START_OF_TIME, ended=True),
        ),
        endings=(ExtractedEnding("Ann Lee", "lives_in", valid_to=START_OF_TIME),),
    ),
    "a number as relation": Extraction(
        edges=(ExtractedEdge("Ann Lee", 7, "Bob Miller"),)  # pyright: ignore[reportArgumentType]
    ),
    "an end before the beginning": Extraction(
        edges=(
            ExtractedEdge(
                "Ann Lee",
                "knows",
                "Bob Miller",
                valid_from=datetime.fromisoformat("2026-02-01T00:00:00Z"),
                valid_to=datetime.fromisoformat("2026-01-01T00:00:00Z"),
            ),
        )
    ),
    "names of a megabyte": Extraction(edges=(ExtractedEdge("a" * 10**6, "b" * 10**6, "c" * 10**6, fact="d" * 10**6),)),
    "empty names": Extraction(entities=(ExtractedEntity(""),), edges=(ExtractedEdge("", "", ""),)),
    "lone surrogates": Extraction(edges=(ExtractedEdge("Ann\ud800 Lee", "knows\ud800", "Bob\udfff", fact="\ud800 x"),)),
}


@pytest.mark.parametrize("result", HOSTILE.values(), ids=HOSTILE)
def test_what_an_extractor_returns_never_stops_the_queue(
    store_url: str, open_memory: OpenMemory, result: object
) -> None:
    memory = open_memory(store_url, extractor=Returns(result), **FAST)
    memory.remember(f"this {FAILS}")
    memory.remember(GOOD)
    assert memory.flush(timeout=60) == 0
    assert len(memory.history("Alice Stone")) == 1
    assert len(memory.facts("Ann Lee")) <= 1  # what was stored can be read


def test_an_error_of_one_episode_in_the_write_is_a_failure_of_that_episode(
    store_url: str, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(episode: Episode, *_: object, **__: object) -> InterpretedEpisode:
        found = InterpretedEpisode(episode, (), ())
        return replace(found, statements=(None,)) if FAILS in episode.text else found  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr("graphmem.ingest.extraction_calls.read_extraction", read)
    memory = open_memory(store_url, extractor=Returns(Extraction()), **FAST)
    memory.remember(f"this {FAILS}")
    memory.remember(GOOD)
    assert memory.flush(timeout=60) == 0
    assert memory.stats().failed_episodes == 1


def test_extractor_that_loses_results_fails_its_episodes(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor=RaisesOrShort(), **FAST)
    memory.remember(GOOD)
    memory.remember("Carol Jones | knows | Dave Brown")
    assert memory.flush(timeout=60) == 0
    assert memory.stats().failed_episodes == 2


class Away:
    """A store that can be away: then everything that the queue needs of it fails."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.is_away = threading.Event()
        self.refused = threading.Semaphore(0)

    def __getattr__(self, name: str) -> Any:
        if self.is_away.is_set() and name in ("claim_episodes", "write", "atomic"):
            self.refused.release()
            raise BackendUnavailable("the store is away")
        return getattr(self._store, name)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> list[Away]:
    """Let every store that is opened be one that can be away; return those that were."""
    opened: list[Away] = []

    def open_one(url: str, **options: Any) -> Away:
        opened.append(Away(open_backend(url, **options)))
        return opened[-1]

    monkeypatch.setattr("graphmem.factory.open_backend", open_one)
    return opened


@pytest.mark.whole_store
def test_background_extraction_outlives_a_store_that_is_away(
    store_url: str, open_memory: OpenMemory, away: list[Away]
) -> None:
    memory: GraphMemory = open_memory(store_url, background=True)
    [store] = away
    store.is_away.set()
    memory.remember(GOOD)
    assert store.refused.acquire(timeout=30)
    wait_until(lambda: memory.stats().background != ())
    assert "the store is away" in memory.stats().background[0]
    store.is_away.clear()
    wait_until(lambda: memory.stats().active_edges == 1)
    wait_until(lambda: memory.stats().background == ())


def test_store_that_goes_away_in_the_middle_of_a_load_is_an_error_and_the_load_can_be_repeated(
    store_url: str, open_memory: OpenMemory, away: list[Away]
) -> None:
    memory = open_memory(store_url)
    [store] = away
    turns = [{"text": f"{GOOD} {i}", "external_id": str(i)} for i in range(20)]
    with pytest.raises(BackendUnavailable, match="away"):
        memory.ingest(turns, on_progress=lambda _: store.is_away.set())
    store.is_away.clear()
    report = memory.ingest(turns)
    assert (report.known, report.stored) == (20, 0)
    assert memory.stats().pending_episodes == 0
    assert memory.stats().active_edges == 20


def test_episodes_in_hand_when_the_store_goes_away_are_taken_again_as_soon_as_it_is_back(
    store_url: str, open_memory: OpenMemory, away: list[Away]
) -> None:
    memory = open_memory(store_url, extractor=GoesAway(away), claim_seconds=3600)
    memory.remember(GOOD)
    with pytest.raises(BackendUnavailable, match="away"):
        memory.flush()
    away[0].is_away.clear()
    assert memory.flush(timeout=30) == 0
    assert memory.stats().active_edges == 1


class GoesAway(ToyExtractor):
    """Reads, and the first time the store is away when it has read."""

    def __init__(self, away: list[Away]) -> None:
        super().__init__()
        self._away = away

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Let the store go away."""
        if not self.seen:
            self._away[0].is_away.set()
        return super().extract(requests)
