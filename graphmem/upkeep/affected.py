"""Search for the rows that an erasure affects, before `graphmem.upkeep.erase` changes any.

- Facts: a fact is removed if all its episodes are forgotten, and so is what was inferred from it. A fact that ended
  only because of a forgotten statement becomes valid again.
- Entities: an entity is removed if no other episode mentions it and no remaining fact is about it.
- Merged entities: the same applies to entities that were merged into another one. They have no rows of their own, but
  rows in the merge ledger, mentions, facts and later uses of their names; they are removed when none of these is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.inference.premises import find_compatible, find_dependents
from graphmem.ingest.corrections import find_ended, find_versions, with_folded
from graphmem.ingest.fact_ledger import entity_names
from graphmem.ingest.supersession import Compatible, ends_from, is_over, settle, supported, with_sources
from graphmem.models import (
    Alias,
    Edge,
    EdgeEnd,
    EdgeQuery,
    Entity,
    Mention,
    Merge,
    MergeQuery,
    ended,
    is_retracted,
    retracted,
    utc_now,
)
from graphmem.text.names import NameFinder
from graphmem.text.normalize import canonical
from graphmem.upkeep.erasure import AffectedEntities, AffectedFacts, ErasureRequest, fact_goes, named_in
from graphmem.upkeep.merge import ended_by_later, successor
from graphmem.upkeep.scope_rows import edges_of


@dataclass(frozen=True, slots=True)
class AffectedMerges:
    """The merge ledger and what an erasure affects in it.

    Attributes
    ----------
    ledger
        All merges of the scope.
    gone
        Ids of the merged entities to remove.
    holders
        For every merged entity, the entity that holds its data now.
    aliases, names
        Aliases that only removed merged entities had, and their names.
    relatives
        Ids of all entities that were ever merged with an affected one, also if unmerged since. Merged entities shared
        summaries and communities, so each of these may quote an episode that mentions another.
    left_relatives
        Those of them that remain and aren't in `AffectedEntities.left`, by id.
    """

    ledger: Sequence[Merge]
    gone: set[str]
    holders: Mapping[str, str]
    aliases: Sequence[Alias]
    names: frozenset[str]
    relatives: set[str]
    left_relatives: Mapping[str, Entity]


@dataclass(frozen=True, slots=True)
class Affected:
    """All rows that an erasure affects; `quotes` finds the names that go."""

    facts: AffectedFacts
    entities: AffectedEntities
    merges: AffectedMerges
    names: frozenset[str]
    quotes: NameFinder


def find_affected(request: ErasureRequest) -> Affected:
    """Return the rows that an erasure affects."""
    facts = _find_facts(request)
    entities = _find_entities(request, facts)
    merges = _find_merges(request, facts, entities)
    names = entities.names | merges.names
    longer = frozenset[str]() if request.subject is None else request.subject.longer
    return Affected(facts, entities, merges, names, NameFinder(names, longer))


# Facts --------------------------------------------------------------------------------------------


def _find_facts(request: ErasureRequest) -> AffectedFacts:
    backend, scope, episodes = request.backend, request.scope, request.episodes
    stated = backend.get_edges([scope], backend.find_edges_of_episodes(scope, list(episodes)))
    gone = {i: edge for i, edge in stated.items() if not set(edge.episode_ids) - episodes.keys()}
    if request.entity is not None:
        gone.update((edge.id, edge) for edge in edges_of(backend, scope, request.entity.id))
    gone.update(find_dependents(backend, scope, gone))
    kept = {i: edge for i, edge in stated.items() if i not in gone}
    reopened, enders = find_reopened(request, gone, kept)
    return AffectedFacts(gone, kept, reopened, enders)


# Entities -----------------------------------------------------------------------------------------


def _find_entities(request: ErasureRequest, facts: AffectedFacts) -> AffectedEntities:
    backend, scopes = request.backend, [request.scope]
    mentions = backend.all_mentions(scopes, episode_ids=list(request.episodes)) if request.episodes else []
    mentioned = {mention.entity_id for mention in mentions}
    ends = {end for edge in facts.gone.values() for end in (edge.source_id, edge.target_id)}
    touched = backend.get_entities(scopes, sorted(mentioned | ends))
    others, redacted = _other_mentions(request, touched)
    known_by = mentioned if request.subject is None else mentioned | ends
    alone = _unknown(request, touched, others) & known_by
    alone -= _held(request, alone, facts)
    gone = {i: touched[i] for i in sorted(alone)}
    if request.entity is not None:
        gone[request.entity.id] = request.entity
    return AffectedEntities(
        gone=gone,
        left={i: entity for i, entity in touched.items() if i not in gone},
        mentions=mentions,
        mentions_of_gone=backend.all_mentions(scopes, entity_ids=list(gone)),
        other_mentions=others,
        redacted_mentions=redacted,
        names=_names_of(request, gone, values=alone & others.keys()),
    )


def _other_mentions(
    request: ErasureRequest, touched: Mapping[str, Entity]
) -> tuple[dict[str, list[Mention]], list[Mention]]:
    """Return the mentions of entities in remaining texts, by entity, and those in lines that texts lose."""
    others: dict[str, list[Mention]] = {}
    redacted: list[Mention] = []
    if touched:
        for mention in request.backend.all_mentions([request.scope], entity_ids=list(touched)):
            if mention.episode_id in request.episodes:
                continue
            if _is_redacted(request, mention):
                redacted.append(mention)
            else:
                others.setdefault(mention.entity_id, []).append(mention)
    return others, redacted


def _is_redacted(request: ErasureRequest, mention: Mention) -> bool:
    left = None if request.subject is None else request.subject.redacted.get(mention.episode_id)
    return left is not None and not NameFinder([mention.surface]).found_in(left)


def _unknown(
    request: ErasureRequest, touched: Mapping[str, Entity], others: Mapping[str, Sequence[Mention]]
) -> set[str]:
    """Return the entities that no remaining episode mentions, and values that only kept episodes of the subject do."""
    staying: set[str] = set() if request.subject is None else set(request.subject.staying)
    return {
        i
        for i, entity in touched.items()
        if i not in others or (_is_value(entity) and all(mention.episode_id in staying for mention in others[i]))
    }


def _is_value(entity: Entity) -> bool:
    """Return whether an entity is a plain value such as a number, a date or an address."""
    return entity.entity_type == "concept" and any(c.isdigit() or c == "@" for c in entity.name)


def _held(request: ErasureRequest, entity_ids: Collection[str], facts: AffectedFacts) -> set[str]:
    """Return the entities that are part of a remaining fact."""
    if not entity_ids:
        return set()
    query = EdgeQuery(touching=tuple(entity_ids), versions="all")
    edges = request.backend.all_edges([request.scope], query)
    return {end for edge in edges if edge.id not in facts.gone for end in (edge.source_id, edge.target_id)}


def _names_of(request: ErasureRequest, gone: Mapping[str, Entity], *, values: Collection[str]) -> frozenset[str]:
    """Return the names that go; those of `values` stay in episodes that are kept."""
    aliases = request.backend.find_aliases([request.scope], list(gone)) if gone else []
    names = {alias.alias for alias in aliases if alias.entity_id not in values}
    if request.subject is None:
        return frozenset(names)
    shared = {alias.alias for alias in aliases if request.entity is not None and alias.entity_id == request.entity.id}
    return frozenset(names - shared) | request.subject.names


# Merged entities ----------------------------------------------------------------------------------


def _find_merges(request: ErasureRequest, facts: AffectedFacts, entities: AffectedEntities) -> AffectedMerges:
    backend, scopes = request.backend, [request.scope]
    ledger = list(backend.all_merges(scopes, MergeQuery(undone=True)))
    aliases = backend.find_aliases(scopes, list(entities.left)) if ledger and entities.left else []
    found = find_erased_merges(ledger, aliases, request, facts, entities)
    relatives = _relatives(ledger, entities.mentioned | entities.gone.keys() | found.ids)
    missing = sorted(relatives - entities.gone.keys() - entities.left.keys())
    return AffectedMerges(
        ledger=ledger,
        gone=found.ids,
        holders=found.holders,
        aliases=[alias for alias in aliases if alias.alias in found.names.get(alias.entity_id, ())],
        names=frozenset(name for names in found.names.values() for name in names),
        relatives=relatives,
        left_relatives=backend.get_entities(scopes, missing) if missing else {},
    )


def _relatives(ledger: Iterable[Merge], found: set[str]) -> set[str]:
    """Return these entities with all that were ever merged with one of them, directly or by others."""
    linked: dict[str, set[str]] = {}
    for merge in ledger:
        pair = {merge.kept_id, merge.merged.id}
        for end in pair:
            linked.setdefault(end, set()).update(pair)
    relatives: set[str] = set()
    while found:
        relatives |= found
        found = {other for end in found for other in linked.get(end, ())} - relatives
    return relatives


# Merged entities that only forgotten data named ---------------------------------------------------


@dataclass(slots=True)
class ErasedMerges:
    """Merged entities to remove.

    Attributes
    ----------
    ids
        Ids of the entities.
    names
        Names that only they had, by the entity that holds them now.
    holders
        For every merged entity, the entity that holds its data now.
    """

    ids: set[str] = field(default_factory=set[str])
    names: dict[str, set[str]] = field(default_factory=dict[str, "set[str]"])
    holders: dict[str, str] = field(default_factory=dict[str, str])


def find_erased_merges(
    ledger: Iterable[Merge],
    aliases: Iterable[Alias],
    request: ErasureRequest,
    facts: AffectedFacts,
    entities: AffectedEntities,
) -> ErasedMerges:
    """Return the merged entities that are removed with an erasure.

    Parameters
    ----------
    ledger
        All merges of the scope.
    aliases
        Aliases of the remaining entities.
    request, facts, entities
        The erasure, and the facts and entities that it affects.
    """
    return _Search([merge for merge in ledger if merge.undone_at is None], aliases, request, facts, entities).run()


class _Search:
    def __init__(
        self,
        merges: Sequence[Merge],
        aliases: Iterable[Alias],
        request: ErasureRequest,
        facts: AffectedFacts,
        entities: AffectedEntities,
    ) -> None:
        self._request, self._facts, self._entities = request, facts, entities
        self._of = {merge.merged.id: merge for merge in merges}
        self._into: defaultdict[str, list[Merge]] = defaultdict(list)
        for merge in merges:
            self._into[merge.kept_id].append(merge)
        brought = {(self._holder(m), a.alias, a.entity_type) for m in merges for a in (*m.aliases, *m.added)}
        self._held: defaultdict[str, set[str]] = defaultdict(set)  # names that came from no merge
        for alias in aliases:
            if (alias.entity_id, alias.alias, alias.entity_type) not in brought:
                self._held[alias.entity_id].add(alias.alias)

    def run(self) -> ErasedMerges:
        found = ErasedMerges()
        stay: defaultdict[str, set[str]] = defaultdict(set)
        for gone_id, merge in self._of.items():
            holder, names = self._holder(merge), self._names(merge)
            found.holders[gone_id] = holder
            if holder in self._entities.gone:
                found.ids.add(gone_id)
            elif holder in self._entities.left and self._goes(merge, holder, names):
                found.ids.add(gone_id)
                found.names.setdefault(holder, set()).update(names)
            else:
                stay[holder] |= names
        for holder, names in found.names.items():
            names -= stay[holder]
        return found

    def _holder(self, merge: Merge) -> str:
        """Return the entity that holds the data of the merged one now; the kept one may have been merged itself."""
        seen = {merge.merged.id}
        while (further := self._of.get(merge.kept_id)) is not None and further.merged.id not in seen:
            seen.add(further.merged.id)
            merge = further
        return merge.kept_id

    def _names(self, merge: Merge) -> set[str]:
        """Return the names that only the merged entity had, and not the kept one or one merged into it before."""
        holder = self._holder(merge)
        names = {alias.alias for alias in merge.aliases} - self._names_before(merge) - self._held[holder]
        row = self._entities.left.get(holder)
        return names if row is None else names - {row.canonical_name}

    def _names_before(self, merge: Merge) -> set[str]:
        inner = {alias.alias for before in self._into[merge.merged.id] for alias in before.aliases}
        return inner - {merge.merged.canonical_name}

    def _goes(self, merge: Merge, holder: str, names: set[str]) -> bool:
        return self._touched(merge, holder, names) and not self._known(merge, holder, names)

    def _own_mentions(self, merge: Merge) -> list[Mention]:
        before = self._names_before(merge)
        return [mention for mention in merge.mentions if canonical(mention.surface) not in before]

    def _touched(self, merge: Merge, holder: str, names: set[str]) -> bool:
        """Return whether a forgotten episode named the merged entity."""
        request = self._request
        return (
            any(mention.episode_id in request.episodes for mention in self._own_mentions(merge))
            or any(m.entity_id == holder and canonical(m.surface) in names for m in self._entities.mentions)
            or named_in(names, (episode.text for episode in request.episodes.values()))
        )

    def _known(self, merge: Merge, holder: str, names: set[str]) -> bool:
        """Return whether anything that stays names the merged entity."""
        request = self._request
        others = self._entities.other_mentions.get(holder, ())
        before = {edge.id for m in self._into[merge.merged.id] for edge in (*m.edges, *(f.edge for f in m.folded))}
        stated = (*merge.edges, *(folded.edge for folded in merge.folded))
        return (
            any(mention.episode_id not in request.episodes for mention in self._own_mentions(merge))
            or any(edge.id not in before and not self._fact_goes(edge) for edge in stated if not edge.is_inferred)
            or any(canonical(mention.surface) in names for mention in others)
            or named_in(names, request.texts([mention.episode_id for mention in others]))
        )

    def _fact_goes(self, edge: Edge) -> bool:
        return fact_goes(self._request, self._facts, self._entities, edge)


# Facts that go on ---------------------------------------------------------------------------------


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
    single = [edge for edge in unstated.values() if ontology.is_single_valued(edge.relation)]
    versions = {**ended_facts, **find_versions(backend, scope, ontology, (*single, *ended_facts.values()))}
    remaining = {i: edge for i, edge in versions.items() if i not in gone}
    compatible = find_compatible(backend, scope, remaining, gone)
    there = {**{i: edge for i, edge in remaining.items() if not edge.is_inferred}, **moved}
    reopened = {**moved, **_Reopening(request, there.values(), left, compatible).run()}
    over = ended_by_later({**there, **reopened}.values(), ontology, request.sources, utc_now(), compatible)
    reopened.update((edge.id, edge) for edge in over)
    reopened.update((edge.id, edge) for edge in _settled(request, moved.values(), {**there, **reopened}, compatible))
    staying = {i: edge for i, edge in gone.items() if i not in unstated}
    for edge in _restated(request, staying, reopened):
        if edge.id not in gone:
            reopened[edge.id] = edge
    return reopened, request.episodes.keys() | {i for i, edge in left.items() if edge is None}


def _settled(
    request: ErasureRequest, moved: Iterable[Edge], versions: Mapping[str, Edge], compatible: Compatible
) -> Iterator[Edge]:
    """Yield the versions that change in the slots of facts whose first telling is forgotten."""
    slots: dict[tuple[str, str], list[Edge]] = {
        (e.source_id, e.relation): [] for e in moved if request.ontology.is_single_valued(e.relation)
    }
    beside = [edge for edge in versions.values() if (edge.source_id, edge.relation) in slots]
    for edge in beside:
        slots[edge.source_id, edge.relation].append(edge)
    sources = request.sources(beside)
    for rows in slots.values():
        for edge in settle(rows, sources, now=utc_now(), compatible=compatible):
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
        ends = [(end.by, end.at) for end in edge.ends]
        if edge.superseded_by is not None and edge.valid_to is not None:
            ends.append((edge.superseded_by, edge.valid_to))
        stated = [EdgeEnd(by=i, at=at) for by, at in ends if by in names for i in gone[names[by]].episode_ids]
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
    unstated
        Ids of the facts that forgotten episodes stated → the fact if others state it as well, None if it is removed.
    compatible
        Facts that don't end each other (`graphmem.inference.premises.find_compatible`).
    """

    def __init__(
        self,
        request: ErasureRequest,
        there: Collection[Edge],
        unstated: Mapping[str, Edge | None],
        compatible: Compatible,
    ) -> None:
        self._episodes = request.episodes
        self._ontology = request.ontology
        self._unstated = unstated
        self._compatible = compatible
        self._slots: defaultdict[tuple[str, ...], list[Edge]] = defaultdict(list)
        for edge in there:
            self._slots[self._slot(edge)].append(edge)
        by = request.episodes.keys() | unstated.keys()
        over = (edge for edge in there if edge.ended_by & by)
        self._over = sorted(over, key=lambda edge: edge.valid_from, reverse=True)
        self._held = {edge.key: edge.id for edge in there if edge.is_active}
        self._changed: dict[str, Edge] = {}
        beside = [row for edge in self._over for row in self._slots[self._slot(edge)]]
        self._sources = request.sources([*beside, *(edge for edge in unstated.values() if edge is not None)])
        self._now = utc_now()

    def run(self) -> dict[str, Edge]:
        for edge in self._over:  # the later ones first: a fact may go on as its next version
            opened = edge.without_ends({i for i in edge.ended_by if self._is_unstated(i, edge)})
            if opened.valid_to != edge.valid_to:
                opened = self._ended_by_next(opened, edge.expired_at)
            elif (again := self._repeated(edge)) is not None:
                opened = opened.changed(valid_to=again)
            opened = self._unfolded(opened)
            if opened.is_active and self._held.setdefault(edge.key, edge.id) != edge.id:
                opened = retracted(opened, self._now, "replaced", self._held[edge.key])
            if opened != edge:
                self._changed[edge.id] = opened
        return self._changed

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
        """Return when a fact ends because an older one was told again; None if that isn't why it ends."""
        left = self._unstated.get(edge.superseded_by or "")
        if left is None or left.valid_from >= edge.valid_from:
            return None
        at = ends_from(left, edge, self._sources)
        return at if at is not None and at > edge.valid_from else None

    def _ended_by_next(self, edge: Edge, expired_at: datetime | None) -> Edge:
        """Return a reopened fact as the next one of its slot ends it; its own next version becomes a part of it."""
        slot = (self._changed.get(other.id, other) for other in self._slots[self._slot(edge)])
        others = (e for e in slot if e.kind == "state" and not is_retracted(e) and not is_over(e))
        found = successor(edge, others, self._sources, self._compatible)
        if found is None or (edge.valid_to is not None and edge.valid_to <= found[1]):
            return edge
        later, end = found
        if (later.key, later.certainty) != (edge.key, edge.certainty):
            return ended(edge, end, expired_at or self._now, "replaced", later.id)
        if later.is_active:
            del self._held[later.key]
        self._changed[later.id] = retracted(later, self._now, "replaced", edge.id)
        told = later.changed(episode_ids=tuple(i for i in later.episode_ids if i not in self._episodes))
        return supported(edge, told).changed(**{name: getattr(later, name) for name in _END})

    def _slot(self, edge: Edge) -> tuple[str, ...]:
        slot = (edge.source_id, edge.relation)
        return slot if self._ontology.is_single_valued(edge.relation) else (*slot, edge.target_id)
