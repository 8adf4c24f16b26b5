"""Finding the communities of a scope anew: what goes on keeps its id and its name, what is no more ends, dated."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from graphmem.communities.detect import choose_detector, chunk_of
from graphmem.communities.found import Refreshed
from graphmem.communities.inside import Grouped, read_inside
from graphmem.communities.matching import match_levels
from graphmem.communities.planning import Plan, Planner, Redact
from graphmem.communities.present import State, read_present, read_state
from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Changes, CommunityAlgorithm, Membership, Scope
from graphmem.protocols import GraphBackend, Redactor
from graphmem.settings import Settings
from graphmem.text.normalise import canonical

_log = logging.getLogger(__name__)

_TRIES = 5  # in each of which somebody else changed the communities first
_AT_ONCE = 5_000  # rows of a batch


class CommunityRefresh:
    """Finds communities, and writes what has changed.

    Parameters
    ----------
    backend
        Where the graph is.
    settings
        `lpa_edge_chunk_size`, and the algorithm by default.
    redactor
        Takes personal data out of summaries; None leaves them as they are.
    """

    def __init__(self, backend: GraphBackend, settings: Settings, redactor: Redactor | None = None) -> None:
        self._backend = backend
        self._settings = settings
        self._redactor = redactor

    def refresh(self, scope: Scope, algorithm: CommunityAlgorithm | None = None) -> Refreshed:
        """Find the communities of a scope anew, and write what has changed: all of it, or nothing.

        Raises
        ------
        Conflict
            If others changed the communities each time before this could be written.
        """
        begun = time.perf_counter()
        algorithm = algorithm or self._settings.community_algorithm
        for _ in range(_TRIES):
            plan, state = self._plan(scope, algorithm)
            if plan.changes_nothing or self._written(scope, plan, state):
                return _told(plan, algorithm, time.perf_counter() - begun)
        raise Conflict(f"scope {scope}: others changed its communities {_TRIES} times while they were refreshed")

    def _plan(self, scope: Scope, algorithm: CommunityAlgorithm) -> tuple[Plan, State]:
        chunk = chunk_of(self._settings)
        present = read_present(self._backend, scope, chunk)
        detector = choose_detector(self._backend, self._settings)
        partition = detector.detect(scope, algorithm, present.keys(0) or None)
        facts = read_inside(self._backend, scope, partition.node_ids, partition.levels[0], chunk)
        grouped = [Grouped(facts, labels) for labels in partition.levels]
        levels = match_levels(partition, {level: present.keys(level) for level in present.memberships})
        planner = Planner(self._backend, scope, present, models_write=False, redact=self._redact())
        return planner.plan(partition, levels, grouped), present.state

    def _written(self, scope: Scope, plan: Plan, state: State) -> bool:
        """Write in one transaction, unless somebody else changed the communities since they were read."""

        def work() -> bool:
            if read_state(self._backend, scope) != state:
                return False
            for start in range(0, len(plan.communities), _AT_ONCE):
                some = tuple(plan.communities[start : start + _AT_ONCE])
                self._backend.write(scope, Changes(communities=some))
            for start in range(0, len(plan.memberships), _AT_ONCE):
                some_members: tuple[Membership, ...] = tuple(plan.memberships[start : start + _AT_ONCE])
                self._backend.write(scope, Changes(memberships=some_members))
            return True

        try:
            return self._backend.atomic(work)
        except InvalidInput as error:  # an entity that the plan names is gone
            _log.info("scope %s: communities are looked for again: %s", scope, error)
            return False

    def _redact(self) -> Redact:
        redactor = self._redactor

        def redact(text: str, names: Sequence[str]) -> str:
            return text if redactor is None else redactor.redact(text, {canonical(name) for name in names})

        return redact


def _told(plan: Plan, algorithm: CommunityAlgorithm, seconds: float) -> Refreshed:
    return Refreshed(
        algorithm=algorithm,
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
