"""A graph that others edited by Cypher: what is read of it, and what an error names."""

from __future__ import annotations

import io
from collections.abc import Generator
from datetime import UTC, datetime
from typing import LiteralString

import pytest

from graphmem import GraphMemError, GraphMemory
from graphmem.testing.rows import home
from graphmem_neo4j import Neo4jBackend, open_backend
from tests.integration.neo4j.support import ask


@pytest.fixture
def store(neo4j_url: str) -> Generator[Neo4jBackend, None, None]:
    store = open_backend(neo4j_url)
    yield store
    store.close()


@pytest.fixture
def memory(neo4j_url: str) -> Generator[GraphMemory, None, None]:
    with GraphMemory.open(neo4j_url, scope=home(), background=False, extractor="none") as memory:
        memory.add_facts([("Ada", "works_at", "Globex"), ("Ada", "lives_in", "Oslo"), ("Bob", "works_at", "Globex")])
        yield memory


@pytest.mark.parametrize("value", ["date('2026-01-01')", "localdatetime('2026-01-01T00:00')"])
def test_an_end_without_a_time_zone_is_read_as_utc(
    store: Neo4jBackend, memory: GraphMemory, value: LiteralString
) -> None:
    ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'ada'})-[r:SEMANTIC {relation: 'works_at'}]->() "
        f"SET r.valid_to = {value}, r.expired_at = datetime(), r.graphmem_active = null",
        scope=home().key,
    )
    assert "Oslo" in [fact.target for fact in memory.recall("Where does Ada live?")]
    ends = {fact.target: fact.valid_to for fact in memory.history("Ada")}
    assert ends["Globex"] == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_node_without_the_properties_of_an_entity_is_named(store: Neo4jBackend, memory: GraphMemory) -> None:
    before = memory.stats()
    ask(
        store,
        "CREATE (:Entity:Graphmem:Person {name: 'By hand', scope: $scope, id: $id})",
        scope=home().key,
        id=f"zzz-{home().key}",
    )
    named = rf"\(:Entity {{id: 'zzz-{home().key}'}}\) lacks the property 'canonical_name'.* DETACH DELETE"
    for read in (memory.entities, lambda: memory.admin.export(io.StringIO())):
        with pytest.raises(GraphMemError, match=named):
            read()
    assert memory.stats() == before
    assert memory.recall("Where does Ada live?")


def test_an_export_without_the_deleted_nodes_can_be_imported(store: Neo4jBackend, memory: GraphMemory) -> None:
    memory.remember("Bob likes tea.")
    memory.search("Where does Ada live?")  # builds the index
    ask(store, "MATCH (x:Graphmem {scope: $scope, canonical_name: 'globex'}) DETACH DELETE x", scope=home().key)
    ask(store, "MATCH (p:Episode {scope: $scope}) WHERE p.text CONTAINS 'Ada' DETACH DELETE p", scope=home().key)
    file = io.BytesIO()
    written = memory.admin.export(file)
    assert written.left_out >= 3  # the entity and its facts in the index, the episode in the fact that stays
    assert "references" in [check.name for check in memory.admin.doctor() if not check.ok]
    file.seek(0)
    with GraphMemory.open("memory://by-hand", scope=home(), background=False, extractor="none") as other:
        assert other.admin.import_(file).counts == written.counts
        assert other.admin.checksum() == written.checksum == memory.admin.checksum()
        assert [(fact.target, fact.episode_ids) for fact in other.history("Ada")] == [("Oslo", ())]
