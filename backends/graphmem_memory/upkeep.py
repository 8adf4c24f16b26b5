"""What upkeep needs: marks, fading counts, entities that nothing holds, and a whole scope that goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from graphmem.models import Edge, Entity, Mark, Scope, decayed
from graphmem_memory.indexing import state_of
from graphmem_memory.matching import edge_is_visible
from graphmem_memory.tables import K, MarkRow, R, StateRow, Store, Table

_PAGE = 1000


def put_mark(store: Store, scope: Scope, mark: Mark) -> None:
    """Insert or replace a mark."""
    store.marks.put((scope.key, mark.job), MarkRow(scope, mark))


def find_marks(store: Store, scope: Scope) -> list[Mark]:
    """Return the marks of a scope, ordered by job."""
    return [row.mark for row in store.marks.read([scope])]


def decay_retrievals(
    store: Store,
    scope: Scope,
    *,
    rate: float,
    idle_since: datetime,
    since: datetime | None,
    now: datetime,
    after: str,
) -> tuple[int, str]:
    """Lower the retrieval counts of a page of facts."""
    counted = (edge for edge in store.edges.read([scope], after=after) if edge.retrieval_count > 0)
    page = list(islice(counted, _PAGE))
    for edge in page:
        count = decayed(
            edge.retrieval_count, edge.last_retrieved_at, rate=rate, idle_since=idle_since, since=since, now=now
        )
        store.edges.put(edge.id, edge.changed(retrieval_count=count))
    return len(page), page[-1].id if len(page) == _PAGE else ""


def _edges_about(store: Store, entity_id: str) -> Iterator[Edge]:
    keys = store.edges.keys_of("source", [entity_id]) | store.edges.keys_of("target", [entity_id])
    return (edge for key in keys if (edge := store.edges.get(key)) is not None)


def _degree(store: Store, entity_id: str) -> int:
    return sum(edge.is_active for edge in _edges_about(store, entity_id))


def _present(store: Store, scope: Scope) -> Iterator[Entity]:
    return (entity for entity in store.entities.read([scope]) if entity.archived_at is None)


def find_idle(store: Store, scope: Scope, before: datetime, now: datetime, limit: int) -> list[str]:
    """Return ids of entities that were last seen and recorded by `before`, and that no visible fact is about."""
    idle = (
        entity.id
        for entity in _present(store, scope)
        if entity.last_seen_at <= before
        and entity.recorded_at <= before
        and not any(edge_is_visible(edge, None, now) for edge in _edges_about(store, entity.id))
    )
    return list(islice(idle, limit))


def find_least_connected(store: Store, scope: Scope, limit: int) -> list[str]:
    """Return ids of entities, those with the fewest active facts first, then those seen longest ago."""
    ranked = sorted((_degree(store, e.id), e.last_seen_at, e.id) for e in _present(store, scope))
    return [entity_id for _, _, entity_id in ranked[:limit]]


def find_edges_of_episodes(store: Store, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
    """Return ids of the facts that one of these episodes stated."""
    return [edge.id for edge in store.edges.read([scope], store.edges.keys_of("episode", episode_ids))]


def clear(store: Store, scope: Scope) -> None:
    """Remove everything of a scope; the generation of its index stays, so that it is never taken twice."""
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
    _drop(store.marks, scope, ((scope.key, row.mark.job) for row in store.marks.read([scope])))
    store.index_states.put(
        scope.key, StateRow(scope, replace(state_of(store, scope), model=None, generation=generation + 1))
    )


def _drop(table: Table[K, R], scope: Scope, keys: Iterable[K]) -> None:
    for key in list(keys):
        if (row := table.get(key)) is not None and row.scope == scope:
            table.put(key, None)
