"""The merge ledger: reading, and the merges and removals of a write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Merge, MergeQuery, Removal, Scope
from graphmem_neo4j.connection import Database, Transaction
from graphmem_neo4j.entities import keys_of
from graphmem_neo4j.rows import ids_of


def find_merges(
    database: Database,
    scopes: Sequence[Scope],
    query: MergeQuery,
    *,
    after: str,
    limit: int,
    newest_first: bool,
) -> list[Merge]:
    """Return a page of the merges that match."""
    rows = database.read(
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
    """The merges of a write: judged before anything of it is written."""

    def __init__(self, scope: Scope, merges: Sequence[Merge]) -> None:
        self._scope = scope
        self._merges = {merge.id: merge for merge in merges}

    def judge(self, transaction: Transaction) -> None:
        """Refuse merges of another scope, and ids that are taken."""
        for merge in self._merges.values():
            if merge.scope != self._scope:
                raise InvalidInput(f"merge {merge.id}: its scope is {merge.scope}, the write's is {self._scope}")
        if not self._merges:
            return
        for merge_id, scope, is_merge in transaction.run("merge_ids", ids=list(self._merges)):
            if scope != self._scope.key or not is_merge:
                raise Conflict(f"merge id {merge_id} is taken")  # says nothing about the other scope

    def run(self, transaction: Transaction) -> None:
        """Write."""
        if self._merges:
            transaction.run("put_merges", rows=[_row(merge) for merge in self._merges.values()])


def _row(merge: Merge) -> dict[str, Any]:
    """Return a merge as ``put_merges`` takes it; names, method and time stand beside the body for people to read."""
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


def remove(transaction: Transaction, scope: Scope, removals: Sequence[Removal]) -> None:
    """Delete rows of a scope with all that goes with them; what isn't there is left out."""
    named: dict[str, list[Removal]] = {}
    for removal in removals:
        named.setdefault(removal.kind, []).append(removal)
    entities = ids_of(removal.id for removal in named.get("entity", ()))
    edges = ids_of(removal.id for removal in named.get("edge", ()))
    if entities:
        edges += transaction.run("facts_of_entities", scope=scope.key, ids=entities)
    gone: list[list[str]] = [[removal.of, removal.id] for removal in named.get("index", ())]
    if edges:
        found = transaction.run("remove_edges", scope=scope.key, ids=list(dict.fromkeys(edges)))
        gone += [["fact", edge_id] for edge_id in found]
    if entities:
        found = transaction.run("remove_entities", scope=scope.key, ids=entities)
        gone += [["entity", entity_id] for entity_id in found]
    if episodes := ids_of(removal.id for removal in named.get("episode", ())):
        stated = transaction.run("edges_of_episodes", scope=scope.key, ids=episodes)
        if stated:
            transaction.run("forget_sources", edges=stated, ids=episodes)
        found = transaction.run("remove_episodes", scope=scope.key, ids=episodes)
        gone += [["episode", episode_id] for episode_id in found]
    if gone:
        transaction.run("remove_index", scope=scope.key, rows=gone)
    for kind, query in (("alias", "remove_aliases"), ("mention", "remove_mentions")):
        if rows := [[removal.id, removal.of] for removal in named.get(kind, ())]:
            transaction.run(query, scope=scope.key, rows=rows)
    for kind, query in (("community", "remove_communities"), ("recall", "remove_recalls")):
        if ids := ids_of(removal.id for removal in named.get(kind, ())):
            transaction.run(query, scope=scope.key, ids=ids)
    if merges := ids_of(removal.id for removal in named.get("merge", ())):
        transaction.run("remove_merges", scope=scope.key, ids=merges)
