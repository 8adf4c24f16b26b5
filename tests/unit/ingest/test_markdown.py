"""Notes in Markdown, such as those of a vault of Obsidian: properties, tags and wikilinks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphmem import GraphMemory
from graphmem.ingest.readers import Refused, open_source, read_items
from graphmem.inputs import Document
from graphmem.models import Scalar

NOTE = """---
title: Apollo
created: 2026-03-14
aliases: [Rocket, "The one, with fins"]
tags:
  - project/space
  - "work"
author: "[[People/Ana Silva|Ana]]"
priority: 2
done: false
budget: 12.5 # million
owner: &a {name: Bo}
empty:
---
# Kickoff with [[Ana Silva]]

We met [[Bo Becker|Bo]] about [[Budget#Q3]]. #meeting (#no) a#no #2026

## Risks

Late. #risk
"""


def notes(folder: Path, text: str, name: str = "note.md") -> list[Document]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    refused: list[Refused] = []
    with open_source(path) as source:
        found = [item for item in read_items(source, refused.append) if isinstance(item, Document)]
    assert refused == []
    return found


def shown(folder: Path, text: str) -> tuple[str, str | None, str | None]:
    """Return the text of a note as it is shown, its links and its tags."""
    [note] = notes(folder, text)
    links, tags = (note.metadata.get(name) for name in ("links", "tags"))
    return note.text, links if isinstance(links, str) else None, tags if isinstance(tags, str) else None


def test_properties_tags_and_links_of_a_note_are_metadata(tmp_path: Path) -> None:
    kickoff, risks = notes(tmp_path, NOTE)
    of_note: dict[str, Scalar] = {
        "created": "2026-03-14",
        "aliases": "Rocket, The one, with fins",
        "aliases.Rocket": True,
        "aliases.The one, with fins": True,
        "author": "Ana",
        "priority": 2,
        "done": False,
        "budget": 12.5,
        "tags": "project/space, work, meeting, risk",
        **{f"tags.{tag}": True for tag in ("project", "project/space", "work", "meeting", "risk")},
        "links.Ana Silva": True,
        "file": "note.md",
    }
    of_kickoff: dict[str, Scalar] = {"links.Bo Becker": True, "links.Budget": True, "line": 17}
    assert kickoff.metadata == {**of_note, **of_kickoff, "links": "Ana Silva, Bo Becker, Budget"}
    assert risks.metadata == {**of_note, "links": "Ana Silva", "line": 21}
    assert (kickoff.title, risks.title) == ("Kickoff with Ana Silva", "Kickoff with Ana Silva > Risks")
    assert kickoff.text == "We met Bo about Budget > Q3. #meeting (#no) a#no #2026"
    assert kickoff.occurred_at == datetime(2026, 3, 14, tzinfo=UTC)


@pytest.mark.parametrize("width", [1, 50])
def test_many_tags_take_no_more_metadata_than_their_text(tmp_path: Path, width: int) -> None:
    text = "".join(f"# H{i}\n\nHi {' '.join(f'#tag{i}x{n}' for n in range(width))}\n\n" for i in range(1500))
    found = notes(tmp_path, text)
    assert len(found) >= 1500
    assert {len(str(note.metadata["tags"]).split(", ")) for note in found} == {1000}
    assert found[-1].metadata["tags.tag0x0"] is True


@pytest.mark.parametrize(
    ("text", "plain", "links", "tags"),
    [
        ("See [[Ana Silva]].", "See Ana Silva.", "Ana Silva", None),
        ("See [[People/Ana Silva.md|her]].", "See her.", "Ana Silva", None),
        ("| [[Ana Silva\\|Ana]] |", "| Ana |", "Ana Silva", None),
        ("See [[#Later]] and [[Plan#^b1]].", "See Later and Plan.", "Plan", None),
        ("![[photo.png]] and ![[Minutes]]", "photo.png and Minutes", "Minutes", None),
        ("`[[a]]` and [[1]](https://x.org)", "`[[a]]` and [[1]](https://x.org)", None, None),
        ("```\n[[a]] #b\n```", "```\n[[a]] #b\n```", None, None),
        ("[[ -f x ]] and [[a\nb]]", "[[ -f x ]] and [[a\nb]]", None, None),
        ("#a/b #c-d #1 #é x#f #g.", "#a/b #c-d #1 #é x#f #g.", None, "a/b, c-d, é, g"),
        ("---\ntags: a, b\n---\nx", "x", None, "a, b"),
        ("---\nTags: [a, '#b']\n---\nx #a", "x #a", None, "a, b"),
    ],
)
def test_links_are_shown_as_their_text_outside_of_code(
    tmp_path: Path, text: str, plain: str, links: str | None, tags: str | None
) -> None:
    assert shown(tmp_path, text) == (plain, links, tags)


@pytest.mark.parametrize(
    ("properties", "day"),
    [
        ("created: 2025-04-01\ndate: 2025-04-02", 2),
        ("created: 2025-04-01T08:00:00Z", 1),
        ("date: soon\ndate created: 2025-04-03", 3),
        ("date:\n  - 2025-04-04", 4),
    ],
)
def test_a_note_is_of_its_first_property_that_is_a_date(tmp_path: Path, properties: str, day: int) -> None:
    [note] = notes(tmp_path, f"---\n{properties}\n---\nHi")
    assert note.occurred_at is not None
    assert note.occurred_at.date() == datetime(2025, 4, day, tzinfo=UTC).date()


def test_a_note_of_properties_alone_has_them_as_its_text(tmp_path: Path) -> None:
    [note] = notes(tmp_path, "---\nrole: CTO\nworks:\n- '[[Globex]]'\n- Initech\n---\n", "Ana Silva.md")
    assert (note.title, note.text) == ("Ana Silva", "role: CTO\nworks: Globex, Initech")
    assert notes(tmp_path, "---\ntags: [a]\n---\n") == []


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("She codes.\n## Meetings\nMonday\n### Next\nFriday", ["Ana", "Ana > Meetings", "Ana > Meetings > Next"]),
        ("## Meetings\nMonday\n# Later\nFriday", ["Ana > Meetings", "Later"]),
        ("# Ana Silva\nShe codes.\n## Meetings\nMonday", ["Ana Silva", "Ana Silva > Meetings"]),
        ("---\ntitle: CTO\n---\n## Meetings\nMonday", ["CTO > Meetings"]),
        ("## Ana\nShe codes.\n### Meetings\nMonday", ["Ana", "Ana > Meetings"]),
    ],
)
def test_headings_without_a_title_among_them_are_below_the_name_of_the_note(
    tmp_path: Path, text: str, titles: list[str]
) -> None:
    assert [note.title for note in notes(tmp_path, text, "Ana.md")] == titles


def test_properties_are_no_names_of_graphmem(tmp_path: Path) -> None:
    text = "---\ndate: 2025-04-01\nfile: other.md\nline: 7\nsource_path: /etc\nundated: false\n---\nHi"
    [note] = notes(tmp_path, text)
    assert note.metadata == {"file": "note.md", "line": 8, "date": "2025-04-01"}


def test_ids_of_notes_without_links_are_those_of_their_text_alone(tmp_path: Path) -> None:
    [plain], [marked] = notes(tmp_path, "Hi #a"), notes(tmp_path, "---\nstatus: done\n---\nHi #a")
    assert plain.external_id == marked.external_id


def test_notes_are_found_by_a_tag_and_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "Ideas.md").write_text("The engine is late. #project/space\n")
    (tmp_path / "Plan.md").write_text("The engine of [[Ana Silva]] is on time. #home\n")
    with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
        memory.ingest(tmp_path)
        by_tag = memory.search("engine", filters={"metadata": {"tags.project": True}})
        by_link = memory.search("engine", filters={"metadata": {"links.Ana Silva": True}})
    assert [found.episode.title for found in by_tag] == ["Ideas"]
    assert [found.episode.title for found in by_link] == ["Plan"]
