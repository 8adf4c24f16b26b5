"""Counts of a scope."""

from __future__ import annotations

from graphmem.models import Scope, StoreStats
from graphmem_neo4j.connection import Database
from graphmem_neo4j.rows import TYPES


def scopes(database: Database) -> list[Scope]:
    """Return the scopes that hold anything, ordered by key."""
    return [Scope.from_key(key) for key in sorted(database.read("scopes"))]


def stats(database: Database, scope: Scope) -> StoreStats:
    """Count what a scope holds."""
    rows = database.read("stats", [scope], scope=scope.key)
    counted: dict[str, tuple[int, int]] = {kind: (many, of_those) for kind, _, many, of_those in rows}
    entities = [row[1:] for row in rows if row[0] == "entities"]
    edges = [row[1:] for row in rows if row[0] == "edges" and row[2]]
    unprocessed, failed = counted["unprocessed"]
    return StoreStats(
        entities=sum(row[1] for row in entities),
        archived_entities=sum(row[2] for row in entities),
        aliases=counted["aliases"][0],
        edges=sum(row[1] for row in edges),
        active_edges=sum(row[2] for row in edges),
        episodes=counted["episodes"][0],
        pending_episodes=unprocessed - failed,
        failed_episodes=failed,
        mentions=counted["episodes"][1],
        communities=counted["communities"][0],
        ended_communities=counted["communities"][1],
        community_members=counted["members"][0],
        recalls=counted["recalls"][0],
        edges_by_type={TYPES[row[0]].value: row[1] for row in edges},
        entities_by_type={row[0]: row[1] for row in entities},
    )
