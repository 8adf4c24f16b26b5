"""What the memories of one open store share: the store, the extractor, and the work behind them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from graphmem.background import BackgroundJob
from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem.ingest.gate import looks_like_injection
from graphmem.ingest.load import Loader
from graphmem.ingest.queue import ExtractionQueue
from graphmem.models import Scope, utc_now
from graphmem.ontology import Ontology
from graphmem.parts import choose_extractor, choose_ontology, contradiction_check, store_options
from graphmem.protocols import Extractor, GraphBackend, Redactor
from graphmem.registry import open_backend
from graphmem.results import Check
from graphmem.settings import Settings
from graphmem.text.redact import PatternRedactor

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_log = logging.getLogger(__name__)

_UNCOUNTED = 10_000  # recalls whose counts may wait to be written
_COUNTED_TOGETHER = 0.2  # seconds that a count waits for others, so that they share a transaction
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds between looks at an empty queue


class Engine:
    """An open store with everything that works on it; made by `open`."""

    def __init__(
        self,
        backend: GraphBackend,
        settings: Settings,
        ontology: Ontology,
        queue: ExtractionQueue | None,
        extractor: Extractor | None,
        *,
        redactor: Redactor | None,
        background: bool,
    ) -> None:
        self.backend = backend
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
            detector=looks_like_injection if settings.detect_injection else None,
            batch_size=settings.batch_size,
            extract_batch=self.extract_batch,
        )
        self._extraction = BackgroundJob("graphmem-extract", self._extract) if queue and background else None
        self._counting = BackgroundJob("graphmem-count", self._count)
        self._uncounted: deque[tuple[tuple[Scope, ...], list[str]]] = deque(maxlen=_UNCOUNTED)
        self._pause = _FIRST_PAUSE
        self._count_at = 0.0
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
        background: bool,
    ) -> Self:
        """Open the store and choose the parts; with `background`, go on with what waits in the queue."""
        ontology = choose_ontology(settings)
        llm = llm if llm is not None else settings.llm
        chosen = extractor
        if chosen is None or isinstance(chosen, str):
            chosen = choose_extractor(chosen or settings.extractor, llm, ontology, settings)
        contradictions = contradiction_check(llm, settings)
        if redactor is None and settings.redact:
            redactor = PatternRedactor()
        backend = open_backend(url, offered=store_options(settings))
        try:
            queue = None
            if chosen is not None:
                queue = ExtractionQueue(backend, chosen, ontology, settings, contradictions, redactor)
            engine = cls(backend, settings, ontology, queue, chosen, redactor=redactor, background=background)
            engine.wake()
        except BaseException:
            backend.close()
            raise
        return engine

    @property
    def can_extract(self) -> bool:
        """Whether there is an extractor."""
        return self._queue is not None

    def wake(self) -> None:
        """Let the background extraction look at the queue."""
        if self._extraction is not None:
            self._extraction.wake()

    def _extract(self) -> float | None:
        assert self._queue is not None
        try:
            done = self._queue.process(self.extract_batch)
        except StoreReadOnly:
            return None  # whoever may write to it will extract
        if done.claimed:
            self._pause = _FIRST_PAUSE
            return 0.0
        # retries, and what other processes leave, turn up without a wake
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return self._pause

    def count_retrievals(self, scopes: tuple[Scope, ...], edge_ids: list[str]) -> None:
        """Count returned facts, behind the caller's back; those of a moment are written together."""
        if edge_ids:
            if not self._uncounted:
                self._count_at = time.monotonic() + _COUNTED_TOGETHER
            self._uncounted.append((scopes, edge_ids))
            self._counting.wake()

    def _count(self) -> float | None:
        if self._uncounted and (early := self._count_at - time.monotonic()) > 0:
            return early
        self._write_counts()
        return None

    def _write_counts(self) -> None:
        batch = [self._uncounted.popleft() for _ in range(len(self._uncounted))]

        def write() -> None:
            for scopes, edge_ids in batch:
                self.backend.record_retrievals(scopes, edge_ids, utc_now())

        try:
            if batch:
                self.backend.atomic(write)
        except StoreReadOnly:
            _log.debug("retrievals are not counted: the store is read-only")
        except BaseException:
            self._uncounted.extendleft(reversed(batch))
            raise

    def background_errors(self) -> Sequence[str]:
        """Return the errors of background work that still goes on failing."""
        jobs = [job for job in (self._extraction, self._counting) if job is not None]
        return [f"{type(job.error).__name__}: {job.error}" for job in jobs if job.error is not None]

    def doctor(self, scope: Scope) -> list[Check]:
        """Examine the store, the extractor and the queue of a scope."""
        checks = [Check(name=name, ok=ok, detail=detail) for name, ok, detail in self.backend.diagnose()]
        if self._extractor is None:
            hint = "none: episodes wait; pip install 'graphmem[spacy]' or configure an LLM"
            checks.append(Check(name="extractor", ok=False, detail=hint))
        else:
            checks.append(Check(name="extractor", ok=True, detail=self._extractor.name))
        counts = self.backend.stats(scope)
        detail = f"{counts.pending_episodes} waiting, {counts.failed_episodes} out of tries"
        checks.append(Check(name="queue", ok=not counts.failed_episodes, detail=detail))
        checks += [Check(name="background", ok=False, detail=error) for error in self.background_errors()]
        return checks

    def close(self) -> None:
        """Let running work end, write what was counted, give back claims, and release the store."""
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        if self._extraction is not None:
            self._extraction.stop(timeout=self.settings.extraction_timeout * 2)
        self._counting.stop()
        try:
            self._write_counts()
            if self._queue is not None:
                self._queue.close()
        except StoreReadOnly:
            pass  # then there is nothing to count or to give back
        except BackendUnavailable as error:
            _log.warning("closing: %s", error)
        finally:
            self.backend.close()
