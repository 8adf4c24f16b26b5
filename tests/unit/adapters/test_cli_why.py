"""`graphmem recall --trace` and `graphmem why`, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmem.adapters.cli import main
from graphmem.errors import StoreReadOnly
from graphmem_sqlite.backend import SQLiteBackend

FACTS = "subject,relation,object\nMaya Chen,works at,Globex\nMaya Chen,knows,Ravi Menon\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts.csv").write_text(FACTS, encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    assert run("ingest", "facts.csv", "--extractor", "none")[0] == 0
    return run


def test_why_tells_the_newest_traced_recall(run: Run) -> None:
    run("recall", "Where does Maya Chen work?", "--trace")
    run("recall", "Whom does Ravi Menon know?", "--limit", "1", "--trace")
    code, out, _ = run("why")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "question  Whom does Ravi Menon know?")
    assert [line.split()[0] for line in lines[-2:]] == ["1", "-"]


def test_why_tells_the_trace_that_is_named(run: Run) -> None:
    _, told, _ = run("recall", "Where does Maya Chen work?", "--trace", "--json")
    trace_id = json.loads(told)["trace_id"]
    run("recall", "Whom does Ravi Menon know?", "--trace")
    code, out, _ = run("why", trace_id, "--json")
    document = json.loads(out)
    assert (code, document["id"], document["query"]) == (0, trace_id, "Where does Maya Chen work?")


def test_recall_says_how_to_ask_why(run: Run) -> None:
    _, out, err = run("recall", "Where does Maya Chen work?", "--trace")
    assert "graphmem why" in err
    assert "graphmem why" not in out


@pytest.mark.parametrize("command", ["recall", "search"])
def test_a_trace_that_the_store_does_not_keep_is_not_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    run(command, "Where does Maya Chen work?")  # so that it is indexed

    def refuse(*_: object) -> None:
        raise StoreReadOnly("can be read but not written")

    monkeypatch.setattr(SQLiteBackend, "write", refuse)
    monkeypatch.setattr(SQLiteBackend, "record_retrievals", refuse)
    code, out, err = run(command, "Where does Maya Chen work?", "--trace")
    assert (code, "graphmem why" in err, "the trace wasn't kept" in err) == (0, False, True)
    _, out, _ = run(command, "Where does Maya Chen work?", "--trace", "--json")
    assert json.loads(out)["trace_id"] is None


def test_facts_beyond_the_limit_are_counted(run: Run) -> None:
    run("recall", "Where does Maya Chen work?", "--trace")
    _, _, err = run("why", "--limit", "1")
    assert "1 fact more" in err


@pytest.mark.parametrize("arguments", [("why",), ("why", "no-such-trace")], ids=["none yet", "unknown"])
def test_a_trace_that_is_not_there_is_nothing_found(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (4, "")
    assert "recall" in err
