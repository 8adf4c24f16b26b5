"""`graphmem recall --trace` and `graphmem why`, in this process."""

from __future__ import annotations

import pytest

from graphmem.errors import StoreReadOnly
from graphmem_sqlite.backend import SQLiteBackend
from tests.unit.adapters.in_process import Shell

FACTS = "subject,relation,object\nMaya Chen,works at,Globex\nMaya Chen,knows,Ravi Menon\n"


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """Return a folder with a store of two facts."""
    shell.write("facts.csv", FACTS)
    assert shell.run("ingest", "facts.csv", "--extractor", "none").code == 0
    return shell


def test_why_tells_the_newest_traced_recall(shell: Shell) -> None:
    shell.run("recall", "Where does Maya Chen work?", "--trace")
    shell.run("recall", "Whom does Ravi Menon know?", "--limit", "1", "--trace")
    ran = shell.run("why")
    lines = ran.out.splitlines()
    assert (ran.code, lines[0]) == (0, "question  Whom does Ravi Menon know?")
    assert [line.split()[0] for line in lines[-2:]] == ["1", "-"]


def test_why_tells_the_trace_that_is_named(shell: Shell) -> None:
    trace_id = shell.run("recall", "Where does Maya Chen work?", "--trace", "--json").document["trace_id"]
    shell.run("recall", "Whom does Ravi Menon know?", "--trace")
    ran = shell.run("why", trace_id, "--json")
    assert (ran.code, ran.document["id"], ran.document["query"]) == (0, trace_id, "Where does Maya Chen work?")


def test_recall_says_how_to_ask_why(shell: Shell) -> None:
    ran = shell.run("recall", "Where does Maya Chen work?", "--trace")
    assert "graphmem why" in ran.err
    assert "graphmem why" not in ran.out


@pytest.mark.parametrize("command", ["recall", "search"])
def test_a_trace_that_the_store_does_not_keep_is_not_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    shell.run(command, "Where does Maya Chen work?")  # so that it is indexed

    def refuse(*_: object) -> None:
        raise StoreReadOnly("can be read but not written")

    monkeypatch.setattr(SQLiteBackend, "write", refuse)
    monkeypatch.setattr(SQLiteBackend, "record_retrievals", refuse)
    ran = shell.run(command, "Where does Maya Chen work?", "--trace")
    assert (ran.code, "graphmem why" in ran.err, "the trace wasn't kept" in ran.err) == (0, False, True)
    assert shell.run(command, "Where does Maya Chen work?", "--trace", "--json").document["trace_id"] is None


def test_facts_beyond_the_limit_are_counted(shell: Shell) -> None:
    shell.run("recall", "Where does Maya Chen work?", "--trace")
    assert "1 fact more" in shell.run("why", "--limit", "1").err


@pytest.mark.parametrize("arguments", [("why",), ("why", "no-such-trace")], ids=["none yet", "unknown"])
def test_a_trace_that_is_not_there_is_nothing_found(shell: Shell, arguments: tuple[str, ...]) -> None:
    ran = shell.run(*arguments)
    assert (ran.code, ran.out) == (4, "")
    assert "recall" in ran.err
