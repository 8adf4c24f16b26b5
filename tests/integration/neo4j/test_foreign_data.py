"""A database with other people's data in it: graphmem reads, counts and changes its own, and only that."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.errors import Conflict, GraphMemError
from graphmem.models import AsOf, Changes, CommunityQuery, EdgeQuery, EntityQuery, EpisodeQuery, RecallQuery, Scope
from graphmem_neo4j import Neo4jBackend, open_backend
from tests.integration.neo4j.support import MOMENT, SCOPE, ask, edge, entity, of

THEIRS = """
CREATE (a:Entity:Person {id: 7, scope: $scope, name: 'Foreign Anna', canonical_name: 'anna', entity_type: 'person',
        alias: 'anna', entity_id: 'x', name_words: 'anna', recorded_at: 'yesterday', valid_from: 12, archived_at: true,
        foreign: 1})
CREATE (b:Entity:Person {id: '', scope: [$scope], name: 'Foreign Berta', foreign: 2})
CREATE (p:Episode {id: 'ep', scope: $scope, text: 'Foreign words', session_id: 's', session_key: 's', queue: $scope,
        external_id: '1', external_key: '1', foreign: 3})
CREATE (c:Community:Scope:Migration {id: 'c', scope_key: $scope, migration: 9999, foreign: 4})
CREATE (i:IndexEntry {scope: $scope, index_kind: 'episode', index_key: '1', position: 1, complete: true, foreign: 10})
CREATE (t:Recall {id: 't', scope: $scope, query: 'Foreign', foreign: 11})-[:ACTIVATED {score: 'high', foreign: 12}]->(a)
CREATE (a)-[:SEMANTIC {scope: $scope, id: 'r', relation: 'knows', fact: 'Foreign fact', valid_from: 3, foreign: 5}]->(b)
CREATE (a)-[:TEMPORAL {scope: $scope, recorded_at: 'never', foreign: 6}]->(b)
CREATE (a)-[:CAUSAL {confidence: 'much', foreign: 7}]->(b)
CREATE (a)-[:IN_COMMUNITY {foreign: 8}]->(c)
CREATE (p)-[:MENTIONS {surface: 3, foreign: 9}]->(a)
"""
SCHEMA = (
    "CREATE CONSTRAINT foreign_person IF NOT EXISTS FOR (n:Person) REQUIRE n.ssn IS UNIQUE",
    "CREATE INDEX foreign_entity IF NOT EXISTS FOR (n:Entity) ON (n.name)",
    "CREATE INDEX foreign_semantic IF NOT EXISTS FOR ()-[r:SEMANTIC]-() ON (r.relation)",
    "CREATE FULLTEXT INDEX foreign_words IF NOT EXISTS FOR (n:Entity|Episode) ON EACH [n.name, n.text]",
)
NODES = "MATCH (n) WHERE n.foreign IS NOT NULL RETURN [elementId(n), labels(n), properties(n)] ORDER BY n.foreign"
EDGES = (
    "MATCH (s)-[r]->(t) WHERE r.foreign IS NOT NULL RETURN [elementId(r), type(r), properties(r)] ORDER BY r.foreign"
)
CLEAR = "MATCH (n) WHERE n.foreign IS NOT NULL DETACH DELETE n"
INDEXES = "SHOW INDEXES YIELD name WHERE name STARTS WITH 'foreign_' RETURN name ORDER BY name"


@pytest.fixture
def store(empty_neo4j_url: str) -> Generator[Neo4jBackend, None, None]:
    store = open_backend(empty_neo4j_url)
    ask(store, CLEAR)
    for statement in SCHEMA:
        ask(store, statement)
    ask(store, "CALL db.awaitIndexes(60)")
    ask(store, THEIRS, scope=SCOPE.key)
    yield store
    ask(store, CLEAR)
    ask(store, "DROP CONSTRAINT foreign_person IF EXISTS")
    for name in ("foreign_entity", "foreign_semantic", "foreign_words"):
        ask(store, "DROP INDEX $name IF EXISTS", name=name)
    store.close()


def theirs(store: Neo4jBackend) -> list[Any]:
    return [*ask(store, NODES), *ask(store, EDGES), *ask(store, INDEXES)]


@pytest.mark.full
def test_a_memory_in_their_database_gives_the_same_as_in_one_of_its_own(
    store: Neo4jBackend, empty_neo4j_url: str
) -> None:
    before = theirs(store)
    assert len(before) == 16

    def work(url: str) -> dict[str, Any]:
        with GraphMemory.open(url, scope=SCOPE, extractor="none") as memory:
            memory.ingest([{"text": "Anna knows Berta.", "speaker": "Anna", "session_id": "s", "external_id": "1"}])
            memory.add_facts([("Anna", "knows", "Berta"), ("Anna", "works_at", "Acme")], occurred_at="2026-01-01")
            memory.add_facts([("Anna", "works_at", "Globex")], occurred_at="2026-03-01")
            stats = memory.stats()
            return {
                "recall": [f.fact for f in memory.recall("Who does Anna know, and where does she work?")],
                "then": [f.fact for f in memory.recall("Anna", as_of="2026-02-01")],
                "context": memory.context("Anna"),
                "history": [f.fact for f in memory.history("Anna")],
                "entities": sorted(e.name for e in memory.entities()),
                "found": sorted(e.name for e in memory.entities("Foreign Anna")),
                "counts": (stats.entities, stats.edges, stats.active_edges, stats.episodes, stats.mentions),
                "waiting": (stats.pending_episodes, stats.failed_episodes),
                "types": (stats.entities_by_type, stats.edges_by_type),
                "scopes": memory.admin.scopes(),
                "diff": [f.fact for f in memory.diff("2026-01-01", "2026-04-01").ended],
            }

    assert work(empty_neo4j_url) == work("memory://")
    assert theirs(store) == before


def test_no_read_of_the_store_returns_or_trips_over_what_is_theirs(store: Neo4jBackend) -> None:
    scopes = [SCOPE, Scope("nobody")]
    past = AsOf(valid=MOMENT, known=MOMENT)
    assert store.find_entities(scopes, EntityQuery(as_of=past)) == []
    assert store.find_edges(scopes, EdgeQuery()) == []
    assert store.find_edges(scopes, EdgeQuery(text="Foreign"), newest_first=True) == []
    assert store.find_episodes(scopes, EpisodeQuery()) == []
    assert store.find_episodes(scopes, EpisodeQuery(session_id="s")) == []
    assert store.find_mentions(scopes) == []
    assert store.search_entities(scopes, words=["foreign", "anna"], phrases=["anna"], limit=10) == []
    assert store.resolve_names(SCOPE, ["anna"]) == []
    assert store.claim_owners(MOMENT) == []
    assert store.find_recalls(scopes, RecallQuery()) == []
    assert store.find_communities(scopes, CommunityQuery()) == []
    assert store.find_unindexed(SCOPE, "episode") == store.find_unindexed(SCOPE, "entity") == []
    assert store.read_index(SCOPE) == []
    assert store.scopes() == []


def test_building_the_search_index_anew_deletes_nothing_of_theirs(store: Neo4jBackend) -> None:
    before = theirs(store)
    store.write(SCOPE, of(entity("Anna")))
    store.reset_index(SCOPE)
    assert theirs(store) == before


def test_their_schema_number_is_not_taken_for_ours(store: Neo4jBackend) -> None:
    assert [what for what, well, _ in store.diagnose() if not well] == []


def test_a_relationship_that_others_drew_between_our_entities_is_no_fact(store: Neo4jBackend) -> None:
    anna, berta = entity("Anna"), entity("Berta")
    store.write(SCOPE, of(anna, berta))
    store.write(SCOPE, Changes(edges=(edge(anna, berta),)))
    ask(
        store,
        "MATCH (a:Graphmem {id: $a}), (b:Graphmem {id: $b}) "
        "CREATE (a)-[:SEMANTIC {foreign: 20, scope: 5}]->(b), (a)-[:CAUSAL {foreign: 21}]->(b)",
        a=anna.id,
        b=berta.id,
    )
    before = ask(store, EDGES)
    assert len(store.expand([SCOPE], [anna.id], hops=2).edge_ids) == 1
    assert [hit.degree for hit in store.search_entities([SCOPE], words=["anna"], phrases=[], limit=5)] == [1]
    assert len(store.find_edges([SCOPE], EdgeQuery(touching=(anna.id,)))) == 1
    assert store.stats(SCOPE).edges == 1
    assert ask(store, EDGES) == before


def test_a_fact_written_by_hand_without_its_properties_is_named(store: Neo4jBackend) -> None:
    anna, berta = entity("Anna"), entity("Berta")
    store.write(SCOPE, of(anna, berta))
    ask(
        store,
        "MATCH (a:Graphmem {id: $a}), (b:Graphmem {id: $b}) "
        "CREATE (a)-[:SEMANTIC {graphmem_id: 'by-hand', scope: $scope, relation: 'knows'}]->(b)",
        a=anna.id,
        b=berta.id,
        scope=SCOPE.key,
    )
    with pytest.raises(GraphMemError, match=r"fact 'by-hand' lacks the property '(fact|confidence)'"):
        store.find_edges([SCOPE], EdgeQuery())
    with pytest.raises(GraphMemError, match=r"fact 'by-hand' lacks the property '(fact|confidence)'"):
        store.find_active_facts(SCOPE)


@pytest.mark.parametrize("name", ["Foreign Anna", "Graphmem Project"])
def test_a_constraint_of_others_that_forbids_our_rows_is_told_as_theirs(store: Neo4jBackend, name: str) -> None:
    ask(store, "MERGE (p:Person {name: $name}) SET p.foreign = coalesce(p.foreign, 99)", name=name)
    ask(store, "CREATE CONSTRAINT foreign_name IF NOT EXISTS FOR (n:Person) REQUIRE n.name IS UNIQUE")
    try:
        with pytest.raises(Conflict, match="a constraint that isn't graphmem's"):
            store.write(SCOPE, of(entity(name)))
    finally:
        ask(store, "DROP CONSTRAINT foreign_name IF EXISTS")
    assert store.find_entities([SCOPE], EntityQuery()) == []
