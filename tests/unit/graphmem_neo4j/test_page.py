"""The tables of docs/reference/neo4j-graph.md: which properties the nodes and relationships have."""

from __future__ import annotations

import re

import pytest

from graphmem_cypher import query
from graphmem_neo4j.rows import FACT_PROPERTIES
from tests.unit.graphmem_neo4j.page import listed_properties

OF_ALL = {"id", "scope", "domain", "project"}


@pytest.mark.parametrize(
    ("label", "name", "begin", "others"),
    [
        ("Entity", "write", "CREATE (e:Graphmem:Entity:", set[str]()),
        ("Episode", "add_episodes", "CREATE (e:Graphmem:Episode", {"claimed_by", "claimed_until"}),
        ("SEMANTIC", "write", "CREATE (s)-[:$(row[2])", {"scope"}),
    ],
)
def test_the_tables_have_what_is_written(label: str, name: str, begin: str, others: set[str]) -> None:
    values = query(name).partition(begin)[2].partition("}")[0]
    written = set(re.findall(r"(\w+): ", values))
    assert len(written) > 15
    assert listed_properties()[label] == written - OF_ALL | others


def test_what_is_kept_on_a_replaced_fact_is_all_but_what_is_written() -> None:
    written = set(re.findall(r"(\w+): ", query("write").partition("CREATE (s)-[:$(row[2])")[2].partition("}")[0]))
    assert written == FACT_PROPERTIES
