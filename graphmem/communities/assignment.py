"""Assignment of new entities to communities between two refreshes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from graphmem.models import (
    STATED_KINDS,
    Changes,
    Community,
    CommunityQuery,
    EdgeQuery,
    JobState,
    Membership,
    MembershipQuery,
    Scope,
    utc_now,
)
from graphmem.models.base import TICK
from graphmem.protocols import GraphBackend

ASSIGNMENT = "community-assignment"
"""Name of the job state; its cursor is the id of the last processed fact."""

_FACTS = 500  # new facts per step
_NEIGHBORS = 1_000  # rows per page
_READ_TOGETHER = 100  # entities whose neighbors are read together
_FURTHER = 500  # neighbors of joining entities that are added to a step

Joined = dict[str, list[str]]
"""Entity id → ids of the communities that it joins, from level 0, each nested in the previous one."""


class Assignment:
    """Assigns the ends of new facts without a community to the community of most of their neighbors.

    Ties go to the smallest community id. An entity without an assigned neighbor stays unassigned until it gets one or
    until the next refresh. The progress is a job state in the store.

    Parameters
    ----------
    backend
        The store of the graph.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend

    def step(self, scope: Scope) -> bool:
        """Process the next facts of a scope; return whether none are left."""
        backend = self._backend
        if not backend.find_communities([scope], CommunityQuery(level=0), limit=1):
            return True  # the first refresh creates communities
        state = backend.find_job_state(scope, ASSIGNMENT)
        query = EdgeQuery(kinds=STATED_KINDS, versions="active")
        page = backend.find_edges([scope], query, after=state.cursor, limit=_FACTS)
        if not page:
            return True
        ends = sorted({end for edge in page for end in (edge.source_id, edge.target_id)})
        waiting = self._waiting(scope, ends)
        joined = _Neighborhood(backend, scope).join(waiting) if waiting else {}
        seen = JobState(ASSIGNMENT, utc_now(), state.episodes, cursor=page[-1].id)
        backend.atomic(lambda: self._write(scope, joined, seen))
        return len(page) < _FACTS

    def _waiting(self, scope: Scope, entity_ids: Sequence[str]) -> list[str]:
        """Return the unarchived entities without a community."""
        query = MembershipQuery(entity_ids=tuple(entity_ids), level=0)
        placed = {m.entity_id for m in self._backend.all_memberships([scope], query)}
        found = self._backend.get_entities([scope], [i for i in entity_ids if i not in placed])
        return [i for i in entity_ids if i in found and found[i].archived_at is None]

    def _write(self, scope: Scope, joined: Joined, seen: JobState) -> None:
        """Write the memberships that are still valid; the other entities wait for the next refresh."""
        ids = tuple(dict.fromkeys(i for communities in joined.values() for i in communities))
        query = CommunityQuery(ids=ids)
        present = {c.id: c for c in self._backend.all_communities([scope], query)} if ids else {}
        still = self._waiting(scope, list(joined)) if present else []
        moment = max([utc_now(), *(c.updated_at + TICK for c in present.values())])
        memberships = [
            Membership.trusted(community_id=community_id, entity_id=entity_id, since=moment)
            for entity_id in still
            for community_id in joined[entity_id]
            if community_id in present
        ]
        larger = {m.community_id for m in memberships}
        communities = [c.changed(updated_at=moment) for i, c in present.items() if i in larger]
        changes = Changes(communities=tuple(communities), memberships=tuple(memberships), job_states=(seen,))
        self._backend.write(scope, changes)


@dataclass(slots=True)
class _Neighborhood:
    """Neighbors of entities without a community, and their communities; read for many entities at once."""

    backend: GraphBackend
    scope: Scope
    neighbors: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    homes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    communities: dict[str, Community] = field(default_factory=dict[str, Community])

    def join(self, waiting: Iterable[str]) -> Joined:
        """Return the communities that each entity joins; a joined entity counts for its neighbors too.

        Of a long chain of unassigned entities only a part joins; the rest waits for the next refresh.
        """
        joined: Joined = {}
        queue = deque(waiting)
        further = _FURTHER
        while queue:
            if queue[0] not in self.neighbors:
                self._read([i for i in islice(queue, _READ_TOGETHER) if i not in self.neighbors])
            entity_id = queue.popleft()
            if entity_id in joined:
                continue
            neighbors = self.neighbors[entity_id]
            homes = {i: home for i in neighbors if (home := joined.get(i) or self.homes[i])}
            if chosen := self._chosen(homes):
                joined[entity_id] = chosen
                reached = [i for i in neighbors if i not in homes and i not in joined][:further]
                further -= len(reached)
                queue.extend(reached)
        return joined

    def _read(self, entity_ids: Sequence[str]) -> None:
        """Read the neighbors of entities, and the communities of these."""
        query = EdgeQuery(touching=tuple(entity_ids), kinds=STATED_KINDS, versions="active")
        around: dict[str, set[str]] = {i: set() for i in entity_ids}
        for edge in self.backend.all_edges([self.scope], query, chunk=_NEIGHBORS):
            for one, other in ((edge.source_id, edge.target_id), (edge.target_id, edge.source_id)):
                if one in around:
                    around[one].add(other)
        self.neighbors.update((i, sorted(others)) for i, others in around.items())
        unread = sorted({i for others in around.values() for i in others} - self.homes.keys())
        self.homes.update((i, []) for i in unread)
        for start in range(0, len(unread), _NEIGHBORS):
            members = MembershipQuery(entity_ids=tuple(unread[start : start + _NEIGHBORS]))
            for membership in self.backend.all_memberships([self.scope], members):
                self.homes[membership.entity_id].append(membership.community_id)
        if unknown := {home for i in unread for home in self.homes[i]} - self.communities.keys():
            found = self.backend.all_communities([self.scope], CommunityQuery(ids=tuple(sorted(unknown))))
            self.communities.update((c.id, c) for c in found)

    def _chosen(self, homes: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the community with the most votes on each level, each nested in the previous one."""
        votes = Counter(i for communities in homes.values() for i in communities)
        chosen: list[str] = []
        parent: str | None = None
        while True:
            level = len(chosen)
            candidates = [
                i for i in votes if (c := self.communities.get(i)) and c.level == level and c.parent_id == parent
            ]
            if not candidates:
                return chosen
            parent = min(candidates, key=lambda i: (-votes[i], i))
            chosen.append(parent)
