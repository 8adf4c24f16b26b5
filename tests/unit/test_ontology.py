"""Types, relations and files that add to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.errors import InvalidInput
from graphmem.models import EdgeType
from graphmem.ontology import DEFAULT_ONTOLOGY, FLOW_WEIGHT, SHORT_NAMES, SINGLE_VALUED, Ontology


def test_the_entity_types_are_those_of_the_specification() -> None:
    assert set(DEFAULT_ONTOLOGY.entity_types) == set(
        "person organization location event project decision tool technology language concept file config".split()
    )
    assert {"c", "r", "go"} <= SHORT_NAMES


def test_the_edge_types_have_the_flow_weights_of_the_specification() -> None:
    weights = {"semantic": 1.0, "temporal": 0.9, "causal": 1.2, "entity": 0.8, "co_occurrence": 0.5}
    assert weights == FLOW_WEIGHT
    assert {str(kind) for kind in EdgeType} == set(weights)


@pytest.mark.parametrize(
    ("stated", "stored"),
    [("employed by", "works_at"), ("Lives in", "lives_in"), ("wife of", "married_to"), ("paints", "paints")],
)
def test_synonyms_become_one_relation(stated: str, stored: str) -> None:
    assert DEFAULT_ONTOLOGY.relation(stated) == stored


def test_only_the_listed_relations_are_single_valued() -> None:
    specified = "works_at lives_in born_in manages married_to has_status has_budget deployed_on"
    # attributes that the extractors read: told again, they have changed
    added = "has_deadline has_birthday has_age has_salary has_rent has_weight has_height has_phone_number has_email"
    others = "created uses implements part_of relates_to mentioned_in supersedes conflicts_with prefers decided paints"
    assert {*specified.split(), *added.split()} == SINGLE_VALUED
    single = {
        name for name in (*SINGLE_VALUED, *others.split(), "similar_to") if DEFAULT_ONTOLOGY.is_single_valued(name)
    }
    assert single == SINGLE_VALUED
    assert DEFAULT_ONTOLOGY.is_single_valued("favorite_color")


@pytest.mark.parametrize(("declared", "expected"), [("Person", ("person", None)), ("pet", ("concept", "pet"))])
def test_an_unknown_type_is_a_concept_that_keeps_its_word(declared: str, expected: tuple[str, str | None]) -> None:
    assert DEFAULT_ONTOLOGY.entity_type(declared) == expected


def test_a_relation_gives_its_edge_type_where_none_is_stated() -> None:
    relations = {
        EdgeType.SEMANTIC: "uses knows prefers depends_on works_on paints",
        EdgeType.TEMPORAL: "preceded_by followed_by happened_during",
        EdgeType.CAUSAL: "caused triggered resulted_in led_to",
        EdgeType.ENTITY: "is_a part_of instance_of alias_of",
    }
    for kind, names in relations.items():
        assert {DEFAULT_ONTOLOGY.edge_type(None, name) for name in names.split()} == {kind}


@pytest.mark.parametrize("stated", ["Semantic", "SEMANTIC", "social", ""])
def test_callers_state_edge_types_letter_by_letter(stated: str) -> None:
    with pytest.raises(InvalidInput, match="one of semantic"):
        DEFAULT_ONTOLOGY.require_edge_type(stated)


def test_synonyms_are_words_to_ask_by() -> None:
    assert "employed" in DEFAULT_ONTOLOGY.words("works_at").split()
    assert DEFAULT_ONTOLOGY.words("paints") == ""


def test_a_file_adds_to_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "ontology.toml"
    path.write_text(
        'entity_types = ["Animal"]\nsingle_valued = ["reports to"]\nshort_names = ["Bo"]\n'
        '[synonyms]\nowns = "has pet"\n'
    )
    ontology = Ontology.load(path)
    assert ontology.entity_type("animal") == ("animal", None)
    assert ontology.is_single_valued("reports_to")
    assert ontology.relation("owns") == "has_pet"
    assert ontology.relation("employed by") == "works_at"
    assert "bo" in ontology.short_names


def test_single_valued_words_and_synonyms_of_synonyms_are_read_to_the_end() -> None:
    ontology = DEFAULT_ONTOLOGY.extended(
        single_valued=["belongs to"], synonyms={"heads": "leads", "leads": "manages", "runs": "rules", "rules": "runs"}
    )
    assert ontology.is_single_valued(ontology.relation("belongs to"))
    assert ontology.relation("heads") == "manages"
    assert ontology.relation("runs") == "runs"


@pytest.mark.parametrize(
    "text",
    [
        "not toml [",
        "colours = []",
        'entity_types = "robot"',
        "single_valued = [1]",
        "short_names = [3]",
        'synonyms = ["a"]',
        "[synonyms]\na = 1",
        "rules = 1",
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ontology.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"ontology\.toml"):
        Ontology.load(path)


def test_a_file_that_is_absent_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.toml"):
        Ontology.load(tmp_path / "nowhere.toml")


def test_a_file_adds_replaces_and_leaves_out_rules(tmp_path: Path) -> None:
    path = tmp_path / "ontology.toml"
    path.write_text(
        'without_rules = ["shared works_at"]\n'
        '[[rules]]\nkind = "inverse"\nrelations = ["Reports to"]\nimplies = "is manager of"\n'
        '[[rules]]\nkind = "transitive"\nrelations = ["is part of"]\nconfidence = 0.5\n'
    )
    rules = {rule.name: rule for rule in Ontology.load(path).rules}
    assert "shared works_at" not in rules
    assert rules["inverse reports_to"].conclusion == "manages"
    assert rules["transitive part_of"].confidence == 0.5
    assert len(rules) == len(DEFAULT_ONTOLOGY.rules)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('without_rules = ["shared lunch"]', "no rule is called 'shared lunch'; known are symmetric married_to"),
        ('[[rules]]\nkind = "magic"\nrelations = ["knows"]', "InferenceRule.kind"),
        ('[[rules]]\nkind = "inverse"\nrelations = ["knows"]', "needs the relation that it implies"),
        ('[[rules]]\nkind = "composition"\nrelations = ["knows"]\nimplies = "x1"', "has 2 relations"),
        ('[[rules]]\nkind = "transitive"\nrelations = ["knows"]\nimplies = "likes"', "implies itself"),
        ('[[rules]]\nkind = "symmetric"\nrelations = ["knows"]\nconfidence = 1.5', "InferenceRule.confidence"),
        ('[[rules]]\nkind = "symmetric"\nrelations = [7]', "relations and implies are texts"),
        ('[[rules]]\nkind = "symmetric"\nrelations = ["knows"]\nweight = 2', "weight"),
        ('rules = ["symmetric knows"]', "a table"),
    ],
)
def test_an_invalid_rule_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "ontology.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=f"ontology file .*{message}"):
        Ontology.load(path)
