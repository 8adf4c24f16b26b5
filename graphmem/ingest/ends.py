"""Look-ups of facts by what ended them, an episode or another fact, and of the versions that matter without that."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from graphmem.models import STATED_KINDS, Edge, EdgeKey, EdgeQuery, Merge, MergeQuery, Scope
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend


def find_ended(backend: GraphBackend, scope: Scope, by: Collection[str]) -> dict[str, Edge]:
    """Return the facts, by id, that some episodes or facts ended."""
    query = EdgeQuery(ended_by=tuple(by), kinds=STATED_KINDS, versions="all")
    return {edge.id: edge for edge in backend.all_edges([scope], query)} if by else {}


def find_versions(backend: GraphBackend, scope: Scope, ontology: Ontology, edges: Iterable[Edge]) -> dict[str, Edge]:
    """Return all versions of facts, by id; of a single-valued relation also those with other targets."""
    slots: dict[tuple[str, str], None] = {}
    keys: dict[EdgeKey, None] = {}
    for edge in edges:
        if ontology.is_single_valued(edge.relation):
            slots[edge.source_id, edge.relation] = None
        else:
            keys[edge.key] = None
    queries = (
        EdgeQuery(slots=tuple(slots), versions="all"),
        EdgeQuery(keys=tuple(keys), versions="all"),
    )
    asked = (query for query in queries if query.slots or query.keys)
    return {edge.id: edge for query in asked for edge in backend.all_edges([scope], query)}


def with_folded(backend: GraphBackend, scope: Scope, edges: Collection[Edge]) -> dict[str, str]:
    """Return the ids of facts, and of those that merges folded into them: id → id of the fact that stands for it.

    What a folded fact had ended still names it, so that it is right again when the merge is undone.
    """
    merges: dict[str, Merge] = {}
    about = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    while about:
        found = backend.all_merges([scope], MergeQuery(entity_ids=tuple(about)))
        new = {merge.id: merge for merge in found if merge.id not in merges}
        merges.update(new)
        about = {merge.merged.id for merge in new.values()}
    folded = [(f.edge.id, f.into.id) for merge in merges.values() for f in merge.folded if f.into is not None]
    ids = {edge.id: edge.id for edge in edges}
    while further := {gone: ids[into] for gone, into in folded if into in ids and gone not in ids}:
        ids.update(further)
    return ids
