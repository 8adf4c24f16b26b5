"""Deleting rows, with all that goes with them."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from graphmem.models import IndexKind, RecallTrace, Removal, Scope
from graphmem_memory.indexing import remove_entry, state_of
from graphmem_memory.tables import StateRow, Store


def remove(store: Store, scope: Scope, removal: Removal) -> None:
    """Delete a row of a scope; one that isn't there is left out."""
    if removal.kind == "entity":
        _remove_entity(store, scope, removal.id)
    elif removal.kind == "edge":
        _remove_edge(store, scope, removal.id)
    elif removal.kind == "alias":
        store.aliases.put((scope.key, removal.id, removal.of), None)
    elif removal.kind == "mention":
        key = (removal.of, removal.id)
        if (held := store.mentions.get(key)) is not None and held.scope == scope:
            store.mentions.put(key, None)
    elif removal.kind == "episode":
        _remove_episode(store, scope, removal.id)
    elif removal.kind == "community":
        _remove_community(store, scope, removal.id)
    elif removal.kind == "index":
        for kind in get_args(IndexKind):
            if kind == removal.of:
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


def unindex(store: Store, scope: Scope, kind: IndexKind, key: str) -> None:
    """Delete what the index holds of a row, and tell whoever keeps a copy."""
    if store.index.keys_of("key", [(scope, kind, key)]):
        remove_entry(store, scope, kind, key)
        state = state_of(store, scope)
        store.index_states.put(scope.key, StateRow(scope, replace(state, generation=state.generation + 1)))
