"""A graph that others edited by Cypher: what is read of it, and what an error names."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from typing import Any, LiteralString, cast

import pytest

from graphmem import GraphMemError, GraphMemory
from graphmem.models import AsOf, EdgeQuery
from graphmem.testing.rows import home
from graphmem_cypher import saved
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


@pytest.mark.parametrize("value", ["date('2025-06-01')", "localdatetime('2025-06-01T00:00')"])
def test_a_fact_whose_end_has_no_time_zone_is_one_of_its_time(
    store: Neo4jBackend, memory: GraphMemory, value: LiteralString
) -> None:
    memory.add_facts([("Eve", "works_at", "Hooli")], occurred_at="2025-01-01")
    ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'eve'})-[r:SEMANTIC {relation: 'works_at'}]->() "
        f"SET r.valid_to = {value}, r.expired_at = datetime(), r.graphmem_active = null",
        scope=home().key,
    )

    def found(as_of: str) -> list[str]:
        return [fact.target for fact in memory.facts("Eve", as_of=as_of)]

    past = store.find_edges([home()], EdgeQuery(versions="past"))
    assert [edge.valid_to for edge in past] == [datetime(2025, 6, 1, tzinfo=UTC)]
    assert not memory.facts("Eve")
    assert [found(day) for day in ("2025-05-31", "2025-06-01")] == [["Hooli"], []]
    assert "Hooli" in memory.recall("Where did Eve work?")[0].fact
    assert [fact.target for fact in memory.diff("2025-05-01", "2025-07-01").ended] == ["Hooli"]


def test_a_fact_whose_end_has_no_time_zone_holds_until_then(store: Neo4jBackend, memory: GraphMemory) -> None:
    ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'ada'})-[r:SEMANTIC {relation: 'works_at'}]->() "
        "SET r.valid_to = date() + duration('P2D'), r.expired_at = datetime(), r.graphmem_active = null",
        scope=home().key,
    )
    assert {fact.target for fact in memory.facts("Ada")} == {"Globex", "Oslo"}


@pytest.mark.parametrize("value", ["datetime('2025-06-01')", "date('2025-06-01')"])
def test_a_fact_that_only_got_an_end_can_be_stated_again(
    store: Neo4jBackend, memory: GraphMemory, value: LiteralString
) -> None:
    memory.add_facts([("Eve", "uses", "Vim")], occurred_at="2025-01-01")
    ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'eve'})-[r:SEMANTIC {relation: 'uses'}]->() "
        f"SET r.valid_to = {value}",
        scope=home().key,
    )
    assert not memory.facts("Eve")
    assert [fact.target for fact in memory.diff("2025-05-01", "2025-07-01").ended] == ["Vim"]
    memory.add_facts([("Eve", "uses", "Vim")], occurred_at="2026-01-01")
    assert [str(fact.valid_from.date()) for fact in memory.history("Eve")] == ["2026-01-01", "2025-01-01"]
    assert [fact.target for fact in memory.facts("Eve")] == ["Vim"]


@pytest.mark.parametrize("value", ["date('2026-01-01')", "localdatetime('2026-01-01T00:00')"])
def test_a_beginning_without_a_time_zone_is_read_as_utc(
    store: Neo4jBackend, memory: GraphMemory, value: LiteralString
) -> None:
    ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'ada'})-[r:SEMANTIC {relation: 'works_at'}]->() "
        f"SET r.valid_from = {value}",
        scope=home().key,
    )
    begins = {fact.valid_from for fact in store.find_active_facts(home())}
    assert datetime(2026, 1, 1, tzinfo=UTC).timestamp() in begins
    memory.admin.refresh_communities()
    known = datetime.now(UTC)
    held = store.find_edges([home()], EdgeQuery(as_of=AsOf(valid=datetime(2026, 1, 2, tzinfo=UTC), known=known)))
    assert [edge.relation for edge in held] == ["works_at"]


def test_a_beginning_that_is_a_text_is_named(store: Neo4jBackend, memory: GraphMemory) -> None:
    ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'ada'})-[r:SEMANTIC {relation: 'works_at'}]->() "
        "SET r.valid_from = 'last year'",
        scope=home().key,
    )
    for read in (lambda: store.find_active_facts(home()), lambda: memory.facts("Ada")):
        with pytest.raises(GraphMemError, match=r"fact .*last year.* changed by hand"):
            read()
    with store.database.session() as session:
        rows = list(session.run(cast("Any", saved()["19_health"]), scope=home().key))
    assert [row["all"] for row in rows if row["kind"] == "facts written by hand with values of another type"] == [1]


_FACT = "MATCH (:Graphmem {scope: $scope, canonical_name: 'ada'})-[r:SEMANTIC {relation: 'works_at'}]->() "
_NODE = "MATCH (n:Graphmem {scope: $scope, canonical_name: 'ada'}) "


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (f"{_FACT} SET r.confidence = 'high'", "fact .*'confidence' \\('high'\\)"),
        (f"{_FACT} SET r.retrieval_count = 'often'", "fact .*'retrieval_count'"),
        (f"{_FACT} REMOVE r.fact", "fact .*lacks the property 'fact'"),
        (f"{_NODE} SET n.confidence = 'high'", "Entity.*'confidence' \\('high'\\)"),
        (f"{_NODE} SET n.name = 7", "Entity.*'name' \\(7\\)"),
        (f"{_NODE} SET n.summary = ['a']", "Entity.*'summary'"),
        ("MATCH (n:Episode {scope: $scope}) SET n.text = 5", "Episode.*'text' \\(5\\)"),
        (
            "MATCH (n:Episode {scope: $scope})-[m:MENTIONS]->() REMOVE m.seen_at",
            "MENTIONS.*lacks .*'seen_at'",
        ),
        ("MATCH (n:Episode {scope: $scope})-[m:MENTIONS]->() SET m.seen_at = 'then'", "MENTIONS.*'then'"),
        ("MATCH (n:Merge {scope: $scope}) SET n.body = 'x'", "Merge.*can't be read"),
    ],
)
def test_a_value_of_another_type_is_named_by_each_call_that_reads_it(
    store: Neo4jBackend, memory: GraphMemory, edit: LiteralString, named: str
) -> None:
    memory.add_facts([("Adah", "likes", "Tea")])
    memory.admin.merge("Adah", into="Ada")
    ask(store, edit, scope=home().key)
    calls: dict[str, Callable[[], object]] = {
        "recall": lambda: memory.recall("Where does Ada work?"),
        "context": lambda: memory.context("Ada"),
        "facts": lambda: memory.facts("Ada"),
        "communities": memory.admin.refresh_communities,
        "merges": memory.admin.merges,
        "search": lambda: memory.search("Where does Ada work?"),
        "export": lambda: memory.admin.export(io.BytesIO()),
        "add_facts": lambda: memory.add_facts([("Ada", "works_at", "Globex"), ("Ada", "works_at", "Initech")]),
        "merge": lambda: memory.admin.merge("Bob", into="Ada"),
        "forget": lambda: memory.forget("Ada"),
    }
    told: list[str] = []
    for call in calls.values():
        try:
            call()
        except GraphMemError as error:  # anything else fails the test
            told.append(str(error))
    assert told
    assert [message for message in told if not re.search(named, message)] == []
    ask(store, "MATCH (n:Merge {scope: $scope}) DETACH DELETE n", scope=home().key)


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        (f"{_FACT} SET r.confidence = 'high'", "references"),
        ("MATCH (n:Episode {scope: $scope}) SET n.text = 5", "queue"),
    ],
)
def test_doctor_names_what_it_cannot_read(
    store: Neo4jBackend, memory: GraphMemory, edit: LiteralString, check: str
) -> None:
    memory.remember("Ada likes tea.")
    ask(store, edit, scope=home().key)
    checks = {found.name: found for found in memory.admin.doctor()}
    assert not checks[check].ok
    assert "changed by hand" in checks[check].detail
    assert checks["indexes"].ok


def test_facts_whose_episode_was_deleted_are_stated_again_and_merged(store: Neo4jBackend, memory: GraphMemory) -> None:
    memory.add_facts([("Ada L", "works_at", "Globex"), ("Ada L", "uses", "Vim")])
    ask(store, "MATCH (p:Episode {scope: $scope}) DETACH DELETE p", scope=home().key)
    memory.add_facts([("Ada", "works_at", "Globex")], occurred_at="2024-01-01")
    [merge] = memory.admin.merge("Ada L", into="Ada")
    assert {(fact.relation, fact.target) for fact in memory.facts("Ada")} == {
        ("works_at", "Globex"),
        ("lives_in", "Oslo"),
        ("uses", "Vim"),
    }
    memory.admin.unmerge(merge.id)
    assert {fact.target for fact in memory.facts("Ada L")} == {"Globex", "Vim"}


def test_properties_of_others_stay_on_a_fact_that_is_written_again(store: Neo4jBackend, memory: GraphMemory) -> None:
    memory.add_facts([("Ada L", "uses", "Vim")])
    ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'ada l'})-[r:SEMANTIC]->() "
        "SET r.reviewed_on = date('2026-02-03'), r.reviewers = ['Eve', 'Bob']",
        scope=home().key,
    )
    memory.add_facts([("Ada L", "uses", "Vim")], occurred_at="2024-01-01")
    memory.admin.merge("Ada L", into="Ada")
    rows = ask(
        store,
        "MATCH (:Graphmem {scope: $scope, canonical_name: 'ada'})-[r:SEMANTIC {relation: 'uses'}]->() "
        "RETURN [toString(date(r.valid_from)), toString(r.reviewed_on), r.reviewers]",
        scope=home().key,
    )
    assert rows == [["2024-01-01", "2026-02-03", ["Eve", "Bob"]]]


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


# Data of others on nodes that are merged -----------------------------------------------------------

_OF_OTHERS = """
MATCH (ada:Graphmem {scope: $scope, canonical_name: 'ada'}), (al:Graphmem {scope: $scope, canonical_name: 'ada l'}),
    (bob:Graphmem {scope: $scope, canonical_name: 'bob'})
SET al:Customer, al.crm = 7, al.since = date('2020-01-01'), al.score = 1, ada.score = 2, bob:Customer
CREATE (al)-[:OWNS {count: 3}]->(:Invoice {of: $scope, number: 1}), (al)<-[:PAID_BY]-(:Invoice {of: $scope, number: 2}),
    (al)-[:SAME_AS]->(ada), (al)-[:SEMANTIC {note: 'theirs'}]->(bob), (al)-[:SEES]->(al)
"""
_SEEN = """
MATCH (e:Entity {scope: $scope})
WITH e ORDER BY e.canonical_name
RETURN [e.canonical_name, [label IN labels(e) WHERE label = 'Customer'], e.crm, toString(e.since), e.score,
    COLLECT { MATCH (e)-[r]->(o) WHERE r.graphmem_id IS NULL
        RETURN [type(r), o.canonical_name, o.number, r.count, r.note] ORDER BY type(r) },
    COLLECT { MATCH (e)<-[r]-(o:Invoice) RETURN [type(r), o.number] ORDER BY type(r) }]
"""


@pytest.fixture
def edited(store: Neo4jBackend, memory: GraphMemory) -> Generator[GraphMemory, None, None]:
    memory.add_facts([("Ada L", "works_at", "Globex"), ("Ada L", "uses", "Vim")])
    ask(store, _OF_OTHERS, scope=home().key)
    yield memory
    ask(store, "MATCH (i:Invoice {of: $scope}) DETACH DELETE i", scope=home().key)


def test_a_merge_keeps_what_others_put_on_the_merged_node(store: Neo4jBackend, edited: GraphMemory) -> None:
    [merge] = edited.admin.merge("Ada L", into="Ada")
    moved = merge.foreign
    assert moved is not None
    assert (moved.relationships, moved.labels) == (5, ("Customer",))
    assert (moved.properties, moved.unmoved) == (("crm", "since"), ("score",))
    found = {name: rest for name, *rest in ask(store, _SEEN, scope=home().key)}
    labels, crm, since, score, out, into = found["ada"]
    assert (labels, crm, since, score) == (["Customer"], 7, "2020-01-01", 2)
    assert out == [
        ["OWNS", None, 1, 3, None],
        ["SAME_AS", "ada", None, None, None],
        ["SEES", "ada", None, None, None],
        ["SEMANTIC", "bob", None, None, "theirs"],
    ]
    assert into == [["PAID_BY", 2]]
    assert edited.admin.merges()[0] == merge


def test_an_unmerge_gives_others_their_data_back(store: Neo4jBackend, edited: GraphMemory) -> None:
    before = ask(store, _SEEN, scope=home().key)
    [merge] = edited.admin.merge("Ada L", into="Ada")
    assert ask(store, _SEEN, scope=home().key) != before
    edited.admin.unmerge(merge.id)
    assert ask(store, _SEEN, scope=home().key) == before
    assert ask(store, "MATCH ()-[r]->() WHERE r.graphmem_merges IS NOT NULL RETURN r") == []


def test_what_others_changed_since_a_merge_stays(store: Neo4jBackend, edited: GraphMemory) -> None:
    [merge] = edited.admin.merge("Ada L", into="Ada")
    ask(store, "MATCH (e:Graphmem {scope: $scope, canonical_name: 'ada'}) SET e.crm = 8", scope=home().key)
    edited.admin.unmerge(merge.id)
    found = {name: crm for name, _, crm, *_ in ask(store, _SEEN, scope=home().key)}
    assert (found["ada"], found["ada l"]) == (8, 7)


@pytest.mark.parametrize("first", [0, 1])
def test_merges_into_one_node_are_undone_in_any_order(store: Neo4jBackend, edited: GraphMemory, first: int) -> None:
    before = ask(store, _SEEN, scope=home().key)
    merges = edited.admin.merge(["Ada L", "Bob"], into="Ada")
    edited.admin.unmerge(merges[first].id)
    edited.admin.unmerge(merges[1 - first].id)
    assert ask(store, _SEEN, scope=home().key) == before


def test_a_unique_property_of_others_moves(store: Neo4jBackend, edited: GraphMemory) -> None:
    ask(store, "CREATE CONSTRAINT their_crm IF NOT EXISTS FOR (c:Customer) REQUIRE c.crm IS UNIQUE")
    try:
        [merge] = edited.admin.merge("Ada L", into="Ada")
        edited.admin.unmerge(merge.id)
    finally:
        ask(store, "DROP CONSTRAINT their_crm")
    assert {name: crm for name, _, crm, *_ in ask(store, _SEEN, scope=home().key)}["ada l"] == 7


def test_a_dry_run_of_forget_counts_the_relationships_of_others(store: Neo4jBackend, edited: GraphMemory) -> None:
    before = ask(store, _SEEN, scope=home().key)
    planned = edited.forget("Ada L", dry_run=True)
    assert planned.counts["foreign relationships"] == 5
    assert ask(store, _SEEN, scope=home().key) == before
    assert edited.forget("Ada L").counts == planned.counts
    assert "foreign relationships" not in edited.forget("Globex", dry_run=True).counts
