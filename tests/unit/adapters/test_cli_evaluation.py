"""The command eval-facts in this process."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.unit.adapters.in_process import Shell

TURNS = [
    {"external_id": "t1", "speaker": "Maya", "text": "I live in Lisbon.", "occurred_at": "2026-01-05T10:00:00Z"},
    {"external_id": "t2", "speaker": "Nate", "text": "I like chess.", "occurred_at": "2026-02-01T09:00:00Z"},
]
RECORDED = [
    {"external_id": "t1", "edges": [{"source": "Maya", "relation": "lives_in", "target": "Lisbon"}]},
    {"external_id": "t2", "edges": [{"source": "Nate", "relation": "likes", "target": "chess"}]},
]
KEY = [
    {"subject": "Maya", "relation": "lives_in", "object": "Lisbon", "valid_from": "2026-01-05"},
    {"subject": "Nate", "relation": "likes", "object": "go"},
    {"claim": "Nate likes chess"},
    {"question": "Where does Maya live?", "needles": [["lisbon"]]},
]


@pytest.fixture
def talk(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A folder with a conversation, its recorded extraction and a key."""
    monkeypatch.setenv("GRAPHMEM_EMBEDDINGS", "none")
    shell.write_lines("turns.jsonl", *TURNS)
    shell.write_lines("recorded.jsonl", *RECORDED)
    shell.write_lines("key.jsonl", *KEY)
    return shell


def test_eval_facts_prints_the_figures_and_what_is_wrong(talk: Shell) -> None:
    ran = talk.run("eval-facts", "turns.jsonl", "key.jsonl", "--extractor", "recorded:recorded.jsonl", "--wrong")
    lines = {" ".join(line.split()) for line in ran.out.splitlines()}
    assert ran.code == 0
    assert {"right 1 2", "lost 1 2", "claims stated as current 1 1", "questions answered by facts 1 1"} <= lines
    assert "lost: Nate likes go (? to open)" in lines


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_eval_facts_reads_pipes_and_standard_input(talk: Shell) -> None:
    def piped(name: str) -> Path:
        os.mkfifo(pipe := talk.folder / f"{name}.pipe")
        text = (talk.folder / name).read_text()
        threading.Thread(target=pipe.write_text, args=(text,), daemon=True).start()
        return pipe

    options = ("--extractor", "recorded:recorded.jsonl", "--json")
    ran = talk.run("eval-facts", str(piped("turns.jsonl")), str(piped("key.jsonl")), *options)
    assert (ran.code, ran.document["verdicts"]["right"]) == (0, 1)
    ran = talk.run("eval-facts", "-", "key.jsonl", *options, stdin=(talk.folder / "turns.jsonl").read_text())
    assert (ran.code, ran.document["verdicts"]["right"]) == (0, 1)


def test_eval_facts_says_that_a_conversation_is_missing(talk: Shell) -> None:
    ran = talk.run("eval-facts", "none.jsonl", "key.jsonl", "--extractor", "none")
    assert (ran.code, ran.err) == (2, "graphmem: none.jsonl: there is no such file or folder\n")


def test_eval_facts_as_json_is_one_document(talk: Shell) -> None:
    arguments = ("turns.jsonl", "key.jsonl", "--extractor", "recorded:recorded.jsonl", "--json")
    assert talk.run("eval-facts", *arguments).document["verdicts"]["right"] == 1


def test_eval_facts_without_an_extractor_says_so(talk: Shell) -> None:
    ran = talk.run("eval-facts", "turns.jsonl", "key.jsonl", "--extractor", "none", "--json")
    assert (ran.code, ran.document["stored"]) == (0, 0)
    assert f"not extracted: {len(TURNS)} of {len(TURNS)} turns; there is no extractor" in " ".join(ran.err.split())


def test_eval_facts_tells_the_line_of_a_fault_in_the_key(talk: Shell) -> None:
    talk.write_lines("key.jsonl", KEY[0], {"subject": "Maya"})
    ran = talk.run("eval-facts", "turns.jsonl", "key.jsonl", "--extractor", "none")
    assert ran.code != 0
    assert "key.jsonl, line 2: relation: missing" in ran.err
