"""Search for the rows that an erasure affects, before `graphmem.upkeep.erase` changes any.

- Facts: a fact is removed if all its episodes are forgotten, and so is what was inferred from it. A fact that ended
  only because of a forgotten statement becomes valid again.
- Entities: an entity is removed if no other episode mentions it and no remaining fact is about it.
- Turns that follow a forgotten one were extracted with it as their context. A name in them that only stood in the
  forgotten text, such as that in the question before a "Yes", is removed with the facts about it. So are sentences and
  summaries with other words that only stood there.
- Merged entities: `graphmem.upkeep.affected_merges`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from graphmem.inference.premises import find_dependents
from graphmem.ingest.corrections import find_ended
from graphmem.ingest.supersession.rules import with_sources
from graphmem.models import (
    Alias,
    Edge,
    Entity,
    Episode,
    EpisodeQuery,
    Mention,
    Merge,
    MergeQuery,
    is_retracted,
)
from graphmem.ontology import SIMILAR_TO
from graphmem.text.names import NameFinder
from graphmem.text.normalize import canonical, relation_words
from graphmem.text.terms import stems
from graphmem.upkeep.affected_merges import AffectedMerges, find_merges
from graphmem.upkeep.erasure import AffectedEntities, AffectedFacts, ErasureRequest, named_in, texts_of
from graphmem.upkeep.reopened import find_reopened
from graphmem.upkeep.scope_rows import edges_of


@dataclass(frozen=True, slots=True)
class Affected:
    """All rows that an erasure affects.

    Attributes
    ----------
    facts, entities, merges
        Rows by kind.
    aliases
        Names of remaining entities that only a forgotten text used.
    taken
        Ids of remaining facts and entities whose sentence or summary has words that only forgotten turns contain.
    renamed
        Names of the entities that were displayed with one of these, by id.
    names, quotes
        The names that go, and what finds them in texts.
    """

    facts: AffectedFacts
    entities: AffectedEntities
    merges: AffectedMerges
    aliases: Sequence[Alias]
    taken: Set[str]
    renamed: Mapping[str, str]
    names: frozenset[str]
    quotes: NameFinder

    def without_name(self, entity: Entity) -> Entity:
        """Return an entity without a name that goes."""
        goes = any(a.entity_id == entity.id and a.alias == canonical(entity.name) for a in self.aliases)
        return entity.changed(name=self.renamed[entity.id]) if goes and entity.id in self.renamed else entity

    def quotes_erased(self, edge: Edge) -> bool:
        """Return whether the sentence of a fact, the reason of its end or its properties contain a name that goes."""
        texts = (edge.fact, edge.end_reason or "")
        return edge.id in self.taken or any(map(self.quotes.found_in, texts)) or self._properties_quote(edge)

    def _properties_quote(self, edge: Edge) -> bool:
        return bool(edge.properties) and not edge.is_inferred and self.quotes.found_in(str(edge.properties))

    def restated(self, request: ErasureRequest, edge: Edge, name_of: Callable[[str], str]) -> Edge:
        """Return a fact as the remaining episodes state it."""
        left = [i for i in edge.episode_ids if i not in request.episodes]
        if self.quotes.found_in(edge.end_reason or ""):
            edge = edge.changed(end_reason="over")
        if self._properties_quote(edge):
            edge = edge.changed(properties={})
        return with_sources(edge, left, name_of, plain=edge.id in self.taken or self.quotes.found_in(edge.fact))

    def forgotten_times(self, request: ErasureRequest) -> set[datetime]:
        """Return when forgotten episodes occurred, and when the facts began that they stated."""
        facts = (*self.facts.gone.values(), *self.facts.kept.values())
        stated = {each.at for edge in facts for each in edge.beginnings if each.by in request.episodes}
        return stated | {e.occurred_at for e in request.episodes.values()} | {edge.valid_from for edge in facts}


def find_affected(request: ErasureRequest) -> Affected:
    """Return the rows that an erasure affects."""
    turns = _turns_around(request)
    left = sorted(turns.keys() - request.episodes.keys())
    told = list(request.backend.all_mentions([request.scope], episode_ids=left)) if left else []
    borrowed = _find_borrowed(request, turns, told)
    facts = _find_facts(request, borrowed)
    entities = _find_entities(request, facts, borrowed)
    facts = _with_links(request, facts, entities)
    ledger = list(request.backend.all_merges([request.scope], MergeQuery(undone=True)))
    merges = find_merges(request, facts, entities, ledger)
    aliases = list(_find_aliases(request, entities, merges))
    renamed = _find_renamed(entities, aliases)
    names = entities.names | merges.names | {alias.alias for alias in aliases}
    longer = frozenset[str]() if request.subject is None else request.subject.longer
    taken = _find_taken(request, turns, told, ledger) - facts.gone.keys() - entities.gone.keys()
    return Affected(facts, entities, merges, aliases, taken, renamed, names, NameFinder(names, longer))


# Turns extracted with a forgotten one as their context ----------------------------------------------

_CONTEXT = 50  # turns; extractors are shown fewer (setting context_turns)
_LAST = "~"  # sorts after every id


def _find_borrowed(
    request: ErasureRequest, turns: Mapping[str, Episode], mentions: Sequence[Mention]
) -> Sequence[Mention]:
    """Return the mentions in remaining turns whose names stand in forgotten turns before them, and in no other."""
    texts = {i: "\n".join(texts_of(turns[i])) for i in sorted(turns)}

    @cache
    def first_with(name: str, session: str | None, *, forgotten: bool) -> str:
        turns_with = (
            i
            for i, text in texts.items()
            if (i in request.episodes) == forgotten and turns[i].session_id == session and named_in([name], [text])
        )
        return next(turns_with, _LAST)

    def is_borrowed(mention: Mention) -> bool:
        at, asked = mention.episode_id, (mention.surface, turns[mention.episode_id].session_id)
        return first_with(*asked, forgotten=True) <= at < first_with(*asked, forgotten=False)

    return list(filter(is_borrowed, mentions))


def _find_taken(
    request: ErasureRequest, turns: Mapping[str, Episode], mentions: Sequence[Mention], ledger: Sequence[Merge]
) -> set[str]:
    """Return the ids of facts and entities with words, except names, that only forgotten turns before theirs have."""
    backend, scope = request.backend, request.scope
    left = sorted(turns.keys() - request.episodes.keys())
    if not left:
        return set()
    first_left: dict[tuple[str | None, str], str] = {}  # session and word → first turn
    first_forgotten: dict[tuple[str | None, str], str] = {}
    for i in sorted(turns):
        first = first_forgotten if i in request.episodes else first_left
        for word in stems("\n".join(texts_of(turns[i]))):
            first.setdefault((turns[i].session_id, word), i)
    entities = backend.get_entities([scope], sorted({mention.entity_id for mention in mentions}))
    facts = [*backend.get_edges([scope], backend.find_edges_of_episodes(scope, left)).values()]
    for merge in ledger:
        facts += (edge for edge in (*merge.edges, *(folded.edge for folded in merge.folded)) if edge.episode_ids)
    texts = [(edge.id, edge.episode_ids[0], f"{relation_words(edge.relation)} {edge.fact}") for edge in facts]
    texts += [(i, m.episode_id, e.summary) for m in mentions if (e := entities.get(i := m.entity_id)) and e.summary]
    names = stems(" ".join(row.name for row in (*entities.values(), *(merge.merged for merge in ledger))))
    said_in = {i: turns[i].session_id for i in left}
    return {
        row_id
        for row_id, at, text in texts
        if at in said_in
        and any(
            first_forgotten.get((said_in[at], word), _LAST) <= at < first_left.get((said_in[at], word), _LAST)
            for word in stems(text) - names
        )
    }


def _turns_around(request: ErasureRequest) -> dict[str, Episode]:
    """Return the forgotten turns that others follow in their session, with those before and after them, by id."""
    found: dict[str, Episode] = {}
    covered: set[str] = set()
    for episode in sorted(request.episodes.values(), key=lambda each: each.id):
        if episode.session_id is None or episode.id in covered:
            continue
        query = EpisodeQuery(session_id=episode.session_id)
        after = request.backend.find_episodes([request.scope], query, after=episode.id, limit=2 * _CONTEXT)
        covered.update(each.id for each in after[:_CONTEXT])
        if all(each.id in request.episodes for each in after):
            continue
        query = EpisodeQuery(session_id=episode.session_id, before=episode.id)
        before = request.backend.find_episodes([request.scope], query, limit=_CONTEXT, newest_first=True)
        found |= {each.id: each for each in (*before, episode, *after)}
    return found


# Facts --------------------------------------------------------------------------------------------


def _find_facts(request: ErasureRequest, borrowed: Sequence[Mention]) -> AffectedFacts:
    backend, scope, episodes = request.backend, request.scope, request.episodes
    named = {(mention.episode_id, mention.entity_id) for mention in borrowed}
    told_in = [*episodes, *{mention.episode_id for mention in borrowed}]
    found = backend.get_edges([scope], backend.find_edges_of_episodes(scope, told_in))
    less_sure = _find_less_sure(request, found)

    def goes(edge: Edge) -> bool:
        left = set(edge.episode_ids) - episodes.keys() - less_sure.get(edge.id, set())
        return all((i, edge.source_id) in named or (i, edge.target_id) in named for i in left)

    gone = {i: edge for i, edge in found.items() if goes(edge)}
    stated = {i: edge for i, edge in found.items() if not episodes.keys().isdisjoint(edge.episode_ids)}
    if request.entity is not None:
        gone.update((edge.id, edge) for edge in edges_of(backend, scope, request.entity.id))
    gone.update(find_dependents(backend, scope, gone))
    kept = {i: edge for i, edge in stated.items() if i not in gone}
    reopened, enders = find_reopened(request, gone, kept)
    return AffectedFacts(gone, kept, reopened, enders)


def _find_less_sure(request: ErasureRequest, facts: Mapping[str, Edge]) -> Mapping[str, Set[str]]:
    """Return the episodes that state facts less surely, in versions that surer ones replaced, by the surer one."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in find_ended(request.backend, request.scope, facts).values():
        fact = facts.get(row.superseded_by or "")
        if fact is not None and row.key == fact.key and row.certainty != fact.certainty and is_retracted(row):
            found[fact.id].update(row.episode_ids)
    return found


# Entities -----------------------------------------------------------------------------------------


def _find_entities(request: ErasureRequest, facts: AffectedFacts, borrowed: Sequence[Mention]) -> AffectedEntities:
    backend, scopes = request.backend, [request.scope]
    forgotten = backend.all_mentions(scopes, episode_ids=list(request.episodes)) if request.episodes else []
    mentions = [*forgotten, *borrowed]
    mentioned = {mention.entity_id for mention in mentions}
    ends = {end for edge in facts.gone.values() for end in (edge.source_id, edge.target_id)}
    touched = backend.get_entities(scopes, sorted(mentioned | ends))
    others, redacted = _other_mentions(request, touched, borrowed)
    alone = _unknown(request, touched, others)
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
    request: ErasureRequest, touched: Mapping[str, Entity], borrowed: Collection[Mention]
) -> tuple[dict[str, list[Mention]], list[Mention]]:
    """Return the mentions of entities in remaining texts, by entity, and those in lines that texts lose."""
    others: dict[str, list[Mention]] = {}
    redacted: list[Mention] = []
    if touched:
        keys = {(mention.entity_id, mention.episode_id) for mention in borrowed}
        for mention in request.backend.all_mentions([request.scope], entity_ids=list(touched)):
            if mention.episode_id in request.episodes:
                continue
            if (mention.entity_id, mention.episode_id) in keys or _is_redacted(request, mention):
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
    left = (e for e in edges_of(request.backend, request.scope, *entity_ids) if e.id not in facts.gone)
    return {end for edge in left if not _is_link(edge) for end in (edge.source_id, edge.target_id)}


def _is_link(edge: Edge) -> bool:
    """Return whether an edge comes from note linking; it goes with either of its entities."""
    return edge.relation == SIMILAR_TO and not edge.episode_ids


def _with_links(request: ErasureRequest, facts: AffectedFacts, entities: AffectedEntities) -> AffectedFacts:
    """Return the affected facts with the links of the entities that go."""
    links = {e.id: e for e in edges_of(request.backend, request.scope, *entities.gone) if _is_link(e)}
    return replace(facts, gone={**facts.gone, **links})


def _names_of(request: ErasureRequest, gone: Mapping[str, Entity], *, values: Collection[str]) -> frozenset[str]:
    """Return the names that go; those of `values` stay in episodes that are kept."""
    aliases = request.backend.find_aliases([request.scope], list(gone)) if gone else []
    names = {alias.alias for alias in aliases if alias.entity_id not in values}
    if request.subject is None:
        return frozenset(names)
    shared = {alias.alias for alias in aliases if request.entity is not None and alias.entity_id == request.entity.id}
    return frozenset(names - shared) | request.subject.names


def _find_aliases(request: ErasureRequest, entities: AffectedEntities, merges: AffectedMerges) -> Iterator[Alias]:
    """Yield the aliases of remaining entities that only a forgotten text used."""
    used: dict[str, set[str]] = {}
    for mention in entities.mentions:
        used.setdefault(mention.entity_id, set()).add(canonical(mention.surface))
    before = _surfaces_before_merges(request, merges)
    texts = [text for episode in request.episodes.values() for text in texts_of(episode)]
    left = entities.left
    for alias in request.backend.find_aliases([request.scope], [i for i in left if i in used]):
        others = entities.other_mentions.get(alias.entity_id, ())
        surfaces = {canonical(mention.surface) for mention in others} | before.get(alias.entity_id, set())
        if alias.alias in surfaces or alias.alias == left[alias.entity_id].canonical_name:
            continue
        if alias.alias not in used[alias.entity_id] and not named_in({alias.alias}, texts):
            continue
        # an episode has one mention of an entity, also if it uses two of its names
        if not named_in({alias.alias}, request.texts([mention.episode_id for mention in others])):
            yield alias


def _surfaces_before_merges(request: ErasureRequest, merges: AffectedMerges) -> Mapping[str, set[str]]:
    """Return the names of merged entities in the remaining episodes, by the entity that holds them now."""
    surfaces: dict[str, set[str]] = {}
    for merge in merges.ledger:
        holder = merges.holders.get(merge.merged.id)
        if holder is None or merge.merged.id in merges.gone:
            continue
        names = surfaces.setdefault(holder, set())
        names.add(merge.merged.canonical_name)
        names.update(canonical(m.surface) for m in merge.mentions if m.episode_id not in request.episodes)
    return surfaces


def _find_renamed(entities: AffectedEntities, aliases: Iterable[Alias]) -> dict[str, str]:
    """Return the names of entities that are displayed with a name that goes, by id, as the other texts have them."""
    renamed: dict[str, str] = {}
    for alias in aliases:
        entity = entities.left[alias.entity_id]
        if alias.alias == canonical(entity.name):
            mentions = sorted(entities.other_mentions.get(entity.id, ()), key=lambda mention: mention.seen_at)
            forms = [m.surface for m in mentions if canonical(m.surface) == entity.canonical_name]
            renamed[entity.id] = forms[-1] if forms else entity.canonical_name
    return renamed
