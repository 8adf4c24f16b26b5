"""Erasure from the merge ledger, whose rows have copies of facts, mentions and entities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.ingest.fact_ledger import entity_names
from graphmem.models import Alias, Edge, Entity, Mention, Merge
from graphmem.text.normalize import canonical
from graphmem.upkeep.affected import Affected
from graphmem.upkeep.erasure import ErasureRequest, fact_goes


def scrub_merges(
    request: ErasureRequest, found: Affected, unused: Collection[tuple[str, str]]
) -> tuple[list[str], list[Merge]]:
    """Return the ids of the merges that involve a removed entity, and the other changed merges, without erased data.

    Parameters
    ----------
    request, found
        The erasure and the rows that it affects.
    unused
        Removed aliases as (name, entity type).
    """
    gone = _gone(found)
    known = {merge.merged.id: merge.merged.name for merge in found.merges.ledger if merge.merged.id not in gone}
    ledger = _Ledger(request, found, unused, _unheld_names(request, found), known, found.forgotten_times(request))
    removed: list[str] = []
    changed: list[Merge] = []
    for merge in found.merges.ledger:
        if {merge.kept_id, merge.merged.id} & gone:
            removed.append(merge.id)
        elif (scrubbed := ledger.scrubbed(merge)) != merge:
            changed.append(scrubbed)
    return removed, changed


def _gone(found: Affected) -> set[str]:
    """Return the removed entities, and the merged ones that can't be unmerged without one of them."""
    gone = found.entities.gone.keys() | found.merges.gone
    permanent: set[str] = set()
    for merge in reversed(found.merges.ledger):  # ids are in the order of time
        if merge.undone_at is None and {merge.kept_id, merge.merged.id} & (gone | permanent):
            permanent.add(merge.merged.id)
    return gone | permanent


def _unheld_names(request: ErasureRequest, found: Affected) -> frozenset[str]:
    """Return the removed names that no remaining entity holds; an undone merge may have assigned them to one."""
    held = request.backend.resolve_names(request.scope, sorted(found.names)) if found.names else []
    return found.names - {name for name, entity in held if entity.id not in found.entities.gone}


@dataclass(frozen=True, slots=True)
class _Ledger:
    """Parts to erase from each merge.

    Attributes
    ----------
    unused, unheld
        Removed aliases as (name, entity type), and removed names of any type.
    merged
        Names of the remaining merged entities, by id.
    times
        Times of what is forgotten.
    mentions
        Mentions in remaining episodes that were read, by entity.
    """

    request: ErasureRequest
    found: Affected
    unused: Collection[tuple[str, str]]
    unheld: Collection[str]
    merged: Mapping[str, str]
    times: Set[datetime]
    mentions: dict[str, list[Mention]] = field(default_factory=dict[str, list[Mention]])

    def scrubbed(self, merge: Merge) -> Merge:
        """Return a merge without erased data."""
        episodes = self.request.episodes
        rows = map(self.found.without_name, (merge.kept, merge.merged))
        names = {**self.merged, **{row.id: row.name for row in rows}}
        mentions = tuple(mention for mention in merge.mentions if mention.episode_id not in episodes)
        shared = tuple(i for i in merge.shared if i not in episodes)
        alone = [f.edge.changed(id=f.into.id) for f in merge.folded if f.into is not None and self._goes(f.into)]
        gone = {e.id for e in (*merge.edges, *(f.edge for f in merge.folded)) if self._goes(e)}
        left = [e for e in (*merge.edges, *alone) if not self._goes(e) and gone.isdisjoint(e.premises)]
        moved = self._moved((*left, *(f.edge for f in merge.folded)))
        edges = tuple(self._rewritten(edge, names, gone, moved) for edge in left)
        folded = tuple(
            pair.changed(
                edge=self._rewritten(pair.edge, names, gone, moved),
                into=None if pair.into is None else self._rewritten(pair.into, names, gone, moved),
            )
            for pair in merge.folded
            if not self._goes(pair.edge)
            and gone.isdisjoint(pair.edge.premises)
            and (pair.into is None or not self._goes(pair.into))
        )
        unmentioned = (len(mentions), len(shared)) != (len(merge.mentions), len(merge.shared))
        clear = unmentioned or edges != merge.edges or folded != merge.folded
        kept, own, merged = merge.kept, list[Mention](), list(mentions)
        if not self.times.isdisjoint((kept.first_seen_at, kept.last_seen_at)):
            brought = {mention.episode_id for mention in merge.mentions}.difference(merge.shared)
            known = self._mentions_left(merge.kept_id)
            own = [m for m in known if m.episode_id not in brought and m.seen_at <= kept.last_seen_at] or known
        if not merged and not self.times.isdisjoint((merge.merged.first_seen_at, merge.merged.last_seen_at)):
            known = self._mentions_left(merge.merged.id)
            merged = [m for m in known if canonical(m.surface) == merge.merged.canonical_name] or known
        return merge.changed(
            kept=self._scrubbed_row(kept, own, clear=clear),
            merged=self._scrubbed_row(merge.merged, merged, clear=clear),
            mentions=mentions,
            edges=edges,
            folded=folded,
            shared=shared,
            aliases=self._used(merge.aliases),
            added=self._used(merge.added),
        )

    def _mentions_left(self, entity_id: str) -> list[Mention]:
        """Return the mentions in remaining episodes of an entity, or of the one that holds its data now."""
        holder, request = self.found.merges.holders.get(entity_id, entity_id), self.request
        if holder not in self.mentions:
            found = request.backend.all_mentions([request.scope], entity_ids=[holder])
            self.mentions[holder] = [mention for mention in found if mention.episode_id not in request.episodes]
        return self.mentions[holder]

    def _goes(self, edge: Edge) -> bool:
        return fact_goes(self.request, self.found.facts, self.found.entities, edge)

    def _used(self, aliases: tuple[Alias, ...]) -> tuple[Alias, ...]:
        unused = self.unused
        return tuple(a for a in aliases if a.alias not in self.unheld and (a.alias, a.entity_type) not in unused)

    def _moved(self, edges: Iterable[Edge]) -> dict[str, datetime]:
        """Return when facts begin without the forgotten episodes, by id; those of a merge as they were before it."""
        facts = self.found.facts
        moved = {i: facts.reopened[i].valid_from for i in facts.kept.keys() & facts.reopened.keys()}
        stated = [edge for edge in edges if not self.request.episodes.keys().isdisjoint(edge.episode_ids)]
        return moved | {i: edge.valid_from for i, edge in self.request.without_tellings(stated).items()}

    def _rewritten(self, edge: Edge, names: Mapping[str, str], gone: Set[str], moved: Mapping[str, datetime]) -> Edge:
        """Return a fact without forgotten episodes and ends, and without a sentence that quotes erased text.

        `gone` are the facts of the merge that go, and `moved` the new beginnings of facts.
        """
        request = self.request
        edge = edge.without_ends(self.found.facts.enders | gone)
        begin = moved.get(edge.superseded_by or "")
        if begin is not None and edge.valid_to in self.times:  # it ends when that one begins
            edge = edge.changed(valid_to=max(edge.valid_from, begin))
        if not set(edge.episode_ids) & request.episodes.keys() and not self.found.quotes_erased(edge):
            return edge
        edge = request.without_tellings([edge])[edge.id]
        known = {**entity_names(request.backend, request.scope, (edge.source_id, edge.target_id)), **names}
        return self.found.restated(request, edge, lambda i: known.get(i, ""))

    def _scrubbed_row(self, row: Entity, mentions: Sequence[Mention], *, clear: bool) -> Entity:
        """Return an entity of the ledger, with times of these mentions and no summary that may quote erased text."""
        row = self.found.without_name(without_times(row, self.times, [mention.seen_at for mention in mentions]))
        if clear or row.id in self.found.merges.relatives or self.found.quotes.found_in(row.summary):
            return row.changed(summary="")
        return row


def without_times(
    entity: Entity, gone: Set[datetime], seen: Collection[datetime], begins: Collection[datetime] = ()
) -> Entity:
    """Return an entity as it was seen at other times than forgotten ones, or began to be part of a fact."""
    if not seen:
        return entity
    first = min((*seen, *begins)) if entity.first_seen_at in gone else entity.first_seen_at
    last = max(seen) if entity.last_seen_at in gone else entity.last_seen_at
    return entity.changed(first_seen_at=first, last_seen_at=max(first, last))
