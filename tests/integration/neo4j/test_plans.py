"""Each query of the package is planned without a scan of everything where an index serves."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any, cast

import pytest

from graphmem_cypher import given, optional_parts, queries, query, saved
from graphmem_neo4j import Neo4jBackend, open_backend
from tests.integration.neo4j.support import explain, operators_of
from tests.integration.neo4j.test_saved_queries import PARAMETERS, QUERIES, READS_A_WHOLE_INDEX
from tests.neo4j_server import connect, forget_plans

# reading everything of a kind, in the names that Neo4j 5 gives it
SCANS = "AllNodesScan", "NodeByLabelScan", "UnionNodeByLabelsScan", "IntersectionNodeByLabelsScan"
SCANS_OF_EDGES = "DirectedAllRelationshipsScan", "UndirectedAllRelationshipsScan"
SCANS_OF_TYPES = "DirectedRelationshipTypeScan", "UndirectedRelationshipTypeScan", "UnionRelationshipTypesScan"
SCANS_OF_EDGE_INDEXES = "DirectedRelationshipIndexScan", "UndirectedRelationshipIndexScan"
UNKNOWN = re.compile(r"The (property|label|relationship type) `\w+` does not exist")
NOT_EXPLAINED = {
    *("await_index", "database_name", "drop_vector_index", "gds_version", "has_gds", "indexes", "unique_constraints"),
    "create_vector_index",
    *("server", "try_index", "vector_index"),
}

EXPLAINED = sorted(set(queries()) - NOT_EXPLAINED)

# on an empty store, these may begin at the first id of the page instead, as their filters compare it
SOUGHT_BY_PAGE = {"communities_by_id", "episodes_by_id", "merges_by_id", "recalls_by_id"}


@pytest.fixture(scope="module")
def store(empty_neo4j_of_module: str) -> Generator[Neo4jBackend, None, None]:
    """A store with nothing in it: a plan that is made then serves until the server looks at its statistics again."""
    store = open_backend(empty_neo4j_of_module)
    forget_plans(empty_neo4j_of_module)
    yield store
    store.close()


def texts_of(name: str) -> list[str]:
    """Return a query without its optional parts, with each of them, and with all."""
    parts = optional_parts(name)
    chosen = [frozenset[str](), *(frozenset([part]) for part in sorted(parts)), parts]
    return [query(name, each) for each in dict.fromkeys(chosen)]


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_query_scans_no_label_and_no_type(store: Neo4jBackend, name: str) -> None:
    scans = {*SCANS, *SCANS_OF_EDGES, *SCANS_OF_TYPES, *SCANS_OF_EDGE_INDEXES}
    for text in texts_of(name):
        operators = list(operators_of(explain(store, text, {"q": {"limit": 1, "per_node": 1}}).plan))
        assert operators
        assert [operator for operator in operators if operator in scans] == [], text


def test_a_node_is_sought_by_its_id(store: Neo4jBackend) -> None:
    """On an empty store, a scan of the index costs as little; the plan would then serve while the store is filled."""

    def is_sought(text: str) -> bool:
        operators = operators_of(explain(store, text, {"q": {"limit": 1, "per_node": 1}}).plan)
        return not {"NodeUniqueIndexSeek", "NodeUniqueIndexSeek(Locking)"}.isdisjoint(operators)

    names = [name for name in EXPLAINED if ":Graphmem(id)" in query(name)]
    assert len(names) > 30
    assert {name for name in names if not all(map(is_sought, texts_of(name)))} <= SOUGHT_BY_PAGE


def test_a_query_contains_the_parts_that_a_call_gives() -> None:
    values = {"kinds": ["event"], "relations": None, "active": True, "past": False, "slots": []}
    assert given("edges_of_scopes", values) == {"kinds", "active", "slots"}
    text = query("edges_of_scopes", given("edges_of_scopes", values))
    assert "$q.kinds" in text
    assert "$q.slots" in text
    assert "$q.relations" not in text
    assert "/*" not in text


@pytest.mark.parametrize("name", sorted(queries()))
def test_a_match_by_id_has_the_hint_that_seeks_it(name: str) -> None:
    matches = [line for line in query(name).splitlines() if "MATCH (" in line and ":Graphmem {id: " in line]
    assert [line for line in matches if "USING INDEX SEEK" not in line] == []


def test_the_facts_of_an_episode_are_not_sought_among_all_facts(store: Neo4jBackend) -> None:
    operators = set(operators_of(explain(store, query("edges_of_episodes"), {"q": {}}).plan))
    assert "ProcedureCall" in operators
    assert [operator for operator in operators if "Index" in operator or "Scan" in operator] == []


def details_of(plan: Any) -> Iterator[str]:
    """Yield what each operator of a plan works on."""
    yield plan["args"].get("Details", "")
    for child in plan.get("children", []):
        yield from details_of(child)


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("episodes_of_sessions", "session_key = key"),
        ("episodes_by_session_prefix", "session_key STARTS WITH begin"),
        ("sessions_of_scopes", "session_key IS NOT NULL"),
    ],
)
def test_sessions_are_sought_in_their_index(store: Neo4jBackend, name: str, condition: str) -> None:
    steps = list(details_of(explain(store, query(name), {"q": {"limit": 1}}).plan))
    assert any(f"(scope, session_key, id) WHERE scope = scope AND {condition} AND" in step for step in steps)


@pytest.mark.usefixtures("store")
def test_queries_use_names_that_the_schema_has(empty_neo4j_of_module: str) -> None:
    """A query with an unknown name is planned again once a row has that name, and Browser shows a warning for it."""
    unknown: set[str] = set()
    with connect(empty_neo4j_of_module).session(notifications_min_severity="WARNING") as session:
        for text in (text for name in EXPLAINED for text in texts_of(name)):
            summary = session.run(cast("Any", f"EXPLAIN {text}"), q={"limit": 1, "per_node": 1}).consume()
            unknown |= {match[0] for status in summary.gql_status_objects if (match := UNKNOWN.search(str(status)))}
    assert unknown == set()


@pytest.mark.parametrize("name", sorted(set(QUERIES) - READS_A_WHOLE_INDEX))
def test_a_saved_query_scans_nothing(store: Neo4jBackend, name: str) -> None:
    operators = list(operators_of(explain(store, saved()[name], PARAMETERS).plan))
    assert operators
    assert [operator for operator in operators if "Scan" in operator] == []


@pytest.mark.parametrize("name", queries())
def test_a_query_begins_with_what_it_is_for(name: str) -> None:
    from importlib.resources import files

    first = files("graphmem_cypher").joinpath("queries", f"{name}.cypher").read_text(encoding="utf-8").split("\n")[0]
    assert first.startswith("// ")
    assert first.endswith(".")
