"""Which entity a name stands for (spec: ingestion, resolve): alias, canonical name, meaning; of the same type.

Canonical names are aliases of their entities, so that one look-up serves the first two; the third is
`graphmem.ingest.entity_matching`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from graphmem.models import Alias, Entity, IndexEntry, Merge, MergeMethod, Properties, Removal, Scope, new_id
from graphmem.ontology import Ontology
from graphmem.protocols import EntityStore
from graphmem.text.normalize import require_name

TYPE_STATED = "type_stated"
"""Property that is False on entities of which nobody has told the type: the first who does gives it."""


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A name as an episode has it, cleaned.

    `entity_type` None means unstated: whatever is known by that name, else a new entity of the `usual_type`
    of the relation that it stands in.
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
    ) -> EntityMention:
        """Clean a name and its type.

        Raises
        ------
        InvalidEntityName
            If too little of the name is left.
        """
        display, key = require_name(name, ontology.short_names | allowed if allowed else ontology.short_names)
        kind, declared = (None, None) if entity_type is None else ontology.entity_type(entity_type)
        if guessed:
            kind, usual_type = None, kind
        return cls(display, key, kind, usual_type, declared, summary, confidence, guessed)


class EntityMatcher(Protocol):
    """Tells which entity a name that nothing goes by means, for the names of one write."""

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """What the index keeps of the entities that `keep` was told of."""
        ...

    def find(self, thing: EntityMention, kind: str) -> tuple[Entity, MergeMethod, float] | None:
        """Return the entity that a name of a type means, how that was decided, and the cosine."""
        ...

    def keep(self, entity: Entity) -> None:
        """Take in a new entity of this write."""
        ...


class Resolver:
    """Entities of one write: found ones, updated as they are seen again, and new ones.

    It has to be used inside of `GraphBackend.atomic`: that is the lock on the names.

    Parameters
    ----------
    store, scope
        Where to look.
    things
        All names that will be resolved.
    now
        Transaction time of the write.
    likeness
        Given (name, entity) of the known names, what decides about the others; None makes new entities of them.
    """

    def __init__(
        self,
        store: EntityStore,
        scope: Scope,
        things: Iterable[EntityMention],
        now: datetime,
        likeness: Callable[[Sequence[tuple[str, Entity]]], EntityMatcher] | None = None,
    ) -> None:
        self._scope = scope
        self._now = now
        self._known: defaultdict[str, dict[str, Entity]] = defaultdict(dict)
        self._touched: dict[str, Entity] = {}
        self._new: set[str] = set()
        self._aliases: list[Alias] = []
        self._merges: list[Merge] = []
        self._outdated: dict[tuple[str, str], None] = {}
        self._usual: dict[str, str] = {}
        self._stated: dict[tuple[str, str], None] = {}
        names: dict[str, None] = {}
        for thing in things:
            if thing.entity_type is not None:
                self._stated[thing.canonical, thing.entity_type] = None
            names[thing.canonical] = None
            if kind := thing.entity_type or thing.usual_type:
                self._usual.setdefault(thing.canonical, kind)
        known = store.resolve_names(scope, list(names))
        for name, entity in known:
            self._known[name][entity.entity_type] = entity
        self._know_by_other_types(store, known)
        self._likeness = None if likeness is None else likeness(known)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """Rows to write: new ones, then known ones that changed (stores write runs of a kind at once)."""
        return tuple(sorted(self._touched.values(), key=lambda entity: entity.id not in self._new))

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """Names that the write adds."""
        return tuple(self._aliases)

    @property
    def merges(self) -> tuple[Merge, ...]:
        """New names that were taken for known entities because of what they mean."""
        return tuple(self._merges)

    @property
    def removals(self) -> tuple[Removal, ...]:
        """Names of a type that their entities don't have any more, and that nothing else goes by."""
        taken = {(alias.alias, alias.entity_type) for alias in self._aliases}
        return tuple(Removal("alias", *named) for named in self._outdated if named not in taken)

    @property
    def index(self) -> tuple[IndexEntry, ...]:
        """What the index keeps of the new entities."""
        return () if self._likeness is None else self._likeness.entries

    def is_new(self, entity_id: str) -> bool:
        """Return whether this write creates the entity."""
        return entity_id in self._new

    @property
    def new_ids(self) -> tuple[str, ...]:
        """Ids of the entities that this write creates."""
        return tuple(sorted(self._new))

    @property
    def created(self) -> int:
        """How many entities this write creates."""
        return len(self._new)

    def resolve(self, thing: EntityMention, seen_at: datetime) -> Entity:
        """Return the entity that a name stands for, made or brought up to date by this sighting."""
        by_type = self._known[thing.canonical]
        if thing.entity_type is None:
            usual = self._usual.get(thing.canonical, "")
            # then something more specific than a concept
            others = (e for kind, e in sorted(by_type.items()) if kind != "concept")
            found = by_type.get(usual) or next(others, None) or by_type.get("concept")
            if thing.guessed and found is by_type.get("concept") and usual not in ("", "concept"):
                found = self._typed(by_type, usual, guessed=True) or found
        else:
            found = by_type.get(thing.entity_type) or self._typed(by_type, thing.entity_type)
        if found is None and (meant := self._meant(thing, seen_at)) is not None:
            found = meant
        if found is None:
            entity = self._create(thing, seen_at)
        else:
            entity = self._see_again(self._touched.get(found.id, found), thing, seen_at)
        by_type[entity.entity_type] = entity
        return entity

    def known_since(self, entity: Entity, at: datetime) -> None:
        """Take note that a fact about an entity held at a time: the entity was there then."""
        latest = self._touched.get(entity.id, entity)
        if at < latest.first_seen_at:
            self._touched[entity.id] = latest.changed(first_seen_at=at)

    def _know_by_other_types(self, store: EntityStore, known: Sequence[tuple[str, Entity]]) -> None:
        """Take in the types that a name had before its entity was merged into one of another type."""
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

    def _meant(self, thing: EntityMention, seen_at: datetime) -> Entity | None:
        """Return the known entity that a new name means; the name becomes an alias, and the ledger tells."""
        if self._likeness is None:
            return None
        new = self._made(thing, seen_at)
        found = self._likeness.find(thing, new.entity_type)
        if found is None:
            return None
        entity, method, score = found
        kept = self._touched.get(entity.id, entity)
        alias = Alias.trusted(alias=thing.canonical, entity_type=new.entity_type, entity_id=kept.id)
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

    def _typed(self, by_type: dict[str, Entity], entity_type: str, *, guessed: bool = False) -> Entity | None:
        """Give its type to an entity of which nobody has told one so far, if there is one; a guess may follow."""
        untyped = next((e for _, e in sorted(by_type.items()) if not e.properties.get(TYPE_STATED, True)), None)
        if untyped is None:
            return None
        del by_type[untyped.entity_type]
        properties = {key: value for key, value in untyped.properties.items() if guessed or key != TYPE_STATED}
        entity = self._touched.get(untyped.id, untyped).changed(entity_type=entity_type, properties=properties)
        self._touched[entity.id] = entity
        self._aliases.append(Alias(alias=entity.canonical_name, entity_type=entity_type, entity_id=entity.id))
        self._outdated[entity.canonical_name, untyped.entity_type] = None
        return entity

    def _create(self, thing: EntityMention, seen_at: datetime) -> Entity:
        entity = self._made(thing, seen_at)
        self._touched[entity.id] = entity
        self._new.add(entity.id)
        self._aliases.append(
            Alias.trusted(alias=entity.canonical_name, entity_type=entity.entity_type, entity_id=entity.id)
        )
        if self._likeness is not None:
            self._likeness.keep(entity)
        return entity

    def _made(self, thing: EntityMention, seen_at: datetime) -> Entity:
        kind = thing.entity_type or self._usual.get(thing.canonical)
        properties: Properties = {"declared_type": thing.declared_type} if thing.declared_type else {}
        if kind is None or thing.guessed:
            properties[TYPE_STATED] = False
        return Entity.trusted(  # all of it is cleaned: `EntityMention.of`
            id=new_id(),
            scope=self._scope,
            name=thing.display,
            canonical_name=thing.canonical,
            entity_type=kind or "concept",
            summary=thing.summary,
            properties=properties,
            confidence=thing.confidence,
            first_seen_at=seen_at,
            last_seen_at=seen_at,
            recorded_at=self._now,
        )

    def _see_again(self, entity: Entity, thing: EntityMention, seen_at: datetime) -> Entity:
        latest = seen_at >= entity.last_seen_at
        # the display form follows the latest casing of the entity's own name, not of its other aliases
        rename = latest and thing.canonical == entity.canonical_name
        if thing.guessed and thing.display.islower():
            rename = False  # a parser's word, not a name that somebody wrote
        name, summary = thing.display if rename else entity.name, thing.summary or entity.summary
        if (
            entity.first_seen_at <= seen_at <= entity.last_seen_at
            and name == entity.name
            and summary == entity.summary
            and thing.confidence <= entity.confidence
            and entity.archived_at is None
        ):
            return entity
        changed = self._touched[entity.id] = entity.changed(
            name=name,
            summary=summary,
            confidence=max(entity.confidence, thing.confidence),
            first_seen_at=min(entity.first_seen_at, seen_at),
            last_seen_at=max(entity.last_seen_at, seen_at),
            archived_at=None,
        )
        return changed
