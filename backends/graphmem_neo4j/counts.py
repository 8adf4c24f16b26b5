"""Counts of a scope and facts about the server."""

from __future__ import annotations

from datetime import timedelta

from graphmem.models import Scope, StoreStats, utc_now
from graphmem_cypher import migrations
from graphmem_neo4j.connection import Database
from graphmem_neo4j.rows import TYPES, moment, scope_of

_CLOCKS_APART = timedelta(seconds=5)


def scopes(database: Database) -> list[Scope]:
    """Return the scopes that hold anything, ordered by key."""
    return [scope_of(key) for key in sorted(database.read("scopes"))]


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
        edges_by_type={TYPES[row[0]].value: row[1] for row in edges},
        entities_by_type={row[0]: row[1] for row in entities},
    )


def diagnose(database: Database) -> list[tuple[str, bool, str]]:
    """Return (what, whether it is well, detail) on server, schema, indexes, clock and GDS."""
    version, edition = database.server()
    (number,) = database.read("schema_number")
    newest = max(migrations())
    indexes = database.read("indexes")
    waiting = sorted(name for name, state in indexes if state != "ONLINE")
    (told,) = database.read("server_clock")
    apart = abs(moment(told) - utc_now())
    gds = database.read("gds_version")
    return [
        ("place", True, database.place.name),
        ("Neo4j", True, f"{version} {edition}"),
        ("schema", number == newest, str(number)),
        ("indexes", bool(indexes) and not waiting, f"not online: {', '.join(waiting)}" if waiting else "all online"),
        ("clock", apart < _CLOCKS_APART, f"{apart.total_seconds():.1f} s apart from the server's"),
        ("Graph Data Science", True, "there" if gds else "not installed: communities are found in this process"),
    ]
