"""Which entity a name stands for (spec: ingestion, resolve): alias, then canonical name, of the same type.

Canonical names are aliases of their entities, so that one look-up serves both steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from graphmem.models import Alias, Entity, Properties, Scope, new_id
from graphmem.ontology import Ontology
from graphmem.protocols import EntityStore
from graphmem.text.normalise import require_name

TYPE_STATED = "type_stated"
"""Property that is False on entities of which nobody has told the type: the first who does gives it."""


@dataclass(frozen=True, slots=True)
class NamedThing:
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
    ) -> NamedThing:
        """Clean a name and its type.

        Raises
        ------
        InvalidEntityName
            If too little of the name is left.
        """
        display, key = require_name(name, ontology.short_names | allowed if allowed else ontology.short_names)
        kind, declared = (None, None) if entity_type is None else ontology.entity_type(entity_type)
        return cls(display, key, kind, usual_type, declared, summary, confidence)


class Resolver:
    """Entities of one write: found ones, updated as they are seen again, and new ones.

    It has to be used inside of `GraphBackend.atomic`: that is the lock on the names.
    """

    def __init__(self, store: EntityStore, scope: Scope, things: Iterable[NamedThing], now: datetime) -> None:
        self._scope = scope
        self._now = now
        self._known: defaultdict[str, dict[str, Entity]] = defaultdict(dict)
        self._touched: dict[str, Entity] = {}
        self._new: set[str] = set()
        self._aliases: list[Alias] = []
        self._usual: dict[str, str] = {}
        names: dict[str, None] = {}
        for thing in things:
            names[thing.canonical] = None
            if kind := thing.entity_type or thing.usual_type:
                self._usual.setdefault(thing.canonical, kind)
        for name, entity in store.resolve_names(scope, list(names)):
            self._known[name][entity.entity_type] = entity

    @property
    def entities(self) -> tuple[Entity, ...]:
        """Rows to write: new ones, then known ones that changed (stores write runs of a kind at once)."""
        return tuple(sorted(self._touched.values(), key=lambda entity: entity.id not in self._new))

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """Aliases of the new entities."""
        return tuple(self._aliases)

    def is_new(self, entity_id: str) -> bool:
        """Tell whether this write creates the entity."""
        return entity_id in self._new

    @property
    def created(self) -> int:
        """How many entities this write creates."""
        return len(self._new)

    def resolve(self, thing: NamedThing, seen_at: datetime) -> Entity:
        """Return the entity that a name stands for, made or brought up to date by this sighting."""
        by_type = self._known[thing.canonical]
        if thing.entity_type is None:
            usual = self._usual.get(thing.canonical, "")
            # then something more specific than a concept
            others = (e for kind, e in sorted(by_type.items()) if kind != "concept")
            found = by_type.get(usual) or next(others, None) or by_type.get("concept")
        else:
            found = by_type.get(thing.entity_type) or self._typed(by_type, thing.entity_type)
        if found is None:
            entity = self._create(thing, seen_at)
        else:
            entity = self._see_again(self._touched.get(found.id, found), thing, seen_at)
        by_type[entity.entity_type] = entity
        return entity

    def _typed(self, by_type: dict[str, Entity], entity_type: str) -> Entity | None:
        """Give its type to an entity that only triples without types have named so far, if there is one."""
        untyped = by_type.get("concept")
        if untyped is None or untyped.properties.get(TYPE_STATED, True):
            return None
        del by_type["concept"]
        properties = {key: value for key, value in untyped.properties.items() if key != TYPE_STATED}
        entity = self._touched.get(untyped.id, untyped).changed(entity_type=entity_type, properties=properties)
        self._touched[entity.id] = entity
        self._aliases.append(Alias(alias=entity.canonical_name, entity_type=entity_type, entity_id=entity.id))
        return entity

    def _create(self, thing: NamedThing, seen_at: datetime) -> Entity:
        kind = thing.entity_type or self._usual.get(thing.canonical)
        properties: Properties = {"declared_type": thing.declared_type} if thing.declared_type else {}
        if kind is None:
            properties = {TYPE_STATED: False}
        entity = Entity.trusted(  # all of it is cleaned: `NamedThing.of`
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
        self._touched[entity.id] = entity
        self._new.add(entity.id)
        self._aliases.append(
            Alias.trusted(alias=entity.canonical_name, entity_type=entity.entity_type, entity_id=entity.id)
        )
        return entity

    def _see_again(self, entity: Entity, thing: NamedThing, seen_at: datetime) -> Entity:
        latest = seen_at >= entity.last_seen_at
        # the display form follows the latest casing of the entity's own name, not of its other aliases
        rename = latest and thing.canonical == entity.canonical_name
        seen = {
            "name": thing.display if rename else entity.name,
            "summary": thing.summary or entity.summary,
            "confidence": max(entity.confidence, thing.confidence),
            "first_seen_at": min(entity.first_seen_at, seen_at),
            "last_seen_at": max(entity.last_seen_at, seen_at),
            "archived_at": None,
        }
        if all(getattr(entity, field) == value for field, value in seen.items()):
            return entity
        changed = self._touched[entity.id] = entity.changed(**seen)
        return changed
