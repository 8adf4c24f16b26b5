"""Reading facts. A query picks one way in (ids, ends, a node's facts, …); the rest of it filters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.models import ActiveFact, AsOf, Edge, EdgeQuery, EdgeType, Scope, utc_now
from graphmem_neo4j.connection import Database, Transaction
from graphmem_neo4j.entities import keys_of
from graphmem_neo4j.rows import edge_of, ids_of


def find_edges(
    database: Database,
    scopes: Sequence[Scope],
    query: EdgeQuery,
    *,
    after: str,
    limit: int,
    newest_first: bool,
) -> list[Edge]:
    """Return a page of the edges that match."""
    name, anchors = _way_in(query, newest_first=newest_first)
    values = {
        **anchors,
        **_filters(query, served=name),
        **moment_values(query.as_of, utc_now()),
        "scopes": keys_of(scopes),
        "after": after,
        "limit": limit,
        "newest": newest_first,
    }
    return [edge_of(row) for row in database.read(name, scopes, **values)]


def find_active_facts(database: Database, scope: Scope, after: str, limit: int) -> list[ActiveFact]:
    """Return a page of the active facts between entities that aren't archived."""
    rows = database.read("active_facts", [scope], scope=scope.key, after=after, limit=limit)
    return [
        ActiveFact(i, source, target, EdgeType[kind], confidence, count, begin / 1e6)
        for i, source, target, kind, confidence, count, begin in rows
    ]


def _way_in(query: EdgeQuery, *, newest_first: bool) -> tuple[str, dict[str, Any]]:
    """Return the query that reads the fewest rows, with what it begins at."""
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
    r"""Return a Java pattern for a text that contains this piece, in any letter case of ASCII.

    Between ``\Q`` and ``\E`` every character is plain.
    """
    plain = text.encode("utf-8", "replace").decode().replace("\\E", "\\E\\\\E\\Q")
    return f"(?is).*\\Q{plain}\\E.*"


def _distinct(items: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def record_retrievals(database: Database, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
    """Count one retrieval of each edge and one access of each of its ends."""
    values = {"ids": _distinct(edge_ids), "scopes": keys_of(scopes), "at": at}

    def work(transaction: Transaction) -> None:
        transaction.lock(scopes)
        transaction.run("record_retrievals", **values)

    database.write(work)
