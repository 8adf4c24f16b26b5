"""Upkeep: search index, merge ledger, states of jobs, decay of retrieval counts, idle entities, erasure of a scope."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    ForeignData,
    IndexCursor,
    IndexEntry,
    IndexKind,
    IndexState,
    IndexStatus,
    JobState,
    Merge,
    MergeQuery,
    Scope,
    decayed,
    index_entry,
)
from graphmem.protocols import IndexStore, MergeStore, UpkeepStore, require_no_cursor
from graphmem_neo4j.checked_rows import node_rows
from graphmem_neo4j.connection import Neo4jRole, Transaction
from graphmem_neo4j.graph import moment_values
from graphmem_neo4j.rows import (
    ENTITY_PROPERTIES,
    OUR_LABELS,
    expressions_of,
    ids_of,
    keys_of,
    moment_or_none,
    type_labels,
)

_UNINDEXED = {"episode": "unindexed_episodes", "fact": "unindexed_facts", "entity": "unindexed_entities"}


class Neo4jIndex(Neo4jRole, IndexStore):
    """The index entries of each scope."""

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        return _state_of(self._database.read("index_state", [scope], scope=scope.key))

    def index_status(self, cursors: Sequence[IndexCursor]) -> list[IndexStatus]:
        """Return the index status of each scope, read in one round trip."""
        asked = [[cursor.scope.key, cursor.episode, cursor.fact, cursor.position] for cursor in cursors]
        rows = self._database.read("index_status", [cursor.scope for cursor in cursors], cursors=asked)
        found = {key: IndexStatus(IndexState(model, generation), *news) for key, model, generation, *news in rows}
        return [found[cursor.scope.key] for cursor in cursors]

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries after a position."""
        name = "read_index" if kind is None else "read_index_of_kind"
        records = self._database.read(name, [scope], scope=scope.key, kind=kind, after=after, limit=limit)
        return [index_entry(row) for rows in records for row in rows]

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        wanted = list(dict.fromkeys(keys))
        rows = self._database.read("find_index", [scope], scope=scope.key, kind=kind, keys=wanted)
        return [index_entry(row) for row in rows]

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        if kind == "name":
            return []
        return self._database.read(_UNINDEXED[kind], [scope], scope=scope.key, after=after, limit=limit)

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model; return the number of removed entries."""

        def work(transaction: Transaction) -> int:
            transaction.lock([scope])
            return transaction.run("reset_index", scope=scope.key)[0]

        return self._database.write(work)


class IndexPlan:
    """The index entries of a write, checked before anything is written."""

    def __init__(self, scope: Scope, entries: Sequence[IndexEntry]) -> None:
        self._scope = scope
        self._entries = list({(entry.kind, entry.key): entry for entry in entries}.values())
        self._model: str | None = None

    def validate(self, transaction: Transaction, written: frozenset[str]) -> None:
        """Raise for entries of rows that aren't in the scope, and for another model than that of the index.

        Parameters
        ----------
        transaction
            The transaction to read in.
        written
            Ids of the rows that the same write stores.
        """
        if not self._entries:
            return
        nodes = [e.key for e in self._entries if e.kind in ("episode", "entity") and e.key not in written]
        edges = [e.key for e in self._entries if e.kind == "fact" and e.key not in written]
        named = transaction.run("named_rows", nodes=nodes, ids=edges)
        there = {row_id for _, row_id, held_by, _ in named if held_by == self._scope.key}
        for entry in self._entries:
            if entry.kind != "name" and entry.key not in there and entry.key not in written:
                raise InvalidInput(f"{entry.kind} {entry.key} is not in scope {self._scope}")
        built = _state_of(transaction.run("index_state", scope=self._scope.key)).model
        for entry in self._entries:
            if not entry.complete or entry.model == built:
                continue
            if built is not None:
                raise InvalidInput(f"index of scope {self._scope}: built with {built!r}, not with {entry.model!r}")
            built = entry.model
        self._model = built

    def run(self, transaction: Transaction) -> None:
        """Write the rows."""
        if self._entries:
            rows = [[e.kind, e.key, e.model, e.vectors, e.pieces, e.detail, e.complete] for e in self._entries]
            transaction.run("put_index", scope=self._scope.key, rows=rows, model=self._model)


def _state_of(rows: Sequence[Any]) -> IndexState:
    return IndexState(*rows[0]) if rows else IndexState()


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
        return [_merge_of(row) for row in rows]

    def move_foreign(self, merge: Merge) -> ForeignData | None:
        """Move relationships, labels and properties of others to the kept entity."""
        ids, scope = [merge.merged.id, merge.kept_id], merge.scope.key

        def work(transaction: Transaction) -> ForeignData | None:
            transaction.lock([merge.scope])
            rows = {row[0]: row[1:] for row in transaction.run("foreign_of_entities", scope=scope, ids=ids)}
            (labels, names, relationships), (own_labels, own_names, _) = (rows[row_id] for row_id in ids)
            labels = sorted({*labels} - {*OUR_LABELS, *type_labels(merge.merged.entity_type)})
            names = sorted({*names} - ENTITY_PROPERTIES)
            if not (labels or names or relationships):
                return None
            values = {"merge": merge.id, "merged": merge.merged.id, "kept": merge.kept_id, "scope": scope}
            transaction.run("move_foreign", **values, labels=labels, properties=names)
            return ForeignData(
                relationships=relationships,
                labels=tuple(label for label in labels if label not in own_labels),
                properties=tuple(name for name in names if name not in own_names),
                unmoved=tuple(name for name in names if name in own_names),
            )

        return self._database.write(work)

    def restore_foreign(self, merge: Merge) -> None:
        """Move relationships, labels and properties of others back to the merged entity."""
        moved = merge.foreign or ForeignData()
        values = {"merge": merge.id, "merged": merge.merged.id, "kept": merge.kept_id}

        def work(transaction: Transaction) -> None:
            transaction.lock([merge.scope])
            transaction.run("restore_foreign", **values, labels=moved.labels, properties=moved.properties)

        self._database.write(work)

    def count_foreign(self, scope: Scope, ids: Sequence[str]) -> int:
        """Return the number of relationships of others at the nodes of entities and episodes."""
        return self._database.read("count_foreign", [scope], scope=scope.key, ids=ids_of(ids))[0] if ids else 0


_merge_of = node_rows("Merge", "id body", lambda row: Merge.model_validate_json(row[1]))


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
                counts = {edge_id: decayed_count(*rest) for edge_id, *rest in page}
                transaction.run("set_counts", ids=list(counts), counts=counts)
            return len(page), max(row[0] for row in page) if len(page) == _DECAY_PAGE else ""

        return self._database.write(work)

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities last seen and recorded by `before`, without visible facts or ones expired later."""
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
