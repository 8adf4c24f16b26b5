"""Extractors that are installed as plugins: found by name, opened with their argument, absent where they are broken."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from graphmem import GraphMemory
from graphmem.errors import InvalidInput
from graphmem.registry import installed_extractors

PLUGIN = """
from graphmem.protocols import Extraction

class Shouting:
    name, batch_size = "shouting", 1

    def __init__(self, argument):
        self.argument = argument

    def extract(self, requests):
        return [Extraction() for _ in requests]

def open_extractor(argument, *, ontology, settings):
    assert ontology.entity_types and settings.scope
    return Shouting(argument)
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with a plugin that works and one that can't be imported."""
    (tmp_path / "shouting.py").write_text(PLUGIN)
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[graphmem.extractors]\nshouting = shouting:open_extractor\nbroken = not_installed:open_extractor\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def test_the_local_extractor_is_a_plugin() -> None:
    assert "spacy" in installed_extractors()


@pytest.mark.usefixtures("plugins")
def test_a_plugin_extracts_under_its_name() -> None:
    with GraphMemory.open("memory://", extractor="shouting:loud", embeddings="none") as memory:
        assert memory.remember("Hello").wait(10)
        assert "shouting" in [check.detail for check in memory.admin.doctor() if check.name == "extractor"]


@pytest.mark.usefixtures("plugins")
def test_a_plugin_that_cannot_be_imported_is_named_and_the_memory_opens(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "graphmem"),
        GraphMemory.open("memory://", extractor="broken", embeddings="none") as memory,
    ):
        memory.remember("Hello there")
        assert memory.search("hello")
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("extractor broken: not_installed:open_extractor can't be imported (ModuleNotFoundError(")


@pytest.mark.usefixtures("plugins")
def test_an_unknown_extractor_is_refused_with_the_installed_ones() -> None:
    with pytest.raises(InvalidInput, match=r"extractor 'nobody'.*broken, shouting, spacy"):
        GraphMemory.open("memory://", extractor="nobody")
