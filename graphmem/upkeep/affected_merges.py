"""Search for the merged entities that an erasure affects.

They have no rows of their own, but rows in the merge ledger, mentions, facts and later uses of their names. Like other
entities, they are removed if only forgotten data names them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphmem.models import Alias, Entity, Mention, Merge
from graphmem.text.normalize import canonical
from graphmem.upkeep.erasure import AffectedEntities, AffectedFacts, ErasureRequest, fact_goes, named_in


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


def find_merges(
    request: ErasureRequest, facts: AffectedFacts, entities: AffectedEntities, ledger: Sequence[Merge]
) -> AffectedMerges:
    """Return what an erasure that affects these facts and entities affects in the merge ledger of the scope."""
    backend, scopes = request.backend, [request.scope]
    aliases = backend.find_aliases(scopes, list(entities.left)) if ledger and entities.left else []
    active = [merge for merge in ledger if merge.undone_at is None]
    found = _Search(active, aliases, request, facts, entities).run()
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


@dataclass(slots=True)
class _ErasedMerges:
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


class _Search:
    """Search for the merged entities to remove.

    Parameters
    ----------
    merges
        Merges of the scope that aren't undone.
    aliases
        Aliases of the remaining entities.
    request, facts, entities
        The erasure, and the facts and entities that it affects.
    """

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

    def run(self) -> _ErasedMerges:
        found = _ErasedMerges()
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
        left = (edge for edge in stated if not edge.is_inferred and edge.id not in before)
        return (
            any(mention.episode_id not in request.episodes for mention in self._own_mentions(merge))
            or not all(fact_goes(request, self._facts, self._entities, edge) for edge in left)
            or any(canonical(mention.surface) in names for mention in others)
            or named_in(names, request.texts([mention.episode_id for mention in others]))
        )
