"""What the history of a fact is after several turns, read without a language model."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from graphmem import GraphMemory, Turn
from graphmem.ingest.extract.spacy import spacy_available

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

Spans = dict[str, tuple[str, str | None]]


def told(*turns: tuple[str, str] | tuple[str, str, str]) -> Spans:
    """Return "source relation target" → (begin, end) after turns of (day, text) by Sam or (day, text, speaker)."""
    memory = GraphMemory.open(f"memory://{uuid4()}", embeddings="none", background=False)
    with memory:
        items = [
            Turn(
                text=t[1], speaker=t[2] if len(t) == 3 else "Sam", occurred_at=datetime.fromisoformat(t[0] + "T12:00Z")
            )
            for t in turns
        ]
        memory.ingest(items)
        found = [f for e in memory.entities(limit=100) for f in memory.history(e.name)]
    return {f"{f.source} {f.relation} {f.target}": (_day(f.valid_from), f.valid_to and _day(f.valid_to)) for f in found}


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


# Hearsay ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "report",
    [
        "People think I live in Tokyo.",
        "My mum thinks I live in Tokyo. She is wrong.",
        "The letter says that I live in Tokyo, which is wrong.",
        "My neighbour Tom believes that I moved to Tokyo.",
        "I heard that I live in Tokyo.",
    ],
)
def test_what_others_say_of_the_speaker_ends_nothing_that_the_speaker_said(report: str) -> None:
    facts = told(("2026-03-01", "I live in Berlin."), ("2026-03-20", report))
    assert facts["Sam lives_in Berlin"] == ("2026-03-01", None)
    assert "Sam lives_in Tokyo" not in facts


@pytest.mark.parametrize(
    ("report", "held"),
    [
        ("Somebody told me that Peter lives in Tokyo.", True),
        ("I think Peter lives in Tokyo.", True),
        ("Tom says that Peter moved to Tokyo.", True),
        ("I heard that Peter doesn't live in Berlin anymore.", True),
        ("Peter told me that she moved to Tokyo.", False),
        ("Peter lives in Tokyo.", False),
        ("I know that Peter lives in Tokyo.", False),
    ],
)
def test_hearsay_ends_no_surer_fact(report: str, held: bool) -> None:
    facts = told(("2026-03-01", "I live in Berlin.", "Peter"), ("2026-03-20", report))
    assert facts["Peter lives_in Berlin"] == ("2026-03-01", None if held else "2026-03-20")


def test_hearsay_counts_where_nothing_is_known() -> None:
    facts = told(("2026-03-01", "Somebody told me that Peter lives in Tokyo."), ("2026-03-20", "Peter lives in Berlin."))
    assert facts == {
        "Peter lives_in Tokyo": ("2026-03-01", "2026-03-20"),
        "Peter lives_in Berlin": ("2026-03-20", None),
    }
