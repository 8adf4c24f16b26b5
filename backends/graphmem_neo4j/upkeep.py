"""Upkeep: the merge ledger, states of jobs, decay of retrieval counts, idle entities, and erasure of a scope."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from graphmem.errors import Conflict
from graphmem.models import JobState, Merge, MergeQuery, Scope, decayed
from graphmem.protocols import MergeStore, UpkeepStore, require_no_cursor
from graphmem_neo4j.connection import Neo4jRole, Transaction
from graphmem_neo4j.edges import moment_values
from graphmem_neo4j.rows import expressions_of, ids_of, keys_of, moment_or_none

# Merges -----------------------------------------------------------------------------------------


class Neo4jMerges(Neo4jRole, MergeStore):
    """The merge ledger."""

    def find_merges(
        self,
        scopes: Sequence[Scope],
        query: MergeQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Merge]:
        """Return a page of the merges that match."""
        require_no_cursor(after, newest_first=newest_first)
        rows = self._database.read(
            _way_in(query, newest_first=newest_first),
            scopes,
            scopes=keys_of(scopes),
            ids=None if query.ids is None else ids_of(query.ids),
            entities=None if query.entity_ids is None else ids_of(query.entity_ids),
            undone=query.undone,
            after=after,
            limit=limit,
            newest=newest_first,
        )
        return [Merge.model_validate_json(body) for body in rows]


def _way_in(query: MergeQuery, *, newest_first: bool) -> str:
    if query.entity_ids is not None:
        return "merges_of_entities"
    if query.ids is not None:
        return "merges_by_id"
    return "newest_merges_of_scopes" if newest_first else "merges_of_scopes"


class MergePlan:
    """The merges of a write, checked before anything is written."""

    def __init__(self, scope: Scope, merges: Sequence[Merge]) -> None:
        self._scope = scope
        self._merges = {merge.id: merge for merge in merges}

    def validate(self, transaction: Transaction) -> None:
        """Raise if an id is taken."""
        if not self._merges:
            return
        for merge_id, scope, is_merge in transaction.run("merge_ids", ids=list(self._merges)):
            if scope != self._scope.key or not is_merge:
                raise Conflict(f"merge id {merge_id} is taken")  # says nothing about the other scope

    def run(self, transaction: Transaction) -> None:
        """Write the rows."""
        if self._merges:
            transaction.run("put_merges", rows=[_merge_row(merge) for merge in self._merges.values()])


def _merge_row(merge: Merge) -> dict[str, Any]:
    """Return a merge as a row of the query ``put_merges``; people can read names, method and time next to the body."""
    return {
        "id": merge.id,
        "scope": merge.scope.key,
        "domain": merge.scope.domain,
        "project": merge.scope.project_id,
        "kept_id": merge.kept_id,
        "kept": merge.kept.name,
        "merged_id": merge.merged.id,
        "merged": merge.merged.name,
        "method": merge.method,
        "score": merge.score,
        "at": merge.at.isoformat(),
        "undone_at": None if merge.undone_at is None else merge.undone_at.isoformat(),
        "undone": merge.undone_at is not None,
        "body": merge.model_dump_json(),
    }


# Upkeep -----------------------------------------------------------------------------------------

_DECAY_PAGE = 1000
_CLEARED = 10_000  # rows in one transaction: the server keeps the changes of a transaction in memory
# facts before their entities, and index entries before their rows: the remaining rows are consistent at any time
_CLEAR = (
    "clear_recalls",
    "clear_communities",
    "clear_merges",
    "clear_index",
    "clear_edges",
    "clear_entities",
    "clear_episodes",
    "clear_job_states",
)


class Neo4jUpkeep(Neo4jRole, UpkeepStore):
    """States of jobs, decay, idle entities and erasure."""

    def find_job_states(self, scope: Scope) -> list[JobState]:
        """Return the job states of a scope, ordered by job."""
        return [
            JobState(job, moment_or_none(done), episodes, moment_or_none(begun), cursor)
            for job, done, episodes, begun, cursor in self._database.read("find_job_states", [scope], scope=scope.key)
        ]

    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts."""

        def decayed_count(count: float, retrieved: str | None) -> float:
            return decayed(count, moment_or_none(retrieved), rate=rate, idle_since=idle_since, since=since, now=now)

        def work(transaction: Transaction) -> tuple[int, str]:
            page = transaction.run_locked("retrieved_edges", [scope], scope=scope.key, after=after, limit=_DECAY_PAGE)
            if page:
                transaction.run("set_counts", rows=[[edge_id, decayed_count(*rest)] for edge_id, *rest in page])
            return len(page), max(row[0] for row in page) if len(page) == _DECAY_PAGE else ""

        return self._database.write(work)

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities last seen and recorded by `before` that have no visible facts."""
        values = {"before": _iso(before), "limit": limit, **moment_values(None, now)}
        return self._database.read("find_idle", [scope], scope=scope.key, **values)

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities, those with the fewest active facts first, then those last seen earliest."""
        return self._database.read("find_least_connected", [scope], scope=scope.key, limit=limit)

    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts stated by these episodes."""
        expressions = expressions_of(ids_of(episode_ids))
        return self._database.read("edges_of_episodes", [scope], scope=scope.key, expressions=expressions)

    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope, and last its node, in as many transactions as needed."""
        for name in _CLEAR:
            while self._clear_some(scope, name):
                pass

        def work(transaction: Transaction) -> None:
            transaction.lock([scope])
            transaction.run("clear_scope", scope=scope.key)

        self._database.write(work)

    def _clear_some(self, scope: Scope, name: str) -> bool:
        def work(transaction: Transaction) -> bool:
            transaction.lock([scope])
            return transaction.run(name, scope=scope.key, limit=_CLEARED) == [_CLEARED]

        return self._database.write(work)

    def scrub(self) -> bool:
        """Do nothing: files and logs belong to the server, which overwrites them in its own time."""
        return True


def put_job_states(transaction: Transaction, scope: Scope, job_states: Sequence[JobState]) -> None:
    """Insert job states, or replace them by job, in a locked scope."""
    rows = [[m.job, _iso(m.done_at), m.episodes, _iso(m.begun_at), m.cursor] for m in job_states]
    if rows:
        transaction.run("put_job_states", scope=scope.key, rows=rows)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
