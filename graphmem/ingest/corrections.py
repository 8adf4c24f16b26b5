"""Corrections of stored facts by hand and by extracting again, and look-ups of facts by what ended them.

Neither deletes a fact. One that only these episodes state, and that the new extraction misses, is retracted: it stays
in the history and is visible to reads as of an earlier time. What a retracted fact had ended, or an end that only these
episodes stated and the new extraction misses, goes on. Mentions are replaced, and entities without remaining mentions
or facts are archived. Facts that had ended for other reasons don't change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial

from graphmem.errors import InvalidInput, NotFound
from graphmem.inference.premises import write_facts
from graphmem.ingest.fact_ledger import FactLedger, entity_names, open_ledger
from graphmem.models import (
    STATED_KINDS,
    Changes,
    Edge,
    EdgeEnd,
    EdgeKey,
    EdgeQuery,
    Entity,
    Merge,
    MergeQuery,
    Removal,
    Scope,
    ended,
    is_retracted,
    retracted,
    utc_now,
    with_end,
)
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import fact_text

# By hand ------------------------------------------------------------------------------------------


def retract_fact(backend: GraphBackend, scope: Scope, ontology: Ontology, fact_id: str, reason: str) -> Edge:
    """Record that a fact never held, and let what it had ended go on; a second retraction changes nothing.

    Raises
    ------
    NotFound
        If the scope has no such fact.
    """

    def change(edge: Edge, now: datetime) -> Edge:
        if is_retracted(edge):
            return edge
        return retracted(_ended_by_hand(edge, edge.valid_from, now), now, fact_text(reason) or "retracted")

    return _amended(backend, scope, ontology, fact_id, change)


def end_fact(
    backend: GraphBackend, scope: Scope, ontology: Ontology, fact_id: str, at: datetime | None, reason: str
) -> Edge:
    """Record when a fact ended, by default now. A known end moves: a planned one in any direction, others only sooner.

    Raises
    ------
    NotFound
        If the scope has no such fact.
    InvalidInput
        If it hadn't begun by then, or had ended already.
    """

    def change(edge: Edge, now: datetime) -> Edge:
        end = now if at is None else at
        refusal = f"fact {fact_id} can't end at {end.isoformat()}"
        if end <= edge.valid_from:
            raise InvalidInput(f"{refusal}: it begins at {edge.valid_from.isoformat()}; retract it if it never held")
        if edge.valid_to is not None and edge.valid_to <= end:
            is_planned = edge.valid_to > now and not edge.superseded_by
            if not is_planned:
                raise InvalidInput(f"{refusal}: it ends at {edge.valid_to.isoformat()}")
        return ended(_ended_by_hand(edge, end, now), end, now, fact_text(reason) or "over")

    return _amended(backend, scope, ontology, fact_id, change)


def _ended_by_hand(edge: Edge, at: datetime, now: datetime) -> Edge:
    """Return a fact with an end that no episode states."""
    return with_end(edge, EdgeEnd(by="", at=at, told_at=now))


def _amended(
    backend: GraphBackend, scope: Scope, ontology: Ontology, fact_id: str, change: Callable[[Edge, datetime], Edge]
) -> Edge:
    """Write what `change` makes of a fact at the time of the write, and return it as it is stored then."""

    def write() -> Edge:
        edge = backend.get_edges([scope], [fact_id]).get(fact_id)
        if edge is None:
            raise NotFound(f"fact {fact_id} is not in scope {scope}")
        now = utc_now()
        changed = change(edge, now)
        if edge.is_inferred:
            write_facts(backend, scope, Changes(edges=(changed,)))
        else:
            gone = with_folded(backend, scope, [edge]) if is_retracted(changed) else {}
            _write_reopened(backend, scope, ontology, gone, [changed], now)
        return backend.get_edges([scope], [fact_id])[fact_id]

    return backend.atomic(write)


def reopen_ended(backend: GraphBackend, scope: Scope, ontology: Ontology, fact_ids: Collection[str]) -> None:
    """Let the facts go on that some facts had ended, if these are retracted; in one transaction."""

    def write() -> None:
        retracted = [edge for edge in backend.get_edges([scope], list(fact_ids)).values() if is_retracted(edge)]
        _write_reopened(backend, scope, ontology, with_folded(backend, scope, retracted), [], utc_now())

    backend.atomic(write)


def _write_reopened(
    backend: GraphBackend,
    scope: Scope,
    ontology: Ontology,
    gone: Collection[str],
    changed: Sequence[Edge],
    now: datetime,
) -> None:
    """Write changed facts, and take the ends back that the facts with the ids `gone` brought to others."""
    ended = find_ended(backend, scope, gone)
    known = find_versions(backend, scope, ontology, (*changed, *ended.values()))
    ledger = open_ledger(backend, scope, ontology, known, now)
    for edge in changed:
        ledger.change(edge)
    for edge_id in ended:
        ledger.reopen(edge_id, gone)
    removals = ledger.restate(partial(entity_names, backend, scope))
    changes = Changes(
        expiries=ledger.expiries, edges=ledger.edges, corroborations=ledger.corroborations, removals=removals
    )
    write_facts(backend, scope, changes)


# By extracting again ------------------------------------------------------------------------------


Stated = Collection[tuple[EdgeKey, datetime]]
"""(key, valid_from) of the facts in the new extraction."""


class EarlierExtraction:
    """Stored results of an earlier extraction of some episodes. Use it inside the transaction that replaces them.

    Parameters
    ----------
    backend, scope
        Store and scope of the episodes.
    ontology
        Defines which relations are single-valued.
    episode_ids
        Ids of the episodes that are extracted again; without any, nothing is read.
    """

    def __init__(self, backend: GraphBackend, scope: Scope, ontology: Ontology, episode_ids: Sequence[str]) -> None:
        self._backend, self._scope = backend, scope
        self._ids = set(episode_ids)
        ids = backend.find_edges_of_episodes(scope, episode_ids) if episode_ids else ()
        stated = backend.get_edges([scope], ids) if ids else {}
        self._facts = {i: edge for i, edge in stated.items() if not is_retracted(edge.without_ends(self._ids))}
        self._withdrawn = {
            (edge.key, episode_id)
            for edge in stated.values()
            if _is_retracted_by_hand(edge)
            for episode_id in edge.episode_ids
        }
        self._mentions = backend.all_mentions([scope], episode_ids=episode_ids) if episode_ids else []
        self._folded = with_folded(backend, scope, self._facts.values())
        self._ended = find_ended(backend, scope, (*episode_ids, *self._folded))
        self._versions = find_versions(backend, scope, ontology, self._ended.values())
        self._retracted: dict[str, Edge] = {}

    @property
    def known(self) -> Iterable[Edge]:
        """Facts that may be retracted or reactivated, and the versions that decide about it."""
        return (*self._facts.values(), *self._ended.values(), *self._versions.values())

    def is_withdrawn(self, fact: Edge) -> bool:
        """Return whether a fact was retracted by hand as the same episode had stated it; it isn't stored again."""
        return any((fact.key, episode_id) in self._withdrawn for episode_id in fact.episode_ids)

    def retract(self, ledger: FactLedger, stated: Stated) -> None:
        """Retract the facts of only these episodes that are missing from `stated`. Call it before adding new facts.

        A fact that others state as well loses these episodes if a beginning that they stated is missing.
        """
        for edge in self._facts.values():
            if self._ids.issuperset(edge.episode_ids) and not _is_restated(edge, stated):
                ledger.retract(edge.id)
                self._retracted[edge.id] = edge
            elif any(each.by in self._ids and (edge.key, each.at) not in stated for each in edge.beginnings):
                ledger.narrow(edge.id, self._ids)
        self._reopen(ledger, {i for i, fact_id in self._folded.items() if fact_id in self._retracted})

    def amend(self, ledger: FactLedger, stated: Stated) -> None:
        """Take back what these episodes don't state any more of other facts. Call it after adding new facts."""
        self._reopen(ledger, self._ids)
        for edge in self._facts.values():
            if edge.id not in self._retracted and not _is_restated(edge, stated):
                ledger.narrow(edge.id, self._ids)

    def _reopen(self, ledger: FactLedger, by: Collection[str]) -> None:
        """Take the ends back that these episodes or facts brought to facts that aren't retracted."""
        for edge_id in self._ended:
            if edge_id not in self._retracted:
                ledger.reopen(edge_id, by)

    def removals(self, mentions: Collection[tuple[str, str]]) -> tuple[Removal, ...]:
        """Return the removals of mentions that are missing from `mentions`, given as (entity id, episode id)."""
        return tuple(
            Removal("mention", m.entity_id, m.episode_id)
            for m in self._mentions
            if (m.entity_id, m.episode_id) not in mentions
        )

    def orphans(self, ledger: FactLedger, seen: Collection[str], now: datetime) -> tuple[Entity, ...]:
        """Return as archived the entities without remaining mentions or facts; `seen` holds the ids still in use."""
        ids = {mention.entity_id for mention in self._mentions} | _entities_of(self._retracted.values())
        ids -= {*seen, *_entities_of(ledger.edges)}
        if not ids:
            return ()
        mentions = self._backend.all_mentions([self._scope], entity_ids=sorted(ids))
        ids -= {mention.entity_id for mention in mentions if mention.episode_id not in self._ids}
        if not ids:
            return ()
        touching = EdgeQuery(touching=tuple(sorted(ids)), kinds=STATED_KINDS, versions="active")
        facts = self._backend.all_edges([self._scope], touching)
        ids -= _entities_of(edge for edge in facts if edge.id not in self._retracted)
        found = self._backend.get_entities([self._scope], sorted(ids))
        return tuple(entity.changed(archived_at=now) for entity in found.values() if entity.archived_at is None)


def _entities_of(edges: Iterable[Edge]) -> set[str]:
    """Return the ids of the entities that facts are about."""
    return {entity_id for edge in edges for entity_id in (edge.source_id, edge.target_id)}


def _is_retracted_by_hand(edge: Edge) -> bool:
    """Return whether somebody, and not only an episode, said that a fact never held."""
    return is_retracted(edge) and any(end.by == "" and end.at == edge.valid_from for end in edge.ends)


def _is_restated(edge: Edge, stated: Stated) -> bool:
    """Return whether a new extraction states a fact; an assumed beginning may have moved since it was told."""
    begins = {edge.valid_from, edge.told_at} if edge.valid_from_assumed and edge.told_at else {edge.valid_from}
    return any((edge.key, begin) in stated for begin in begins)


# Look-ups -----------------------------------------------------------------------------------------


def find_ended(backend: GraphBackend, scope: Scope, by: Collection[str]) -> dict[str, Edge]:
    """Return the facts, by id, that some episodes or facts ended."""
    query = EdgeQuery(ended_by=tuple(by), kinds=STATED_KINDS, versions="all")
    return {edge.id: edge for edge in backend.all_edges([scope], query)} if by else {}


def find_versions(backend: GraphBackend, scope: Scope, ontology: Ontology, edges: Iterable[Edge]) -> dict[str, Edge]:
    """Return all versions of facts, by id; of a single-valued relation also those with other targets."""
    slots: dict[tuple[str, str], None] = {}
    keys: dict[EdgeKey, None] = {}
    for edge in edges:
        if ontology.is_single_valued(edge.relation):
            slots[edge.source_id, edge.relation] = None
        else:
            keys[edge.key] = None
    queries = (
        EdgeQuery(slots=tuple(slots), versions="all"),
        EdgeQuery(keys=tuple(keys), versions="all"),
    )
    asked = (query for query in queries if query.slots or query.keys)
    return {edge.id: edge for query in asked for edge in backend.all_edges([scope], query)}


def with_folded(backend: GraphBackend, scope: Scope, edges: Collection[Edge]) -> dict[str, str]:
    """Return the ids of facts, and of those that merges folded into them: id → id of the fact that stands for it.

    What a folded fact had ended still names it, so that it is right again when the merge is undone.
    """
    merges: dict[str, Merge] = {}
    about = _entities_of(edges)
    while about:
        found = backend.all_merges([scope], MergeQuery(entity_ids=tuple(about)))
        new = {merge.id: merge for merge in found if merge.id not in merges}
        merges.update(new)
        about = {merge.merged.id for merge in new.values()}
    folded = [(f.edge.id, f.into.id) for merge in merges.values() for f in merge.folded if f.into is not None]
    ids = {edge.id: edge.id for edge in edges}
    while further := {gone: ids[into] for gone, into in folded if into in ids and gone not in ids}:
        ids.update(further)
    return ids
