"""The docs name code that is there, and docs/architecture.md every package of it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import graphmem
from graphmem.telemetry import ATTRIBUTES, SPANS

DOCS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"`(graphmem(?:_\w+)?(?:\.(?!toml`|zip`)\w+)+)`")
NAMES = sorted(
    {name for page in DOCS.rglob("*.md") for name in NAME.findall(page.read_text("utf-8"))}
    - SPANS.keys()
    - ATTRIBUTES.keys()
)
PACKAGES = sorted(path.parent.name for path in Path(graphmem.__file__).parent.glob("*/__init__.py"))


def is_there(name: str) -> bool:
    """Return whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_code_in_the_docs_is_there(name: str) -> None:
    assert is_there(name)


@pytest.mark.parametrize("name", ["graphmem.no_such_module", "graphmem.models.Scope.no_such_method"])
def test_a_name_that_is_gone_is_noticed(name: str) -> None:
    assert not is_there(name)


def test_a_file_that_the_page_of_changes_names_is_there() -> None:
    page = (DOCS / "development/changes.md").read_text("utf-8")
    paths = re.findall(r"`((?:graphmem|backends|cypher|docs|tests)/[\w./-]+)`", page)
    assert len(paths) > 20
    assert [path for path in paths if not (DOCS.parent / path).exists()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_in_the_table(package: str) -> None:
    assert re.search(rf"^\| .*`graphmem\.{package}`", (DOCS / "architecture.md").read_text("utf-8"), re.M)
