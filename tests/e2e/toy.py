"""An extractor that costs nothing: a text is lines of ``subject | relation | object``."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.protocols import ExtractedEdge, ExtractedEntity, Extraction, ExtractionRequest

FAILS = "cannot be read"
"""A text with this in it is an episode that can't be extracted."""

MARK = "#"
"""What stands behind it on a line is the summary of the subject and ends the sentence of the fact."""


def lines_of(text: str) -> list[tuple[str, str, str, str]]:
    """Return (subject, relation, object, remark) of each line."""
    found: list[tuple[str, str, str, str]] = []
    for line in text.splitlines():
        statement, _, remark = line.partition(MARK)
        subject, relation, target = (part.strip() for part in statement.split("|"))
        found.append((subject, relation, target, remark.strip()))
    return found


def read(text: str) -> Extraction:
    """Read a toy text."""
    lines = lines_of(text)
    return Extraction(
        entities=tuple(ExtractedEntity(s, summary=remark) for s, _, _, remark in lines),
        edges=tuple(ExtractedEdge(s, r, o, fact=f"{s} {r} {o} {remark}".strip()) for s, r, o, remark in lines),
    )


class ToyExtractor:
    """Reads toy texts, and remembers which."""

    name = "toy"
    batch_size = 8

    def __init__(self) -> None:
        self.seen: list[str] = []

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read the episodes; those that say so fail."""
        return [self._one(request.episode.text) for request in requests]

    def _one(self, text: str) -> Extraction | Exception:
        self.seen.append(text)
        return RuntimeError(f"{text[:40]!r} {FAILS}") if FAILS in text else read(text)
