"""Calls of an extractor for episodes of the queue: their requests, and their results or errors."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from graphmem.errors import ExtractionFailed, ExtractorMisconfigured, InvalidInput
from graphmem.ingest.interpretation import InterpretedEpisode, read_extraction
from graphmem.ingest.requests import build_requests
from graphmem.llm.providers import kind_of
from graphmem.models import Episode, Scope, is_expired
from graphmem.ontology import Ontology
from graphmem.protocols import Extraction, ExtractionRequest, Extractor, GraphBackend, reads_known
from graphmem.telemetry import span
from graphmem.text import counted

_log = logging.getLogger(__name__)


class ExtractionCalls:
    """Calls of an extractor, which is a plugin: any exception of it becomes the result of its episodes.

    Parameters
    ----------
    backend
        The store, for what is known about the episodes.
    extractor
        The extractor.
    ontology
        Types and relations.
    context_turns
        Maximum number of preceding turns of each request.
    clock
        Returns the present, by which episodes have expired.
    """

    def __init__(
        self,
        backend: GraphBackend,
        extractor: Extractor,
        ontology: Ontology,
        context_turns: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._backend = backend
        self._extractor = extractor
        self._ontology = ontology
        self._context_turns = context_turns
        self._clock = clock
        self.reads_known = reads_known(extractor)

    def requests(self, scope: Scope, episodes: Sequence[Episode]) -> list[ExtractionRequest]:
        """Return the requests for episodes of a scope, with what is known if the extractor reads that."""
        ontology = self._ontology if self.reads_known else None
        return build_requests(self._backend, scope, episodes, self._context_turns, ontology, now=self._clock())

    def shown(self, requests: Sequence[ExtractionRequest]) -> set[str] | None:
        """Return the ids of the facts in requests; None for an extractor that doesn't read them."""
        return {fact.id for request in requests for fact in request.known.facts} if self.reads_known else None

    def results(self, requests: Sequence[ExtractionRequest]) -> Sequence[Extraction | Exception]:
        """Return the result of each request; an episode that expired while it waited states nothing."""
        now = self._clock()
        live = [request for request in requests if not is_expired(request.episode.expires_at, now)]
        results = iter(self._timed(live) if live else ())
        return [Extraction() if is_expired(r.episode.expires_at, now) else next(results) for r in requests]

    def read(self, episode: Episode, extraction: Extraction, dropped: Counter[str]) -> InterpretedEpisode | Exception:
        """Return what an extraction means; what isn't kept of it is counted in `dropped`, by its reason."""
        try:
            return read_extraction(episode, extraction, self._ontology, dropped)
        except Exception as error:  # noqa: BLE001 - extractors are plugins, and what they return isn't validated
            return ExtractionFailed(f"{self._extractor.name} returned an unreadable result: {error}")

    def _timed(self, requests: Sequence[ExtractionRequest]) -> Sequence[Extraction | Exception]:
        about = {"graphmem.extractor": self._extractor.name, "graphmem.episodes": len(requests)}
        with span("graphmem.extract", about, duration="graph_extraction_duration_ms") as one:
            results = self._extract(requests)
            one.set({"graphmem.failed": sum(isinstance(result, Exception) for result in results)})
            return results

    def _extract(self, requests: Sequence[ExtractionRequest]) -> Sequence[Extraction | Exception]:
        try:
            results = self._extractor.extract(requests)
            if len(results) != len(requests):
                raise ExtractionFailed(f"{counted(len(results), 'result')} for {counted(len(requests), 'episode')}")
            return results
        except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001 - plugins: a broken one must not end the queue
            if isinstance(error, InvalidInput):
                return [ExtractorMisconfigured(str(error))] * len(requests)
            if isinstance(error, Exception) and kind_of(error) != "episode":
                return [error] * len(requests)
            _log.warning("extractor %s failed: %s", self._extractor.name, error)
            if len(requests) > 1 and not isinstance(error, ExtractionFailed):
                return [
                    result for request in requests for result in self._extract([request])
                ]  # one of the texts may be the cause
            return [ExtractionFailed(f"{self._extractor.name}: {error!r}")] * len(requests)
