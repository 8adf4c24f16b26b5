"""What commands print, on which stream and in which form, and the exit codes that go with it."""

from __future__ import annotations

import pytest

from tests.unit.adapters.test_cli import Shell, filled, shell

__all__ = ["filled", "shell"]


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


@pytest.mark.parametrize("columns", ["0", "²", "1", "59"])
def test_a_width_in_which_no_table_fits_is_ignored(filled: Shell, columns: str) -> None:
    assert filled.run("facts", "Maya Chen", COLUMNS=columns) == filled.run("facts", "Maya Chen", COLUMNS="")
    assert filled.run("diff", "2024", "2026", COLUMNS=columns) == filled.run("diff", "2024", "2026", COLUMNS="")
