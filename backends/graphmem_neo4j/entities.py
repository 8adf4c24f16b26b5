"""Reading entities and aliases."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.models import Alias, Entity, EntityQuery, Scope
from graphmem_neo4j.connection import Database
from graphmem_neo4j.rows import entity_of, ids_of


def keys_of(scopes: Sequence[Scope]) -> list[str]:
    """Return the keys of scopes, each once."""
    return list(dict.fromkeys(scope.key for scope in scopes))


def resolve_names(database: Database, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
    """Return (name, entity) for each entity of which a name is an alias."""
    if not names:
        return []
    rows = database.read("resolve_names", [scope], scope=scope.key, names=list(dict.fromkeys(names)))
    return [(row[0], entity_of(row[1])) for row in rows]


def find_entities(
    database: Database, scopes: Sequence[Scope], query: EntityQuery, after: str, limit: int
) -> list[Entity]:
    """Return a page of the entities that match, in ascending order of id."""
    values = {
        "scopes": keys_of(scopes),
        "after": after,
        "limit": limit,
        "types": query.entity_types,
        "archived": query.archived or query.ids is not None,
        "valid": None if query.as_of is None else query.as_of.valid,
        "known": None if query.as_of is None else query.as_of.known,
    }
    if query.ids is None:
        rows = database.read("entities_of_scopes", scopes, **values)
    else:
        rows = database.read("entities_by_id", scopes, ids=ids_of(query.ids), **values)
    return [entity_of(row) for row in rows]


def find_aliases(database: Database, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
    """Return all aliases of these entities, ordered by entity id, then alias."""
    rows = database.read("aliases_of_entities", scopes, ids=ids_of(entity_ids), scopes=keys_of(scopes))
    found = [Alias.model_construct(None, alias=row[0], entity_type=row[1], entity_id=row[2]) for row in rows]
    return sorted(found, key=lambda a: (a.entity_id, a.alias, a.entity_type))
