"""What somebody is to somebody: a partner in climbing or business isn't one in life."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.ingest.extract.spacy.labels import correct_labels
from graphmem.models import Episode, Scope
from graphmem.protocols import Extraction, ExtractionRequest

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

NOON = datetime(2025, 3, 10, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()


def related(extractor: SpacyExtractor, text: str) -> dict[str, str]:
    """Return "source relation target" → fact of what Oskar's words say of his relations."""
    episode = Episode(scope=Scope(), text=text, speaker="Oskar", occurred_at=NOON)
    (found,) = extractor.extract([ExtractionRequest(episode)])
    assert isinstance(found, Extraction), found
    kept = [e for e in found.edges if e.source == "Oskar" and e.relation.startswith(("has_", "married_to"))]
    return {f"{e.relation} {e.target}": e.fact for e in kept}


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("Jonas Weber, my climbing partner, lives in Rome.", "climbing partner"),
        ("I met Jonas Weber, my climbing partner.", "climbing partner"),
        ("Jonas Weber is my climbing partner.", "climbing partner"),
        ("My climbing partner is Jonas Weber.", "climbing partner"),
        ("My climbing partner Jonas Weber lives in Rome.", "climbing partner"),
        ("My climbing partner's name is Jonas Weber.", "climbing partner"),
        ("I have a climbing partner, Jonas Weber.", "climbing partner"),
        ("I have a running partner named Jonas Weber.", "running partner"),
        ("Jonas Weber, my running partner, lives in Rome.", "running partner"),
        ("My business partner Jonas Weber lives in Rome.", "business partner"),
        ("Jonas Weber is my former business partner.", "business partner"),
        ("Jonas Weber is my partner in crime.", "partner in crime"),
        ("My work husband Jonas Weber lives in Rome.", "work husband"),
        ("Jonas Weber is my brother in law.", "brother in law"),
    ],
)
def test_what_limits_a_role_is_kept(extractor: SpacyExtractor, text: str, role: str) -> None:
    found = related(extractor, text)
    assert list(found) == [f"has_{role.replace(' ', '_')} Jonas Weber"]
    assert all(role in fact for fact in found.values())


@pytest.mark.parametrize(
    "text",
    [
        "My partner Lena Holm lives in Rome.",
        "Lena Holm is my new partner.",
        "Lena Holm is my life partner.",
        "Lena Holm, my loving partner, lives in Rome.",
        "Lena Holm is my long-time partner.",
        "My partner in Rome is Lena Holm.",
        "My high school girlfriend Lena Holm lives in Rome.",
    ],
)
def test_a_partner_in_life_is_a_partner(extractor: SpacyExtractor, text: str) -> None:
    assert list(related(extractor, text)) == ["has_partner Lena Holm"]


def test_other_relatives_are_told_by_their_noun(extractor: SpacyExtractor) -> None:
    assert list(related(extractor, "My cousin in college is Lena Holm.")) == ["has_cousin Lena Holm"]
    assert list(related(extractor, "My favorite dance teacher Lena Holm lives in Rome.")) == ["has_teacher Lena Holm"]


def test_a_partner_without_a_name_is_one_in_something(extractor: SpacyExtractor) -> None:
    assert "has_climbing_partner Oskar's climbing partner" in related(extractor, "My climbing partner lives in Rome.")


def said(extractor: SpacyExtractor, text: str) -> set[str]:
    """Return what Oskar's words say, as "source relation target", with "no longer" for what has ended."""
    episode = Episode(scope=Scope(), text=text, speaker="Oskar", occurred_at=NOON)
    (found,) = extractor.extract([ExtractionRequest(episode)])
    assert isinstance(found, Extraction), found
    return {f"{e.source} {'no longer ' if e.ended else ''}{e.relation} {e.target}" for e in found.edges}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My next-door neighbor Anna lives alone.", {"Oskar has_neighbor Anna"}),
        ("Amy's boyfriend works at Lloyds", {"Amy's boyfriend works_at Lloyds"}),
        ("My old flatmate Kim works at Netflix.", {"Kim works_at Netflix"}),
        ("I'm allergic to eggs and shellfish.", {"Oskar is_allergic_to eggs", "Oskar is_allergic_to shellfish"}),
    ],
)
def test_words_that_the_parser_confuses(extractor: SpacyExtractor, text: str, facts: set[str]) -> None:
    assert facts <= said(extractor, text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My old flatmate Kim works at Netflix.", {"Oskar no longer has_flatmate Kim", "Kim works_at Netflix"}),
        ("My former boss Vera Lind lives in Rome.", {"Oskar no longer has_boss Vera Lind", "Vera Lind lives_in Rome"}),
        ("My old friend Vera Lind lives in Rome.", {"Oskar has_friend Vera Lind", "Vera Lind lives_in Rome"}),
        ("my ex wife Vera lives in Rome", {"Oskar has_ex_wife Vera", "Vera lives_in Rome"}),
        ("My boss Vera Lind quit.", {"Oskar no longer has_boss Vera Lind"}),
        (
            "Our guitar teacher Vera Lind retired.",
            {"Oskar no longer has_teacher Vera Lind", "Vera Lind is retired"},
        ),
    ],
)
def test_a_relation_of_the_past_is_over(extractor: SpacyExtractor, text: str, facts: set[str]) -> None:
    assert said(extractor, text) == facts


def test_a_pet_that_died_is_no_longer_had(extractor: SpacyExtractor) -> None:
    assert "Oskar no longer has_cat Oskar's cat" in said(extractor, "Our cat had to be put to sleep on Sunday.")
    assert "Oskar no longer has_dog Milo" in said(extractor, "My dog Milo passed away in January.")


_BROTHER = "Oskar has_brother Oskar's brother"


@pytest.mark.parametrize("text", ["I taught my wife Italian.", "I showed my brother Prague."])
def test_a_second_object_is_no_name(extractor: SpacyExtractor, text: str) -> None:
    assert not any("has_brother" in fact or "married_to" in fact for fact in said(extractor, text) - {_BROTHER})


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My landlady, Mrs. Lind, lives in Madrid.", {"Oskar has_landlady Lind", "Lind lives_in Madrid"}),
        ("We have three cats.", {"Oskar has cats"}),
        ("My wife is Italian.", {"Oskar's wife is Italian"}),
        ("My daughter is 6.", {"Oskar's daughter has_age 6 years"}),
        ("My son Peter turned 8 on Sunday.", {"Oskar has_son Peter", "Peter has_age 8 years"}),
    ],
)
def test_relatives_and_what_is_said_of_them(extractor: SpacyExtractor, text: str, facts: set[str]) -> None:
    assert facts <= said(extractor, text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "My colleague Anna and her husband Peter live in Madrid.",
            {"Oskar has_colleague Anna", "Anna married_to Peter", "Anna lives_in Madrid", "Peter lives_in Madrid"},
        ),
        ("My aunt and uncle live in Madrid.", {"Oskar's aunt lives_in Madrid", "Oskar's uncle lives_in Madrid"}),
        ("My dog Milo is afraid of thunder.", {"Oskar has_dog Milo"}),
    ],
)
def test_relatives_who_share_a_sentence(extractor: SpacyExtractor, text: str, facts: set[str]) -> None:
    assert facts <= said(extractor, text)


def test_who_is_joined_to_a_friend_is_no_friend(extractor: SpacyExtractor) -> None:
    assert "Oskar has_friend Peter" not in said(extractor, "My friend Anna and her husband Peter live in Madrid.")


def test_a_person_of_a_story_is_no_fact(extractor: SpacyExtractor) -> None:
    assert said(extractor, "Write a story about a pilot named Peter.") == set()


def test_having_an_ex_is_no_fact(extractor: SpacyExtractor) -> None:
    assert said(extractor, "My ex called.") == set()


def test_who_shares_a_verb_is_its_singular_subject(extractor: SpacyExtractor) -> None:
    episode = Episode(scope=Scope(), text="Anna and Peter live in Madrid.", speaker="Oskar", occurred_at=NOON)
    (found,) = extractor.extract([ExtractionRequest(episode)])
    assert isinstance(found, Extraction)
    assert {e.fact for e in found.edges} == {"Anna lives in Madrid.", "Peter lives in Madrid."}


def test_the_fact_of_who_comes_after_somebody_names_both(extractor: SpacyExtractor) -> None:
    found = related(extractor, "I changed dentists, it's Dr. Park now.")
    assert found == {"has_dentist Park": "Oskar's dentist is Park."}


def test_a_given_name_that_is_not_recognized_is_the_family_name_of_the_one_before() -> None:
    from spacy.lang.en import English
    from spacy.tokens import Doc

    parse = Doc(
        English().vocab,
        ["Anna", "Peter", "sings"],
        pos=["PROPN", "PROPN", "VERB"],
        tags=["NNP", "NNP", "VBZ"],
        heads=[1, 2, 2],
        deps=["compound", "nsubj", "ROOT"],
        ents=["B-PERSON", "O", "O"],
    )
    assert [(name.text, name.label_) for name in correct_labels(parse).ents] == [("Anna Peter", "PERSON")]
