"""The saved queries for Neo4j Browser: their form, their plans, and what each of them finds on a filled database."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, cast

import pytest
from neo4j import Record
from neo4j.graph import Node, Path, Relationship

from graphmem.models import (
    Changes,
    Community,
    EdgeQuery,
    EntityQuery,
    EpisodeQuery,
    Membership,
    RecallTrace,
    Scope,
    TracedEpisode,
    TracedFact,
    TracedSeed,
)
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem_cypher import saved, schema, style
from graphmem_neo4j import Neo4jBackend, open_backend
from graphmem_neo4j.rows import type_labels
from tests.integration.neo4j.support import MOMENT, ask, edge, explain, operators_of
from tests.integration.neo4j.team import TEAM, UNREADABLE, WAITING, open_team, tell
from tests.neo4j_server import NoServer, forget_plans
from tests.shared_servers import unavailable
from tests.unit.graphmem_neo4j.page import PAGE, listed_properties

DOCS = pathlib.Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "how-to" / "neo4j.md").read_text("utf-8")
COMMANDS = {name for name, text in saved().items() if re.search(r"^:", text, re.MULTILINE)}
QUERIES = sorted(set(saved()) - COMMANDS)
READS_A_WHOLE_INDEX = {"01_scopes"}  # one entry a scope: that is what it is for
PARAMETERS: dict[str, Any] = {
    "scope": TEAM.key,
    "name": "Maya Chen",
    "other": "Tom Berg",
    "date": "2024-06-01",
    "days": 7.0,  # Browser makes floats of all numbers
    "speaker": "Ravi Menon",
    "query": "",
    "words": "Globex",
}
# with few nodes the server rightly scans them all
CROWD = [(f"Person {n}", "knows", f"Person {n + 1}") for n in range(1500)]

COMMUNITIES = {
    "Globex and Apollo": ["Maya Chen", "Ravi Menon", "Globex", "Apollo", "Neo4j"],
    "Hooli": ["Lena Ortiz", "Tom Berg", "Hooli"],
}

# no query may show what is not graphmem's
OTHERS = """
CREATE (:Entity:Person {id: 'zz', scope: $scope, name: 'Their person', entity_type: 'person'})
    -[:SEMANTIC]->(:Entity:Person {id: 'zzz', scope: $scope, name: 'Their other person', entity_type: 'person'}),
    (:Episode {id: 'zz', scope: $scope, text: 'Theirs', source: 'theirs', speaker: 'Ravi Menon'}),
    (:Recall {id: 'zz', scope: $scope, query: 'theirs'}),
    (:Community {id: 'zz', scope: $scope, name: 'Theirs', level: 0})
WITH 1 AS created LIMIT 1
MATCH (a:Graphmem:Person {scope: $scope, name: 'Maya Chen'}), (b:Graphmem:Person {scope: $scope, name: 'Tom Berg'})
CREATE (a)-[:CAUSAL {note: 'theirs'}]->(b)
"""

Run = Callable[..., list[Record]]


@pytest.fixture(scope="module")
def store(empty_neo4j_of_module: str) -> Generator[Neo4jBackend, None, None]:
    """Yield a store with the team in one scope, and a namesake among many others in another one."""
    with open_team(empty_neo4j_of_module) as memory:
        memory.in_scope("elsewhere").add_facts([("Maya Chen", "works at", "Umbrella"), *CROWD])
        tell(memory)
    store = open_backend(empty_neo4j_of_module)
    store.write(TEAM, groups_and_recalls(store))
    ask(store, OTHERS, scope=TEAM.key)
    forget_plans(empty_neo4j_of_module)  # plans are made for how much there is
    yield store
    store.close()


@pytest.fixture(scope="module")
def run(store: Neo4jBackend) -> Run:
    """Return what runs a saved query as Browser does, and returns its records."""

    def run(query: str, /, **changed: Any) -> list[Record]:
        with store.database.session() as session:
            return list(session.run(cast("Any", saved()[query]), {**PARAMETERS, **changed}))

    return run


# Form


@pytest.mark.parametrize("name", saved())
def test_it_begins_with_its_title_and_then_says_what_it_is_for(name: str) -> None:
    title, purpose = saved()[name].splitlines()[:2]
    assert re.fullmatch(rf"// {name[:2]} [A-Z].*[^.]", title)
    assert re.fullmatch(r"// [A-Z].*", purpose)


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_one_statement_and_says_whether_it_gives_a_picture_or_a_table(name: str) -> None:
    comments, statement = parts(name)
    assert ";" not in statement
    assert re.search(r"A (picture|table)\b", comments)


@pytest.mark.parametrize("name", QUERIES)
def test_it_names_each_of_its_parameters(name: str) -> None:
    comments, statement = parts(name)
    assert set(re.findall(r":param (\w+) =>", comments)) == set(re.findall(r"\$(\w+)", statement))


def test_the_parameters_are_all_set_by_the_first_file() -> None:
    used = {name for query in QUERIES for name in re.findall(r"\$(\w+)", parts(query)[1])}
    assert set(re.findall(r"^  (\w+):", saved()["00_parameters"], re.MULTILINE)) == used == set(PARAMETERS)


def test_titles_differ() -> None:
    titles = [text.splitlines()[0] for text in saved().values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", QUERIES)
def test_it_only_reads(store: Neo4jBackend, name: str) -> None:
    assert explain(store, saved()[name], PARAMETERS).query_type == "r"


@pytest.mark.parametrize("name", QUERIES)
def test_it_scans_no_label_no_type_and_no_whole_index(store: Neo4jBackend, name: str) -> None:
    operators = list(operators_of(explain(store, saved()[name], PARAMETERS).plan))
    assert operators
    allowed = re.compile(r"IndexScan" if name in READS_A_WHOLE_INDEX else r"(?!)")
    assert [operator for operator in operators if "Scan" in operator and not allowed.search(operator)] == []


# What each one finds


def test_scopes_are_listed_with_what_they_hold(run: Run) -> None:
    rows = {row["scope"]: (row["entities"], row["episodes"]) for row in run("01_scopes")}
    assert (rows["team/apollo"], rows["elsewhere"]) == ((16, 5), (1503, 31))


@pytest.mark.parametrize("name", ["Maya Chen", "  maya CHEN ", "\uff2d\uff41\uff59\uff41 Chen"])
def test_what_we_know_are_the_facts_that_hold_now(run: Run, name: str) -> None:
    found = facts_in(run("02_what_we_know", name=name))
    assert found == {
        "Maya Chen works_at Globex",
        "Maya Chen lives_in Boston",
        "Maya Chen leads Apollo",
        "Maya Chen knows Ravi Menon",
    }


def test_what_we_know_of_somebody_without_facts_is_the_one_alone(run: Run) -> None:
    assert [row["x"]["name"] for row in run("02_what_we_know", name="Vim")] == ["Vim"]


def test_two_are_connected_by_the_shortest_ways_over_facts_that_hold(run: Run) -> None:
    paths = [names_on(row["path"]) for row in run("03_how_connected")]
    assert sorted(paths[:2]) == [
        ["Maya Chen", "Apollo", "Lena Ortiz", "Tom Berg"],
        ["Maya Chen", "Ravi Menon", "Lena Ortiz", "Tom Berg"],
    ]
    assert [len(path) for path in paths[2:]] == [5]


def test_a_fact_that_ended_connects_nobody(run: Run) -> None:
    assert run("03_how_connected", other="Initech") == []


def test_as_of_a_date_sees_what_was_true_then(run: Run) -> None:
    assert facts_in(run("04_as_of")) == {"Maya Chen works_at Initech", "Maya Chen lives_in Boston"}


def test_changes_are_what_was_learned_and_what_ended(run: Run) -> None:
    rows = run("05_what_changed")
    assert sum(row["change"] == "learned" for row in rows) == 19
    [ended] = [row for row in rows if row["change"] == "ended"]
    assert (ended["fact"], ended["until"]) == ("Maya Chen works at Initech", "2025-06-01")


def test_nothing_changed_before_anything_was_told(run: Run) -> None:
    assert run("05_what_changed", days=0.0) == []


def test_a_superseded_fact_comes_with_the_one_that_took_its_place(run: Run) -> None:
    [row] = run("06_what_replaced_what")
    assert [row[name]["name"] for name in ("s", "before", "after")] == ["Maya Chen", "Initech", "Globex"]
    assert row["old"]["superseded_by"] == row["new"]["graphmem_id"]


def test_a_contradiction_is_what_says_so_and_two_answers_where_there_can_be_one(
    store: Neo4jBackend, run: Run, empty_neo4j_of_module: str
) -> None:
    assert facts_in(run("07_contradictions")) == {"Plan of May conflicts_with Move to Neo4j"}
    scope = Scope("torn")
    with open_team(empty_neo4j_of_module) as memory:
        memory.in_scope(scope).add_facts([("Tom Berg", "lives in", "Lisbon"), ("Tom Berg", "visited", "Porto")])
    named = {entity.name: entity for entity in store.find_entities([scope], EntityQuery())}
    second = edge(named["Tom Berg"], named["Porto"], "lives_in")
    store.write(scope, Changes(edges=(second,)))  # an ontology of one's own may let it in

    found = facts_in(run("07_contradictions", scope=scope.key))

    assert found == {"Tom Berg lives_in Lisbon", "Tom Berg lives_in Porto"}


def test_the_contradictions_look_at_the_single_valued_relations_of_the_ontology() -> None:
    [listed] = re.findall(r"WITH \[(.*)\] AS single", saved()["07_contradictions"])
    assert set(re.findall(r"'(\w+)'", listed)) == DEFAULT_ONTOLOGY.single_valued


def test_the_timeline_has_every_version_and_what_became_of_it(run: Run) -> None:
    rows = run("08_timeline")
    assert [(row["from"], row["state"], row["target"]) for row in rows] == [
        ("2023-09-01", "holds", "Boston"),
        ("2024-01-01", "replaced", "Initech"),
        ("2025-06-01", "holds", "Globex"),
        ("2025-06-02", "holds", "Ravi Menon"),
        ("2025-07-01", "holds", "Apollo"),
    ]


def test_the_timeline_says_of_an_end_without_a_successor_that_it_ended(run: Run) -> None:
    states = {row["target"]: row["state"] for row in run("08_timeline", name="Ravi Menon")}
    assert states["Vim"] == "ended"


def test_the_timeline_says_of_an_event_that_it_happened(store: Neo4jBackend, run: Run) -> None:
    ask(store, "MATCH ()-[r:SEMANTIC {scope: $scope, relation: 'uses'}]->(:Tool) SET r.kind = 'event'", scope=TEAM.key)
    try:
        states = {row["target"]: row["state"] for row in run("08_timeline", name="Ravi Menon")}
    finally:
        ask(store, "MATCH ()-[r:SEMANTIC {scope: $scope, kind: 'event'}]->() REMOVE r.kind", scope=TEAM.key)
    assert states["Vim"] == "happened"


def test_facts_come_with_the_episodes_that_state_them(run: Run) -> None:
    rows = run("09_where_from", name="Neo4j")
    assert {row["p"]["text"] for row in rows} == {"Ravi and I picked Neo4j for Apollo."}
    assert facts_in(rows) == {"Ravi Menon chose Neo4j", "Apollo uses Neo4j"}
    assert all(row["m"].start_node.element_id == row["p"].element_id for row in rows)


def test_what_somebody_said_comes_with_their_words(run: Run) -> None:
    [row] = run("10_what_somebody_said")
    assert (row["source"], row["relation"], row["target"]) == ("Lena Ortiz", "reviews", "Apollo")
    assert row["words"] == "Lena from Hooli reviews our data model."
    assert row["holds"]


def test_sources_are_counted_by_kind_and_speaker(run: Run) -> None:
    rows = {(row["source"], row["speaker"]): (row["episodes"], row["waiting"]) for row in run("11_sources")}
    assert rows == {
        ("message", "Maya Chen"): (2, 1),
        ("message", "Ravi Menon"): (1, 0),
        ("message", "Lena Ortiz"): (1, 1),
        ("triple", None): (1, 0),
    }


def test_the_most_connected_come_first_with_facts_that_hold(run: Run) -> None:
    rows = run("12_most_connected")
    counts = {row["e"]["name"]: row["facts"] for row in rows}
    assert max(counts.values()) == counts["Maya Chen"] == counts["Ravi Menon"] == 5
    assert len({row["e"].element_id for row in rows}) == 10
    assert "Maya Chen works_at Initech" not in facts_in(rows)


def test_who_knows_whom_are_facts_between_persons(run: Run) -> None:
    assert facts_in(run("13_who_knows_whom")) == {
        "Maya Chen knows Ravi Menon",
        "Ravi Menon married_to Lena Ortiz",
        "Lena Ortiz knows Tom Berg",
    }


def test_communities_come_with_their_members_and_the_facts_between_them(run: Run) -> None:
    rows = run("14_communities")
    members = {(row["c"]["name"], row["e"]["name"]) for row in rows}
    assert members == {(name, member) for name, of in COMMUNITIES.items() for member in of}
    assert facts_in(rows) == {"Ravi Menon married_to Lena Ortiz", "Lena Ortiz reviews Apollo"}


def test_a_recall_is_explained_by_its_seeds_its_facts_and_its_episodes(run: Run) -> None:
    rows = run("15_why_recalled")
    assert {row["q"]["query"] for row in rows} == {"Who picked Neo4j?"}
    found = [(row["a"]["seed"], row["e"]["name"]) for row in rows if row["a"] is not None]
    assert sorted(found) == [(False, "Ravi Menon"), (True, "Neo4j")]
    assert facts_in(rows) == {"Ravi Menon chose Neo4j"}
    assert [row["p"]["text"] for row in rows if row["p"] is not None] == ["Ravi and I picked Neo4j for Apollo."]


def test_a_recall_is_found_by_words_of_its_question(run: Run) -> None:
    assert {row["q"]["query"] for row in run("15_why_recalled", query="TOM")} == {"Where is Tom?"}


def test_waiting_and_failed_episodes_say_why(run: Run) -> None:
    rows = {row["words"]: (row["state"], row["attempts"], row["error"]) for row in run("16_waiting_episodes")}
    assert rows.keys() == {UNREADABLE, WAITING}
    assert rows[WAITING] == ("waiting", 0, None)
    state, attempts, error = rows[UNREADABLE]
    assert (state, attempts) == ("failed", 1)
    assert error.startswith("RuntimeError: no page is so dark [")  # with how often and since when


def test_a_name_of_several_entities_is_told_with_their_types(run: Run) -> None:
    [row] = run("17_same_name")
    assert row["name"] == "apollo"
    assert row["entities"] == ["Apollo (project, 4 facts)", "Apollo (tool, 1 fact)"]


def test_the_last_episodes_come_with_whom_they_mention(run: Run) -> None:
    rows = run("18_last_episodes")
    assert {row["p"]["text"] for row in rows} >= {WAITING, "Ravi and I picked Neo4j for Apollo."}
    mentioned = {row["e"]["name"] for row in rows if row["p"]["speaker"] == "Ravi Menon"}
    assert mentioned == {"Lena Ortiz", "Apollo"}


def test_health_counts_agree_with_the_memory_s_own(run: Run, empty_neo4j_of_module: str) -> None:
    rows = run("19_health")
    with open_team(empty_neo4j_of_module) as memory:
        stats = memory.stats()

    def counts(what: str, column: str) -> dict[str, int]:
        return {row["kind"]: row[column] for row in rows if row["what"] == what}

    assert counts("entities", "all") == dict(stats.entities_by_type)
    assert counts("facts", "all") == dict(stats.edges_by_type)
    assert sum(counts("facts", "active").values()) == stats.active_edges
    assert counts("episodes", "all") == {"message": 4, "triple": 1}
    assert counts("check", "all") == {
        "episodes that failed": 1,
        "entities with neither facts nor mentions": 0,
        "facts across scopes": 0,
        "facts written by hand without all properties": 0,
        "facts written by hand with values of another type": 0,
    }


def test_inferred_facts_come_with_their_premises(run: Run, empty_neo4j_of_module: str) -> None:
    scope = Scope("implied")
    with open_team(empty_neo4j_of_module) as memory:
        there = memory.in_scope(scope)
        there.add_facts([("Tom Berg", "works at", "Dockyard"), ("Dockyard", "part of", "Harbour")])
        there.admin.infer()
    rows = run("20_inferred", scope=scope.key, name="Tom Berg")
    assert {row["r"]["fact"] for row in rows} == {"Tom Berg works at Harbour"}
    assert {row["premise"]["fact"] for row in rows} == {"Tom Berg works at Dockyard", "Dockyard part of Harbour"}
    assert {row["r"]["kind"] for row in rows} == {"inferred"}
    assert facts_in(run("07_contradictions", scope=scope.key)) == set()


def test_words_find_entities_by_any_of_their_names_and_episodes(run: Run) -> None:
    found = [(row["what"], row["kind"], row["text"]) for row in run("21_find_by_words", words=" NEO4J  pick ")]
    assert found == [("episode", "Maya Chen", "Ravi and I picked Neo4j for Apollo.")]
    found = [(row["what"], row["kind"], row["text"]) for row in run("21_find_by_words", words="lena")]
    assert found[0] == ("entity", "person", "Lena Ortiz")
    assert ("episode", "Ravi Menon", "Lena from Hooli reviews our data model.") in found


@pytest.mark.parametrize("name", [name for name in QUERIES if "$scope" in saved()[name]])
def test_another_scope_is_not_seen(run: Run, name: str) -> None:
    seen = {text for row in run(name, name="Umbrella", other="Maya Chen") for text in texts_in(row.values())}
    assert "Umbrella" not in seen


# The style


def test_the_style_has_a_color_and_a_caption_for_every_label_of_ours() -> None:
    kinds = {label for kind in DEFAULT_ONTOLOGY.entity_types for label in type_labels(kind)}
    rules = rules_of(style())
    for label in {"Graphmem", "Entity", "Episode", "Alias", "Scope", "Migration", "Community", "Recall", *kinds}:
        assert {"color", "caption", "text-color-internal"} <= rules["node"].keys() | rules[f"node.{label}"].keys()
        assert "caption" in rules[f"node.{label}"]


def test_the_style_names_what_all_nodes_carry_first_for_later_rules_win() -> None:
    order = list(rules_of(style()))
    assert order[:2] == ["node", "node.Graphmem"]
    assert order.index("node.Entity") < order.index("node.Person")


# The page about them


def test_the_statements_of_the_page_run_one_after_the_other(store: Neo4jBackend) -> None:
    statements: list[str] = re.findall(r"^```cypher\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if any("gds." in statement for statement in statements) and store.community_detector is None:
        unavailable(NoServer("the server has no Graph Data Science"))
    for statement in statements:
        with store.database.session() as session:
            found = list(session.run(cast("Any", statement.replace("'default'", f"'{TEAM.key}'"))))
        assert found
        assert not any("heir" in text for row in found for text in texts_in(row.values()))  # OTHERS


def test_the_tables_of_the_page_have_the_properties_that_are_there(store: Neo4jBackend) -> None:
    nodes = "CALL db.schema.nodeTypeProperties() YIELD nodeLabels, propertyName RETURN [nodeLabels, propertyName]"
    facts = (
        "CALL db.schema.relTypeProperties() YIELD relType, propertyName RETURN [[split(relType, '`')[1]], propertyName]"
    )
    rows = [*ask(store, nodes), *ask(store, facts)]
    of_all = listed_properties()["Graphmem"]
    listed = {label: names | of_all for label, names in listed_properties().items() if names and label != "Graphmem"}
    there = {(label, name) for labels, name in rows for label in labels if label in listed and name != "note"}  # OTHERS
    assert len(there) > 60
    assert sorted((label, name) for label, name in there if name not in listed[label]) == []


def test_the_guide_lists_the_saved_queries_by_their_titles() -> None:
    titles = [saved()[name].splitlines()[0].removeprefix("// ") for name in QUERIES]
    assert re.findall(r"^\| (\d\d [^|]*?) \|", GUIDE, re.MULTILINE) == titles


# Helpers


def groups_and_recalls(store: Neo4jBackend) -> Changes:
    """Return two communities of the team, one that ended, and the traces of two recalls."""
    ids = {
        entity.name: entity.id for entity in store.find_entities([TEAM], EntityQuery()) if entity.entity_type != "tool"
    }
    times: dict[str, Any] = {"scope": TEAM, "created_at": MOMENT, "updated_at": MOMENT}
    found = [Community(name=name, **times) for name in COMMUNITIES]
    ended = Community(name="The old ones", ended_at=MOMENT, **times)
    members = [
        Membership(community_id=community.id, entity_id=ids[name], since=MOMENT)
        for community in found
        for name in COMMUNITIES[community.name]
    ]
    [chose] = store.find_edges([TEAM], EdgeQuery(relations=("chose",)))
    [episode] = [e for e in store.find_episodes([TEAM], EpisodeQuery()) if "picked" in e.text]
    before = RecallTrace(scope=TEAM, query="Where is Tom?", strategy="bfs")
    asked = RecallTrace(
        scope=TEAM,
        query="Who picked Neo4j?",
        strategy="bfs",
        seeds=(TracedSeed(entity_id=ids["Neo4j"], score=1.0),),
        facts=(TracedFact(edge_id=chose.id, entity_id=ids["Ravi Menon"], score=0.8, hop=1, channel="graph", rank=1),),
        episodes=(TracedEpisode(episode_id=episode.id, score=0.7, channel="lexical", rank=1),),
    )
    return Changes(
        communities=(*found, ended),
        memberships=(*members, Membership(community_id=ended.id, entity_id=ids["Boston"], since=MOMENT, until=MOMENT)),
        recalls=(before, asked),
    )


def test_relations_are_listed_with_what_they_connect(run: Run) -> None:
    rows = {row["relation"]: row.data() for row in run("22_relations")}
    works = rows["works_at"]
    assert (works["types"], works["sources"], works["targets"]) == (["SEMANTIC"], ["person"], ["organization"])
    assert (works["now"], works["ended"]) == (4, 1)
    assert works["example"].startswith("Tom Berg")
    assert (rows["uses"]["now"], rows["uses"]["ended"]) == (1, 1)


# The schema for a language model

EXAMPLES = dict(block.split("\n", 1) for block in schema().partition("\nExamples\n\n")[2].split("\n\n"))
ANSWERS: dict[str, list[Any]] = {
    "Who works where now?": ["Lena Ortiz", "Maya Chen", "Ravi Menon", "Tom Berg"],
    "Where did Maya Chen work on 1 June 2024?": ["Initech"],
    "What changed in June 2025?": ["began", "began", "ended"],
    "Which messages say that Ravi Menon chose Neo4j?": ["Maya Chen"],
    "Who has the most connections?": ["Maya Chen", "Ravi Menon"],
    "How are Ravi Menon and Tom Berg connected?": [["Ravi Menon", "Lena Ortiz", "Tom Berg"]],
}


def test_each_example_has_an_answer_here() -> None:
    assert list(EXAMPLES) == list(ANSWERS)


@pytest.mark.parametrize("question", EXAMPLES)
def test_an_example_of_the_schema_answers_its_question(store: Neo4jBackend, question: str) -> None:
    query = EXAMPLES[question].replace("'default'", f"'{TEAM.key}'")
    found = ask(store, cast("Any", query))
    assert sorted(found[: len(ANSWERS[question])], key=str) == ANSWERS[question]
    summary = explain(store, query, {})
    assert summary.query_type == "r"
    assert [name for name in operators_of(summary.plan) if "Scan" in name] == []


def test_the_schema_has_properties_that_the_graph_has() -> None:
    described = re.findall(r"^\([^)]*?\)-\[:([\w|]+) \{(.*?)\}|^\(:(\w+):Graphmem \{(.*?)\}\)", schema(), re.M)
    assert len(described) == 7
    listed = listed_properties()
    for types, on_relationship, label, on_node in described:
        names = set(re.findall(r"(\w+): [A-Z]", on_relationship + on_node))
        assert names - {"id", "scope"} <= listed[label or types.partition("|")[0]]


def test_the_schema_of_a_scope_has_its_key_and_its_relations(empty_neo4j_of_module: str, store: Neo4jBackend) -> None:
    assert store.explorer is not None
    text = store.explorer.files(TEAM)["schema.txt"].decode()
    assert "'default'" not in text
    assert f"e.scope = '{TEAM.key}'" in text
    relations = text.partition("Relations of this scope")[2].splitlines()
    assert "works_at (person -> organization): 4 now, 1 ended" in relations
    assert store.explorer.files(Scope("nobody"))["schema.txt"].decode().rstrip().endswith("number of facts")


def parts(name: str) -> tuple[str, str]:
    """Return the comments of a saved query and its statement."""
    lines = saved()[name].splitlines()
    comments = [line for line in lines if line.startswith("//")]
    return "\n".join(comments), "\n".join(line for line in lines if not line.startswith("//")).strip()


def values_in(values: Iterable[Any]) -> Iterator[Any]:
    """Yield what stands in values, in their lists and in their paths."""
    for value in values:
        if isinstance(value, list):
            yield from values_in(cast("list[Any]", value))
        elif isinstance(value, Path):
            yield from (*value.nodes, *value.relationships)
        else:
            yield value


def facts_in(rows: list[Record]) -> set[str]:
    """Return "source relation target" of the facts in a result."""
    nodes: dict[str, str] = {}
    found: list[Relationship] = []
    for value in values_in(value for row in rows for value in row.values()):
        if isinstance(value, Node):
            nodes[value.element_id] = value.get("name", "")
        elif isinstance(value, Relationship) and "relation" in value:
            found.append(value)
    ends = [(fact, fact.start_node, fact.end_node) for fact in found]
    return {f"{nodes[s.element_id]} {fact['relation']} {nodes[t.element_id]}" for fact, s, t in ends if s and t}


def texts_in(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts in values, and those that nodes and relationships have as properties."""
    for value in values_in(values):
        if isinstance(value, (Node, Relationship)):
            yield from (text for text in value.values() if isinstance(text, str))
        elif isinstance(value, str):
            yield value


def names_on(path: Path) -> list[str]:
    """Return the names of the nodes of a path."""
    return [node["name"] for node in path.nodes]


def rules_of(sheet: str) -> dict[str, dict[str, str]]:
    """Read a style sheet as Browser does: the selectors and their properties, in order."""
    found: dict[str, dict[str, str]] = {}
    for selector, body in re.findall(r"([\w.]+) \{\n(.*?)^\}", sheet, re.MULTILINE | re.DOTALL):
        pairs = [line.strip().rstrip(";").partition(": ") for line in body.strip().splitlines()]
        found[selector] = {key: value for key, _, value in pairs}
    return found
