"""Deleting what is long over, hiding what is long unseen, fading counts, and the jobs that do it (spec: upkeep)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import numpy as np

from graphmem.models import (
    Changes,
    Edge,
    EdgeExpiry,
    EdgeQuery,
    Entity,
    Model,
    Removal,
    Scope,
    UTCDateTime,
    utc_now,
)
from graphmem.protocols import GraphBackend
from graphmem.recall.scoring import effective_confidence
from graphmem.settings import Settings
from graphmem.upkeep import eviction
from graphmem.upkeep.schedule import Stopping, UpkeepJob

DECAY_JOB = "decay"
_MARK = "retrieval counts"  # how far the counts of a scope have faded: by the schedule or by hand


@dataclass(frozen=True, slots=True)
class DecayRule:
    """How counts fade.

    Attributes
    ----------
    rate
        λ in ``count × exp(−λ × days)`` (setting `link_weight_decay_lambda`).
    interval
        Days within which a retrieved fact keeps its count (setting `link_weight_decay_interval`).
    """

    rate: float
    interval: float


def decay(backend: GraphBackend, scope: Scope, rule: DecayRule, stopping: Stopping, now: datetime | None = None) -> int:
    """Lower the retrieval counts of facts that weren't retrieved of late.

    Works page by page; each is one transaction with the mark of how far it came. Interrupted, it goes on from there
    with the time at which it began, so that no count is lowered twice. Run again at once it changes nothing: no time
    has passed.

    Parameters
    ----------
    backend, scope
        Whose facts.
    rule
        How counts fade.
    stopping
        Called after each page, returns whether to leave the rest for the next run.
    now
        The moment up to which they fade; defaults to the present.

    Returns
    -------
    int
        Facts with a count above 0 that were looked at.
    """
    looked_at = 0
    moment = utc_now() if now is None else now
    while True:
        done, more = backend.atomic(lambda: _page(backend, scope, rule, moment))
        looked_at += done
        if not more or stopping():
            return looked_at


def is_interrupted(backend: GraphBackend, scope: Scope) -> bool:
    """Return whether a decay of this scope has begun and not ended."""
    return backend.find_job_state(scope, _MARK).begun_at is not None


def _page(backend: GraphBackend, scope: Scope, rule: DecayRule, now: datetime) -> tuple[int, bool]:
    mark = backend.find_job_state(scope, _MARK)
    begun = mark.begun_at or now
    if mark.done_at is not None and begun <= mark.done_at:
        return 0, False
    done, cursor = backend.decay_retrievals(
        scope,
        rate=rule.rate,
        idle_since=begun - timedelta(days=rule.interval),
        since=mark.done_at,
        now=begun,
        after=mark.cursor,
    )
    after = (
        replace(mark, begun_at=begun, cursor=cursor)
        if cursor
        else replace(mark, done_at=begun, begun_at=None, cursor="")
    )
    backend.write(scope, Changes(marks=(after,)))
    return done, bool(cursor)


T = TypeVar("T")


class _Undone(Exception):
    """Undoes the transaction that it is raised in."""


def rehearsed(backend: GraphBackend, work: Callable[[], T]) -> T:
    """Run `work` in a transaction, undo it, and return what it returned."""
    done: list[T] = []

    def undone() -> None:
        done[:] = [work()]
        raise _Undone

    try:
        backend.atomic(undone)
    except _Undone:
        return done[0]
    raise AssertionError("a transaction that raises is undone")


EVICTION_JOB = "eviction"
DELETED = "deleted facts"
"""Job of the mark in which `episodes` counts the facts that evictions have deleted in a scope so far."""
_BATCH = 500  # rows in one transaction
_ROUND = 5000  # entities that are looked for at once
_EVER = datetime(1, 1, 1, tzinfo=UTC)
_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class EvictionRule:
    """What goes.

    Attributes
    ----------
    retention
        Days after which a superseded fact is deleted, and an unseen entity without active facts is hidden (setting
        `expired_edge_retention_days`); None: never.
    min_weight
        Active facts of less effective confidence are ended, once neither stated nor retrieved for as long; 0 ends none
        (setting `min_edge_weight`). It takes a retention.
    max_entities
        Entities beyond so many are archived; 0 is no cap (setting of that name).
    """

    retention: float | None
    min_weight: float = 0.0
    max_entities: int = 0

    @property
    def does_nothing(self) -> bool:
        """Whether by this rule everything stays as it is."""
        return self.retention is None and not self.max_entities


class Evicted(Model):
    """What an eviction did, or would do.

    Attributes
    ----------
    deleted_facts
        Superseded facts that were deleted.
    ended_facts
        Weak facts that were ended; their rows are deleted when they have been over for long.
    archived_entities
        Entities hidden from recall, but by their names; they come back when they are mentioned.
    examples
        Some of the facts that were deleted.
    dry_run
        Whether nothing was changed: it tells what an eviction would do.
    finished
        False if it ended early, because the store is being closed; the next run goes on.
    """

    deleted_facts: int = 0
    ended_facts: int = 0
    archived_entities: int = 0
    examples: tuple[str, ...] = ()
    dry_run: bool = False
    finished: bool = True
    at: UTCDateTime


def evict(
    backend: GraphBackend,
    scope: Scope,
    rule: EvictionRule,
    stopping: Stopping,
    now: datetime | None = None,
    *,
    dry_run: bool = False,
) -> Evicted:
    """Delete and hide by the rule, in transactions of bounded size; run again it finds nothing more to do.

    Parameters
    ----------
    backend, scope
        Whose memory.
    rule
        What goes.
    stopping
        Called after each transaction, returns whether to leave the rest for the next run.
    now
        The moment from which ages are counted; defaults to the present.
    dry_run
        Change nothing: all of it is done in one transaction that is undone.
    """
    eviction = _Eviction(backend, scope, rule, stopping, utc_now() if now is None else now)
    return rehearsed(backend, eviction.run).changed(dry_run=True) if dry_run else eviction.run()


class _Eviction:
    def __init__(
        self, backend: GraphBackend, scope: Scope, rule: EvictionRule, stopping: Stopping, now: datetime
    ) -> None:
        self._backend = backend
        self._scope = scope
        self._rule = rule
        self._stopping = stopping
        self._now = now
        self._before = _EVER if rule.retention is None else now - timedelta(days=rule.retention)

    def run(self) -> Evicted:
        self._examples: list[str] = []
        deleted = ended = archived = 0
        finished, ages = True, self._rule.retention is not None
        if ages:
            deleted, finished = self._delete_superseded()
        if finished and ages and self._rule.min_weight > 0:
            ended, finished = self._end_weak()
        # a look at every entity: in a transaction it would keep writers waiting
        if finished and ages and self._find_idle(1):
            archived, finished = self._repeat(self._archive_idle)
        if finished and self._rule.max_entities:
            capped, finished = self._archive_beyond_cap()
            archived += capped
        return Evicted(
            deleted_facts=deleted,
            ended_facts=ended,
            archived_entities=archived,
            examples=tuple(self._examples[:_EXAMPLES]),
            finished=finished,
            at=self._now,
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
        over = [edge for edge in page if edge.valid_to is None or edge.valid_to <= self._before]
        if over:
            mark = self._backend.find_job_state(self._scope, DELETED)
            mark = replace(mark, done_at=self._now, episodes=mark.episodes + len(over))
            removals = tuple(Removal("edge", edge.id) for edge in over)
            self._backend.write(self._scope, Changes(removals=removals, marks=(mark,)))
            self._examples += [edge.fact for edge in over[: _EXAMPLES - len(self._examples)]]
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
        weak = [
            edge
            for edge, weight in zip(edges, weights.tolist(), strict=True)
            if edge.is_active
            and weight < self._rule.min_weight
            and max(edge.recorded_at, edge.last_retrieved_at or edge.recorded_at) <= self._before
        ]
        stated = self._stated_lately(weak)
        return [edge for edge in weak if edge.id not in stated]

    def _stated_lately(self, edges: Sequence[Edge]) -> set[str]:
        """Return ids of the facts that an episode within the retention stated, be it again."""
        newest = {edge.id: max(edge.episode_ids) for edge in edges if edge.episode_ids}  # ids are in the order of time
        episodes = self._backend.get_episodes([self._scope], sorted(set(newest.values())))
        lately = {episode.id for episode in episodes.values() if episode.recorded_at > self._before}
        return {edge_id for edge_id, episode_id in newest.items() if episode_id in lately}

    def _end(self, ids: Sequence[str]) -> int:
        now = self._backend.get_edges([self._scope], ids)  # as they are in this transaction
        weak = self._weak(list(now.values()))
        closings = tuple(EdgeExpiry(edge.id, max(self._now, edge.valid_from), self._now) for edge in weak)
        self._backend.write(self._scope, Changes(closings=closings))
        return len(closings)

    def _archive_idle(self) -> int:
        idle = self._backend.get_entities([self._scope], self._find_idle(_BATCH))
        return self._archive(list(idle.values()))

    def _find_idle(self, limit: int) -> list[str]:
        return self._backend.find_idle(self._scope, before=self._before, now=self._now, limit=limit)

    def _archive_beyond_cap(self) -> tuple[int, bool]:
        """Archive until the cap holds; whom, is asked outside of transactions: everybody's facts are counted for it."""
        archived = 0
        while beyond := self._beyond_cap():
            ids = self._backend.find_least_connected(self._scope, limit=min(beyond, _ROUND))
            rows = self._backend.get_entities([self._scope], ids)
            done, finished = self._archive_round([rows[i] for i in ids if i in rows])
            archived += done
            if not done or not finished:
                return archived, finished
        return archived, True

    def _archive_round(self, found: Sequence[Entity]) -> tuple[int, bool]:
        """Archive the first of those that were found, as many as are beyond the cap by now."""
        archived = 0
        for start in range(0, len(found), _BATCH):
            batch = found[start : start + min(_BATCH, self._beyond_cap())]
            archived += self._backend.atomic(lambda rows=batch: self._archive(self._unchanged(rows)))
            if self._stopping():
                return archived, False
        return archived, True

    def _beyond_cap(self) -> int:
        counts = self._backend.stats(self._scope)
        return max(0, counts.entities - counts.archived_entities - self._rule.max_entities)

    def _unchanged(self, entities: Sequence[Entity]) -> list[Entity]:
        """Return those that are still as they were found: neither gone, nor hidden, nor seen since."""
        now = self._backend.get_entities([self._scope], [entity.id for entity in entities])
        return [entity for entity in entities if now.get(entity.id) == entity]

    def _archive(self, entities: Sequence[Entity]) -> int:
        archived = tuple(entity.changed(archived_at=self._now) for entity in entities)
        self._backend.write(self._scope, Changes(entities=archived))
        return len(archived)


def decay_rule(settings: Settings) -> DecayRule:
    """Return how counts fade by the settings."""
    return DecayRule(settings.link_weight_decay_lambda, settings.link_weight_decay_interval)


def eviction_rule(settings: Settings) -> EvictionRule:
    """Return what is evicted by the settings."""
    return EvictionRule(settings.expired_edge_retention_days, settings.min_edge_weight, settings.max_entities)


def upkeep_jobs(backend: GraphBackend, settings: Settings) -> list[UpkeepJob]:
    """Return eviction and decay, those that the settings switch on; more can stand beside them."""

    def run_eviction(scope: Scope, stopping: Stopping) -> bool:
        return eviction.evict(backend, scope, eviction_rule(settings), stopping).finished

    def run_decay(scope: Scope, stopping: Stopping) -> bool:
        eviction.decay(backend, scope, decay_rule(settings), stopping)
        return not eviction.is_interrupted(backend, scope)

    evicts = settings.eviction and not eviction_rule(settings).does_nothing
    jobs = ((evicts, eviction.EVICTION_JOB, run_eviction), (settings.decay, eviction.DECAY_JOB, run_decay))
    return [UpkeepJob(name, run) for wanted, name, run in jobs if wanted]
