"""Entities of the names that messages and mails only mention, without a fact, and their types."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.models import Episode, Properties, Scope
from graphmem.protocols import Extraction, ExtractionRequest

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
MAIL: Properties = {"subject": "Results", "to": "list@example.org", "file": "list.mbox"}


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()


def named(extractor: SpacyExtractor, text: str, metadata: Properties | None = None) -> dict[str, str]:
    """Return the names in what Nora says or writes, with their types."""
    episode = Episode(scope=Scope("t"), text=text, speaker="Nora", occurred_at=MONDAY, metadata=metadata or {})
    (found,) = extractor.extract([ExtractionRequest(episode)])
    assert isinstance(found, Extraction), found
    return {e.name: e.entity_type for e in found.entities if e.name != "Nora"}


@pytest.mark.parametrize(
    "text",
    [
        "We heard a Canadian band there.",
        "The Soviet weapons were everywhere.",
        'Then I clicked on "Language Selection" there.',
        'There is a "Languages" button.',
        "It's only in the LGTM.",
        "W Mm-hmm.",
        "There was a plan on March25.",
        "Tess and Rossen haven't had feedback.",
    ],
)
def test_adjectives_buttons_and_abbreviations_are_no_entities(extractor: SpacyExtractor, text: str) -> None:
    assert named(extractor, text) == {}


def test_peoples_and_titles_are_entities(extractor: SpacyExtractor) -> None:
    assert named(extractor, "My guess is that they meant the Canadians.") == {"Canadians": "concept"}
    assert "Winter Road" in named(extractor, 'He wrote a song called "The Winter Road".')


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("They asked how Bitdraw works.", "Bitdraw", "concept"),
        ("The index of Derebit is wrong.", "Derebit", "concept"),
        ("I can't open it in AppData.", "AppData", "concept"),
        ("She talked about Patrice Olami University.", "Patrice Olami University", "organization"),
        ("It happened in Stittsville.", "Stittsville", "location"),
        ("Let's throw out El Salvador's, as an example.", "El Salvador", "location"),
        ("He told Tina Turner's, you know.", "Tina Turner", "person"),
        ("He mentioned Jameson Lopp.", "Jameson Lopp", "person"),
        ("Gee Robert, that's fine.", "Robert", "person"),
        ("We had John Fox there.", "John Fox", "person"),
        ("Suzy Davies has the floor, you know.", "Suzy Davies", "person"),
        ("I was just reading this Harvard Business Review article.", "Harvard Business Review", "concept"),
    ],
)
def test_the_type_of_a_mentioned_name_needs_support(extractor: SpacyExtractor, text: str, name: str, kind: str) -> None:
    assert named(extractor, text) == {name: kind}


def test_titles_in_mails_are_no_entities(extractor: SpacyExtractor) -> None:
    text = "Question about Data Management\n\nDear List, it is Octave 8.4.\n\nAnna Kowalska, Yale University"
    assert named(extractor, text, MAIL) == {"Anna Kowalska": "person", "Yale University": "organization"}


def test_identifiers_in_mails_are_no_entities(extractor: SpacyExtractor) -> None:
    found = named(
        extractor, "Hello,\n\nWe call DataAccess in PowerPoint, and the FileInfo is wrong.\n\nAnna Kowalska", MAIL
    )
    assert found == {"PowerPoint": "technology", "Anna Kowalska": "person"}


def test_a_name_that_another_one_follows_twice_is_none(extractor: SpacyExtractor) -> None:
    assert "Roger Bivand Roger" not in named(extractor, "Thanks!\n\nRoger Bivand Roger Bivand", MAIL)


def test_a_legal_form_supports_an_organization(extractor: SpacyExtractor) -> None:
    found = named(extractor, "Hello,\n\nMark Weber from Acme Corp will call.\n\nBest,\nJana", MAIL)
    assert found["Acme Corp"] == "organization"
