"""Refresh of a scope's communities, and incremental assignment of new entities in between."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice

from graphmem.communities.detection import best_algorithm, chunk_of, detected_by_store, partition_of
from graphmem.communities.graph import CommunityFacts, read_facts
from graphmem.communities.planning import (
    REFUSED,
    Before,
    Plan,
    Planner,
    Redact,
    Row,
    described_by,
    match_levels,
    materials,
    refused,
)
from graphmem.communities.results import Refreshed, State, read_present, read_state
from graphmem.communities.summaries import AT_ONCE, Description, Material, Summaries
from graphmem.errors import ExtractionFailed, InvalidInput
from graphmem.llm.chat import NoReply
from graphmem.models import (
    STATED_KINDS,
    Changes,
    Community,
    CommunityAlgorithm,
    CommunityChoice,
    CommunityQuery,
    EdgeQuery,
    JobState,
    Membership,
    MembershipQuery,
    Scope,
    first_id_at,
    utc_now,
)
from graphmem.models.base import TICK
from graphmem.protocols import GraphBackend, Redactor
from graphmem.settings import Settings
from graphmem.text.normalize import canonical

# Assignment of new entities -----------------------------------------------------------------------


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


# Refresh ------------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

_TRIES = 3  # optimistic attempts before a refresh blocks other writers
_IN_FLIGHT = timedelta(minutes=5)  # maximum time between the creation of a fact's id and its commit
_ROWS = 5_000  # rows per batch
_ASKED = 2 * AT_ONCE  # communities per batch of model summaries


class CommunityRefresh:
    """Detection of communities and writing of the changes.

    Parameters
    ----------
    backend
        The store of the graph.
    settings
        `lpa_edge_chunk_size`, and the default algorithm.
    redactor
        Removes personal data from summaries; None disables redaction.
    summaries
        Summaries by a language model; None uses summaries composed from facts.
    turn
        Lock held from reading to writing, shared with other writers of communities in this process.
    """

    def __init__(
        self,
        backend: GraphBackend,
        settings: Settings,
        redactor: Redactor | None = None,
        summaries: Summaries | None = None,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._redactor = redactor
        self._summaries = summaries
        self._turn = turn or nullcontext()
        self._failed: set[str] = set()  # ids of communities that the model failed to describe last

    def refresh(
        self,
        scope: Scope,
        algorithm: CommunityAlgorithm | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Refreshed:
        """Detect the communities of a scope, and write the changes in one transaction.

        A language model, if configured, then describes communities that changed since its last description. Each batch
        of descriptions is written separately; failures, and the rest once `stopping` returns True, are left for the
        next refresh.

        If concurrent writers change the communities during several attempts, the last attempt runs in a transaction
        that blocks them.
        """
        begun = time.perf_counter()
        with self._turn:
            plan = self._write_plan(scope, algorithm or self._settings.community_algorithm)
        summarized, failed = self._summarized(scope, plan, stopping)
        result = _result(plan, time.perf_counter() - begun)
        return result.changed(summarized=summarized, failed=failed)

    def _write_plan(self, scope: Scope, algorithm: CommunityChoice) -> Plan:
        """Plan and write the changes, retrying on concurrent changes; return the written plan."""
        for _ in range(_TRIES):
            plan, state = self._plan(scope, algorithm)
            if plan.changes_nothing or self._written(scope, plan, state):
                return plan

        def alone() -> Plan:
            plan, _ = self._plan(scope, algorithm)
            self._write(scope, plan)
            return plan

        return self._backend.atomic(alone)

    def _plan(self, scope: Scope, algorithm: CommunityChoice) -> tuple[Plan, State]:
        begun, chunk = utc_now(), chunk_of(self._settings)
        present = read_present(self._backend, scope, chunk)
        chosen = best_algorithm(self._backend) if algorithm == "auto" else algorithm
        found, refused = detected_by_store(self._backend, scope, chosen, present.keys.get(0))
        facts = read_facts(self._backend, scope, chunk)
        first = Before.of(facts.node_ids, present.keys.get(0, {}))
        if found is None and algorithm == "auto":
            chosen = best_algorithm()
        partition = found or partition_of(facts, chosen, first)
        partition = replace(partition, algorithm=partition.algorithm or chosen)
        if refused:
            partition = replace(partition, fallback="; ".join(filter(None, (refused, partition.fallback))))
        known = facts.between(partition.node_ids)
        grouped = [CommunityFacts(known, labels) for labels in partition.levels]
        depth = max(len(partition.levels), 1 + max(present.keys, default=-1))
        before = {level: Before.of(partition.node_ids, present.keys.get(level, {})) for level in range(1, depth)}
        before[0] = first if known is facts else Before.of(partition.node_ids, present.keys.get(0, {}))
        levels = match_levels(partition, before)
        by_model = self._summaries is not None
        planner = Planner(self._backend, scope, present, begun, models_write=by_model, redact=self._redact())
        return planner.plan(partition, levels, grouped, before), present.state

    def _written(self, scope: Scope, plan: Plan, state: State) -> bool:
        """Write the plan in one transaction unless the communities changed since they were read; return whether."""

        def work() -> bool:
            if read_state(self._backend, scope) != state:
                return False
            self._write(scope, plan)
            return True

        try:
            return self._backend.atomic(work)
        except InvalidInput as error:  # an entity of the plan was removed
            _log.info("scope %s: community detection is repeated: %s", scope, error)
            return False

    def _write(self, scope: Scope, plan: Plan) -> None:
        # facts before this cursor were part of the graph; assignment continues after it
        seen = JobState(ASSIGNMENT, plan.moment, cursor=first_id_at((plan.begun - _IN_FLIGHT).timestamp()))
        self._backend.write(scope, Changes(job_states=(seen,)))
        for start in range(0, len(plan.communities), _ROWS):
            some = tuple(plan.communities[start : start + _ROWS])
            self._backend.write(scope, Changes(communities=some))
        for start in range(0, len(plan.memberships), _ROWS):
            some_members: tuple[Membership, ...] = tuple(plan.memberships[start : start + _ROWS])
            self._backend.write(scope, Changes(memberships=some_members))

    def _summarized(self, scope: Scope, plan: Plan, stopping: Callable[[], bool]) -> tuple[int, int]:
        """Summarize communities by the model; return the numbers of successes and failures.

        The largest communities come first, those that failed before last.
        """
        if self._summaries is None:
            return 0, 0
        wanted = [row for row in plan.rows if row.wants_summary]
        wanted.sort(key=lambda r: (r.community.id in self._failed, -len(plan.members(r)), r.community.id))
        done = 0
        for start in range(0, len(wanted), _ASKED):
            if stopping():
                break
            some = wanted[start : start + _ASKED]
            since = self._backend.erasure_token(scope)
            groups = [(row.level, row.group.number) for row in some]
            texts = materials(self._backend, scope, plan.partition, plan.grouped, groups)
            replies = self._summaries.describe(texts)
            done += self._write_texts(scope, self._described(some, texts, replies), since)
            if all(isinstance(reply, NoReply) for reply in replies):
                break  # the model is unreachable: each further request would time out
        return done, len(wanted) - done

    def _described(
        self, rows: Sequence[Row], texts: Sequence[Material], replies: Sequence[Description | ExtractionFailed]
    ) -> list[Community]:
        described: list[Community] = []
        for row, material, found in zip(rows, texts, replies, strict=True):
            if isinstance(found, ExtractionFailed):
                _log.warning("community %s has no summary by the model yet: %s", row.community.id, found)
                if isinstance(found, NoReply):
                    self._failed.add(row.community.id)
                else:
                    described.append(refused(row))
                continue
            self._failed.discard(row.community.id)
            described.append(described_by(row, found, material, self._redact()))
        return described

    def _write_texts(self, scope: Scope, described: Sequence[Community], since: str) -> int:
        """Write the texts of communities unchanged since they were read; return the number of new texts."""
        expected = {community.id: community for community in described}

        def work() -> int:
            if self._backend.erasure_token(scope) != since:
                return 0
            query = CommunityQuery(ids=tuple(expected))
            present = self._backend.find_communities([scope], query, limit=len(expected))
            now = [expected[c.id] for c in present if c.updated_at == expected[c.id].updated_at]
            moment = utc_now()
            rows = tuple(c.changed(updated_at=max(moment, c.updated_at + TICK)) for c in now)
            self._backend.write(scope, Changes(communities=rows))
            return sum(REFUSED not in row.fingerprint for row in rows)

        return self._backend.atomic(work) if described else 0

    def _redact(self) -> Redact:
        redactor = self._redactor

        def redact(text: str, names: Sequence[str]) -> str:
            return text if redactor is None else redactor.redact(text, {canonical(name) for name in names})

        return redact


def _result(plan: Plan, seconds: float) -> Refreshed:
    assert plan.partition.algorithm is not None
    return Refreshed(
        algorithm=plan.partition.algorithm,
        fallback=plan.partition.fallback,
        communities=len(plan.rows),
        levels=len(plan.partition.levels) if plan.rows else 0,
        members=len(plan.partition.node_ids),
        created=plan.created,
        updated=len(plan.communities) - plan.created - plan.ended,
        ended=plan.ended,
        moved=plan.moved,
        modularity=plan.partition.modularity,
        seconds=seconds,
    )
