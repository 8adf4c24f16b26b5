"""What is long over is deleted, what is long unseen is hidden (spec: upkeep, eviction)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from graphmem.models import Changes, Closing, Edge, EdgeQuery, Model, Removal, Scope, UTCDateTime, utc_now
from graphmem.protocols import GraphBackend
from graphmem.recall.score import effective_confidence
from graphmem.upkeep.schedule import Stopping

JOB = "eviction"
_BATCH = 500  # rows in one transaction
_EVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EvictionRule:
    """What goes.

    Attributes
    ----------
    retention
        Days that a superseded fact stays, and that an entity without active facts stays unseen, before it goes
        (setting `expired_edge_retention_days`).
    min_weight
        Active facts of less effective confidence are ended, once neither stated nor retrieved for as long; 0 ends none
        (setting `min_edge_weight`).
    max_entities
        Entities beyond so many are archived; 0 is no cap (setting of that name).
    """

    retention: float
    min_weight: float = 0.0
    max_entities: int = 0


class Evicted(Model):
    """What an eviction did.

    Attributes
    ----------
    deleted_facts
        Superseded facts that were deleted.
    ended_facts
        Weak facts that were ended; their rows are deleted when they have been over for long.
    archived_entities
        Entities hidden from recall; they come back when they are mentioned.
    finished
        False if it ended early, because the store is being closed; the next run goes on.
    """

    deleted_facts: int = 0
    ended_facts: int = 0
    archived_entities: int = 0
    finished: bool = True
    at: UTCDateTime


def evict(
    backend: GraphBackend, scope: Scope, rule: EvictionRule, stopping: Stopping, now: datetime | None = None
) -> Evicted:
    """Delete and hide by the rule, in transactions of bounded size; run again it finds nothing more to do.

    Parameters
    ----------
    backend, scope
        Whose memory.
    rule
        What goes.
    stopping
        Asked after each transaction whether to leave the rest for the next run.
    now
        The moment from which ages are counted; defaults to the present.
    """
    return _Eviction(backend, scope, rule, stopping, utc_now() if now is None else now).run()


class _Eviction:
    def __init__(
        self, backend: GraphBackend, scope: Scope, rule: EvictionRule, stopping: Stopping, now: datetime
    ) -> None:
        self._backend = backend
        self._scope = scope
        self._rule = rule
        self._stopping = stopping
        self._now = now
        self._before = now - timedelta(days=rule.retention)

    def run(self) -> Evicted:
        deleted, finished = self._delete_superseded()
        ended = archived = 0
        if finished and self._rule.min_weight > 0:
            ended, finished = self._end_weak()
        if finished and self._find_idle(1):  # a look at every entity, which in a transaction keeps writers waiting
            archived, finished = self._repeat(self._archive_idle)
        if finished and self._rule.max_entities:
            capped, finished = self._repeat(self._archive_beyond_cap)
            archived += capped
        return Evicted(
            deleted_facts=deleted, ended_facts=ended, archived_entities=archived, finished=finished, at=self._now
        )

    def _repeat(self, step: Callable[[], int]) -> tuple[int, bool]:
        """Run a step, each time in a transaction of its own, until it finds nothing; return how much it did."""
        done = 0
        while count := self._backend.atomic(step):
            done += count
            if self._stopping():
                return done, False
        return done, True

    def _delete_superseded(self) -> tuple[int, bool]:
        """Delete what is known to be over for so long; what ends later than that, or only in the future, stays."""
        deleted, after = 0, ""
        while True:
            done, after = self._backend.atomic(lambda behind=after: self._delete_page(behind))
            deleted += done
            if not after:
                return deleted, True
            if done and self._stopping():
                return deleted, False

    def _delete_page(self, after: str) -> tuple[int, str]:
        """Delete what is over of a page of superseded facts; return how many, and the last id ("" at the end)."""
        query = EdgeQuery(window=("expired_at", _EVER, self._before), versions="all")
        page = self._backend.find_edges([self._scope], query, after=after, limit=_BATCH)
        over = [edge.id for edge in page if edge.valid_to is None or edge.valid_to <= self._before]
        self._backend.write(self._scope, Changes(removals=tuple(Removal("edge", edge_id) for edge_id in over)))
        return len(over), page[-1].id if page else ""

    def _end_weak(self) -> tuple[int, bool]:
        ended, after = 0, ""
        while page := self._backend.find_edges([self._scope], EdgeQuery(versions="active"), after=after, limit=_BATCH):
            if weak := [edge.id for edge in self._weak(page)]:
                ended += self._backend.atomic(lambda ids=weak: self._end(ids))
            if self._stopping():
                return ended, False
            after = page[-1].id
        return ended, True

    def _weak(self, edges: Sequence[Edge]) -> list[Edge]:
        weights = effective_confidence(
            np.array([edge.confidence for edge in edges]), np.array([edge.retrieval_count for edge in edges])
        )
        return [
            edge
            for edge, weight in zip(edges, weights.tolist(), strict=True)
            if edge.is_active
            and weight < self._rule.min_weight
            and max(edge.recorded_at, edge.last_retrieved_at or edge.recorded_at) <= self._before
        ]

    def _end(self, ids: Sequence[str]) -> int:
        now = self._backend.get_edges([self._scope], ids)  # as they are in this transaction
        weak = self._weak(list(now.values()))
        closings = tuple(Closing(edge.id, max(self._now, edge.valid_from), self._now) for edge in weak)
        self._backend.write(self._scope, Changes(closings=closings))
        return len(closings)

    def _archive_idle(self) -> int:
        return self._archive(self._find_idle(_BATCH))

    def _find_idle(self, limit: int) -> list[str]:
        return self._backend.find_idle(self._scope, before=self._before, now=self._now, limit=limit)

    def _archive_beyond_cap(self) -> int:
        counts = self._backend.stats(self._scope)
        beyond = counts.entities - counts.archived_entities - self._rule.max_entities
        if beyond <= 0:
            return 0
        return self._archive(self._backend.find_least_connected(self._scope, limit=min(beyond, _BATCH)))

    def _archive(self, ids: Sequence[str]) -> int:
        rows = self._backend.get_entities([self._scope], ids) if ids else {}
        archived = tuple(entity.changed(archived_at=self._now) for entity in rows.values())
        self._backend.write(self._scope, Changes(entities=archived))
        return len(archived)
