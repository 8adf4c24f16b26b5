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
