"""Unmerge: restores both entities of a merge and assigns later data to the entity that it was stated about.

Facts are divided by `graphmem.upkeep.divided_facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.errors import InvalidInput, NotFound
from graphmem.inference.premises import expiries_before_replacement, write_facts
from graphmem.models import (
    Certainty,
    Changes,
    Edge,
    EdgeKey,
    Entity,
    Episode,
    Mention,
    Merge,
    MergeQuery,
    Removal,
    Scope,
    utc_now,
)
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import canonical
from graphmem.upkeep.divided_facts import DividedFacts
from graphmem.upkeep.merge import repointed, without_merge


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


class _Unmerge:
    """One unmerge; collects the changes and writes them."""

    def __init__(
        self, backend: GraphBackend, merge: Merge, kept: Entity, others: Sequence[Merge], ontology: Ontology
    ) -> None:
        self._backend = backend
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
        self._names = own - kept_names  # names that both entities have are ambiguous and stay with the kept one
        self._episodes: dict[str, Episode] = {}
        self._brought: set[str] = set()
        self._own_times: set[datetime] = set()
        named = {self._id: {merge.merged.canonical_name, *own}, kept.id: {kept.canonical_name, *kept_names}}
        self._facts = DividedFacts(backend, merge, self._later, kept, named, self._episodes, ontology)

    def run(self) -> Unmerged:
        merge, divided = self._merge, self._facts
        mentions = self._mentions()
        before = {mention.episode_id for mention in merge.mentions}
        divided.divide({mention.episode_id for mention in mentions} - before)
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
        divided.settle(undone_at)
        divided.end_by_later(undone_at)
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
                    (divided.stored[i] for i in divided.edges if i in divided.stored), undone_at
                ),
                edges=tuple(divided.edges.values()),
                mentions=(*mentions, *self._of_others()),
                merges=(undone, *(self._without_this(other) for other in later)),
                removals=(
                    *(
                        Removal("alias", a.alias, a.entity_type)
                        for a in merge.added
                        if (a.alias, a.entity_type) in held
                    ),
                    *(Removal("index", i, "fact") for i in divided.reworded()),
                ),
            ),
        )
        if merge.foreign is not None:
            self._backend.restore_foreign(merge)
        facts = sum(self._id in (edge.source_id, edge.target_id) for edge in divided.edges.values())
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
        for edge in {**self._facts.stored, **self._facts.edges}.values():
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
            f if (into := self._facts.targets.get((other.id, f.edge.id))) is None else f.changed(into=into)
            for f in other.folded
        )
        shared = tuple(i for i in other.shared if i not in self._brought or i in mentioned)
        return other.changed(shared=shared, folded=tuple(folded))
