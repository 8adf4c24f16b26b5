"""What commands print, on which stream and in which form, and the exit codes that go with it."""

from __future__ import annotations

import logging

import pytest

from graphmem.adapters.cli.session import errors_reported
from tests.unit.adapters.in_process import Shell


@pytest.mark.parametrize(
    ("command", "document"),
    [
        (("communities",), []),
        (("communities", "--members", "c1"), None),
        (("merges",), []),
        (("dead-letters",), []),
        (("why",), None),
        (("why", "t1"), None),
        (("browser",), None),
    ],
)
def test_nothing_found_is_a_document_and_the_same_exit_code_with_json(
    filled: Shell, command: tuple[str, ...], document: object
) -> None:
    plain, ran = filled.run(*command), filled.run(*command, "--json")

    assert (plain.code, ran.code) == (4, 4)
    assert ran.document == document


@pytest.mark.parametrize("debug", [False, True])
def test_retries_of_the_driver_are_printed_for_debugging_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], debug: bool
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a program that sets up no logging
    with errors_reported(debug=debug):
        logging.getLogger("neo4j.session").warning("Transaction failed and will be retried in 0.8s")
        logging.getLogger("graphmem.ingest").warning("extraction is paused")
    assert capsys.readouterr().err.splitlines() == [
        *(["Transaction failed and will be retried in 0.8s"] if debug else []),
        "extraction is paused",
    ]


@pytest.mark.parametrize("columns", ["0", "²", "1", "59"])
def test_a_width_in_which_no_table_fits_is_ignored(filled: Shell, columns: str) -> None:
    assert filled.run("facts", "Maya Chen", COLUMNS=columns) == filled.run("facts", "Maya Chen", COLUMNS="")
    assert filled.run("diff", "2024", "2026", COLUMNS=columns) == filled.run("diff", "2024", "2026", COLUMNS="")
