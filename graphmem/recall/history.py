"""History of facts: versions, differences between two times, and counts per entity (spec: time)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from graphmem.models import AsOf, Edge, EdgeQuery, Entity, Scope, TimeAxis, is_retracted
from graphmem.protocols import GraphBackend
from graphmem.recall.recall import to_facts
from graphmem.results import Diff, EntityCounts, Fact

_COUNTED_AT_ONCE = 500  # entities per batch


def history(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    source_ids: Sequence[str],
    *,
    relation: str | None,
    text: str | None,
    as_of: AsOf | None,
    limit: int,
    now: datetime,
) -> tuple[Fact, ...]:
    """Return the versions of an entity's facts, newest first, without those whose sources have expired by now.

    With `as_of`, return the versions recorded by `known` that had started by `valid`, without ends that were
    recorded later.
    """
    query = EdgeQuery(
        source_ids=tuple(source_ids),
        relations=None if relation is None else (relation,),
        text=text,
        versions="all",
    )
    if as_of is None:
        return to_facts(backend, scopes, backend.find_edges(scopes, query, limit=limit, newest_first=True), now)
    edges = [
        e for e in backend.all_edges(scopes, query) if e.recorded_at <= as_of.known and e.valid_from <= as_of.valid
    ]
    edges.sort(key=lambda e: (e.valid_from, e.recorded_at, e.id), reverse=True)
    return to_facts(backend, scopes, [e.as_known(as_of.known) for e in edges[:limit]], now)


def diff(
    backend: GraphBackend, scopes: Sequence[Scope], start: datetime, end: datetime, *, limit: int, now: datetime
) -> Diff:
    """Return the facts that began, ended or were recorded in ``(start, end]``, without those that have expired by now.

    Retracted facts (never true) are listed neither as begun nor as ended.
    """

    def within(axis: TimeAxis) -> list[Edge]:
        query = EdgeQuery(window=(axis, start, end), versions="all")
        return backend.find_edges(scopes, query, limit=limit + 1)

    began, ended, learned = within("valid_from"), within("valid_to"), within("recorded_at")
    truncated = any(len(edges) > limit for edges in (began, ended, learned))

    def not_retracted(edges: Sequence[Edge]) -> list[Edge]:
        return [e for e in edges if not is_retracted(e)]

    return Diff(
        began=to_facts(backend, scopes, not_retracted(began)[:limit], now),
        ended=to_facts(backend, scopes, not_retracted(ended)[:limit], now),
        learned=to_facts(backend, scopes, learned[:limit], now),
        truncated=truncated,
    )


def count_entities(
    backend: GraphBackend, scopes: Sequence[Scope], entities: Sequence[Entity], as_of: AsOf | None
) -> list[EntityCounts]:
    """Return entities with the numbers of their mentions and of their visible facts at a time."""
    facts: Counter[str] = Counter()
    mentions: Counter[str] = Counter()
    ids = [entity.id for entity in entities]
    for start in range(0, len(ids), _COUNTED_AT_ONCE):
        some = ids[start : start + _COUNTED_AT_ONCE]
        batch = set(some)
        for edge in backend.all_edges(scopes, EdgeQuery(touching=tuple(some), as_of=as_of)):
            facts.update({edge.source_id, edge.target_id} & batch)
        for mention in backend.all_mentions(scopes, entity_ids=some):
            mentions[mention.entity_id] += as_of is None or mention.seen_at <= as_of.valid
    return [EntityCounts(entity=e, mentions=mentions[e.id], facts=facts[e.id]) for e in entities]
