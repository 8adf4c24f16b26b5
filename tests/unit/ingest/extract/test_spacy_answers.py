"""Who is meant by "my" and "your" in a question that an answer of one word confirms or denies."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.ingest.extract.spacy.answers import completed
from graphmem.models import Episode, Scope
from graphmem.protocols import Extraction, ExtractionRequest

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

NOON = datetime(2025, 3, 10, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()


def answered(extractor: SpacyExtractor, question: str, answer: str, addressee: str | None = "Maya") -> set[str]:
    """Return what Tom's answer to Maya's question gives, as "source relation target", with "no longer" for endings."""
    asked = Episode(scope=Scope(), text=question, speaker="Maya", occurred_at=NOON)
    episode = Episode(scope=Scope(), text=answer, speaker="Tom", occurred_at=NOON)
    (found,) = extractor.extract([ExtractionRequest(episode, (asked,), addressee=addressee)])
    assert isinstance(found, Extraction), found
    return {f"{e.source} {'no longer ' if e.ended else ''}{e.relation} {e.target}" for e in found.edges}


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("Do you still live with your sister Hanna?", {"Tom has_sister Hanna", "Tom lives_with Hanna"}),
        ("Do you still live with your girlfriend Lena?", {"Tom has_partner Lena", "Tom lives_with Lena"}),
        ("Do you work with your cousin Emma?", {"Tom has_cousin Emma", "Tom works_with Emma"}),
        ("Do you know my sister Lena?", {"Maya has_sister Lena", "Tom knows Lena"}),
        ("So do you remember my cousin Emma?", {"Maya has_cousin Emma", "Tom remembers Emma"}),
        ("Do you still work with my brother Peter?", {"Maya has_brother Peter", "Tom works_with Peter"}),
        ("Do you know our cousin Emma?", {"Maya has_cousin Emma", "Tom knows Emma"}),
        ("Are you still with your girlfriend Lena?", {"Tom has_partner Lena"}),
    ],
)
@pytest.mark.parametrize("answer", ["Yes.", "yes!"])
def test_my_is_who_asks_and_your_is_who_answers(
    extractor: SpacyExtractor, question: str, facts: set[str], answer: str
) -> None:
    assert answered(extractor, question, answer) == facts


def test_a_dog_is_of_who_has_it(extractor: SpacyExtractor) -> None:
    assert "Tom has Maya's dog" not in answered(extractor, "Do you still walk with your dog?", "Yes.")
    assert "Tom likes Maya's dog" in answered(extractor, "Do you like my dog?", "Yes.")


def test_a_denial_is_of_the_relatives_of_who_answers(extractor: SpacyExtractor) -> None:
    facts = answered(extractor, "Do you still live with your girlfriend Lena?", "No, she moved out")
    assert facts == {"Tom has_partner Lena", "Tom no longer lives_with Lena"}


def test_in_a_group_nobody_is_taken_for_who_asked(extractor: SpacyExtractor) -> None:
    assert answered(extractor, "Do you know my sister Lena?", "Yes.", addressee=None) == set()
    assert answered(extractor, "Do you know my sister Lena?", "Yes.", addressee="Ann") == set()
    assert "Tom has_sister Lena" in answered(extractor, "Do you know your sister Lena?", "Yes.", addressee=None)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Do you live in the US?", "I live in the US."),
        ("Do you still play tennis with me?", "I play tennis with you."),
        ("Do you know that I'm moving?", "I know that you're moving."),
        ("Do you think you are moving?", "I think I am moving."),
        ("Do you have the book I gave you?", "I have the book you gave me."),
    ],
)
def test_a_question_is_said_from_the_side_of_who_answers(question: str, sentence: str) -> None:
    asked = Episode(scope=Scope(), text=question, speaker="Maya", occurred_at=NOON)
    episode = Episode(scope=Scope(), text="Yes.", speaker="Tom", occurred_at=NOON)
    assert completed(ExtractionRequest(episode, (asked,), addressee="Maya")) == sentence


@pytest.mark.parametrize(
    ("question", "answer", "facts"),
    [
        ("Do you have any pets?", "Yes, two dogs, Rex and Milo", {"Tom has_dog Rex", "Tom has_dog Milo"}),
        ("Do you have any siblings?", "A sister, Anna", {"Tom has_sister Anna"}),
        ("How old is your son?", "He's 9", {"Tom has_son Tom's son", "Tom's son has_age 9 years"}),
        ("How old is your son?", "9 months", set[str]()),
    ],
)
def test_answers_about_relatives(extractor: SpacyExtractor, question: str, answer: str, facts: set[str]) -> None:
    assert answered(extractor, question, answer) == facts
