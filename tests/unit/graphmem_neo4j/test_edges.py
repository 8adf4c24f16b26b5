"""Rows of facts that another transaction deletes while a query of the server reads them."""

from __future__ import annotations

from typing import Any, cast

from graphmem.models import EdgeQuery
from graphmem.testing.rows import edge_id, entity_id, home
from graphmem_neo4j.connection import Database
from graphmem_neo4j.graph import Neo4jEdges, Neo4jTraversal

AT = "2026-01-01T00:00:00Z"


def row(n: int, *, gone: bool = False) -> list[Any]:
    """Return a row as ``edge_row`` has it; of one that is gone, only what filters read before."""
    known = [edge_id(n), home().key, entity_id(1), entity_id(2), "knows"]
    kind, begin = (None, None) if gone else ("SEMANTIC", AT)
    return [*known, kind, "a fact", 1.0, begin, None, begin, None, None, (), 0.0, *([None] * 10), kind]


def hop(n: int, *, gone: bool = False) -> list[Any]:
    """Return a row of ``expand_hop``."""
    kind, begin = (None, None) if gone else ("SEMANTIC", AT)
    known = [edge_id(n), not gone, entity_id(1), "knows", kind, "a fact", 1.0, 0.0, begin]
    return [*known, entity_id(n), f"Entity {n}", "person", True, False, kind]


class Server:
    """Returns the given rows of each query, one list a call; the last one again and again."""

    def __init__(self, **rows: list[list[list[Any]]]) -> None:
        self._rows = rows

    def read(self, name: str, *_: Any, **__: Any) -> list[list[Any]]:
        rows = self._rows[name]
        return rows.pop(0) if len(rows) > 1 else rows[0]

    read_page = read


def found(*reads: list[list[Any]]) -> list[str]:
    edges = Neo4jEdges(cast("Database", Server(edges_by_id=list(reads))))
    ids = (edge_id(1), edge_id(2))
    return [edge.id for edge in edges.find_edges([home()], EdgeQuery(ids=ids, versions="all"))]


def test_a_fact_that_is_replaced_while_it_is_read_is_read_again() -> None:
    assert found([row(1), row(2, gone=True)], [row(1), row(2)]) == [edge_id(1), edge_id(2)]


def test_a_fact_that_is_gone_is_left_out() -> None:
    assert found([row(1), row(2, gone=True)], [row(1)]) == [edge_id(1)]
    assert found([row(1), row(2, gone=True)]) == [edge_id(1)]


def test_a_walk_leaves_out_what_is_deleted_meanwhile() -> None:
    seed = [entity_id(1), "Entity 1", "person"]
    server = Server(expand_seeds=[[seed]], expand_hop=[[hop(2), hop(3, gone=True)]])
    graph = Neo4jTraversal(cast("Database", server)).expand([home()], [entity_id(1)], hops=1)
    assert graph.edge_ids == [edge_id(2)]


def test_a_walk_reads_the_facts_of_hubs_by_another_query() -> None:
    seeds = [[entity_id(n), f"Entity {n}", "person"] for n in (1, 4)]
    server = Server(expand_seeds=[seeds], expand_hop=[[hop(2), [entity_id(4)]]], expand_hubs=[[hop(3)]])
    graph = Neo4jTraversal(cast("Database", server)).expand([home()], [entity_id(1), entity_id(4)], hops=1)
    assert sorted(graph.edge_ids) == [edge_id(2), edge_id(3)]


def test_a_page_of_active_facts_leaves_out_what_is_deleted_meanwhile() -> None:
    there, gone = (
        [edge_id(n), entity_id(1), entity_id(2), 1.0, 0.0, 0, kind] for n, kind in ((1, "SEMANTIC"), (2, None))
    )
    edges = Neo4jEdges(cast("Database", Server(active_facts=[[there, gone]])))
    assert [fact.id for fact in edges.find_active_facts(home())] == [edge_id(1)]
