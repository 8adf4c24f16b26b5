"""Durable extraction queue: an episode without `processed_at` is pending.

An episode is acknowledged once the store has it. Workers claim pending episodes, extract them and write the results.
A crash loses nothing, since the next process releases the claims of a terminated one.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from graphmem.errors import Conflict, ExtractionFailed, GraphMemError, InvalidInput
from graphmem.ingest.claims import Claims
from graphmem.ingest.contradictions import ContradictionCheck
from graphmem.ingest.entity_matching import SimilarEntities
from graphmem.ingest.extraction_calls import ExtractionCalls
from graphmem.ingest.failures import (
    Failure,
    Pause,
    RetryRule,
    after_delayed,
    attempts_after,
    delayed_before,
    pause_message,
    requeue,
    requeued,
    without_delay,
)
from graphmem.ingest.interpretation import InterpretedEpisode
from graphmem.ingest.namesakes import tell_apart
from graphmem.ingest.note_links import NoteLinks
from graphmem.ingest.pool import ExtractionPool
from graphmem.ingest.write import MergeEntities, Writer, Written
from graphmem.llm.providers import kind_of
from graphmem.models import (
    Changes,
    Episode,
    EpisodeQuery,
    EpisodeState,
    ProcessingResult,
    Scope,
    utc_now,
)
from graphmem.ontology import Ontology
from graphmem.protocols import (
    Extraction,
    Extractor,
    GraphBackend,
    Redactor,
    concurrency_of,
    turns_per_call_of,
)
from graphmem.settings import Settings
from graphmem.telemetry import count, in_span

_log = logging.getLogger(__name__)

# Errors of a write that come from the store or the machine, not from the content of an episode.
_NOT_OF_AN_EPISODE = (GraphMemError, OSError, MemoryError)

_EXAMINED = 100  # pending episodes that are looked at to see whether others extract them
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_LOST = "the process ended, or took too long, while it extracted this episode"
_MAX_ATTEMPTS = 3  # of extractions that are repeated because an erasure came between


@dataclass(slots=True)
class Processed:
    """Result of a queue round.

    `extracted` and `failing` hold the ids of the episodes, and `settled` those of episodes without an automatic retry.
    """

    claimed: int = 0
    scopes: Sequence[Scope] = ()
    extracted: list[str] = field(default_factory=list[str])
    failing: list[str] = field(default_factory=list[str])
    settled: list[str] = field(default_factory=list[str])
    written: Written = field(default_factory=Written)

    @property
    def failed(self) -> int:
        """Number of attempts that failed."""
        return len(self.failing)

    def add(self, other: Processed) -> None:
        """Add the result of another round."""
        self.claimed += other.claimed
        self.scopes = tuple(dict.fromkeys((*self.scopes, *other.scopes)))
        self.extracted += other.extracted
        self.failing += other.failing
        self.settled += other.settled
        self.written.add(other.written)


OnStep = Callable[[Processed], None]


class ExtractionQueue:
    """Queue that extracts pending episodes and writes the results.

    An extractor with a `concurrency` or `turns_per_call` above 1 (see `Extractor`) gets one episode per call, or
    successive turns of a session or passages of a document, from any scope; any other gets batches. The episodes of one
    scope, or of one session with the setting `extraction_order`, are extracted in order.

    Parameters
    ----------
    backend
        The store, which holds the queue.
    extractor
        Extracts entities and facts from the episodes.
    ontology
        Types and relations.
    settings
        Attempts, delays, size of the context.
    contradictions
        The optional check of new facts against known ones.
    redactor
        The optional redaction of facts and summaries.
    similar, links, merge
        As for `Writer`.
    clock
        Returns the present, by which episodes are due, claimed and expired.
    """

    def __init__(
        self,
        backend: GraphBackend,
        extractor: Extractor,
        ontology: Ontology,
        settings: Settings,
        contradictions: ContradictionCheck | None = None,
        redactor: Redactor | None = None,
        similar: SimilarEntities | None = None,
        links: NoteLinks | None = None,
        *,
        merge: MergeEntities | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._backend = backend
        self._extractor = extractor
        self._ontology = ontology
        self._settings = settings
        self._calls = ExtractionCalls(backend, extractor, ontology, settings.context_turns, clock)
        self._contradictions = contradictions
        self._writer = Writer(backend, ontology, redactor, similar, links, merge=merge)
        self._claims = Claims(
            backend,
            settings.claim_seconds,
            by_process=settings.extraction_order == "scope",
            on_lost=self._record_lost,
            clock=clock,
        )
        self._clock = clock
        self._rule = RetryRule(settings)
        self._rule_lock = threading.Lock()
        self._delayed: set[Scope] = set()  # scopes with an episode delayed by a model failure
        self._reserved: Counter[Scope] = Counter()
        concurrency, group = concurrency_of(extractor), turns_per_call_of(extractor)
        self._pool: ExtractionPool[Processed] | None = None
        if concurrency > 1 or group > 1:
            self._pool = ExtractionPool(concurrency, group, settings.extraction_order)
        self.on_settled: Callable[[Sequence[str]], None] = _ignore
        self.has_answered = False

    @property
    def pause(self) -> Pause | None:
        """Cause and end of the current pause; None while extraction runs."""
        return self._rule.pause

    def seconds_to_wait(self) -> float:
        """Return the remaining seconds of the pause, 0 without one."""
        pause = self._rule.pause
        return 0.0 if pause is None else max(0.0, (pause.until - self._clock()).total_seconds())

    @contextmanager
    def reserved(self, scope: Scope) -> Generator[None]:
        """Leave the episodes of a scope to the caller: rounds of the whole store pass them over meanwhile."""
        with self._rule_lock:
            self._reserved[scope] += 1
        try:
            yield
        finally:
            with self._rule_lock:
                self._reserved[scope] -= 1
                self._reserved += Counter()  # drops zeros
            self.notify([scope])

    def is_extracted_elsewhere(self, scope: Scope) -> bool:
        """Return whether episodes of a scope are pending that wait neither for a retry nor for a pause to end."""
        if self._rule.waits(self._clock()):
            return False
        pending = self._backend.find_episodes([scope], EpisodeQuery(state="pending"), limit=_EXAMINED)
        now = self._clock()
        return any(episode.retry_at is None or episode.retry_at <= now for episode in pending)

    def notify(self, scopes: Iterable[Scope]) -> None:
        """Schedule scopes in which episodes were stored."""
        self._claims.schedule(scopes)
        if self._pool is not None:
            self._pool.notify()

    def process(
        self,
        limit: int | None = None,
        scopes: Sequence[Scope] | None = None,
        *,
        on_step: OnStep | None = None,
        stopping: Callable[[], bool] = lambda: False,
        background: bool = False,
    ) -> Processed:
        """Claim pending episodes, extract them and write the results.

        `Claims.claim` tells which episodes are claimed, also after a process ended while it extracted some. An episode
        that can't be extracted or written stays in the queue with its error, without an exception. During a pause
        nothing is claimed; after it, one episode is tried first.

        Parameters
        ----------
        limit
            Maximum number of episodes; None means all pending ones. For an extractor with batches, at most one batch.
        scopes
            Restricts the claim to these scopes; None covers the whole store, scope by scope.
        on_step
            Called with the result since the last call, on this thread.
        stopping
            Called between steps; returns True to stop claiming.
        background
            Pass over the scopes that are `reserved`.

        Raises
        ------
        BackendUnavailable
            If the store is unreachable; the claimed episodes are claimed again once it is back.
        """
        with self._claims.round() as owner:
            if self._pool is not None:
                return self._pooled(self._pool, owner, limit, scopes, on_step, stopping, background)
            done = self._batch(owner, limit, scopes, background)
            if on_step is not None and done.claimed:
                on_step(done)
            return done

    def _pooled(
        self,
        pool: ExtractionPool[Processed],
        owner: str,
        limit: int | None,
        scopes: Sequence[Scope] | None,
        on_step: OnStep | None,
        stopping: Callable[[], bool],
        background: bool,
    ) -> Processed:
        done = Processed()

        def collect(step: Processed) -> None:
            done.add(step)
            if on_step is not None:
                on_step(step)

        abandoned = pool.run(
            lambda most, full: self._claim(owner, most, scopes, [*full, *self._passed_over(background)]),
            self._group,
            limit if self._rule.pause is None else 1,
            on_result=collect,
            stopping=lambda: stopping() or self._rule.waits(self._clock()),
        )
        if abandoned:
            self._backend.release_claims([owner])
        return done

    def _batch(self, owner: str, limit: int | None, scopes: Sequence[Scope] | None, background: bool) -> Processed:
        batch, full = self._extractor.batch_size, self._passed_over(background)
        episodes = self._claim(owner, batch if limit is None else min(limit, batch), scopes, full)
        return self._process_batch(owner, episodes) if episodes else Processed()

    def _passed_over(self, background: bool) -> Sequence[Scope]:
        with self._rule_lock:
            return list(self._reserved) if background else ()

    @in_span("graphmem.process")
    def _process_batch(self, owner: str, episodes: Sequence[Episode]) -> Processed:
        done = Processed(claimed=len(episodes))
        by_scope: defaultdict[Scope, list[Episode]] = defaultdict(list)
        for episode in episodes:
            by_scope[episode.scope].append(episode)
        done.scopes = tuple(by_scope)
        since = {scope: self._backend.erasure_token(scope) for scope in by_scope}
        requests = [request for scope, group in by_scope.items() for request in self._calls.requests(scope, group)]
        results = iter(self._calls.results(requests) if requests else ())
        erased = False
        for scope, group in by_scope.items():
            shown = self._calls.shown([request for request in requests if request.episode.scope == scope])
            erased |= bool(self._store(scope, group, [next(results) for _ in group], done, since[scope], shown))
        if erased:  # unwritten episodes are extracted again, without the erased data
            self._backend.release_claims([owner])
        self.on_settled(done.settled)
        return done

    @in_span("graphmem.process")
    def _group(self, episodes: Sequence[Episode]) -> Processed:
        """Extract and write episodes of a session; repeat it after an erasure, as the result may quote erased text."""
        scope, done = episodes[0].scope, Processed(scopes=(episodes[0].scope,))
        open_ids = tuple(episode.id for episode in episodes)
        for _ in range(_MAX_ATTEMPTS):
            since = self._backend.erasure_token(scope)
            # they may have been erased since the claim
            query = EpisodeQuery(ids=open_ids, state="pending")
            waiting = self._backend.find_episodes([scope], query, limit=len(open_ids))
            if not waiting:
                break
            done.claimed = max(done.claimed, len(waiting))
            requests = self._calls.requests(scope, waiting)
            results = self._calls.results(requests)
            open_ids = self._store_in_order(waiting, results, done, since, self._calls.shown(requests))
            if not open_ids:
                break
        self._claims.end_trial()
        self.on_settled(done.settled)
        return done

    def _store_in_order(
        self,
        episodes: Sequence[Episode],
        results: Sequence[Extraction | Exception],
        done: Processed,
        since: str,
        shown: Collection[str] | None,
    ) -> tuple[str, ...]:
        """Write the results of a group; return the ids of those that an erasure has outdated.

        A result that ends a fact without its id waits for the episodes before it, which may tell that fact.
        """
        assert self._pool is not None
        scope, result_of = episodes[0].scope, {e.id: r for e, r in zip(episodes, results, strict=True)}
        late = {i for i, result in result_of.items() if isinstance(result, Extraction) and _ends_by_name(result)}
        outdated: list[str] = []
        for part in self._pool.in_order(episodes, late):
            outdated += self._store(scope, part, [result_of[e.id] for e in part], done, since, shown)
        return tuple(outdated)

    def close(self) -> None:
        """Release the claims of this queue."""
        self._claims.release_all()

    def _claim(self, owner: str, limit: int, scopes: Sequence[Scope] | None, full: Collection[Scope]) -> list[Episode]:
        """Claim due episodes, one if it is to end a pause; see `Claims.claim`."""
        if self._rule.waits(self._clock()):
            return []
        return self._claims.claim(owner, limit if self._rule.pause is None else 1, scopes, full)

    def _record_lost(self, episodes: Sequence[Episode]) -> list[bool]:
        """Record that processes ended while they extracted episodes; return for each whether it is tried again.

        If it was only one, that counts as a failed attempt. Of several, nobody knows which one was the cause.
        """
        now, lost_of = self._clock(), ExtractionFailed(_LOST)
        if len(episodes) == 1:
            results = self._failed([(each, lost_of) for each in episodes])
        else:
            error = str(Failure.of(lost_of, "episode", now))
            first = (ProcessingResult(e.id, error=e.error or error, attempts=max(1, e.attempts)) for e in episodes)
            results = [replace(result, retry_at=now) for result in first]
        for episode, result in zip(episodes, results, strict=True):
            due = replace(result, retry_at=result.retry_at and now)
            if settled := self._backend.atomic(partial(self._write_failures, episode.scope, [due])):
                self.on_settled(settled)
        return [result.retry_at is not None for result in results]

    def retry_now(self, scopes: Iterable[Scope]) -> int:
        """Make episodes delayed by an unavailable or misconfigured model due now; return their number."""
        with self._rule_lock:
            self._rule.probe_now()
        now = self._clock()
        return sum(self._requeue(scope, "pending", lambda episode: without_delay(episode, now)) for scope in scopes)

    def retry_failed(self, scope: Scope) -> int:
        """Requeue the dead letters of a scope with all attempts left; return their number.

        They may have been extracted before; then the next extraction replaces the results.
        """
        return self._requeue(scope, "failed", lambda episode: ProcessingResult(episode.id, attempts=1))

    def requeue_extracted(self, scope: Scope) -> int:
        """Requeue extracted episodes, so that the next extraction replaces their results; return their number.

        Ready-made facts and skipped episodes are not requeued.
        """
        return self._requeue(scope, "processed", requeued)

    def _requeue(self, scope: Scope, state: EpisodeState, result: Callable[[Episode], ProcessingResult | None]) -> int:
        if done := requeue(self._backend, scope, state, result):
            self.notify([scope])
        return done

    def _store(
        self,
        scope: Scope,
        episodes: Sequence[Episode],
        results: Sequence[Extraction | Exception],
        done: Processed,
        since: str,
        shown: Collection[str] | None,
    ) -> list[str]:
        """Write the extractions of a scope and the errors of failed ones; `shown` as for `ContradictionCheck`.

        Returns
        -------
        list
            Ids of the episodes that weren't written because of an erasure since their prompt was built.
        """
        if not self._calls.reads_known:
            results = tell_apart(self._backend, scope, episodes, results)
        readings: list[InterpretedEpisode] = []
        failures: list[tuple[Episode, Exception]] = []
        postponed: list[Episode] = []
        for episode, result in zip(episodes, results, strict=True):
            read = result if isinstance(result, Exception) else self._calls.read(episode, result, done.written.dropped)
            if isinstance(read, Exception):
                failures.append((episode, read))
            elif isinstance(result, Extraction) and _ends_by_name(result) and self._is_early(episode, failures):
                postponed.append(episode)
            else:
                readings.append(read)
        if readings or postponed or any(kind_of(error) == "episode" for _, error in failures):
            self._answered()
        if self._contradictions is not None:
            readings = self._contradictions.check(self._backend, scope, readings, shown)
        outdated: list[str] = []
        failures += self._write(scope, readings, done.written, since, outdated)
        if failures:
            done.failing += [episode.id for episode, _ in failures]
            attempts = self._failed(failures)
            done.settled += self._backend.atomic(lambda: self._write_failures(scope, attempts))
        if postponed:
            now = self._clock()
            self._write_failures(scope, [after_delayed(self._backend, episode, now) for episode in postponed])
        unsettled = {*outdated, *(episode.id for episode, _ in failures)}
        settled = [r.episode.id for r in readings if r.episode.id not in unsettled]
        done.extracted += settled
        done.settled += settled
        if settled:
            count("graph_extractions_total", len(settled), status="success")
        return outdated

    def _is_early(self, episode: Episode, failures: Sequence[tuple[Episode, Exception]]) -> bool:
        """Return whether an earlier turn of the session, which may tell what this one ends, is extracted again."""
        sessions = {earlier.session_id for earlier, _ in failures} - {None}
        return episode.session_id in sessions or bool(delayed_before(self._backend, episode))

    def _answered(self) -> None:
        """Record a reply of the model; if that ends a pause, make the delayed episodes due."""
        with self._rule_lock:
            ended = self._rule.succeeded(self._clock())
            self.has_answered = True
            delayed, self._delayed = (self._delayed, set()) if ended else ((), self._delayed)
        if ended is not None:
            _log.warning("extraction resumed; it had been paused since %s", ended.since.isoformat(timespec="seconds"))
            self.retry_now(delayed)

    def _failed(self, failures: Sequence[tuple[Episode, Exception]]) -> list[ProcessingResult]:
        """Return the results of failed attempts; begin and log a pause where they require one."""
        now, results = self._clock(), list[ProcessingResult]()
        for episode, error in failures:
            with self._rule_lock:
                failure, begins = self._rule.judge(episode, error, kind_of(error), now)
                retry_at, pause = self._rule.next_try(episode, failure, now), self._rule.pause
            attempts = attempts_after(episode, failure)
            results.append(ProcessingResult(episode.id, error=str(failure), attempts=attempts, retry_at=retry_at))
            status = "failed" if retry_at is None else "retry" if failure.kind == "episode" else "unavailable"
            count("graph_extractions_total", status=status)
            if failure.kind != "episode":
                with self._rule_lock:
                    self._delayed.add(episode.scope)
                _log.debug("episode %s not extracted: %s", episode.id, failure)
            else:
                _log.warning("episode %s not extracted (attempt %d): %s", episode.id, attempts, failure.reason)
            if begins and pause is not None:
                level = logging.ERROR if pause.kind == "misconfigured" else logging.WARNING
                _log.log(level, "%s", pause_message(pause, self._extractor.name))
        return results

    def _write_failures(self, scope: Scope, results: Sequence[ProcessingResult]) -> list[str]:
        """Write the errors of failed episodes; return the ids of new dead letters.

        Episodes that were erased, or that another process has extracted meanwhile, are left out.
        """
        stored = self._backend.get_episodes([scope], [result.episode_id for result in results])
        waiting = {i for i, episode in stored.items() if episode.processed_at is None}
        failed = tuple(result for result in results if result.episode_id in waiting)
        self._backend.write(scope, Changes(results=failed))
        return [result.episode_id for result in failed if result.retry_at is None]

    def _write(
        self,
        scope: Scope,
        readings: Sequence[InterpretedEpisode],
        written: Written,
        since: str,
        outdated: list[str],
    ) -> list[tuple[Episode, Exception]]:
        """Write all in one transaction; if one can't be written, write each in its own.

        The counts are added to `written`, and ids of episodes that an erasure kept from being written to `outdated`.
        """
        if not readings:
            return []
        try:
            done = self._writer.write(scope, readings, since=since)
            written.add(done)
            if done.is_outdated:
                outdated += [reading.episode.id for reading in readings]
        except Exception as error:
            if isinstance(error, _NOT_OF_AN_EPISODE) and not isinstance(error, (InvalidInput, Conflict)):
                raise
            if len(readings) == 1:
                return [(readings[0].episode, error)]
            each = ([reading] for reading in readings)
            return [failure for one in each for failure in self._write(scope, one, written, since, outdated)]
        return []


def _ends_by_name(extraction: Extraction) -> bool:
    """Return whether an extraction ends facts that are lost if they aren't stored yet, such as "I was laid off"."""
    return any(ending.fact_id is None for ending in extraction.endings)


def _ignore(_: Sequence[str]) -> None:
    """Do nothing."""
