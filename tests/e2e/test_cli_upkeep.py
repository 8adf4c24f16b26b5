"""The commands that keep a memory in order, and those that show it: as a user runs them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from graphmem.adapters.cli.session import Session, Shared
from tests.e2e.shell import TRIPLES, Shell

pytestmark = pytest.mark.slow  # each command is a process

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


def numbers_of(out: str) -> dict[str, int]:
    """Return what a command counted: a name and a number a line."""
    pairs = (line.rsplit(maxsplit=1) for line in out.splitlines() if line.strip())
    return {name.strip(): int(number) for name, number in pairs}


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
    for number, source in enumerate(("-", "/dev/stdin")):
        assert shell.run("import", source, "--store", f"sqlite:///{number}.db", stdin=exported.out).code == 0


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


@pytest.mark.slow
def test_a_fact_is_ended_and_retracted_by_its_id(shell: Shell) -> None:
    ids = {fact["target"]: fact["id"] for fact in shell.run("facts", "Maya Chen", "--json").document["facts"]}
    first, second = sorted(ids)
    done = shell.run("end", ids[first], "--at", "2999-01-01", "--reason", "moved", "--json").document
    assert (done["valid_to"][:10], done["end_reason"]) == ("2999-01-01", "moved")
    told = shell.run("retract", ids[second], "--reason", "a joke")
    assert (told.code, "never true" in told.out) == (0, True)
    assert [fact["target"] for fact in shell.run("facts", "Maya Chen", "--json").document["facts"]] == [first]
    assert shell.run("retract", "unknown").code == 4
    assert shell.run("end", ids[first], "--at", "1999-01-01").code == 2


def test_infer_stores_what_rules_imply(shell: Shell) -> None:
    shell.write("teams.csv", "subject,relation,object\nMaya,works at,Lab\nLab,part of,Globex\n")
    shell.run("ingest", "teams.csv", "--scope", "teams")
    would = shell.run("infer", "--dry-run", "--scope", "teams")
    assert "facts would be added" in would.out
    assert "Maya works at Globex (by composition works_at + part_of from: Maya works at Lab; Lab part of" in would.out
    assert shell.run("infer", "--json", "--scope", "teams").document["added"] == 1
    assert shell.run("infer", "--json", "--scope", "teams").document["kept"] == 1
    recalled = shell.run("recall", "Maya", "--scope", "teams", COLUMNS="300").out
    assert "Maya works at Globex [inferred by composition works_at + part_of from: Maya works at Lab; Lab" in recalled
    facts = shell.run("recall", "Maya", "--no-inferred", "--json", "--scope", "teams").document["facts"]
    assert [fact["inferred_by"] for fact in facts] == [None, None]
    assert shell.run("infer", "Maya", "--scope", "teams").code == 2


def test_forget_tells_what_it_would_erase(shell: Shell) -> None:
    shell.write_lines("read.jsonl", READ)
    turn = '{"text": "Anna met Boris.", "speaker": "Carl"}\n'
    shell.run("ingest", "-", "--extractor", "recorded:read.jsonl", stdin=turn)
    told = shell.run("forget", "Anna", "--with-episodes", "--dry-run").out
    assert "Carl: Anna met Boris." in told
    assert shell.run("forget", "--speaker", "Carl", "--yes", "--json").document["episodes"] == 1


def test_forget_names_one_thing(shell: Shell) -> None:
    assert shell.run("forget", "--yes").code == 2
    assert shell.run("forget", "Maya Chen", "--session", "s1", "--yes").code == 2


def test_clear_empties_one_scope_only(shell: Shell) -> None:
    shell.run("ingest", "facts.csv", "--scope", "other")
    assert shell.run("clear", "--yes").code == 0
    assert shell.run("stats", "--json").document["entities"] == 0
    assert shell.run("stats", "--json", "--scope", "other").document["entities"] == 6


def test_what_has_expired_is_erased(shell: Shell) -> None:
    assert shell.run("remember", "The code is 4711.", "--expires-in", "never").code == 2
    for text, lifetime in (("The code is 4711.", "0.001s"), ("The door is blue.", "12h")):
        assert shell.run("remember", text, "--expires-in", lifetime, "--extractor", "none").code == 0
    assert shell.run("expire", "--dry-run", "--json").document["episodes"] == 1
    assert shell.run("expire", "--json").document["episodes"] == 1
    assert shell.run("expire", "--json").document["episodes"] == 0
    assert "expired and erased" in shell.run("stats").out
    assert b"4711" not in b"".join(file.read_bytes() for file in shell.folder.glob("graphmem.db*"))


def test_evict_deletes_what_is_long_over_and_hides_who_is_left_without_facts(shell: Shell) -> None:
    shell.write("jobs.csv", TRIPLES)
    shell.run("ingest", "jobs.csv", "--scope", "jobs")
    at_once = {"GRAPHMEM_SCOPE": "jobs", "GRAPHMEM_EXPIRED_EDGE_RETENTION_DAYS": "0"}

    def told() -> tuple[int, int, int]:
        stats = shell.run("stats", "--json", "--scope", "jobs").document
        return stats["edges"], stats["active_edges"], stats["archived_entities"]

    assert shell.run("evict", "--yes", "--scope", "jobs", "--json").document["deleted_facts"] == 0
    assert shell.run("evict", stdin="n\n", **at_once).code != 0
    would = shell.run("evict", "--dry-run", "--json", **at_once).document
    assert (would["deleted_facts"], would["archived_entities"], len(would["examples"])) == (1, 1, 1)
    assert told() == (4, 3, 0)
    evicted = shell.run("evict", "--yes", **at_once)
    assert (evicted.code, numbers_of(evicted.out)) == (
        0,
        {"facts deleted": 1, "facts ended": 0, "entities archived": 1},
    )
    assert told() == (3, 3, 1)
    again = shell.run("evict", "--yes", "--json", **at_once).document
    assert (again["deleted_facts"], again["archived_entities"], again["finished"]) == (0, 0, True)


def test_decay_lowers_the_counts_of_what_was_recalled(shell: Shell) -> None:
    def counts() -> list[float]:
        return [fact["retrieval_count"] for fact in shell.run("facts", "Maya Chen", "--json").document["facts"]]

    assert shell.run("decay", "--json").document == {"scope": "default", "facts": 0}
    shell.run("recall", "Maya Chen")
    assert shell.run("decay").out.strip() == "3 facts with a retrieval count"
    assert counts() == [1.0, 1.0]  # retrieved within a day
    fast = {"GRAPHMEM_LINK_WEIGHT_DECAY_INTERVAL": "0", "GRAPHMEM_LINK_WEIGHT_DECAY_LAMBDA": "100"}
    assert shell.run("decay", "--json", **fast).document == {"scope": "default", "facts": 3}
    assert all(0 < count < 1 for count in counts())


def test_entities_are_merged_and_parted_again(shell: Shell) -> None:
    def facts(name: str) -> set[str]:
        return {fact["fact"] for fact in shell.run("facts", name, "--json").document["facts"]}

    before = {name: facts(name) for name in ("Maya Chen", "Ewa Lind")}
    assert shell.run("merge", "Ewa Lind", "--into", "Maya Chen", stdin="n\n").code != 0
    assert facts("Ewa Lind") == before["Ewa Lind"]
    merged = shell.run("merge", "Ewa Lind", "--into", "Maya Chen", "--yes")
    said, _, undo = merged.out.strip().partition("; to undo it: graphmem ")
    assert (merged.code, said) == (0, "merged Ewa Lind into Maya Chen with 2 facts and 1 mention")
    assert facts("Maya Chen") == facts("Ewa Lind")
    assert len(facts("Maya Chen")) == 4
    parted = shell.run(*undo.split(), "--yes")
    assert parted.code == 0
    assert parted.out.split(":")[0] == "Ewa Lind is separate from Maya Chen again"
    assert {name: facts(name) for name in before} == before
    assert shell.run("unmerge", "none", "--yes").code == 4
    made = shell.run("merge", "Greta Holm", "Dana Cole", "--into", "Maya Chen", "--yes", "--json").document
    assert {(one["merged"], one["kept"]) for one in made} == {("Greta Holm", "Maya Chen"), ("Dana Cole", "Maya Chen")}
    undone = shell.run("unmerge", made[-1]["id"], "--yes", "--json").document
    assert (undone["merged"], undone["undone_at"] is not None) == (made[-1]["merged"], True)


READ = {"text": "Anna met Boris.", "entities": ["Anna", "Boris"], "edges": [["Anna", "met", "Boris"]]}


def test_backfill_extracts_what_waits(shell: Shell) -> None:
    shell.write_lines("read.jsonl", READ, {**READ, "text": "Cyril met Diana.", "edges": [["Cyril", "met", "Diana"]]})
    shell.run("ingest", "-", stdin='{"text": "Anna met Boris."}\n{"text": "Cyril met Diana."}\n')
    assert shell.run("facts", "Anna").code == 4
    first = shell.run("backfill", "--extractor", "recorded:read.jsonl", "--limit", "1")
    assert first.code == 0
    shown = {"extracted": 1, "failed": 0, "new entities": 2, "new facts": 1, "waiting": 1}
    assert numbers_of(first.out) == shown
    rest = shell.run("backfill", "--extractor", "recorded:read.jsonl", "--json")
    assert (rest.code, rest.document["extracted"], rest.document["waiting"]) == (0, 1, 0)
    for name, fact in (("Anna", "Anna met Boris"), ("Cyril", "Cyril met Diana")):
        assert [f["fact"] for f in shell.run("facts", name, "--json").document["facts"]] == [fact]


def test_backfill_fails_where_nothing_can_be_extracted(shell: Shell) -> None:
    shell.write_lines("read.jsonl", READ)
    shell.run("ingest", "-", stdin='{"text": "A turn."}\n')
    ran = shell.run("backfill", "--extractor", "recorded:read.jsonl", "--json")
    assert (ran.code, ran.document["extracted"], ran.document["failed"]) == (1, 0, 1)
    assert "nothing was extracted" in ran.err


def test_dead_letters_are_listed_and_tried_again_by_the_command_that_is_shown(shell: Shell) -> None:
    shell.write("graphmem.toml", 'extractor = "recorded:read.jsonl"\nmax_attempts = 1\n')
    shell.write_lines("read.jsonl", {**READ, "text": "Another one."})
    shell.run("ingest", "-", stdin='{"text": "Anna met Boris."}\n')
    assert "graphmem dead-letters" in shell.run("doctor").out
    listed = shell.run("dead-letters")
    assert re.search(r"^[0-9a-f-]{36} +1 +20", listed.out, re.MULTILINE)
    shell.write_lines("read.jsonl", READ)
    assert "graphmem backfill --failed" in listed.err
    assert numbers_of(shell.run("backfill", "--failed").out)["extracted"] == 1
    assert shell.run("dead-letters").code == 4


def test_backfill_again_replaces_what_another_extractor_said(shell: Shell) -> None:
    shell.write_lines("small.jsonl", {**READ, "edges": [["Anna", "met", "Lemme"]]})
    shell.write_lines("large.jsonl", READ)
    shell.run("ingest", "-", "--extractor", "recorded:small.jsonl", stdin='{"text": "Anna met Boris."}\n')
    again = shell.run("backfill", "--again", "--extractor", "recorded:large.jsonl", "--yes", "--json")
    assert (again.document["extracted"], again.document["waiting"]) == (1, 0)
    shown = shell.run("facts", "Anna", "--json").document["facts"]
    assert [f["fact"] for f in shown] == ["Anna met Boris"]
    past = shell.run("history", "Anna", "--json").document["facts"]
    assert {f["fact"] for f in past} == {"Anna met Boris", "Anna met Lemme"}


def test_an_extractor_that_cannot_be_made_is_a_finding_of_doctor(shell: Shell) -> None:
    shell.run("ingest", "-", stdin='{"text": "A turn."}\n')
    examined = shell.run("doctor", "--json", GRAPHMEM_EXTRACTOR="llm").document
    [found] = [check for check in examined["checks"] if check["name"] == "extractor"]
    assert (found["ok"], "no model is configured" in found["detail"]) == (False, True)


def test_the_hint_after_forget_names_what_was_given_and_runs_as_it_stands(shell: Shell) -> None:
    shell.write("my settings.toml", 'extractor = "recorded:read.jsonl"\nembeddings = "none"\n')
    shell.write_lines("read.jsonl", READ)
    given = ("--store", "sqlite:///my  own notes.db", "--scope", "home/it's mine", "--config", "my settings.toml")
    shell.run("ingest", "-", *given, stdin='{"text": "Anna met Boris."}\n')
    told = shell.run("forget", "Anna", "--yes", *given, FORCE_COLOR="1", COLUMNS="40").err  # as on a narrow terminal
    [line] = [line.strip() for line in told.splitlines() if "graphmem forget" in line]
    program, *arguments = shlex.split(line)
    assert (program, arguments[:2], arguments[3:]) == ("graphmem", ["forget", "Anna"], list(given))
    assert shell.run("stats", "--json", *given).document["episodes"] == 1
    assert shell.run(*arguments, "--yes").code == 0
    assert shell.run("stats", "--json", *given).document["episodes"] == 0


def test_the_hint_after_forget_has_no_option_that_was_not_given(shell: Shell) -> None:
    shell.write_lines("read.jsonl", READ)
    shell.run("ingest", "-", "--extractor", "recorded:read.jsonl", stdin='{"text": "Anna met Boris."}\n')
    told = shell.run("forget", "Anna", "--yes").err
    assert re.search(r"^  graphmem forget Anna --with-episodes$", told, re.MULTILINE)


def test_the_hint_after_forget_masks_a_password() -> None:
    session = Session(Shared(store="neo4j://ada:s3cret@host/notes"))
    assert session.command_line("forget") == "graphmem forget --store 'neo4j://ada:***@host/notes'"


def test_backfill_needs_an_extractor(shell: Shell) -> None:
    shell.run("ingest", "-", stdin='{"text": "A turn."}\n')
    assert "extract" in shell.run("backfill").err
