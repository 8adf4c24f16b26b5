"""URLs and the backends that serve them."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint

import pytest

from graphmem import registry
from graphmem.errors import InvalidInput, UnknownBackend
from graphmem.protocols import GraphBackend
from graphmem.registry import installed_backends, masked, open_backend


def test_our_backends_are_found_by_their_entry_points() -> None:
    assert {"memory", "neo4j", "sqlite"} <= installed_backends().keys()


def test_a_url_opens_its_backend() -> None:
    backend = open_backend("memory://")
    assert isinstance(backend, GraphBackend)
    backend.close()


@pytest.mark.parametrize(
    ("url", "example"),
    [
        ("", "sqlite:///memory.db"),
        ("notes/my.db", "sqlite:///notes/my.db"),
        ("/tmp/x.db", "sqlite:////tmp/x.db"),
        ("://", "sqlite:///memory.db"),
        ("SQLITE:///x.db", "sqlite:///memory.db"),
    ],
)
def test_what_is_no_url_is_refused_with_the_url_of_a_file(url: str, example: str) -> None:
    with pytest.raises(InvalidInput, match=f"for a file, write {re.escape(example)}$"):
        open_backend(url)


def test_an_unknown_scheme_names_what_is_there() -> None:
    with pytest.raises(UnknownBackend, match="bolt, memory, neo4j, sqlite"):
        open_backend("cassandra://host")


@pytest.mark.parametrize(("scheme", "advised"), [("http", "neo4j://HOST:7687"), ("https", r"neo4j\+s://HOST:7687")])
def test_the_address_of_neo4j_browser_is_answered_with_that_of_the_server(scheme: str, advised: str) -> None:
    with pytest.raises(UnknownBackend, match=f"for Neo4j, write {advised}"):
        open_backend(f"{scheme}://localhost:7474")


def test_a_backend_that_is_installed_while_the_process_runs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    later = EntryPoint("later", "graphmem_memory:open_backend", "graphmem.backends")

    def found(group: str) -> list[EntryPoint]:
        return [later] if group == later.group else []

    with pytest.raises(UnknownBackend):
        open_backend("later://")
    monkeypatch.setattr(registry, "entry_points", found)
    with pytest.raises(InvalidInput, match="expected memory://"):  # it is asked, and serves another scheme
        open_backend("later://")
    installed_backends.cache_clear()


def test_a_backend_is_offered_options_and_takes_those_that_it_has() -> None:
    offered = {"password": "x", "wait": 1.0}
    open_backend("memory://", offered=offered).close()
    with pytest.raises(TypeError, match="wait"):
        open_backend("memory://", wait=1.0)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("neo4j+s://user:p:a@ss@host/db", "neo4j+s://user:***@host/db"),
        ("neo4j://user:p/a?s#s w@host", "neo4j://user:***@host"),
        ("neo4j://me@corp.com:hunter2@db:7687/x", "neo4j://me@corp.com:***@db:7687/x"),
        ("neo4j://:hunter2@db", "neo4j://:***@db"),
        ("neo4j://me@corp.com@db:7687", "neo4j://me@corp.com@db:7687"),
        ("qdrant:https://hunter2@host:6333/p", "qdrant:https://***@host:6333/p"),
        ("https://hunter2@host/a:b@c", "https://***@host/a:b@c"),
        ("https://hunter2@host:6333/a@b", "https://:***@b"),
        ("http://me:hunter2@host", "http://me:***@host"),
        ("https://host/a@b", "https://host/a@b"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("C:/notes@home.db", "C:/notes@home.db"),
    ],
)
def test_a_password_or_token_is_masked_wherever_a_url_is_shown(url: str, shown: str) -> None:
    assert masked(url) == shown
