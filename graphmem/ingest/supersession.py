"""Supersession of known facts by new ones (spec: supersession). Pure, without a store.

A `FactLedger` is loaded with the versions that may be affected, receives the new facts in order, and collects the rows
to write. The rules, in this order: a fact with the same key merges; a new target of a single-valued relation ends the
old fact; an extractor or the contradiction check ends facts explicitly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime

from graphmem.models import Corroboration, Edge, EdgeExpiry, EdgeKey, new_id
from graphmem.ontology import Ontology

Slot = tuple[str, str]


class FactLedger:
    """Ledger that applies new facts to known ones and collects the resulting changes.

    Parameters
    ----------
    known
        Versions that the new facts may affect: all with the same keys, and all with the same (source, relation) of
        single-valued relations.
    ontology
        Defines the single-valued relations.
    now
        Transaction time of this write.
    was_stated
        Returns whether an episode that states an edge had occurred by a time; called only for an end before the
        beginning.
    """

    def __init__(
        self,
        known: Iterable[Edge],
        ontology: Ontology,
        now: datetime,
        was_stated: Callable[[Edge, datetime], bool] | None = None,
    ) -> None:
        self._was_stated = was_stated
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
        """New rows, in order of addition."""
        return tuple(self._by_id[i] for i in self._new)

    @property
    def closings(self) -> tuple[EdgeExpiry, ...]:
        """Expiries of known rows."""
        return tuple(self._closings.values())

    @property
    def supports(self) -> tuple[Corroboration, ...]:
        """Corroborations of known rows."""
        return tuple(self._supports.values())

    def add(self, edge: Edge) -> str:
        """Add a new fact; return the id of the row that represents it."""
        active = self._active(edge.key)
        if edge.valid_to is None:
            held = (e for e in self._versions(edge) if e.valid_to and e.valid_from <= edge.valid_from < e.valid_to)
            if (version := active or next(held, None)) is not None:
                return self._support(version, edge)  # it is active, or held at the beginning of the new fact
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

    def end(self, key: EdgeKey, at: datetime, stated_at: datetime) -> bool:
        """End the active fact with this key at a time; return whether one was ended.

        If `at` is not after the beginning of the fact, which is often only the time of its first statement, the fact
        ends at `stated_at`: an empty interval would mean that it never held. A fact that begins after both times is a
        canceled plan and ends if it was stated by `stated_at`, else it is not affected.
        """
        active = self._active(key)
        if active is None:
            return False
        if active.valid_from > max(at, stated_at) and not (self._was_stated and self._was_stated(active, stated_at)):
            return False
        self._end_stated(active, at, stated_at)
        return True

    def end_slot(self, slot: Slot, at: datetime, stated_at: datetime) -> None:
        """End the active facts of a single-valued relation that began before `stated_at`; see `end` for the time."""
        for edge in [self._by_id[i] for i in self._by_slot[slot]]:
            if edge.is_active and edge.valid_from < stated_at:
                self._end_stated(edge, at, stated_at)

    def end_edge(self, edge_id: str, at: datetime, successor: str | None) -> None:
        """End a known fact by id, if it is active and began at or before `at`."""
        edge = self._by_id.get(edge_id)
        if edge is not None and edge.is_active and edge.id != successor and edge.valid_from <= at:
            self._close(edge, at, successor)

    def retract(self, edge_id: str) -> None:
        """Close a known active fact at its beginning, so that it never held."""
        edge = self._by_id[edge_id]
        self._close(edge, edge.valid_from, None)

    def take_up(self, edge: Edge) -> None:
        """Reactivate an ended fact as a new version, unless another active fact has replaced it."""
        slot = self._by_slot[edge.source_id, edge.relation] if self._ontology.is_single_valued(edge.relation) else ()
        if self._active(edge.key) is not None or any(self._by_id[i].is_active for i in slot):
            return
        again = edge.changed(
            id=new_id(), recorded_at=self._now, valid_to=None, expired_at=None, superseded_by=None, retrieval_count=0.0
        )
        self._keep(again)
        self._new[again.id] = None

    def _end_stated(self, edge: Edge, at: datetime, stated_at: datetime) -> None:
        self._close(edge, stated_at if at <= edge.valid_from else at, None)

    def _make_room(self, edge: Edge) -> Edge:
        """End earlier facts of the same single-valued relation; close the new one where a later one begins."""
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
