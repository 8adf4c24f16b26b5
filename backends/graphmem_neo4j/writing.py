"""Writes: one query reads what a write depends on, the write is checked here, and one more query stores it.

The server can't undo a part of a transaction. So nothing is written before the whole write is known to be valid: a
refused write leaves the transaction around it unchanged. The scope is locked meanwhile, so that the rows that were
read don't change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    Alias,
    Changes,
    Corroboration,
    Edge,
    EdgeExpiry,
    EdgeKey,
    Entity,
    EpisodeRedaction,
    Mention,
    ProcessingResult,
    Removal,
    Scope,
)
from graphmem.protocols import require_scope
from graphmem_neo4j.communities import CommunityPlan
from graphmem_neo4j.connection import Neo4jRole, Rows, Transaction
from graphmem_neo4j.existing import ExistingFact, ExistingRows, Name, existing_of, query_existing, read_named
from graphmem_neo4j.rows import (
    ENTITY_STANDS_FOR,
    FACT_PROPERTIES,
    TYPE_NAMES,
    StoredRow,
    Times,
    active_key,
    edge_row,
    entity_row,
    expressions_of,
    ids_of,
    stated_row,
    type_labels,
)
from graphmem_neo4j.traces import TracePlan
from graphmem_neo4j.upkeep import IndexPlan, MergePlan, put_job_states


class Neo4jWrites(Neo4jRole):
    """Atomic writes of `Changes`."""

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes`, all or nothing."""
        require_scope(scope, changes)
        if any(getattr(changes, part) for part in Changes.__slots__):
            self._database.write(lambda transaction: _apply(transaction, scope, changes))


def _apply(transaction: Transaction, scope: Scope, changes: Changes) -> None:
    rows = query_existing(transaction, scope, changes)
    plan = GraphPlan(scope, changes)  # built while the server runs the query
    plan.validate(existing_of(scope, rows))
    named = read_named(transaction, scope, changes)
    communities = CommunityPlan(scope, changes)
    communities.validate(named)
    traces = TracePlan(changes)
    traces.validate(named)
    index = IndexPlan(scope, changes.index)
    index.validate(transaction, frozenset(row.id for row in (*changes.entities, *changes.edges)))
    merges = MergePlan(scope, changes.merges)
    merges.validate(transaction)
    for part in (plan, communities, traces, index, merges):
        part.run(transaction)
    put_job_states(transaction, scope, changes.job_states)
    _remove(transaction, scope, changes.removals)


class GraphPlan:
    """Entities, facts and episodes of a write, checked in the order of `Changes` against the existing rows."""

    def __init__(self, scope: Scope, changes: Changes) -> None:
        self._scope = scope
        self._key = scope.key
        self._changes = changes
        self._existing = ExistingRows()
        self._times = Times()
        self._entities = {e.id: entity_row(e, self._times) for e in changes.entities}
        self._edges = {e.id: edge_row(e, self._times) for e in changes.edges}
        self._old_entities: set[str] = set()
        self._retyped: list[StoredRow] = []
        self._released: list[Name] = []
        self._aliases: dict[Name, str] = {}
        self._expiries: dict[str, StoredRow] = {}
        self._dropped: list[str] = []
        self._freed_keys: list[str] = []
        self._supported: dict[str, ExistingFact] = {}
        self._mentions: dict[tuple[str, str], StoredRow] = {}
        self._results: list[StoredRow] = []
        self._redactions: dict[str, str] = {}
        self._ends: list[StoredRow] = []
        self._lifetimes: list[StoredRow] = []

    def validate(self, existing: ExistingRows) -> None:
        """Check all changes; raise for an invalid one."""
        self._existing = existing
        changes = self._changes
        for entity in {e.id: e for e in changes.entities}.values():
            self._put_entity(entity)
        for alias in changes.aliases:
            self._put_alias(alias)
        for expiry in changes.expiries:
            self._close(expiry)
        for edge in {e.id: e for e in changes.edges}.values():
            self._put_edge(edge)
        for corroboration in changes.corroborations:
            self._corroborate(corroboration)
        for mention in changes.mentions:
            self._mention(mention)
        for result in changes.results:
            self._set_result(result)
        for redaction in changes.redactions:
            self._redact(redaction)
        for end in changes.episode_ends:
            self._require_episode(end.episode_id)
            self._ends.append([end.episode_id, self._times[end.ended_at]])
        for expiry in changes.episode_expiries:
            self._require_episode(expiry.episode_id)
            self._lifetimes.append([expiry.episode_id, self._times[expiry.expires_at]])

    def run(self, transaction: Transaction) -> None:
        """Write the rows."""
        times = self._times.texts
        # a key must be free before its next holder is written
        if self._expiries:
            transaction.run("expire_edges", ids=list(self._expiries), rows=self._expiries, times=times)
        if self._freed_keys:
            transaction.run("release_keys", ids=self._freed_keys)
        foreign: Rows = []
        if self._dropped:
            foreign = transaction.run("delete_replaced_edges", ids=self._dropped, ours=list(FACT_PROPERTIES))
        rows = self._rows()
        if any(rows.values()):
            domain, project = self._scope.domain, self._scope.project_id
            transaction.run("write", scope=self._key, domain=domain, project=project, times=times, **rows)
        if foreign:
            transaction.run("restore_on_edges", ids=[row[0] for row in foreign], rows=dict(foreign))
        if self._supported:
            supported = {i: [fact.confidence, list(fact.episode_ids)] for i, fact in self._supported.items()}
            transaction.run("corroborate_edges", ids=list(supported), rows=supported)
        if self._redactions:
            transaction.run("redact_episodes", rows=[list(item) for item in self._redactions.items()])
            unindexed = [["episode", episode_id] for episode_id in self._redactions]
            transaction.run("remove_index", scope=self._key, rows=unindexed)

        if self._ends or self._lifetimes:
            transaction.run("limit_episodes", ends=self._ends, expiries=self._lifetimes, times=times)

    def _rows(self) -> dict[str, list[Any]]:
        old = self._old_entities
        new = [entity_id for entity_id in self._entities if entity_id not in old]
        ends = dict.fromkeys(end for row in (*self._edges.values(), *self._mentions.values()) for end in row[:2])
        for entity_id in new:
            ends.pop(entity_id, None)
        there = list(ends)
        place = {node_id: position for position, node_id in enumerate((*there, *new))}
        edges, mentions = (
            [[place[begin], place[end], *rest] for begin, end, *rest in rows.values()]
            for rows in (self._edges, self._mentions)
        )
        return {
            **self._name_rows(),
            "retyped": self._retyped,
            "replaced": [row for entity_id, row in self._entities.items() if entity_id in old],
            "nodes": there,
            "entities": [self._entities[entity_id] for entity_id in new],
            "edges": edges,
            # a new entity has no mentions yet: no look-up needed
            "first_mentions": [row for row in mentions if row[1] >= len(there)],
            "mentions": [row for row in mentions if row[1] < len(there)],
            "results": self._results,
        }

    # Entities -------------------------------------------------------------------------------------

    def _put_entity(self, entity: Entity) -> None:
        existing = self._existing
        if entity.id in existing.episodes or existing.scopes.get(entity.id, self._key) != self._key:
            raise Conflict(f"entity id {entity.id} is taken")  # says nothing about the other scope
        name = (entity.canonical_name, entity.entity_type)
        holder = existing.names.get(name)
        if holder not in (None, entity.id):
            raise Conflict(f"{name[1]} {name[0]!r} is entity {holder} in scope {self._scope}")
        before = existing.entities.get(entity.id)
        if before is not None:
            self._old_entities.add(entity.id)
            if before != name:
                existing.names.pop(before, None)
                self._released.append(before)
            if before[1] != name[1]:
                labels = [list(type_labels(entity_type)) for entity_type in (before[1], name[1])]
                self._retyped.append([entity.id, *labels])
        existing.names[name] = entity.id
        existing.scopes[entity.id] = self._key
        existing.entities[entity.id] = name

    def _put_alias(self, alias: Alias) -> None:
        self._require_entity(alias.entity_id)
        self._aliases[alias.alias, alias.entity_type] = alias.entity_id

    def _name_rows(self) -> dict[str, list[StoredRow]]:
        """Store the own names of entities in their rows; return the alias nodes to delete, and the aliases to write."""
        existing, aliases = self._existing, dict(self._aliases)
        for name in self._released:
            if name not in existing.names and (entity_id := existing.stands_for.get(name)):
                aliases.setdefault(name, entity_id)
        freed: list[StoredRow] = []
        for entity_id, row in self._entities.items():
            name = existing.entities[entity_id]
            stands_for = aliases.pop(name, None) or existing.stands_for.get(name, "")
            row[ENTITY_STANDS_FOR] = None if stands_for == entity_id else stands_for
            if name in existing.alias_nodes:
                freed.append(list(name))
        return {"freed": freed, "aliases": [[*name, entity_id] for name, entity_id in aliases.items()]}

    # Edges ----------------------------------------------------------------------------------------

    def _close(self, expiry: EdgeExpiry) -> None:
        fact = self._require_edge(expiry.edge_id)
        if expiry.valid_to < fact.valid_from:
            raise InvalidInput(
                f"edge {expiry.edge_id}: valid_to {expiry.valid_to.isoformat()} lies before its valid_from"
            )
        if fact.active:
            self._expiries[expiry.edge_id] = [
                self._times[expiry.valid_to],
                self._times[expiry.expired_at],
                expiry.superseded_by,
                expiry.reason,
                *stated_row(expiry.ends, self._times),
            ]
            fact.active = False
            self._free(fact.key, expiry.edge_id)

    def _put_edge(self, edge: Edge) -> None:
        before = self._existing.facts.get(edge.id)
        if before is not None and before.scope != self._key:
            raise Conflict(f"edge id {edge.id} is taken")  # says nothing about the other scope
        self._require_entity(edge.source_id)
        self._require_entity(edge.target_id)
        episode_ids = tuple(dict.fromkeys(edge.episode_ids))
        for episode_id in episode_ids:
            self._require_source(episode_id)
        held = (TYPE_NAMES[edge.edge_type], active_key(edge.key))
        is_active = edge.is_active
        if is_active:
            holder = self._existing.active.get(held)
            if holder not in (None, edge.id):
                raise Conflict(f"the active fact {held[1]} is edge {holder}")
            if ended := self._existing.ended.pop(held, None):
                self._freed_keys.append(ended)
        if before is not None:
            self._free(before.key, edge.id)
            self._dropped.append(edge.id)
        if is_active:
            self._existing.active[held] = edge.id
        self._existing.facts[edge.id] = ExistingFact(
            self._key, edge.key, edge.confidence, edge.valid_from, is_active, episode_ids
        )

    def _free(self, key: EdgeKey, edge_id: str) -> None:
        held = (TYPE_NAMES[key[3]], active_key(key))
        if self._existing.active.get(held) == edge_id:
            del self._existing.active[held]

    def _corroborate(self, corroboration: Corroboration) -> None:
        fact = self._require_edge(corroboration.edge_id)
        for episode_id in corroboration.episode_ids:
            self._require_source(episode_id)
        fact.confidence = max(fact.confidence, corroboration.confidence)
        fact.episode_ids = tuple(dict.fromkeys((*fact.episode_ids, *corroboration.episode_ids)))
        self._supported[corroboration.edge_id] = fact

    # Episodes -------------------------------------------------------------------------------------

    def _mention(self, mention: Mention) -> None:
        self._require_entity(mention.entity_id)
        self._require_episode(mention.episode_id)
        seen_at = self._times[mention.seen_at]
        row: StoredRow = [mention.episode_id, mention.entity_id, mention.surface, mention.confidence, seen_at]
        self._mentions.setdefault((mention.entity_id, mention.episode_id), row)

    def _set_result(self, result: ProcessingResult) -> None:
        self._require_episode(result.episode_id)
        processed = self._times[result.processed_at]
        queue = self._key if processed is None else None
        retry_at = self._times[result.retry_at]
        self._results.append([result.episode_id, processed, retry_at, result.error, result.attempts, queue])

    def _redact(self, redaction: EpisodeRedaction) -> None:
        self._require_episode(redaction.episode_id)
        self._redactions[redaction.episode_id] = redaction.text

    # References -------------------------------------------------------------------------------

    def _require_entity(self, entity_id: str) -> None:
        if entity_id not in self._existing.entities or self._existing.scopes[entity_id] != self._key:
            raise InvalidInput(f"entity {entity_id} is not in scope {self._scope}")

    def _require_episode(self, episode_id: str) -> None:
        if episode_id not in self._existing.episodes or self._existing.scopes[episode_id] != self._key:
            raise InvalidInput(f"episode {episode_id} is not in scope {self._scope}")

    def _require_source(self, episode_id: str) -> None:
        """Require an episode, unless a stored fact of the write has its id: it may have been deleted by hand."""
        if episode_id not in self._existing.sources:
            self._require_episode(episode_id)

    def _require_edge(self, edge_id: str) -> ExistingFact:
        fact = self._existing.facts.get(edge_id)
        if fact is None or fact.scope != self._key:
            raise InvalidInput(f"edge {edge_id} is not in scope {self._scope}")
        return fact


def _remove(transaction: Transaction, scope: Scope, removals: Sequence[Removal]) -> None:
    """Delete rows of a scope and their dependent rows, ignoring absent ones."""
    named: dict[str, list[Removal]] = {}
    for removal in removals:
        named.setdefault(removal.kind, []).append(removal)
    entities = ids_of(removal.id for removal in named.get("entity", ()))
    edges = ids_of(removal.id for removal in named.get("edge", ()))
    if entities:
        edges += transaction.run("facts_of_entities", scope=scope.key, ids=entities)
    unindexed: list[list[str]] = [[removal.qualifier, removal.id] for removal in named.get("index", ())]
    if edges:
        found = transaction.run("remove_edges", scope=scope.key, ids=list(dict.fromkeys(edges)))
        unindexed += [["fact", edge_id] for edge_id in found]
    if entities:
        found = transaction.run("remove_entities", scope=scope.key, ids=entities)
        unindexed += [["entity", entity_id] for entity_id in found]
    if episodes := ids_of(removal.id for removal in named.get("episode", ())):
        stated = transaction.run("edges_of_episodes", scope=scope.key, expressions=expressions_of(episodes))
        if stated:
            transaction.run("remove_sources", ids=stated, episodes=episodes)
        found = transaction.run("remove_episodes", scope=scope.key, ids=episodes)
        unindexed += [["episode", episode_id] for episode_id in found]
    if unindexed:
        transaction.run("remove_index", scope=scope.key, rows=unindexed)
    for kind, query in (("alias", "remove_aliases"), ("mention", "remove_mentions")):
        if rows := [[removal.id, removal.qualifier] for removal in named.get(kind, ())]:
            transaction.run(query, scope=scope.key, rows=rows)
    for kind, query in (("community", "remove_communities"), ("recall", "remove_recalls")):
        if ids := ids_of(removal.id for removal in named.get(kind, ())):
            transaction.run(query, scope=scope.key, ids=ids)
    if merges := ids_of(removal.id for removal in named.get("merge", ())):
        transaction.run("remove_merges", scope=scope.key, ids=merges)
