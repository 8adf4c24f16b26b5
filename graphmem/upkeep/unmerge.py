"""Unmerge: restores both entities of a merge and assigns later data to the entity that it was stated about.

Data added since the merge stays with the kept entity, unless the episode used a name of the merged one. A fact that was
stated about both is split by its episodes, and a fact that the other side ended becomes valid again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from graphmem.errors import InvalidInput, NotFound
from graphmem.inference.premises import expiries_before_replacement, find_compatible, reason_by_hand, write_facts
from graphmem.ingest.fact_ledger import entity_names, episode_sources
from graphmem.ingest.supersession.decisions import settle
from graphmem.ingest.supersession.rules import (
    Compatible,
    FactSource,
    beginnings_of,
    begun_with,
    with_begin_of,
    with_sources,
    without_telling,
)
from graphmem.models import (
    Certainty,
    Changes,
    Edge,
    EdgeKey,
    EdgeQuery,
    Entity,
    Episode,
    Mention,
    Merge,
    MergeQuery,
    Removal,
    Scope,
    is_retracted,
    new_id,
    retracted,
    utc_now,
)
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import canonical, plain_fact
from graphmem.upkeep.merge import repointed, without_merge
from graphmem.upkeep.scope_rows import edges_of
from graphmem.upkeep.succession import UnmergedFacts, ended_by_later, with_renamed


@dataclass(frozen=True, slots=True)
class Unmerged:
    """Result of an unmerge.

    Attributes
    ----------
    merge
        The row of the ledger.
    entity
        The restored entity.
    facts, mentions
        Number of its facts and mentions.
    """

    merge: Merge
    entity: Entity
    facts: int
    mentions: int

    def __repr__(self) -> str:
        return f"Unmerged(entity={self.entity.name!r}, facts={self.facts}, mentions={self.mentions}, {self.merge!r})"


def unmerge(backend: GraphBackend, scope: Scope, merge_id: str, ontology: Ontology = DEFAULT_ONTOLOGY) -> Unmerged:
    """Undo a merge, in one transaction; the ontology defines which relations are single-valued.

    Communities of the merged entity, its vector and its part in recall traces aren't restored; background work computes
    the first two again.

    Raises
    ------
    NotFound
        If the scope has no such merge, or the kept entity is gone.
    InvalidInput
        If it was undone before, a later merge has to be undone first (the message contains its id), or another entity
        has the name of the merged one.
    """

    def work() -> Unmerged:
        found = backend.find_merges([scope], MergeQuery(ids=(merge_id,), undone=True))
        if not found:
            raise NotFound(f"merge {merge_id} is not in scope {scope}")
        [merge] = found
        if merge.undone_at is not None:
            raise InvalidInput(f"merge {merge_id}: was already undone at {merge.undone_at.isoformat()}")
        others = [other for other in backend.all_merges([scope], MergeQuery()) if other.id != merge.id]
        _require_last(merge, others)
        kept = backend.get_entities([scope], [merge.kept_id]).get(merge.kept_id)
        if kept is None:
            raise NotFound(f"merge {merge_id}: the entity that was kept, {merge.kept_id}, is gone")
        _require_free(backend, scope, merge)
        into_the_same = [o for o in others if o.kept_id == merge.kept_id]
        return _Unmerge(backend, merge, kept, into_the_same, ontology).run()

    return backend.atomic(work)


def _require_last(merge: Merge, others: Iterable[Merge]) -> None:
    """Raise InvalidInput if a later merge depends on this one: it moved the same facts, or merged the kept entity."""
    moved = {edge.id for edge in merge.edges} | {f.edge.id for f in merge.folded}
    targets = {f.into.id for f in merge.folded if f.into is not None}
    for other in others:
        if other.id < merge.id:
            continue
        theirs = {edge.id for edge in other.edges} | {f.edge.id for f in other.folded}
        their_targets = {f.into.id for f in other.folded if f.into is not None}
        again = moved & (theirs | their_targets) or targets & theirs or _are_unlike(merge, other)
        if other.merged.id == merge.kept_id or again:
            raise InvalidInput(
                f"merge {merge.id}: a later merge of {other.merged.name!r} into {other.kept.name!r} moved the same "
                f"rows again; undo that one first: {other.id}"
            )


def _are_unlike(merge: Merge, other: Merge) -> bool:
    """Return whether two merges into one entity brought the same fact with differing certainty, and one moved it."""
    if merge.kept_id != other.kept_id:
        return False
    moved, folded = _certainties(merge, merge.edges), _certainties(merge, (f.edge for f in merge.folded))
    theirs, their_folded = _certainties(other, other.edges), _certainties(other, (f.edge for f in other.folded))
    pairs = ((moved, {**their_folded, **theirs}), (folded, theirs))
    return any(one[key] != two[key] for one, two in pairs for key in one.keys() & two.keys())


def _certainties(merge: Merge, edges: Iterable[Edge]) -> dict[EdgeKey, Certainty]:
    stated = (edge for edge in edges if edge.is_active and not edge.is_inferred)
    placed = (repointed(edge, merge.merged.id, merge.kept_id) for edge in stated)
    return {edge.key: edge.certainty for edge in placed}


def _require_free(backend: GraphBackend, scope: Scope, merge: Merge) -> None:
    name, kind = merge.merged.canonical_name, merge.merged.entity_type
    for _, entity in backend.resolve_names(scope, [name]):
        if (entity.canonical_name, entity.entity_type) == (name, kind):
            raise InvalidInput(f"merge {merge.id}: another entity is now the {kind} {name!r}: {entity.id}")


_Told = defaultdict[tuple[EdgeKey, Certainty], set[str]]
"""Fact of the merged entity and its certainty → the episodes that told it before the merge."""


class _Unmerge:
    """One unmerge; collects the changes and writes them."""

    def __init__(
        self, backend: GraphBackend, merge: Merge, kept: Entity, others: Sequence[Merge], ontology: Ontology
    ) -> None:
        self._backend = backend
        self._ontology = ontology
        self._merge = merge
        self._scope = merge.scope
        self._kept = kept
        self._others = others
        self._later = [other for other in others if other.id > merge.id]
        self._id = merge.merged.id
        current = backend.find_aliases([self._scope], [merge.kept_id])
        brought = {(alias.alias, alias.entity_type) for alias in (*merge.aliases, *merge.added)}
        self._held = {(alias.alias, alias.entity_type) for alias in current}
        own = {alias.alias for alias in merge.aliases}
        kept_names = {name for name, _ in self._held - brought}
        self._named = {self._id: {merge.merged.canonical_name, *own}, kept.id: {kept.canonical_name, *kept_names}}
        self._names = own - kept_names  # names that both entities have are ambiguous and stay with the kept one
        self._edges: dict[str, Edge] = {}
        self._stored: dict[str, Edge] = {}
        self._active: dict[EdgeKey, str] = {}
        self._episodes: dict[str, Episode] = {}
        self._compatible: Compatible = {}
        self._twins: dict[str, str] = {}
        self._names_known = {kept.id: kept.name}
        self._brought: set[str] = set()
        self._own_times: set[datetime] = set()
        self._retold: set[str] = set()  # relations of the facts whose tellings are divided
        self._targets: dict[tuple[str, str], Edge] = {}  # (later merge, fact folded there) → target fact

    def run(self) -> Unmerged:
        merge = self._merge
        mentions = self._mentions()
        before = {mention.episode_id for mention in merge.mentions}
        self._divide_edges({mention.episode_id for mention in mentions} - before)
        seen = [mention.seen_at for mention in mentions if mention.episode_id not in before]
        entity = merge.merged.changed(
            first_seen_at=min([merge.merged.first_seen_at, *seen]), last_seen_at=max([merge.merged.last_seen_at, *seen])
        )
        held = self._held
        kept, later = without_merge(self._kept, merge, self._later)
        seen_apart = self._seen_apart(mentions)
        kept = seen_apart(kept)
        later = [other.changed(kept=seen_apart(other.kept)) for other in later]
        undone_at = utc_now()
        self._settle(undone_at)
        self._end_by_later(undone_at)
        undone = merge.changed(undone_at=undone_at)
        brought = tuple(Removal("mention", merge.kept_id, episode_id) for episode_id in sorted(self._brought))
        self._backend.write(self._scope, Changes(removals=brought))  # other merges may add some of them again below
        write_facts(
            self._backend,
            self._scope,
            Changes(
                entities=(entity, kept),
                aliases=tuple(a for a in merge.aliases if (a.alias, a.entity_type) in held),
                expiries=expiries_before_replacement(
                    (self._stored[i] for i in self._edges if i in self._stored), undone_at
                ),
                edges=tuple(self._edges.values()),
                mentions=(*mentions, *self._of_others()),
                merges=(undone, *(self._without_this(other) for other in later)),
                removals=(
                    *(
                        Removal("alias", a.alias, a.entity_type)
                        for a in merge.added
                        if (a.alias, a.entity_type) in held
                    ),
                    *(Removal("index", i, "fact") for i in self._reworded()),
                ),
            ),
        )
        if merge.foreign is not None:
            self._backend.restore_foreign(merge)
        facts = sum(self._id in (edge.source_id, edge.target_id) for edge in self._edges.values())
        return Unmerged(undone, entity, facts, len(mentions))

    # Mentions -------------------------------------------------------------------------------------

    def _mentions(self) -> list[Mention]:
        """Return the mentions of the merged entity; record episodes that mention the kept one only because of it."""
        merge = self._merge
        known = self._backend.all_mentions([self._scope], entity_ids=[merge.kept_id])
        since = [m for m in known if canonical(m.surface) in self._names]
        named = {m.episode_id for m in (*merge.mentions, *since)}
        self._episodes.update(self._backend.get_episodes([self._scope], list(named)))
        mentions = {m.episode_id: m.changed(entity_id=self._id) for m in since}
        mentions.update((m.episode_id, m) for m in merge.mentions)
        self._brought = ({m.episode_id for m in merge.mentions} - set(merge.shared)) | {m.episode_id for m in since}
        self._own_times = {m.seen_at for m in known if m.episode_id not in self._brought}
        return [m for m in mentions.values() if m.episode_id in self._episodes]

    def _seen_apart(self, mentions: Iterable[Mention]) -> Callable[[Entity], Entity]:
        """Return a function that removes times from the kept entity that only the merged one has.

        The merged one has them from its mentions and facts. The function takes the row of the kept one as it is now, or
        was before a later merge.
        """
        rows = (self._merge.kept, *(other.merged for other in self._others))
        own = {at for each in rows for at in (each.first_seen_at, each.last_seen_at)} | self._own_times
        own.update(mention.seen_at for mention in self._of_others())
        moved, begins = {mention.seen_at for mention in mentions}, set(own)
        for edge in {**self._stored, **self._edges}.values():
            if not edge.is_inferred:
                (moved if self._id in (edge.source_id, edge.target_id) else begins).add(edge.valid_from)

        def seen_apart(row: Entity) -> Entity:
            first, last = row.first_seen_at, row.last_seen_at
            if first in moved:
                first = min((at for at in begins if at >= first), default=first)
            if last in moved:
                last = max((at for at in own if at <= last), default=last)
            return row.changed(first_seen_at=min(first, last), last_seen_at=last)

        return seen_apart

    def _of_others(self) -> Iterable[Mention]:
        """Return mentions in these episodes that the kept entity also has from other merges."""
        found = {m.episode_id: m for other in reversed(self._others) for m in other.mentions}
        shared = sorted(self._brought & found.keys() & self._episodes.keys())
        return (found[i].changed(entity_id=self._merge.kept_id) for i in shared)

    def _without_this(self, other: Merge) -> Merge:
        """Return a later merge into the kept entity without the effect of this one."""
        mentioned = {m.episode_id for o in self._others if o.id < other.id for m in o.mentions}
        folded = (
            f if (into := self._targets.get((other.id, f.edge.id))) is None else f.changed(into=into)
            for f in other.folded
        )
        return other.changed(shared=_without(other.shared, self._brought - mentioned), folded=tuple(folded))

    # Facts ----------------------------------------------------------------------------------------

    def _divide_edges(self, since: Set[str]) -> None:
        """Divide the facts between both; `since` are the later episodes that use a name of the merged entity."""
        merge = self._merge
        current = {edge.id: edge for edge in edges_of(self._backend, self._scope, merge.kept_id)}
        self._stored.update(current)
        self._read_around(current.values())
        self._compatible = with_renamed(find_compatible(self._backend, self._scope, current), merge.kept_id, self._id)
        moved = {edge.id: edge for edge in merge.edges if not edge.is_inferred}
        told: _Told = defaultdict(set)
        for former in (*moved.values(), *(folded.edge for folded in merge.folded)):
            told[repointed(former, self._id, merge.kept_id).key, former.certainty].update(former.episode_ids)
        handled = self._return_moved(current, moved, told, since) | self._return_folded(current, since)
        self._divide_others((edge for i, edge in current.items() if i not in handled), told, since)
        self._restore_rejected()
        self._reopen({**current, **self._edges})

    def _return_moved(
        self, current: Mapping[str, Edge], moved: Mapping[str, Edge], told: _Told, since: Set[str]
    ) -> set[str]:
        """Move facts back to the merged entity; return the ids of those that moved."""
        handled: set[str] = set()
        less_sure: defaultdict[str, list[Edge]] = defaultdict(list)  # facts of the kept one, by the fact that moved
        for edge in current.values():
            if (by := edge.superseded_by or "") in moved and edge.id not in moved and is_retracted(edge):
                less_sure[by].append(edge)
        for former in moved.values():
            if (edge := current.get(former.id)) is None:
                continue
            edge = self._unconfirmed(edge, former, less_sure[edge.id])
            own = told[edge.key, edge.certainty]
            stay = [i for i in edge.episode_ids if i not in own and i not in since]
            if not stay or len(stay) < len(edge.episode_ids):
                handled.add(former.id)
                self._split(edge, stay)
            else:  # it became a version of the fact of the kept one
                self._retold.add(edge.relation)
        return handled

    def _return_folded(self, current: Mapping[str, Edge], since: Set[str]) -> set[str]:
        """Restore the facts that the merge folded or dropped; return the ids of those that they were folded into."""
        handled: set[str] = set()
        for folded in self._merge.folded:
            into = folded.into and current.get(folded.into.id)
            if into is not None and folded.into is not None:
                handled.add(into.id)
                self._unfold(folded.edge, folded.into, into, since)
            elif folded.into is None and not folded.edge.is_inferred:
                self._add(folded.edge)
        return handled

    def _divide_others(self, edges: Iterable[Edge], told: _Told, since: Set[str]) -> None:
        """Divide other facts of the kept entity, such as those told since the merge, by the episodes about each."""
        merge = self._merge
        for edge in edges:
            own = told[edge.key, edge.certainty] if edge.recorded_at >= merge.at else ()
            said = [i for i in edge.episode_ids if i in own or i in since]
            if not said:
                continue
            self._retold.add(edge.relation)
            if len(said) == len(edge.episode_ids):
                self._add(repointed(edge, merge.kept_id, self._id))
            else:
                self._edges[edge.id] = self._told_by(edge, _without(edge.episode_ids, said))
                self._add(self._twin(repointed(edge, merge.kept_id, self._id), said))

    def _read_around(self, current: Iterable[Edge]) -> None:
        """Read the entities and episodes of the current facts and of those in the ledger, each in one read."""
        rows = [*current, *self._merge.edges]
        for merge in (self._merge, *self._later):
            rows += (row for folded in merge.folded for row in (folded.edge, folded.into) if row is not None)
        ends = {end for edge in rows for end in (edge.source_id, edge.target_id)} - {self._id}
        ids = {i for edge in rows for i in edge.episode_ids} - self._episodes.keys()
        self._names_known.update(entity_names(self._backend, self._scope, ends))
        self._episodes.update(self._backend.get_episodes([self._scope], sorted(ids)))

    def _restore_rejected(self) -> None:
        """Restore the inferred facts that somebody rejected, and those that they follow from, which stay retracted."""
        former = {e.id: e for e in (*self._merge.edges, *(f.edge for f in self._merge.folded)) if e.is_inferred}
        if not former:
            return
        ids = {*former, *(i for edge in former.values() for i in edge.premises)}
        stored = self._backend.get_edges([self._scope], sorted(ids))
        self._stored.update((i, edge) for i, edge in stored.items() if i in former)
        there = stored.keys() | self._edges.keys()
        for edge in sorted(former.values(), key=lambda edge: edge.id):  # premises come first
            if not there >= set(edge.premises):
                continue  # a premise was erased since
            if reason_by_hand(edge):
                self._add(edge)
                there.add(edge.id)
            elif (row := stored.get(edge.id)) is not None:
                own = {name: getattr(edge, name) for name in ("source_id", "target_id", "properties")}
                self._edges[edge.id] = row.changed(**own)

    def _settle(self, at: datetime) -> None:
        """Derive the versions of both entities in single-valued relations again, as the turns about each tell them."""
        single = filter(self._ontology.is_single_valued, self._retold)
        slots: dict[tuple[str, str], list[Edge]] = {
            (side, relation): [] for relation in single for side in (self._id, self._merge.kept_id)
        }
        beside = [e for e in {**self._stored, **self._edges}.values() if (e.source_id, e.relation) in slots]
        for edge in beside:
            if not edge.is_inferred:
                slots[edge.source_id, edge.relation].append(edge)
        sources = self._sources(beside)
        for rows in slots.values():
            for edge in settle(rows, sources, now=at, compatible=self._compatible):
                is_new = edge.id not in self._edges and edge.id not in self._stored  # with the sentence of another one
                self._edges[edge.id] = with_sources(edge, edge.episode_ids, self._name_of, plain=is_new)

    def _end_by_later(self, at: datetime) -> None:
        """End active facts that a later fact of the same single-valued relation supersedes, of any entity."""
        changed = self._edges.values()
        slots = {(e.source_id, e.relation) for e in changed if self._ontology.is_single_valued(e.relation)}
        if not slots:
            return
        query = EdgeQuery(slots=tuple(sorted(slots)), versions="active")
        for edge in self._backend.all_edges([self._scope], query):
            self._stored[edge.id] = edge
        now_there = {**self._stored, **self._edges}.values()
        for edge in ended_by_later(now_there, self._ontology, self._sources, at, self._compatible):
            self._edges[edge.id] = edge

    def _reworded(self) -> Iterable[str]:
        """Return the ids of stored facts whose sentence changes."""
        return (i for i, edge in self._edges.items() if i in self._stored and edge.fact != self._stored[i].fact)

    def _name_of(self, entity_id: str) -> str:
        return self._merge.merged.name if entity_id == self._id else self._names_known.get(entity_id, "")

    def _reopen(self, edges: dict[str, Edge]) -> None:
        """Reopen facts that the other side ended; these rows come last, when their keys are free."""
        sides = (self._id, self._merge.kept_id)
        divided = UnmergedFacts(edges, sides, self._twins, self._ontology, self._sources, self._compatible)
        for edge in divided.ended_by_own(self._merge.at):
            self._edges.pop(edge.id, None)
            self._edges[edge.id] = edge
            own = edges.get(edge.superseded_by or "")
            is_one = own is not None and own.key == edge.key  # both become one version
            if is_one or (edge.valid_from_assumed and edge.beginnings):  # the end lay before what was stated
                self._retold.add(edge.relation)

    def _sources(self, edges: Sequence[Edge]) -> dict[str, list[FactSource]]:
        """Return the episodes that state facts, and who tells them under the names that each entity gets back."""
        return episode_sources(self._backend, self._scope, edges, self._named)

    def _twin(self, edge: Edge, episode_ids: Sequence[str]) -> Edge:
        """Return a copy of a fact as these episodes stated it, and record that both entities have it."""
        copied = self._copied(edge, episode_ids)
        self._twins[edge.id] = copied.id
        return copied

    def _split(self, edge: Edge, stay: Sequence[str]) -> None:
        """Move a fact back to the merged entity; later statements about the kept one become a fact of its own."""
        if stay:
            copied = self._twin(edge, stay)
            self._edges[copied.id] = copied
        given = self._told_by(repointed(edge, self._merge.kept_id, self._id), _without(edge.episode_ids, stay))
        is_plain = edge.fact == self._plain(edge)  # since an episode was forgotten
        self._add(given.changed(fact=self._plain(given)) if is_plain else given)

    def _plain(self, edge: Edge) -> str:
        return plain_fact(self._name_of(edge.source_id), edge.relation, self._name_of(edge.target_id))

    def _unconfirmed(self, edge: Edge, former: Edge, less_sure: Iterable[Edge]) -> Edge:
        """Return a fact that moves back, without what less sure facts of the kept entity added, which hold again."""
        ended = [e for e in less_sure if e.key == edge.key]
        if not ended:
            return edge
        added = {i for e in ended for i in e.episode_ids} - set(former.episode_ids)
        confirmed = max(former.confidence, *(e.confidence for e in ended))
        confidence = former.confidence if edge.confidence == confirmed else edge.confidence
        return self._told_by(edge.changed(confidence=confidence), _without(edge.episode_ids, added))

    def _unfold(self, former: Edge, before: Edge, into: Edge, since: Set[str]) -> None:
        """Restore a folded fact, and remove its contribution from the fact that it was folded into."""
        said = [i for i in into.episode_ids if i in since]
        brought = set(former.episode_ids) - set(before.episode_ids)
        folded_confidence, own_confidence = max(before.confidence, former.confidence), before.confidence
        united, own = begun_with(before, former), before  # the beginnings with and without the folded fact

        def without(edge: Edge) -> Edge:
            confidence = own_confidence if edge.confidence == folded_confidence else edge.confidence
            left = _without(edge.episode_ids, (*brought, *said))
            edge = with_begin_of(edge, own) if with_begin_of(edge, united) == edge else edge
            if edge.episode_ids and not left:  # the fact of the kept entity became a version of its own in the meantime
                return retracted(edge, utc_now(), "unmerged")
            return self._told_by(edge.changed(confidence=confidence), left)

        for other in self._later:
            for folded in other.folded:
                if folded.into is not None and folded.into.id == into.id:
                    target = self._targets[other.id, folded.edge.id] = without(folded.into)
                    united, own = begun_with(united, folded.edge), begun_with(own, folded.edge)
                    folded_confidence = max(folded.into.confidence, folded.edge.confidence)
                    own_confidence = max(target.confidence, folded.edge.confidence)
                    brought -= set(folded.edge.episode_ids)
        self._twins[into.id] = former.id
        replaced_at = None if into.superseded_by is None or is_retracted(into) else into.valid_to
        is_again = replaced_at is not None and replaced_at <= former.valid_from  # it began when that one was over
        if before.is_active and former.is_active and not into.is_active and not is_again:
            former = former.changed(
                valid_to=max(into.valid_to or former.valid_from, former.valid_from),
                expired_at=into.expired_at,
                superseded_by=into.superseded_by,
                end_reason=into.end_reason,
                ends=into.ends,
            )
        self._edges[into.id] = without(into)
        if said:
            former = begun_with(former, self._told_by(into, said))
        self._add(former.changed(episode_ids=tuple(dict.fromkeys((*former.episode_ids, *said)))))

    def _add(self, edge: Edge) -> None:
        """Add a fact to the merged entity; if it already has this fact, combine confidence and episodes."""
        ends = {edge.source_id, edge.target_id} - {self._id, self._merge.kept_id}
        if not ends <= self._names_known.keys():
            return  # its other entity was forgotten since
        if edge.episode_ids:
            edge = edge.stated_by([i for i in edge.episode_ids if i in self._episodes])
        if edge.is_active and (held := self._active.setdefault(edge.key, edge.id)) != edge.id:
            same = self._edges[held]
            self._edges[held] = same.changed(
                confidence=max(same.confidence, edge.confidence),
                episode_ids=tuple(dict.fromkeys((*same.episode_ids, *edge.episode_ids))),
                beginnings=beginnings_of(same, edge),
            )
            return
        self._edges[edge.id] = edge

    def _copied(self, edge: Edge, episode_ids: Sequence[str]) -> Edge:
        """Return a copy of a fact as these episodes stated it."""
        episodes = [self._episodes[i].recorded_at for i in episode_ids if i in self._episodes]
        recorded = max([edge.recorded_at, *([min(episodes)] if episodes else [])])
        return self._told_by(edge, episode_ids).changed(id=new_id(), recorded_at=recorded, retrieval_count=0.0)

    def _told_by(self, edge: Edge, episode_ids: Collection[str]) -> Edge:
        """Return a fact as these of its episodes stated it; its versions are derived again if others did as well."""
        told = {i: self._episodes[i].occurred_at for i in edge.episode_ids if i in self._episodes}
        removed = {i: at for i, at in told.items() if i not in episode_ids}
        if removed:
            self._retold.add(edge.relation)
        left = [FactSource(i, at) for i, at in told.items() if i in episode_ids]
        return with_sources(without_telling(edge, removed, left), episode_ids, self._name_of)


def _without(ids: Sequence[str], out: Iterable[str]) -> tuple[str, ...]:
    gone = set(out)
    return tuple(i for i in ids if i not in gone)
