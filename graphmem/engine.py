"""Shared engine of the memories of one open store: store, extractor, search and background work."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from contextvars import copy_context
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self, Unpack

from graphmem.background import BackgroundJob, ScopedJob, ThreadPools, Watchers
from graphmem.communities.service import Communities
from graphmem.diagnostics import Diagnostics, Gauges
from graphmem.errors import (
    BackendUnavailable,
    EmbeddingFailed,
    GraphMemError,
    IndexUnavailable,
    InvalidInput,
    StoreReadOnly,
)
from graphmem.factory import Given, Parts, choose_inference_question, open_parts
from graphmem.index.copies import MB
from graphmem.index.encoder import EpisodeEncoder
from graphmem.ingest.bulk import Loader, OnProgress
from graphmem.ingest.queue import ExtractionQueue, Processed
from graphmem.ingest.turn_writer import TurnWriter
from graphmem.inputs import FilterLike, ItemLike, TripleLike, to_filter, to_scopes
from graphmem.llm.providers import SECONDS
from graphmem.models import Episode, EpisodeFilter, EpisodeQuery, Scope
from graphmem.protocols import has_expired
from graphmem.recall.entity_embeddings import StoredEntityEmbeddings
from graphmem.recall.options import SpreadingOptions
from graphmem.recall.service import RecallService
from graphmem.recall.traces import RecallRecorder
from graphmem.results import LoadReport
from graphmem.search.rerank import Reranker
from graphmem.search.service import SearchService
from graphmem.settings import Settings
from graphmem.telemetry import Attributes, add_prices, in_span, register_gauges, span
from graphmem.text.english import english_pipeline
from graphmem.text.names import phrase_finder
from graphmem.trust import is_suspicious
from graphmem.upkeep.eviction import upkeep_jobs
from graphmem.upkeep.forget import Forgotten, clean_up, erase_episodes, expire, forget_missing, scopes_with_expired
from graphmem.upkeep.schedule import UpkeepSchedule
from graphmem.upkeep.scrub import Clean, DeferredScrub

if TYPE_CHECKING:
    from graphmem.llm.chat import ListQuestion

_log = logging.getLogger(__name__)

_INDEXED_AT_ONCE = 64  # rows per indexing step
_EXPIRY_PAUSE = 60.0  # minimum seconds between two erasures of expired episodes
_EXPIRY_SHARE = 50  # a pause is at least this many times as long as the erasure before it, which may rewrite a file
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # polling interval of an empty queue in seconds
_FLUSH_PAUSES = 0.002, 0.25  # first and longest polling interval of a flush in seconds
_AFLUSH_PAUSES = 0.25, 5.0  # the same for async code, which is notified of what its own process extracts


class Engine:
    """An open store with the services that work on it; created by `open`.

    With `background`, each kind of background work has a thread of its own:

    - Extraction is woken by `wake`, which whoever stores episodes calls. It also polls, since retries, and what other
      processes leave, turn up without a wake.
    - Indexing, and the assignment of entities to communities, are woken by `wake`, and by extraction for the scopes of
      each step.
    - Upkeep is woken once enough episodes of a scope were processed, by extraction or by a caller; and by
      `schedule_upkeep` at the start, after an import, and every minute of a worker.
    - Expiry is woken at the start, and repeats after a minute or more.
    - Recording of recalls is also done without `background`; it is woken by a recall.
    """

    def __init__(self, parts: Parts, *, background: bool) -> None:
        backend, settings, ontology, clock = parts.backend, parts.settings, parts.ontology, parts.clock
        embedder, similar = parts.embedder, parts.similar
        self._parts = parts
        self.backend, self.settings, self.ontology, self.clock = backend, settings, ontology, clock
        self.redactor, self.redaction = parts.redactor, parts.redaction
        self._queue = queue = parts.create_queue()
        ranker = parts.cross_encoder
        reranker = None if ranker is None else Reranker(ranker, settings.embedding_timeout)
        encoder, spreading = EpisodeEncoder(embedder, phrase_finder()), SpreadingOptions.of(settings)
        self.recorder = RecallRecorder(backend)
        model = None if embedder is None else embedder.model_name
        self.diagnostics = Diagnostics(
            backend, settings, queue, parts.extractor, parts.vectors, model, self.background_errors
        )
        embeddings = None
        if embedder is not None and similar is not None:
            wait = settings.index_wait
            embeddings = StoredEntityEmbeddings(backend, embedder, similar.vectors, similar.index_waiting, wait)
        self.search = SearchService(
            backend,
            encoder,
            spreading,
            parts.vectors,
            reranker,
            redact=self.redacted,
            wait=settings.index_wait,
            memory=settings.index_memory_mb * MB,
            clock=clock,
            show_text=settings.telemetry_text,
        )
        self.recall = RecallService(
            backend,
            ontology,
            self.recorder,
            embeddings,
            self.redacted,
            self.search.evidence,
            clock,
            show_text=settings.telemetry_text,
        )
        self.communities = Communities(
            backend, settings, embedder=embedder, redactor=parts.redactor, llm=parts.llm, serves=self._serves
        )
        self._extract_batch = 1 if parts.extractor is None else parts.extractor.batch_size
        self.loader = Loader(
            backend,
            ontology,
            queue,
            redactor=parts.redactor,
            redaction=parts.redaction,
            detector=is_suspicious if settings.detect_injection else None,
            batch_size=settings.batch_size,
            similar=similar,
            links=parts.links,
            clock=clock,
        )
        self._extraction = BackgroundJob("graphmem-extract", self._extract) if queue and background else None
        self._indexing = ScopedJob("graphmem-index", self._index_some, serves=self._serves) if background else None
        jobs = [*upkeep_jobs(backend, settings), *self.communities.jobs]
        self._assignment = self.communities.assignment if background else None
        self._schedule = UpkeepSchedule(backend, jobs, settings.community_refresh_interval, self._serves)
        self._upkeep = BackgroundJob("graphmem-upkeep", self._run_upkeep) if background else None
        self._expiry = BackgroundJob("graphmem-expiry", self._expire_some) if background else None
        self._scrub = DeferredScrub(backend)
        self.pools = ThreadPools()
        self.turns = TurnWriter(backend, partial(self.pools.submit, "turns"), lambda scopes: self.wake(*scopes))
        configured = settings.background_scopes
        self.served: Sequence[Scope] | None = None if configured is None else to_scopes(configured)
        """Scopes that the background work extracts, indexes and maintains; None means all."""
        self._gauges = Gauges(backend, self.scopes_served)
        if background:
            register_gauges(self._gauges.read)
        add_prices(settings.llm_prices)
        self._pause = _FIRST_PAUSE
        self._resumed = False
        self._watchers = Watchers()
        if queue is not None:
            queue.on_settled = self._watchers.complete
        self._closed = False
        self._close_lock = threading.Lock()

    @classmethod
    def open(cls, url: str, settings: Settings, *, background: bool, **given: Unpack[Given]) -> Self:
        """Open the store and create the parts; with `background`, resume extraction, indexing and upkeep."""
        parts = open_parts(url, settings, **given)
        try:
            engine = cls(parts, background=background)
        except BaseException:
            parts.close()
            raise
        try:
            if background:
                engine.wake(*(scopes := engine.scopes_served()))
                engine.schedule_upkeep(*scopes)
                engine.schedule_expiry()
        except BaseException:
            engine.close(0)
            raise
        return engine

    def scopes_served(self) -> Sequence[Scope]:
        """Return the scopes of the background work."""
        return self.backend.scopes() if self.served is None else self.served

    def _serves(self, scope: Scope) -> bool:
        return self.served is None or scope in self.served

    def redacted(self, text: str) -> str:
        """Return a text with personal data replaced, if redaction of all data is on."""
        return text if self.redaction is None else self.redaction.text(text)

    def stored_text(self, episode: Episode) -> Attributes:
        """Return the attributes of the span of an episode that is stored; none unless the setting shows texts."""
        if not self.settings.telemetry_text:
            return {}
        return {"graphmem.text": episode.text, "graphmem.scope": str(episode.scope)}

    def stored_name(self, text: str) -> str:
        """Return the stored form of a name or id given by a caller; redaction may have replaced it."""
        return text if self.redaction is None else self.redaction.stored_name(text)

    def stored_filter(self, wanted: FilterLike | None) -> EpisodeFilter | None:
        """Return the filter of stored episodes that a caller gives; None for one without conditions."""
        found = to_filter(wanted)
        return found if found is None or self.redaction is None else self.redaction.stored_filter(found)

    def has_expired(self, scopes: Sequence[Scope]) -> bool:
        """Whether an episode of the scopes has expired and isn't erased yet."""
        return has_expired(self.backend, scopes, self.clock())

    @cached_property
    def inference_question(self) -> ListQuestion:
        """Return the model that infers facts, created on first use.

        Raises
        ------
        InvalidInput
            If there is no LLM.
        """
        return choose_inference_question(self._parts.llm, self.settings)

    def load_models(self) -> None:
        """Load the local models: the embedding model, and spaCy if it extracts.

        Raises
        ------
        EmbeddingFailed
            If the embedding model fails.
        """
        if self._parts.embedder is not None:
            self._parts.embedder.load()
        if self._parts.extractor is not None and self._parts.extractor.name == "spacy":
            english_pipeline()

    @property
    def has_background(self) -> bool:
        """Whether extraction, indexing and upkeep run in the background."""
        return self._upkeep is not None

    @property
    def can_extract(self) -> bool:
        """Whether there is an extractor."""
        return self._queue is not None

    @property
    def queue(self) -> ExtractionQueue:
        """The queue.

        Raises
        ------
        InvalidInput
            If there is no extractor.
        """
        if self._queue is None:
            raise InvalidInput("extractor none: episodes can't be extracted; set one, for example extractor='spacy'")
        return self._queue

    def flush(self, scope: Scope, timeout: float | None, episode_id: str | None) -> int:
        """Wait until a scope has no waiting episode, or not this one, and help with the extraction.

        With a `timeout` it helps on a thread of the memory; a call of the model that runs then finishes there.

        Returns
        -------
        int
            Episodes still waiting, after `timeout` seconds or if they can't be extracted; of one or more, 1.
        """
        pause, longest = _FLUSH_PAUSES
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while waiting := self._waiting(scope, episode_id):
            left = _left(deadline)
            if self._is_over(left):
                return waiting
            if not self._extract_within(left, scope):
                # others process them, or they wait for a retry
                time.sleep(max(0.0, min(pause, _left(deadline))))
                pause = min(pause * 2, longest)
        return 0

    def _extract_within(self, seconds: float, scope: Scope) -> int:
        """Extract some waiting episodes; return their number, or 0 if it takes longer than the given time."""
        extract = partial(self.extract_waiting, scope, self._extract_batch)
        if seconds == math.inf:
            return extract().extracted
        running = self.pools.submit("jobs", partial(copy_context().run, extract))
        if not wait_for([running], seconds).done:
            running.cancel()  # unless it has begun
            return 0
        return running.result().extracted

    async def aflush(self, scope: Scope, timeout: float | None, episode_id: str | None) -> int:
        """`flush` for async code: it holds no thread while it waits.

        Without background extraction, it extracts on a thread of the memory.
        """
        pause, longest = _AFLUSH_PAUSES
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            with self._watchers.watching(episode_id) as settled:
                waiting = await self.pools.run("reads", partial(self._waiting, scope, episode_id))
                left = _left(deadline)
                if not waiting or self._is_over(left):
                    return waiting
                if self._extraction is None or not self._serves(scope):
                    extract = asyncio.ensure_future(
                        self.pools.run("jobs", partial(self.extract_waiting, scope, self._extract_batch))
                    )
                    try:
                        done, _ = await asyncio.wait([extract], timeout=None if left == math.inf else left)
                    finally:
                        extract.cancel()  # unless it has begun on its thread
                    if not done or extract.result().extracted:
                        continue
                await asyncio.wait([asyncio.wrap_future(settled)], timeout=min(pause, left))
                pause = min(pause * 2, longest)

    def _is_over(self, left: float) -> bool:
        """Return whether a flush ends: without time left or an extractor, or before its configuration is repaired."""
        pause = None if self._queue is None else self._queue.pause
        return left <= 0 or self._queue is None or (pause is not None and pause.kind == "misconfigured")

    def _waiting(self, scope: Scope, episode_id: str | None) -> int:
        query = EpisodeQuery(ids=None if episode_id is None else (episode_id,), state="pending")
        return len(self.backend.find_episodes([scope], query, limit=1))

    def ingest(
        self,
        scope: Scope,
        items: Iterable[ItemLike],
        *,
        skip_invalid: bool,
        on_progress: OnProgress | None,
        update: bool = False,
    ) -> LoadReport:
        """Store, extract and index items; with `update` in place of known ones from which they differ."""
        with span("graphmem.ingest") as one:
            if update:
                self.recorder.write()
            try:
                report = self.loader.ingest(
                    scope,
                    items,
                    skip_invalid=skip_invalid,
                    on_progress=on_progress,
                    index=self.index,
                    erase=self._erase if update else None,
                )
            finally:
                if update and self.scrub_later is None:
                    self._scrub.run()
            one.set({"graphmem.episodes": report.stored, "graphmem.facts": report.edges})
        return self._processed(scope, report, report.extracted)

    def _erase(self, scope: Scope, going: Mapping[str, Episode]) -> Callable[[], None]:
        """Erase episodes in a transaction of the caller; return what drops the copies of their data after it."""
        erased = erase_episodes(self.backend, scope, self.ontology, going)

        def after() -> None:
            clean_up(self.search.index, scope, [erased], self._scrub.add)
            self._drop_copies(scope)

        return after

    def forget_missing(
        self, scope: Scope, is_missing: Callable[[Episode], bool], query: EpisodeQuery, *, dry_run: bool
    ) -> Forgotten:
        """Erase the episodes of a query that a condition selects."""
        index, clean = self.search.index, self.scrub_later
        with self.erasing(scope, dry_run=dry_run):
            return forget_missing(
                self.backend, index, scope, self.ontology, is_missing, query, dry_run=dry_run, clean=clean
            )

    def add_facts(
        self,
        scope: Scope,
        triples: Iterable[TripleLike],
        occurred_at: datetime | None,
        *,
        skip_invalid: bool,
        on_progress: OnProgress | None,
    ) -> LoadReport:
        """Store ready-made facts."""
        with span("graphmem.add_facts") as one:
            report = self.loader.add_facts(
                scope, triples, occurred_at=occurred_at, skip_invalid=skip_invalid, on_progress=on_progress
            )
            one.set({"graphmem.facts": report.edges})
        return self._processed(scope, report, report.stored)

    def extract_waiting(
        self, scope: Scope, limit: int | None = None, on_progress: OnProgress | None = None
    ) -> LoadReport:
        """Extract waiting episodes of a scope, at most `limit`."""
        report = self.loader.extract_waiting(scope, limit, on_progress)
        return self._processed(scope, report, report.extracted) if report.extracted else report

    def _processed(self, scope: Scope, report: LoadReport, episodes: int) -> LoadReport:
        """Notify the background work of processed episodes."""
        self.wake(scope)
        self._count_processed(scope, episodes)
        return report

    def wake(self, *scopes: Scope) -> None:
        """Wake the background work: extraction from the queue, and indexing in these scopes."""
        if self._extraction is not None and self._queue is not None:
            self._queue.notify(scopes)
            self._extraction.wake()
        self._wake_followers(*scopes)

    def _wake_followers(self, *scopes: Scope) -> None:
        for job in (self._indexing, self._assignment):
            if job is not None and scopes:
                job.wake(scopes)

    def schedule_upkeep(self, *scopes: Scope) -> None:
        """Have the background upkeep check whether jobs are due in these scopes."""
        if self._upkeep is not None and self._schedule.add(scopes):
            self._upkeep.wake()

    def schedule_expiry(self) -> None:
        """Start the background erasure of expired episodes, which repeats after a minute or more."""
        if self._expiry is not None:
            self._expiry.wake()

    def _expire_some(self) -> float | None:
        assert self._expiry is not None
        job, scopes = self._expiry, self.scopes_served()
        begun, erased, failures = time.monotonic(), 1, list[GraphMemError]()
        try:
            self._scrub.take_over(scopes, lambda: job.stopping)
            while erased and not job.stopping:
                erased = 0
                for scope in scopes_with_expired(self.backend, scopes, self.clock()):
                    try:
                        done = self.expire(scope, stopping=lambda: job.stopping, clean=self._scrub.add)
                        erased += done.episodes
                    except BackendUnavailable:  # neither can the other scopes be reached
                        raise
                    except GraphMemError as error:  # the other scopes don't wait for this one
                        failures.append(error)
        except StoreReadOnly:
            return None  # left to processes that may write
        finally:
            self._scrub.run()
        if failures:
            raise failures[0]
        return max(_EXPIRY_PAUSE, _EXPIRY_SHARE * (time.monotonic() - begun))

    def expire(
        self,
        scope: Scope,
        *,
        stopping: Callable[[], bool] = lambda: False,
        dry_run: bool = False,
        clean: Clean | None = None,
    ) -> Forgotten:
        """Erase the expired episodes of a scope."""
        index, now = self.search.index, self.clock()
        with span("graphmem.expire"), self.erasing(scope, dry_run=dry_run):
            return expire(self.backend, index, scope, self.ontology, now, stopping, dry_run=dry_run, clean=clean)

    @property
    def scrub_later(self) -> Clean | None:
        """How an erasure leaves the cleaning of files to the background; None without background work."""
        return None if self._expiry is None else self._scrub.add

    def _count_processed(self, scope: Scope, episodes: int) -> None:
        """Report processed episodes to the background upkeep."""
        if self._upkeep is not None and self._schedule.processed(scope, episodes):
            self._upkeep.wake()

    def _run_upkeep(self) -> float | None:
        assert self._upkeep is not None
        job = self._upkeep
        try:
            return self._schedule.run(lambda: job.stopping)
        except StoreReadOnly:
            return None  # left to processes that may write

    @in_span("graphmem.index")
    def _index_some(self, scope: Scope) -> bool:
        done = self.search.index.index_waiting(scope, limit=_INDEXED_AT_ONCE)
        similar = self._parts.similar
        return done and (similar is None or similar.index_some(scope, _INDEXED_AT_ONCE))

    def index(self, scope: Scope, on_rows: Callable[[int], None]) -> None:
        """Index all waiting rows of a scope; failures of a model are logged and retried later.

        Parameters
        ----------
        scope
            Scope to index.
        on_rows
            Called after each step with the number of rows done so far.
        """
        done = 0
        try:
            while not self._index_some(scope):
                done += _INDEXED_AT_ONCE
                on_rows(done)
        except EmbeddingFailed as error:
            _log.warning("scope %s: only lexical search is available: %s", scope, error)
        except IndexUnavailable as error:
            _log.warning("scope %s: the vector index will be updated later: %s", scope, error)

    def _extract(self) -> float | None:
        try:
            if not self._resumed:  # retry at once what an earlier process delayed
                self.queue.retry_now(self.scopes_served())
                self._resumed = True
            done = self.queue.process(
                scopes=self.served, on_step=self._extracted, stopping=lambda: self._closed, background=True
            )
        except StoreReadOnly:
            return None  # whoever may write to it will extract
        if (seconds := self.queue.seconds_to_wait()) > 0:
            return min(seconds, _LONGEST_PAUSE)
        if done.claimed:
            self._pause = _FIRST_PAUSE
            return 0.0
        # retries, and what other processes leave, turn up without a wake
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return self._pause

    def _extracted(self, done: Processed) -> None:
        self._wake_followers(*done.scopes)
        for scope in done.scopes:
            self._count_processed(scope, done.claimed)  # an upper bound; the schedule reads the exact count

    def _background_jobs(self) -> Sequence[BackgroundJob | ScopedJob | RecallRecorder | None]:
        return (self._extraction, self._indexing, self._assignment, self._upkeep, self._expiry, self.recorder)

    def background_errors(self) -> Sequence[str]:
        """Return the current errors of background work whose last run failed."""
        jobs = [job for job in self._background_jobs() if job is not None]
        return [f"{type(job.error).__name__}: {job.error}" for job in jobs if job.error is not None]

    @contextmanager
    def erasing(self, scope: Scope, *, dry_run: bool = False) -> Generator[None]:
        """Write pending traces before an erasure, and drop the data of a scope that this process holds afterwards.

        The search index is told what was erased and drops it itself.
        """
        self.recorder.write()
        try:
            yield
        finally:
            if not dry_run:
                self._drop_copies(scope)

    def _drop_copies(self, scope: Scope) -> None:
        self.communities.centroids.drop_copies(scope)
        if self._parts.similar is not None:
            self._parts.similar.vectors.drop_copies(scope)

    def close(self, seconds: float | None = None) -> None:
        """Wait for running work, write recorded recalls, release claims, and close the store.

        Parameters
        ----------
        seconds
            Maximum time to wait for a running extraction; by default twice the time limit of a model's call.
        """
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        self._gauges.close()
        if self._extraction is not None and self._queue is not None:
            self._queue.notify(())
            wait = 2 * (self.settings.extraction_timeout or SECONDS) if seconds is None else seconds
            self._extraction.stop(timeout=wait)
        for job in (self._indexing, self._assignment, self._upkeep, self._expiry):
            if job is not None:
                job.stop(timeout=self.settings.embedding_timeout * 2)
        self.recorder.stop()
        try:
            self.recorder.write()
            if self._queue is not None:
                self._queue.close()
            self._scrub.run()
        except StoreReadOnly:
            pass  # no claims to release
        except BackendUnavailable as error:
            _log.warning("closing: %s", error)
        finally:
            self._parts.close()
            self.pools.close()


def _left(deadline: float) -> float:
    """Return the seconds until a deadline."""
    return deadline - time.monotonic()
