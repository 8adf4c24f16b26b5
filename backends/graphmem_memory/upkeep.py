"""Upkeep: the merge ledger, states of jobs, decay of retrieval counts, idle entities, and erasure of a scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from graphmem.models import Edge, Entity, JobState, Merge, MergeQuery, Scope, decayed
from graphmem.protocols import MergeStore, UpkeepStore, require_no_cursor
from graphmem_memory.index import state_of
from graphmem_memory.matching import edge_is_visible
from graphmem_memory.tables import JobStateRow, K, MemoryRole, R, StateRow, Store, Table

_DECAY_PAGE = 1000


class MemoryMerges(MemoryRole, MergeStore):
    """The merge ledger."""

    def find_merges(
        self,
        scopes: Sequence[Scope],
        query: MergeQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Merge]:
        """Return a page of the merges that match."""
        require_no_cursor(after, newest_first=newest_first)
        with self._store.lock:
            table = self._store.merges
            candidates = None if query.entity_ids is None else table.keys_of("entity", query.entity_ids)
            if query.ids is not None:
                candidates = set(query.ids) if candidates is None else candidates & set(query.ids)
            rows = table.read(scopes, candidates, after=after)
            found: Iterable[Merge] = (row for row in rows if query.undone or row.undone_at is None)
            if newest_first:
                found = sorted(found, key=lambda m: m.id, reverse=True)
            return list(islice(found, limit))


class MemoryUpkeep(MemoryRole, UpkeepStore):
    """States of jobs, decay, idle entities and erasure."""

    def find_job_states(self, scope: Scope) -> list[JobState]:
        """Return the job states of a scope, ordered by job."""
        with self._store.lock:
            return [row.job_state for row in self._store.job_states.read([scope])]

    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts."""
        with self._writing():
            counted = (edge for edge in self._store.edges.read([scope], after=after) if edge.retrieval_count > 0)
            page = list(islice(counted, _DECAY_PAGE))
            for edge in page:
                count = decayed(
                    edge.retrieval_count, edge.last_retrieved_at, rate=rate, idle_since=idle_since, since=since, now=now
                )
                self._store.edges.put(edge.id, edge.changed(retrieval_count=count))
            return len(page), page[-1].id if len(page) == _DECAY_PAGE else ""

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities last seen and recorded by `before` that have no visible facts."""
        with self._store.lock:
            idle = (
                entity.id
                for entity in self._unarchived(scope)
                if entity.last_seen_at <= before
                and entity.recorded_at <= before
                and not any(edge_is_visible(edge, None, now) for edge in self._edges_about(entity.id))
            )
            return list(islice(idle, limit))

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities, those with the fewest active facts first, then those last seen earliest."""
        with self._store.lock:
            ranked = sorted((self._degree(e.id), e.last_seen_at, e.id) for e in self._unarchived(scope))
            return [entity_id for _, _, entity_id in ranked[:limit]]

    def _unarchived(self, scope: Scope) -> Iterator[Entity]:
        return (entity for entity in self._store.entities.read([scope]) if entity.archived_at is None)

    def _degree(self, entity_id: str) -> int:
        return sum(edge.is_active for edge in self._edges_about(entity_id))

    def _edges_about(self, entity_id: str) -> Iterator[Edge]:
        table = self._store.edges
        keys = table.keys_of("source", [entity_id]) | table.keys_of("target", [entity_id])
        return (edge for key in keys if (edge := table.get(key)) is not None)

    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts stated by these episodes."""
        with self._store.lock:
            table = self._store.edges
            return [edge.id for edge in table.read([scope], table.keys_of("episode", episode_ids))]

    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope; the generation of its index stays, so that no value is used twice."""
        with self._writing():
            _clear(self._store, scope)

    def scrub(self) -> bool:
        """Do nothing: nothing is on disk."""
        return True


def put_job_state(store: Store, scope: Scope, job_state: JobState) -> None:
    """Insert or replace a job state."""
    store.job_states.put((scope.key, job_state.job), JobStateRow(scope, job_state))


def _clear(store: Store, scope: Scope) -> None:
    generation = state_of(store, scope).generation
    _drop(store.claims, scope, (episode.id for episode in store.episodes.read([scope])))
    _drop(store.recalls, scope, (trace.id for trace in store.recalls.read([scope])))
    _drop(store.memberships, scope, (row.membership.key for row in store.memberships.read([scope])))
    _drop(store.communities, scope, (row.id for row in store.communities.read([scope])))
    _drop(store.merges, scope, (row.id for row in store.merges.read([scope])))
    mentions = ((row.mention.episode_id, row.mention.entity_id) for row in store.mentions.read([scope]))
    _drop(store.mentions, scope, mentions)
    _drop(store.edges, scope, (edge.id for edge in store.edges.read([scope])))
    aliases = ((scope.key, row.alias.alias, row.alias.entity_type) for row in store.aliases.read([scope]))
    _drop(store.aliases, scope, aliases)
    _drop(store.entities, scope, (entity.id for entity in store.entities.read([scope])))
    _drop(store.episodes, scope, (episode.id for episode in store.episodes.read([scope])))
    _drop(store.index, scope, ((f"{row.entry.position:020d}",) for row in store.index.read([scope])))
    _drop(store.job_states, scope, ((scope.key, row.job_state.job) for row in store.job_states.read([scope])))
    store.index_states.put(
        scope.key, StateRow(scope, replace(state_of(store, scope), model=None, generation=generation + 1))
    )


def _drop(table: Table[K, R], scope: Scope, keys: Iterable[K]) -> None:
    for key in list(keys):
        if (row := table.get(key)) is not None and row.scope == scope:
            table.put(key, None)
