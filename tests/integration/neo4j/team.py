"""A small team, told to a memory over two years: what the saved queries are run on, and looked at in Browser."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from graphmem import GraphMemory
from graphmem.models import Scope
from graphmem.protocols import ExtractedEdge, Extraction, ExtractionRequest

TEAM = Scope("team", "apollo")

# speaker, when, text, facts of it: (subject, type, relation, object, type)
Told = tuple[str, str, str, list[tuple[str, str, str, str, str]]]
CONVERSATION: list[Told] = [
    (
        "Maya Chen",
        "2026-03-02T09:00:00Z",
        "Ravi and I picked Neo4j for Apollo.",
        [
            ("Ravi Menon", "person", "chose", "Neo4j", "technology"),
            ("Apollo", "project", "uses", "Neo4j", "technology"),
        ],
    ),
    (
        "Ravi Menon",
        "2026-03-02T09:05:00Z",
        "Lena from Hooli reviews our data model.",
        [("Lena Ortiz", "person", "reviews", "Apollo", "project")],
    ),
    ("Lena Ortiz", "2026-03-03T10:00:00Z", "This page can't be read.", []),
]
WAITING = "Who takes the minutes on Friday?"
UNREADABLE = "This page can't be read."

TRIPLES: list[dict[str, Any]] = [
    {"subject": "Maya Chen", "relation": "works at", "object": "Initech", "valid_from": "2024-01-01T00:00:00Z"},
    {"subject": "Maya Chen", "relation": "works at", "object": "Globex", "valid_from": "2025-06-01T00:00:00Z"},
    {"subject": "Maya Chen", "relation": "lives in", "object": "Boston", "valid_from": "2023-09-01T00:00:00Z"},
    {
        "subject": "Maya Chen",
        "relation": "leads",
        "object": "Apollo",
        "object_type": "project",
        "valid_from": "2025-07-01T00:00:00Z",
    },
    {
        "subject": "Maya Chen",
        "relation": "knows",
        "object": "Ravi Menon",
        "object_type": "person",
        "valid_from": "2025-06-02T00:00:00Z",
    },
    {"subject": "Ravi Menon", "relation": "works at", "object": "Globex", "valid_from": "2022-01-01T00:00:00Z"},
    {
        "subject": "Ravi Menon",
        "relation": "uses",
        "object": "Vim",
        "object_type": "tool",
        "valid_from": "2020-01-01T00:00:00Z",
        "valid_to": "2025-03-01T00:00:00Z",
    },
    {
        "subject": "Ravi Menon",
        "relation": "married to",
        "object": "Lena Ortiz",
        "object_type": "person",
        "valid_from": "2019-05-01T00:00:00Z",
    },
    {"subject": "Lena Ortiz", "relation": "works at", "object": "Hooli", "valid_from": "2021-01-01T00:00:00Z"},
    {
        "subject": "Lena Ortiz",
        "relation": "knows",
        "object": "Tom Berg",
        "object_type": "person",
        "valid_from": "2021-02-01T00:00:00Z",
    },
    {"subject": "Tom Berg", "relation": "works at", "object": "Hooli", "valid_from": "2020-01-01T00:00:00Z"},
    {"subject": "Tom Berg", "relation": "lives in", "object": "Lisbon", "valid_from": "2018-01-01T00:00:00Z"},
    {
        "subject": "March outage",
        "subject_type": "event",
        "relation": "caused",
        "object": "Move to Neo4j",
        "object_type": "decision",
        "edge_type": "causal",
        "valid_from": "2026-02-20T00:00:00Z",
    },
    {
        "subject": "Move to Neo4j",
        "subject_type": "decision",
        "relation": "part of",
        "object": "Apollo",
        "object_type": "project",
        "edge_type": "entity",
        "valid_from": "2026-03-02T00:00:00Z",
    },
    {
        "subject": "Plan of May",
        "subject_type": "decision",
        "relation": "conflicts with",
        "object": "Move to Neo4j",
        "object_type": "decision",
        "valid_from": "2026-03-10T00:00:00Z",
    },
    {
        "subject": "Apollo",
        "subject_type": "tool",
        "relation": "logs to",
        "object": "Globex",
        "object_type": "organization",
        "valid_from": "2026-01-01T00:00:00Z",
    },
]


class Team:
    """Extracts what `CONVERSATION` says that a text says."""

    name = "team"
    batch_size = 8

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Return the facts of each text; one of them can't be read."""
        return [self._one(request.episode.text) for request in requests]

    def _one(self, text: str) -> Extraction | Exception:
        if text == UNREADABLE:
            return RuntimeError("no page is so dark")
        facts = next(told for _, _, words, told in CONVERSATION if words == text)
        edges = (ExtractedEdge(s, relation, t, source_type=a, target_type=b) for s, a, relation, t, b in facts)
        return Extraction(edges=tuple(edges))


def open_team(url: str) -> GraphMemory:
    """Open the team's memory; what can't be read fails at once."""
    return GraphMemory.open(url, scope=TEAM, extractor=Team(), background=False, max_attempts=1)


def tell(memory: GraphMemory) -> None:
    """Tell everything; the last turn waits for extraction."""
    memory.add_facts(TRIPLES)
    for speaker, when, text, _ in CONVERSATION:
        memory.remember(text, speaker=speaker, occurred_at=when, session_id="monday")
    memory.flush()
    memory.remember(WAITING, speaker="Maya Chen", occurred_at=datetime(2026, 3, 4, tzinfo=UTC), session_id="monday")
