"""The pages that are written from the code are those of this code."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from graphmem.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = runpy.run_path(str(DOCS / "reference.py"))


@pytest.mark.parametrize("name", REFERENCE["PAGES"])
def test_the_page_is_the_one_that_the_code_gives(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == REFERENCE["PAGES"][name](), "run: make reference"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_stands_on_the_page_once(name: str) -> None:
    assert (DOCS / "settings.md").read_text("utf-8").count(f"\n| `{name}` |") == 1


def test_every_section_begins_with_a_setting() -> None:
    assert REFERENCE["SECTIONS"].keys() <= Settings.model_fields.keys()
