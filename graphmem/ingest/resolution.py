"""Resolution of names to entities, by alias, canonical name and embedding.

Canonical names are aliases of their entities, so one look-up covers the first two; `graphmem.ingest.entity_matching`
does the third.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from graphmem.ingest.interpretation import EntityMention
from graphmem.models import (
    Alias,
    Entity,
    IndexEntry,
    Merge,
    MergeMethod,
    MergeQuery,
    Properties,
    Removal,
    Scope,
    new_id,
)
from graphmem.protocols import EntityStore, GraphBackend
from graphmem.text.names import is_description, may_be_same, short_forms
from graphmem.text.normalize import canonical, split_words
from graphmem.trust import ASSISTANT, USER

DECLARED_TYPE = "declared_type"
"""Property of a new entity: its stated type, where the ontology lacks it."""

TYPE_STATED = "type_stated"
"""Property that is False on entities of unstated type; the first mention with a stated type sets it."""


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
        store: GraphBackend,
        scope: Scope,
        mentions: Iterable[EntityMention],
        now: datetime,
        make_matcher: Callable[[Sequence[tuple[str, Entity]]], EntityMatcher] | None = None,
        *,
        types_vary: bool = True,
        names: Iterable[str] = (),
    ) -> None:
        self._store = store
        self._scope = scope
        self._types_vary = types_vary
        self._now = now
        self._known: defaultdict[str, dict[str, Entity]] = defaultdict(dict)
        self._touched: dict[str, Entity] = {}
        self._new: set[str] = set()
        self._aliases: list[Alias] = []
        self._merges: list[Merge] = []
        self._called_same: list[tuple[Entity, Entity]] = []
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

    def same(self) -> dict[str, str]:
        """Return the known entities that the write says to be another known one: id to merge → id to merge into.

        Those whose name may also be of a third entity stay, and those that somebody has parted (`unmerge`). Each entity
        is merged at most once, so that the order doesn't matter.
        """
        found: dict[str, str] = {}
        for short, long in self._called_same:
            is_free = short.id not in (*found, *found.values()) and long.id not in found
            if is_free and not self._has_namesake(short, long) and not self._is_parted(short, long):
                found[short.id] = long.id
        return found

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

        "Jonas Weber, also Jonas", "Bernadette, also the owner of the Salt Cellar", "Beth Ortega, also Beth Calloway",
        "Ann Lee, also User", "X Corp, also Twitter".
        """
        for alias in mention.aliases:
            by_type = self._known[alias]
            kind = mention.entity_type or "concept"
            entity = by_type.get(kind) or _untyped(by_type)
            if entity is None or (entity.entity_type != kind and entity.name.islower()):  # a role, such as "captain"
                continue
            # a further name of somebody who is described, such as a first name, may be somebody else's, too
            described = entity.name in (USER, ASSISTANT) or is_description(entity.name, kind)
            told = (described and alias == entity.canonical_name) or _is_renamed(mention, entity, alias)
            if told or may_be_same(mention.display, entity.name, kind):
                if entity.entity_type != kind:
                    entity = self._typed(by_type, kind) or entity
                entity = self._touched.get(entity.id, entity)
                if told or len(mention.display) > len(entity.name):
                    entity = self._touched[entity.id] = entity.changed(name=mention.display)
                kind = entity.entity_type
                self._aliases.append(Alias(alias=mention.canonical, entity_type=kind, entity_id=entity.id))
                return entity
        return None

    def _add_alias(self, alias: str, entity: Entity) -> None:
        """Add another name of an entity, unless an entity of its type has it: two people of one name stay two.

        Types of things vary: "Photoshop", known as a technology, is no other name of a tool. A known entity whose name
        may be a short form of this one's is the same.
        """
        by_type = self._known[alias]
        varying = _CONFUSABLE - {"concept"} if entity.entity_type in _CONFUSABLE else frozenset[str]()
        if by_type.keys().isdisjoint(varying | {entity.entity_type}):
            by_type[entity.entity_type] = entity
            self._aliases.append(Alias(alias=alias, entity_type=entity.entity_type, entity_id=entity.id))
            return
        other = by_type.get(entity.entity_type)
        if other is not None and alias == canonical(other.name) and self._may_be_same(other, entity):
            short, long = sorted((other, entity), key=lambda each: (len(each.name.split()), len(each.name)))
            self._called_same.append((short, long))

    def _may_be_same(self, one: Entity, other: Entity) -> bool:
        """Return whether two entities that a text calls the same were known before, and may be."""
        known = one.id != other.id and self._new.isdisjoint((one.id, other.id)) and self._types_vary
        return known and may_be_same(one.name, other.name, one.entity_type)

    def _has_namesake(self, short: Entity, long: Entity) -> bool:
        """Return whether the shorter one of two names may be that of a third entity; if that can't be told, it may."""
        words = split_words(short.name)
        prefixes = {form for word in words for form in (word, *short_forms(word))}
        if short.name.isupper() and prefixes.isdisjoint(split_words(long.name)):
            prefixes.add(words[0][0])  # "KPO": names that begin with K
        hits = self._store.search_entities([self._scope], words=sorted(prefixes), phrases=(), limit=_MOST_NAMESAKES)
        others = (*(hit.entity for hit in hits), *self._touched.values())
        others = [e for e in others if e.id not in (short.id, long.id) and e.entity_type == short.entity_type]
        return len(hits) == _MOST_NAMESAKES or any(may_be_same(short.name, e.name, e.entity_type) for e in others)

    def _is_parted(self, one: Entity, other: Entity) -> bool:
        """Return whether somebody has undone a merge of two entities."""
        merges = self._store.all_merges([self._scope], MergeQuery(entity_ids=(one.id,), undone=True))
        return any(m.undone_at is not None and {m.kept_id, m.merged.id} == {one.id, other.id} for m in merges)

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
        # the display form follows the latest casing of the entity's name, not of its aliases or a former name, unless
        # that is carelessly written or a parser's lemma: "robert smith", "APPLE"
        rename = latest and mention.canonical == canonical(entity.name)
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

_RENAMED = frozenset({"organization", "project", "tool"})

_MOST_NAMESAKES = 100  # entities that are compared with a name; one that begins more names isn't merged


def _casing(name: str) -> int:
    """Return how a name is written: 0 in lower case, 1 in capitals, 2 with both or in a script without cases."""
    return 0 if name.islower() else 1 if name.isupper() else 2


def _is_renamed(mention: EntityMention, entity: Entity, alias: str) -> bool:
    """Return whether a name with the full name of an entity as an alias is its new one; a person keeps the first name.

    The alias of anything else may be what it is a part or a kind of: "dark roast, also coffee", "Python 3.12, also
    Python".
    """
    if alias not in (entity.canonical_name, canonical(entity.name)):
        return False
    first, _, last = alias.partition(" ")
    if entity.entity_type == "person":
        return bool(last) and mention.canonical.startswith(f"{first} ")
    is_part = mention.canonical.startswith(f"{alias} ")
    return entity.entity_type in _RENAMED and not (is_part or entity.name.islower() or mention.display.islower())


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
