"""Shared engine of the memories of one open store: store, extractor, search and background work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, Self

from graphmem.background import BackgroundJob, ScopedJob, Workers
from graphmem.communities.service import Communities
from graphmem.embed import Embedder, Embeddings
from graphmem.errors import BackendUnavailable, EmbeddingFailed, IndexUnavailable, InvalidInput, StoreReadOnly
from graphmem.factory import (
    choose_embedder,
    choose_extractor,
    choose_ontology,
    choose_vector_index,
    contradiction_check,
    similar_entities,
    store_options,
)
from graphmem.index.encoder import EpisodeEncoder
from graphmem.index.phrases import phrase_finder
from graphmem.ingest.bulk import Loader
from graphmem.ingest.content_filter import looks_like_injection
from graphmem.ingest.failures import Failure
from graphmem.ingest.queue import ExtractionQueue, Processed
from graphmem.ingest.redaction import RedactingExtractor, Redaction
from graphmem.models import Episode, EpisodeQuery, Scope
from graphmem.ontology import Ontology
from graphmem.protocols import Extractor, GraphBackend, Redactor, VectorIndex
from graphmem.recall.options import SpreadingOptions
from graphmem.recall.traces import RecallRecorder
from graphmem.registry import open_backend
from graphmem.results import Check, QueueError, QueueState, Stats, UpkeepState
from graphmem.search.entity_embeddings import StoredMeaning
from graphmem.search.rerank import CrossEncoder, Reranker
from graphmem.search.service import GraphRAGService
from graphmem.settings import Settings
from graphmem.text.redact import PatternRedactor
from graphmem.upkeep.eviction import DELETED, upkeep_jobs
from graphmem.upkeep.schedule import UpkeepSchedule

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from graphmem.ingest.entity_matching import SimilarEntities
    from graphmem.ingest.links import NoteLinks

_log = logging.getLogger(__name__)

_ERRORS_SEARCHED, _ERRORS_SHOWN = 100, 10  # episodes in `stats`
_INDEXED_AT_ONCE = 64  # rows per indexing step
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds between two polls of an empty queue

_REDACTION = {
    "off": "off: texts, facts and summaries are stored as they are",
    "facts": "facts: personal data is replaced in facts and summaries; texts are stored as they are",
    "all": "all: personal data is replaced in all data that is stored or sent to a model",
}


class Engine:
    """An open store with the services that work on it; created by `open`."""

    def __init__(
        self,
        backend: GraphBackend,
        settings: Settings,
        ontology: Ontology,
        queue: ExtractionQueue | None,
        extractor: Extractor | None,
        *,
        redactor: Redactor | None,
        redaction: Redaction | None,
        embedder: Embedder | None,
        vectors: VectorIndex | None,
        cross_encoder: CrossEncoder | None,
        similar: SimilarEntities | None,
        links: NoteLinks | None,
        llm: BaseChatModel | str | None,
        background: bool,
    ) -> None:
        self.backend = backend
        self._vectors = vectors
        self._similar = similar
        reranker = Reranker(cross_encoder, settings.embedding_timeout) if cross_encoder is not None else None
        reader, spreading = EpisodeEncoder(embedder, phrase_finder()), SpreadingOptions.of(settings)
        self.redaction = redaction
        self.rag = GraphRAGService(backend, reader, spreading, vectors, reranker, redact=self.redacted)
        self.meaning = StoredMeaning(backend, embedder, similar, settings.index_wait) if embedder and similar else None
        self.communities = Communities(backend, settings, embedder=embedder, redactor=redactor, llm=llm)
        self.settings = settings
        self.ontology = ontology
        self._extractor = extractor
        self._queue = queue
        self.extract_batch = extractor.batch_size if extractor is not None else 1
        self.loader = Loader(
            backend,
            ontology,
            queue,
            redactor=redactor,
            redaction=redaction,
            detector=looks_like_injection if settings.detect_injection else None,
            batch_size=settings.batch_size,
            similar=similar,
            links=links,
        )
        self._extraction = BackgroundJob("graphmem-extract", self._extract) if queue and background else None
        self._indexing = ScopedJob("graphmem-index", self._index_some) if background else None
        jobs = [*upkeep_jobs(backend, settings), *self.communities.jobs]
        self._assignment = self.communities.assignment if background else None
        self._schedule = UpkeepSchedule(backend, jobs, settings.community_refresh_interval)
        self._upkeep = BackgroundJob("graphmem-upkeep", self._run_upkeep) if background else None
        self.recorder = RecallRecorder(backend)
        self.workers = Workers()
        self._pause = _FIRST_PAUSE
        self._resumed = False
        self._watchers: dict[str, set[Future[None]]] = {}
        self._watchers_lock = threading.Lock()
        if queue is not None:
            queue.on_settled = self._settled
        self._closed = False
        self._close_lock = threading.Lock()

    @classmethod
    def open(
        cls,
        url: str,
        settings: Settings,
        *,
        extractor: Extractor | str | None,
        llm: BaseChatModel | str | None,
        redactor: Redactor | None,
        embeddings: Embeddings | str | None,
        cross_encoder: CrossEncoder | None,
        background: bool,
    ) -> Self:
        """Open the store and create the parts; with `background`, resume extraction, indexing and upkeep."""
        ontology = choose_ontology(settings)
        llm = llm if llm is not None else settings.llm
        chosen = extractor
        if chosen is None or isinstance(chosen, str):
            chosen = choose_extractor(chosen or settings.extractor, llm, ontology, settings)
        contradictions = contradiction_check(llm, settings)
        embedder = choose_embedder(embeddings, settings)
        if redactor is None and settings.redact != "off":
            redactor = PatternRedactor()
        redaction = None
        if redactor is not None and settings.redact == "all":
            key = settings.redact_key
            redaction = Redaction(redactor, None if key is None else key.get_secret_value())
            chosen = None if chosen is None else RedactingExtractor(chosen, redaction)
        backend = open_backend(url, offered=store_options(settings))
        vectors = None
        try:
            vectors = choose_vector_index(settings, backend)
            similar, links = similar_entities(backend, embedder, llm, settings)
            queue = None
            if chosen is not None:
                queue = ExtractionQueue(backend, chosen, ontology, settings, contradictions, redactor, similar, links)
            engine = cls(
                backend,
                settings,
                ontology,
                queue,
                chosen,
                redactor=redactor,
                redaction=redaction,
                embedder=embedder,
                vectors=vectors,
                cross_encoder=cross_encoder,
                similar=similar,
                links=links,
                llm=llm,
                background=background,
            )
            if background:
                engine.wake(*(scopes := backend.scopes()))
                engine.schedule_upkeep(*scopes)
        except BaseException:
            if vectors is not None:
                vectors.close()
            backend.close()
            raise
        return engine

    def redacted(self, text: str) -> str:
        """Return a text with personal data replaced, if redaction of all data is on."""
        return text if self.redaction is None else self.redaction.text(text)

    def known_name(self, text: str) -> str:
        """Return the stored form of a name or id given by a caller; redaction may have replaced it."""
        return text if self.redaction is None else self.redaction.known_name(text)

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

    @property
    def extracts_by_itself(self) -> bool:
        """Whether waiting episodes are extracted in the background."""
        return self._extraction is not None

    @property
    def is_paused(self) -> bool:
        """Whether extraction is paused until its configuration is repaired."""
        pause = None if self._queue is None else self._queue.pause
        return pause is not None and pause.kind == "misconfigured"

    @contextmanager
    def watching(self, episode_id: str | None) -> Generator[Future[None]]:
        """Yield a future that completes when this process has settled the episode, or any episode for None."""
        key, future = episode_id or "", Future[None]()
        with self._watchers_lock:
            self._watchers.setdefault(key, set()).add(future)
        try:
            yield future
        finally:
            with self._watchers_lock:
                self._watchers.get(key, set()).discard(future)
                if not self._watchers.get(key):
                    self._watchers.pop(key, None)

    def _settled(self, episode_ids: Sequence[str]) -> None:
        if not self._watchers or not episode_ids:
            return
        with self._watchers_lock:
            futures = [future for key in ("", *episode_ids) for future in self._watchers.pop(key, ())]
        for future in futures:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

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
        if self._upkeep is not None and self._schedule.look_at(scopes):
            self._upkeep.wake()

    def count_processed(self, scope: Scope, episodes: int) -> None:
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

    def _index_some(self, scope: Scope) -> bool:
        done = self.rag.index.index_waiting(scope, limit=_INDEXED_AT_ONCE)
        return done and (self._similar is None or self._similar.index_some(scope, _INDEXED_AT_ONCE))

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
            if not self._resumed:  # what a model that was away has delayed needn't wait for its time
                self.queue.retry_now(self.backend.scopes())
                self._resumed = True
            done = self.queue.process(on_step=self._extracted, stopping=lambda: self._closed)
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
            self.count_processed(scope, done.claimed)  # of all scopes: the schedule looks before it acts

    def _background_jobs(self) -> Sequence[BackgroundJob | ScopedJob | RecallRecorder | None]:
        return (self._extraction, self._indexing, self._assignment, self._upkeep, self.recorder)

    def background_errors(self) -> Sequence[str]:
        """Return the current errors of background work whose last run failed."""
        jobs = [job for job in self._background_jobs() if job is not None]
        return [f"{type(job.error).__name__}: {job.error}" for job in jobs if job.error is not None]

    def stats(self, scope: Scope) -> Stats:
        """Return the row counts of a scope and the state of its queue, including errors."""
        with_errors = [
            episode
            for state in ("failed", "pending")
            for episode in self.backend.find_episodes([scope], EpisodeQuery(state=state), limit=_ERRORS_SEARCHED)
            if episode.error is not None
        ]
        counts = self.backend.stats(scope)
        waiting = max(0, counts.entities - counts.archived_entities - counts.community_members)
        background = tuple(self.background_errors())
        marks = self.backend.find_job_states(scope)
        upkeep = tuple(
            UpkeepState(job=mark.job, done_at=mark.done_at, episodes=mark.episodes, begun_at=mark.begun_at)
            for mark in marks
            if mark.job != DELETED
        )
        return Stats(
            scope=str(scope),
            **asdict(counts),
            waiting_entities=waiting,
            deleted_facts=sum(mark.episodes for mark in marks if mark.job == DELETED),
            queue=self._queue_state(with_errors),
            errors=tuple(map(queue_error, with_errors[:_ERRORS_SHOWN])),
            upkeep=upkeep,
            background=background,
        )

    def _queue_state(self, with_errors: Sequence[Episode]) -> QueueState:
        """Return the state of extraction from this process, or else from the errors of waiting episodes."""
        words: dict[str, Literal["waiting", "paused"]] = {"unavailable": "waiting", "misconfigured": "paused"}
        if self._queue is not None and (pause := self._queue.pause) is not None:
            until = max(pause.until, pause.since)
            return QueueState(state=words[pause.kind], reason=pause.reason, since=pause.since, next_try=until)
        if self._queue is not None and self._queue.has_answered:
            return QueueState()
        failures = [(f, e.retry_at) for e in with_errors if e.retry_at is not None and (f := Failure.read(e.error))]
        for kind in ("misconfigured", "unavailable"):
            if found := [(f, at) for f, at in failures if f.kind == kind]:
                first, newest = min(f.since for f, _ in found), max((f for f, _ in found), key=lambda f: f.last)
                then = min(at for _, at in found)
                return QueueState(state=words[kind], reason=newest.reason, since=first, next_try=then)
        return QueueState()

    def drop_copies(self, scope: Scope) -> None:
        """Drop cached vectors of a scope; the search index is updated separately."""
        self.communities.centroids.drop_copies(scope)
        if self._similar is not None:
            self._similar.vectors.drop_copies(scope)

    def doctor(self, scope: Scope) -> list[Check]:
        """Check the store, the extractor and the queue of a scope."""
        checks = [Check(name=name, ok=ok, detail=detail) for name, ok, detail in self.backend.diagnose()]
        if self._extractor is None:
            hint = "none: episodes stay in the queue; pip install 'graphmem[spacy]' or configure an LLM"
            checks.append(Check(name="extractor", ok=False, detail=hint))
        else:
            checks.append(Check(name="extractor", ok=True, detail=self._extractor.name))
        checks.append(Check(name="redaction", ok=True, detail=_REDACTION[self.settings.redact]))
        detail = "on: suspicious texts are stored but not extracted" if self.settings.detect_injection else "off"
        checks.append(Check(name="injection detection", ok=True, detail=detail))
        stats = self.stats(scope)
        detail = f"{stats.pending_episodes} waiting, {stats.failed_episodes} failed"
        if stats.failed_episodes:
            detail += ": graphmem dead-letters lists them, graphmem backfill --failed retries them"
        checks.append(Check(name="queue", ok=not stats.failed_episodes, detail=detail))
        if stats.queue.state != "running":
            detail = f"{stats.queue}; after a repair, graphmem backfill retries at once"
            checks.append(Check(name="extraction", ok=False, detail=detail))
        if self._vectors is not None:
            checks += [Check(name=name, ok=ok, detail=detail) for name, ok, detail in self._vectors.diagnose()]
        checks += [Check(name="background", ok=False, detail=error) for error in self.background_errors()]
        return checks

    def close(self) -> None:
        """Wait for running work, write recorded recalls, release claims, and close the store."""
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        if self._extraction is not None and self._queue is not None:
            self._queue.notify(())
            self._extraction.stop(timeout=self.settings.extraction_timeout * 2)
        for job in (self._indexing, self._assignment, self._upkeep):
            if job is not None:
                job.stop(timeout=self.settings.embedding_timeout * 2)
        self.recorder.stop()
        try:
            self.recorder.write()
            if self._queue is not None:
                self._queue.close()
        except StoreReadOnly:
            pass  # no claims to release
        except BackendUnavailable as error:
            _log.warning("closing: %s", error)
        finally:
            if self._vectors is not None:
                self._vectors.close()
            self.backend.close()
            self.workers.close()


def queue_error(episode: Episode) -> QueueError:
    """Return the extraction error of an episode."""
    failure = Failure.read(episode.error)
    return QueueError(
        episode_id=episode.id,
        error=(episode.error or "") if failure is None else failure.reason,
        attempts=episode.attempts,
        retry_at=episode.retry_at,
        failed_at=None if failure is None else failure.last,
    )
