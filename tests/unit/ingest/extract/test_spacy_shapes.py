"""The sentences of docs/reference/local-extractor.md give the facts that the page lists, and no others."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.models import Episode, Scope
from graphmem.protocols import ExtractedEdge, ExtractedEnding, Extraction, ExtractionRequest

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "local-extractor.md"
ROWS = re.findall(r"^\| (?!sentence)([^|]+) \|(?: ([^|]*))? \|$", PAGE.read_text("utf-8"), re.MULTILINE)
TURNS = re.findall(r"^\| (?!before)([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor(document_facts=True)


def as_listed(edge: ExtractedEdge) -> str:
    """Return a fact as the page writes it."""
    begin = f" from {edge.valid_from:%Y-%m-%d}" if edge.valid_from else ""
    end = f" until {edge.valid_to:%Y-%m-%d}" if edge.valid_to else ""
    return f"{'ends: ' if edge.ended else ''}{edge.source} · {edge.relation} · {edge.target}{begin}{end}"


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 50


@pytest.mark.parametrize(("sentence", "facts"), ROWS)
def test_a_sentence_gives_the_facts_that_the_page_lists(extractor: SpacyExtractor, sentence: str, facts: str) -> None:
    assert sorted(listed(extractor, sentence)) == sorted(filter(None, facts.split("<br>")))


@pytest.mark.parametrize(("before", "text", "facts"), TURNS)
def test_a_turn_after_another_gives_the_facts_that_the_page_lists(
    extractor: SpacyExtractor, before: str, text: str, facts: str
) -> None:
    speaker, _, said = before.partition(": ")
    earlier = Episode(scope=Scope(), text=said, speaker=speaker, occurred_at=MONDAY)
    assert sorted(listed(extractor, text, earlier)) == sorted(facts.split("<br>"))


def ended(ending: ExtractedEnding) -> str:
    """Return the facts that an ending is about, as the page writes them."""
    source = "all others" if ending.others == "sources" else ending.source
    return f"{source} · {ending.relation} · {'all others' if ending.others == 'targets' else ending.target}"


def listed(extractor: SpacyExtractor, text: str, *context: Episode) -> list[str]:
    """Return what Nora's words give, as the page writes it."""
    episode = Episode(scope=Scope(), text=text, speaker="Nora", occurred_at=MONDAY)
    [found] = extractor.extract([ExtractionRequest(episode, context, addressee="Walter")])
    assert isinstance(found, Extraction)
    named = [e for e in found.endings if e.target is not None]
    ends = [f"ends: {ended(e)}" for e in named if not e.presumed]
    presumed: dict[tuple[str, str], list[str]] = {}
    for ending in named:
        if ending.presumed:
            presumed.setdefault((ending.source, str(ending.target)), []).append(ending.relation)
    ends += [f"ends if known: {who} · {', '.join(sorted(set(of)))} · {what}" for (who, what), of in presumed.items()]
    ends += sorted({f"ends: {e.source} · {e.relation} · all" for e in found.endings if e.target is None})
    called = [f"{alias} · another name of · {e.name}" for e in found.entities for alias in e.aliases]
    return [*map(as_listed, found.edges), *called, *ends]
