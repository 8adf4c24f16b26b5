"""Rows and helpers that the tests of the Neo4j store share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, LiteralString, cast
from urllib.parse import urlsplit

from graphmem.models import Alias, Changes, Edge, Entity, Scope
from graphmem_neo4j import Neo4jBackend

SCOPE = Scope("neo4j-tests")
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def ask(store: Neo4jBackend, query: LiteralString, **values: Any) -> list[Any]:
    """Return the first column of a query of the test's own."""
    with store.database.session() as session:
        return [record[0] for record in session.run(query, values)]


_OURS = "SHOW INDEXES YIELD name, owningConstraint WHERE name STARTS WITH 'graphmem_' RETURN [name, owningConstraint]"


def drop_schema(store: Neo4jBackend) -> None:
    """Drop all indexes and constraints of graphmem, and its record of them."""
    for name, constraint in ask(store, _OURS):
        if constraint is None:
            ask(store, "DROP INDEX $name IF EXISTS", name=name)
        else:
            ask(store, "DROP CONSTRAINT $name IF EXISTS", name=constraint)
    ask(store, "MATCH (m:Graphmem) WHERE m.migration IS NOT NULL DELETE m")


def explain(store: Neo4jBackend, query: str, values: Mapping[str, Any]) -> Any:
    """Return the summary of a query that is planned and not run."""
    with store.database.session() as session:
        return session.run(cast("Any", "EXPLAIN " + query), dict(values)).consume()


def operators_of(plan: Any) -> Iterator[str]:
    """Yield the names of the operators of a plan."""
    yield plan["operatorType"].partition("@")[0]
    for child in plan.get("children", []):
        yield from operators_of(child)


def without_login(url: str) -> str:
    """Return a URL without user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port}"


def entity(name: str, scope: Scope = SCOPE, **fields: Any) -> Entity:
    given: dict[str, Any] = {"entity_type": "person", "first_seen_at": MOMENT, "last_seen_at": MOMENT, **fields}
    return Entity(scope=scope, name=name, canonical_name=name.lower(), **given)


def of(*entities: Entity) -> Changes:
    """Return the changes that bring entities by their canonical names."""
    aliases = (Alias(alias=e.canonical_name, entity_type=e.entity_type, entity_id=e.id) for e in entities)
    return Changes(entities=entities, aliases=tuple(aliases))


def edge(source: Entity, target: Entity, relation: str = "knows", **fields: Any) -> Edge:
    given: dict[str, Any] = {"valid_from": MOMENT, **fields}
    return Edge(scope=source.scope, source_id=source.id, target_id=target.id, relation=relation, **given)
