"""Merging two entities, and the facts that end by it (spec: upkeep); `graphmem.upkeep.unmerge` undoes it.

Of a single-valued relation the merged entity has one fact: the one that began last ends the other. Parted, each side
has what its own facts say: what a fact of the other side ended goes on, up to the next of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from graphmem.errors import InvalidInput, NotFound
from graphmem.models import (
    Alias,
    Changes,
    Corroboration,
    Edge,
    EdgeExpiry,
    EdgeQuery,
    Entity,
    FoldedEdge,
    Membership,
    MembershipQuery,
    Merge,
    Removal,
    Scope,
    utc_now,
)
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import canonical


def ended_by_merge(
    edges: Iterable[Edge], moved: Collection[str], ontology: Ontology, at: datetime
) -> Iterator[EdgeExpiry]:
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
                yield EdgeExpiry(edge.id, later.valid_from, at, later.id)


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
        """Return whether a fact ended another because there can be only one."""
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


ALL = 10**9
"""More mentions than an entity has."""

_UNITED = ("summary", "confidence", "first_seen_at", "last_seen_at", "archived_at")


def entity_called(backend: GraphBackend, scope: Scope, name_or_id: str) -> Entity:
    """Return the entity with this id, else the one that goes by this name.

    Raises
    ------
    NotFound
        If there is none in the scope.
    InvalidInput
        If several go by the name; the message tells their types and ids.
    """
    by_id = backend.get_entities([scope], [name_or_id])
    if by_id:
        return by_id[name_or_id]
    found = {entity.id: entity for _, entity in backend.resolve_names(scope, [canonical(name_or_id)])}
    if not found:
        raise NotFound(f"no entity is called {name_or_id!r} in scope {scope}, nor has it this id")
    if len(found) > 1:
        which = ", ".join(f"{e.entity_type} {e.id}" for e in found.values())
        raise InvalidInput(f"name {name_or_id!r}: {len(found)} entities go by it; take one by its id: {which}")
    return next(iter(found.values()))


def merge_entities(
    backend: GraphBackend, scope: Scope, names_or_ids: Sequence[str], into: str, ontology: Ontology = DEFAULT_ONTOLOGY
) -> list[Merge]:
    """Merge entities into one, in one transaction.

    Their facts are re-pointed; a fact that the kept entity has as well is folded into that one, which takes the better
    confidence and all episodes; one between the two is dropped. Of a single-valued relation the fact that began last
    ends the other's. Names and mentions move. Each has a row in the ledger.

    Parameters
    ----------
    backend, scope
        Where they are.
    names_or_ids
        The entities that go.
    into
        The one that stays.
    ontology
        Tells which relations are single-valued.

    Raises
    ------
    NotFound
        If one of them isn't in the scope.
    InvalidInput
        If nothing is named, a name stands for several entities, or an entity would be merged with itself.
    """

    def work() -> list[Merge]:
        kept = entity_called(backend, scope, into)
        gone = [entity_called(backend, scope, name) for name in names_or_ids]
        if not gone:
            raise InvalidInput("merge: names no entity to be merged")
        for name, entity in zip(names_or_ids, gone, strict=True):
            if entity.id == kept.id:
                raise InvalidInput(f"merge: {name!r} and {into!r} are the same entity, {kept.id}")
        return [_merge(backend, scope, i, kept.id, ontology) for i in dict.fromkeys(entity.id for entity in gone)]

    return backend.atomic(work)


def _merge(backend: GraphBackend, scope: Scope, gone_id: str, kept_id: str, ontology: Ontology) -> Merge:
    rows = backend.get_entities([scope], [gone_id, kept_id])
    gone, kept = rows[gone_id], rows[kept_id]
    moved, folded = _edges(backend, scope, gone_id, kept_id)
    aliases, added = _aliases(backend, scope, gone, kept)
    mentions = backend.find_mentions([scope], entity_ids=[gone_id], limit=ALL)
    episodes = [mention.episode_id for mention in mentions]
    own = backend.find_mentions([scope], entity_ids=[kept_id], episode_ids=episodes, limit=ALL) if episodes else []
    shared = tuple(mention.episode_id for mention in own)
    merge = Merge(
        scope=scope,
        kept_id=kept_id,
        kept=kept,
        merged=gone,
        method="manual",
        at=utc_now(),
        aliases=aliases,
        added=added,
        edges=tuple(moved),
        folded=tuple(folded),
        mentions=tuple(mentions),
        shared=shared,
    )
    backend.write(
        scope,
        Changes(
            entities=(_united(kept, gone),),
            aliases=(*(alias.changed(entity_id=kept_id) for alias in aliases), *added),
            edges=tuple(repointed(edge, gone_id, kept_id) for edge in moved),
            supports=tuple(
                Corroboration(f.into.id, f.edge.confidence, f.edge.episode_ids) for f in folded if f.into is not None
            ),
            mentions=tuple(m.changed(entity_id=kept_id) for m in mentions if m.episode_id not in shared),
            memberships=_memberships(backend, scope, gone_id, kept_id, merge.at),
            merges=(merge,),
            removals=(Removal("entity", gone_id),),
        ),
    )
    active = backend.all_edges([scope], EdgeQuery(source_ids=(kept_id,), versions="active"))
    closings = ended_by_merge(active, {edge.id for edge in moved}, ontology, merge.at)
    backend.write(scope, Changes(closings=tuple(closings)))
    return merge


def repointed(edge: Edge, old: str, new: str) -> Edge:
    """Return a fact with one entity in the place of another."""
    return edge.changed(
        source_id=new if edge.source_id == old else edge.source_id,
        target_id=new if edge.target_id == old else edge.target_id,
    )


def restated(edge: Edge, episode_ids: Iterable[str], name_of: Callable[[str], str], *, plain: bool = False) -> Edge:
    """Return a fact as only these of its episodes state it.

    Its sentence and properties came from the first of its episodes; without that one, or where asked for, the plain
    triple takes their place.
    """
    left = tuple(episode_ids)
    if not plain and left[:1] == edge.episode_ids[:1]:
        return edge.changed(episode_ids=left)
    fact = f"{name_of(edge.source_id)} {edge.relation.replace('_', ' ')} {name_of(edge.target_id)}"
    return edge.changed(episode_ids=left, fact=fact, properties={})


def closed_first(stored: Iterable[Edge], at: datetime) -> tuple[EdgeExpiry, ...]:
    """Close the active ones of facts that a write replaces or removes.

    A write applies closings first, so that the keys of these facts are free for its other rows, whatever their order.
    """
    return tuple(EdgeExpiry(edge.id, edge.valid_from, at) for edge in stored if edge.is_active)


def edges_of(backend: GraphBackend, scope: Scope, entity_id: str) -> list[Edge]:
    """Return all versions of all facts that an entity takes part in."""
    return list(backend.all_edges([scope], EdgeQuery(touching=(entity_id,), versions="all")))


def _edges(backend: GraphBackend, scope: Scope, gone: str, kept: str) -> tuple[list[Edge], list[FoldedEdge]]:
    held = {edge.key: edge for edge in edges_of(backend, scope, kept) if edge.is_active}
    moved: list[Edge] = []
    folded: list[FoldedEdge] = []
    for edge in edges_of(backend, scope, gone):
        there = repointed(edge, gone, kept)
        if there.source_id == there.target_id:
            folded.append(FoldedEdge(edge=edge))
        elif edge.is_active and there.key in held:
            folded.append(FoldedEdge(edge=edge, into=held[there.key]))
        else:
            moved.append(edge)
    return moved, folded


def _aliases(
    backend: GraphBackend, scope: Scope, gone: Entity, kept: Entity
) -> tuple[tuple[Alias, ...], tuple[Alias, ...]]:
    """Return the names of the entity that goes, and those to add so that they stand for the type of the other, too."""
    aliases = backend.find_aliases([scope], [gone.id])
    names = list(dict.fromkeys(alias.alias for alias in aliases))
    if gone.entity_type == kept.entity_type or not names:
        return tuple(aliases), ()
    taken = {name for name, entity in backend.resolve_names(scope, names) if entity.id != gone.id}
    stated = {alias.alias for alias in aliases if alias.entity_type == kept.entity_type}
    added = (name for name in names if name not in taken and name not in stated)
    return tuple(aliases), tuple(Alias(alias=n, entity_type=kept.entity_type, entity_id=kept.id) for n in added)


def _memberships(backend: GraphBackend, scope: Scope, gone: str, kept: str, at: datetime) -> tuple[Membership, ...]:
    """Link the kept entity to the communities of the one that goes: their texts tell of facts that it has now.

    These memberships last for no time, so that no read sees them; an erasure finds the communities by them.
    """
    query = MembershipQuery(entity_ids=(gone, kept), ended=True)
    known = list(backend.all_memberships([scope], query))
    own = {membership.community_id for membership in known if membership.entity_id == kept}
    others = dict.fromkeys(m.community_id for m in known if m.entity_id == gone and m.community_id not in own)
    return tuple(Membership(community_id=i, entity_id=kept, since=at, until=at) for i in others)


def _united(kept: Entity, gone: Entity) -> Entity:
    return kept.changed(
        summary=kept.summary or gone.summary,
        confidence=max(kept.confidence, gone.confidence),
        first_seen_at=min(kept.first_seen_at, gone.first_seen_at),
        last_seen_at=max(kept.last_seen_at, gone.last_seen_at),
        access_count=kept.access_count + gone.access_count,
        archived_at=None if gone.archived_at is None else kept.archived_at,
    )


def parted(now: Entity, merge: Merge, later: Sequence[Merge]) -> tuple[Entity, list[Merge]]:
    """Return the kept entity, and later merges into it, as they would be had there been no merge.

    What somebody has changed since stays.
    """
    was, would = _united(merge.kept, merge.merged), merge.kept
    counted = merge.merged.access_count if merge.method == "manual" else 0

    def without(row: Entity) -> Entity:
        back = {name: getattr(would, name) for name in _UNITED if getattr(row, name) == getattr(was, name)}
        return row.changed(**back, access_count=max(0, row.access_count - counted))

    rewritten: list[Merge] = []
    for other in later:
        kept = without(other.kept)
        rewritten.append(other.changed(kept=kept))
        was, would = _united(other.kept, other.merged), _united(kept, other.merged)
    return without(now), rewritten
