"""Walks over the facts of a memory for a caller: around an entity, and between two."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.adapters.mcp.tools import Caller
from graphmem.results import Fact
from graphmem.text.normalize import canonical

_MOST_FACTS = 1000  # facts of an entity that are looked at
_MOST_VISITED = 200  # entities whose facts a search for a path or for neighbors reads


async def facts_of(caller: Caller, name: str, as_of: str | None, limit: int = _MOST_FACTS) -> tuple[Fact, ...]:
    """Return the facts of an entity, by its name or id, newest first."""
    return await caller.memory.afacts(name, as_of=as_of, limit=limit, scopes=caller.access.scopes)


async def neighborhood(caller: Caller, name: str, hops: int, as_of: str | None, limit: int) -> list[Fact]:
    """Return the facts within some hops of an entity, the nearest first."""
    found: dict[str, Fact] = {}
    frontier, visited = [name], {name}
    for _ in range(hops):
        following: list[str] = []
        for each in frontier:
            facts = await facts_of(caller, each, as_of)
            found.update({fact.id: fact for fact in facts if fact.id not in found})
            following += [i for fact in facts for i in (fact.source_id, fact.target_id)]
            if len(found) >= limit:
                return list(found.values())
        frontier = [i for i in dict.fromkeys(following) if i not in visited][: _MOST_VISITED - len(visited)]
        visited.update(frontier)
    return list(found.values())


async def shortest_path(caller: Caller, name: str, target: str, hops: int, as_of: str | None) -> list[Fact]:
    """Return the facts of a shortest path between two entities; empty if there is none within the hops.

    Each hop goes on from the end with fewer entities to go on from, and so seldom reads all neighbors of a hub.
    """
    begin, end = [{i: list[Fact]() for i in _ids_of(n, await facts_of(caller, n, as_of))} for n in (name, target)]
    if not begin.keys().isdisjoint(end):
        return []
    near, far, visited = (begin, list(begin)), (end, list(end)), 0
    for _ in range(hops):
        near, far = sorted((near, far), key=lambda side: len(side[1]))
        reached, following = near[0], list[str]()
        frontier = near[1][: _MOST_VISITED - visited]
        visited += len(frontier)
        for each in frontier:
            for fact in await facts_of(caller, each, as_of):
                other = fact.target_id if fact.source_id == each else fact.source_id
                if other not in reached:
                    reached[other] = [*reached[each], fact]
                    following.append(other)
                if other in far[0]:
                    return [*begin[other], *reversed(end[other])]
        near = reached, following
    return []


def _ids_of(name: str, facts: Sequence[Fact]) -> set[str]:
    """Return the ids of the entities with a name, given their facts; the name may be an alias or an id."""
    ends = [((fact.source_id, fact.source), (fact.target_id, fact.target)) for fact in facts]
    exact = {i for pair in ends for i, called in pair if i == name or canonical(called) == canonical(name)}
    if exact or not ends:
        return exact
    common = {i for i, _ in ends[0]}
    for pair in ends:
        common &= {i for i, _ in pair}
    return common
