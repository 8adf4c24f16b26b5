"""Interpretation of extracted names, types and relations, and entity resolution by alias, canonical name and embedding.

Canonical names are aliases of their entities, so one look-up covers the first two; `graphmem.ingest.entity_matching`
does the third.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, get_args

from graphmem.errors import InvalidInput
from graphmem.models import (
    STATED_KINDS,
    Alias,
    Certainty,
    EdgeType,
    Entity,
    Episode,
    IndexEntry,
    Merge,
    MergeMethod,
    Properties,
    Removal,
    Scope,
    new_id,
)
from graphmem.models.base import is_placeholder
from graphmem.ontology import Ontology
from graphmem.protocols import EntityStore, ExtractedEdge, ExtractedEnding, ExtractedEntity, Extraction
from graphmem.text.names import is_description, may_be_same
from graphmem.text.normalize import canonical, fact_text, require_name

_CERTAINTIES = get_args(Certainty)
_EXCERPT = 300  # characters of a text that a judge of names sees


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A cleaned fact of an episode, before its ends are resolved; `edge_id` is the id of the edge if it is new."""

    source: EntityMention
    target: EntityMention
    relation: str
    edge_type: EdgeType
    fact: str
    stated: ExtractedEdge
    properties: Properties = field(default_factory=dict[str, "str | int | float | bool | None"])
    edge_id: str = field(default_factory=new_id, compare=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a known fact, named by its id or by source, relation and target, before these are resolved.

    Without a target it is the current fact of a single-valued relation.
    """

    source: EntityMention | None
    relation: str
    stated: ExtractedEnding
    target: EntityMention | None = None


@dataclass(frozen=True, slots=True)
class InterpretedEpisode:
    """Cleaned extraction of an episode.

    Attributes
    ----------
    contradicted
        Position of a statement → ids of edges that it ends, known ones or of earlier episodes, from the contradiction
        check.
    settles
        Whether the write marks the episode as processed; False for ready-made triples, which are never queued.
    """

    episode: Episode
    mentions: tuple[EntityMention, ...]
    statements: tuple[ExtractedFact, ...]
    contradicted: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    settles: bool = True
    endings: tuple[Ending, ...] = ()


def read_extraction(
    episode: Episode, extraction: Extraction, ontology: Ontology, dropped: Counter[str]
) -> InterpretedEpisode:
    """Return a cleaned extraction; invalid entries are dropped and counted in `dropped` instead of raising."""
    dropped.update(dict(extraction.dropped))
    speaker = frozenset({canonical(episode.speaker)} if episode.speaker else ()) | extraction.short_names
    text = (f"{episode.speaker}: " if episode.speaker else "") + episode.text[:_EXCERPT]
    mentions: dict[str, EntityMention] = {}
    for entity in extraction.entities:
        mention = _mention(entity, ontology, speaker, text, dropped)
        if mention is not None:
            mentions.setdefault(mention.canonical, mention)
    statements: list[ExtractedFact] = []
    for edge in extraction.edges:
        begin, until = _dated(edge.valid_from), _dated(edge.valid_to)
        if (begin, until) != (edge.valid_from, edge.valid_to):
            edge = replace(edge, valid_from=begin, valid_to=until)
        try:
            statements.append(statement_of(edge, mentions, ontology, allowed=speaker))
        except InvalidInput as error:
            dropped[_reason(error)] += 1
    endings: list[Ending] = []
    for ending in extraction.endings:
        if ending.valid_to != _dated(ending.valid_to):
            ending = replace(ending, valid_to=None)
        if ending.fact_id is not None:
            endings.append(Ending(None, "", ending))
            continue
        relation = ontology.relation(ending.relation)
        if ending.target is None and not ontology.is_single_valued(relation):
            dropped["ending of a relation with several values"] += 1
            continue
        try:
            source = EntityMention.of(ending.source, ending.source_type, ontology, allowed=speaker)
            target = None if ending.target is None else EntityMention.of(ending.target, None, ontology, allowed=speaker)
        except InvalidInput as error:
            dropped[_reason(error)] += 1
            continue
        target = target and mentions.get(target.canonical, target)
        endings.append(Ending(mentions.get(source.canonical, source), relation, ending, target))
    return InterpretedEpisode(episode, tuple(mentions.values()), tuple(statements), endings=tuple(endings))


def _mention(
    entity: ExtractedEntity, ontology: Ontology, speaker: frozenset[str], text: str, dropped: Counter[str]
) -> EntityMention | None:
    try:
        return EntityMention.of(
            entity.name,
            entity.entity_type,
            ontology,
            summary=fact_text(entity.summary),
            confidence=clamped(entity.confidence),
            allowed=speaker,
            guessed=entity.guessed,
            aliases=entity.aliases,
            text=text,
        )
    except InvalidInput as error:
        dropped[_reason(error)] += 1
        return None


def statement_of(
    edge: ExtractedEdge,
    mentions: Mapping[str, EntityMention],
    ontology: Ontology,
    *,
    allowed: frozenset[str] = frozenset(),
    properties: Properties | None = None,
) -> ExtractedFact:
    """Return a cleaned fact.

    Parameters
    ----------
    edge
        The extracted fact.
    mentions
        Entities of the same episode by canonical name; they supply types that the fact doesn't state.
    ontology
        Types and relations.
    allowed
        Canonical names that may be shorter than three characters.
    properties
        Properties of the edge.

    Raises
    ------
    InvalidInput
        If a name is too short or the relation is empty after cleaning, both ends are the same, a time is naive, or the
        certainty or the kind is none that the store knows.
    """
    if edge.certainty not in _CERTAINTIES or edge.kind not in STATED_KINDS:
        raise InvalidInput(f"unknown certainty or kind: {edge.certainty!r:.40}, {edge.kind!r:.40}")
    for field_name, moment in (("valid_from", edge.valid_from), ("valid_to", edge.valid_to)):
        if moment is not None and moment.utcoffset() is None:
            raise InvalidInput(f"naive {field_name}: {moment.isoformat()} has no time zone")
    relation = ontology.relation(edge.relation)
    source_type, target_type = ontology.signature(relation)
    confidence = clamped(edge.confidence)

    def end(name: str, stated: str | None, usual: str | None) -> EntityMention:
        mention = EntityMention.of(name, stated, ontology, usual_type=usual, confidence=confidence, allowed=allowed)
        listed = mentions.get(mention.canonical)
        return listed if listed is not None and (listed.guessed or not stated) else mention

    source = end(edge.source, edge.source_type, source_type)
    target = end(edge.target, edge.target_type, target_type)
    if (source.canonical, source.entity_type) == (target.canonical, target.entity_type):
        raise InvalidInput(f"self-loop: {edge.source!r} {relation} itself")
    kind, fact = ontology.edge_type(edge.edge_type, relation), fact_text(edge.fact)
    return ExtractedFact(source, target, relation, kind, fact, edge, properties or {})


def _dated(moment: datetime | None) -> datetime | None:
    """Return a time that is stated, or None for one that stands for no date."""
    return None if moment is None or is_placeholder(moment) else moment


def clamped(confidence: float) -> float:
    """Return a confidence within [0, 1], 0 for NaN."""
    return min(1.0, max(0.0, confidence)) if confidence == confidence else 0.0  # NaN differs from itself


def _reason(error: InvalidInput) -> str:
    return re.split("[:'\"]", str(error), maxsplit=1)[0].strip()  # without the name that it quotes


# Resolution ---------------------------------------------------------------------------------------


DECLARED_TYPE = "declared_type"
"""Property of a new entity: its stated type, where the ontology lacks it."""

TYPE_STATED = "type_stated"
"""Property that is False on entities of unstated type; the first mention with a stated type sets it."""


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A cleaned name from an episode.

    `entity_type` None means unstated: the mention resolves to a known entity of that name, else to a new one of the
    `usual_type`, which comes from its relation.
    """

    display: str
    canonical: str
    entity_type: str | None
    usual_type: str | None = None
    declared_type: str | None = None
    summary: str = ""
    confidence: float = 1.0
    guessed: bool = False
    """Whether `usual_type` is an extractor's guess; `entity_type` is None then."""
    aliases: tuple[str, ...] = ()
    """Canonical forms of other names that the text tells."""
    text: str = ""
    """Beginning of the text that has the name, for a judge."""

    @classmethod
    def of(
        cls,
        name: str,
        entity_type: str | None,
        ontology: Ontology,
        *,
        usual_type: str | None = None,
        summary: str = "",
        confidence: float = 1.0,
        allowed: frozenset[str] = frozenset(),
        guessed: bool = False,
        aliases: Sequence[str] = (),
        text: str = "",
    ) -> EntityMention:
        """Return a mention with its name and type cleaned.

        Raises
        ------
        InvalidEntityName
            If the cleaned name is too short.
        """
        display, key = require_name(name, ontology.short_names | allowed if allowed else ontology.short_names)
        kind, declared = (None, None) if entity_type is None else ontology.entity_type(entity_type)
        if guessed:
            kind, usual_type = None, kind
        others = tuple(alias for alias in dict.fromkeys(map(canonical, aliases)) if alias and alias != key)
        return cls(display, key, kind, usual_type, declared, summary, confidence, guessed, others, text)


class EntityMatcher(Protocol):
    """Matcher of the unknown names of one write with entities."""

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """Index entries of the entities passed to `keep`."""
        ...

    def find(self, mention: EntityMention, kind: str) -> tuple[Entity, MergeMethod, float] | None:
        """Return the entity that matches a name of a type, the method, and the cosine; None without a match."""
        ...

    def keep(self, entity: Entity) -> None:
        """Add a new entity of this write."""
        ...


class Resolver:
    """Resolver of the mentions of one write to known entities, which it updates, or new ones.

    Use it inside `GraphBackend.atomic`, which locks the names.

    Parameters
    ----------
    store, scope
        Store and scope of the known entities.
    mentions
        All mentions to resolve.
    now
        Transaction time of the write.
    make_matcher
        Returns the matcher for the other names, given (name, entity) of the known ones; None makes new entities of
        them.
    types_vary
        Whether a model states the types, which it does differently for the same thing; types of ready-made facts are
        taken as stated.
    names
        Further canonical names that `ids_of` is asked for.
    """

    def __init__(
        self,
        store: EntityStore,
        scope: Scope,
        mentions: Iterable[EntityMention],
        now: datetime,
        make_matcher: Callable[[Sequence[tuple[str, Entity]]], EntityMatcher] | None = None,
        *,
        types_vary: bool = True,
        names: Iterable[str] = (),
    ) -> None:
        self._scope = scope
        self._types_vary = types_vary
        self._now = now
        self._known: defaultdict[str, dict[str, Entity]] = defaultdict(dict)
        self._touched: dict[str, Entity] = {}
        self._new: set[str] = set()
        self._aliases: list[Alias] = []
        self._merges: list[Merge] = []
        self._outdated: dict[tuple[str, str], None] = {}
        self._usual: dict[str, str] = {}
        self._stated: dict[tuple[str, str], None] = {}
        asked = dict.fromkeys(names)
        for mention in mentions:
            if mention.entity_type is not None:
                self._stated[mention.canonical, mention.entity_type] = None
            asked.update(dict.fromkeys((mention.canonical, *mention.aliases)))
            if kind := mention.entity_type or mention.usual_type:
                self._usual.setdefault(mention.canonical, kind)
        known = store.resolve_names(scope, list(asked))
        for name, entity in known:
            self._known[name][entity.entity_type] = entity
        self._add_merged_types(store, known)
        self._matcher = None if make_matcher is None else make_matcher(known)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """Entities to write: new ones, then changed ones (stores write adjacent rows of a kind in one batch)."""
        return tuple(sorted(self._touched.values(), key=lambda entity: entity.id not in self._new))

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """Aliases that the write adds."""
        return tuple(self._aliases)

    @property
    def merges(self) -> tuple[Merge, ...]:
        """Merges of new names into known entities by embedding or judge."""
        return tuple(self._merges)

    @property
    def removals(self) -> tuple[Removal, ...]:
        """Removals of aliases under a former type of their entity, unless the write adds the same alias."""
        added = {(alias.alias, alias.entity_type) for alias in self._aliases}
        return tuple(Removal("alias", *named) for named in self._outdated if named not in added)

    @property
    def index(self) -> tuple[IndexEntry, ...]:
        """Index entries of the new entities."""
        return () if self._matcher is None else self._matcher.entries

    def is_new(self, entity_id: str) -> bool:
        """Return whether this write creates the entity."""
        return entity_id in self._new

    @property
    def new_ids(self) -> tuple[str, ...]:
        """Ids of the entities that this write creates."""
        return tuple(sorted(self._new))

    @property
    def created(self) -> int:
        """Number of entities that this write creates."""
        return len(self._new)

    def ids_of(self, name: str) -> set[str]:
        """Return the ids of the entities with a canonical name or alias, known or of this write so far."""
        return {entity.id for entity in self._known.get(name, {}).values()}

    def resolve(self, mention: EntityMention, seen_at: datetime) -> Entity:
        """Return the entity of a mention, created or updated by it."""
        by_type = self._known[mention.canonical]
        if mention.entity_type is None:
            usual = self._usual.get(mention.canonical, "")
            # prefer a more specific type to a concept
            others = (e for kind, e in sorted(by_type.items()) if kind != "concept")
            found = by_type.get(usual) or next(others, None) or by_type.get("concept")
            if mention.guessed and found is by_type.get("concept") and usual not in ("", "concept"):
                found = self._typed(by_type, usual, guessed=True) or found
        else:
            found = by_type.get(mention.entity_type) or self._declared(by_type, mention.declared_type)
            found = found or self._typed(by_type, mention.entity_type)
            if found is None and self._types_vary:
                found = _of_confusable_type(by_type, mention.entity_type)
        if found is None and mention.aliases:
            found = self._by_alias(mention)
        if found is None and (matched := self._matched(mention, seen_at)) is not None:
            found = matched
        if found is None:
            entity = self._create(mention, seen_at)
        else:
            entity = self._updated(self._touched.get(found.id, found), mention, seen_at)
        by_type[entity.entity_type] = entity
        for alias in mention.aliases:
            self._add_alias(alias, entity)
        return entity

    def _by_alias(self, mention: EntityMention) -> Entity | None:
        """Return the known entity whose full, real or new name a text gives, or None.

        "Jonas Weber, also Jonas", "Bernadette, also the owner of the Salt Cellar", "Beth Ortega, also Beth Calloway".
        """
        for alias in mention.aliases:
            entity = self._known[alias].get(mention.entity_type or "concept")
            if entity is None:
                continue
            # a further name of somebody who is described, such as a first name, may be somebody else's, too
            described = alias == entity.canonical_name and is_description(entity.name, entity.entity_type)
            told = described or _is_renamed(mention, entity, alias)
            if told or may_be_same(mention.display, entity.name, entity.entity_type):
                entity = self._touched.get(entity.id, entity)
                if told or len(mention.display) > len(entity.name):
                    entity = self._touched[entity.id] = entity.changed(name=mention.display)
                kind = entity.entity_type
                self._aliases.append(Alias(alias=mention.canonical, entity_type=kind, entity_id=entity.id))
                return entity
        return None

    def _add_alias(self, alias: str, entity: Entity) -> None:
        """Add another name of an entity, unless an entity of its type has it: two people of one name stay two."""
        by_type = self._known[alias]
        if entity.entity_type not in by_type:
            by_type[entity.entity_type] = entity
            self._aliases.append(Alias(alias=alias, entity_type=entity.entity_type, entity_id=entity.id))

    def known_since(self, entity: Entity, at: datetime) -> None:
        """Move `first_seen_at` of an entity back to a time at which a fact about it held."""
        latest = self._touched.get(entity.id, entity)
        if at < latest.first_seen_at:
            self._touched[entity.id] = latest.changed(first_seen_at=at)

    def _add_merged_types(self, store: EntityStore, known: Sequence[tuple[str, Entity]]) -> None:
        """Add the types that a name had before its entity was merged into one of another type."""
        asked: defaultdict[str, set[str]] = defaultdict(set)
        for name, kind in self._stated:
            if (by_type := self._known.get(name)) and kind not in by_type:
                for entity in by_type.values():
                    asked[entity.id].add(name)
        if asked:
            entities = {entity.id: entity for _, entity in known}
            for alias in store.find_aliases([self._scope], list(asked)):
                if alias.alias in asked[alias.entity_id]:
                    self._known[alias.alias].setdefault(alias.entity_type, entities[alias.entity_id])

    def _matched(self, mention: EntityMention, seen_at: datetime) -> Entity | None:
        """Return the known entity that matches a new name; add the name as an alias and record the merge."""
        if self._matcher is None:
            return None
        new = self._new_entity(mention, seen_at)
        found = self._matcher.find(mention, new.entity_type)
        if found is None:
            return None
        entity, method, score = found
        kept = self._touched.get(entity.id, entity)
        alias = Alias.trusted(alias=mention.canonical, entity_type=new.entity_type, entity_id=kept.id)
        self._aliases.append(alias)
        self._merges.append(
            Merge(
                scope=self._scope,
                kept_id=kept.id,
                kept=kept,
                merged=new,
                method=method,
                score=score,
                at=self._now,
                aliases=(alias.changed(entity_id=new.id),),
            )
        )
        return kept

    def _declared(self, by_type: Mapping[str, Entity], word: str | None) -> Entity | None:
        """Return the known entity of unstated type with a stated word outside the ontology; it keeps its type."""
        untyped = _untyped(by_type)
        if untyped is None or word is None:
            return None
        latest = self._touched.get(untyped.id, untyped)
        entity = latest.changed(properties={**latest.properties, DECLARED_TYPE: word})
        self._touched[entity.id] = entity
        return entity

    def _typed(self, by_type: dict[str, Entity], entity_type: str, *, guessed: bool = False) -> Entity | None:
        """Set the type of a known entity of unstated type and return it, or None; a guessed type stays unstated."""
        untyped = _untyped(by_type)
        if untyped is None:
            return None
        del by_type[untyped.entity_type]
        properties = {key: value for key, value in untyped.properties.items() if guessed or key != TYPE_STATED}
        entity = self._touched.get(untyped.id, untyped).changed(entity_type=entity_type, properties=properties)
        self._touched[entity.id] = entity
        self._aliases.append(Alias(alias=entity.canonical_name, entity_type=entity_type, entity_id=entity.id))
        self._outdated[entity.canonical_name, untyped.entity_type] = None
        return entity

    def _create(self, mention: EntityMention, seen_at: datetime) -> Entity:
        entity = self._new_entity(mention, seen_at)
        self._touched[entity.id] = entity
        self._new.add(entity.id)
        self._aliases.append(
            Alias.trusted(alias=entity.canonical_name, entity_type=entity.entity_type, entity_id=entity.id)
        )
        if self._matcher is not None:
            self._matcher.keep(entity)
        return entity

    def _new_entity(self, mention: EntityMention, seen_at: datetime) -> Entity:
        kind = mention.entity_type or self._usual.get(mention.canonical)
        properties: Properties = {DECLARED_TYPE: mention.declared_type} if mention.declared_type else {}
        if kind is None or mention.guessed:
            properties[TYPE_STATED] = False
        return Entity.trusted(  # cleaned by `EntityMention.of`
            id=new_id(),
            scope=self._scope,
            name=mention.display,
            canonical_name=mention.canonical,
            entity_type=kind or "concept",
            summary=mention.summary,
            properties=properties,
            confidence=mention.confidence,
            first_seen_at=seen_at,
            last_seen_at=seen_at,
            recorded_at=self._now,
        )

    def _updated(self, entity: Entity, mention: EntityMention, seen_at: datetime) -> Entity:
        latest = seen_at >= entity.last_seen_at
        # the display form follows the latest casing of the entity's own name, not of its other aliases, unless that is
        # carelessly written or a parser's lemma: "robert smith", "APPLE"
        rename = latest and mention.canonical == entity.canonical_name
        rename = rename and _casing(mention.display) >= _casing(entity.name)
        name, summary = mention.display if rename else entity.name, mention.summary or entity.summary
        if (
            entity.first_seen_at <= seen_at <= entity.last_seen_at
            and name == entity.name
            and summary == entity.summary
            and mention.confidence <= entity.confidence
            and entity.archived_at is None
        ):
            return entity
        changed = self._touched[entity.id] = entity.changed(
            name=name,
            summary=summary,
            confidence=max(entity.confidence, mention.confidence),
            first_seen_at=min(entity.first_seen_at, seen_at),
            last_seen_at=max(entity.last_seen_at, seen_at),
            archived_at=None,
        )
        return changed


_CONFUSABLE = frozenset(
    {"organization", "event", "project", "decision", "tool", "technology", "concept", "file", "config"}
)


def _casing(name: str) -> int:
    """Return how a name is written: 0 in lower case, 1 in capitals, 2 with both or in a script without cases."""
    return 0 if name.islower() else 1 if name.isupper() else 2


def _is_renamed(mention: EntityMention, person: Entity, alias: str) -> bool:
    """Return whether a name with the full name of a person as an alias is that person's under another surname."""
    first, _, last = alias.partition(" ")
    own = person.entity_type == "person" and alias in (person.canonical_name, canonical(person.name))
    return own and bool(last) and mention.canonical.startswith(f"{first} ")


def _untyped(by_type: Mapping[str, Entity]) -> Entity | None:
    """Return the entity whose type was never stated, or None."""
    return next((e for _, e in sorted(by_type.items()) if not e.properties.get(TYPE_STATED, True)), None)


def _of_confusable_type(by_type: dict[str, Entity], stated: str) -> Entity | None:
    """Return the only entity of a name if the type that a model states for it may vary: a project or a tool.

    People, places and languages share names with other things, so their types tell them apart.
    """
    entities = {entity.id: entity for entity in by_type.values()}
    if len(entities) != 1 or stated not in _CONFUSABLE:
        return None
    [entity] = entities.values()
    return entity if entity.entity_type in _CONFUSABLE else None
