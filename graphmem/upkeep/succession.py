"""Which fact of a slot, a source with a single-valued relation, ends another after entities are merged or divided.

A fact ends where the next one of its slot begins that may end it by its certainty and its speakers. After an unmerge,
only facts of the same side end a fact: one that the other side had ended becomes valid again, up to the next fact of
its own side that may end it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from graphmem.ingest.fact_ledger import Load
from graphmem.ingest.supersession.rules import Compatible, Sources, ends_from, hold_together, is_over, told_at
from graphmem.models import Edge, EdgeKey, ended, is_retracted
from graphmem.ontology import Ontology


def ended_by_merge(
    edges: Iterable[Edge],
    moved: Collection[str],
    ontology: Ontology,
    load: Load,
    at: datetime,
    compatible: Compatible,
) -> Iterator[Edge]:
    """Yield the facts that a later fact of the other side ends, or ends sooner, in the same single-valued relation.

    Parameters
    ----------
    edges
        All versions of the facts of the entity after the merge.
    moved
        Ids of the facts moved from the merged entity.
    ontology
        Defines which relations are single-valued.
    load
        Returns the episodes that state facts, which decide who may end them.
    at
        Time of the merge.
    compatible
        Facts that don't end each other (`graphmem.inference.premises.find_compatible`).
    """
    for edge, later, end in _ended(filter(counts_in_slot, edges), ontology, load, compatible, moved):
        yield ended(edge, end, at, "replaced", later.id)


def ended_by_later(
    edges: Iterable[Edge], ontology: Ontology, load: Load, at: datetime, compatible: Compatible
) -> Iterator[Edge]:
    """Yield the active facts of single-valued relations that a later fact supersedes, ended by that fact.

    Parameters
    ----------
    edges
        Facts of any entities.
    ontology
        Defines which relations are single-valued.
    load
        Returns the episodes that state facts, which decide who may end them.
    at
        Time at which they expire.
    compatible
        Facts that don't end each other (`graphmem.inference.premises.find_compatible`).
    """
    for edge, later, end in _ended((edge for edge in edges if edge.is_active), ontology, load, compatible):
        yield ended(edge, end, max(at, edge.recorded_at), "replaced", later.id)


def _ended(
    edges: Iterable[Edge],
    ontology: Ontology,
    load: Load,
    compatible: Compatible,
    moved: Collection[str] | None = None,
) -> Iterator[tuple[Edge, Edge, datetime]]:
    """Yield facts of single-valued relations with the fact that ends each, or ends it sooner, and when.

    With `moved`, facts with these ids are ended only by other facts, and other facts only by these.
    """
    slots = [slot for slot in _slots(edges, ontology) if len(slot) > 1]
    sources = load([edge for slot in slots for edge in slot])
    for slot in slots:
        for edge in slot:
            others = (e for e in slot if e.target_id != edge.target_id)
            if moved is not None:
                others = (e for e in others if (e.id in moved) != (edge.id in moved))
            found = successor(edge, others, sources, compatible)
            if found is not None and (edge.valid_to is None or found[1] < edge.valid_to):
                yield edge, *found


def successor(
    edge: Edge, others: Iterable[Edge], sources: Sources, compatible: Compatible
) -> tuple[Edge, datetime] | None:
    """Return the first of other facts that began or were told later and may end a fact, and from when it does."""
    later = (
        (other, end)
        for other in others
        if _order(other) > _order(edge)
        and not hold_together(compatible, edge.key, other.key, other.valid_from)
        and (end := ends_from(other, edge, sources))
    )
    return min(later, key=lambda found: found[1], default=None)


def _order(edge: Edge) -> tuple[datetime, datetime]:
    return edge.valid_from, told_at(edge)


def with_renamed(compatible: Compatible, old: str, new: str) -> Compatible:
    """Return compatible facts also as they are with one entity replaced by another."""

    def renamed(key: EdgeKey) -> EdgeKey:
        source, target, relation, edge_type = key
        return new if source == old else source, new if target == old else target, relation, edge_type

    return {**{frozenset(map(renamed, pair)): until for pair, until in compatible.items()}, **compatible}


def _slots(edges: Iterable[Edge], ontology: Ontology) -> Iterable[list[Edge]]:
    """Return the stated facts of each source and single-valued relation, in the order in which they began."""
    slots: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in edges:
        if not edge.is_inferred and ontology.is_single_valued(edge.relation):
            slots[slot_of(edge)].append(edge)
    for slot in slots.values():
        slot.sort(key=lambda edge: edge.valid_from)
    return slots.values()


def slot_of(edge: Edge) -> tuple[str, str]:
    """Return source and relation of a fact."""
    return (edge.source_id, edge.relation)


def counts_in_slot(edge: Edge) -> bool:
    """Return whether a version takes part in the order of its slot: it is a state that held when it was told."""
    return edge.kind == "state" and not is_retracted(edge) and not is_over(edge)


class UnmergedFacts:
    """Facts of two entities after an unmerge.

    Parameters
    ----------
    edges
        All facts of both entities after the unmerge, by id.
    sides
        Ids of the two entities.
    twins
        Facts that both entities have: id of the fact of one → id of the fact of the other.
    ontology
        Defines which relations are single-valued.
    load
        Returns the episodes that state facts, which decide who may end them.
    compatible
        Facts that don't end each other (`graphmem.inference.premises.find_compatible`).
    """

    def __init__(
        self,
        edges: Mapping[str, Edge],
        sides: tuple[str, str],
        twins: Mapping[str, str],
        ontology: Ontology,
        load: Load,
        compatible: Compatible,
    ) -> None:
        self._edges = edges
        self._sides = sides
        self._twins = twins
        self._ontology = ontology
        self._load = load
        self._compatible = compatible
        self._slots: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
        stated = (edge for edge in edges.values() if not edge.is_inferred)
        for edge in sorted(stated, key=lambda edge: edge.valid_from):
            self._slots[edge.source_id, edge.relation].append(edge)

    def ended_by_own(self, at: datetime) -> list[Edge]:
        """Return the facts that the other side has ended since a time, with the validity from their own side."""
        held = {edge.key for edge in self._edges.values() if edge.is_active}
        changed: list[Edge] = []
        for edge in self._edges.values():
            by = self._edges.get(edge.superseded_by or "")
            if by is None or not self._is_crossing(edge, by, at):
                continue
            found = self._successor(edge) if self._is_rival(edge, by) else self._own_successor(edge, by)
            if found is not None:
                own, end = found
                expired = None if edge.expired_at is None else max(own.recorded_at, edge.recorded_at)
                end = max(end, edge.valid_from)
                ends = tuple(each.changed(by=own.id, at=end) if each.by == by.id else each for each in edge.ends)
                changed.append(edge.changed(valid_to=end, expired_at=expired, superseded_by=own.id, ends=ends))
            elif edge.key not in held:
                held.add(edge.key)
                changed.append(edge.without_ends({by.id}))
        return changed

    def _is_crossing(self, edge: Edge, by: Edge, at: datetime) -> bool:
        side, other = self._side(edge), self._side(by)
        if side is None or other is None or side == other:
            return False
        return self._is_rival(edge, by) or (edge.expired_at or edge.recorded_at) >= at

    def _side(self, edge: Edge) -> str | None:
        """Return which of the two entities a fact is about."""
        return next((end for end in (edge.source_id, edge.target_id) if end in self._sides), None)

    def _is_rival(self, edge: Edge, by: Edge) -> bool:
        """Return whether a fact of one entity ended one of the other because their relation is single-valued."""
        same = edge.relation == by.relation and edge.source_id != by.source_id and edge.target_id != by.target_id
        return same and self._ontology.is_single_valued(edge.relation)

    def _successor(self, edge: Edge) -> tuple[Edge, datetime] | None:
        """Return the next fact of the same source and single-valued relation that may end a fact, and from when."""
        slot = [e for e in self._slots[edge.source_id, edge.relation] if not is_retracted(e)]
        return successor(edge, slot, self._load([edge, *slot]), self._compatible)

    def _own_successor(self, edge: Edge, by: Edge) -> tuple[Edge, datetime] | None:
        """Return the first fact of the edge's own side in the chain of supersessions from `by`, and when it began."""
        seen = {edge.id}
        following: Edge | None = by
        while following is not None and following.id not in seen:
            for found in (following, self._edges.get(self._twins.get(following.id, ""))):
                if found is not None and self._side(found) == self._side(edge):
                    return found, found.valid_from
            seen.add(following.id)
            following = self._edges.get(following.superseded_by or "")
        return None
