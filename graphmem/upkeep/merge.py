"""Merge of entities; `graphmem.upkeep.unmerge` undoes it.

After a merge, the facts of a single-valued relation of both entities follow each other (`graphmem.upkeep.succession`).
A fact that both entities have begins when the first of them does, or stays two if another one held in between; the
surer telling stays current.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from graphmem.errors import InvalidInput
from graphmem.inference.premises import (
    MovedRejections,
    find_compatible,
    find_dependents,
    move_rejected,
    write_facts,
)
from graphmem.ingest.fact_ledger import Load, canonical_names, entity_names, episode_sources
from graphmem.ingest.supersession.decisions import less_sure
from graphmem.ingest.supersession.rules import (
    Compatible,
    begun_with,
    supported,
    with_sources,
)
from graphmem.models import (
    Alias,
    Changes,
    Corroboration,
    Edge,
    EdgeQuery,
    Entity,
    FoldedEdge,
    Membership,
    MembershipQuery,
    Merge,
    MergeMethod,
    Removal,
    Scope,
    ended,
    is_retracted,
    utc_now,
)
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import GraphBackend
from graphmem.upkeep.scope_rows import edges_of, entity_called
from graphmem.upkeep.succession import counts_in_slot, ended_by_merge, slot_of, successor, with_renamed

_UNITED = ("summary", "confidence", "first_seen_at", "last_seen_at", "archived_at")


def merge_entities(
    backend: GraphBackend,
    scope: Scope,
    names_or_ids: Sequence[str],
    into: str,
    ontology: Ontology = DEFAULT_ONTOLOGY,
    *,
    method: MergeMethod = "manual",
) -> list[Merge]:
    """Merge entities into one, in one transaction.

    Facts are re-pointed to the kept entity; inferred ones go, and can be inferred again, except those that somebody
    ended or retracted: they move, too. A fact that the kept entity already has is folded into that fact, which gets the
    higher confidence and all episodes. If one is surer than the other, it stays current
    (`graphmem.ingest.supersession.decisions.less_sure`): the other one ends when it begins, or confirms it. A fact
    between the two entities is dropped. In a single-valued relation, a fact ends where the next one of the other entity
    begins that may end it by `graphmem.ingest.supersession.rules.ends_from`. Names and mentions move. The ledger gets a
    row for each.

    Parameters
    ----------
    backend, scope
        Store and scope of the entities.
    names_or_ids
        Entities to merge.
    into
        Entity to keep.
    ontology
        Defines which relations are single-valued.
    method
        What decided the merge.

    Raises
    ------
    NotFound
        If one of them isn't in the scope.
    InvalidInput
        If no entity is named, a name is ambiguous, or an entity would be merged with itself.
    """

    def work() -> list[Merge]:
        kept = entity_called(backend, scope, into)
        gone = [entity_called(backend, scope, name) for name in names_or_ids]
        if not gone:
            raise InvalidInput("merge: expected at least one entity to merge, got none")
        for name, entity in zip(names_or_ids, gone, strict=True):
            if entity.id == kept.id:
                raise InvalidInput(f"merge: {name!r} and {into!r} are the same entity, {kept.id}")
        ids = dict.fromkeys(entity.id for entity in gone)
        return [_merge(backend, scope, i, kept.id, ontology, method=method) for i in ids]

    return backend.atomic(work)


def repeat_merge(backend: GraphBackend, scope: Scope, merge: Merge, ontology: Ontology) -> None:
    """Merge entities that were merged in another copy of the scope; `merge` is its row in the ledger there.

    The ledger gets this row, with the facts and mentions that only this scope has. If one of the entities isn't in this
    scope, that is all.
    """

    def work() -> None:
        if len(backend.get_entities([scope], [merge.merged.id, merge.kept_id])) == 2:
            _merge(backend, scope, merge.merged.id, merge.kept_id, ontology, merge)
        else:
            write_facts(backend, scope, Changes(merges=(merge,)))

    backend.atomic(work)


def _merge(
    backend: GraphBackend,
    scope: Scope,
    gone_id: str,
    kept_id: str,
    ontology: Ontology,
    like: Merge | None = None,
    *,
    method: MergeMethod = "manual",
) -> Merge:
    rows = backend.get_entities([scope], [gone_id, kept_id])
    gone, kept = rows[gone_id], rows[kept_id]
    at = utc_now() if like is None else like.at
    inferred = EdgeQuery(source_ids=(gone_id, kept_id), kinds=("inferred",), versions="all")
    known = {edge.id: edge for edge in backend.all_edges([scope], inferred)}
    compatible = with_renamed(find_compatible(backend, scope, known), gone_id, kept_id)
    moved, folded, edges = _edges(backend, scope, gone_id, kept_id, at, ontology, compatible)
    aliases, added = _aliases(backend, scope, gone, kept)
    mentions = backend.all_mentions([scope], entity_ids=[gone_id])
    episodes = [mention.episode_id for mention in mentions]
    own = backend.all_mentions([scope], entity_ids=[kept_id], episode_ids=episodes)
    shared = tuple(mention.episode_id for mention in own)
    merge = Merge(
        scope=scope,
        kept_id=kept_id,
        kept=kept,
        merged=gone,
        method=method,
        at=at,
        aliases=aliases,
        added=added,
        edges=tuple(moved),
        folded=tuple(folded),
        mentions=tuple(mentions),
        shared=shared,
    )
    if like is not None:
        merge = _with_rows_of(like, merge)
    merge = merge.changed(foreign=backend.move_foreign(merge))
    write_facts(
        backend,
        scope,
        Changes(
            entities=(_united(kept, gone),),
            aliases=(*(alias.changed(entity_id=kept_id) for alias in aliases), *added),
            edges=tuple(edges),
            corroborations=tuple(
                Corroboration(f.into.id, f.edge.confidence, f.edge.episode_ids) for f in folded if f.into is not None
            ),
            mentions=tuple(m.changed(entity_id=kept_id) for m in mentions if m.episode_id not in shared),
            memberships=_memberships(backend, scope, gone_id, kept_id, merge.at),
            merges=(merge,),
            removals=(Removal("entity", gone_id),),
        ),
    )
    there = {edge.id: edge for edge in edges_of(backend, scope, kept_id) if not edge.is_inferred}
    changed = {edge.id: edge for edge in _begun(there, folded, ontology)}
    load = partial(episode_sources, backend, scope)
    now_there = {**there, **changed}.values()
    over = ended_by_merge(now_there, {edge.id for edge in moved}, ontology, load, merge.at, compatible)
    changed.update((edge.id, edge) for edge in over)
    write_facts(backend, scope, Changes(edges=tuple(changed.values())), there)
    return merge


def _with_rows_of(merge: Merge, other: Merge) -> Merge:
    """Return a merge with the facts and mentions of the merged entity that only another record of it has."""
    facts = {edge.id for edge in (*merge.edges, *(fold.edge for fold in merge.folded))}
    episodes = {mention.episode_id for mention in merge.mentions}
    return merge.changed(
        edges=(*merge.edges, *(edge for edge in other.edges if edge.id not in facts)),
        folded=(*merge.folded, *(fold for fold in other.folded if fold.edge.id not in facts)),
        mentions=(*merge.mentions, *(m for m in other.mentions if m.episode_id not in episodes)),
        shared=(*merge.shared, *(i for i in other.shared if i not in episodes)),
    )


def _begun(there: Mapping[str, Edge], folded: Iterable[FoldedEdge], ontology: Ontology) -> Iterator[Edge]:
    """Yield the facts that began when the facts folded into them say, unless another one of the slot held then."""
    slots: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in there.values():
        slots[slot_of(edge)].append(edge)
    for fold in folded:
        into = there.get(fold.into.id) if fold.into is not None else None
        if into is None or into.certainty != fold.edge.certainty:
            continue
        begun = begun_with(into, fold.edge)
        single = ontology.is_single_valued(into.relation)
        rivals = (edge for edge in slots[slot_of(into)] if single or edge.key == into.key)
        if any(_holds_between(edge, begun.valid_from, into.valid_from) for edge in rivals):
            begun = into.changed(beginnings=begun.beginnings)
        if begun != into:
            yield begun


def _holds_between(edge: Edge, begin: datetime, end: datetime) -> bool:
    return not is_retracted(edge) and edge.valid_from < end and (edge.valid_to is None or edge.valid_to > begin)


def repointed(edge: Edge, old: str, new: str) -> Edge:
    """Return a fact with one of its entities replaced by another."""
    return edge.changed(
        source_id=new if edge.source_id == old else edge.source_id,
        target_id=new if edge.target_id == old else edge.target_id,
    )


def _edges(
    backend: GraphBackend, scope: Scope, gone: str, kept: str, at: datetime, ontology: Ontology, compatible: Compatible
) -> tuple[list[Edge], list[FoldedEdge], list[Edge]]:
    """Return the facts that move and those that are folded, as they are, and the rows to write, ended ones first."""
    versions = [edge for edge in edges_of(backend, scope, kept) if not edge.is_inferred]
    held = {edge.key: edge for edge in versions if edge.is_active}
    moved: list[Edge] = []
    folded: list[FoldedEdge] = []
    rows: list[Edge] = []
    known = edges_of(backend, scope, gone)
    own = [(edge, repointed(edge, gone, kept)) for edge in known if not edge.is_inferred]
    twins = {edge.id: (there, held[there.key]) for edge, there in own if edge.is_active and there.key in held}
    unlike = [edge for pair in twins.values() if pair[0].certainty != pair[1].certainty for edge in pair]
    load = partial(episode_sources, backend, scope, named={kept: _names(backend, scope, gone, kept)})
    sources = load(unlike)
    versions += (there for _, there in own)
    parted = _parted(twins, versions, ontology, load, compatible, at)
    for edge, there in own:
        twin = twins.get(edge.id)
        less = None if twin is None else less_sure(*twin, sources, now=at)
        confirms = less is not None and is_retracted(less) and less.end_reason == "replaced"  # no plan that came true
        if there.source_id == there.target_id:
            folded.append(FoldedEdge(edge=edge))
        elif edge.id in parted:
            moved.append(edge)
            earlier = parted[edge.id]
            rows += [earlier] if earlier.id == edge.id else [earlier, there]
        elif twin is not None and (less is None or (less.id == edge.id and confirms)):
            folded.append(FoldedEdge(edge=edge, into=twin[1]))
        else:
            moved.append(edge)
            if less is None:
                rows.append(there)
            elif less.id == edge.id:
                rows.append(less)
            else:
                rows += (less, supported(there, less) if confirms else there)
    rejected = _rejected(backend, scope, known, folded, lambda edge: repointed(edge, gone, kept), at)
    moved += rejected.before
    folded += (FoldedEdge(edge=edge) for edge in rejected.dropped)
    rows += rejected.rows
    return moved, folded, sorted(rows, key=lambda edge: edge.is_active)


def _names(backend: GraphBackend, scope: Scope, *entity_ids: str) -> set[str]:
    """Return the names of some entities together, in canonical form: who tells a fact of one tells it of itself."""
    return {name for _, name in canonical_names(backend, scope, entity_ids)}


def _parted(
    twins: Mapping[str, tuple[Edge, Edge]],
    versions: Sequence[Edge],
    ontology: Ontology,
    load: Load,
    compatible: Compatible,
    at: datetime,
) -> dict[str, Edge]:
    """Return the facts that stay two, as another one began between the beginnings of both entities' facts.

    They are given as the earlier fact of each pair, which ends when that one began, by the id of the merged entity's.
    """
    slots = {slot_of(edge) for edge, _ in twins.values() if ontology.is_single_valued(edge.relation)}
    beside = [edge for edge in versions if slot_of(edge) in slots and counts_in_slot(edge)]
    sources = load(beside)
    parted: dict[str, Edge] = {}
    for i, pair in twins.items():
        earlier, later = sorted(pair, key=lambda edge: edge.valid_from)
        rivals = (edge for edge in beside if slot_of(edge) == slot_of(earlier) and edge.key != earlier.key)
        found = successor(earlier, rivals, sources, compatible)
        if earlier.certainty == later.certainty and found is not None and found[1] <= later.valid_from:
            parted[i] = ended(earlier, found[1], at, "replaced", found[0].id)
    return parted


def _rejected(
    backend: GraphBackend,
    scope: Scope,
    known: Sequence[Edge],
    folded: Sequence[FoldedEdge],
    repoint: Callable[[Edge], Edge],
    at: datetime,
) -> MovedRejections:
    """Return what becomes of inferred facts that somebody rejected, with the texts of the rows to write.

    `known` are the facts of the merged entity, and `folded` those of them that go.
    """
    inferred = {edge.id: edge for edge in known if edge.is_inferred}
    place = {f.edge.id: None if f.into is None else f.into.id for f in folded}
    dependents = find_dependents(backend, scope, inferred | {f.edge.id: f.edge for f in folded})
    found = move_rejected((inferred | dependents).values(), place, repoint, at)
    if found.rows:
        names = entity_names(backend, scope, {end for row in found.rows for end in (row.source_id, row.target_id)})
        found.rows = [with_sources(row, (), names.__getitem__, plain=True) for row in found.rows]
    return found


def _aliases(
    backend: GraphBackend, scope: Scope, gone: Entity, kept: Entity
) -> tuple[tuple[Alias, ...], tuple[Alias, ...]]:
    """Return the aliases of the merged entity, and new ones that register its names under the kept entity's type."""
    aliases = backend.find_aliases([scope], [gone.id])
    names = list(dict.fromkeys(alias.alias for alias in aliases))
    if gone.entity_type == kept.entity_type or not names:
        return tuple(aliases), ()
    taken = {name for name, entity in backend.resolve_names(scope, names) if entity.id != gone.id}
    stated = {alias.alias for alias in aliases if alias.entity_type == kept.entity_type}
    added = (name for name in names if name not in taken and name not in stated)
    return tuple(aliases), tuple(Alias(alias=n, entity_type=kept.entity_type, entity_id=kept.id) for n in added)


def _memberships(backend: GraphBackend, scope: Scope, gone: str, kept: str, at: datetime) -> tuple[Membership, ...]:
    """Return memberships that link the kept entity to the communities of the merged one, whose texts contain its facts.

    These memberships have zero duration, so that no read returns them; an erasure finds the communities by them.
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


def without_merge(now: Entity, merge: Merge, later: Sequence[Merge]) -> tuple[Entity, list[Merge]]:
    """Return the kept entity, and later merges into it, without the effect of a merge. Later changes stay."""
    merged, unmerged = _united(merge.kept, merge.merged), merge.kept

    def without(row: Entity) -> Entity:
        back = {name: getattr(unmerged, name) for name in _UNITED if getattr(row, name) == getattr(merged, name)}
        return row.changed(**back, access_count=max(0, row.access_count - merge.merged.access_count))

    rewritten: list[Merge] = []
    for other in later:
        kept = without(other.kept)
        rewritten.append(other.changed(kept=kept))
        merged, unmerged = _united(other.kept, other.merged), _united(kept, other.merged)
    return without(now), rewritten
