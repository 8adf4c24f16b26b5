"""Existing rows: what a write reads before it changes anything, the rows it references and those that hold its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Changes, Community, EdgeKey, EdgeType, RecallTrace, Scope
from graphmem_neo4j.checked_rows import fact_rows
from graphmem_neo4j.connection import Transaction
from graphmem_neo4j.rows import TYPE_NAMES, Row, active_key, moment

Name = tuple[str, str]
"""Canonical name and type."""


@dataclass(slots=True)
class ExistingFact:
    """The state of a fact that a write depends on, updated by the changes planned so far."""

    scope: str
    key: EdgeKey
    confidence: float
    valid_from: datetime
    active: bool
    episode_ids: tuple[str, ...]


@dataclass(slots=True)
class ExistingRows:
    """The rows that a write references, and the rows that hold its keys."""

    scopes: dict[str, str] = field(default_factory=dict[str, str])
    entities: dict[str, Name] = field(default_factory=dict[str, Name])
    episodes: set[str] = field(default_factory=set[str])
    names: dict[Name, str] = field(default_factory=dict[Name, str])
    """Name → the entity that has it as its own name."""
    stands_for: dict[Name, str] = field(default_factory=dict[Name, str])
    """Name → the entity that has it as an alias, or ''."""
    alias_nodes: set[Name] = field(default_factory=set[Name])
    """Names with a node of their own, because no entity has them as its own name."""
    facts: dict[str, ExistingFact] = field(default_factory=dict[str, ExistingFact])
    sources: set[str] = field(default_factory=set[str])
    """The episodes that these facts name, whether they are there or not."""
    active: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(relationship type, active key) → id of the fact that holds it."""
    ended: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The same of a fact that was ended by hand and still holds it."""


def query_existing(transaction: Transaction, scope: Scope, changes: Changes) -> Iterator[Any]:
    """Lock the scope and start the query for the rows that a write depends on; without any, only lock."""
    nodes = dict.fromkeys(e.id for e in changes.entities)
    nodes.update(dict.fromkeys(a.entity_id for a in changes.aliases))
    for edge in changes.edges:
        nodes.update({edge.source_id: None, edge.target_id: None, **dict.fromkeys(edge.episode_ids)})
    nodes.update(dict.fromkeys(i for s in changes.corroborations for i in s.episode_ids))
    for mention in changes.mentions:
        nodes.update({mention.entity_id: None, mention.episode_id: None})
    nodes.update(dict.fromkeys(o.episode_id for o in changes.results))
    for timed in (changes.redactions, changes.episode_ends, changes.episode_expiries):
        nodes.update(dict.fromkeys(row.episode_id for row in timed))
    edges = dict.fromkeys(c.edge_id for c in changes.expiries)
    edges.update(dict.fromkeys(e.id for e in changes.edges))
    edges.update(dict.fromkeys(s.edge_id for s in changes.corroborations))
    if not (nodes or edges):
        transaction.lock([scope])
        return iter(())
    active: dict[str, list[str]] = {name: [] for name in TYPE_NAMES.values()}
    for edge in changes.edges:
        if edge.is_active:
            active[TYPE_NAMES[edge.edge_type]].append(active_key(edge.key))
    return transaction.stream_locked(
        "existing_rows",
        [scope],
        scope=scope.key,
        nodes=list(nodes),
        names=[[e.canonical_name, e.entity_type] for e in changes.entities],
        ids=list(edges),
        active=active,
    )


def existing_of(scope: Scope, rows: Iterable[Any]) -> ExistingRows:
    """Return the result of `query_existing`."""
    existing = ExistingRows()
    for kind, first, *rest in rows:
        if kind == "node":
            holder, is_entity, name, entity_type, stands_for = rest
            existing.scopes[first] = holder
            if not is_entity:
                existing.episodes.add(first)
                continue
            existing.entities[first] = name, entity_type
            if holder == scope.key:
                existing.stands_for[name, entity_type] = first if stands_for is None else stands_for
        elif kind == "name":
            entity_type, entity_id, stands_for = rest
            existing.stands_for[first, entity_type] = entity_id if stands_for is None else stands_for
            if entity_id is None:
                existing.alias_nodes.add((first, entity_type))
            else:
                existing.names[first, entity_type] = entity_id
        elif kind == "active":
            type_name, fact_id, is_active = rest
            (existing.active if is_active else existing.ended)[type_name, first] = fact_id
        else:
            fact = existing.facts[first] = _existing_fact_of([first, *rest])
            if fact.scope == scope.key:
                existing.sources.update(fact.episode_ids)
    return existing


def _existing_fact(row: Row) -> ExistingFact:
    _, holder, source, target, relation, type_name, confidence, begins, ends, expired, episode_ids = row
    return ExistingFact(
        scope=holder,
        key=(source, target, relation, EdgeType[type_name]),
        confidence=confidence,
        valid_from=moment(begins),
        active=ends is None and expired is None,
        episode_ids=tuple(episode_ids),
    )


_existing_fact_of = fact_rows(
    "graphmem_id scope source target relation type confidence# valid_from valid_to? expired_at? episode_ids*",
    _existing_fact,
)


# Communities and traces -------------------------------------------------------------------------


@dataclass(slots=True)
class NamedRows:
    """The rows that communities and traces reference, in the store or in the same write."""

    scope: Scope
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    """Id of a node → its kind and the key of its scope."""
    facts: dict[str, str] = field(default_factory=dict[str, str])
    """Id of an edge of the scope → its sentence."""

    def require(self, kind: str, row_id: str) -> None:
        """Raise `InvalidInput` if a row isn't in the scope."""
        if self.kinds.get(row_id) != (kind, self.scope.key):
            raise InvalidInput(f"{kind} {row_id} is not in scope {self.scope}")

    def require_edge(self, edge_id: str) -> None:
        """Raise `InvalidInput` if an edge isn't in the scope."""
        if edge_id not in self.facts:
            raise InvalidInput(f"edge {edge_id} is not in scope {self.scope}")

    def require_free(self, kind: str, row: Community | RecallTrace) -> None:
        """Raise if the id of a row to be written is taken."""
        if self.kinds.get(row.id, (kind, self.scope.key)) != (kind, self.scope.key):
            raise Conflict(f"{kind} id {row.id} is taken")  # says nothing about the other scope


def read_named(transaction: Transaction, scope: Scope, changes: Changes) -> NamedRows:
    """Return the rows that communities, memberships and traces of a write reference; without any, reads nothing."""
    named = NamedRows(scope)
    if not (changes.communities or changes.memberships or changes.recalls):
        return named
    nodes = {c.id: None for c in changes.communities}
    nodes.update({c.parent_id: None for c in changes.communities if c.parent_id is not None})
    for membership in changes.memberships:
        nodes.update({membership.community_id: None, membership.entity_id: None})
    edges: dict[str, None] = {}
    for trace in changes.recalls:
        nodes[trace.id] = None
        nodes.update(dict.fromkeys(seed.entity_id for seed in trace.seeds))
        nodes.update(dict.fromkeys(fact.entity_id for fact in trace.facts))
        nodes.update(dict.fromkeys(found.episode_id for found in trace.episodes))
        edges.update(dict.fromkeys(fact.edge_id for fact in trace.facts))
    for kind, row_id, held_by, fact in transaction.run("named_rows", nodes=list(nodes), ids=list(edges)):
        if kind != "edge":
            named.kinds[row_id] = (kind, held_by)
        elif held_by == scope.key:
            named.facts[row_id] = fact
    named.kinds.update({entity.id: ("entity", scope.key) for entity in changes.entities})
    named.facts.update({edge.id: edge.fact for edge in changes.edges})
    return named
