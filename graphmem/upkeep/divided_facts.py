"""Division of the facts of a kept entity between it and the merged one, which an unmerge restores.

Data added since the merge stays with the kept entity, unless the episode used a name of the merged one. A fact that was
stated about both is split by its episodes, and a fact that the other side ended becomes valid again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime

from graphmem.inference.premises import find_compatible, reason_by_hand
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
    Edge,
    EdgeKey,
    EdgeQuery,
    Entity,
    Episode,
    Merge,
    is_retracted,
    new_id,
    retracted,
    utc_now,
)
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import plain_fact
from graphmem.upkeep.merge import repointed
from graphmem.upkeep.scope_rows import edges_of
from graphmem.upkeep.succession import UnmergedFacts, ended_by_later, with_renamed

_Told = defaultdict[tuple[EdgeKey, Certainty], set[str]]
"""Fact of the merged entity and its certainty → the episodes that told it before the merge."""


class DividedFacts:
    """Facts of both entities as the episodes about each state them.

    Parameters
    ----------
    backend
        The store.
    merge, later
        The merge, and later ones into the same entity.
    kept
        The kept entity.
    named
        Names that each entity gets back, by id.
    episodes
        Episodes that were read, by id; those of facts are added.
    ontology
        Defines which relations are single-valued.

    Attributes
    ----------
    edges, stored
        Rows to write, and rows as they are stored, by id.
    targets
        (later merge, fact folded there) → fact that it was folded into, without the merge.
    """

    def __init__(
        self,
        backend: GraphBackend,
        merge: Merge,
        later: Sequence[Merge],
        kept: Entity,
        named: Mapping[str, Collection[str]],
        episodes: dict[str, Episode],
        ontology: Ontology,
    ) -> None:
        self.edges: dict[str, Edge] = {}
        self.stored: dict[str, Edge] = {}
        self.targets: dict[tuple[str, str], Edge] = {}
        self._backend = backend
        self._scope = merge.scope
        self._merge = merge
        self._later = later
        self._id = merge.merged.id
        self._named = named
        self._episodes = episodes
        self._ontology = ontology
        self._active: dict[EdgeKey, str] = {}
        self._compatible: Compatible = {}
        self._twins: dict[str, str] = {}
        self._names_known = {kept.id: kept.name}
        self._retold: set[str] = set()  # relations of the facts whose tellings are divided

    def divide(self, since: Set[str]) -> None:
        """Divide the facts between both; `since` are the later episodes that use a name of the merged entity."""
        merge = self._merge
        current = {edge.id: edge for edge in edges_of(self._backend, self._scope, merge.kept_id)}
        self.stored.update(current)
        self._read_around(current.values())
        self._compatible = with_renamed(find_compatible(self._backend, self._scope, current), merge.kept_id, self._id)
        moved = {edge.id: edge for edge in merge.edges if not edge.is_inferred}
        told: _Told = defaultdict(set)
        for former in (*moved.values(), *(folded.edge for folded in merge.folded)):
            told[repointed(former, self._id, merge.kept_id).key, former.certainty].update(former.episode_ids)
        handled = self._return_moved(current, moved, told, since) | self._return_folded(current, since)
        self._divide_others((edge for i, edge in current.items() if i not in handled), told, since)
        self._restore_rejected()
        self._reopen({**current, **self.edges})

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
                self.edges[edge.id] = self._told_by(edge, _without(edge.episode_ids, said))
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
        self.stored.update((i, edge) for i, edge in stored.items() if i in former)
        there = stored.keys() | self.edges.keys()
        for edge in sorted(former.values(), key=lambda edge: edge.id):  # premises come first
            if not there >= set(edge.premises):
                continue  # a premise was erased since
            if reason_by_hand(edge):
                self._add(edge)
                there.add(edge.id)
            elif (row := stored.get(edge.id)) is not None:
                own = {name: getattr(edge, name) for name in ("source_id", "target_id", "properties")}
                self.edges[edge.id] = row.changed(**own)

    def settle(self, at: datetime) -> None:
        """Derive the versions of both entities in single-valued relations again, as the turns about each tell them."""
        single = filter(self._ontology.is_single_valued, self._retold)
        slots: dict[tuple[str, str], list[Edge]] = {
            (side, relation): [] for relation in single for side in (self._id, self._merge.kept_id)
        }
        beside = [e for e in {**self.stored, **self.edges}.values() if (e.source_id, e.relation) in slots]
        for edge in beside:
            if not edge.is_inferred:
                slots[edge.source_id, edge.relation].append(edge)
        sources = self._sources(beside)
        for rows in slots.values():
            for edge in settle(rows, sources, now=at, compatible=self._compatible):
                is_new = edge.id not in self.edges and edge.id not in self.stored  # with the sentence of another one
                self.edges[edge.id] = with_sources(edge, edge.episode_ids, self._name_of, plain=is_new)

    def end_by_later(self, at: datetime) -> None:
        """End active facts that a later fact of the same single-valued relation supersedes, of any entity."""
        changed = self.edges.values()
        slots = {(e.source_id, e.relation) for e in changed if self._ontology.is_single_valued(e.relation)}
        if not slots:
            return
        query = EdgeQuery(slots=tuple(sorted(slots)), versions="active")
        for edge in self._backend.all_edges([self._scope], query):
            self.stored[edge.id] = edge
        now_there = {**self.stored, **self.edges}.values()
        for edge in ended_by_later(now_there, self._ontology, self._sources, at, self._compatible):
            self.edges[edge.id] = edge

    def reworded(self) -> Iterable[str]:
        """Return the ids of stored facts whose sentence changes."""
        return (i for i, edge in self.edges.items() if i in self.stored and edge.fact != self.stored[i].fact)

    def _name_of(self, entity_id: str) -> str:
        return self._merge.merged.name if entity_id == self._id else self._names_known.get(entity_id, "")

    def _reopen(self, edges: dict[str, Edge]) -> None:
        """Reopen facts that the other side ended; these rows come last, when their keys are free."""
        sides = (self._id, self._merge.kept_id)
        divided = UnmergedFacts(edges, sides, self._twins, self._ontology, self._sources, self._compatible)
        for edge in divided.ended_by_own(self._merge.at):
            self.edges.pop(edge.id, None)
            self.edges[edge.id] = edge
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
            self.edges[copied.id] = copied
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
                    target = self.targets[other.id, folded.edge.id] = without(folded.into)
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
        self.edges[into.id] = without(into)
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
            same = self.edges[held]
            self.edges[held] = same.changed(
                confidence=max(same.confidence, edge.confidence),
                episode_ids=tuple(dict.fromkeys((*same.episode_ids, *edge.episode_ids))),
                beginnings=beginnings_of(same, edge),
            )
            return
        self.edges[edge.id] = edge

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
