"""Facts that go on after an erasure: their end was only stated by what is forgotten, or their beginning was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from datetime import datetime

from graphmem.inference.premises import find_compatible
from graphmem.ingest.corrections import find_ended, find_versions, with_folded
from graphmem.ingest.fact_ledger import entity_names
from graphmem.ingest.supersession.decisions import settle, told_as_past
from graphmem.ingest.supersession.rules import (
    Compatible,
    begun_with,
    ends_from,
    is_over,
    supported,
    told_at,
    with_sources,
)
from graphmem.models import (
    Edge,
    EdgeEnd,
    end_of,
    ended,
    is_retracted,
    may_end,
    retracted,
    utc_now,
)
from graphmem.ontology import Ontology
from graphmem.upkeep.erasure import ErasureRequest
from graphmem.upkeep.succession import counts_in_slot, ended_by_later, successor

_SINGLE = 2  # parts of the slot of a single-valued relation
_END = ("valid_to", "expired_at", "superseded_by", "end_reason", "prior_valid_to")


def find_reopened(
    request: ErasureRequest, gone: Mapping[str, Edge], kept: Mapping[str, Edge]
) -> tuple[dict[str, Edge], Set[str]]:
    """Find the facts that ended only because of a forgotten statement, or counted as told by it first.

    Parameters
    ----------
    request
        The erasure.
    gone, kept
        Facts that are removed, and facts of the forgotten episodes that other episodes state as well; by id.

    Returns
    -------
    tuple
        The facts by id, with their validity without that statement; and the ids of what ends nothing any more.
    """
    backend, scope, ontology = request.backend, request.scope, request.ontology
    moved = {i: edge for i, edge in request.without_tellings(kept.values()).items() if edge != kept[i]}
    kept = {**kept, **moved}
    unstated = {i: e for i, e in {**gone, **kept}.items() if not request.episodes.keys().isdisjoint(e.episode_ids)}
    left = {i: kept.get(fact) for i, fact in with_folded(backend, scope, unstated.values()).items()}
    ended_facts = find_ended(backend, scope, request.episodes.keys() | left.keys())
    plans = [edge for edge in unstated.values() if edge.certainty == "plan"]
    single = [edge for edge in unstated.values() if ontology.is_single_valued(edge.relation)]
    versions = {**ended_facts, **find_versions(backend, scope, ontology, (*single, *plans, *ended_facts.values()))}
    remaining = {i: edge for i, edge in versions.items() if i not in gone}
    compatible = find_compatible(backend, scope, remaining, gone)
    there = {**{i: edge for i, edge in remaining.items() if not edge.is_inferred}, **moved}
    reopened = {**moved, **_Reopening(request, there.values(), gone, left, compatible).run()}
    over = ended_by_later({**there, **reopened}.values(), ontology, request.sources, utc_now(), compatible)
    reopened.update((edge.id, edge) for edge in over)
    came_true = list(_came_true(request, versions))
    settled = list(_settled(request, (*reopened.values(), *came_true), {**there, **reopened}, compatible))
    reopened.update((edge.id, edge) for edge in settled)
    staying = {i: edge for i, edge in gone.items() if i not in unstated}
    for edge in _restated(request, staying, reopened):
        if edge.id not in gone:
            reopened[edge.id] = edge
    return reopened, request.episodes.keys() | {i for i, edge in left.items() if edge is None}


def _came_true(request: ErasureRequest, versions: Mapping[str, Edge]) -> Iterator[Edge]:
    """Yield the plans that a telling, without a beginning of its own, after their day says came true."""
    planned = [edge for edge in versions.values() if edge.certainty == "plan"]
    names = with_folded(request.backend, request.scope, versions.values()) if planned else {}
    for edge in planned:
        fact = versions.get(names.get(edge.superseded_by or "", ""))
        is_same = fact is not None and fact.key == edge.key and fact.valid_from_assumed
        if fact is not None and is_same and edge.valid_from <= told_at(fact):
            yield edge


def _settled(
    request: ErasureRequest, reopened: Iterable[Edge], versions: Mapping[str, Edge], compatible: Compatible
) -> Iterator[Edge]:
    """Yield the versions that change in the slots of facts with another beginning or end, or other tellings."""
    slots: defaultdict[tuple[str, ...], list[Edge]] = defaultdict(list)
    for edge in versions.values():
        slots[_slot(request.ontology, edge)].append(edge)
    again = {_slot(request.ontology, edge) for edge in reopened}
    sources = request.sources([edge for slot in again for edge in slots[slot]])
    for slot in again:
        single = len(slot) == _SINGLE
        for edge in settle(slots[slot], sources, single_valued=single, now=utc_now(), compatible=compatible):
            if edge.id in versions:
                yield edge
            else:  # a new row, with the sentence of another one
                names = entity_names(request.backend, request.scope, (edge.source_id, edge.target_id))
                yield with_sources(edge, edge.episode_ids, names.__getitem__, plain=True)


def _restated(request: ErasureRequest, gone: Mapping[str, Edge], reopened: Mapping[str, Edge]) -> Iterator[Edge]:
    """Yield the facts that removed facts had ended whose episodes stay: these state the ends from now on."""
    names = with_folded(request.backend, request.scope, gone.values())
    for stored in find_ended(request.backend, request.scope, names).values():
        edge = reopened.get(stored.id, stored)
        ends = list(edge.ends)
        if edge.superseded_by is not None and edge.valid_to is not None:
            by = gone.get(names.get(edge.superseded_by, ""))
            told = edge.valid_to if by is None else told_at(by)
            ends.append(EdgeEnd(by=edge.superseded_by, at=edge.valid_to, told_at=told))
        stated = [e.changed(by=i) for e in ends if e.by in names for i in gone[names[e.by]].episode_ids]
        left = [end for end in edge.ends if end.by not in names]
        yield edge.changed(ends=tuple(dict.fromkeys((*left, *stated))))


class _Reopening:
    """Facts without the ends that nobody states any more.

    Parameters
    ----------
    request
        The erasure.
    there
        Versions that remain: of the ended facts, and of all others that decide about them.
    gone
        Facts that are removed, by id.
    unstated
        Ids of the facts that forgotten episodes stated → the fact if others state it as well, None if it is removed.
    compatible
        Facts that don't end each other (`graphmem.inference.premises.find_compatible`).
    """

    def __init__(
        self,
        request: ErasureRequest,
        there: Collection[Edge],
        gone: Mapping[str, Edge],
        unstated: Mapping[str, Edge | None],
        compatible: Compatible,
    ) -> None:
        self._episodes = request.episodes
        self._ontology = request.ontology
        self._gone = gone
        self._unstated = unstated
        self._compatible = compatible
        self._slots: defaultdict[tuple[str, ...], list[Edge]] = defaultdict(list)
        for edge in there:
            self._slots[self._slot(edge)].append(edge)
        by = request.episodes.keys() | unstated.keys()
        over = (edge for edge in there if edge.ended_by & by)
        self._over = sorted(over, key=lambda edge: edge.valid_from, reverse=True)
        self._there = {edge.id: edge for edge in there}
        self._held = {edge.key: edge.id for edge in there if edge.is_active}
        self._changed: dict[str, Edge] = {}
        beside = [row for edge in self._over for row in self._slots[self._slot(edge)]]
        self._sources = request.sources([*beside, *(edge for edge in unstated.values() if edge is not None)])
        self._now = utc_now()

    def run(self) -> dict[str, Edge]:
        for edge in self._over:  # the later ones first: a fact may go on as its next version
            opened = edge.without_ends({i for i in edge.ended_by if self._is_unstated(i, edge)})
            if opened.valid_to != edge.valid_to:
                opened = self._ended_as_told(opened, edge.superseded_by)
                opened = self._ended_by_next(self._told_as_past(opened), edge.expired_at)
            elif (again := self._repeated(edge)) is not None:
                opened = opened.changed(valid_to=again)
            opened = self._unfolded(opened)
            if opened.is_active and (held := self._held.setdefault(edge.key, edge.id)) != edge.id:
                opened = self._beside(held, opened)
            if opened != edge:
                self._changed[edge.id] = opened
        return self._changed

    def _beside(self, held_id: str, edge: Edge) -> Edge:
        """Return a reopened fact that has another active version: it replaces a less sure one, or confirms it."""
        held = self._changed.get(held_id, self._there[held_id])
        if may_end(edge.certainty, held.certainty, same_fact=True):
            why = "replaced" if held.valid_from < edge.valid_from else "corrected"  # from its beginning (rule 3)
            self._changed[held_id] = ended(held, edge.valid_from, self._now, why, edge.id)
            self._held[edge.key] = edge.id
            return edge
        if held.certainty == edge.certainty:
            told = edge.stated_by([i for i in edge.episode_ids if i not in self._episodes])
            self._changed[held_id] = begun_with(supported(held, told), told)
        return retracted(edge, self._now, "replaced", held_id)

    def _is_unstated(self, by: str, edge: Edge) -> bool:
        """Return whether an episode or a fact doesn't end a fact any more."""
        if by not in self._unstated:
            return by in self._episodes
        left = self._unstated[by]  # others state it as well, and may end the fact
        return left is None or ends_from(left, edge, self._sources) is None

    def _unfolded(self, edge: Edge) -> Edge:
        """Return a fact as ended, from now on, by the facts into which a merge folded those that had ended it."""
        named = {i: left.id for i in edge.ended_by if (left := self._unstated.get(i)) is not None and left.id != i}
        if not named:
            return edge
        ends = tuple(end.changed(by=named.get(end.by, end.by)) for end in edge.ends)
        by = named.get(edge.superseded_by or "", edge.superseded_by)
        return edge.changed(ends=ends, superseded_by=by, expired_at=self._now)

    def _repeated(self, edge: Edge) -> datetime | None:
        """Return the end caused by repeating an older fact, or None."""
        left = self._unstated.get(edge.superseded_by or "")
        if left is None or left.valid_from >= edge.valid_from:
            return None
        at = ends_from(left, edge, self._sources)
        return at if at is not None and at > edge.valid_from else None

    def _ended_as_told(self, edge: Edge, by: str | None) -> Edge:
        """Return a reopened fact as ended by what was told of its surer version, which had replaced it and is gone."""
        gone = self._gone.get(by or "")
        if gone is None or gone.key != edge.key:
            return edge
        told = [end for end in gone.ends if end.by and end.by not in {*self._episodes, gone.superseded_by}]
        if told and is_retracted(gone) and gone.end_reason == "corrected":
            told = [end.changed(at=edge.valid_from) for end in told]
            return retracted(edge.changed(ends=(*edge.ends, *told)), self._now, "corrected")
        edge = edge.changed(ends=tuple(dict.fromkeys((*edge.ends, *told))))
        end = end_of(edge.ends, edge.valid_to)
        return edge if end in (None, edge.valid_to) else ended(edge, end, self._now, "over")

    def _told_as_past(self, edge: Edge) -> Edge:
        """Return a reopened fact as ended by versions of it that were told as past, which become a part of it."""
        last = max((source.told_at for source in self._sources.get(edge.id, ())), default=told_at(edge))
        for row in self._slots[self._slot(edge)]:
            if row.key == edge.key and row.id not in self._changed and is_over(row) and told_at(row) > last:
                left = row.stated_by([i for i in row.episode_ids if i not in self._episodes])
                if (told := told_as_past(edge, left, self._sources, self._now)) is not None:
                    self._changed[row.id] = retracted(row, self._now, "replaced", edge.id)
                    edge = told
        return edge

    def _ended_by_next(self, edge: Edge, expired_at: datetime | None) -> Edge:
        """Return a reopened fact as the next one of its slot ends it; its own next version becomes a part of it."""
        slot = (self._changed.get(other.id, other) for other in self._slots[self._slot(edge)])
        found = successor(edge, filter(counts_in_slot, slot), self._sources, self._compatible)
        if found is None or (edge.valid_to is not None and edge.valid_to <= found[1]):
            return edge
        later, end = found
        if (later.key, later.certainty) != (edge.key, edge.certainty):
            return ended(edge, end, expired_at or self._now, "replaced", later.id)
        if later.is_active:
            del self._held[later.key]
        self._changed[later.id] = retracted(later, self._now, "replaced", edge.id)
        told = later.stated_by([i for i in later.episode_ids if i not in self._episodes])
        ends = edge if later.is_active else later  # what the earlier version planned still counts
        return begun_with(supported(edge, told).changed(**{name: getattr(ends, name) for name in _END}), told)

    def _slot(self, edge: Edge) -> tuple[str, ...]:
        return _slot(self._ontology, edge)


def _slot(ontology: Ontology, edge: Edge) -> tuple[str, ...]:
    """Return the slot of a fact: its source and relation, and its target unless the relation is single-valued."""
    slot = (edge.source_id, edge.relation)
    return slot if ontology.is_single_valued(edge.relation) else (*slot, edge.target_id)
