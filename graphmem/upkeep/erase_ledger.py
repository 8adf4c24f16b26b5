"""Removal of erased data from the merge ledger, whose rows have copies of entities, facts, names and mentions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from graphmem.ingest.fact_ledger import entity_names
from graphmem.ingest.supersession import with_sources
from graphmem.models import Alias, Edge, Entity, Merge
from graphmem.upkeep.affected import Affected
from graphmem.upkeep.erasure import ErasureRequest, fact_goes


def scrub(
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
    ledger = _Ledger(request, found, unused, _unheld_names(request, found), known)
    removed: list[str] = []
    changed: list[Merge] = []
    for merge in found.merges.ledger:
        if {merge.kept_id, merge.merged.id} & gone:
            removed.append(merge.id)
        elif (scrubbed := ledger.scrubbed(merge)) != merge:
            changed.append(scrubbed)
    return removed, changed


def without(request: ErasureRequest, found: Affected, edge: Edge, name_of: Callable[[str], str]) -> Edge:
    """Return a fact as the remaining episodes state it."""
    left = [i for i in edge.episode_ids if i not in request.episodes]
    if found.quotes.found_in(edge.end_reason or ""):
        edge = edge.changed(end_reason="over")
    if _properties_quote(found, edge):
        edge = edge.changed(properties={})
    return with_sources(edge, left, name_of, plain=found.quotes.found_in(edge.fact))


def quotes_erased(found: Affected, edge: Edge) -> bool:
    """Return whether the sentence of a fact, the reason of its end or its properties contain a name that goes."""
    texts = (edge.fact, edge.end_reason or "")
    return any(map(found.quotes.found_in, texts)) or _properties_quote(found, edge)


def _properties_quote(found: Affected, edge: Edge) -> bool:
    return bool(edge.properties) and not edge.is_inferred and found.quotes.found_in(str(edge.properties))


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
    """What is erased from each merge.

    Attributes
    ----------
    unused, unheld
        Removed aliases as (name, entity type), and removed names of any type.
    merged
        Names of the remaining merged entities, by id.
    """

    request: ErasureRequest
    found: Affected
    unused: Collection[tuple[str, str]]
    unheld: Collection[str]
    merged: Mapping[str, str]

    def scrubbed(self, merge: Merge) -> Merge:
        """Return a merge without erased data."""
        episodes = self.request.episodes
        names = {**self.merged, merge.kept_id: merge.kept.name, merge.merged.id: merge.merged.name}
        mentions = tuple(mention for mention in merge.mentions if mention.episode_id not in episodes)
        shared = tuple(i for i in merge.shared if i not in episodes)
        alone = [f.edge.changed(id=f.into.id) for f in merge.folded if f.into is not None and self._goes(f.into)]
        gone = {e.id for e in (*merge.edges, *(f.edge for f in merge.folded)) if self._goes(e)}
        left = (e for e in (*merge.edges, *alone) if not self._goes(e) and gone.isdisjoint(e.premises))
        edges = tuple(self._rewritten(edge, names) for edge in left)
        folded = tuple(
            pair.changed(
                edge=self._rewritten(pair.edge, names),
                into=None if pair.into is None else self._rewritten(pair.into, names),
            )
            for pair in merge.folded
            if not self._goes(pair.edge)
            and gone.isdisjoint(pair.edge.premises)
            and (pair.into is None or not self._goes(pair.into))
        )
        unmentioned = (len(mentions), len(shared)) != (len(merge.mentions), len(merge.shared))
        clear = unmentioned or edges != merge.edges or folded != merge.folded
        return merge.changed(
            kept=self._without_summary(merge.kept, clear=clear),
            merged=self._without_summary(merge.merged, clear=clear),
            mentions=mentions,
            edges=edges,
            folded=folded,
            shared=shared,
            aliases=self._used(merge.aliases),
            added=self._used(merge.added),
        )

    def _goes(self, edge: Edge) -> bool:
        return fact_goes(self.request, self.found.facts, self.found.entities, edge)

    def _used(self, aliases: tuple[Alias, ...]) -> tuple[Alias, ...]:
        unused = self.unused
        return tuple(a for a in aliases if a.alias not in self.unheld and (a.alias, a.entity_type) not in unused)

    def _rewritten(self, edge: Edge, names: Mapping[str, str]) -> Edge:
        """Return a fact without forgotten episodes and ends, and without a sentence that quotes erased text."""
        request = self.request
        edge = edge.without_ends(self.found.facts.enders)
        if not set(edge.episode_ids) & request.episodes.keys() and not quotes_erased(self.found, edge):
            return edge
        known = {**entity_names(request.backend, request.scope, (edge.source_id, edge.target_id)), **names}
        return without(request, self.found, edge, lambda i: known.get(i, ""))

    def _without_summary(self, row: Entity, *, clear: bool) -> Entity:
        """Return an entity of the ledger, without its summary if that may quote erased text."""
        if clear or row.id in self.found.merges.relatives or self.found.quotes.found_in(row.summary):
            return row.changed(summary="")
        return row
