"""`graphmem init`: answers, checks, the file that it writes; and where settings come from."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmem.settings import Settings
from tests.e2e.shell import Ran
from tests.unit.adapters.in_process import Shell

LOCAL = ("--extractor", "none", "--embeddings", "none")
SECRET = "correct-horse-battery"

Run = Callable[..., Ran]


@pytest.fixture
def run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in the working directory; with `typed`, as on a terminal."""
    monkeypatch.chdir(shell.folder)
    return shell.run


def written(path: str = "graphmem.toml") -> dict[str, Any]:
    return tomllib.loads(Path(path).read_text("utf-8"))


@pytest.mark.parametrize("scope", ["team😀", 'a "b" \\ c', "del\x7f", "tab\tand\nline"])
def test_any_text_is_written_as_it_is_read(run: Run, scope: str) -> None:
    done = run("init", "--yes", "--no-check", *LOCAL, "--store", f"sqlite:///{scope[:3]}😀.db", "--scope", scope)
    assert done.code == 0, done.err
    assert (written()["scope"], written()["store"]) == (scope, f"sqlite:///{scope[:3]}😀.db")
    assert run("config").code == 0


def test_a_file_that_is_no_toml_is_an_error_with_its_line(run: Run) -> None:
    Path("graphmem.toml").write_text('store = "memory://"\nscope = team\n', "utf-8")
    done = run("config")
    assert done.code == 2
    assert "config file graphmem.toml: Invalid value (at line 2, column 9)" in done.err


def test_without_questions_the_defaults_are_checked_and_written(run: Run) -> None:
    done = run("init", "--yes", *LOCAL)
    assert done.code == 0, done.err
    assert written() == {
        "store": "sqlite:///graphmem.db",
        "scope": "default",
        "extractor": "none",
        "embeddings": "none",
        "redact": "off",
        "detect_injection": True,
        "expired_edge_retention_days": "none",
    }
    assert stat.S_IMODE(Path("graphmem.toml").stat().st_mode) == 0o600
    assert Path("graphmem.db").exists()
    assert "graphmem doctor" in done.err
    assert Settings.load().extractor == "none"


def test_the_check_of_search_waits_for_a_model_that_is_slow_to_load(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_INDEX_WAIT", "0")
    done = run("init", "--yes", *LOCAL)
    assert "search: ok" in done.err.splitlines()


def test_variables_are_the_defaults_of_store_and_scope(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_STORE", "sqlite:///mine.db")
    monkeypatch.setenv("GRAPHMEM_SCOPE", "team/one")
    assert run("init", "--yes", "--no-check", *LOCAL).code == 0
    assert (written()["store"], written()["scope"]) == ("sqlite:///mine.db", "team/one")


def test_a_variable_with_a_password_is_neither_a_default_nor_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_STORE", f"neo4j://me:{SECRET}@localhost:7687")
    done = run("init", "--yes", "--no-check", *LOCAL)
    assert (done.code, written()["store"]) == (0, "sqlite:///graphmem.db")
    assert SECRET not in done.out + done.err
    assert "GRAPHMEM_STORE has a password, which isn't written" in done.err


def test_the_commands_at_the_end_read_the_file_that_was_written(run: Run) -> None:
    done = run("init", "--yes", *LOCAL, "--config", "mine.toml", "--store", "sqlite:///mine.db")
    doctor, ingest = (line.strip() for line in done.err.splitlines()[-2:])
    assert doctor == "graphmem doctor --config mine.toml"
    assert ingest.startswith("graphmem ingest chat.jsonl --config mine.toml ")
    assert run(*doctor.split()[1:], "--json").code != 3


def test_without_a_check_there_is_no_store_to_examine_first(run: Run) -> None:
    steps = run("init", "--yes", "--no-check", *LOCAL).err.splitlines()[-2:]
    assert [step.split()[1] for step in steps] == ["ingest", "doctor"]


def test_a_user_name_for_a_file_is_told_to_be_ignored(run: Run) -> None:
    done = run("init", "--yes", "--no-check", *LOCAL, "--username", "bob")
    assert ("store_username" in written(), "--username is ignored" in done.err) == (False, True)


def test_answers_are_asked_again_until_their_check_passes(run: Run) -> None:
    answers = ["nosuch://x", "sqlite:///mine.db", "team/", "team/one", "none", "none", "y", "fact", "facts", "-3", "90"]
    done = run("init", typed="\n".join(answers) + "\n")
    assert done.code == 0, done.err
    assert done.err.count("another answer") == 4
    values = written()
    assert (values["store"], values["scope"], values["redact"]) == ("sqlite:///mine.db", "team/one", "facts")
    assert (values["detect_injection"], values["expired_edge_retention_days"]) == (True, 90.0)


def test_an_option_that_fails_its_check_is_an_error_on_a_terminal_too(run: Run) -> None:
    done = run("init", "--no-check", *LOCAL, "--store", "memory://", "--scope", "x", "--redact", "fact", typed="y\n")
    assert done.code == 2
    assert "redact" in done.err


def test_without_a_terminal_it_names_the_option(run: Run) -> None:
    done = run("init")
    assert (done.code, Path("graphmem.toml").exists()) == (1, False)
    assert "--yes" in done.err


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (("--store", "nosuch://x"), 3, "nosuch"),
        (("--scope", "team/"), 2, "Scope"),
        (("--redact", "some"), 2, "redact"),
        (("--retention-days", "-1"), 2, "expired_edge_retention_days"),
        (("--retention-days", "²"), 2, "expired_edge_retention_days"),
        (("--extractor", "nosuch"), 2, "nosuch"),
        (("--store", "neo4j://me:secret@localhost:1"), 2, "GRAPHMEM_STORE_PASSWORD"),
        (("--config", "missing/graphmem.toml"), 2, "folder"),
    ],
)
def test_an_answer_that_fails_its_check_writes_nothing(
    run: Run, options: tuple[str, ...], code: int, reason: str
) -> None:
    done = run("init", "--yes", *LOCAL, *options)
    assert (done.code, done.err.count("\n  graphmem")) == (code, 0)
    assert reason in done.err
    assert list(Path().glob("*.toml")) == []


def test_a_model_that_cannot_be_called_is_told_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_openai", reason="needs langchain-openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = run("init", "--yes", "--extractor", "llm:openai:gpt-5-mini", "--embeddings", "none")
    assert done.code == 1
    assert done.err.count("OPENAI_API_KEY") == 1
    assert "per 1,000 turns" in done.err
    assert not Path("graphmem.toml").exists()


def test_a_file_is_replaced_only_by_force(run: Run) -> None:
    Path("graphmem.toml").write_text('scope = "mine"\n')
    assert run("init", "--yes", *LOCAL).code == 2
    assert written() == {"scope": "mine"}
    assert run("init", "--yes", "--force", *LOCAL).code == 0
    assert written()["scope"] == "default"


def test_secrets_are_neither_written_nor_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_STORE_PASSWORD", SECRET)
    done = run("init", "--yes", "--no-check", "--store", "neo4j://localhost:7687", "--json", *LOCAL)
    assert done.code == 0, done.err
    assert written()["store_username"] == "neo4j"
    assert json.loads(done.out)["settings"]["store"] == "neo4j://localhost:7687"
    assert SECRET not in Path("graphmem.toml").read_text() + done.out + done.err


def test_a_setting_says_where_it_comes_from(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("graphmem.toml").write_text('search_limit = 5\nrecall_limit = 5\nextractor = "none"\n')
    monkeypatch.setenv("GRAPHMEM_RECALL_LIMIT", "7")
    done = run("config", "--explain", "--json", "--scope", "team")
    found = {row["name"]: (row["value"], row["from"]) for row in json.loads(done.out)["settings"]}
    assert found["search_limit"] == (5, "graphmem.toml")
    assert found["recall_limit"] == (7, "GRAPHMEM_RECALL_LIMIT")
    assert found["scope"] == ("team", "argument")
    assert found["max_hops"] == (2, "default")
    assert all(row["description"] for row in json.loads(done.out)["settings"])


def test_doctor_explains_settings_with_their_values_and_origins(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("graphmem.toml").write_text('search_limit = 5\nembeddings = "none"\nextractor = "none"\n')
    monkeypatch.setenv("GRAPHMEM_STORE_PASSWORD", SECRET)

    def explained(*options: str) -> dict[str, tuple[object, str]]:
        rows = json.loads(run("doctor", "--store", "memory://", "--json", *options).out)["settings"]
        assert all(row["description"] == Settings.model_fields[row["name"]].description for row in rows)
        return {row["name"]: (row["value"], row["from"]) for row in rows}

    found = explained()
    assert found["store"] == ("memory://", "argument")
    assert found["search_limit"] == (5, "graphmem.toml")
    assert found["store_password"] == ("***", "GRAPHMEM_STORE_PASSWORD")
    assert found["redact"] == ("off", "default")
    assert "max_hops" not in found
    assert list(explained("--settings")) == list(Settings.model_fields)
    done = run("doctor", "--store", "memory://")
    assert [line.split()[:3] for line in done.out.splitlines() if "graphmem.toml" in line] == [
        ["extractor", "none", "graphmem.toml"],
        ["embeddings", "none", "graphmem.toml"],
        ["search_limit", "5", "graphmem.toml"],
    ]
    assert "graphmem doctor --settings" in done.err
    assert SECRET not in done.out + done.err


@pytest.mark.parametrize(
    ("setting", "value", "check", "remedy"),
    [
        ("extractor", "none", "extractor", "none, as it is set: episodes stay in the queue; set extractor to auto"),
        ("embeddings", "none", "embeddings", "graphmem[embeddings]"),
        ("redact", "off", "redaction", "set redact to"),
        ("detect_injection", "false", "injection detection", "set detect_injection to true"),
        ("expired_edge_retention_days", "none", "retention", "set expired_edge_retention_days"),
        ("eviction", "false", "retention", "eviction is off"),
    ],
)
def test_doctor_says_what_to_do_about_what_is_off(
    run: Run, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, check: str, remedy: str
) -> None:
    given = {"extractor": "none", "embeddings": "none", "expired_edge_retention_days": "90", setting: value}
    for name, each in given.items():
        monkeypatch.setenv(f"GRAPHMEM_{name.upper()}", each)
    done = run("doctor", "--store", "memory://", "--json")
    [detail] = [each["detail"] for each in json.loads(done.out)["checks"] if each["name"] == check]
    assert remedy in detail


def test_doctor_finds_a_model_that_cannot_be_created(run: Run) -> None:
    pytest.importorskip("langchain", reason="needs graphmem[langchain]")
    Path("graphmem.toml").write_text('embeddings = "none"\nextractor = "llm:nosuch:model"\n')
    done = run("doctor", "--store", "memory://", "--json")
    [check] = [each for each in json.loads(done.out)["checks"] if each["name"] == "extractor"]
    assert (done.code, check["ok"]) == (1, False)
    assert "model 'nosuch:model' can't be created" in check["detail"]


@pytest.mark.parametrize("store", ["sqlite:///missing.db", "nosuch://host"])
def test_doctor_prints_a_document_for_a_store_that_can_t_be_opened(run: Run, store: str) -> None:
    done = run("doctor", "--store", store, "--json")
    document = json.loads(done.out)
    assert (done.code, document["ok"], [check["name"] for check in document["checks"]]) == (3, False, ["store"])
    assert document["checks"][0]["detail"] in done.err
