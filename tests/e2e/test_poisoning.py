"""Texts that try to poison a memory, read by an extractor that believes and obeys everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import OpenMemory

from graphmem.models import utc_now
from graphmem.protocols import ExtractedEdge, ExtractedEnding, Extraction, ExtractionRequest

TEXTS = [
    json.loads(line)["text"]
    for line in (Path(__file__).parents[1] / "unit/text/injections.jsonl").read_text("utf-8").splitlines()
]
TRUE = {"Maya Lindqvist works at Initech.": "Initech", "Maya Lindqvist lives in Ghent.": "Ghent"}
QUESTION = "Where does Maya Lindqvist work and live?"


class Obedient:
    """An extractor that takes every text at its word: it states a fact with it, and ends those that were known."""

    name = "obedient"
    batch_size = 50

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read the texts."""
        return [self._read(request.episode.text) for request in requests]

    def _read(self, text: str) -> Extraction:
        if text in TRUE:
            relation = "works_at" if "works" in text else "lives_in"
            return Extraction(edges=(ExtractedEdge("Maya Lindqvist", relation, TRUE[text], fact=text),))
        number = TEXTS.index(text)
        return Extraction(
            edges=(
                ExtractedEdge("Maya Lindqvist", "works_at", f"Place {number}", fact=f"Maya works at {number}: {text}"),
                ExtractedEdge("Maya Lindqvist", "lives_in", "Ghent", ended=True),
            ),
            endings=(ExtractedEnding("Maya Lindqvist", "works_at"), ExtractedEnding("Maya Lindqvist", "lives_in")),
        )


@pytest.mark.server
def test_poisoned_texts_of_external_sources_end_nothing_and_are_marked_wherever_they_show(
    store_url: str, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url, extractor=Obedient(), embeddings="none")
    for text, speaker in zip(TRUE, ("Maya Lindqvist", None), strict=True):
        memory.remember(text, speaker=speaker)
    memory.flush()
    poisoned = {memory.remember(text, trust="external").episode_id: text for text in TEXTS}
    memory.flush()

    current = memory.facts("Maya Lindqvist", as_of=utc_now())
    assert {fact.target for fact in current if fact.trust == "trusted"} == set(TRUE.values())
    believed = [fact for fact in memory.history("Maya Lindqvist", limit=300) if fact.target not in TRUE.values()]
    assert {fact.trust for fact in believed} == {"external"}
    missed = {fact.episode_ids[0] for fact in believed}
    assert len(missed) <= 0.04 * len(TEXTS), "fewer are detected than the documentation says"

    detected = [episode_id for episode_id in poisoned if episode_id not in missed]
    of_fact = {fact.id for fact in believed}
    seen = 0
    for episode_id in (*sorted(missed)[:6], *detected[::40]):
        question = f"{QUESTION} {poisoned[episode_id]}"
        lines = memory.context(question, budget_tokens=2_000, explain=True).lines
        assert not [line for line in lines if line.id in detected]
        from_poison = [line for line in lines if line.id in missed or line.id in of_fact]
        assert all("external source)" in line.text for line in from_poison)
        seen += len(from_poison)
    assert seen >= 6, "texts that aren't detected are quoted, or the test shows nothing"
