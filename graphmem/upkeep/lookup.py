"""Look-ups that merge, unmerge and erasure share."""

from __future__ import annotations

from graphmem.errors import InvalidInput, NotFound
from graphmem.models import Edge, EdgeQuery, Entity, Scope
from graphmem.protocols import GraphBackend
from graphmem.text import counted
from graphmem.text.normalize import canonical


def entity_called(backend: GraphBackend, scope: Scope, name_or_id: str) -> Entity:
    """Return the entity with this id, or else with this name.

    Raises
    ------
    NotFound
        If the scope has none.
    InvalidInput
        If several entities have the name; the message contains their types and ids.
    """
    by_id = backend.get_entities([scope], [name_or_id])
    if by_id:
        return by_id[name_or_id]
    found = {entity.id: entity for _, entity in backend.resolve_names(scope, [canonical(name_or_id)])}
    if not found:
        raise NotFound(f"no entity in scope {scope} has the name or id {name_or_id!r}")
    if len(found) > 1:
        which = ", ".join(f"{e.entity_type} {e.id}" for e in found.values())
        raise InvalidInput(
            f"name {name_or_id!r}: {counted(len(found), 'entity', 'entities')} have it; use the id of one: {which}"
        )
    return next(iter(found.values()))


def edges_of(backend: GraphBackend, scope: Scope, entity_id: str) -> list[Edge]:
    """Return all versions of all facts that an entity is part of."""
    return list(backend.all_edges([scope], EdgeQuery(touching=(entity_id,), versions="all")))
