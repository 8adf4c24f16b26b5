"""What upkeep needs: marks, fading counts, entities that nothing holds, and a whole scope that goes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from graphmem.models import Mark, Scope, decayed
from graphmem_neo4j.connection import Database, Transaction
from graphmem_neo4j.edges import moment_values
from graphmem_neo4j.rows import ids_of, moment_or_none

_PAGE = 1000
_CLEARED = 10_000  # rows in one transaction: the server holds in memory what a transaction changes
# facts before their entities, and what the index holds before its rows: what is left is right at any time
_CLEAR = (
    "clear_recalls",
    "clear_communities",
    "clear_merges",
    "clear_index",
    "clear_edges",
    "clear_entities",
    "clear_episodes",
    "clear_marks",
)


def find_marks(database: Database, scope: Scope) -> list[Mark]:
    """Return the marks of a scope, ordered by job."""
    return [
        Mark(job, moment_or_none(done), episodes, moment_or_none(begun), cursor)
        for job, done, episodes, begun, cursor in database.read("find_marks", [scope], scope=scope.key)
    ]


def put_marks(transaction: Transaction, scope: Scope, marks: Sequence[Mark]) -> None:
    """Insert marks, or replace them by job; the scope is locked."""
    rows = [[m.job, _text(m.done_at), m.episodes, _text(m.begun_at), m.cursor] for m in marks]
    if rows:
        transaction.run("put_marks", scope=scope.key, rows=rows)


def decay_retrievals(
    database: Database,
    scope: Scope,
    *,
    rate: float,
    idle_since: datetime,
    since: datetime | None,
    now: datetime,
    after: str,
) -> tuple[int, str]:
    """Lower the retrieval counts of a page of facts."""

    def faded(count: float, retrieved: str | None) -> float:
        return decayed(count, moment_or_none(retrieved), rate=rate, idle_since=idle_since, since=since, now=now)

    def work(transaction: Transaction) -> tuple[int, str]:
        page = transaction.run_locked("retrieved_edges", [scope], scope=scope.key, after=after, limit=_PAGE)
        if page:
            transaction.run("set_counts", rows=[[edge_id, faded(*rest)] for edge_id, *rest in page])
        return len(page), max(row[0] for row in page) if len(page) == _PAGE else ""

    return database.write(work)


def find_idle(database: Database, scope: Scope, before: datetime, now: datetime, limit: int) -> list[str]:
    """Return ids of entities that were last seen and recorded by `before`, and that no visible fact is about."""
    values = {"before": _text(before), "limit": limit, **moment_values(None, now)}
    return database.read("find_idle", [scope], scope=scope.key, **values)


def find_least_connected(database: Database, scope: Scope, limit: int) -> list[str]:
    """Return ids of entities, those with the fewest active facts first, then those seen longest ago."""
    return database.read("find_least_connected", [scope], scope=scope.key, limit=limit)


def find_edges_of_episodes(database: Database, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
    """Return ids of the facts that one of these episodes stated."""
    return database.read("edges_of_episodes", [scope], scope=scope.key, ids=ids_of(episode_ids))


def clear(database: Database, scope: Scope) -> None:
    """Remove everything of a scope, piece by piece, and last the scope itself."""
    for name in _CLEAR:
        while _clear_some(database, scope, name):
            pass

    def work(transaction: Transaction) -> None:
        transaction.lock([scope])
        transaction.run("clear_scope", scope=scope.key)

    database.write(work)


def _clear_some(database: Database, scope: Scope, name: str) -> bool:
    def work(transaction: Transaction) -> bool:
        transaction.lock([scope])
        return transaction.run(name, scope=scope.key, limit=_CLEARED) == [_CLEARED]

    return database.write(work)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
