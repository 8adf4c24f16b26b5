"""Refresh of a scope's communities: detection, and the changes in the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta

from graphmem.communities.assignment import ASSIGNMENT
from graphmem.communities.detection import best_algorithm, chunk_of, detected_by_store, partition_of
from graphmem.communities.graph import CommunityFacts, read_facts
from graphmem.communities.matching import Before, match_levels
from graphmem.communities.planning import (
    REFUSED,
    Plan,
    Planner,
    Redact,
    Row,
    described_by,
    materials,
    refused,
)
from graphmem.communities.results import Refreshed, State, read_present, read_state
from graphmem.communities.summaries import AT_ONCE, Description, Material, Summaries
from graphmem.errors import ExtractionFailed, InvalidInput
from graphmem.llm.chat import NoReply
from graphmem.models import (
    Changes,
    Community,
    CommunityAlgorithm,
    CommunityChoice,
    CommunityQuery,
    JobState,
    Membership,
    Scope,
    first_id_at,
    utc_now,
)
from graphmem.models.base import TICK
from graphmem.protocols import GraphBackend, Redactor
from graphmem.settings import Settings
from graphmem.text.normalize import canonical

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
