"""Eviction of superseded facts and idle entities, decay of retrieval counts, and their jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from graphmem.inference.premises import find_dependents, rejected_with_premises, write_facts
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
from graphmem.models.base import START_OF_TIME
from graphmem.protocols import GraphBackend, run_and_roll_back
from graphmem.recall.scoring import effective_confidence
from graphmem.settings import Settings
from graphmem.upkeep.schedule import Stopping, UpkeepJob

DECAY_JOB = "decay"
DECAY_PROGRESS = "retrieval counts"
"""Name of the job state with the progress of the decay in a scope, scheduled or manual."""
_BETWEEN_DECAYS = timedelta(hours=1)  # between scheduled ones: a decay reads every fact that was ever retrieved


@dataclass(frozen=True, slots=True)
class DecayRule:
    """Parameters of the decay of retrieval counts.

    Attributes
    ----------
    rate
        λ in ``count × exp(−λ × days)`` (setting `link_weight_decay_lambda`).
    interval
        Days after a retrieval during which the count of a fact doesn't decay (setting `link_weight_decay_interval`).
    """

    rate: float
    interval: float


def decay(backend: GraphBackend, scope: Scope, rule: DecayRule, stopping: Stopping, now: datetime | None = None) -> int:
    """Lower the retrieval counts of facts that weren't retrieved recently.

    Processes page by page; each page is one transaction that also stores the progress. An interrupted run resumes from
    there with its original start time, so that no count is lowered twice. An immediate second run changes nothing,
    because no time has passed.

    Parameters
    ----------
    backend, scope
        Store and scope of the facts.
    rule
        Rate and interval of the decay.
    stopping
        Called after each page; True leaves the rest to the next run.
    now
        Time up to which counts decay; defaults to the present.

    Returns
    -------
    int
        Number of facts processed: those with a count above 0.
    """
    processed = 0
    moment = utc_now() if now is None else now
    while True:
        done, more = backend.atomic(lambda: _page(backend, scope, rule, moment))
        processed += done
        if not more or stopping():
            return processed


def is_interrupted(backend: GraphBackend, scope: Scope) -> bool:
    """Return whether a decay of this scope was started and not finished."""
    return backend.find_job_state(scope, DECAY_PROGRESS).begun_at is not None


def _page(backend: GraphBackend, scope: Scope, rule: DecayRule, now: datetime) -> tuple[int, bool]:
    state = backend.find_job_state(scope, DECAY_PROGRESS)
    begun = state.begun_at or now
    if state.done_at is not None and begun <= state.done_at:
        return 0, False
    done, cursor = backend.decay_retrievals(
        scope,
        rate=rule.rate,
        idle_since=begun - timedelta(days=rule.interval),
        since=state.done_at,
        now=begun,
        after=state.cursor,
    )
    after = (
        replace(state, begun_at=begun, cursor=cursor)
        if cursor
        else replace(state, done_at=begun, begun_at=None, cursor="")
    )
    backend.write(scope, Changes(job_states=(after,)))
    return done, bool(cursor)


EVICTION_JOB = "eviction"
DELETED = "deleted facts"
"""Name of the job state whose `episodes` field counts the facts that evictions have deleted in a scope so far."""
_BATCH = 500  # rows in one transaction
_ROUND = 5000  # archiving candidates selected at once
_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class EvictionRule:
    """Parameters of an eviction.

    Attributes
    ----------
    retention
        Days after which a superseded fact is deleted, and an entity that has no active facts, wasn't mentioned and has
        no fact superseded since is archived (setting `expired_edge_retention_days`); None never does.
    min_weight
        Active facts with a lower effective confidence that neither began nor were stated or retrieved within the
        retention are ended (setting `min_edge_weight`); 0 ends none. Requires a retention.
    max_entities
        Maximum number of entities that aren't archived; 0 is no cap (setting `max_entities`).
    """

    retention: float | None
    min_weight: float = 0.0
    max_entities: int = 0

    @property
    def does_nothing(self) -> bool:
        """Whether this rule evicts nothing."""
        return self.retention is None and not self.max_entities


class Evicted(Model):
    """Result of an eviction, or of a dry run.

    Attributes
    ----------
    deleted_facts
        Number of superseded facts deleted.
    ended_facts
        Number of weak facts ended; their rows are deleted when the retention has passed.
    archived_entities
        Number of entities hidden from recall, except by name; a new mention restores them.
    examples
        Some of the deleted facts.
    dry_run
        Whether this is the result of a dry run that changed nothing.
    finished
        False if it stopped early because the store is being closed; the next run continues.
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
    """Delete facts and archive entities by the rule, in transactions of bounded size. Idempotent.

    Parameters
    ----------
    backend, scope
        Store and scope to evict from.
    rule
        Retention, minimum weight and cap.
    stopping
        Called after each transaction; True leaves the rest to the next run.
    now
        Reference time for ages; defaults to the present.
    dry_run
        Change nothing: run everything in one transaction and roll it back.
    """
    eviction = _Eviction(backend, scope, rule, stopping, utc_now() if now is None else now)
    return run_and_roll_back(backend, eviction.run).changed(dry_run=True) if dry_run else eviction.run()


class _Eviction:
    def __init__(
        self, backend: GraphBackend, scope: Scope, rule: EvictionRule, stopping: Stopping, now: datetime
    ) -> None:
        self._backend = backend
        self._scope = scope
        self._rule = rule
        self._stopping = stopping
        self._now = now
        self._examples: list[str] = []
        self._before = START_OF_TIME if rule.retention is None else now - timedelta(days=rule.retention)

    def run(self) -> Evicted:
        deleted = ended = archived = 0
        finished, ages = True, self._rule.retention is not None
        if ages:
            deleted, finished = self._delete_superseded()
        if finished and ages and self._rule.min_weight > 0:
            ended, finished = self._end_weak()
        # scans every entity; inside a transaction it would block writers
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
        """Run a step in a new transaction each time until it returns 0.

        Returns
        -------
        tuple[int, bool]
            The sum of its results, and False if it was stopped early.
        """
        done = 0
        while count := self._backend.atomic(step):
            done += count
            if self._stopping():
                return done, False
        return done, True

    def _delete_superseded(self) -> tuple[int, bool]:
        """Delete the facts that expired, and whose validity ended, before the retention period."""
        deleted, after = 0, ""
        while True:
            done, after = self._backend.atomic(lambda after=after: self._delete_page(after))
            deleted += len(done)
            self._examples += done[: _EXAMPLES - len(self._examples)]
            if not after:
                return deleted, True
            if done and self._stopping():
                return deleted, False

    def _delete_page(self, after: str) -> tuple[list[str], str]:
        """Delete ended facts of a page of superseded ones; return their sentences and the last id ("" at the end)."""
        query = EdgeQuery(window=("expired_at", START_OF_TIME, self._before), versions="all")
        page = self._backend.find_edges([self._scope], query, after=after, limit=_BATCH)
        over = self._without_rejected([e for e in page if e.valid_to is None or e.valid_to <= self._before])
        if over:
            state = self._backend.find_job_state(self._scope, DELETED)
            state = replace(state, done_at=self._now, episodes=state.episodes + len(over))
            removals = tuple(Removal("edge", edge.id) for edge in over)
            write_facts(self._backend, self._scope, Changes(removals=removals, job_states=(state,)))
        return [edge.fact for edge in over], page[-1].id if page else ""

    def _without_rejected(self, over: Sequence[Edge]) -> list[Edge]:
        """Leave out rejected inferred facts and their premises; inference would add deleted facts again.

        An erasure finds the rejected facts, which somebody ended, by their premises.
        """
        rows = {edge.id: edge for edge in over}
        rows |= find_dependents(self._backend, self._scope, rows)
        needed = {row.id for row in rejected_with_premises(rows.values())}
        return [edge for edge in over if edge.id not in needed]

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
            and not edge.is_inferred
            and weight < self._rule.min_weight
            and max(edge.recorded_at, edge.valid_from, edge.last_retrieved_at or edge.recorded_at) <= self._before
        ]
        stated = self._stated_lately(weak)
        return [edge for edge in weak if edge.id not in stated]

    def _stated_lately(self, edges: Sequence[Edge]) -> set[str]:
        """Return ids of the facts that an episode within the retention stated, for the first time or again."""
        newest = {edge.id: max(edge.episode_ids) for edge in edges if edge.episode_ids}  # ids are in the order of time
        episodes = self._backend.get_episodes([self._scope], sorted(set(newest.values())))
        lately = {episode.id for episode in episodes.values() if episode.recorded_at > self._before}
        return {edge_id for edge_id, episode_id in newest.items() if episode_id in lately}

    def _end(self, ids: Sequence[str]) -> int:
        now = self._backend.get_edges([self._scope], ids)  # read again in this transaction
        weak = self._weak(list(now.values()))
        expiries = tuple(EdgeExpiry(edge.id, max(self._now, edge.valid_from), self._now) for edge in weak)
        write_facts(self._backend, self._scope, Changes(expiries=expiries))
        return len(expiries)

    def _archive_idle(self) -> int:
        idle = self._backend.get_entities([self._scope], self._find_idle(_BATCH))
        return self._archive(list(idle.values()))

    def _find_idle(self, limit: int) -> list[str]:
        return self._backend.find_idle(self._scope, before=self._before, now=self._now, limit=limit)

    def _archive_beyond_cap(self) -> tuple[int, bool]:
        """Archive entities until the cap holds.

        Candidates are selected outside of transactions, because the ranking counts the facts of every entity.
        """
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
        """Archive the first of the candidates, up to the number that now exceeds the cap."""
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
        """Return the entities whose stored row is unchanged: not removed, archived or mentioned since."""
        now = self._backend.get_entities([self._scope], [entity.id for entity in entities])
        return [entity for entity in entities if now.get(entity.id) == entity]

    def _archive(self, entities: Sequence[Entity]) -> int:
        archived = tuple(entity.changed(archived_at=self._now) for entity in entities)
        self._backend.write(self._scope, Changes(entities=archived))
        return len(archived)


def decay_rule(settings: Settings) -> DecayRule:
    """Return the decay rule of the settings."""
    return DecayRule(settings.link_weight_decay_lambda, settings.link_weight_decay_interval)


def eviction_rule(settings: Settings) -> EvictionRule:
    """Return the eviction rule of the settings."""
    return EvictionRule(settings.expired_edge_retention_days, settings.min_edge_weight, settings.max_entities)


def upkeep_jobs(backend: GraphBackend, settings: Settings) -> list[UpkeepJob]:
    """Return the eviction and decay jobs that the settings enable."""

    def run_eviction(scope: Scope, stopping: Stopping) -> bool:
        return evict(backend, scope, eviction_rule(settings), stopping).finished

    def run_decay(scope: Scope, stopping: Stopping) -> bool:
        state = backend.find_job_state(scope, DECAY_PROGRESS)
        if state.begun_at is None and state.done_at is not None and utc_now() - state.done_at < _BETWEEN_DECAYS:
            return True
        decay(backend, scope, decay_rule(settings), stopping)
        return not is_interrupted(backend, scope)

    evicts = settings.eviction and not eviction_rule(settings).does_nothing
    jobs = ((evicts, EVICTION_JOB, run_eviction), (settings.decay, DECAY_JOB, run_decay))
    return [UpkeepJob(name, run) for wanted, name, run in jobs if wanted]
