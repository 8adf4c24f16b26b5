"""The generated pages are those of this code, and the reference of the API has everything that is public."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import graphmem
from graphmem import errors
from graphmem.adapters.cli.app import app
from graphmem.settings import Settings
from graphmem.testing import GraphBackendTests, StoreTests

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = runpy.run_path(str(DOCS / "reference.py"))


@pytest.mark.parametrize("name", REFERENCE["PAGES"])
def test_the_page_is_the_one_that_the_code_gives(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == REFERENCE["PAGES"][name](), "run: make reference"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_stands_on_the_page_once(name: str) -> None:
    assert (DOCS / "reference/settings.md").read_text("utf-8").count(f"\n| `{name}` |") == 1


def test_every_section_begins_with_a_setting() -> None:
    assert REFERENCE["SECTIONS"].keys() <= Settings.model_fields.keys()


def test_every_command_has_a_section_with_its_own_options() -> None:
    page = (DOCS / "reference/cli.md").read_text("utf-8")
    commands = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]
    assert [name for name in commands if page.count(f"\n### {name.replace('_', '-')}\n") != 1] == []
    assert page.count("| `--store URL` |") == 1
    assert "| `--edge-type TYPE` |" in page


def test_every_command_of_the_specification_is_there() -> None:
    specified = (
        "demo ingest recall search context entities facts history diff communities stats backfill merge unmerge evict "
        "forget clear export import migrate visualize reindex doctor config mcp"  # bench: eval and eval-facts
    )
    program: Any = get_command(app)
    assert set(specified.split()) <= program.commands.keys()


@pytest.mark.parametrize("name", sorted(set(graphmem.__all__) - set(errors.__all__)))
def test_every_public_name_is_in_the_reference_of_the_api(name: str) -> None:
    pages = [page.read_text("utf-8") for page in sorted((DOCS / "reference").glob("*.md"))]
    assert sum(page.count(f"\n::: graphmem.{name}\n") for page in pages) == 1


def test_the_picture_shows_imports_and_leaves_out_those_that_follow() -> None:
    layers = runpy.run_path(str(DOCS / "layers.py"))
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set[str](), "d": {"e"}, "e": {"d", "c"}}
    assert layers["arrows"](graph) == [("a", "b"), ("b", "c"), ("d", "e"), ("e", "c"), ("e", "d")]
    assert layers["rows"](graph) == [["c"], ["b", "d", "e"], ["a"]]
    assert {"graphmem.models", "graphmem_sqlite"} <= layers["graph"]().keys()


def test_the_page_on_backends_names_every_part_of_the_kit_and_counts_the_broken_stores() -> None:
    page = (DOCS / "how-to/write-a-backend.md").read_text("utf-8")
    table = re.findall(r"^\| (`\w+Tests`.*?) \|", page, flags=re.MULTILINE)
    named = [name for cell in table for name in re.findall(r"`(\w+)`", cell)]
    parts = {part.__name__ for part in GraphBackendTests.__mro__ if issubclass(part, StoreTests)}
    assert sorted(named) == sorted(parts - {"GraphBackendTests", "StoreTests"})
    broken = "".join(path.read_text("utf-8") for path in (DOCS.parent / "tests/conformance").glob("broken_*.py"))
    count = len(re.findall(r"^class \w+\(Sound\)", broken, flags=re.MULTILINE))
    assert re.findall(r"on (\d+) stores with one bug", page) == [str(count)]
