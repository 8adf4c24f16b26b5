"""Facts: reads, retrieval counts, and traversal. A query picks one way in (ids, ends, …); the rest of it filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from graphmem.models import (
    ActiveFact,
    AsOf,
    Edge,
    EdgeQuery,
    EdgeType,
    ExpandLimits,
    Scope,
    Subgraph,
    SubgraphEdge,
    utc_now,
)
from graphmem.protocols import EdgeStore, Traversal, require_no_cursor
from graphmem_neo4j.connection import Neo4jRole, Transaction
from graphmem_neo4j.rows import TYPES, Row, edge_of, ids_of, keys_of, moment

_MAX_READS = 3  # of a page whose rows other transactions delete meanwhile


class Neo4jEdges(Neo4jRole, EdgeStore):
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
        """Return a page of the edges that match; it is read again if another transaction changed it meanwhile."""
        require_no_cursor(after, newest_first=newest_first)
        name, anchors = _way_in(query, newest_first=newest_first)
        values: dict[str, Any] = {
            **anchors,
            **_filters(query, served=name),
            **moment_values(query.as_of, utc_now()),
            "scopes": keys_of(scopes),
            "after": after,
            "limit": limit,
            "newest": newest_first,
        }
        rows: list[Row] = []
        for _ in range(_MAX_READS):
            read = self._database.read_page(name, scopes, **values)
            rows = _complete_rows(read)
            if len(rows) == len(read):
                break
        return [edge_of(row) for row in rows]

    def find_active_facts(self, scope: Scope, *, after: str = "", limit: int = 1000) -> list[ActiveFact]:
        """Return a page of the active facts between entities that aren't archived, in ascending order of id."""
        rows = self._database.read("active_facts", [scope], scope=scope.key, after=after, limit=limit)
        return [
            ActiveFact(i, source, target, EdgeType[kind], confidence, count, begin / 1e6)
            for i, source, target, confidence, count, begin, kind in _complete_rows(rows)
        ]

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends, atomically."""
        values = {"ids": _distinct(edge_ids), "scopes": keys_of(scopes), "at": at}

        def work(transaction: Transaction) -> None:
            transaction.lock(scopes)
            transaction.run("record_retrievals", **values)

        self._database.write(work)


def _complete_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of facts that were not deleted, or replaced, by another transaction while they were read.

    A query of the server sees each commit that happens meanwhile. What it reads of a relationship that is gone is null,
    unless it has read that before; the last value of these rows, the type, is read last.
    """
    return [row for row in rows if row[-1] is not None]


def _way_in(query: EdgeQuery, *, newest_first: bool) -> tuple[str, dict[str, Any]]:
    """Return the name of the query that reads the fewest rows, with the anchors it starts at."""
    if query.ids is not None:
        return "edges_by_id", {"ids": ids_of(query.ids)}
    if query.keys is not None:
        return "edges_between", {"pairs": [list(pair) for pair in dict.fromkeys(key[:2] for key in query.keys)]}
    if query.slots is not None:
        return "edges_from", {"anchors": _distinct([slot[0] for slot in query.slots])}
    if query.source_ids is not None:
        return "edges_from", {"anchors": _distinct(query.source_ids)}
    if query.target_ids is not None:
        return "edges_to", {"anchors": _distinct(query.target_ids)}
    if query.touching is not None:
        return "edges_touching", {"anchors": _distinct(query.touching)}
    if newest_first or query.window is not None:
        return "newest_edges_of_scopes", {}
    return "edges_of_scopes", {}


def _filters(query: EdgeQuery, *, served: str) -> dict[str, Any]:
    axis, begin, end = query.window or (None, None, None)
    return {
        "ids": None if query.ids is None else ids_of(query.ids),
        "sources": query.source_ids,
        "targets": query.target_ids,
        "touching": None if served == "edges_touching" else query.touching,
        "relations": query.relations,
        "types": None if query.edge_types is None else type_names(query.edge_types),
        "keys": None if query.keys is None else [[*key[:3], EdgeType(key[3]).name] for key in query.keys],
        "slots": None if query.slots is None else [list(slot) for slot in query.slots],
        "kinds": query.kinds,
        "ended_by": None if query.ended_by is None else ids_of(query.ended_by),
        "text": None if query.text is None else _pattern(query.text),
        "axis": axis,
        "begin": begin,
        "end": end,
        "versions": query.versions,
    }


def type_names(edge_types: Sequence[EdgeType]) -> list[str]:
    """Return the relationship types of edge types."""
    return [EdgeType(kind).name for kind in edge_types]


def moment_values(as_of: AsOf | None, now: datetime) -> dict[str, Any]:
    """Return the parameters of the fragment ``edge_is_visible``."""
    return {
        "now": now,
        "valid": None if as_of is None else as_of.valid,
        "known": None if as_of is None else as_of.known,
    }


def _pattern(text: str) -> str:
    r"""Return a Java pattern for texts that contain this piece, ignoring the case of ASCII letters.

    Between ``\Q`` and ``\E`` every character is literal.
    """
    plain = text.encode("utf-8", "replace").decode().replace("\\E", "\\E\\\\E\\Q")
    return f"(?is).*\\Q{plain}\\E.*"


def _distinct(items: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


# Traversal --------------------------------------------------------------------------------------


class Neo4jTraversal(Neo4jRole, Traversal):
    """The walk through the graph, one query a hop."""

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
        seeds = self._database.read("expand_seeds", scopes, ids=_distinct(seed_ids), scopes=keys_of(scopes))
        nodes: dict[str, tuple[str, str, str]] = {row[0]: (row[0], row[1], row[2]) for row in seeds}
        depth = dict.fromkeys(nodes, 0)
        edges: dict[str, Row] = {}
        frontier = list(nodes)
        values: dict[str, Any] = {"types": type_names(edge_types or list(EdgeType)), **moment_values(as_of, utc_now())}
        for hop in range(1, hops + 1):
            if not frontier:
                break
            reached: dict[str, float] = {}
            per_node = limits.per_node(len(frontier))
            rows = self._database.read("expand_hop", scopes, frontier=frontier, per_node=per_node, **values)
            for row in _complete_rows(rows):
                edges[row[0]] = row
                other, confidence = row[9], row[6]
                if other not in depth and row[12] and confidence > reached.get(other, -1.0):
                    reached[other] = confidence
                    nodes[other] = (other, row[10], row[11])
            frontier = sorted(reached, key=lambda node: (-reached[node], node))[: limits.max_frontier]
            depth.update(dict.fromkeys(frontier, hop))
        return Subgraph.of(nodes, depth, map(_subgraph_edge, edges.values()))


def _subgraph_edge(row: Row) -> SubgraphEdge[str]:
    source, target = (row[2], row[9]) if row[1] else (row[9], row[2])
    start = moment(row[8]).timestamp()
    return row[0], source, target, row[3], TYPES[row[4]], row[5], row[6], row[7], start, row[13]
