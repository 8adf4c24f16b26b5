"""Rows for tests: short to write, full of fixed values, the same in every run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.models import Alias, Changes, Edge, Entity, Episode, Scope
from graphmem.protocols import GraphBackend

HOME = Scope("home")
PROJECT = Scope("home", "project")
ELSEWHERE = Scope("elsewhere")
SCOPES = (HOME, PROJECT, ELSEWHERE)

_START = datetime(2024, 1, 1, 0, 0, 0, 123457, tzinfo=UTC)  # odd microseconds: a store may not round them
FUTURE = datetime(2200, 1, 1, tzinfo=UTC)


def day(n: float) -> datetime:
    """Return the n-th day of the tests' calendar (2024), an aware UTC datetime."""
    return _START + timedelta(days=n)


def entity_id(n: int) -> str:
    """Return the id of entity n: a UUIDv7 in form, ordered by n."""
    return f"{n:08x}-0000-7000-8000-0000000000e1"


def edge_id(n: int) -> str:
    """Return the id of edge n: a UUIDv7 in form, ordered by n."""
    return f"{n:08x}-0000-7000-8000-0000000000fa"


def episode_id(n: int) -> str:
    """Return the id of episode n: a UUIDv7 in form, ordered by n."""
    return f"{n:08x}-0000-7000-8000-0000000000ee"


def entity(n: int, scope: Scope = HOME, **fields: Any) -> Entity:
    """Return entity n, named "Entity n" where `fields` don't say otherwise."""
    name = fields.setdefault("name", f"Entity {n}")
    given: dict[str, Any] = {
        "canonical_name": name.lower(),
        "entity_type": "person",
        "first_seen_at": day(0),
        "last_seen_at": day(0),
        "recorded_at": day(0),
        **fields,
    }
    return Entity(id=entity_id(n), scope=scope, **given)


def edge(n: int, source: int, target: int, scope: Scope = HOME, **fields: Any) -> Edge:
    """Return edge n from entity `source` to entity `target`, "knows" since day 0 where `fields` don't say otherwise."""
    given: dict[str, Any] = {"relation": "knows", "valid_from": day(0), "recorded_at": day(0), **fields}
    return Edge(id=edge_id(n), scope=scope, source_id=entity_id(source), target_id=entity_id(target), **given)


def episode(n: int, scope: Scope = HOME, **fields: Any) -> Episode:
    """Return episode n, a message of day 0 where `fields` don't say otherwise."""
    given: dict[str, Any] = {"text": f"Text {n}", "occurred_at": day(0), "recorded_at": day(0), **fields}
    return Episode(id=episode_id(n), scope=scope, **given)


def put_entities(store: GraphBackend, *entities: Entity) -> None:
    """Write entities of one scope, each with its canonical name as an alias."""
    aliases = (Alias(alias=e.canonical_name, entity_type=e.entity_type, entity_id=e.id) for e in entities)
    store.write(entities[0].scope, Changes(entities=entities, aliases=tuple(aliases)))


def put_edges(store: GraphBackend, *edges: Edge) -> None:
    """Write edges of one scope."""
    store.write(edges[0].scope, Changes(edges=edges))


def put_graph(store: GraphBackend, *edges: Edge) -> None:
    """Write edges of one scope and, plainly, the entities that are their ends."""
    scope = edges[0].scope
    numbers = sorted({int(end[:8], 16) for e in edges for end in (e.source_id, e.target_id)})
    put_entities(store, *(entity(n, scope) for n in numbers))
    put_edges(store, *edges)


def put_episodes(store: GraphBackend, *numbers: int, scope: Scope = HOME) -> None:
    """Store plain episodes with these numbers."""
    store.add_episodes(scope, [episode(n, scope) for n in numbers])


def ids(rows: Sequence[Entity | Edge | Episode]) -> list[str]:
    """Return the ids of rows, in their order."""
    return [row.id for row in rows]


def edge_numbers(rows: Sequence[Edge]) -> list[int]:
    """Return n of each edge, in their order."""
    return [int(row.id[:8], 16) for row in rows]


def entity_numbers(rows: Sequence[Entity]) -> list[int]:
    """Return n of each entity, in their order."""
    return [int(row.id[:8], 16) for row in rows]


def episode_numbers(rows: Sequence[Episode]) -> list[int]:
    """Return n of each episode, in their order."""
    return [int(row.id[:8], 16) for row in rows]
