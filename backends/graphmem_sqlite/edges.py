"""Facts: reads, retrieval counts, and traversal.

A query picks one way in (ids, keys, a node's edges, …); the rest filters.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.models import ActiveFact, AsOf, Edge, EdgeQuery, EdgeType, ExpandLimits, Scope, Subgraph, utc_now
from graphmem.protocols import EdgeStore, Traversal, require_no_cursor
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.rows import EDGE_COLUMNS, Row, as_json, as_of_values, edge_of, edge_type_of, micros, scope_keys

_PAGE = (
    "SELECT",
    EDGE_COLUMNS,
    """
    FROM edges AS e CROSS JOIN scopes AS s ON s.key = e.scope
    CROSS JOIN entities AS a ON a.key = e.source CROSS JOIN entities AS b ON b.key = e.target
    WHERE e.key IN (
    """,
)
_BY_ID_ORDER = ") ORDER BY +e.id LIMIT :limit"
_NEWEST_FIRST = ") ORDER BY +e.valid_from DESC, e.recorded_at DESC, e.id DESC LIMIT :limit"

# Ways in: each selects keys of edges `x`, and ends where filters are added.
_SCOPE_CHECK = "AND x.scope IN (SELECT value FROM json_each(:scopes)) AND x.id > :after"
_IN_IDS = "SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN edges AS x WHERE x.id = wanted.value"
_ENDS = """
SELECT x.key FROM (
    SELECT p.key AS source, q.key AS target, json_extract(w.value, '$[2]') AS relation,
        json_extract(w.value, '$[3]') AS edge_type
    FROM json_each(:keys) AS w CROSS JOIN entities AS p ON p.id = json_extract(w.value, '$[0]')
    CROSS JOIN entities AS q ON q.id = json_extract(w.value, '$[1]')
) AS wanted CROSS JOIN edges AS x
"""
_OF_KEY = """
WHERE x.source = wanted.source AND x.target = wanted.target AND x.relation = wanted.relation
AND x.edge_type = wanted.edge_type
"""
_SLOTS = """
SELECT x.key FROM (
    SELECT p.key AS source, json_extract(w.value, '$[1]') AS relation
    FROM json_each(:slots) AS w CROSS JOIN entities AS p ON p.id = json_extract(w.value, '$[0]')
) AS wanted CROSS JOIN edges AS x
"""
_OF_SLOT = "WHERE x.source = wanted.source AND x.relation = wanted.relation"
_ACTIVE = "AND x.valid_to IS NULL AND x.expired_at IS NULL"
_INACTIVE = "AND (x.valid_to IS NOT NULL OR x.expired_at IS NOT NULL)"
_FROM_SOURCES = """
SELECT x.key FROM json_each(:sources) AS wanted CROSS JOIN entities AS p ON p.id = wanted.value
CROSS JOIN edges AS x INDEXED BY edges_history_by_source WHERE x.source = p.key
"""
_TO_TARGETS = """
SELECT x.key FROM json_each(:targets) AS wanted CROSS JOIN entities AS p ON p.id = wanted.value
CROSS JOIN edges AS x INDEXED BY edges_history_by_target WHERE x.target = p.key
"""
# the ended facts of each node
_PAST_FROM_SOURCES = """
SELECT x.key FROM json_each(:sources) AS wanted CROSS JOIN entities AS p ON p.id = wanted.value
CROSS JOIN edges AS x INDEXED BY edges_ended_by_source WHERE x.source = p.key
"""
_PAST_TO_TARGETS = """
SELECT x.key FROM json_each(:targets) AS wanted CROSS JOIN entities AS p ON p.id = wanted.value
CROSS JOIN edges AS x INDEXED BY edges_ended_by_target WHERE x.target = p.key
"""
# the newest of each node; the outer statement takes the first of them, so that a hub is read no further than needed
_NEWEST_FROM_SOURCES = """
SELECT k.key FROM json_each(:sources) AS wanted CROSS JOIN entities AS p ON p.id = wanted.value
CROSS JOIN edges AS k ON k.key IN (
    SELECT x.key FROM edges AS x INDEXED BY edges_history_by_source WHERE x.source = p.key
"""
_NEWEST_TO_TARGETS = """
SELECT k.key FROM json_each(:targets) AS wanted CROSS JOIN entities AS p ON p.id = wanted.value
CROSS JOIN edges AS k ON k.key IN (
    SELECT x.key FROM edges AS x INDEXED BY edges_history_by_target WHERE x.target = p.key
"""
_NEWEST_END = "ORDER BY x.valid_from DESC, x.recorded_at DESC, x.id DESC LIMIT :limit)"
# what a fact ended is found by its id, what an episode ended among the facts with stated ends
_SUPERSEDED_BY = """
SELECT x.key FROM json_each(:ended_by) AS wanted
CROSS JOIN edges AS x INDEXED BY edges_by_successor WHERE x.superseded_by = wanted.value
"""
_ENDED_BY = """
SELECT x.key FROM json_each(:scopes) AS wanted
CROSS JOIN edges AS x INDEXED BY edges_with_ends WHERE x.scope = wanted.value AND x.ends IS NOT NULL
"""
_HAS_END_BY = """
AND EXISTS (
    SELECT 1 FROM json_each(x.ends) AS w
    WHERE json_extract(w.value, '$[0]') IN (SELECT value FROM json_each(:ended_by)))
"""
_WINDOWS = {
    "valid_from": "SELECT x.key FROM json_each(:scopes) AS wanted CROSS JOIN edges AS x "
    "INDEXED BY edges_by_valid_from WHERE x.scope = wanted.value AND x.valid_from > :begin AND x.valid_from <= :end",
    "valid_to": "SELECT x.key FROM json_each(:scopes) AS wanted CROSS JOIN edges AS x "
    "INDEXED BY edges_by_valid_to WHERE x.scope = wanted.value AND x.valid_to > :begin AND x.valid_to <= :end",
    "recorded_at": "SELECT x.key FROM json_each(:scopes) AS wanted CROSS JOIN edges AS x "
    "INDEXED BY edges_by_recorded_at WHERE x.scope = wanted.value AND x.recorded_at > :begin AND x.recorded_at <= :end",
    "expired_at": "SELECT x.key FROM json_each(:scopes) AS wanted CROSS JOIN edges AS x "
    "INDEXED BY edges_by_expired_at WHERE x.scope = wanted.value AND x.expired_at > :begin AND x.expired_at <= :end",
}
_SCOPES = """
SELECT k.key FROM json_each(:scopes) AS wanted CROSS JOIN edges AS k ON k.key IN (
    SELECT x.key FROM edges AS x INDEXED BY edges_by_scope WHERE x.scope = wanted.value AND x.id > :after
"""
_SCOPES_END = "ORDER BY x.id LIMIT :limit)"
_SCOPES_NEWEST = """
SELECT k.key FROM json_each(:scopes) AS wanted CROSS JOIN edges AS k ON k.key IN (
    SELECT x.key FROM edges AS x INDEXED BY edges_by_valid_from WHERE x.scope = wanted.value
"""

# Filters on `x`.
_VISIBLE_NOW = "AND (x.valid_to IS NULL OR (x.valid_to > :now AND x.valid_to > x.valid_from))"
_PAST = "AND x.valid_to <= :now AND x.valid_to > x.valid_from AND x.superseded_by IS NULL"
_VISIBLE_AS_OF = """
AND x.recorded_at <= :known AND x.valid_from <= :valid
AND coalesce(:valid < CASE WHEN :known < x.expired_at THEN x.prior_valid_to ELSE x.valid_to END, 1)
"""
_FILTERS = {
    "ids": "AND x.id IN (SELECT value FROM json_each(:ids))",
    "source_ids": "AND x.source IN (SELECT key FROM entities WHERE id IN (SELECT value FROM json_each(:sources)))",
    "target_ids": "AND x.target IN (SELECT key FROM entities WHERE id IN (SELECT value FROM json_each(:targets)))",
    "touching": """
    AND (x.source IN (SELECT key FROM entities WHERE id IN (SELECT value FROM json_each(:touching)))
        OR x.target IN (SELECT key FROM entities WHERE id IN (SELECT value FROM json_each(:touching))))
    """,
    "keys": """
    AND (x.source, x.target, x.relation, x.edge_type) IN (
        SELECT p.key, q.key, json_extract(w.value, '$[2]'), json_extract(w.value, '$[3]')
        FROM json_each(:keys) AS w CROSS JOIN entities AS p ON p.id = json_extract(w.value, '$[0]')
        CROSS JOIN entities AS q ON q.id = json_extract(w.value, '$[1]'))
    """,
    "slots": """
    AND (x.source, x.relation) IN (
        SELECT p.key, json_extract(w.value, '$[1]')
        FROM json_each(:slots) AS w CROSS JOIN entities AS p ON p.id = json_extract(w.value, '$[0]'))
    """,
    "ended_by": """
    AND (x.superseded_by IN (SELECT value FROM json_each(:ended_by)) OR EXISTS (
        SELECT 1 FROM json_each(x.ends) AS w
        WHERE json_extract(w.value, '$[0]') IN (SELECT value FROM json_each(:ended_by))))
    """,
    "kinds": "AND iif(x.inferred, 'inferred', coalesce(x.kind, 'state')) IN (SELECT value FROM json_each(:kinds))",
    "relations": "AND x.relation IN (SELECT value FROM json_each(:relations))",
    "edge_types": "AND x.edge_type IN (SELECT value FROM json_each(:edge_types))",
    "text": "AND (instr(lower(x.fact), :text) OR instr(lower(x.relation), :text))",
    "window": "",
}
_WINDOW_FILTERS = {
    "valid_from": "AND x.valid_from > :begin AND x.valid_from <= :end",
    "valid_to": "AND x.valid_to > :begin AND x.valid_to <= :end",
    "recorded_at": "AND x.recorded_at > :begin AND x.recorded_at <= :end",
    "expired_at": "AND x.expired_at > :begin AND x.expired_at <= :end",
}
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

ACTIVE_FACTS = """
SELECT x.id, a.id, b.id, x.edge_type, x.confidence, x.retrieval_count, x.valid_from / 1e6
FROM edges AS x INDEXED BY edges_by_scope
CROSS JOIN entities AS a ON a.key = x.source CROSS JOIN entities AS b ON b.key = x.target
WHERE x.scope = :scope AND x.id > :after AND x.valid_to IS NULL AND x.expired_at IS NULL AND x.inferred IS NULL
    AND a.archived_at IS NULL AND b.archived_at IS NULL
ORDER BY x.id LIMIT :limit
"""
COUNT_RETRIEVALS = """
UPDATE edges SET retrieval_count = retrieval_count + 1.0, last_retrieved_at = :at
WHERE key IN (
    SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN edges AS x ON x.id = wanted.value
    WHERE x.scope IN (SELECT value FROM json_each(:scopes))
)
"""
COUNT_ACCESSES = """
UPDATE entities SET access_count = access_count + ends.times
FROM (
    SELECT node, count(*) AS times FROM (
        SELECT x.source AS node FROM json_each(:ids) AS wanted CROSS JOIN edges AS x ON x.id = wanted.value
        WHERE x.scope IN (SELECT value FROM json_each(:scopes))
        UNION ALL
        SELECT x.target AS node FROM json_each(:ids) AS wanted CROSS JOIN edges AS x ON x.id = wanted.value
        WHERE x.scope IN (SELECT value FROM json_each(:scopes))
    )
    GROUP BY node
) AS ends
WHERE entities.key = ends.node
"""


class SQLiteEdges(SQLiteRole, EdgeStore):
    """Facts in all their versions."""

    def find_edges(
        self,
        scopes: Sequence[Scope],
        query: EdgeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Edge]:
        """Return a page of the edges that match."""
        require_no_cursor(after, newest_first=newest_first)
        with self._database.reading() as connection:
            values = _edge_values(query, utc_now())
            values.update(scopes=as_json(scope_keys(connection, scopes)), after=after, limit=limit)
            rows = connection.execute(edge_statement(query, newest_first=newest_first), values)
            return [edge_of(row) for row in rows]

    def find_active_facts(self, scope: Scope, *, after: str = "", limit: int = 1000) -> list[ActiveFact]:
        """Return a page of the active facts between entities that aren't archived, in ascending order of id."""
        with self._database.reading() as connection:
            return [
                ActiveFact(i, source, target, edge_type_of(kind), confidence, count, begin)
                for key in scope_keys(connection, [scope])
                for i, source, target, kind, confidence, count, begin in connection.execute(
                    ACTIVE_FACTS, {"scope": key, "after": after, "limit": limit}
                )
            ]

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends, atomically."""
        with self._database.writing() as connection:
            values = {"ids": as_json(edge_ids), "scopes": as_json(scope_keys(connection, scopes))}
            connection.execute(COUNT_RETRIEVALS, {**values, "at": micros(at)})
            connection.execute(COUNT_ACCESSES, values)


def edge_statement(query: EdgeQuery, *, newest_first: bool = False) -> str:
    """Return the statement that reads a page of a query, assembled from constants."""
    asked = [name for name in _FILTERS if getattr(query, name) is not None]
    ways = _ways_in(query, newest_first=newest_first)
    arms: list[str] = []
    for served, begin, end in ways:
        filters = [
            _WINDOW_FILTERS[query.window[0]] if name == "window" and query.window is not None else _FILTERS[name]
            for name in asked
            if name != served
        ]
        arms.append(" ".join((begin, _SCOPE_CHECK, *filters, _versions(query), end)))
    return " ".join((*_PAGE, " UNION ALL ".join(arms), _NEWEST_FIRST if newest_first else _BY_ID_ORDER))


def _versions(query: EdgeQuery) -> str:
    if query.versions == "all":
        return ""
    if query.versions == "active":
        return _ACTIVE
    if query.versions == "past":
        return _PAST
    return _VISIBLE_NOW if query.as_of is None else _VISIBLE_AS_OF


def _ways_in(query: EdgeQuery, *, newest_first: bool) -> list[tuple[str, str, str]]:
    """Return (filter that it replaces, beginning, end) of each part; their union contains all matching edges."""
    if query.ids is not None:
        return [("ids", _IN_IDS, "")]
    kinds = (_ACTIVE,) if query.versions == "active" else (_ACTIVE, _INACTIVE)
    if query.keys is not None:
        return [("keys", " ".join((_ENDS, _OF_KEY, kind)), "") for kind in kinds]
    if query.slots is not None:
        return [("slots", " ".join((_SLOTS, _OF_SLOT, kind)), "") for kind in kinds]
    if query.ended_by is not None:
        return [("ended_by", _SUPERSEDED_BY, ""), ("ended_by", _ENDED_BY, _HAS_END_BY)]
    end = _NEWEST_END if newest_first else ""
    sources = _NEWEST_FROM_SOURCES if newest_first else _FROM_SOURCES
    targets = _NEWEST_TO_TARGETS if newest_first else _TO_TARGETS
    if query.versions == "past":
        sources, targets, end = _PAST_FROM_SOURCES, _PAST_TO_TARGETS, ""
    if query.source_ids is not None:
        return [("source_ids", sources, end)]
    if query.target_ids is not None:
        return [("target_ids", targets, end)]
    if query.touching is not None:
        return [("touching", sources, end), ("touching", targets, end)]
    if query.window is not None:
        return [("window", _WINDOWS[query.window[0]], "")]
    if newest_first:
        return [("", _SCOPES_NEWEST, _NEWEST_END)]
    return [("", _SCOPES, _SCOPES_END)]


def _edge_values(query: EdgeQuery, now: datetime) -> dict[str, Any]:
    """Return the parameters of a query's statement except scopes, cursor and limit."""
    lists = {
        "ids": query.ids,
        "sources": query.source_ids if query.touching is None or query.source_ids is not None else query.touching,
        "targets": query.target_ids if query.touching is None or query.target_ids is not None else query.touching,
        "touching": query.touching,
        "keys": query.keys,
        "slots": query.slots,
        "kinds": query.kinds,
        "ended_by": query.ended_by,
        "relations": query.relations,
        "edge_types": query.edge_types,
    }
    values: dict[str, Any] = {name: as_json(items) for name, items in lists.items() if items is not None}
    values["now"] = micros(now)
    if query.text is not None:
        values["text"] = query.text.encode("utf-8", "replace").decode().translate(_ASCII_LOWER)
    if query.window is not None:
        values["begin"], values["end"] = micros(query.window[1]), micros(query.window[2])
    if query.as_of is not None:
        values.update(as_of_values(query.as_of))
    return values


# Traversal ----------------------------------------------------------------------------------------


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
            asked = {"ids": as_json(seed_ids), "scopes": as_json(scope_keys(connection, scopes))}
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
