"""Factories of rows for tests, with fixed values, in scopes and with ids that are unique to a test.

A store may serve many tests, also of several processes at the same time. Each test has a `World` with unique scopes and
row ids; everything else is the same in every run.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.models import (
    Alias,
    Changes,
    Community,
    Edge,
    Entity,
    Episode,
    Membership,
    Merge,
    RecallTrace,
    Scalar,
    Scope,
    TracedEpisode,
    TracedFact,
    TracedSeed,
)
from graphmem.protocols import GraphBackend

_START = datetime(2024, 1, 1, 0, 0, 0, 123457, tzinfo=UTC)  # odd microseconds: a store may not round them
FUTURE = datetime(2200, 1, 1, tzinfo=UTC)

SCALARS: Mapping[str, Scalar] = {
    "text": "ü",
    "empty": "",
    "int": -(2**40),
    "int beyond a double": 2**53 + 1,
    "int of 84 bits": 10**25,
    "float": 0.1,
    "float without a fraction": 2.0,
    "negative zero": -0.0,
    "large float": 1e300,
    "true": True,
    "false": False,
    "none": None,
}
"""Values of every type that properties and metadata may have, with those that an encoding may change."""


def reprs(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Return values as text that differs for 2 and 2.0, and for 0.0 and -0.0."""
    return {key: repr(value) for key, value in values.items()}


def day(n: float) -> datetime:
    """Return the n-th day of the tests' calendar (2024), an aware UTC datetime."""
    return _START + timedelta(days=n)


class World:
    """Scopes and row ids of one test, distinguished from those of others by a random tag.

    Attributes
    ----------
    tag
        Twenty hexadecimal digits.
    scopes
        Scopes used so far, in that order; they have to be cleared afterwards.
    """

    def __init__(self) -> None:
        self.tag = secrets.token_hex(10)
        self.scopes: list[Scope] = []

    def scope(self, domain: str, project_id: str | None = None) -> Scope:
        """Return a scope of this world; scopes of one world sort like their domains."""
        scope = Scope(f"{self.tag} {domain}", project_id)
        if scope not in self.scopes:
            self.scopes.append(scope)
        return scope

    def id(self, n: int, kind: str) -> str:
        """Return the n-th id of a kind (two hexadecimal digits), in the format of a UUIDv7 and ordered by n."""
        tag = self.tag
        return f"{n:08x}-{tag[:4]}-7{tag[4:7]}-8{tag[7:10]}-{tag[10:]}{kind}"


_worlds: list[World] = []  # shared by all threads, because tests start threads


@contextmanager
def new_world() -> Generator[World, None, None]:
    """Run a block with new scopes and row ids; worlds nest, and the innermost one is used."""
    own = World()
    _worlds.append(own)
    try:
        yield own
    finally:
        _worlds.remove(own)


def world() -> World:
    """Return the world of the running test; raise RuntimeError outside of one."""
    if not _worlds:
        raise RuntimeError("scopes and row ids belong to a test: create them while it runs, not during collection")
    return _worlds[-1]


def scope_of(domain: str, project_id: str | None = None) -> Scope:
    """Return a scope of the running test."""
    return world().scope(domain, project_id)


def home() -> Scope:
    """Return the main scope of the tests."""
    return scope_of("home")


def project() -> Scope:
    """Return a project in the domain of `home`."""
    return scope_of("home", "project")


def elsewhere() -> Scope:
    """Return a scope of another domain."""
    return scope_of("elsewhere")


def all_scopes() -> tuple[Scope, Scope, Scope]:
    """Return `home`, `project` and `elsewhere`."""
    return home(), project(), elsewhere()


def claimer(name: str) -> str:
    """Return an owner of claims that is unique to the running test, because claims span the whole store."""
    return f"{name} {world().tag}"


def entity_id(n: int) -> str:
    """Return the id of entity n."""
    return world().id(n, "e1")


def edge_id(n: int) -> str:
    """Return the id of edge n."""
    return world().id(n, "fa")


def episode_id(n: int) -> str:
    """Return the id of episode n."""
    return world().id(n, "ee")


def community_id(n: int) -> str:
    """Return the id of community n."""
    return world().id(n, "c0")


def recall_id(n: int) -> str:
    """Return the id of recall trace n."""
    return world().id(n, "ca")


def number_of(row_id: str) -> int:
    """Return the n of an id that a `World` made."""
    return int(row_id[:8], 16)


def entity(n: int, scope: Scope | None = None, **fields: Any) -> Entity:
    """Return entity n, named "Entity n" unless `fields` override it."""
    name = fields.setdefault("name", f"Entity {n}")
    given: dict[str, Any] = {
        "canonical_name": name.lower(),
        "entity_type": "person",
        "first_seen_at": day(0),
        "last_seen_at": day(0),
        "recorded_at": day(0),
        **fields,
    }
    return Entity(id=entity_id(n), scope=scope or home(), **given)


def edge(n: int, source: int, target: int, scope: Scope | None = None, **fields: Any) -> Edge:
    """Return edge n from entity `source` to entity `target`, "knows" since day 0 unless `fields` override it."""
    given: dict[str, Any] = {"relation": "knows", "valid_from": day(0), "recorded_at": day(0), **fields}
    return Edge(id=edge_id(n), scope=scope or home(), source_id=entity_id(source), target_id=entity_id(target), **given)


def episode(n: int, scope: Scope | None = None, **fields: Any) -> Episode:
    """Return episode n, a message of day 0 unless `fields` override it."""
    given: dict[str, Any] = {"text": f"Text {n}", "occurred_at": day(0), "recorded_at": day(0), **fields}
    return Episode(id=episode_id(n), scope=scope or home(), **given)


def community(n: int, scope: Scope | None = None, **fields: Any) -> Community:
    """Return community n, of level 0 since day 0 unless `fields` override it."""
    given: dict[str, Any] = {"created_at": day(0), "updated_at": day(0), **fields}
    return Community(id=community_id(n), scope=scope or home(), **given)


def membership(of: int, in_: int, since: float = 0, until: float | None = None) -> Membership:
    """Return a membership of entity `of` in community `in_` from one day to another."""
    ends = None if until is None else day(until)
    return Membership(community_id=community_id(in_), entity_id=entity_id(of), since=day(since), until=ends)


def recall_trace(
    n: int,
    scope: Scope | None = None,
    *,
    seeds: Sequence[int] = (),
    facts: Sequence[tuple[int, int]] = (),
    **fields: Any,
) -> RecallTrace:
    """Return recall trace n: entities as seeds, and facts as (edge, the entity at which it was found)."""
    given: dict[str, Any] = {"query": f"Question {n}?", "strategy": "bfs", "asked_at": day(0), **fields}
    return RecallTrace(
        id=recall_id(n),
        scope=scope or home(),
        seeds=tuple(TracedSeed(entity_id=entity_id(seed), score=1 / i) for i, seed in enumerate(seeds, 1)),
        facts=tuple(
            TracedFact(edge_id=edge_id(e), entity_id=entity_id(at), score=1 / i, hop=0, channel="graph", rank=i)
            for i, (e, at) in enumerate(facts, 1)
        ),
        **given,
    )


def traced_episode(n: int, **fields: Any) -> TracedEpisode:
    """Return the trace entry of episode n."""
    given: dict[str, Any] = {"score": 0.5, "channel": "lexical", **fields}
    return TracedEpisode(episode_id=episode_id(n), **given)


def put_entities(store: GraphBackend, *entities: Entity) -> None:
    """Write entities of one scope, each with its canonical name as an alias."""
    aliases = (Alias(alias=e.canonical_name, entity_type=e.entity_type, entity_id=e.id) for e in entities)
    store.write(entities[0].scope, Changes(entities=entities, aliases=tuple(aliases)))


def put_edges(store: GraphBackend, *edges: Edge) -> None:
    """Write edges of one scope."""
    store.write(edges[0].scope, Changes(edges=edges))


def put_graph(store: GraphBackend, *edges: Edge) -> None:
    """Write edges of one scope and plain entities for their ends."""
    scope = edges[0].scope
    numbers = sorted({number_of(end) for e in edges for end in (e.source_id, e.target_id)})
    put_entities(store, *(entity(n, scope) for n in numbers))
    put_edges(store, *edges)


def put_episodes(store: GraphBackend, *numbers: int, scope: Scope | None = None) -> None:
    """Store plain episodes with these numbers."""
    scope = scope or home()
    store.add_episodes(scope, [episode(n, scope) for n in numbers])


def put_communities(store: GraphBackend, *communities: Community, members: Sequence[Membership] = ()) -> None:
    """Write communities of one scope with their members."""
    store.write(communities[0].scope, Changes(communities=communities, memberships=tuple(members)))


def put_recalls(store: GraphBackend, *traces: RecallTrace) -> None:
    """Write recall traces of one scope."""
    store.write(traces[0].scope, Changes(recalls=traces))


def numbers_of(rows: Sequence[Entity | Edge | Episode | Community | RecallTrace | Merge]) -> list[int]:
    """Return the numbers in the ids of rows, in their order."""
    return [number_of(row.id) for row in rows]


def ids(rows: Sequence[Entity | Edge | Episode | Community | RecallTrace]) -> list[str]:
    """Return the ids of rows, in their order."""
    return [row.id for row in rows]


def member_numbers(rows: Sequence[Membership]) -> list[tuple[int, int]]:
    """Return the numbers (entity, community) of each membership, in their order."""
    return [(number_of(row.entity_id), number_of(row.community_id)) for row in rows]
