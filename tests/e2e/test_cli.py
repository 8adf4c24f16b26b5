"""The command line as a user runs it: a process of its own, files, exit codes, what stands on which stream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from graphmem.testing.rows import home
from tests.e2e.shell import GRAPHMEM, TRIPLES, TURNS, Shell
from tests.neo4j_server import PASSWORD

ONES_OWN = {
    "recorded_at",
    "told_at",
    "first_seen_at",
    "last_seen_at",
    "expired_at",
    "seconds",
    "store",
    "superseded_by",
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder with a store of four triples; for tests that only read."""
    shell = Shell(tmp_path_factory.mktemp("filled"))
    shell.write("facts.csv", TRIPLES)
    assert shell.run("ingest", "facts.csv", "--extractor", "none").code == 0
    return shell


def test_a_malformed_line_is_told_with_its_reason_and_the_others_are_kept(shell: Shell) -> None:
    lines: list[object] = [*TURNS]
    lines[6] = '{"text": "Turn number 7'
    shell.write_lines("chat.jsonl", *lines)

    ran = shell.run("ingest", "chat.jsonl", "--extractor", "none")

    assert ran.code == 5
    assert "refused: chat.jsonl, line 7: not JSON: " in ran.err
    assert shell.run("stats", "--json").document["episodes"] == 9


@pytest.mark.full
def test_ingesting_again_stores_nothing_twice(shell: Shell) -> None:
    shell.write_lines("chat.jsonl", *TURNS)
    shell.write("notes.md", "# Trip\n\nWe go.\n\n# Money\n\nWe pay.\n")
    shell.write("facts.csv", TRIPLES)
    command = ("ingest", "chat.jsonl", "notes.md", "facts.csv", "--extractor", "none", "--json")

    first, second = shell.run(*command).document, shell.run(*command).document

    assert (first["stored"], first["edges"]) == (13, 4)
    assert (second["stored"], second["known"], second["edges"], second["entities"]) == (0, 12 + 4, 0, 0)


@pytest.mark.slow
def test_four_kinds_of_files_and_a_folder_go_in(shell: Shell) -> None:
    shell.write_lines("chat.jsonl", *TURNS)
    shell.write_lines(
        "facts.jsonl", ["Rome", "capital of", "Italy"], {"subject": "A b", "predicate": "p", "object": "C d"}
    )
    shell.write("facts.csv", TRIPLES)
    (shell.folder / "docs").mkdir()
    shell.write("docs/guide.md", "# One\n\nText.\n\n# Two\n\nMore.\n")
    shell.write("docs/note.txt", "Plain text.\n")

    ran = shell.run("ingest", "chat.jsonl", "facts.jsonl", "facts.csv", "docs", "--extractor", "none", "--json")

    assert ran.code == 0
    report = ran.document
    assert (report["files"], report["received"], report["edges"]) == (5, 19, 6)
    assert shell.run("stats", "--json").document["pending_episodes"] == 13


def test_recall_answers_with_scores_paths_and_sources(filled: Shell) -> None:
    ran = filled.run("recall", "Where does Maya Chen work?", "--sources", "--json")

    best = ran.document["facts"][0]
    assert (best["source"], best["relation"], best["target"]) == ("Maya Chen", "works_at", "Globex")
    assert best["score"] > 0
    assert best["path"] == ["Maya Chen"]
    assert ran.document["episodes"][0]["id"] in best["episode_ids"]


def test_nothing_found_is_exit_code_4_and_names_what_is_like_it(filled: Shell) -> None:
    ran = filled.run("facts", "Maya")

    assert (ran.code, ran.out) == (4, "")
    assert ran.err == "nothing found about 'Maya'; similar names: Maya Chen\n"


def test_a_store_that_can_t_be_opened_is_exit_code_3_and_one_line(shell: Shell) -> None:
    ran = shell.run("stats", "--store", "nosuch://user:hunter2@host")

    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("graphmem: no backend for nosuch:// is installed")
    assert ran.err.count("\n") == 1


def test_a_file_that_is_not_there_is_exit_code_2_and_makes_no_store(shell: Shell) -> None:
    ran = shell.run("ingest", "nope.jsonl")

    assert ran.code == 2
    assert "nope.jsonl: there is no such file or folder" in ran.err
    assert list(shell.folder.iterdir()) == []


def test_a_turn_is_read_from_standard_input(shell: Shell) -> None:
    assert shell.run("remember", "-", "--extractor", "none", stdin="Hello\n").code == 0
    assert "Hello" in shell.run("episodes").out


def test_standard_input_is_read(shell: Shell) -> None:
    ran = shell.run("ingest", "-", "--extractor", "none", "--json", stdin='{"text": "Hello"}\n{"text": "World"}\n')

    assert ran.code == 0
    assert ran.document["stored"] == 2


def test_help_and_version_are_exit_code_0_and_help_names_the_codes(shell: Shell) -> None:
    helped, version = shell.run("--help"), shell.run("--version")

    assert (helped.code, version.code) == (0, 0)
    assert "Exit codes: 0 success" in helped.out
    assert version.out.startswith("graphmem ")


def test_a_reader_that_has_seen_enough_is_no_error(filled: Shell) -> None:
    program = f"{GRAPHMEM} entities --json | head -c 1"

    done = subprocess.run(program, shell=True, cwd=filled.folder, capture_output=True, text=True, check=False)

    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
def test_ctrl_c_keeps_what_was_stored_and_says_how_to_go_on(shell: Shell) -> None:
    process = subprocess.Popen(
        [GRAPHMEM, "ingest", "-", "--extractor", "none"],
        cwd=shell.folder,
        env={**os.environ, "GRAPHMEM_BATCH_SIZE": "2"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # what is started in the background of a script ignores it, and so does everything that it starts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    process.stdin.write("".join(f"{json.dumps(turn)}\n" for turn in TURNS))
    process.stdin.flush()
    while not (shell.folder / "graphmem.db").exists() or shell.run("stats", "--json").document["episodes"] < 8:
        assert process.poll() is None

    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "what was stored is kept" in told
    assert "run the same command again" in told
    assert shell.run("stats", "--json").document["episodes"] >= 8


@pytest.mark.full
def test_commands_do_on_a_server_what_they_do_on_a_file(shell: Shell, neo4j_url: str) -> None:
    shell.write("facts.csv", TRIPLES)
    shell.write_lines("chat.jsonl", *TURNS)
    commands = [
        ("ingest", "facts.csv", "chat.jsonl", "--extractor", "none"),
        ("recall", "Where does Maya Chen work?"),
        ("entities", "Maya"),
        ("facts", "Maya Chen"),
        ("history", "Maya Chen", "--relation", "works at"),
        ("diff", "2025-01-01", "2025-12-31"),
        ("stats",),
        ("context", "Where does Maya Chen work?"),
    ]
    options = ("--scope", str(home()), "--json")
    on_server = [shell.run(*command, "--store", neo4j_url, *options) for command in commands]
    on_file = [shell.run(*command, "--store", "sqlite:///here.db", *options) for command in commands]

    assert [ran.code for ran in on_server] == [ran.code for ran in on_file] == [0] * len(commands)
    assert [plain(ran.document) for ran in on_server] == [plain(ran.document) for ran in on_file]
    assert PASSWORD not in "".join(ran.out + ran.err for ran in on_server)


def plain(document: Any) -> Any:
    """Return a document without what is another one each time: ids, times of recording, durations, places."""
    if isinstance(document, dict):
        fields = cast("dict[str, Any]", document)
        return {k: plain(v) for k, v in fields.items() if not k.endswith(("id", "ids")) and k not in ONES_OWN}
    return [plain(part) for part in cast("list[Any]", document)] if isinstance(document, list) else document


def test_server_that_is_not_there_is_exit_code_3_and_its_password_is_not_shown(shell: Shell) -> None:
    ran = shell.run("stats", "--store", "bolt://neo4j:hunter2@localhost:1", GRAPHMEM_STORE_WAIT="0.2")

    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines()[-1].startswith("graphmem: bolt://localhost:1: no connection after 0.2 s")
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("command", [("facts", "Maya Chen"), ("diff", "2024", "2026"), ("context", "Maya Chen")])
def test_a_reader_that_closed_the_pipe_is_no_failure(filled: Shell, command: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [GRAPHMEM, *command], cwd=filled.folder, stdout=pipe, stderr=subprocess.PIPE, check=False, timeout=120
        )

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("command", [("stats",), ("stats", "--json"), ("diff", "2024", "2026"), ("export",)])
def test_a_full_disk_is_an_error_of_one_line(filled: Shell, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [GRAPHMEM, *command], cwd=filled.folder, stdout=full, stderr=subprocess.PIPE, check=False, timeout=120
        )

    assert (done.returncode, done.stderr.decode()) == (1, "graphmem: No space left on device\n")
