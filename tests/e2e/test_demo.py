"""`graphmem demo` as a newcomer runs it, with the real local parser."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from tests.neo4j_server import PASSWORD

GRAPHMEM = str(shutil.which("graphmem", path=Path(sys.executable).parent))
needs_spacy = pytest.mark.skipif(importlib.util.find_spec("spacy") is None, reason="needs graphmem[spacy]")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [GRAPHMEM, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_conversation_is_as_long_and_as_varied_as_a_real_one() -> None:
    text = files("graphmem.adapters.demo").joinpath("conversation.jsonl").read_text("utf-8")
    turns = [json.loads(line) for line in text.splitlines()]
    times = [datetime.fromisoformat(turn["occurred_at"]) for turn in turns]

    assert len(turns) >= 90
    assert len({turn["session_id"] for turn in turns}) >= 6
    assert len([name for name, said in Counter(turn["speaker"] for turn in turns).items() if said > 5]) >= 4
    assert times == sorted(times)
    assert times[-1] - times[0] > timedelta(days=500)
    assert len({turn["external_id"] for turn in turns}) == len(turns)


@pytest.mark.slow
@needs_spacy
def test_the_demo_answers_with_sources_shows_a_history_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = run(tmp_path, "demo")

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "Mara started at Orchard Energy on 16 February 2026." in ran.stdout
    assert "Mara, 2026-02-20: “So... I've got a job!" in ran.stdout
    assert "2025-07-01  until 2026-02-15  Brightwater Labs" in ran.stdout
    assert "## Known facts" in ran.stdout
    assert "graphmem ingest chat.jsonl" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@needs_spacy
def test_a_kept_demo_is_a_store_to_look_around_in_and_is_not_filled_twice(tmp_path: Path) -> None:
    assert run(tmp_path, "demo", "--keep").returncode == 0
    again = run(tmp_path, "demo", "--keep")
    facts = run(tmp_path, "facts", "Mara", "--store", "sqlite:///graphmem-demo.db", "--scope", "demo")

    assert "nothing was stored twice" in again.stdout
    assert facts.returncode == 0
    assert "Orchard Energy" in facts.stdout


@pytest.mark.full
@needs_spacy
def test_a_demo_in_a_store_of_ones_own_is_in_the_scope_that_was_named(tmp_path: Path) -> None:
    ran = run(tmp_path, "demo", "--store", "sqlite:///mine.db", "--scope", "my tour")
    options = ("--store", "sqlite:///mine.db", "--scope", "my tour")

    assert f"graphmem facts Mara {shlex.join(options)}" in ran.stdout
    assert "Orchard Energy" in run(tmp_path, "facts", "Mara", *options).stdout


@pytest.mark.full
@needs_spacy
def test_a_demo_in_memory_is_not_said_to_be_kept(tmp_path: Path) -> None:
    ran = run(tmp_path, "demo", "--store", "memory://tour", "--keep")

    assert (ran.returncode, "This store is kept" in ran.stdout) == (0, False)


@pytest.mark.full
@needs_spacy
def test_the_demo_runs_in_a_database_and_leaves_its_facts_there(tmp_path: Path, empty_neo4j_url: str) -> None:
    ran = run(tmp_path, "demo", "--store", empty_neo4j_url)
    facts = run(tmp_path, "facts", "Mara", "--store", empty_neo4j_url, "--scope", "demo")

    assert ran.returncode == 0, ran.stderr
    assert "Mara started at Orchard Energy on 16 February 2026." in ran.stdout
    assert "2025-07-01  until 2026-02-15  Brightwater Labs" in ran.stdout
    assert PASSWORD not in ran.stdout + ran.stderr
    assert "Orchard Energy" in facts.stdout
    assert list(tmp_path.iterdir()) == []
