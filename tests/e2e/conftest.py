"""Stores that the end-to-end tests run on, and memories that read toy texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # helpers lie beside the tests, and child processes import them too

from toy import ToyExtractor

from graphmem import GraphMemory
from graphmem.testing.rows import home
from graphmem.text.names import Phrases, SpacyPhrases
from tests.integration.embed.support import CachedModel

OpenMemory = Callable[..., GraphMemory]


@pytest.fixture(params=["memory", "sqlite", "neo4j"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a fresh store of each kind; opened twice, it is the same store."""
    return fresh_store(request, tmp_path)


@pytest.fixture(params=["sqlite", "neo4j"])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a fresh store of each kind that other processes can open too."""
    return fresh_store(request, tmp_path)


def fresh_store(request: pytest.FixtureRequest, folder: Path) -> str:
    """Return the URL of a store of the kind that a fixture has as parameter, in which the default scope is empty.

    The scope is the test's own: others share the server. A test of a whole store, marked ``whole_store``, has a
    server to itself.
    """
    if request.node.get_closest_marker("whole_store") is None:
        request.getfixturevalue("monkeypatch").setenv("GRAPHMEM_SCOPE", str(home()))
    elif request.param == "neo4j":
        return str(request.getfixturevalue("empty_neo4j_url"))
    if request.param == "memory":
        return f"memory://{folder.name}"
    if request.param == "sqlite":
        return f"sqlite:///{folder}/memory.db"
    return str(request.getfixturevalue("neo4j_url"))


@pytest.fixture
def open_memory(cached_model: CachedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenMemory]:
    """Return what opens a memory with the toy extractor, and close all of them in the end.

    The built-in embedding model and spaCy's phrases are the real ones, and read each text once in a run.
    """
    monkeypatch.setattr(SpacyPhrases, "find", find_phrases)
    with ExitStack() as opened:

        def open_one(url: str, **options: Any) -> GraphMemory:
            options = {"extractor": ToyExtractor(), "embeddings": cached_model, "background": False, **options}
            return opened.enter_context(GraphMemory.open(url, **options))

        yield open_one


FIND_PHRASES = SpacyPhrases.find


def find_phrases(_: SpacyPhrases, texts: Sequence[str]) -> list[Phrases]:
    return [phrases_of(text) for text in texts]


@cache
def phrases_of(text: str) -> Phrases:
    return FIND_PHRASES(SpacyPhrases(), [text])[0]


@pytest.fixture(scope="session")
def cached_model() -> CachedModel:
    """Return the built-in embedding model, which reads each text once in a run."""
    return CachedModel()


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    """Return a memory that extracts when it is told to."""
    return open_memory(store_url)


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """Return the path of a store that isn't there yet."""
    return tmp_path / "memory.db"
