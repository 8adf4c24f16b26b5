"""Traces of recalls and counts of retrievals, written in the background."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from threading import Lock

import numpy as np

from graphmem.background import BackgroundJob
from graphmem.errors import Conflict, InvalidInput, StoreFull, StoreReadOnly
from graphmem.models import (
    Changes,
    RecallTrace,
    Scope,
    Subgraph,
    TracedFact,
    TracedSeed,
    utc_now,
)
from graphmem.models.arrays import Float64s, Int64s
from graphmem.protocols import GraphBackend, expired_entities
from graphmem.recall.facts import to_facts
from graphmem.recall.walks import Walk
from graphmem.results import RecallResult, Trace, TraceEpisode, TraceFact, TraceSeed

_CONSIDERED = 1000  # maximum facts of a trace, best first; a hub may have many more
_WALKED, _STATED = "graph", "episode"


class Observer:
    """Observer that collects the facts of the walks of a recall for its trace."""

    def __init__(self) -> None:
        self._facts: dict[str, TracedFact] = {}

    def __call__(self, graph: Subgraph, walk: Walk, total: Float64s) -> None:
        """Collect the scored facts of a walk; of those that an earlier walk reached, that score stays.

        Parameters
        ----------
        graph
            m edges.
        walk
            The walk that reached them.
        total
            float array (m,): their scores.
        """
        found = np.flatnonzero(walk.near >= 0)
        order: Int64s = np.lexsort((np.array(graph.edge_ids)[found], -total[found]))  # the last key is the primary one
        far = np.where(walk.near == graph.source, graph.target, graph.source)
        facts = (
            TracedFact(
                edge_id=graph.edge_ids[i],
                entity_id=graph.node_ids[int(far[i])],
                score=float(total[i]),
                hop=len(walk.reached.path(int(walk.near[i]))) - 1,
                channel=_WALKED,
            )
            for i in map(int, found[order][:_CONSIDERED])
        )
        for fact in facts:
            self._facts.setdefault(fact.edge_id, fact)

    def trace(self, scope: Scope, result: RecallResult, asked_at: datetime) -> RecallTrace:
        """Return the trace of a recall: its seeds, the returned facts, then the facts only considered."""
        walked = self._facts
        returned = [
            walked[fact.id].changed(score=fact.score, rank=rank)
            if fact.id in walked
            else TracedFact(
                edge_id=fact.id, entity_id=fact.target_id, score=fact.score or 0.0, hop=0, channel=_STATED, rank=rank
            )
            for rank, fact in enumerate(result.facts, 1)
        ]
        ids = {fact.edge_id for fact in returned}
        considered = sorted((fact for fact in walked.values() if fact.edge_id not in ids), key=lambda fact: -fact.score)
        return RecallTrace(
            scope=scope,
            query=result.query,
            strategy=result.strategy,
            asked_at=asked_at,
            as_of=result.as_of,
            seeds=tuple(TracedSeed(entity_id=seed.entity_id, score=seed.score) for seed in result.seeds),
            facts=(*returned, *considered),
        )


def explain(
    backend: GraphBackend, scopes: Sequence[Scope], traces: Sequence[RecallTrace], now: datetime
) -> list[Trace]:
    """Return traces with the current names and facts of the store, as far as these haven't expired by now.

    Traces that started at an entity that only expired episodes mention are left out: their questions may name it. Three
    round trips, and up to three about what has expired.
    """
    edge_ids = list(dict.fromkeys(fact.edge_id for trace in traces for fact in trace.facts))
    named = dict.fromkeys(seed.entity_id for trace in traces for seed in trace.seeds)
    named.update(dict.fromkeys(fact.entity_id for trace in traces for fact in trace.facts))
    edges = backend.get_edges(scopes, edge_ids)
    facts = {fact.id: fact for fact in to_facts(backend, scopes, list(edges.values()), now)}
    gone = expired_entities(backend, scopes, named, now)
    entities = {i: entity for i, entity in backend.get_entities(scopes, list(named)).items() if i not in gone}
    return [
        Trace(
            id=trace.id,
            query=trace.query,
            strategy=trace.strategy,
            asked_at=trace.asked_at,
            as_of=trace.as_of,
            seeds=tuple(
                TraceSeed(entity_id=entity.id, name=entity.name, entity_type=entity.entity_type, score=seed.score)
                for seed in trace.seeds
                if (entity := entities.get(seed.entity_id)) is not None
            ),
            facts=tuple(
                TraceFact(
                    fact=fact,
                    found_at=entities[row.entity_id].name,
                    score=row.score,
                    hop=row.hop,
                    channel=row.channel,
                    rank=row.rank,
                )
                for row in trace.facts
                if (fact := facts.get(row.edge_id)) is not None and row.entity_id in entities
            ),
            episodes=tuple(
                TraceEpisode(episode_id=row.episode_id, score=row.score, channel=row.channel, rank=row.rank)
                for row in trace.episodes
            ),
        )
        for trace in traces
        if gone.isdisjoint(seed.entity_id for seed in trace.seeds)
    ]


_log = logging.getLogger(__name__)

_MAX_PENDING = 10_000  # maximum pending counts, and traces
_BATCH_DELAY = 0.2  # seconds that writes are delayed to batch them in one transaction


class RecallRecorder:
    """Background writer of retrieval counts and traces, in batches and with retries.

    Parameters
    ----------
    backend
        The store to write to.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend
        self._counts: deque[tuple[tuple[Scope, ...], list[str]]] = deque(maxlen=_MAX_PENDING)
        self._traces: deque[RecallTrace] = deque(maxlen=_MAX_PENDING)
        self._job = BackgroundJob("graphmem-recalls", self._work)
        self._due = 0.0
        self._writing = Lock()

    @property
    def error(self) -> Exception | None:
        """The error of the last write, or None if it succeeded."""
        return self._job.error

    def count(self, scopes: tuple[Scope, ...], edge_ids: list[str]) -> None:
        """Queue a count of one retrieval for each returned fact."""
        if edge_ids:
            self._counts.append((scopes, edge_ids))
            self._wake()

    def keep(self, trace: RecallTrace) -> None:
        """Queue a trace for writing."""
        self._traces.append(trace)
        self._wake()

    def _wake(self) -> None:
        if len(self._counts) + len(self._traces) == 1:
            self._due = time.monotonic() + _BATCH_DELAY
        self._job.wake()

    def _work(self) -> float | None:
        if (self._counts or self._traces) and (early := self._due - time.monotonic()) > 0:
            return early
        self.write()
        return None

    def write(self) -> None:
        """Write all pending counts and traces; they are stored on return."""
        with self._writing:
            try:
                self._write_counts()
                self._write_traces()
            except StoreReadOnly:
                _log.debug("retrievals and traces are not kept: the store is read-only")

    def write_if_room(self) -> None:
        """Write pending data on behalf of a reader; if the store is full, log a warning and keep it pending."""
        try:
            self.write()
        except StoreFull as error:
            _log.warning("retrievals and traces are still pending: %s", error)

    def _write_counts(self) -> None:
        batch = [self._counts.popleft() for _ in range(len(self._counts))]

        def work() -> None:
            for scopes, edge_ids in batch:
                self._backend.record_retrievals(scopes, edge_ids, utc_now())

        try:
            if batch:
                self._backend.atomic(work)
        except StoreReadOnly:
            self._traces.clear()
            raise
        except BaseException:
            self._counts.extendleft(reversed(batch))
            raise

    def _write_traces(self) -> None:
        while self._traces:
            trace = self._traces.popleft()
            try:
                self._backend.write(trace.scope, Changes(recalls=(trace,)))
            except (InvalidInput, Conflict) as error:
                _log.warning("the trace of a recall is dropped, rows that it names were removed: %s", error)
            except StoreReadOnly:
                self._traces.clear()
                raise
            except BaseException:
                self._traces.appendleft(trace)
                raise

    def stop(self) -> None:
        """Stop the thread; pending data stays queued until `write`."""
        self._job.stop()
