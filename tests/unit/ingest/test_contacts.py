"""Contacts in vCard: a document for each, and its facts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphmem import GraphMemory
from graphmem.ingest.readers import Refused, guess_format, open_source, read_items
from graphmem.inputs import Document, Triple

ANA = """BEGIN:VCARD
VERSION:3.0
N:Silva;Ana;;;
FN:Ana Silva
ORG:Globex;Research
TITLE:CTO
EMAIL;TYPE=INTERNET:ana@globex.example
EMAIL;TYPE=INTERNET:ana@home.example
TEL;TYPE=HOME:+351 21 100 200
item1.TEL;type=CELL;type=pref:+351 912 345 678
BDAY:1988-05-04
ADR;TYPE=HOME:;;Rua A 1;Lisbon;;1000;Portugal
NOTE:Met at the fair\\, likes tea.\\nAnd
  cake.
CATEGORIES:Work,Friends
REV:2026-03-01T10:00:00Z
UID:u-1
END:VCARD
"""


def read(folder: Path, text: str) -> tuple[list[Document], list[Triple], list[Refused]]:
    path = folder / "contacts.vcf"
    path.write_text(text)
    refused: list[Refused] = []
    with open_source(path) as source:
        found = [item for item in read_items(source, refused.append) if isinstance(item, Document)]
        return found, source.facts, refused


def card(*lines: str) -> str:
    return "\n".join(("BEGIN:VCARD", *lines, "END:VCARD", ""))


def test_a_contact_is_a_document(tmp_path: Path) -> None:
    [document], _, refused = read(tmp_path, ANA)
    assert document.text == (
        "Ana Silva, CTO at Globex.\n"
        "Email ana@globex.example and ana@home.example, phone +351 912 345 678 and +351 21 100 200, "
        "birthday 4 May 1988, address Rua A 1, Lisbon, 1000, Portugal.\n"
        "Met at the fair, likes tea.\nAnd cake."
    )
    assert (document.title, document.external_id, refused) == ("Ana Silva", "u-1", [])
    assert document.occurred_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    about = {"uid": "u-1", "organization": "Globex", "categories": "Work, Friends", "file": "contacts.vcf"}
    assert document.metadata == about


def test_a_contact_has_facts_of_its_preferred_values(tmp_path: Path) -> None:
    _, facts, _ = read(tmp_path, ANA)
    assert {(fact.subject, fact.source) for fact in facts} == {("Ana Silva", "u-1")}
    assert [(fact.relation, fact.object) for fact in facts] == [
        ("works at", "Globex"),
        ("works as", "CTO"),
        ("has email", "ana@globex.example"),
        ("has phone number", "+351 912 345 678"),
        ("has birthday", "4 May 1988"),
        ("lives in", "Lisbon"),
    ]


@pytest.mark.parametrize(
    ("lines", "text", "facts"),
    [
        (("FN:Globex", "ORG:Globex", "TEL;VALUE=uri:tel:+1-555"), "Globex.\nPhone +1-555.", ["has phone number"]),
        (("FN:Ana Silva", "BDAY;X-APPLE-OMIT-YEAR=1604:1604-05-04"), "Ana Silva.\nBirthday 4 May.", ["has birthday"]),
        (("FN:Ana Silva", "BDAY:--0504"), "Ana Silva.\nBirthday 4 May.", ["has birthday"]),
        (("N:Silva;Ana;;;", "ORG:Globex"), "Ana Silva, Globex.", ["works at"]),
        (("N;ENCODING=QUOTED-PRINTABLE:=C3=84;J=C3=B6rg", "NOTE;ENCODING=QUOTED-PRINTABLE:o=\nk"), "Jörg Ä.\nok", []),
        (("FN:Bo", "ORG:Globex"), "Bo, Globex.", []),
        (("FN:Ana Silva", f"PHOTO;ENCODING=b:{'A' * 20_000}"), "Ana Silva.", []),
    ],
)  # fmt: skip
def test_contacts_of_all_versions_are_read(tmp_path: Path, lines: tuple[str, ...], text: str, facts: list[str]) -> None:
    [document], found, refused = read(tmp_path, card(*lines))
    assert (document.text, [fact.relation for fact in found], refused) == (text, facts, [])


def test_a_contact_without_a_name_costs_only_itself(tmp_path: Path) -> None:
    documents, _, refused = read(tmp_path, card("VERSION:4.0") + card("FN:Ana Silva"))
    assert [document.text for document in documents] == ["Ana Silva."]
    assert [str(each) for each in refused] == ["contacts.vcf, line 1: a contact without a name"]
    _, _, refused = read(tmp_path, "nothing\n")
    assert [each.reason for each in refused] == ["no contact found: expected a line BEGIN:VCARD"]


def test_contacts_are_told_by_their_beginning() -> None:
    assert guess_format("-", ANA) == "vcf"


def test_facts_of_contacts_are_stored_without_an_extractor_and_go_with_them(tmp_path: Path) -> None:
    path = tmp_path / "contacts.vcf"
    path.write_text(ANA)
    with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
        preview = memory.ingest(tmp_path, dry_run=True)
        first, again = memory.ingest(tmp_path), memory.ingest(tmp_path)
        facts = [fact.fact for fact in memory.facts("Ana Silva")]
        path.write_text(card("FN:Bo Becker"))
        memory.ingest(tmp_path, update=True)
        left = memory.facts("Ana Silva")
    assert [(each.received, each.stored, each.edges) for each in (preview, first, again)] == [
        (1, 1, 0),
        (1, 1, 6),
        (1, 0, 0),
    ]
    assert "Ana Silva works at Globex" in facts
    assert list(left) == []
