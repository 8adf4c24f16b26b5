"""The durable queue: retries, errors, claims of processes that are gone."""

from __future__ import annotations

import os
import socket
import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from graphmem.errors import BackendUnavailable, ExtractionFailed, ExtractorUnavailable
from graphmem.ingest.claims import _machine  # pyright: ignore[reportPrivateUsage]
from graphmem.ingest.queue import ExtractionQueue
from graphmem.models import FORGETTING, Changes, EdgeQuery, Episode, EpisodeQuery, JobState, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import ExtractedEdge, ExtractedEnding, Extraction, ExtractionRequest, GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings

SCOPE = Scope("tests")
FAST = Settings(retry_delay=0.000001)


class Scripted:
    """Says of a text "A verb B" just that; fails on texts that begin with "bad"."""

    name = "scripted"
    batch_size = 10

    def __init__(self) -> None:
        self.requests: list[ExtractionRequest] = []

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        self.requests += requests
        return [self._one(r.episode.text) for r in requests]

    def _one(self, text: str) -> Extraction | Exception:
        if text.startswith("bad"):
            return ExtractionFailed("can't read that")
        source, relation, target = text.split()
        return Extraction(edges=(ExtractedEdge(source, relation, target),))


@pytest.fixture
def backend() -> Iterator[GraphBackend]:
    store = open_backend("memory://")
    yield store
    store.close()


def store(backend: GraphBackend, *texts: str, **fields: Any) -> list[str]:
    episodes = [Episode(scope=SCOPE, text=text, **fields) for text in texts]
    return [i for i, _ in backend.add_episodes(SCOPE, episodes)]


def facts(backend: GraphBackend) -> list[str]:
    return [e.fact for e in backend.find_edges([SCOPE], EdgeQuery())]


def test_what_waits_is_extracted_and_settled(backend: GraphBackend) -> None:
    store(backend, "Maya knows Jonas")
    done = ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST).process(10)
    assert (done.claimed, done.failed) == (1, 0)
    assert facts(backend) == ["Maya knows Jonas"]
    assert backend.find_episodes([SCOPE], EpisodeQuery(state="pending")) == []


def test_one_that_fails_does_not_stop_the_others(backend: GraphBackend) -> None:
    store(backend, "bad", "Maya knows Jonas")
    done = ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST).process(10)
    assert (done.claimed, done.failed) == (2, 1)
    assert facts(backend) == ["Maya knows Jonas"]


def test_a_failed_episode_is_tried_three_times_and_keeps_its_error(backend: GraphBackend) -> None:
    store(backend, "bad")
    queue = ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST)
    assert [queue.process(10).claimed for _ in range(4)] == [1, 1, 1, 0]
    [failed] = backend.find_episodes([SCOPE], EpisodeQuery(state="failed"))
    assert failed.attempts == 3
    assert (failed.error or "").startswith("ExtractionFailed: can't read that [own since ")


def test_the_second_try_waits_for_its_time_and_the_third_twice_as_long(backend: GraphBackend) -> None:
    store(backend, "bad")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    queue = ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, Settings(retry_delay=60), clock=lambda: now)
    waits = (timedelta(seconds=60), timedelta(seconds=120))
    for wait in waits:
        assert queue.process(10).claimed == 1
        [waiting] = backend.find_episodes([SCOPE], EpisodeQuery(state="pending"))
        assert waiting.retry_at == now + wait
        now += wait - timedelta(seconds=1)
        assert queue.process(10).claimed == 0
        now += timedelta(seconds=1)
    assert queue.process(10).claimed == 1
    assert backend.find_episodes([SCOPE], EpisodeQuery(state="pending")) == []


def test_an_extractor_that_raises_is_a_failure_of_its_episodes_only(backend: GraphBackend) -> None:
    class Broken(Scripted):
        def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
            raise ZeroDivisionError("oh")

    store(backend, "Maya knows Jonas")
    assert ExtractionQueue(backend, Broken(), DEFAULT_ONTOLOGY, FAST).process(10).failed == 1


@pytest.mark.parametrize("error", [ValueError("oh"), SystemExit(1), CancelledError()])
def test_an_extractor_that_raises_for_one_text_reads_the_others(backend: GraphBackend, error: BaseException) -> None:
    class Fussy(Scripted):
        def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
            if any(request.episode.text == "odd" for request in requests):
                raise error
            return super().extract(requests)

    store(backend, "odd", "Maya knows Jonas")
    done = ExtractionQueue(backend, Fussy(), DEFAULT_ONTOLOGY, FAST).process(10)
    assert (done.claimed, done.failed) == (2, 1)
    assert facts(backend) == ["Maya knows Jonas"]


def test_the_extractor_sees_the_four_turns_before(backend: GraphBackend) -> None:
    store(backend, *(f"Maya knows N{i:02d}" for i in range(6)), session_id="s", speaker="Maya")
    store(backend, "Bot knows nothing", session_id="s", role="tool")
    store(backend, "Bot knows Maya", session_id="s", role="assistant")
    store(backend, "Maya knows last", session_id="s", speaker="Maya")
    store(backend, "Maya knows other", session_id="another", speaker="Maya")
    extractor = Scripted()
    ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST).process(20)
    by_text = {r.episode.text: [c.text for c in r.context] for r in extractor.requests}
    assert by_text["Maya knows last"] == [*(f"Maya knows N{i:02d}" for i in (3, 4, 5)), "Bot knows Maya"]
    assert by_text["Maya knows N00"] == by_text["Maya knows other"] == []


def test_the_only_other_speaker_of_a_session_is_the_addressee(backend: GraphBackend) -> None:
    store(backend, "Maya knows Jonas", session_id="s", speaker="Maya")
    store(backend, "Jonas knows Maya", session_id="s", speaker="Jonas")
    extractor = Scripted()
    ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST).process(20)
    assert {r.episode.speaker: r.addressee for r in extractor.requests} == {"Maya": "Jonas", "Jonas": "Maya"}


def test_among_three_speakers_nobody_is_the_addressee(backend: GraphBackend) -> None:
    for name in ("Maya", "Jonas", "Priya"):
        store(backend, f"{name} knows Ann", session_id="s", speaker=name)
    extractor = Scripted()
    ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST).process(20)
    assert {r.addressee for r in extractor.requests} == {None}


def test_a_message_without_a_speaker_is_said_by_the_user(backend: GraphBackend) -> None:
    store(backend, "User knows Jonas")
    extractor = Scripted()
    ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST).process(20)
    assert extractor.requests[0].episode.speaker == "User"


def test_a_claim_of_a_dead_process_is_given_back(backend: GraphBackend) -> None:
    store(backend, "Maya knows Jonas")
    now = datetime.now(UTC)
    gone = f"{_machine()}:{_unused_pid()}:x"
    backend.claim_episodes(gone, now=now, until=now + timedelta(hours=1), limit=5)
    assert ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST).process(5).claimed == 1


@pytest.mark.parametrize(
    "owner",
    [
        "elsewhere:1:x",
        f"{_machine()}:{os.getppid()}:x",
        f"{socket.gethostname()}:{os.getpid()}:x",
        f"{_machine()}0:{os.getpid()}:x",
    ],
    ids=["another machine", "a living process", "a machine with the same name", "a container with the same name"],
)
def test_a_claim_of_another_machine_or_a_living_process_stays(backend: GraphBackend, owner: str) -> None:
    store(backend, "Maya knows Jonas")
    now = datetime.now(UTC)
    backend.claim_episodes(owner, now=now, until=now + timedelta(hours=1), limit=5)
    assert ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST).process(5).claimed == 0


def test_a_claim_of_a_dead_process_is_given_back_by_the_clock_of_the_memory(backend: GraphBackend) -> None:
    store(backend, "Maya knows Jonas")
    now = datetime(2000, 1, 1, tzinfo=UTC)
    backend.claim_episodes(f"{_machine()}:{_unused_pid()}:x", now=now, until=now + timedelta(hours=1), limit=5)
    queue = ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST, clock=lambda: now)
    assert queue.process(5).claimed == 1


def test_no_signal_is_sent_to_a_process_on_windows(backend: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    store(backend, "Maya knows Jonas")
    now, sent = datetime.now(UTC), list[int]()
    backend.claim_episodes(f"{_machine()}:{_unused_pid()}:x", now=now, until=now + timedelta(hours=1), limit=5)

    def kill(pid: int, _: int) -> None:
        sent.append(pid)

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr("sys.platform", "win32")
    assert ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST).process(5).claimed == 0
    assert sent == []


@pytest.mark.parametrize(("order", "found"), [("scope", 0), ("session", 1)])
def test_a_scope_that_another_process_extracts_is_left_to_it(
    backend: GraphBackend, order: Literal["scope", "session"], found: int
) -> None:
    store(backend, "Maya knows Jonas", "Maya knows Tom")
    now, other = datetime.now(UTC), f"{_machine()}:{os.getppid()}:x"
    backend.claim_episodes(other, now=now, until=now + timedelta(hours=1), limit=1)
    queue = ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, Settings(extraction_order=order))
    assert queue.process(5).claimed == found
    backend.release_claims([other])
    assert queue.process(5).claimed == 2 - found


def _unused_pid() -> int:
    pid = 2**22 - 1
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return pid
        pid -= 1


class Parallel(Scripted):
    """As `Scripted`, for several calls at once; `before` is called with each text first."""

    concurrency = 2

    def __init__(self, before: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._before = before

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        self._before(requests[0].episode.text)
        return super().extract(requests)


DEAD = f"{_machine()}:{_unused_pid()}:x"


class Unavailable(Scripted):
    """Has no model, which uses up no attempt."""

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return [ExtractorUnavailable("no model") for _ in requests]


class Counted(Scripted):
    """As `Scripted`; counts the episodes of each call and the calls that run at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes, self.running, self.most = list[int](), 0, 0

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        self.sizes.append(len(requests))
        self.running += 1
        self.most = max(self.most, self.running)
        time.sleep(0.01)
        self.running -= 1
        return super().extract(requests)


class CountedInParallel(Counted):
    """As `Counted`, for several calls at once."""

    concurrency = 2


@pytest.mark.parametrize(("owner", "held"), [(DEAD, 3600), ("elsewhere:1:x", -1)], ids=["dead", "expired"])
def test_an_episode_that_was_extracted_when_its_process_ended_has_failed_once(
    backend: GraphBackend, owner: str, held: float
) -> None:
    store(backend, "bad")
    clock, attempts = [datetime.now(UTC)], list[tuple[int, str]]()
    while waiting := backend.find_episodes([SCOPE], EpisodeQuery(state="pending")):
        backend.claim_episodes(owner, now=clock[0], until=clock[0] + timedelta(seconds=held), limit=1)
        ExtractionQueue(backend, Unavailable(), DEFAULT_ONTOLOGY, FAST, clock=lambda: clock[0]).process(1)
        clock[0] += timedelta(hours=5)
        [episode] = backend.get_episodes([SCOPE], [waiting[0].id]).values()
        attempts.append((episode.attempts, (episode.error or "").partition(":")[0]))
    assert attempts == [(1, "ExtractorUnavailable"), (2, "ExtractorUnavailable"), (3, "ExtractionFailed")]


@pytest.mark.parametrize("extractor", [Counted(), CountedInParallel()], ids=["batches", "pool"])
def test_episodes_that_were_extracted_together_when_a_process_ended_are_extracted_one_by_one(
    backend: GraphBackend, extractor: Counted
) -> None:
    now = datetime.now(UTC)
    for scope in map(Scope, ("s0", "s1", "s2")):
        backend.add_episodes(scope, [Episode(scope=scope, text="Maya knows Jonas")])
    backend.claim_episodes(DEAD, now=now, until=now + timedelta(hours=1), limit=3)
    queue = ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST)
    while queue.process().claimed:
        pass
    assert (extractor.sizes, extractor.most) == ([1, 1, 1], 1)


def test_the_end_of_a_process_is_no_failure_of_older_episodes_that_it_did_not_extract(backend: GraphBackend) -> None:
    now, (older, lost) = datetime.now(UTC), map(Scope, ("older", "lost"))
    for scope in (older, lost):
        backend.add_episodes(scope, [Episode(scope=scope, text="Maya knows Jonas")])
    backend.claim_episodes(DEAD, now=now, until=now + timedelta(hours=1), limit=1, scopes=[lost])
    ExtractionQueue(backend, Unavailable(), DEFAULT_ONTOLOGY, FAST).process(scopes=[lost])
    [other], [blamed] = (backend.find_episodes([scope], EpisodeQuery()) for scope in (older, lost))
    assert (other.error, other.attempts, blamed.attempts) == (None, 0, 1)


def test_an_episode_that_is_due_for_a_retry_and_extracted_elsewhere_is_waited_for(backend: GraphBackend) -> None:
    now, queue = datetime.now(UTC), ExtractionQueue(backend, Counted(), DEFAULT_ONTOLOGY, FAST)
    store(backend, "Maya knows Jonas", "Maya knows Ana")
    backend.claim_episodes(DEAD, now=now, until=now + timedelta(hours=1), limit=2)
    queue.process(1)  # they are due again at once
    backend.claim_episodes("elsewhere:1:x", now=datetime.now(UTC), until=now + timedelta(hours=1), limit=2)
    assert queue.is_extracted_elsewhere(SCOPE)


def test_the_failed_round_of_a_process_that_goes_on_is_no_failure_of_its_episodes(backend: GraphBackend) -> None:
    class Failing(Scripted):
        def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
            raise KeyboardInterrupt

    [episode_id] = store(backend, "Maya knows Jonas")
    with pytest.raises(KeyboardInterrupt):
        ExtractionQueue(backend, Failing(), DEFAULT_ONTOLOGY, FAST).process(1)
    assert ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST).process(1).extracted == [episode_id]
    assert backend.get_episodes([SCOPE], [episode_id])[episode_id].attempts == 1


def test_a_pool_reads_again_what_it_read_while_something_was_forgotten(backend: GraphBackend) -> None:
    def forget_once(_: str) -> None:
        if not extractor.requests:
            backend.write(SCOPE, Changes(job_states=(JobState(FORGETTING, cursor="another"),)))

    store(backend, "Maya knows Jonas")
    extractor = Parallel(forget_once)
    done = ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST).process()
    assert (done.claimed, len(done.settled), len(extractor.requests)) == (1, 1, 2)
    assert facts(backend) == ["Maya knows Jonas"]


def test_a_store_that_goes_away_under_a_pool_is_an_error_and_its_episodes_are_taken_again(
    backend: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise BackendUnavailable("the store is away")

    store(backend, *(f"Maya knows N{n:02d}" for n in range(9)))
    queue = ExtractionQueue(backend, Parallel(), DEFAULT_ONTOLOGY, FAST)
    with monkeypatch.context() as patched:
        patched.setattr(backend, "atomic", away)
        with pytest.raises(BackendUnavailable, match="away"):
            queue.process()
    assert queue.process().claimed == 9
    assert len(facts(backend)) == 9


def test_a_pool_that_is_told_to_stop_gives_back_what_it_has_not_begun(backend: GraphBackend) -> None:
    store(backend, *(f"Maya knows N{n:02d}" for n in range(9)), session_id="s")
    extractor = Parallel()
    queue = ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST)
    done = queue.process(stopping=lambda: len(extractor.requests) > 0)
    assert done.claimed < 9
    assert backend.claim_owners(datetime.now(UTC)) == []
    assert queue.process().claimed == 9 - done.claimed


def test_a_pool_takes_no_more_than_its_limit(backend: GraphBackend) -> None:
    store(backend, *(f"Maya knows N{n:02d}" for n in range(9)))
    assert ExtractionQueue(backend, Parallel(), DEFAULT_ONTOLOGY, FAST).process(5).claimed == 5
    assert len(facts(backend)) == 5


class Ending(Parallel):
    """As `Parallel`; "Maya quits" ends her job, whatever it is."""

    def _one(self, text: str) -> Extraction | Exception:
        if not text.endswith("quits"):
            return super()._one(text)
        return Extraction(endings=(ExtractedEnding(text.split()[0], "works_at"),))


@pytest.mark.parametrize("first", ["Maya works_at Acme", "bad"])
def test_an_end_without_a_name_waits_for_the_turns_before_it_also_if_they_fail(
    backend: GraphBackend, first: str
) -> None:
    ends_read, others_written = threading.Event(), threading.Event()

    def before(text: str) -> None:
        if text == first:
            assert ends_read.wait(20)
            assert others_written.wait(20)
        elif text == "Maya quits":
            ends_read.set()

    times = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3))
    for text, at in zip((first, "Maya quits", "Jonas knows Tom"), times, strict=True):
        store(backend, text, occurred_at=at)
    settings = Settings(retry_delay=0.000001, extraction_order="session")
    queue = ExtractionQueue(backend, Ending(before), DEFAULT_ONTOLOGY, settings)
    queue.on_settled = lambda _: others_written.set()
    done = queue.process(3)
    assert (done.claimed, done.failed) == (3, first == "bad")
    ended = [e for e in backend.find_edges([SCOPE], EdgeQuery(versions="all")) if e.valid_to is not None]
    assert [e.valid_to for e in ended] == ([] if first == "bad" else [datetime(2026, 1, 2, tzinfo=UTC)])
    assert "Jonas knows Tom" in facts(backend)


class FailsFirst(Ending):
    """As `Ending`; fails for a text in the first attempts."""

    turns_per_call = 1

    def __init__(self, failures: dict[str, int]) -> None:
        super().__init__()
        self._left = failures

    def _one(self, text: str) -> Extraction | Exception:
        self._left[text] = self._left.get(text, 0) - 1
        return TimeoutError("no answer") if self._left[text] >= 0 else super()._one(text)


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize("turns", [1, 4])
def test_an_end_is_read_again_after_the_repeated_turn_that_tells_its_fact(
    backend: GraphBackend, failures: int, turns: int
) -> None:
    now = [datetime(2026, 1, 9, tzinfo=UTC)]
    for day, text in enumerate(("Maya works_at Acme", "Maya knows Tom", "Maya quits"), 1):
        store(backend, text, session_id="a", occurred_at=datetime(2026, 1, day, tzinfo=UTC))
    extractor = FailsFirst({"Maya works_at Acme": failures})
    extractor.turns_per_call = turns
    queue = ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, Settings(), clock=lambda: now[0])
    for _ in range(failures + 1):
        assert facts(backend) in ([], ["Maya knows Tom"])
        queue.process()
        now[0] += timedelta(minutes=1)
    [job] = backend.find_edges([SCOPE], EdgeQuery(relations=("works_at",), versions="all"))
    assert (job.valid_from, job.valid_to) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    assert backend.find_episodes([SCOPE], EpisodeQuery(state="pending")) == []


class Knowing(Parallel):
    """As `Parallel`; notes the facts that each request shows."""

    reads_known = True

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[str, list[str]] = {}

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        for request in requests:
            self.shown[request.episode.text] = sorted(fact.fact for fact in request.known.facts)
        return super().extract(requests)


def test_a_session_is_read_with_the_facts_of_those_before_it_in_its_scope(backend: GraphBackend) -> None:
    told = [f"Maya knows N{n:02d}" for n in range(5)]
    for n, text in enumerate(told):
        store(backend, text, session_id=f"session {n}", occurred_at=datetime(2026, 1, n + 1, tzinfo=UTC))
    extractor = Knowing()
    ExtractionQueue(backend, extractor, DEFAULT_ONTOLOGY, FAST).process()
    assert [extractor.shown[text] for text in told] == [told[:n] for n in range(5)]


def test_an_episode_that_failed_is_passed_by_the_others_of_its_scope(backend: GraphBackend) -> None:
    store(backend, "bad", session_id="a")
    store(backend, "Maya knows Jonas", session_id="a")
    store(backend, "Maya knows Tom", session_id="b")
    queue = ExtractionQueue(backend, Knowing(), DEFAULT_ONTOLOGY, Settings(retry_delay=3600))
    done = queue.process()
    assert (done.claimed, done.failed) == (3, 1)
    assert sorted(facts(backend)) == ["Maya knows Jonas", "Maya knows Tom"]


def test_a_failure_after_the_claim_has_expired_changes_nothing_that_another_process_extracted(
    backend: GraphBackend,
) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]

    class Slow(Scripted):
        def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
            now[0] += timedelta(hours=1)
            ExtractionQueue(backend, Scripted(), DEFAULT_ONTOLOGY, FAST, clock=lambda: now[0]).process(10)
            return [ExtractionFailed("timeout") for _ in requests]

    [episode_id] = store(backend, "Maya knows Jonas", recorded_at=now[0], occurred_at=now[0])
    ExtractionQueue(backend, Slow(), DEFAULT_ONTOLOGY, FAST, clock=lambda: now[0]).process(10)
    episode = backend.get_episodes([SCOPE], [episode_id])[episode_id]
    assert episode.processed_at is not None
    assert episode.error is None
