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
    Episode,
    EpisodeRedaction,
    IndexKind,
    Membership,
    Mention,
    Merge,
    ProcessingResult,
    RecallTrace,
    Removal,
    Scope,
)
from graphmem.protocols import require_scope
from graphmem_memory.tables import AliasRow, MembershipRow, MemoryRole, MentionRow, Store, utc
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
        episode = _episode(store, scope, end.episode_id)
        store.episodes.put(episode.id, episode.changed(ended_at=_utc_or_none(end.ended_at)))
    for lifetime in changes.episode_expiries:
        episode = _episode(store, scope, lifetime.episode_id)
        store.episodes.put(episode.id, episode.changed(expires_at=_utc_or_none(lifetime.expires_at)))
    for community in changes.communities:
        _put_community(store, scope, community)
    for community in changes.communities:
        if community.parent_id is not None:
            _community(store, scope, community.parent_id)
    for membership in changes.memberships:
        _put_membership(store, scope, membership)
    for trace in changes.recalls:
        _put_recall(store, scope, trace)
    for entry in changes.index:
        put_entry(store, scope, entry)
    for merge in changes.merges:
        _id_is_free("merge", merge.id, store.merges.get(merge.id), scope)
        store.merges.put(merge.id, merge)
    for job_state in changes.job_states:
        put_job_state(store, scope, job_state)
    for removal in changes.removals:
        _remove(store, scope, removal)


def _put_entity(store: Store, scope: Scope, entity: Entity) -> None:
    _id_is_free("entity", entity.id, store.entities.get(entity.id), scope)
    key = (scope, entity.canonical_name, entity.entity_type)
    for holder in store.entities.keys_of("name", [key]) - {entity.id}:
        raise Conflict(f"{entity.entity_type} {entity.canonical_name!r} is entity {holder} in scope {scope}")
    store.entities.put(entity.id, entity.changed(properties=dict(entity.properties)))


def _put_alias(store: Store, scope: Scope, alias: Alias) -> None:
    _entity(store, scope, alias.entity_id)
    store.aliases.put((scope.key, alias.alias, alias.entity_type), AliasRow(scope, alias))


def _close(store: Store, scope: Scope, expiry: EdgeExpiry) -> None:
    edge = _edge(store, scope, expiry.edge_id)
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
    _id_is_free("edge", edge.id, store.edges.get(edge.id), scope)
    _entity(store, scope, edge.source_id)
    _entity(store, scope, edge.target_id)
    for episode_id in edge.episode_ids:
        _episode(store, scope, episode_id)
    if edge.is_active:
        for holder in store.edges.keys_of("active", [(scope, edge.key)]) - {edge.id}:
            raise Conflict(f"the active fact {edge.source_id} {edge.relation} {edge.target_id} is edge {holder}")
    episode_ids = tuple(dict.fromkeys(edge.episode_ids))
    store.edges.put(edge.id, edge.changed(properties=dict(edge.properties), episode_ids=episode_ids))


def _corroborate(store: Store, scope: Scope, corroboration: Corroboration) -> None:
    edge = _edge(store, scope, corroboration.edge_id)
    for episode_id in corroboration.episode_ids:
        _episode(store, scope, episode_id)
    supported = edge.changed(
        confidence=max(edge.confidence, corroboration.confidence),
        episode_ids=tuple(dict.fromkeys((*edge.episode_ids, *corroboration.episode_ids))),
    )
    store.edges.put(edge.id, supported)


def _put_mention(store: Store, scope: Scope, mention: Mention) -> None:
    _entity(store, scope, mention.entity_id)
    _episode(store, scope, mention.episode_id)
    key = (mention.episode_id, mention.entity_id)
    if store.mentions.get(key) is None:
        store.mentions.put(key, MentionRow(scope, mention))


def _set_result(store: Store, scope: Scope, result: ProcessingResult) -> None:
    episode = _episode(store, scope, result.episode_id)
    changed = episode.changed(
        processed_at=_utc_or_none(result.processed_at),
        error=result.error,
        attempts=result.attempts,
        retry_at=_utc_or_none(result.retry_at),
    )
    store.episodes.put(episode.id, changed)
    if store.claims.get(episode.id) is not None:
        store.claims.put(episode.id, None)


def _utc_or_none(moment: datetime | None) -> datetime | None:
    return None if moment is None else utc(moment)


def _redact(store: Store, scope: Scope, redaction: EpisodeRedaction) -> None:
    episode = _episode(store, scope, redaction.episode_id)
    store.episodes.put(episode.id, episode.changed(text=redaction.text))
    unindex(store, scope, "episode", episode.id)


def _put_community(store: Store, scope: Scope, community: Community) -> None:
    _id_is_free("community", community.id, store.communities.get(community.id), scope)
    store.communities.put(community.id, community)


def _put_membership(store: Store, scope: Scope, membership: Membership) -> None:
    _community(store, scope, membership.community_id)
    _entity(store, scope, membership.entity_id)
    store.memberships.put(membership.key, MembershipRow(scope, membership))


def _put_recall(store: Store, scope: Scope, trace: RecallTrace) -> None:
    _id_is_free("recall", trace.id, store.recalls.get(trace.id), scope)
    for entity_id in (*(seed.entity_id for seed in trace.seeds), *(fact.entity_id for fact in trace.facts)):
        _entity(store, scope, entity_id)
    for fact in trace.facts:
        _edge(store, scope, fact.edge_id)
    for found in trace.episodes:
        _episode(store, scope, found.episode_id)
    if store.recalls.get(trace.id) is None:
        store.recalls.put(trace.id, trace)


def _id_is_free(
    kind: str, row_id: str, held: Entity | Edge | Community | RecallTrace | Merge | None, scope: Scope
) -> None:
    if held is not None and held.scope != scope:
        raise Conflict(f"{kind} id {row_id} is taken")  # says nothing about the other scope


def _entity(store: Store, scope: Scope, entity_id: str) -> Entity:
    row = store.entities.get(entity_id)
    if row is None or row.scope != scope:
        raise InvalidInput(f"entity {entity_id} is not in scope {scope}")
    return row


def _edge(store: Store, scope: Scope, edge_id: str) -> Edge:
    row = store.edges.get(edge_id)
    if row is None or row.scope != scope:
        raise InvalidInput(f"edge {edge_id} is not in scope {scope}")
    return row


def _episode(store: Store, scope: Scope, episode_id: str) -> Episode:
    row = store.episodes.get(episode_id)
    if row is None or row.scope != scope:
        raise InvalidInput(f"episode {episode_id} is not in scope {scope}")
    return row


def _community(store: Store, scope: Scope, community_id: str) -> Community:
    row = store.communities.get(community_id)
    if row is None or row.scope != scope:
        raise InvalidInput(f"community {community_id} is not in scope {scope}")
    return row


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
        if (held := store.mentions.get(key)) is not None and held.scope == scope:
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
        if (trace := store.recalls.get(removal.id)) is not None and trace.scope == scope:
            store.recalls.put(removal.id, None)
    elif (merge := store.merges.get(removal.id)) is not None and merge.scope == scope:
        store.merges.put(removal.id, None)


def _remove_entity(store: Store, scope: Scope, entity_id: str) -> None:
    entity = store.entities.get(entity_id)
    if entity is None or entity.scope != scope:
        return
    for edge_id in store.edges.keys_of("source", [entity_id]) | store.edges.keys_of("target", [entity_id]):
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
        _put_trace(store, trace.changed(seeds=seeds, facts=facts))
    store.entities.put(entity_id, None)
    unindex(store, scope, "entity", entity_id)


def _remove_edge(store: Store, scope: Scope, edge_id: str) -> None:
    edge = store.edges.get(edge_id)
    if edge is None or edge.scope != scope:
        return
    for trace in list(store.recalls.read([scope], store.recalls.keys_of("edge", [edge_id]))):
        _put_trace(store, trace.changed(facts=tuple(fact for fact in trace.facts if fact.edge_id != edge_id)))
    store.edges.put(edge_id, None)
    unindex(store, scope, "fact", edge_id)


def _remove_episode(store: Store, scope: Scope, episode_id: str) -> None:
    episode = store.episodes.get(episode_id)
    if episode is None or episode.scope != scope:
        return
    for edge in list(store.edges.read([scope], store.edges.keys_of("episode", [episode_id]))):
        store.edges.put(edge.id, edge.changed(episode_ids=tuple(i for i in edge.episode_ids if i != episode_id)))
    for mention in store.mentions.keys_of("episode", [episode_id]):
        store.mentions.put(mention, None)
    for trace in list(store.recalls.read([scope], store.recalls.keys_of("episode", [episode_id]))):
        _put_trace(store, trace.changed(episodes=tuple(e for e in trace.episodes if e.episode_id != episode_id)))
    if store.claims.get(episode_id) is not None:
        store.claims.put(episode_id, None)
    store.episodes.put(episode_id, None)
    unindex(store, scope, "episode", episode_id)


def _remove_community(store: Store, scope: Scope, community_id: str) -> None:
    community = store.communities.get(community_id)
    if community is None or community.scope != scope:
        return
    for part in list(store.communities.read([scope])):
        if part.parent_id == community_id:
            store.communities.put(part.id, part.changed(parent_id=None))
    for membership in store.memberships.keys_of("community", [community_id]):
        store.memberships.put(membership, None)
    store.communities.put(community_id, None)


def _put_trace(store: Store, trace: RecallTrace) -> None:
    store.recalls.put(trace.id, trace)
