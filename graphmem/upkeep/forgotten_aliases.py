"""Merged entities that nothing but what is forgotten named: they live on in the ledger and as names of others.

A merged entity has no row. What tells of it are its row in the ledger, with its mentions and facts, and what its names
were used for since; forgotten is it when none of that is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphmem.models import Alias, Edge, Entity, Episode, Mention, Merge
from graphmem.text.normalize import canonical

OtherTexts = Callable[[Collection[str]], Iterable[str]]
NamedIn = Callable[[Iterable[str], Iterable[str]], bool]


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What an erasure knows when it asks which merged entities go.

    Attributes
    ----------
    episodes
        Those that go, by id.
    gone, left
        Entities that go, and others that a forgotten episode mentions; by id.
    mentions
        In the forgotten episodes.
    other_mentions
        In other ones, by entity.
    fact_goes
        Tells whether nobody else stated a fact.
    other_texts
        Returns the texts of episodes with these ids.
    named_in
        Tells whether one of some names is in one of some texts.
    """

    episodes: Mapping[str, Episode]
    gone: Collection[str]
    left: Mapping[str, Entity]
    mentions: Sequence[Mention]
    other_mentions: Mapping[str, Sequence[Mention]]
    fact_goes: Callable[[Edge], bool]
    other_texts: OtherTexts
    named_in: NamedIn


@dataclass(slots=True)
class MergedAway:
    """Merged entities that go.

    Attributes
    ----------
    ids
        Of the entities.
    names
        That only they went by, by the entity that has them now.
    holders
        The entity that has now what a merged one had, of every merged one.
    """

    ids: set[str] = field(default_factory=set[str])
    names: dict[str, set[str]] = field(default_factory=dict[str, "set[str]"])
    holders: dict[str, str] = field(default_factory=dict[str, str])


def merged_away(ledger: Iterable[Merge], aliases: Iterable[Alias], told: Forgetting) -> MergedAway:
    """Return the merged entities that go with what is forgotten.

    Parameters
    ----------
    ledger
        All merges of the scope.
    aliases
        Of the entities that are left.
    told
        What is forgotten.
    """
    return _Search([merge for merge in ledger if merge.undone_at is None], aliases, told).run()


class _Search:
    def __init__(self, merges: Sequence[Merge], aliases: Iterable[Alias], told: Forgetting) -> None:
        self._told = told
        self._of = {merge.merged.id: merge for merge in merges}
        self._into: defaultdict[str, list[Merge]] = defaultdict(list)
        for merge in merges:
            self._into[merge.kept_id].append(merge)
        brought = {(self._holder(m), a.alias, a.entity_type) for m in merges for a in (*m.aliases, *m.added)}
        self._held: defaultdict[str, set[str]] = defaultdict(set)  # names that no merge brought
        for alias in aliases:
            if (alias.entity_id, alias.alias, alias.entity_type) not in brought:
                self._held[alias.entity_id].add(alias.alias)

    def run(self) -> MergedAway:
        found = MergedAway()
        stay: defaultdict[str, set[str]] = defaultdict(set)
        for gone_id, merge in self._of.items():
            holder, names = self._holder(merge), self._names(merge)
            found.holders[gone_id] = holder
            if holder in self._told.gone:
                found.ids.add(gone_id)
            elif holder in self._told.left and self._goes(merge, holder, names):
                found.ids.add(gone_id)
                found.names.setdefault(holder, set()).update(names)
            else:
                stay[holder] |= names
        for holder, names in found.names.items():
            names -= stay[holder]
        return found

    def _holder(self, merge: Merge) -> str:
        """Return the entity that has now what the merged one had: the kept one may have been merged itself."""
        seen = {merge.merged.id}
        while (further := self._of.get(merge.kept_id)) is not None and further.merged.id not in seen:
            seen.add(further.merged.id)
            merge = further
        return merge.kept_id

    def _names(self, merge: Merge) -> set[str]:
        """Return the names that only the merged entity had: neither the kept one, nor one merged into it before."""
        holder = self._holder(merge)
        names = {alias.alias for alias in merge.aliases} - self._names_before(merge) - self._held[holder]
        row = self._told.left.get(holder)
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
        """Return whether a forgotten episode named it."""
        told = self._told
        return (
            any(mention.episode_id in told.episodes for mention in self._own_mentions(merge))
            or any(m.entity_id == holder and canonical(m.surface) in names for m in told.mentions)
            or told.named_in(names, (episode.text for episode in told.episodes.values()))
        )

    def _known(self, merge: Merge, holder: str, names: set[str]) -> bool:
        """Return whether anything else names it."""
        told = self._told
        others = told.other_mentions.get(holder, ())
        before = {edge.id for m in self._into[merge.merged.id] for edge in (*m.edges, *(f.edge for f in m.folded))}
        stated = (*merge.edges, *(folded.edge for folded in merge.folded))
        return (
            any(mention.episode_id not in told.episodes for mention in self._own_mentions(merge))
            or any(edge.id not in before and not told.fact_goes(edge) for edge in stated)
            or any(canonical(mention.surface) in names for mention in others)
            or told.named_in(names, told.other_texts([mention.episode_id for mention in others]))
        )
