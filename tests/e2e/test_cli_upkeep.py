"""The commands that keep a memory in order, and those that show it: as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.shell import Shell

FACTS = """subject,relation,object,valid_from
Maya Chen,works with,Ravi Menon,2024-02-01
Ravi Menon,works with,Dana Cole,2024-02-02
Dana Cole,works with,Maya Chen,2024-02-03
Ewa Lind,sails with,Farid Aziz,2024-03-01
Farid Aziz,sails with,Greta Holm,2024-03-02
Greta Holm,sails with,Ewa Lind,2024-03-03
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder with a store of six facts, without an extractor or a model."""
    shell = Shell(tmp_path)
    shell.write("graphmem.toml", 'extractor = "none"\nembeddings = "none"\n')
    shell.write("facts.csv", FACTS)
    assert shell.run("ingest", "facts.csv").code == 0
    return shell


def test_communities_are_found_shown_and_asked_for(shell: Shell) -> None:
    assert len(shell.run("communities", "--refresh", "--json").document) == 2
    listed = shell.run("communities", "who sails", "--json").document
    assert "Farid Aziz" in listed[0]["name"]
    members = shell.run("communities", "--members", listed[0]["id"])
    assert all(name in members.out for name in ("Ewa Lind", "Farid Aziz", "Greta Holm"))
    assert "Maya Chen" not in members.out


@pytest.mark.parametrize(
    ("format_", "begins"), [("mermaid", "flowchart"), ("dot", "graph"), ("ascii", "Maya Chen"), ("html", "<!doctype")]
)
def test_a_part_of_the_graph_is_drawn(shell: Shell, format_: str, begins: str) -> None:
    drawn = shell.run("visualize", "Maya Chen", "--format", format_)
    assert drawn.code == 0
    assert begins in drawn.out[:200].lower() or begins in drawn.out[:200]
    assert "Ravi Menon" in drawn.out
    assert "Greta Holm" not in drawn.out


def test_what_is_exported_comes_back_in_another_store(shell: Shell) -> None:
    assert shell.run("export", "all.jsonl").code == 0
    assert shell.run("import", "all.jsonl", "--store", "sqlite:///other.db").code == 0
    here, there = (shell.run("stats", "--json", "--store", f"sqlite:///{name}.db") for name in ("graphmem", "other"))
    assert (there.document["entities"], there.document["edges"]) == (here.document["entities"], here.document["edges"])


def test_an_export_to_standard_output_is_lines_of_json_and_nothing_else(shell: Shell) -> None:
    exported = shell.run("export")
    assert {json.loads(line)["kind"] for line in exported.out.splitlines()[1:-1]} >= {"entity", "edge", "alias"}
    assert shell.run("import", "-", "--store", "sqlite:///other.db", stdin=exported.out).code == 0


def test_an_import_of_a_file_cut_off_is_refused_and_stores_nothing(shell: Shell) -> None:
    whole = shell.run("export").out.splitlines()
    shell.write_lines("cut.jsonl", *whole[:-3])
    ran = shell.run("import", "cut.jsonl", "--store", "sqlite:///other.db")
    assert (ran.code, "the file is cut off" in ran.err) == (2, True)
    assert shell.run("stats", "--json", "--store", "sqlite:///other.db").document["entities"] == 0


def test_what_is_forgotten_is_asked_about_first_and_is_gone_then(shell: Shell) -> None:
    assert shell.run("forget", "Maya Chen", stdin="n\n").code != 0
    assert shell.run("facts", "Maya Chen").code == 0
    gone = shell.run("forget", "Maya Chen", "--yes", "--json").document
    assert (gone["entities"], gone["facts"]) == (1, 2)
    assert shell.run("facts", "Maya Chen").code == 4
    assert b"Maya Chen" not in b"".join(file.read_bytes() for file in shell.folder.glob("graphmem.db*"))


def test_forget_names_one_thing(shell: Shell) -> None:
    assert shell.run("forget", "--yes").code == 2
    assert shell.run("forget", "Maya Chen", "--session", "s1", "--yes").code == 2


def test_clear_empties_one_scope_only(shell: Shell) -> None:
    shell.run("ingest", "facts.csv", "--scope", "other")
    assert shell.run("clear", "--yes").code == 0
    assert shell.run("stats", "--json").document["entities"] == 0
    assert shell.run("stats", "--json", "--scope", "other").document["entities"] == 6


def test_evict_and_decay_tell_what_they_did(shell: Shell) -> None:
    assert shell.run("evict", "--yes", "--json").document["deleted_facts"] == 0
    assert shell.run("decay", "--json").code == 0


def test_backfill_needs_an_extractor(shell: Shell) -> None:
    shell.run("ingest", "-", stdin='{"text": "A turn."}\n')
    assert "extract" in shell.run("backfill").err
