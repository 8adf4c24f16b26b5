"""Traversal: the neighborhood of seeds, one statement a hop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.models import AsOf, EdgeType, ExpandLimits, Scope, Subgraph, utc_now
from graphmem.protocols import Traversal
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.edges import as_of_values
from graphmem_sqlite.rows import Row, as_json, edge_type_of, micros, scope_keys

SEEDS = """
SELECT e.key, e.id, e.name, e.entity_type FROM json_each(:ids) AS wanted
CROSS JOIN entities AS e ON e.id = wanted.value
WHERE e.scope IN (SELECT value FROM json_each(:scopes))
"""

# The best edges of a node come from indexes that hold them in order: a hub costs no more than its best ones.
# Compound selects with ORDER BY are merged by SQLite, each part read no further than needed.
_BEST_NOW = """
SELECT key, confidence, id FROM edges INDEXED BY edges_open_by_source
WHERE source = front.value AND valid_to IS NULL AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
UNION ALL
SELECT key, confidence, id FROM edges INDEXED BY edges_open_by_target
WHERE target = front.value AND valid_to IS NULL AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
UNION ALL
SELECT key, confidence, id FROM edges INDEXED BY edges_ended_by_source
WHERE source = front.value AND valid_to > :now AND valid_to > valid_from AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
UNION ALL
SELECT key, confidence, id FROM edges INDEXED BY edges_ended_by_target
WHERE target = front.value AND valid_to > :now AND valid_to > valid_from AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
ORDER BY confidence DESC, id LIMIT :per_node
"""
_BEST_AS_OF = """
SELECT key, confidence, id FROM edges INDEXED BY edges_open_by_source
WHERE source = front.value AND valid_to IS NULL AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
AND recorded_at <= :known AND valid_from <= :valid
UNION ALL
SELECT key, confidence, id FROM edges INDEXED BY edges_open_by_target
WHERE target = front.value AND valid_to IS NULL AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
AND recorded_at <= :known AND valid_from <= :valid
UNION ALL
SELECT key, confidence, id FROM edges INDEXED BY edges_ended_by_source
WHERE source = front.value AND valid_to IS NOT NULL AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
AND recorded_at <= :known AND valid_from <= :valid
AND coalesce(:valid < CASE WHEN :known < expired_at THEN prior_valid_to ELSE valid_to END, 1)
UNION ALL
SELECT key, confidence, id FROM edges INDEXED BY edges_ended_by_target
WHERE target = front.value AND valid_to IS NOT NULL AND edge_type IN (:t0, :t1, :t2, :t3, :t4)
AND recorded_at <= :known AND valid_from <= :valid
AND coalesce(:valid < CASE WHEN :known < expired_at THEN prior_valid_to ELSE valid_to END, 1)
ORDER BY confidence DESC, id LIMIT :per_node
"""
_HOP = """
SELECT e.key, e.id, e.source, e.target, e.relation, e.edge_type, e.fact, e.confidence, e.retrieval_count, e.valid_from,
    o.key, o.id, o.name, o.entity_type, o.archived_at IS NULL, e.inferred IS NOT NULL
FROM json_each(:frontier) AS front
CROSS JOIN edges AS e ON e.key IN (SELECT key FROM (
"""
_HOP_END = """
))
CROSS JOIN entities AS o ON o.key = e.source + e.target - front.value
"""
HOP_NOW = " ".join((_HOP, _BEST_NOW, _HOP_END))
HOP_AS_OF = " ".join((_HOP, _BEST_AS_OF, _HOP_END))


class SQLiteTraversal(SQLiteRole, Traversal):
    """The walk through the graph."""

    def expand(
        self,
        scopes: Sequence[Scope],
        seed_ids: Sequence[str],
        *,
        hops: int,
        edge_types: Sequence[EdgeType] = (),
        as_of: AsOf | None = None,
        limits: ExpandLimits | None = None,
    ) -> Subgraph:
        """Collect the neighborhood of the seeds, following edges in both directions."""
        limits = limits or ExpandLimits()
        statement, values = _statement(edge_types, as_of)
        edges: dict[int, Row] = {}
        with self._database.reading() as connection:
            asked = {"ids": as_json(dict.fromkeys(seed_ids)), "scopes": as_json(scope_keys(connection, scopes))}
            nodes: dict[int, tuple[str, str, str]] = {row[0]: row[1:] for row in connection.execute(SEEDS, asked)}
            depth = dict.fromkeys(nodes, 0)
            frontier = list(nodes)
            for hop in range(1, hops + 1):
                if not frontier:
                    break
                values["frontier"], values["per_node"] = as_json(frontier), limits.per_node(len(frontier))
                reached: dict[int, float] = {}
                for row in connection.execute(statement, values):
                    edges[row[0]] = row
                    other = row[10]
                    if other not in depth and row[14] and row[7] > reached.get(other, -1.0):
                        reached[other] = row[7]
                        nodes[other] = row[11:14]
                frontier = sorted(reached, key=lambda key: (-reached[key], nodes[key][0]))[: limits.max_frontier]
                depth.update(dict.fromkeys(frontier, hop))
        found = (
            (r[1], r[2], r[3], r[4], edge_type_of(r[5]), r[6], r[7], r[8], r[9] / 1e6, r[15]) for r in edges.values()
        )
        return Subgraph.of(nodes, depth, found)


def _statement(edge_types: Sequence[EdgeType], as_of: AsOf | None) -> tuple[str, dict[str, Any]]:
    followed = [kind.value for kind in (edge_types or EdgeType)]
    distinct = list(dict.fromkeys(followed))
    values: dict[str, Any] = {f"t{i}": distinct[min(i, len(distinct) - 1)] for i in range(5)}
    if as_of is None:
        return HOP_NOW, {**values, "now": micros(utc_now())}
    return HOP_AS_OF, {**values, **as_of_values(as_of)}
