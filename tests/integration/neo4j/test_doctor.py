"""What `doctor` tells of a store on Neo4j, and what it tells when somebody changed the database by hand."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import LiteralString, cast

import pytest

from graphmem.adapters.cli import main
from graphmem.errors import BackendUnavailable
from graphmem.models import Changes
from graphmem.ontology import ENTITY_TYPES
from graphmem_neo4j import Neo4jBackend, open_backend
from graphmem_neo4j.diagnostics import TYPE_LABELS
from graphmem_neo4j.rows import type_labels
from tests.integration.neo4j.support import SCOPE, ask, drop_schema, edge, entity, of

INDEX = "CREATE INDEX graphmem_sessions IF NOT EXISTS FOR (n:Graphmem) ON (n.scope, n.session_key, n.id)"


@pytest.fixture
def store(empty_neo4j_url: str) -> Generator[Neo4jBackend, None, None]:
    store = open_backend(empty_neo4j_url)
    yield store
    store.close()


def diagnosis(store: Neo4jBackend) -> dict[str, tuple[bool, str]]:
    return {what: (well, detail) for what, well, detail in store.diagnose()}


def test_all_is_well_on_a_server_as_it_should_be(store: Neo4jBackend) -> None:
    found = diagnosis(store)
    assert [what for what, (well, _) in found.items() if not well] == []
    assert "database neo4j, user neo4j" in found["place"][1]
    assert found["Neo4j"][1].startswith("5.26.")
    assert found["Neo4j"][1].endswith(" community")
    assert found["Graph Data Science"][1].startswith("2.13.")
    assert found["round trip"][1].partition(" ")[2].startswith("ms")
    assert found["time limit"][1].startswith("120 s")


def test_examining_leaves_nothing_behind(store: Neo4jBackend) -> None:
    def shape() -> list[object]:
        indexes = ask(store, "SHOW INDEXES YIELD name RETURN name ORDER BY name")
        return [*indexes, *ask(store, "MATCH (n) RETURN count(n)"), *ask(store, "CALL db.labels()")]

    before = shape()
    store.diagnose()
    assert shape() == before


def test_a_database_without_a_schema_is_examined_and_left_without(
    store: Neo4jBackend, empty_neo4j_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    drop_schema(store)
    assert examine(empty_neo4j_url, capsys)["schema"].startswith("none yet: the first command that opens the store")
    assert ask(store, "SHOW INDEXES YIELD name WHERE name STARTS WITH 'graphmem_' RETURN name") == []
    assert ask(store, "MATCH (n:Graphmem) RETURN n") == []
    open_backend(empty_neo4j_url).close()
    assert "newest" in examine(empty_neo4j_url, capsys)["schema"]


def test_an_older_schema_is_examined_and_left(
    store: Neo4jBackend, empty_neo4j_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(store, "MATCH (m:Graphmem) WHERE m.migration > 16 DELETE m")
    try:
        assert examine(empty_neo4j_url, capsys)["schema"].startswith("number 16: the next command")
        assert ask(store, "MATCH (m:Graphmem) RETURN max(m.migration)") == [16]
    finally:
        open_backend(empty_neo4j_url).close()


def examine(url: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what `graphmem doctor` tells of each part of a store that is as it should be."""
    with pytest.raises(SystemExit) as ended:
        main(("doctor", "--store", url, "--json"))
    assert not ended.value.code
    return {check["name"]: check["detail"] for check in json.loads(capsys.readouterr().out)["checks"]}


def test_a_dropped_index_is_named_with_the_statement_that_makes_it_again(store: Neo4jBackend) -> None:
    ask(store, "DROP INDEX graphmem_sessions")
    well, detail = diagnosis(store)["indexes"]
    assert not well
    assert detail == f"1 missing; run in Browser or cypher-shell: {INDEX};"
    ask(store, cast("LiteralString", detail.partition(": ")[2].rstrip(";")))
    ask(store, "CALL db.awaitIndexes(60)")
    assert diagnosis(store)["indexes"][0]


def test_a_dropped_constraint_is_named(store: Neo4jBackend) -> None:
    ask(store, "DROP CONSTRAINT graphmem_semantic_id")
    well, detail = diagnosis(store)["indexes"]
    ask(store, cast("LiteralString", detail.partition(": ")[2].rstrip(";")))
    assert (well, "graphmem_semantic_id" in detail) == (False, True)
    assert diagnosis(store)["indexes"][0]


def test_an_index_of_others_with_a_name_of_graphmem_is_named(store: Neo4jBackend) -> None:
    ask(store, "DROP INDEX graphmem_sessions")
    ask(store, "CREATE INDEX graphmem_sessions FOR (d:Doc) ON (d.body)")
    try:
        well, detail = diagnosis(store)["indexes"]
        assert (well, "graphmem_sessions is one of Doc (body)" in detail) == (False, True)
    finally:
        ask(store, "DROP INDEX graphmem_sessions")
        ask(store, INDEX)
        ask(store, "CALL db.awaitIndexes(60)")


def test_an_equal_index_of_others_serves_as_well(store: Neo4jBackend) -> None:
    ask(store, "DROP INDEX graphmem_sessions")
    ask(store, "CREATE INDEX theirs FOR (n:Graphmem) ON (n.scope, n.session_key, n.id)")
    ask(store, "CALL db.awaitIndexes(60)")
    try:
        assert diagnosis(store)["indexes"][0]
    finally:
        ask(store, "DROP INDEX theirs")
        ask(store, INDEX)
        ask(store, "CALL db.awaitIndexes(60)")


def test_the_labels_of_entities_are_those_of_the_default_ontology() -> None:
    assert {label for kind in ENTITY_TYPES for label in type_labels(kind)} == TYPE_LABELS


def test_constraints_of_others_that_may_refuse_writes_are_named(store: Neo4jBackend) -> None:
    ask(store, "CREATE CONSTRAINT their_people FOR (p:Person) REQUIRE p.name IS UNIQUE")
    ask(store, "CREATE CONSTRAINT their_mails FOR (p:Person) REQUIRE p.mail IS UNIQUE")
    ask(store, "CREATE CONSTRAINT their_docs FOR (d:Doc) REQUIRE d.name IS UNIQUE")
    try:
        well, detail = diagnosis(store)["constraints"]
    finally:
        for name in ("their_people", "their_mails", "their_docs"):
            ask(store, "DROP CONSTRAINT $name", name=name)
    assert (well, detail.partition(";")[0]) == (
        False,
        "of others: their_people on :Person (name): they may refuse writes",
    )


def test_a_search_without_its_index_says_who_knows_more(store: Neo4jBackend) -> None:
    [made] = ask(store, "SHOW INDEXES YIELD name, createStatement WHERE name = 'graphmem_words' RETURN createStatement")
    ask(store, "DROP INDEX graphmem_words")
    try:
        with pytest.raises(BackendUnavailable, match=r"an index is missing .* graphmem doctor"):
            store.search_entities([SCOPE], words=["anna"], phrases=[], limit=5)
    finally:
        ask(store, made)
        ask(store, "CALL db.awaitIndexes(60)")


def test_scopes_with_data_are_counted(store: Neo4jBackend) -> None:
    anna, berta = entity("Anna"), entity("Berta")
    store.write(SCOPE, of(anna, berta))
    store.write(SCOPE, Changes(edges=(edge(anna, berta),)))
    assert diagnosis(store)["reading"] == (True, "allowed; scopes with data: 1")
