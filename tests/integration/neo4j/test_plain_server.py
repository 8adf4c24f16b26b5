"""Servers that aren't as they should be: without GDS, behind TLS, still starting, read-only."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator

import pytest

from graphmem import GraphMemory
from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem.models import EntityQuery
from graphmem_neo4j import Neo4jBackend, open_backend
from tests.integration.neo4j.support import SCOPE, entity, of
from tests.neo4j_server import PASSWORD, Neo4jServer, wait_until_ready
from tests.shared_servers import empty


def diagnosis(store: Neo4jBackend) -> dict[str, tuple[bool, str]]:
    return {what: (well, detail) for what, well, detail in store.diagnose()}


def test_without_gds_a_memory_works_and_doctor_says_so(plain_server: Neo4jServer) -> None:
    empty(plain_server.url)
    with GraphMemory.open(plain_server.url, extractor="none") as memory:
        memory.add_facts([("Anna", "works_at", "Acme"), ("Berta", "knows", "Anna")])
        assert "Acme" in memory.context("Where does Anna work?")
        checks = {check.name: check for check in memory.admin.doctor()}
    assert checks["Graph Data Science"].ok
    assert "not on this server" in checks["Graph Data Science"].detail


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_a_certificate_that_nobody_signed_is_taken_by_ssc_and_by_s_refused(
    plain_server: Neo4jServer, scheme: str
) -> None:
    rest = plain_server.url.removeprefix("bolt")
    store = open_backend(f"{scheme}+ssc{rest}")
    store.write(SCOPE, of(entity(f"Anna of {scheme}")))
    assert store.database.address.uri.startswith(f"{scheme}+ssc://")
    store.close()
    with pytest.raises(BackendUnavailable, match=r"certificate.*\+ssc") as caught:
        open_backend(f"{scheme}+s{rest}", wait=0.0)
    assert PASSWORD not in str(caught.value)


def test_a_server_that_is_starting_is_waited_for_and_that_is_said(
    plain_server: Neo4jServer, caplog: pytest.LogCaptureFixture
) -> None:
    plain_server.kill()
    plain_server.begin_restart()
    with caplog.at_level(logging.WARNING, logger="graphmem_neo4j"):
        open_backend(plain_server.url, wait=120.0).close()
    assert [record.getMessage() for record in caplog.records if "waiting up to 120 s" in record.getMessage()] != []
    assert PASSWORD not in caplog.text


@pytest.mark.slow  # they wait for the server for 10 s, and then for its restart
def test_calls_of_a_server_that_is_away_say_so_soon_and_in_one_line(plain_server: Neo4jServer) -> None:
    with GraphMemory.open(plain_server.url, scope=SCOPE, extractor="none", background=False) as memory:
        memory.add_facts([("Anna", "works_at", "Acme")])
        calls: list[Callable[[], object]] = [
            lambda: memory.remember("Anna likes tea."),
            lambda: memory.search("tea"),
            lambda: memory.recall("Anna"),
            lambda: memory.forget("Anna"),
        ]
        plain_server.kill()
        begun = time.monotonic()
        for call in calls:
            with pytest.raises(BackendUnavailable) as caught:
                call()
            assert "the server doesn't answer (" in str(caught.value)
            assert "\n" not in str(caught.value)
        assert time.monotonic() - begun < 25  # each waited for half a minute, or two
        plain_server.restart()
        assert [fact.target for fact in memory.recall("Anna")] == ["Acme"]


@pytest.fixture(scope="module")
def read_only(plain_server: Neo4jServer) -> Generator[Neo4jServer, None, None]:
    """Yield a server that has a store with Anna in it, and lets nobody write."""
    empty(plain_server.url)
    store = open_backend(plain_server.url)
    store.write(SCOPE, of(entity("Anna")))
    store.close()
    plain_server.stop()  # what is read-only can't recover from a kill
    server = Neo4jServer(
        {"NEO4J_server_databases_default__to__read__only": "true"}, gds=False, data_of=plain_server
    ).start()
    wait_until_ready(server.url)
    yield server
    server.remove(keep_data=True)
    plain_server.restart()


def test_a_read_only_database_is_read_and_not_written_and_doctor_says_what_is_lacking(read_only: Neo4jServer) -> None:
    store = open_backend(read_only.url)
    assert [e.name for e in store.find_entities([SCOPE], EntityQuery())] == ["Anna"]
    with pytest.raises(StoreReadOnly, match="can be read but not written"):
        store.write(SCOPE, of(entity("Berta")))
    with pytest.raises(StoreReadOnly):
        store.atomic(lambda: store.find_entities([SCOPE], EntityQuery()))
    found = diagnosis(store)
    store.close()
    assert [what for what, (well, _) in found.items() if not well] == ["writing", "making indexes"]
    assert "nothing can be taken in" in found["writing"][1]


def test_a_memory_on_a_read_only_database_recalls(read_only: Neo4jServer) -> None:
    with GraphMemory.open(read_only.url, scope=SCOPE, extractor="none") as memory:
        memory.recall("Who is Anna?")
        assert [found.name for found in memory.entities("Anna")] == ["Anna"]
