"""Writes: `Changes` applied to the tables in the order of the protocol, and removals with their dependent rows."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    Alias,
    Changes,
    Community,
    Corroboration,
    Edge,
    EdgeExpiry,
    Entity,
    EpisodeRedaction,
    IndexKind,
    Membership,
    Mention,
    ProcessingResult,
    RecallTrace,
    Removal,
    Scope,
)
from graphmem.protocols import require_scope
from graphmem_memory.tables import MemoryRole, Scoped, Store, utc
from graphmem_memory.upkeep import put_entry, put_job_state, unindex


class MemoryWrites(MemoryRole):
    """Atomic writes of `Changes`."""

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes`, all or nothing."""
        with self._writing():
            require_scope(scope, changes)
            _apply(self._store, scope, changes)


def _apply(store: Store, scope: Scope, changes: Changes) -> None:
    for entity in changes.entities:
        _put_entity(store, scope, entity)
    for alias in changes.aliases:
        _put_alias(store, scope, alias)
    for expiry in changes.expiries:
        _close(store, scope, expiry)
    for edge in changes.edges:
        _put_edge(store, scope, edge)
    for corroboration in changes.corroborations:
        _corroborate(store, scope, corroboration)
    for mention in changes.mentions:
        _put_mention(store, scope, mention)
    for result in changes.results:
        _set_result(store, scope, result)
    for redaction in changes.redactions:
        _redact(store, scope, redaction)
    for end in changes.episode_ends:
        episode = store.episodes.require(scope, end.episode_id)
        store.episodes.put(episode.id, episode.changed(ended_at=_utc_or_none(end.ended_at)))
    for lifetime in changes.episode_expiries:
        episode = store.episodes.require(scope, lifetime.episode_id)
        store.episodes.put(episode.id, episode.changed(expires_at=_utc_or_none(lifetime.expires_at)))
    for community in changes.communities:
        _put_community(store, scope, community)
    for community in changes.communities:
        if community.parent_id is not None:
            store.communities.require(scope, community.parent_id)
    for membership in changes.memberships:
        _put_membership(store, scope, membership)
    for trace in changes.recalls:
        _put_recall(store, scope, trace)
    for entry in changes.index:
        put_entry(store, scope, entry)
    for merge in changes.merges:
        store.merges.require_free(scope, merge.id)
        store.merges.put(merge.id, merge)
    for job_state in changes.job_states:
        put_job_state(store, scope, job_state)
    for removal in changes.removals:
        _remove(store, scope, removal)


def _put_entity(store: Store, scope: Scope, entity: Entity) -> None:
    store.entities.require_free(scope, entity.id)
    key = (scope, entity.canonical_name, entity.entity_type)
    for holder in store.entities.keys_of("name", [key]) - {entity.id}:
        raise Conflict(f"{entity.entity_type} {entity.canonical_name!r} is entity {holder} in scope {scope}")
    store.entities.put(entity.id, entity.changed(properties=dict(entity.properties)))


def _put_alias(store: Store, scope: Scope, alias: Alias) -> None:
    store.entities.require(scope, alias.entity_id)
    store.aliases.put((scope.key, alias.alias, alias.entity_type), Scoped(scope, alias))


def _close(store: Store, scope: Scope, expiry: EdgeExpiry) -> None:
    edge = store.edges.require(scope, expiry.edge_id)
    if utc(expiry.valid_to) < edge.valid_from:
        raise InvalidInput(
            f"edge {edge.id}: valid_to {expiry.valid_to.isoformat()} lies before "
            f"valid_from {edge.valid_from.isoformat()}"
        )
    if edge.is_active:
        ended = edge.changed(
            valid_to=utc(expiry.valid_to),
            expired_at=utc(expiry.expired_at),
            superseded_by=expiry.superseded_by,
            end_reason=expiry.reason,
            ends=expiry.ends,
        )
        store.edges.put(edge.id, ended)


def _put_edge(store: Store, scope: Scope, edge: Edge) -> None:
    store.edges.require_free(scope, edge.id)
    store.entities.require(scope, edge.source_id)
    store.entities.require(scope, edge.target_id)
    for episode_id in edge.episode_ids:
        store.episodes.require(scope, episode_id)
    if edge.is_active:
        for holder in store.edges.keys_of("active", [(scope, edge.key)]) - {edge.id}:
            raise Conflict(f"the active fact {edge.source_id} {edge.relation} {edge.target_id} is edge {holder}")
    episode_ids = tuple(dict.fromkeys(edge.episode_ids))
    store.edges.put(edge.id, edge.changed(properties=dict(edge.properties), episode_ids=episode_ids))


def _corroborate(store: Store, scope: Scope, corroboration: Corroboration) -> None:
    edge = store.edges.require(scope, corroboration.edge_id)
    for episode_id in corroboration.episode_ids:
        store.episodes.require(scope, episode_id)
    supported = edge.changed(
        confidence=max(edge.confidence, corroboration.confidence),
        episode_ids=tuple(dict.fromkeys((*edge.episode_ids, *corroboration.episode_ids))),
    )
    store.edges.put(edge.id, supported)


def _put_mention(store: Store, scope: Scope, mention: Mention) -> None:
    store.entities.require(scope, mention.entity_id)
    store.episodes.require(scope, mention.episode_id)
    key = (mention.episode_id, mention.entity_id)
    if store.mentions.get(key) is None:
        store.mentions.put(key, Scoped(scope, mention))


def _set_result(store: Store, scope: Scope, result: ProcessingResult) -> None:
    episode = store.episodes.require(scope, result.episode_id)
    changed = episode.changed(
        processed_at=_utc_or_none(result.processed_at),
        error=result.error,
        attempts=result.attempts,
        retry_at=_utc_or_none(result.retry_at),
    )
    store.episodes.put(episode.id, changed)
    store.claims.put(episode.id, None)


def _utc_or_none(moment: datetime | None) -> datetime | None:
    return None if moment is None else utc(moment)


def _redact(store: Store, scope: Scope, redaction: EpisodeRedaction) -> None:
    episode = store.episodes.require(scope, redaction.episode_id)
    store.episodes.put(episode.id, episode.changed(text=redaction.text))
    unindex(store, scope, "episode", episode.id)


def _put_community(store: Store, scope: Scope, community: Community) -> None:
    store.communities.require_free(scope, community.id)
    store.communities.put(community.id, community)


def _put_membership(store: Store, scope: Scope, membership: Membership) -> None:
    store.communities.require(scope, membership.community_id)
    store.entities.require(scope, membership.entity_id)
    store.memberships.put(membership.key, Scoped(scope, membership))


def _put_recall(store: Store, scope: Scope, trace: RecallTrace) -> None:
    store.recalls.require_free(scope, trace.id)
    for entity_id in (*(seed.entity_id for seed in trace.seeds), *(fact.entity_id for fact in trace.facts)):
        store.entities.require(scope, entity_id)
    for fact in trace.facts:
        store.edges.require(scope, fact.edge_id)
    for found in trace.episodes:
        store.episodes.require(scope, found.episode_id)
    if store.recalls.get(trace.id) is None:
        store.recalls.put(trace.id, trace)


# Removals ---------------------------------------------------------------------------------------


def _remove(store: Store, scope: Scope, removal: Removal) -> None:
    """Delete a row of a scope with its dependent rows; an absent one is ignored."""
    if removal.kind == "entity":
        _remove_entity(store, scope, removal.id)
    elif removal.kind == "edge":
        _remove_edge(store, scope, removal.id)
    elif removal.kind == "alias":
        store.aliases.put((scope.key, removal.id, removal.qualifier), None)
    elif removal.kind == "mention":
        key = (removal.qualifier, removal.id)
        if store.mentions.held(scope, key) is not None:
            store.mentions.put(key, None)
    elif removal.kind == "episode":
        _remove_episode(store, scope, removal.id)
    elif removal.kind == "community":
        _remove_community(store, scope, removal.id)
    elif removal.kind == "index":
        for kind in get_args(IndexKind):
            if kind == removal.qualifier:
                unindex(store, scope, kind, removal.id)
    elif removal.kind == "recall":
        if store.recalls.held(scope, removal.id) is not None:
            store.recalls.put(removal.id, None)
    elif store.merges.held(scope, removal.id) is not None:
        store.merges.put(removal.id, None)


def _remove_entity(store: Store, scope: Scope, entity_id: str) -> None:
    if store.entities.held(scope, entity_id) is None:
        return
    for edge_id in store.edges_at([entity_id]):
        _remove_edge(store, scope, edge_id)
    for alias in store.aliases.keys_of("entity", [entity_id]):
        store.aliases.put(alias, None)
    for mention in store.mentions.keys_of("entity", [entity_id]):
        store.mentions.put(mention, None)
    for membership in store.memberships.keys_of("entity", [entity_id]):
        store.memberships.put(membership, None)
    for trace in list(store.recalls.read([scope], store.recalls.keys_of("entity", [entity_id]))):
        seeds = tuple(seed for seed in trace.seeds if seed.entity_id != entity_id)
        facts = tuple(fact for fact in trace.facts if fact.entity_id != entity_id)
        store.recalls.put(trace.id, trace.changed(seeds=seeds, facts=facts))
    store.entities.put(entity_id, None)
    unindex(store, scope, "entity", entity_id)


def _remove_edge(store: Store, scope: Scope, edge_id: str) -> None:
    if store.edges.held(scope, edge_id) is None:
        return
    for trace in list(store.recalls.read([scope], store.recalls.keys_of("edge", [edge_id]))):
        store.recalls.put(trace.id, trace.changed(facts=tuple(fact for fact in trace.facts if fact.edge_id != edge_id)))
    store.edges.put(edge_id, None)
    unindex(store, scope, "fact", edge_id)


def _remove_episode(store: Store, scope: Scope, episode_id: str) -> None:
    if store.episodes.held(scope, episode_id) is None:
        return
    for edge in list(store.edges.read([scope], store.edges.keys_of("episode", [episode_id]))):
        store.edges.put(edge.id, edge.changed(episode_ids=tuple(i for i in edge.episode_ids if i != episode_id)))
    for mention in store.mentions.keys_of("episode", [episode_id]):
        store.mentions.put(mention, None)
    for trace in list(store.recalls.read([scope], store.recalls.keys_of("episode", [episode_id]))):
        store.recalls.put(
            trace.id, trace.changed(episodes=tuple(e for e in trace.episodes if e.episode_id != episode_id))
        )
    store.claims.put(episode_id, None)
    store.episodes.put(episode_id, None)
    unindex(store, scope, "episode", episode_id)


def _remove_community(store: Store, scope: Scope, community_id: str) -> None:
    if store.communities.held(scope, community_id) is None:
        return
    for part in list(store.communities.read([scope])):
        if part.parent_id == community_id:
            store.communities.put(part.id, part.changed(parent_id=None))
    for membership in store.memberships.keys_of("community", [community_id]):
        store.memberships.put(membership, None)
    store.communities.put(community_id, None)
