"""What a write has to know before it changes anything: the rows that it names and those that hold its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from graphmem.models import Changes, EdgeKey, EdgeType, Scope
from graphmem_neo4j.connection import Transaction
from graphmem_neo4j.rows import TYPE_NAMES, active_key, moment

Name = tuple[str, str]
"""Canonical name and type."""


@dataclass(slots=True)
class KnownFact:
    """What a write has to know of a fact, as it will be after the changes planned so far."""

    scope: str
    key: EdgeKey
    confidence: float
    valid_from: datetime
    active: bool
    episode_ids: tuple[str, ...]


@dataclass(slots=True)
class Known:
    """The rows that a write names and those that hold its keys."""

    scopes: dict[str, str] = field(default_factory=dict[str, str])
    entities: dict[str, Name] = field(default_factory=dict[str, Name])
    episodes: set[str] = field(default_factory=set[str])
    names: dict[Name, str] = field(default_factory=dict[Name, str])
    """Name → the entity whose own it is."""
    stands_for: dict[Name, str] = field(default_factory=dict[Name, str])
    """Name → the entity that goes by it, or ''."""
    apart: set[Name] = field(default_factory=set[Name])
    """Names with a node of their own, since they aren't the own name of an entity."""
    facts: dict[str, KnownFact] = field(default_factory=dict[str, KnownFact])
    active: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(relationship type, active key) → id of the fact that holds it."""


def ask_known(transaction: Transaction, scope: Scope, changes: Changes) -> Iterator[Any]:
    """Ask for what a write has to know; its scope gets locked."""
    nodes = dict.fromkeys(e.id for e in changes.entities)
    nodes.update(dict.fromkeys(a.entity_id for a in changes.aliases))
    for edge in changes.edges:
        nodes.update({edge.source_id: None, edge.target_id: None, **dict.fromkeys(edge.episode_ids)})
    nodes.update(dict.fromkeys(i for s in changes.supports for i in s.episode_ids))
    for mention in changes.mentions:
        nodes.update({mention.entity_id: None, mention.episode_id: None})
    nodes.update(dict.fromkeys(o.episode_id for o in changes.outcomes))
    nodes.update(dict.fromkeys(r.episode_id for r in changes.redactions))
    edges = dict.fromkeys(c.edge_id for c in changes.closings)
    edges.update(dict.fromkeys(e.id for e in changes.edges))
    edges.update(dict.fromkeys(s.edge_id for s in changes.supports))
    active: dict[str, list[str]] = {name: [] for name in TYPE_NAMES.values()}
    for edge in changes.edges:
        if edge.is_active:
            active[TYPE_NAMES[edge.edge_type]].append(active_key(edge.key))
    return transaction.ask_locked(
        "before_write",
        [scope],
        scope=scope.key,
        nodes=list(nodes),
        names=[[e.canonical_name, e.entity_type] for e in changes.entities],
        edges=list(edges),
        active=active,
    )


def known_of(scope: Scope, rows: Iterable[Any]) -> Known:
    """Return the answer to `ask_known`."""
    known = Known()
    for kind, first, *rest in rows:
        if kind == "node":
            holder, is_entity, name, entity_type, stands_for = rest
            known.scopes[first] = holder
            if not is_entity:
                known.episodes.add(first)
                continue
            known.entities[first] = name, entity_type
            if holder == scope.key:
                known.stands_for[name, entity_type] = first if stands_for is None else stands_for
        elif kind == "name":
            entity_type, entity_id, stands_for = rest
            known.stands_for[first, entity_type] = entity_id if stands_for is None else stands_for
            if entity_id is None:
                known.apart.add((first, entity_type))
            else:
                known.names[first, entity_type] = entity_id
        elif kind == "active":
            known.active[rest[0], first] = rest[1]
        else:
            holder, source, target, relation, type_name, confidence, begins, ends, expired, episode_ids = rest
            known.facts[first] = KnownFact(
                scope=holder,
                key=(source, target, relation, EdgeType[type_name]),
                confidence=confidence,
                valid_from=moment(begins),
                active=ends is None and expired is None,
                episode_ids=tuple(episode_ids),
            )
    return known
