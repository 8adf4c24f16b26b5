"""The page that lists the specified behavior: every file, function and test that it names is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/spec-coverage.md"
HEADER = ("Behavior", "Code", "Test")
_NAME = re.compile(r"`([^`]+)`")
_DEFINED = re.compile(r"^[ ]*(?:async )?(?:def|class) (\w+)|^(\w+)(?:: [^=\n]+)? = ", re.MULTILINE)


def rows_of(text: str) -> list[tuple[str, list[str], list[str]]]:
    """Return (behavior, code, tests) of each row of the tables with our header."""
    rows: list[tuple[str, list[str], list[str]]] = []
    is_ours = False
    for line in text.splitlines():
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split(" | ")) if line.startswith("|") else ()
        if not cells or cells == HEADER:
            is_ours = cells == HEADER
        elif is_ours and len(cells) == len(HEADER):
            rows.append((cells[0], _NAME.findall(cells[1]), _NAME.findall(cells[2])))
        elif is_ours and not line.startswith("|---"):
            rows.append((line, [], []))
    return rows


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the functions and classes of a Python file, at any depth, and the names assigned in the module."""
    return frozenset(name for pair in _DEFINED.findall((ROOT / file).read_text("utf-8")) for name in pair if name)


def missing(reference: str, separator: str) -> bool:
    """Return whether the file of a reference, or the name in it, doesn't exist."""
    file, _, name = reference.partition(separator)
    return not (ROOT / file).is_file() or bool(name and name not in names_in(file))


ROWS = rows_of(PAGE.read_text("utf-8")) if PAGE.is_file() else []


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 100
    assert [behavior for behavior, code, tests in ROWS if not code or not tests] == []


def test_a_behavior_is_listed_once() -> None:
    behaviors = [behavior for behavior, _, _ in ROWS]
    assert sorted({one for one in behaviors if behaviors.count(one) > 1}) == []


def test_code_of_the_page_is_there() -> None:
    assert [one for _, code, _ in ROWS for one in code if missing(one, ":")] == []


def test_tests_of_the_page_are_there() -> None:
    tests = [one for _, _, tests in ROWS for one in tests]
    named = ("test_", "Test")  # a function, or a class of tests that comes from elsewhere
    assert [one for one in tests if missing(one, "::") or not one.partition("::")[2].startswith(named)] == []


@pytest.mark.parametrize(
    ("reference", "separator", "is_missing"),
    [
        ("tests/unit/test_spec_coverage.py::test_the_page_has_rows", "::", False),
        ("tests/unit/test_spec_coverage.py:ROOT", ":", False),
        ("tests/unit/test_spec_coverage.py::test_that_is_gone", "::", True),
        ("tests/unit/test_of_no_file.py::test_the_page_has_rows", "::", True),
    ],
)
def test_a_name_that_is_gone_is_noticed(reference: str, separator: str, *, is_missing: bool) -> None:
    assert missing(reference, separator) == is_missing


def test_rows_are_read_from_our_tables_only() -> None:
    table = "| Behavior | Code | Test |\n|---|---|---|\n| A rule | `a.py:f` | `t.py::g`<br>`t.py::h` |\n"
    assert rows_of(f"{table}\n| Not built | Reason |\n|---|---|\n| x | `y` |\n") == [
        ("A rule", ["a.py:f"], ["t.py::g", "t.py::h"])
    ]
