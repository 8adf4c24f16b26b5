"""Facts that ended because two entities were taken for one: ended at the merge, and given back when it is undone. Pure.

Of a single-valued relation the merged entity has one fact: the one that began last ends the other. Parted, each side
has what its own facts say: what a fact of the other side ended goes on, up to the next of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from graphmem.models import Closing, Edge
from graphmem.ontology import Ontology


def ended_by_merge(
    edges: Iterable[Edge], moved: Collection[str], ontology: Ontology, at: datetime
) -> Iterator[Closing]:
    """Yield the ends of active facts where a later one of the other side and of the same single-valued relation begins.

    Parameters
    ----------
    edges
        Active facts of the entity as it is after the merge.
    moved
        Ids of those that it took over.
    ontology
        Tells which relations are single-valued.
    at
        When the merge was made.
    """
    for slot in _active_slots(edges, ontology):
        for edge in slot:
            others = (e for e in slot if (e.id in moved) != (edge.id in moved) and e.target_id != edge.target_id)
            later = next((e for e in others if e.valid_from > edge.valid_from), None)
            if later is not None:
                yield Closing(edge.id, later.valid_from, at, later.id)


def ended_by_later(edges: Iterable[Edge], ontology: Ontology, at: datetime) -> Iterator[Edge]:
    """Yield the active facts of single-valued relations after which another one begins, as that one ends them.

    Parameters
    ----------
    edges
        Facts of any entities.
    ontology
        Tells which relations are single-valued.
    at
        When that is found.
    """
    for slot in _active_slots(edges, ontology):
        for edge in slot:
            rivals = (e for e in slot if e.target_id != edge.target_id and e.valid_from > edge.valid_from)
            if (later := next(rivals, None)) is not None:
                expired = max(at, edge.recorded_at)
                yield edge.changed(valid_to=later.valid_from, expired_at=expired, superseded_by=later.id)


def _active_slots(edges: Iterable[Edge], ontology: Ontology) -> Iterable[list[Edge]]:
    """Return the active facts of each source and single-valued relation, in the order in which they began."""
    slots: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in edges:
        if edge.is_active and ontology.is_single_valued(edge.relation):
            slots[edge.source_id, edge.relation].append(edge)
    for slot in slots.values():
        slot.sort(key=lambda edge: edge.valid_from)
    return slots.values()


class Parted:
    """The facts of two entities that were one.

    Parameters
    ----------
    edges
        All facts of both sides, by id, as they are parted.
    sides
        The two entities.
    twins
        Facts that both sides have: the id of the one → the id of the other's.
    ontology
        Tells which relations are single-valued.
    """

    def __init__(
        self, edges: Mapping[str, Edge], sides: tuple[str, str], twins: Mapping[str, str], ontology: Ontology
    ) -> None:
        self._edges = edges
        self._sides = sides
        self._twins = twins
        self._ontology = ontology
        self._slots: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
        for edge in sorted(edges.values(), key=lambda edge: edge.valid_from):
            self._slots[edge.source_id, edge.relation].append(edge)

    def ended_by_own(self, at: datetime) -> list[Edge]:
        """Return the facts that something of the other side ended since a time, as their own side ends them."""
        held = {edge.key for edge in self._edges.values() if edge.is_active}
        changed: list[Edge] = []
        for edge in self._edges.values():
            by = self._edges.get(edge.superseded_by or "")
            if by is None or not self._is_crossing(edge, by, at):
                continue
            own = self._next(edge) if self._is_rival(edge, by) else self._own_successor(edge, by)
            if own is not None:
                ends = max(own.valid_from, edge.valid_from)
                expired = None if edge.expired_at is None else max(own.recorded_at, edge.recorded_at)
                changed.append(edge.changed(valid_to=ends, expired_at=expired, superseded_by=own.id))
            elif edge.key not in held:
                held.add(edge.key)
                changed.append(edge.changed(valid_to=None, expired_at=None, superseded_by=None))
        return changed

    def _is_crossing(self, edge: Edge, by: Edge, at: datetime) -> bool:
        if edge.source_id not in self._sides or by.source_id not in self._sides or edge.source_id == by.source_id:
            return False
        return self._is_rival(edge, by) or (edge.expired_at or edge.recorded_at) >= at

    def _is_rival(self, edge: Edge, by: Edge) -> bool:
        """Tell whether a fact ended another because there can be only one."""
        same = edge.relation == by.relation and edge.target_id != by.target_id
        return same and self._ontology.is_single_valued(edge.relation)

    def _next(self, edge: Edge) -> Edge | None:
        """Return what follows a fact of which there can be only one."""
        slot = self._slots[edge.source_id, edge.relation]
        return next((e for e in slot if e.valid_from > edge.valid_from and e.valid_to != e.valid_from), None)

    def _own_successor(self, edge: Edge, by: Edge) -> Edge | None:
        """Return the first of those that came one after the other that is of the fact's own side."""
        seen = {edge.id}
        following: Edge | None = by
        while following is not None and following.id not in seen:
            for found in (following, self._edges.get(self._twins.get(following.id, ""))):
                if found is not None and found.source_id == edge.source_id:
                    return found
            seen.add(following.id)
            following = self._edges.get(following.superseded_by or "")
        return None
