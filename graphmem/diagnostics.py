"""State of a memory: counts, the queue of extraction, and checks of its parts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Literal

from graphmem.errors import GraphMemError
from graphmem.ingest.failures import Failure
from graphmem.ingest.queue import ExtractionQueue
from graphmem.migrate.tokens import JOB, SHADOW
from graphmem.models import Episode, EpisodeQuery, Scope, utc_now
from graphmem.protocols import Extractor, GraphBackend, VectorIndex, problem_of
from graphmem.results import Check, QueueError, QueueState, Stats, UpkeepState
from graphmem.settings import Settings
from graphmem.text import counted
from graphmem.upkeep.eviction import DECAY_PROGRESS, DELETED
from graphmem.upkeep.forget import EXPIRED
from graphmem.upkeep.scope_rows import count_dangling

_log = logging.getLogger(__name__)

_GAUGE_SECONDS, _GAUGE_SHARE = 15.0, 20  # between two readings of the gauges, as a time and as a multiple of one
_ERRORS_SEARCHED, _ERRORS_SHOWN = 100, 10  # episodes in `stats`

INTERNAL_JOBS = frozenset({DELETED, EXPIRED, DECAY_PROGRESS, JOB, SHADOW})
"""Names of job states that aren't jobs of upkeep: counters, the progress of a decay, and those of a migration."""

_NO_EXTRACTOR = (
    "none: episodes stay in the queue; pip install 'graphmem[spacy]', or set llm to a model as provider:model"
)
_EXTRACTOR_OFF = (
    "none, as it is set: episodes stay in the queue; set extractor to auto, which is spacy after pip install "
    "'graphmem[spacy]', or to llm:PROVIDER:MODEL"
)
_NO_EMBEDDINGS = (
    "none: searches and recalls compare words only; pip install 'graphmem[embeddings]', or set embeddings to a folder "
    "(minilm:FOLDER) or a model (PROVIDER:MODEL)"
)
_REDACTION = {
    "off": "off: all is stored as it is; set redact to facts or all to replace personal data and secrets",
    "facts": "facts: personal data is replaced in facts and summaries; texts are stored as they are",
    "all": "all: personal data is replaced in all data that is stored or sent to a model",
}
_INJECTION = {
    True: "on: suspicious texts are stored but not extracted",
    False: "off: suspicious texts are extracted like others; set detect_injection to true to only store them",
}
_NO_LEIDEN = ": well connected entities become one community; pip install 'graphmem[leiden]' tells them apart"
_NO_RETENTION = "none: superseded facts are kept forever; set expired_edge_retention_days to delete them later"
_NO_EVICTION = "off: superseded facts are kept, as eviction is off; set it to true for expired_edge_retention_days"


_DANGLING = (
    "{} to rows that were deleted past graphmem, by SQL or Cypher, in the newest 1,000 facts and 1,000 entries of the "
    "index: graphmem reindex removes those of the index; graphmem export leaves all of them out, so that an import of "
    "the file into another store has none"
)


class Diagnostics:
    """Diagnostics of one open store.

    Parameters
    ----------
    backend, settings
        The store and its settings.
    queue, extractor, vectors
        Optional parts to examine.
    embeddings
        Name of the embedding model; None if there is none.
    background_errors
        Function that returns the errors of background work.
    """

    def __init__(
        self,
        backend: GraphBackend,
        settings: Settings,
        queue: ExtractionQueue | None,
        extractor: Extractor | None,
        vectors: VectorIndex | None,
        embeddings: str | None,
        background_errors: Callable[[], Sequence[str]],
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._queue = queue
        self._extractor = extractor
        self._vectors = vectors
        self._embeddings = embeddings
        self._background_errors = background_errors

    def stats(self, scope: Scope) -> Stats:
        """Return the row counts of a scope and the state of its queue, including errors."""
        with_errors = [
            episode
            for state in ("failed", "pending")
            for episode in self._backend.find_episodes([scope], EpisodeQuery(state=state), limit=_ERRORS_SEARCHED)
            if episode.error is not None
        ]
        counts = self._backend.stats(scope)
        waiting = max(0, counts.entities - counts.archived_entities - counts.community_members)
        background = tuple(self._background_errors())
        states = self._backend.find_job_states(scope)
        upkeep = tuple(
            UpkeepState(job=state.job, done_at=state.done_at, episodes=state.episodes, begun_at=state.begun_at)
            for state in states
            if state.job not in INTERNAL_JOBS
        )
        return Stats(
            scope=str(scope),
            **asdict(counts),
            waiting_entities=waiting,
            deleted_facts=sum(state.episodes for state in states if state.job == DELETED),
            expired_episodes=sum(state.episodes for state in states if state.job == EXPIRED),
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

    def doctor(self, scope: Scope) -> list[Check]:
        """Check the store, the extractor and the queue of a scope."""
        checks = [Check(name=name, ok=ok, detail=detail) for name, ok, detail in self._backend.diagnose()]
        absent = _EXTRACTOR_OFF if self._settings.extractor == "none" else _NO_EXTRACTOR
        problem = absent if self._extractor is None else problem_of(self._extractor)
        name = "" if self._extractor is None else self._extractor.name
        checks.append(Check(name="extractor", ok=problem is None, detail=problem or name))
        checks += [Check(name=name, ok=True, detail=detail) for name, detail in self._features()]
        for name, check in (("queue", self._queue_checks), ("references", self._reference_checks)):
            try:
                checks += check(scope)
            except GraphMemError as error:  # a row that was edited by hand hides no other check
                checks.append(Check(name=name, ok=False, detail=str(error)))
        if self._vectors is not None:
            checks += [Check(name=name, ok=ok, detail=detail) for name, ok, detail in self._vectors.diagnose()]
        checks += [Check(name="background", ok=False, detail=error) for error in self._background_errors()]
        return checks

    def _queue_checks(self, scope: Scope) -> list[Check]:
        stats = self.stats(scope)
        detail = f"{stats.pending_episodes} waiting, {stats.failed_episodes} failed"
        if stats.failed_episodes:
            detail += ": graphmem dead-letters lists them, graphmem backfill --failed retries them"
        checks = [Check(name="queue", ok=not stats.failed_episodes, detail=detail)]
        if stats.queue.state != "running":
            detail = f"{stats.queue}; after a repair, graphmem backfill retries at once"
            checks.append(Check(name="extraction", ok=False, detail=detail))
        return checks

    def _reference_checks(self, scope: Scope) -> list[Check]:
        # read again, as others may have deleted rows meanwhile
        if not count_dangling(self._backend, scope) or not (dangling := count_dangling(self._backend, scope)):
            return []
        return [Check(name="references", ok=False, detail=_DANGLING.format(counted(dangling, "reference")))]

    def _features(self) -> list[tuple[str, str]]:
        """Return what may be off on purpose, with what it takes to turn it on."""
        return [
            ("embeddings", self._embeddings or _NO_EMBEDDINGS),
            ("redaction", _REDACTION[self._settings.redact]),
            ("injection detection", _INJECTION[self._settings.detect_injection]),
            ("retention", self._retention()),
            ("communities", self._communities()),
        ]

    def _communities(self) -> str:
        if (chosen := self._settings.community_algorithm) != "auto":
            return chosen
        from graphmem.communities.detection import best_algorithm  # local import: opening a store needs no numpy

        chosen = best_algorithm(self._backend)
        return chosen if chosen == "leiden" else f"{chosen}{_NO_LEIDEN}"

    def _retention(self) -> str:
        if (days := self._settings.expired_edge_retention_days) is None:
            return _NO_RETENTION
        return (
            f"superseded facts are deleted (expired_edge_retention_days: {days:g})"
            if self._settings.eviction
            else _NO_EVICTION
        )


class Gauges:
    """Size of a store and of its queue, read when somebody asks for the metrics.

    Values are at most 15 seconds old, or as old as twenty readings take, so that a store of many scopes isn't read all
    the time.

    Parameters
    ----------
    backend
        The store.
    scopes
        Returns the scopes to read.
    """

    def __init__(self, backend: GraphBackend, scopes: Callable[[], Sequence[Scope]]) -> None:
        self._backend = backend
        self._scopes = scopes
        self._values: dict[Hashable, Mapping[str, float]] = {}
        self._read_again_at = float("-inf")
        self._lock = threading.Lock()

    def close(self) -> None:
        """Read the store no more."""
        self._values, self._read_again_at = {}, float("inf")

    def read(self) -> Mapping[Hashable, Mapping[str, float]]:
        """Return the gauges of each scope, and the age; none while the store doesn't answer, or after `close`."""
        if time.monotonic() >= self._read_again_at and self._lock.acquire(blocking=False):  # others get what there is
            try:
                begun, values = time.monotonic(), self._now()
                pause = max(_GAUGE_SECONDS, _GAUGE_SHARE * (time.monotonic() - begun))
                if self._read_again_at < float("inf"):  # not closed meanwhile
                    self._values, self._read_again_at = values, begun + pause
            except Exception as error:  # noqa: BLE001 - the thread is that of an exporter, which expects none
                self._values = {}
                _log.debug("metrics: %s", error)
            finally:
                self._lock.release()
        return self._values

    def _now(self) -> dict[Hashable, Mapping[str, float]]:
        scopes = self._scopes()
        found: dict[Hashable, Mapping[str, float]] = {}
        for scope in scopes:
            counts = self._backend.stats(scope)
            found[self._backend.identity, scope] = {
                "graph_entities_count": counts.entities - counts.archived_entities,
                "graph_relationships_count": counts.active_edges,
                "graph_queue_depth": counts.pending_episodes,
                "graph_queue_failed": counts.failed_episodes,
            }
        waiting = EpisodeQuery(state="pending")
        oldest = self._backend.find_episodes(scopes, waiting, limit=1) if scopes else []
        age = sum((utc_now() - each.recorded_at).total_seconds() for each in oldest)
        return {**found, self: {"graph_queue_age_seconds": age}}


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
