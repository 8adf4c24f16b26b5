"""A model that is away or misconfigured: nothing is lost, no tries are used up, and extraction resumes by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from graphmem.errors import ExtractionFailed, ExtractorMisconfigured, ExtractorUnavailable, MissingExtra
from graphmem.ingest.failures import Failure, RetryRule
from graphmem.ingest.queue import ExtractionQueue
from graphmem.llm.providers import kind_of
from graphmem.models import EdgeQuery, Episode, EpisodeQuery, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import ExtractedEdge, Extraction, ExtractionRequest, GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings

SCOPE, OTHER = Scope("outages"), Scope("outages", "other")
BEGIN = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
AWAY = ExtractorUnavailable("HTTP 503")
REFUSED = ExtractorMisconfigured("the model's server refused the credentials (HTTP 401)")

Error = Exception | None


class Simulation:
    """A queue whose clock only moves when the test says so; `error_at` tells what the model answers when."""

    name, batch_size = "simulated", 8

    def __init__(self, backend: GraphBackend, error_at: Callable[[datetime, str], Error], **settings: float) -> None:
        self.now = BEGIN
        self.backend = backend
        self.error_at = error_at
        self.calls: list[tuple[datetime, str]] = []
        self.queue = ExtractionQueue(backend, self, DEFAULT_ONTOLOGY, Settings(**settings), clock=lambda: self.now)

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return [self._one(request.episode.text) for request in requests]

    def _one(self, text: str) -> Extraction | Exception:
        self.calls.append((self.now, text))
        return self.error_at(self.now, text) or Extraction(edges=(ExtractedEdge("Maya", "knows", text),))

    def store(self, *texts: str, scope: Scope = SCOPE) -> None:
        self.backend.add_episodes(scope, [Episode(scope=scope, text=text) for text in texts])
        self.queue.notify([scope])

    def run(self, duration: timedelta, step: timedelta = timedelta(seconds=15)) -> None:
        """Let the background work look at the queue every `step`."""
        end = self.now + duration
        while self.now < end:
            while self.queue.process().claimed:
                pass
            self.now += step

    def episodes(self, scope: Scope = SCOPE) -> list[Episode]:
        return self.backend.find_episodes([scope], EpisodeQuery())

    def counts(self, scope: Scope = SCOPE) -> tuple[int, int, int]:
        """Return how many episodes are processed, waiting and dead."""
        stats = self.backend.stats(scope)
        return (
            stats.episodes - stats.pending_episodes - stats.failed_episodes,
            stats.pending_episodes,
            stats.failed_episodes,
        )


@pytest.fixture
def backend() -> Iterator[GraphBackend]:
    store = open_backend("memory://")
    yield store
    store.close()


def until(end: datetime, error: Exception) -> Callable[[datetime, str], Error]:
    return lambda now, _: error if now < end else None


OUTAGES = {"ten minutes": timedelta(minutes=10), "an hour": timedelta(hours=1), "a day": timedelta(days=1)}


def test_the_scopes_of_delayed_episodes_are_changed_under_the_lock(backend: GraphBackend) -> None:
    simulation = Simulation(backend, until(BEGIN + timedelta(days=1), AWAY))
    queue = simulation.queue

    class Guarded(set[Scope]):
        def add(self, element: Scope) -> None:
            assert queue._rule_lock.locked()  # pyright: ignore[reportPrivateUsage]
            super().add(element)

    queue._delayed = Guarded()  # pyright: ignore[reportPrivateUsage]
    simulation.store("one")
    queue.process()
    assert list(queue._delayed) == [SCOPE]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("error", [AWAY, REFUSED], ids=["unavailable", "misconfigured"])
@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_after_an_outage_everything_is_extracted_within_a_quarter_of_an_hour(
    backend: GraphBackend, outage: timedelta, error: Exception
) -> None:
    simulation = Simulation(backend, until(BEGIN + outage, error))
    simulation.store(*(f"person {n}" for n in range(20)))
    simulation.store("person 20", scope=OTHER)
    simulation.run(outage)
    assert (simulation.counts(), simulation.counts(OTHER)) == ((0, 20, 0), (0, 1, 0))
    assert {e.attempts for e in simulation.episodes()} == {0}
    simulation.run(timedelta(minutes=16), timedelta(minutes=1))
    assert (simulation.counts(), simulation.counts(OTHER)) == ((20, 0, 0), (1, 0, 0))


def test_an_outage_of_ten_days_makes_no_dead_letters(backend: GraphBackend) -> None:
    end = BEGIN + timedelta(days=10)
    overloaded = {f"person {n}" for n in range(0, 20, 2)}  # fail once more when the model is back

    def error_at(now: datetime, text: str) -> Error:
        if now < end:
            return AWAY
        if text in overloaded:
            overloaded.remove(text)
            return AWAY
        return None

    simulation = Simulation(backend, error_at, retry_days=7.0)
    simulation.store(*(f"person {n}" for n in range(20)))
    simulation.run(timedelta(days=10), timedelta(minutes=10))
    assert simulation.counts() == (0, 20, 0)
    assert {e.attempts for e in simulation.episodes()} == {0}
    simulation.run(timedelta(hours=5), timedelta(minutes=1))
    assert (simulation.counts(), overloaded) == ((20, 0, 0), set())


def test_a_process_that_starts_in_the_middle_of_a_long_outage_gives_nothing_up(backend: GraphBackend) -> None:
    before = Simulation(backend, lambda _, __: AWAY, retry_days=7.0)
    before.store(*(f"person {n}" for n in range(20)))
    before.run(timedelta(days=8), timedelta(minutes=10))
    after = Simulation(backend, lambda _, __: AWAY, retry_days=7.0)
    after.now = before.now
    after.queue.retry_now([SCOPE])
    after.run(timedelta(hours=6), timedelta(minutes=1))
    assert after.counts() == (0, 20, 0)


@pytest.mark.parametrize(("error", "most"), [(AWAY, 140), (REFUSED, 110)], ids=["unavailable", "misconfigured"])
def test_an_outage_of_a_day_costs_few_calls(backend: GraphBackend, error: Exception, most: int) -> None:
    simulation = Simulation(backend, until(BEGIN + timedelta(days=2), error))
    simulation.store(*(f"person {n}" for n in range(50)))
    simulation.run(timedelta(days=1), timedelta(minutes=1))
    assert len(simulation.calls) <= most


@pytest.mark.parametrize("error", [AWAY, REFUSED], ids=["unavailable", "misconfigured"])
def test_an_outage_is_logged_once_and_so_is_its_end(
    backend: GraphBackend, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    simulation = Simulation(backend, until(BEGIN + timedelta(hours=2), error))
    simulation.store(*(f"person {n}" for n in range(20)))
    simulation.run(timedelta(hours=3), timedelta(minutes=1))
    begun, ended = caplog.messages
    assert str(error) in begun
    assert "graphmem backfill" in begun
    assert ended == "extraction resumed; it had been paused since 2026-11-24T08:00:00+00:00"


def test_a_refused_key_pauses_the_queue_after_one_round(backend: GraphBackend) -> None:
    simulation = Simulation(backend, lambda _, __: REFUSED)
    simulation.store(*(f"person {n}" for n in range(20)))
    simulation.run(timedelta(minutes=14))
    assert len(simulation.calls) == simulation.batch_size
    pause = simulation.queue.pause
    assert pause is not None
    assert (pause.kind, pause.since, pause.until) == ("misconfigured", BEGIN, BEGIN + timedelta(minutes=15))


def test_a_paused_queue_tries_at_once_when_it_is_asked_to(backend: GraphBackend) -> None:
    simulation = Simulation(backend, until(BEGIN + timedelta(minutes=1), REFUSED))
    simulation.store(*(f"person {n}" for n in range(20)))
    simulation.run(timedelta(minutes=2))
    assert simulation.counts() == (0, 20, 0)
    simulation.queue.retry_now([SCOPE])
    simulation.run(timedelta(seconds=1))
    assert simulation.counts() == (20, 0, 0)


def test_what_is_delayed_behind_requeued_episodes_is_tried_at_once(
    backend: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.ingest.failures._PAGE", 5)
    simulation = Simulation(backend, lambda _, text: AWAY if text == "person 20" else None)
    simulation.store(*(f"person {n}" for n in range(21)))
    simulation.run(timedelta(minutes=1))
    assert simulation.counts() == (20, 1, 0)
    simulation.queue.requeue_extracted(SCOPE)
    simulation.queue.retry_now([SCOPE])
    delayed = [e for e in simulation.episodes() if e.retry_at is not None and e.retry_at > simulation.now]
    assert delayed == []


def test_a_reopened_store_tries_at_once_what_an_outage_has_delayed(backend: GraphBackend) -> None:
    before = Simulation(backend, lambda _, __: AWAY)
    before.store("person 1")
    before.run(timedelta(hours=6), timedelta(minutes=1))
    after = Simulation(backend, lambda _, __: None)
    after.now = before.now
    assert after.queue.process().claimed == 0
    after.queue.retry_now([SCOPE])
    assert after.queue.process().claimed == 1
    assert after.counts() == (1, 0, 0)


def test_an_episode_that_always_times_out_waits_longer_each_time_and_holds_up_nobody(backend: GraphBackend) -> None:
    simulation = Simulation(backend, lambda _, text: AWAY if text == "endless" else None)
    simulation.store("endless", "person 1")
    simulation.run(timedelta(hours=12), timedelta(seconds=5))
    simulation.store("person 2")
    simulation.run(timedelta(seconds=5))
    assert simulation.counts() == (2, 1, 0)
    times = [now for now, text in simulation.calls if text == "endless"]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[0] == timedelta(seconds=5)
    assert gaps[-1] >= timedelta(hours=2)


def test_an_episode_that_only_met_an_unavailable_model_for_a_week_is_given_up(backend: GraphBackend) -> None:
    simulation = Simulation(backend, lambda _, text: AWAY if text == "endless" else None, retry_days=7.0)
    simulation.store("endless")
    simulation.run(timedelta(days=6), timedelta(minutes=10))
    assert simulation.counts() == (0, 1, 0)
    simulation.run(timedelta(days=2), timedelta(minutes=10))
    assert simulation.counts() == (0, 0, 1)


def test_an_episode_that_is_refused_while_others_are_read_counts_as_its_own_failure(backend: GraphBackend) -> None:
    simulation = Simulation(backend, lambda _, text: REFUSED if text == "forbidden" else None)
    simulation.store("forbidden")
    simulation.run(timedelta(minutes=1))
    simulation.store(*(f"person {n}" for n in range(5)))
    for n in range(5, 60):
        simulation.store(f"person {n}")
        simulation.run(timedelta(minutes=1))
    assert simulation.counts() == (60, 0, 1)


def test_a_bad_answer_uses_up_a_try_and_an_outage_in_between_none(backend: GraphBackend) -> None:
    bad = ExtractionFailed("the model's answer has neither entities nor edges")
    answers = iter([bad, AWAY, AWAY, bad, bad])
    simulation = Simulation(backend, lambda _, __: next(answers), max_attempts=3)
    simulation.store("person 1")
    simulation.run(timedelta(minutes=10), timedelta(seconds=5))
    [episode] = simulation.episodes()
    assert (episode.attempts, simulation.counts()) == (3, (0, 0, 1))


def test_a_missing_package_pauses_and_uses_up_no_try(backend: GraphBackend) -> None:
    simulation = Simulation(backend, until(BEGIN + timedelta(hours=1), MissingExtra("SpacyExtractor", "spacy")))
    simulation.store("person 1")
    simulation.run(timedelta(minutes=55))
    assert simulation.counts() == (0, 1, 0)
    simulation.run(timedelta(minutes=40))
    assert simulation.counts() == (1, 0, 0)


def test_dead_letters_are_tried_again(backend: GraphBackend) -> None:
    repaired = False
    simulation = Simulation(backend, lambda _, __: None if repaired else ExtractionFailed("bad answer"))
    simulation.store("person 1", "person 2")
    simulation.run(timedelta(minutes=2))
    assert simulation.counts() == (0, 0, 2)
    repaired = True
    assert simulation.queue.retry_failed(SCOPE) == 2
    assert {(e.attempts, e.error) for e in simulation.episodes()} == {(1, None)}
    simulation.run(timedelta(minutes=1))
    assert simulation.counts() == (2, 0, 0)
    assert len(backend.find_edges([SCOPE], EdgeQuery())) == 2


@pytest.mark.parametrize("kind", ["episode", "unavailable", "misconfigured"])
def test_what_is_stored_of_a_failure_is_read_back(kind: str) -> None:
    error = ExtractionFailed("odd [text] since 1, 2×, last (3)\nand more")
    first = Failure.of(error, kind, BEGIN)  # type: ignore[arg-type]
    again = Failure.of(error, first.kind, BEGIN + timedelta(hours=3)).after(first)
    assert (again.since, again.last, again.times) == (BEGIN, BEGIN + timedelta(hours=3), 2)
    assert Failure.read(str(again)) == again


@pytest.mark.parametrize("text", [None, "", "TimeoutError: no answer", "A: b [own since x, 1×, last y]"])
def test_an_error_that_another_version_stored_is_no_failure_that_can_be_read(text: str | None) -> None:
    assert Failure.read(text) is None


def test_delays_of_many_attempts_end_at_a_date() -> None:
    rule = RetryRule(Settings(retry_delay=1e9, probe_interval=1e9, max_attempts=99))
    episode = Episode(scope=SCOPE, text="Noor", attempts=97)
    for error in (ExtractionFailed("no JSON"), AWAY, REFUSED):
        failure, _ = rule.judge(episode, error, kind_of(error), BEGIN)
        retry_at = rule.next_try(episode, failure, BEGIN)
        assert retry_at is not None
        assert retry_at > BEGIN
