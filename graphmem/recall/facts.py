"""Facts of stored edges, with names and trust: lists, versions, and what changed between two times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from graphmem.errors import NotFound
from graphmem.models import AsOf, Edge, EdgeQuery, Entity, Scope, TimeAxis, is_retracted
from graphmem.protocols import GraphBackend, expired_entities
from graphmem.recall.sources import sources_of, unexpired, with_trust
from graphmem.results import Diff, EntityCounts, Fact

Row = TypeVar("Row")
Live = TypeVar("Live")

_MORE = 4
_PAGE = 1000
_COUNTED_AT_ONCE = 500  # entities per batch


def to_fact(edge: Edge, source: str, target: str, **found: Any) -> Fact:
    """Return an edge as a `Fact` with the names of its ends; `found` holds scores and path."""
    return Fact(
        id=edge.id,
        source=source,
        relation=edge.relation,
        target=target,
        source_id=edge.source_id,
        target_id=edge.target_id,
        fact=edge.fact,
        edge_type=edge.edge_type,
        confidence=edge.confidence,
        valid_from=edge.valid_from,
        valid_to=edge.valid_to,
        recorded_at=edge.recorded_at,
        expired_at=edge.expired_at,
        superseded_by=edge.superseded_by,
        episode_ids=edge.episode_ids,
        retrieval_count=edge.retrieval_count,
        properties=edge.properties,
        certainty=edge.certainty,
        kind=edge.kind,
        valid_from_assumed=edge.valid_from_assumed,
        told_at=edge.told_at,
        end_reason=edge.end_reason,
        inferred_by=edge.inferred_by,
        **found,
    )


def to_facts(
    backend: GraphBackend, scopes: Sequence[Scope], edges: Sequence[Edge], now: datetime | None = None
) -> tuple[Fact, ...]:
    """Return edges as facts with the names of their ends and the trust of their sources; two round trips.

    With a time, facts all of whose episodes have expired by then are left out, and those inferred from them.
    """
    ids = dict.fromkeys(i for e in edges for i in (e.source_id, e.target_id))
    names: dict[str, Entity] = backend.get_entities(scopes, list(ids)) if ids else {}
    there = (e for e in edges if e.source_id in names and e.target_id in names)  # or they were erased meanwhile
    facts = [to_fact(e, names[e.source_id].name, names[e.target_id].name) for e in there]
    sources = sources_of(backend, scopes, facts)
    if now is not None:
        facts = unexpired(backend, scopes, facts, sources, now)
    return with_trust(facts, sources)


def live(
    read: Callable[[int], Sequence[Row]], unexpired: Callable[[Sequence[Row]], Sequence[Live]], limit: int
) -> Sequence[Live]:
    """Return the first rows, at most `limit`, that haven't expired.

    `read` returns the first rows, at most the number that it is called with; it is called again if too many expired.
    """
    wanted = limit
    while True:
        rows = read(wanted)
        found = unexpired(rows)
        if len(found) >= limit or len(rows) < wanted:
            return found[:limit]
        wanted *= _MORE


def live_facts(
    backend: GraphBackend, scopes: Sequence[Scope], read: Callable[[int], Sequence[Edge]], limit: int, now: datetime
) -> tuple[Fact, ...]:
    """Return the first facts that `read` returns, as `live` does, without those all of whose episodes have expired."""
    return tuple(live(read, lambda edges: to_facts(backend, scopes, edges, now), limit))


def live_entities(
    backend: GraphBackend, scopes: Sequence[Scope], read: Callable[[int], Sequence[Entity]], limit: int, now: datetime
) -> list[Entity]:
    """Return the first entities that `read` returns, as `live` does, without those that only expired episodes mention.

    Summaries are left out, as they may quote what has expired.
    """

    def unexpired(entities: Sequence[Entity]) -> list[Entity]:
        gone = expired_entities(backend, scopes, [entity.id for entity in entities], now)
        return [entity for entity in entities if entity.id not in gone]

    return [entity.changed(summary="") for entity in live(read, unexpired, limit)]


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
        read = partial(backend.find_edges, scopes, query, newest_first=True)
        return live_facts(backend, scopes, lambda most: read(limit=most), limit, now)
    edges = [
        e for e in backend.all_edges(scopes, query) if e.recorded_at <= as_of.known and e.valid_from <= as_of.valid
    ]
    edges.sort(key=_age, reverse=True)
    known = as_of.known
    return live_facts(backend, scopes, lambda most: [e.as_known(known) for e in edges[:most]], limit, now)


def edges_after(backend: GraphBackend, scopes: Sequence[Scope], query: EdgeQuery, after: str) -> list[Edge]:
    """Return the edges that match, newest first, from the one after that with a given id on.

    Raises
    ------
    NotFound
        If there is no edge of this id.
    """
    last = backend.get_edges(scopes, [after]).get(after)
    if last is None:
        raise NotFound(f"after: there is no fact {after!r} in scope {', '.join(map(str, scopes))}; begin again")
    older = (edge for edge in backend.all_edges(scopes, query) if _age(edge) < _age(last))
    return sorted(older, key=_age, reverse=True)


def _age(edge: Edge) -> tuple[datetime, datetime, str]:
    return edge.valid_from, edge.recorded_at, edge.id


def diff(
    backend: GraphBackend, scopes: Sequence[Scope], start: datetime, end: datetime, *, limit: int, now: datetime
) -> Diff:
    """Return the facts that began, ended or were recorded in ``(start, end]``, without those that have expired by now.

    Retracted facts (never true) are listed neither as begun nor as ended.
    """

    def within(axis: TimeAxis, *, retracted: bool = False) -> tuple[Fact, ...]:
        query = EdgeQuery(window=(axis, start, end), versions="all")
        edges = backend.all_edges(scopes, query, chunk=min(limit + 1, _PAGE))
        found = (edge for edge in edges if retracted or not is_retracted(edge))
        first: list[Edge] = []

        def read(most: int) -> list[Edge]:
            first.extend(islice(found, most - len(first)))
            return first

        return live_facts(backend, scopes, read, limit + 1, now)

    began, ended, learned = within("valid_from"), within("valid_to"), within("recorded_at", retracted=True)
    truncated = any(len(facts) > limit for facts in (began, ended, learned))
    return Diff(began=began[:limit], ended=ended[:limit], learned=learned[:limit], truncated=truncated)


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
