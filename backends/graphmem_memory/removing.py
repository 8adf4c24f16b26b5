"""Deleting rows, with all that goes with them."""

from __future__ import annotations

from dataclasses import replace

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
    _unindex(store, scope, "entity", entity_id)


def _remove_edge(store: Store, scope: Scope, edge_id: str) -> None:
    edge = store.edges.get(edge_id)
    if edge is None or edge.scope != scope:
        return
    for trace in list(store.recalls.read([scope], store.recalls.keys_of("edge", [edge_id]))):
        _put_trace(store, trace.changed(facts=tuple(fact for fact in trace.facts if fact.edge_id != edge_id)))
    store.edges.put(edge_id, None)
    _unindex(store, scope, "fact", edge_id)


def _put_trace(store: Store, trace: RecallTrace) -> None:
    store.recalls.put(trace.id, trace)


def _unindex(store: Store, scope: Scope, kind: IndexKind, key: str) -> None:
    """Delete what the index holds of a row, and tell whoever keeps a copy."""
    if store.index.keys_of("key", [(scope, kind, key)]):
        remove_entry(store, scope, kind, key)
        state = state_of(store, scope)
        store.index_states.put(scope.key, StateRow(scope, replace(state, generation=state.generation + 1)))
