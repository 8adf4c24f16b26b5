"""Which known facts a new one confirms, ends, or comes too late for (spec: supersession). No store.

A `FactLedger` is loaded with the versions that may be affected, is told the new facts in order, and
holds what has to be written. It decides in this order: the same key merges; a single-valued relation
with another target ends the old fact; an extractor (or the contradiction check) names what ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime

from graphmem.models import Corroboration, Edge, EdgeExpiry, EdgeKey, new_id
from graphmem.ontology import Ontology

Slot = tuple[str, str]


class FactLedger:
    """New facts against known ones.

    Parameters
    ----------
    known
        Versions that the new facts may touch: all of the same keys, and all of the same
        (source, relation) where the relation is single-valued.
    ontology
        Tells which relations are single-valued.
    now
        Transaction time of this write.
    was_told
        Whether an episode that states an edge had occurred by a time; asked only of an end before the beginning.
    """

    def __init__(
        self,
        known: Iterable[Edge],
        ontology: Ontology,
        now: datetime,
        was_told: Callable[[Edge, datetime], bool] | None = None,
    ) -> None:
        self._was_told = was_told
        self._ontology = ontology
        self._now = now
        self._by_id: dict[str, Edge] = {}
        self._by_key: defaultdict[EdgeKey, set[str]] = defaultdict(set)
        self._by_slot: defaultdict[Slot, set[str]] = defaultdict(set)
        self._new: dict[str, None] = {}
        self._closings: dict[str, EdgeExpiry] = {}
        self._supports: dict[str, Corroboration] = {}
        for edge in known:
            self._keep(edge)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Rows to insert, in the order they came."""
        return tuple(self._by_id[i] for i in self._new)

    @property
    def closings(self) -> tuple[EdgeExpiry, ...]:
        """Known rows that ended."""
        return tuple(self._closings.values())

    @property
    def supports(self) -> tuple[Corroboration, ...]:
        """Known rows that were stated again."""
        return tuple(self._supports.values())

    def add(self, edge: Edge) -> str:
        """Take in a new fact; return the id of the row that holds it from now on."""
        active = self._active(edge.key)
        if edge.valid_to is None:
            held = (e for e in self._versions(edge) if e.valid_to and e.valid_from <= edge.valid_from < e.valid_to)
            if (version := active or next(held, None)) is not None:
                return self._support(version, edge)  # it holds, or did when this was said
            if self._ontology.is_single_valued(edge.relation):
                edge = self._make_room(edge)
        elif active is not None and active.valid_from < edge.valid_to:
            self._close(active, edge.valid_to, None)
            return self._support(active, edge)
        elif edge.valid_to > self._now and self._ontology.is_single_valued(edge.relation):
            edge = self._make_room(edge)
        same = (e for e in self._versions(edge) if (e.valid_from, e.valid_to) == (edge.valid_from, edge.valid_to))
        if (twin := next(same, None)) is not None:
            return self._support(twin, edge)
        self._keep(edge)
        self._new[edge.id] = None
        return edge.id

    def contradicts(self, edge: Edge) -> bool:
        """Return whether a new fact would end an active one of higher confidence."""
        if not self._ontology.is_single_valued(edge.relation):
            return False
        slot = (self._by_id[i] for i in self._by_slot[edge.source_id, edge.relation])
        return any(e.is_active and e.target_id != edge.target_id and e.confidence > edge.confidence for e in slot)

    def is_stronger_than(self, key: EdgeKey, confidence: float) -> bool:
        """Return whether there is an active fact of this key with a higher confidence."""
        active = self._active(key)
        return active is not None and active.confidence > confidence

    def end(self, key: EdgeKey, at: datetime, told: datetime) -> bool:
        """End the active fact of this key at a time; return whether there was one.

        Where the end isn't after the beginning, which is often only when the fact was first told, it ends when the
        end was `told`: it was true for a time, and an empty interval would say that it never was. One that began only
        after that is a plan that was cancelled, if it had been told by then, else it isn't meant.
        """
        active = self._active(key)
        if active is None:
            return False
        if active.valid_from > max(at, told) and not (self._was_told and self._was_told(active, told)):
            return False
        self._end_told(active, at, told)
        return True

    def end_slot(self, slot: Slot, at: datetime, told: datetime) -> None:
        """End whatever a relation of one value holds, if it began before this was told; see `end` for the time."""
        for edge in [self._by_id[i] for i in self._by_slot[slot]]:
            if edge.is_active and edge.valid_from < told:
                self._end_told(edge, at, told)

    def end_edge(self, edge_id: str, at: datetime, successor: str | None) -> None:
        """End a known fact by id, if it is still active and had begun by then."""
        edge = self._by_id.get(edge_id)
        if edge is not None and edge.is_active and edge.id != successor and edge.valid_from <= at:
            self._close(edge, at, successor)

    def retract(self, edge_id: str) -> None:
        """Let a known active fact never have been true."""
        edge = self._by_id[edge_id]
        self._close(edge, edge.valid_from, None)

    def take_up(self, edge: Edge) -> None:
        """Let a known fact that ended go on, as a new version, unless another one has taken its place."""
        slot = self._by_slot[edge.source_id, edge.relation] if self._ontology.is_single_valued(edge.relation) else ()
        if self._active(edge.key) is not None or any(self._by_id[i].is_active for i in slot):
            return
        again = edge.changed(
            id=new_id(), recorded_at=self._now, valid_to=None, expired_at=None, superseded_by=None, retrieval_count=0.0
        )
        self._keep(again)
        self._new[again.id] = None

    def _end_told(self, edge: Edge, at: datetime, told: datetime) -> None:
        self._close(edge, told if at <= edge.valid_from else at, None)

    def _make_room(self, edge: Edge) -> Edge:
        """End the rivals that began before a single-valued fact; close it where a later one begins."""
        rivals = [
            e
            for i in self._by_slot[edge.source_id, edge.relation]
            if (e := self._by_id[i]).target_id != edge.target_id and e.valid_to != e.valid_from
        ]
        later = min((e for e in rivals if e.valid_from > edge.valid_from), key=lambda e: e.valid_from, default=None)
        if later is not None and (edge.valid_to is None or later.valid_from < edge.valid_to):
            edge = edge.changed(valid_to=later.valid_from, superseded_by=later.id)
        for rival in rivals:
            if rival.is_active and rival.valid_from <= edge.valid_from:
                self._close(rival, edge.valid_from, edge.id)
        return edge

    def _active(self, key: EdgeKey) -> Edge | None:
        return next((self._by_id[i] for i in self._by_key[key] if self._by_id[i].is_active), None)

    def _versions(self, edge: Edge) -> list[Edge]:
        return [self._by_id[i] for i in self._by_key[edge.key]]

    def _keep(self, edge: Edge) -> None:
        self._by_id[edge.id] = edge
        self._by_key[edge.key].add(edge.id)
        if self._ontology.is_single_valued(edge.relation):
            self._by_slot[edge.source_id, edge.relation].add(edge.id)

    def _support(self, edge: Edge, again: Edge) -> str:
        confidence = max(edge.confidence, again.confidence)
        added = tuple(i for i in again.episode_ids if i not in edge.episode_ids)
        self._by_id[edge.id] = edge.changed(confidence=confidence, episode_ids=edge.episode_ids + added)
        if edge.id not in self._new:
            earlier = self._supports.get(edge.id)
            episodes = (earlier.episode_ids if earlier else ()) + added
            self._supports[edge.id] = Corroboration(edge.id, confidence, episodes)
        return edge.id

    def _close(self, edge: Edge, at: datetime, successor: str | None) -> None:
        closing = EdgeExpiry(edge.id, max(at, edge.valid_from), self._now, successor)
        self._by_id[edge.id] = edge.changed(
            valid_to=closing.valid_to, expired_at=closing.expired_at, superseded_by=successor
        )
        if edge.id not in self._new:
            self._closings[edge.id] = closing
