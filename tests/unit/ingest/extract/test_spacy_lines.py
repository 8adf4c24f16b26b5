"""Lists, tables and titles: what stands in a line of its own is a sentence of its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.ingest.extract.spacy.prepare import prose
from graphmem.models import Episode, Scope
from graphmem.protocols import Extraction, ExtractionRequest

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

NOON = datetime(2025, 3, 10, 12, tzinfo=UTC)
TABLE = "| No | Task |\n|---|---|\n| 1 | Move to Rust |\n"
BULLETS = "- Zoe Miller works at Globex\n- Tom Reed lives in Oslo\n- Ana manages Tom Reed\n"


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor(document_facts=True)


def read(extractor: SpacyExtractor, text: str, *, document: bool) -> tuple[set[str], set[str]]:
    """Return the names and the facts of a document or a message."""
    told = (
        Episode(scope=Scope(), text=text, source="document", title="Notes", occurred_at=NOON)
        if document
        else Episode(scope=Scope(), text=text, speaker="Nora", occurred_at=NOON)
    )
    (found,) = extractor.extract([ExtractionRequest(told)])
    assert isinstance(found, Extraction), found
    return {e.name for e in found.entities}, {f"{e.source} {e.relation} {e.target}" for e in found.edges}


@pytest.mark.parametrize("document", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        BULLETS,
        BULLETS.replace("- ", "* "),
        BULLETS.replace("- ", "• "),
        BULLETS.replace("- ", "– "),
        BULLETS.replace("- ", "  - [ ] "),
        BULLETS.replace("\n- ", " • ").replace("- ", "• "),
        "1. Zoe Miller works at Globex\n2. Tom Reed lives in Oslo\n3. Ana manages Tom Reed",
        "# Zoe Miller works at Globex\nTom Reed lives in Oslo\n## Ana manages Tom Reed",
        "Zoe Miller works at Globex\n=====\nTom Reed lives in Oslo\n\nAna manages Tom Reed",
        "| Zoe Miller works at Globex | Tom Reed lives in Oslo |\n|---|---|\n| 1 | Ana manages Tom Reed |",
        "Zoe Miller works at Globex | Tom Reed lives in Oslo\n--- | ---\n1 | Ana manages Tom Reed",
    ],
)
def test_each_line_of_a_list_is_a_sentence(extractor: SpacyExtractor, text: str, *, document: bool) -> None:
    names, facts = read(extractor, text, document=document)
    assert {"Zoe Miller works_at Globex", "Tom Reed lives_in Oslo"} <= facts
    assert not [f for f in facts if f.split()[2] == "lives_in" and not f.startswith("Tom Reed")]
    assert names <= {"Zoe Miller", "Globex", "Tom Reed", "Oslo", "Ana"}


@pytest.mark.parametrize("document", [True, False])
@pytest.mark.parametrize("between", ["\n", "", "\n```python\nx = 1\n```\n\n", "```python\nx = 1\n```\n"])
def test_a_table_ends_before_the_paragraph_after_it(extractor: SpacyExtractor, between: str, *, document: bool) -> None:
    names, facts = read(extractor, f"{TABLE}{between}Zoe lives in Oslo.", document=document)
    assert names == {"Zoe", "Oslo"}
    assert facts == {"Zoe lives_in Oslo"}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Zoe Miller works at\nGlobex and lives\nin Oslo", "Zoe Miller works at Globex and lives in Oslo."),
        ("Zoe works at Globex and\n\nlives in Oslo.", "Zoe works at Globex and lives in Oslo."),
        ("- Tom Reed is a friend of\n  Ana\n- Zoe", "Tom Reed is a friend of Ana. Zoe."),
        ("Tom was born on May\n12. He lives in Oslo.", "Tom was born on May 12. He lives in Oslo."),
        ('We use:\n- Rust,\n- "Go!"\n- C++', 'We use. Rust. "Go!" C++.'),
        ("Who?\n\nZoe!", "Who? Zoe!"),
        ("---\n\n***\n", ""),
    ],
)
def test_a_line_that_continues_is_no_sentence_of_its_own(text: str, sentences: str) -> None:
    assert prose(text, message=False) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "We met at the workshop of the Association for the Cooperative Advancement\nof Science in Oslo",
            "We met at the workshop of the Association for the Cooperative Advancement of Science in Oslo.",
        ),
        (
            "He talked about the new release, which seems to need the libraries of\nPython. It works",
            "He talked about the new release, which seems to need the libraries of Python. It works.",
        ),
        (
            "Chair of the Department of Mathematics and Statistics, McMaster University\nSchool of Engineering",
            "Chair of the Department of Mathematics and Statistics, McMaster University. School of Engineering.",
        ),
        (
            "It runs.\n\nOn Wed, 11 Nov 2020 Marcus D. Leech of the group for software radio\nwrote: I live in Rome",
            "It runs. On Wed, 11 Nov 2020 Marcus D. Leech of the group for software radio.",
        ),
        (
            "Peter Dalgaard      Blegdamsvej 3\nCopenhagen\t\tDenmark Hall",
            "Peter Dalgaard. Blegdamsvej 3. Denmark Hall.",
        ),
        ("I run it in /usr/local/lib with org.apache.maven now.", "I run it in with now."),
        ("Ask him (anna.berg at mail.example.org) about it.", "Ask him about it."),
        ("[ERROR] Build of Maven failed\nimport net.imglib2.Cursor\nCursor c = img.cursor();\nIt broke", "It broke."),
        ("Anna works at Booking.com; she moved.", "Anna works at Booking.com; she moved."),
        ("Anna works at booking.com, Tom is at acme.com.", "Anna works at booking.com, Tom is at acme.com."),
        ("I moved to Oslo on 2024/05/03 with Tom.", "I moved to Oslo on 2024/05/03 with Tom."),
        (
            "Anna works at Acme Corp. She leads the design (since May);\nTom moved to Rome.",
            "Anna works at Acme Corp. She leads the design (since May);. Tom moved to Rome.",
        ),
        (
            "We pay the fees that they ask for at the border, and the\nimport duties for Acme Corp.",
            "We pay the fees that they ask for at the border, and the import duties for Acme Corp.",
        ),
        (
            "Here are the two main things that I want to talk about soon\n1. Anna moves the office\n2. Tom left",
            "Here are the two main things that I want to talk about soon. Anna moves the office. Tom left.",
        ),
    ],
)
def test_mails_have_wrapped_lines_columns_and_code(text: str, sentences: str) -> None:
    assert prose(text, mail=True) == sentences


def test_an_item_without_a_subject_is_not_said_of_the_speaker(extractor: SpacyExtractor) -> None:
    assert read(extractor, "The plan:\n- Moved Apollo to Rome\n- Left Siemens", document=False)[1] == set()


def test_a_dash_joins_the_parts_of_a_line_only() -> None:
    assert prose("I moved - it was hot\n- Tom lives in Rome") == "I moved. It was hot. Tom lives in Rome."


@pytest.mark.parametrize("name", ["李雷", "Li Lei", "Zoë Hall"])
def test_a_foreign_name_discards_no_list(extractor: SpacyExtractor, name: str) -> None:
    names, _ = read(
        extractor, f"- {name} manages Globex\n- Tom Reed lives in Oslo\n- Ida Berg leads Apollo", document=True
    )
    assert {"Tom Reed", "Oslo", "Ida Berg"} <= names
