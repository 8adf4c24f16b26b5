"""Search for the rows that an erasure affects, before `graphmem.upkeep.erase` changes any.

- Facts: a fact is removed if all its episodes are forgotten, and so is what was inferred from it. A fact that ended
  only because of a forgotten statement becomes valid again.
- Entities: an entity is removed if no other episode mentions it and no remaining fact is about it.
- Merged entities: the same applies to entities that were merged into another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphmem.inference.premises import find_dependents
from graphmem.models import Alias, EdgeQuery, Entity, Mention, Merge, MergeQuery
from graphmem.text.names import NameFinder
from graphmem.upkeep.erasure import AffectedEntities, AffectedFacts, ErasureRequest
from graphmem.upkeep.forgotten_aliases import find_erased_merges
from graphmem.upkeep.lookup import edges_of
from graphmem.upkeep.reopen import find_reopened


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
