"""Applying `Changes`: what they need to know is read in one query, judged here, then every table is one `UNWIND`.

The server can't undo a part of a transaction. So nothing is written before all of a write is known to be right: a
write that is refused leaves the transaction around it as it was. The scope is locked meanwhile, so that what was
read stays true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Alias, Changes, Closing, Edge, EdgeKey, EdgeType, Entity, Mention, Outcome, Scope, Support
from graphmem_neo4j.connection import Database, Transaction
from graphmem_neo4j.rows import iso, iso_or_none, moment, packed, type_labels
from graphmem_neo4j.words import scoped_words

_Name = tuple[str, str]


def apply_changes(database: Database, scope: Scope, changes: Changes) -> None:
    """Apply one write, all or nothing."""
    _require_scope("entity", changes.entities, scope)
    _require_scope("edge", changes.edges, scope)
    if not any(getattr(changes, part) for part in Changes.__slots__):
        return

    def work(transaction: Transaction) -> None:
        transaction.lock([scope])
        known = _read(transaction, scope, changes)
        plan = _Plan(scope, known)
        plan.add(changes)
        plan.run(transaction)

    database.write(work)


def _require_scope(kind: str, rows: Iterable[Entity | Edge], scope: Scope) -> None:
    for row in rows:
        if row.scope is not scope and row.scope != scope:
            raise InvalidInput(f"{kind} {row.id}: its scope is {row.scope}, the write's is {scope}")


# What is there ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Fact:
    """What a write has to know of a fact, as it will be after the changes planned so far."""

    scope: str
    key: EdgeKey
    confidence: float
    valid_from: datetime
    active: bool
    episode_ids: tuple[str, ...]


@dataclass(slots=True)
class _Known:
    """The rows that a write names and those that hold its keys."""

    scopes: dict[str, str] = field(default_factory=dict[str, str])
    entities: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Id → canonical name, type, name, summary."""
    episodes: set[str] = field(default_factory=set[str])
    names: dict[_Name, str] = field(default_factory=dict[_Name, str])
    facts: dict[str, _Fact] = field(default_factory=dict[str, _Fact])
    active: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(relationship type, active key) → id of the fact that holds it."""


def _read(transaction: Transaction, scope: Scope, changes: Changes) -> _Known:
    nodes = dict.fromkeys(e.id for e in changes.entities)
    nodes.update(dict.fromkeys(a.entity_id for a in changes.aliases))
    for edge in changes.edges:
        nodes.update({edge.source_id: None, edge.target_id: None, **dict.fromkeys(edge.episode_ids)})
    nodes.update(dict.fromkeys(i for s in changes.supports for i in s.episode_ids))
    for mention in changes.mentions:
        nodes.update({mention.entity_id: None, mention.episode_id: None})
    nodes.update(dict.fromkeys(o.episode_id for o in changes.outcomes))
    edges = dict.fromkeys(c.edge_id for c in changes.closings)
    edges.update(dict.fromkeys(e.id for e in changes.edges))
    edges.update(dict.fromkeys(s.edge_id for s in changes.supports))
    active: dict[str, list[str]] = {kind.name: [] for kind in EdgeType}
    for edge in changes.edges:
        if edge.is_active:
            active[EdgeType(edge.edge_type).name].append(_active_key(edge.key))
    rows = transaction.run(
        "before_write",
        scope=scope.key,
        nodes=list(nodes),
        names=[[e.canonical_name, e.entity_type] for e in changes.entities],
        edges=list(edges),
        active=active,
    )
    return _known_of(rows)


def _known_of(rows: Iterable[Any]) -> _Known:
    known = _Known()
    for kind, first, *rest in rows:
        if kind == "node":
            scope, is_entity, *named = rest
            known.scopes[first] = scope
            if is_entity:
                known.entities[first] = tuple(named[:4])
            else:
                known.episodes.add(first)
        elif kind == "name":
            known.names[first, rest[0]] = rest[1]
        elif kind == "active":
            known.active[rest[0], first] = rest[1]
        else:
            scope, source, target, relation, type_name, confidence, begins, ends, expired, episode_ids = rest
            known.facts[first] = _Fact(
                scope=scope,
                key=(source, target, relation, EdgeType[type_name]),
                confidence=confidence,
                valid_from=moment(begins),
                active=ends is None and expired is None,
                episode_ids=tuple(episode_ids),
            )
    return known


def _active_key(key: EdgeKey) -> str:
    """Return what is unique among the active facts of a relationship type; the ends' ids imply the scope."""
    return f"{key[0]} {key[1]} {key[2]}"


# What is done -------------------------------------------------------------------------------------


class _Plan:
    """The rows of a write, judged in the order of `Changes` against what is there."""

    def __init__(self, scope: Scope, known: _Known) -> None:
        self._scope = scope
        self._known = known
        self._new_entities: dict[str, dict[str, Any]] = {}
        self._old_entities: dict[str, dict[str, Any]] = {}
        self._aliases: list[dict[str, Any]] = []
        self._closings: dict[str, dict[str, Any]] = {}
        self._dropped: list[str] = []
        self._edges: dict[str, dict[str, Any]] = {}
        self._supported: dict[str, _Fact] = {}
        self._mentions: list[dict[str, Any]] = []
        self._outcomes: list[dict[str, Any]] = []

    def add(self, changes: Changes) -> None:
        """Judge all changes; what isn't right raises."""
        for entity in {e.id: e for e in changes.entities}.values():
            self._put_entity(entity)
        for alias in changes.aliases:
            self._put_alias(alias)
        for closing in changes.closings:
            self._close(closing)
        for edge in {e.id: e for e in changes.edges}.values():
            self._put_edge(edge)
        for support in changes.supports:
            self._support(support)
        for mention in changes.mentions:
            self._mention(mention)
        for outcome in changes.outcomes:
            self._settle(outcome)

    def run(self, transaction: Transaction) -> None:
        """Write."""
        steps: tuple[tuple[str, Sequence[Any]], ...] = (
            ("replace_entities", list(self._old_entities.values())),
            ("add_entities", list(self._new_entities.values())),
            ("put_aliases", self._aliases),
            ("close_edges", list(self._closings.values())),
        )
        for name, rows in steps:
            if rows:
                transaction.run(name, rows=rows, scope=self._scope.key)
        if self._dropped:
            transaction.run("drop_edges", ids=self._dropped)
        supported = [
            {"id": i, "confidence": fact.confidence, "episode_ids": list(fact.episode_ids)}
            for i, fact in self._supported.items()
        ]
        rest: tuple[tuple[str, Sequence[Any]], ...] = (
            ("add_edges", list(self._edges.values())),
            ("support_edges", supported),
            ("add_mentions", self._mentions),
            ("settle_episodes", self._outcomes),
        )
        for name, rows in rest:
            if rows:
                transaction.run(name, rows=rows)

    # Entities -------------------------------------------------------------------------------------

    def _put_entity(self, entity: Entity) -> None:
        known = self._known
        if entity.id in known.episodes or known.scopes.get(entity.id, self._scope.key) != self._scope.key:
            raise Conflict(f"entity id {entity.id} is taken")  # says nothing about the other scope
        name = (entity.canonical_name, entity.entity_type)
        holder = known.names.get(name)
        if holder not in (None, entity.id):
            raise Conflict(f"{name[1]} {name[0]!r} is entity {holder} in scope {self._scope}")
        before = known.entities.get(entity.id)
        row = _entity_row(entity)
        if before is None:
            self._new_entities[entity.id] = row
        else:
            row["old_labels"] = list(type_labels(before[1]))
            self._old_entities[entity.id] = row
            known.names.pop((before[0], before[1]), None)
        known.names[name] = entity.id
        known.scopes[entity.id] = self._scope.key
        known.entities[entity.id] = (*name, entity.name, entity.summary)

    def _put_alias(self, alias: Alias) -> None:
        self._require_entity(alias.entity_id)
        self._aliases.append({"alias": alias.alias, "entity_type": alias.entity_type, "entity_id": alias.entity_id})

    # Edges ----------------------------------------------------------------------------------------

    def _close(self, closing: Closing) -> None:
        fact = self._require_edge(closing.edge_id)
        if closing.valid_to < fact.valid_from:
            raise InvalidInput(
                f"edge {closing.edge_id}: valid_to {closing.valid_to.isoformat()} lies before its valid_from"
            )
        if fact.active:
            self._closings[closing.edge_id] = {
                "id": closing.edge_id,
                "valid_to": iso(_utc(closing.valid_to)),
                "expired_at": iso(_utc(closing.expired_at)),
                "superseded_by": closing.superseded_by,
            }
            fact.active = False
            self._free(fact.key, closing.edge_id)

    def _put_edge(self, edge: Edge) -> None:
        before = self._known.facts.get(edge.id)
        if before is not None and before.scope != self._scope.key:
            raise Conflict(f"edge id {edge.id} is taken")  # says nothing about the other scope
        self._require_entity(edge.source_id)
        self._require_entity(edge.target_id)
        episode_ids = tuple(dict.fromkeys(edge.episode_ids))
        for episode_id in episode_ids:
            self._require_episode(episode_id)
        held = (EdgeType(edge.edge_type).name, _active_key(edge.key))
        if edge.is_active:
            holder = self._known.active.get(held)
            if holder not in (None, edge.id):
                raise Conflict(f"the active fact {held[1]} is edge {holder}")
        if before is not None:
            self._free(before.key, edge.id)
            self._dropped.append(edge.id)
        if edge.is_active:
            self._known.active[held] = edge.id
        self._edges[edge.id] = _edge_row(edge, held, episode_ids)
        self._known.facts[edge.id] = _Fact(
            self._scope.key, edge.key, edge.confidence, edge.valid_from, edge.is_active, episode_ids
        )

    def _free(self, key: EdgeKey, edge_id: str) -> None:
        held = (EdgeType(key[3]).name, _active_key(key))
        if self._known.active.get(held) == edge_id:
            del self._known.active[held]

    def _support(self, support: Support) -> None:
        fact = self._require_edge(support.edge_id)
        for episode_id in support.episode_ids:
            self._require_episode(episode_id)
        fact.confidence = max(fact.confidence, support.confidence)
        fact.episode_ids = tuple(dict.fromkeys((*fact.episode_ids, *support.episode_ids)))
        self._supported[support.edge_id] = fact

    # Episodes -------------------------------------------------------------------------------------

    def _mention(self, mention: Mention) -> None:
        self._require_entity(mention.entity_id)
        self._require_episode(mention.episode_id)
        self._mentions.append(
            {
                "entity": mention.entity_id,
                "episode": mention.episode_id,
                "surface": mention.surface,
                "confidence": mention.confidence,
                "seen_at": iso(mention.seen_at),
            }
        )

    def _settle(self, outcome: Outcome) -> None:
        self._require_episode(outcome.episode_id)
        processed = None if outcome.processed_at is None else iso(_utc(outcome.processed_at))
        self._outcomes.append(
            {
                "id": outcome.episode_id,
                "processed_at": processed,
                "retry_at": None if outcome.retry_at is None else iso(_utc(outcome.retry_at)),
                "error": outcome.error,
                "attempts": outcome.attempts,
                "queue": self._scope.key if processed is None else None,
            }
        )

    # What has to be there -------------------------------------------------------------------------

    def _require_entity(self, entity_id: str) -> None:
        if entity_id not in self._known.entities or self._known.scopes[entity_id] != self._scope.key:
            raise InvalidInput(f"entity {entity_id} is not in scope {self._scope}")

    def _require_episode(self, episode_id: str) -> None:
        if episode_id not in self._known.episodes or self._known.scopes[episode_id] != self._scope.key:
            raise InvalidInput(f"episode {episode_id} is not in scope {self._scope}")

    def _require_edge(self, edge_id: str) -> _Fact:
        fact = self._known.facts.get(edge_id)
        if fact is None or fact.scope != self._scope.key:
            raise InvalidInput(f"edge {edge_id} is not in scope {self._scope}")
        return fact


def _utc(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise InvalidInput(f"naive datetime {time.isoformat()}: give it a time zone")
    return time.astimezone(UTC)


def _entity_row(entity: Entity) -> dict[str, Any]:
    hidden = entity.archived_at is not None
    return {
        "labels": list(type_labels(entity.entity_type)),
        "values": {
            "id": entity.id,
            "scope": entity.scope.key,
            "domain": entity.scope.domain,
            "project": entity.scope.project_id,
            "name": entity.name,
            "canonical_name": entity.canonical_name,
            "entity_type": entity.entity_type,
            "summary": entity.summary,
            "properties": packed(entity.properties),
            "confidence": entity.confidence,
            "access_count": entity.access_count,
            # full text doesn't hold archived entities
            "name_words": None if hidden else scoped_words(entity.scope, entity.name),
            "summary_words": None if hidden else scoped_words(entity.scope, entity.summary),
        },
        "first_seen_at": iso(entity.first_seen_at),
        "last_seen_at": iso(entity.last_seen_at),
        "recorded_at": iso(entity.recorded_at),
        "archived_at": iso_or_none(entity.archived_at),
        "valid_from": iso_or_none(entity.valid_from),
        "valid_to": iso_or_none(entity.valid_to),
    }


def _edge_row(edge: Edge, held: tuple[str, str], episode_ids: tuple[str, ...]) -> dict[str, Any]:
    return {
        "source": edge.source_id,
        "target": edge.target_id,
        "type": held[0],
        "values": {
            "graphmem_id": edge.id,
            "graphmem_active": held[1] if edge.is_active else None,
            "scope": edge.scope.key,
            "relation": edge.relation,
            "fact": edge.fact,
            "confidence": edge.confidence,
            "superseded_by": edge.superseded_by,
            "episode_ids": list(episode_ids),
            "retrieval_count": float(edge.retrieval_count),
            "properties": packed(edge.properties),
        },
        "valid_from": iso(edge.valid_from),
        "valid_to": iso_or_none(edge.valid_to),
        "recorded_at": iso(edge.recorded_at),
        "expired_at": iso_or_none(edge.expired_at),
        "last_retrieved_at": iso_or_none(edge.last_retrieved_at),
    }
