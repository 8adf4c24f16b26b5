"""Replaying and recording extractions."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphmem.errors import ExtractionFailed, InvalidInput
from graphmem.ingest.extract.recorded import ExtractionRecorder, RecordedExtractor
from graphmem.models import Episode, Scope
from graphmem.protocols import ExtractedEdge, ExtractedEnding, ExtractedEntity, Extraction, ExtractionRequest

TEXT = "Ann works at Acme, für immer."


class Fixed:
    """Gives each request the next of some outcomes."""

    name = "fixed"
    batch_size = 3

    def __init__(self, *outcomes: Extraction | Exception) -> None:
        self._outcomes = outcomes

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return list(self._outcomes[: len(requests)])


def request(text: str = TEXT, external_id: str | None = None) -> ExtractionRequest:
    return ExtractionRequest(Episode(scope=Scope(), text=text, external_id=external_id))


def written(folder: Path, *lines: object) -> Path:
    path = folder / "recorded.jsonl"
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines), encoding="utf-8")
    return path


def replay(path: Path, of: ExtractionRequest) -> Extraction | Exception:
    [outcome] = RecordedExtractor(path).extract([of])
    return outcome


def names(outcome: Extraction | Exception) -> list[str]:
    assert isinstance(outcome, Extraction), outcome
    return [e.name for e in outcome.entities]


@pytest.mark.parametrize(
    "key",
    [{"text": TEXT}, {"text_sha256": hashlib.sha256(TEXT.encode()).hexdigest()}, {"external_id": "x"}],
    ids=lambda key: next(iter(key)),
)
def test_an_episode_is_found_by_each_key(tmp_path: Path, key: dict[str, Any]) -> None:
    assert names(replay(written(tmp_path, {**key, "entities": ["Ann"]}), request(external_id="x"))) == ["Ann"]


def test_the_external_id_goes_before_the_text(tmp_path: Path) -> None:
    path = written(tmp_path, {"external_id": "x", "entities": ["Ann"]}, {"text": TEXT, "entities": ["Bob"]})
    assert names(replay(path, request(external_id="x"))) == ["Ann"]


def test_of_two_lines_for_one_episode_the_later_counts(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": TEXT, "entities": ["Ann"]}, "", {"text": TEXT, "entities": ["Bob"]})
    assert names(replay(path, request())) == ["Bob"]


def test_an_id_is_not_mistaken_for_the_hash_of_a_text(tmp_path: Path) -> None:
    path = written(tmp_path, {"external_id": hashlib.sha256(TEXT.encode()).hexdigest(), "entities": ["Ann"]})
    assert isinstance(replay(path, request()), ExtractionFailed)


def test_an_episode_without_a_recording_fails_and_is_named(tmp_path: Path) -> None:
    outcome = replay(written(tmp_path), request(external_id="chat-7"))
    assert isinstance(outcome, ExtractionFailed)
    assert "no recording for external_id 'chat-7'" in str(outcome)


def test_open_ie_triples_of_another_length_are_left_out_and_counted(tmp_path: Path) -> None:
    line = {
        "title": "t",
        "text": TEXT,
        "entities": ["Ann"],
        "triples": [["Ann", "is", "x"], ["Ann", "is"], list("abcd")],
    }
    outcome = replay(written(tmp_path, line), request())
    assert isinstance(outcome, Extraction)
    assert outcome.edges == (ExtractedEdge("Ann", "is", "x"),)
    assert outcome.dropped == (("malformed triple", 2),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": "a", ', "line 2"),
        ("[1]", "line 2: expected a JSON object, got list"),
        ({"entities": []}, "line 2: expected external_id"),
        ({"text": 1}, "line 2: text is int"),
        ({"text_sha256": "abc"}, "line 2: text_sha256 'abc'"),
        ({"text": "a", "entities": "Ann"}, "line 2: entities is str"),
        ({"text": "a", "entities": [{"type": "person"}]}, "line 2: entity"),
        ({"text": "a", "edges": [["Ann", "knows"]]}, "line 2: edge"),
        ({"text": "a", "edges": [{"source": "A", "relation": "r", "target": "B", "valid_to": "soon"}]}, "ISO 8601"),
        ({"text": "a", "dropped": {"limit": "x"}}, "line 2: dropped.limit"),
        ("[" * 100_000, "line 2"),
    ],
)
def test_a_malformed_line_is_named_with_its_reason(tmp_path: Path, line: object, reason: str) -> None:
    path = written(tmp_path, {"text": TEXT}, line, {"text": "b"})
    with pytest.raises(InvalidInput, match=r"recorded\.jsonl, line 2") as caught:
        RecordedExtractor(path)
    assert reason in str(caught.value)


def test_bytes_that_are_no_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": "\xff"}\n')
    with pytest.raises(InvalidInput, match="line 2"):
        RecordedExtractor(path)


@pytest.mark.parametrize("missing", [True, False], ids=["absent", "folder"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, missing: bool) -> None:
    path = tmp_path / "none.jsonl" if missing else tmp_path
    with pytest.raises(InvalidInput, match=path.name):
        RecordedExtractor(path)


def test_a_file_that_changed_is_a_failure_of_the_episode(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": "a"}, {"text": TEXT, "entities": ["Ann"]})
    extractor = RecordedExtractor(path)
    path.write_text("gone\n")
    assert isinstance(extractor.extract([request()])[0], ExtractionFailed)


FULL = Extraction(
    (ExtractedEntity("Ann", "person", "works", 0.0), ExtractedEntity("Ümit", "concept")),
    (
        ExtractedEdge("Ann", "works_at", "Acme", "semantic", "Ann works at Acme.", 0.0, ended=True),
        ExtractedEdge(
            "Ann",
            "knows",
            "Ümit",
            confidence=0.25,
            valid_from=datetime(2023, 5, 7, 1, 2, 3, 4, tzinfo=UTC),
            valid_to=datetime(2024, 1, 1, tzinfo=UTC),
            source_type="person",
            target_type="person",
            certainty="plan",
            kind="event",
        ),
    ),
    (("limit", 3), ("ungrounded", 2)),
    (
        ExtractedEnding("Ann", "works_at"),
        ExtractedEnding("Ümit", "married_to", valid_to=datetime(2024, 1, 1, tzinfo=UTC), source_type="person"),
        ExtractedEnding("Ann", "uses", "vim", why="corrected"),
        ExtractedEnding("Ann", "has_manager", "Ida", others="targets", presumed=True),
        ExtractedEnding(fact_id="0190-abc", valid_to=datetime(2024, 1, 1, tzinfo=UTC)),
    ),
    frozenset({"s3", "ac"}),
)


def test_what_is_recorded_is_replayed_exactly(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    ExtractionRecorder(path, Fixed(FULL)).extract([request()])
    assert replay(path, request()) == FULL


def test_the_recorded_example_has_each_field_of_an_extraction() -> None:
    assert [field.name for field in fields(Extraction) if getattr(FULL, field.name) == field.default] == []


def test_recording_appends_and_leaves_failures_out(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    ExtractionRecorder(path, Fixed(FULL, ExtractionFailed("no"))).extract([request("a"), request("b")])
    ExtractionRecorder(path, Fixed(FULL)).extract([request("c")])
    assert len(RecordedExtractor(path)) == 2
    assert isinstance(replay(path, request("b")), ExtractionFailed)


def test_recording_passes_the_outcomes_through(tmp_path: Path) -> None:
    outcomes = [FULL, ExtractionFailed("no")]
    recorder = ExtractionRecorder(tmp_path / "audit.jsonl", Fixed(*outcomes))
    assert recorder.extract([request("a"), request("b")]) == outcomes


def test_a_recording_holds_no_text_of_an_episode(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    ExtractionRecorder(path, Fixed(Extraction())).extract([request("a private remark")])
    assert "private" not in path.read_text()


def test_a_place_that_cannot_be_written_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        ExtractionRecorder(tmp_path / "nowhere" / "audit.jsonl", Fixed())


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_nothing_is_recorded_into_a_database(tmp_path: Path, suffix: str) -> None:
    database = tmp_path / "memory.db"
    sqlite3.connect(database).execute("CREATE TABLE t (a)").connection.close()
    before = database.read_bytes()
    with pytest.raises(InvalidInput, match="is a database"):
        ExtractionRecorder(f"{database}{suffix}", Fixed())
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_an_extraction_that_cannot_be_recorded_is_a_failure(tmp_path: Path) -> None:
    folder = tmp_path / "audits"
    folder.mkdir()
    recorder = ExtractionRecorder(folder / "audit.jsonl", Fixed(FULL))
    (folder / "audit.jsonl").unlink()
    folder.rmdir()
    assert isinstance(recorder.extract([request()])[0], ExtractionFailed)


def test_the_open_ie_dump_of_musique_is_replayed_whole(shared_data: Path) -> None:
    path = shared_data / "musique_passages_openie.jsonl"
    passages = [json.loads(line) for line in path.open(encoding="utf-8")]
    outcomes = RecordedExtractor(path).extract([request(p["text"]) for p in passages])
    assert sum(len(o.edges) for o in outcomes if isinstance(o, Extraction)) == 17_234


def test_a_recorded_extractor_gets_the_calls_turns_and_known_facts_that_it_takes(tmp_path: Path) -> None:
    class Parallel(Fixed):
        concurrency, turns_per_call, reads_known = 16, 4, True

    recorders = [ExtractionRecorder(tmp_path / "audit.jsonl", extractor()) for extractor in (Fixed, Parallel)]
    assert [(r.concurrency, r.turns_per_call, r.reads_known) for r in recorders] == [(1, 1, False), (16, 4, True)]
