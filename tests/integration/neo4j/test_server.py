"""The server that Neo4j's tests run on is what they take it for, and what they do to it is what they mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphmem import GraphMemory
from tests.neo4j_server import Neo4jServer, NoServer, run, wait_until_ready
from tests.shared_servers import empty, unavailable


def test_server_is_of_the_lts_line_with_gds(neo4j_url: str) -> None:
    [row] = run(neo4j_url, "CALL dbms.components() YIELD versions RETURN versions[0] AS server, gds.version() AS gds")

    assert row["server"].startswith("5.26.")
    assert row["gds"].startswith("2.13.")


def test_emptying_deletes_rows_of_graphmem_and_leaves_the_schema(empty_neo4j_url: str) -> None:
    with GraphMemory.open(empty_neo4j_url, extractor="none") as memory:
        memory.add_facts([("Maya", "knows", "Ann")])

        empty(empty_neo4j_url)

        assert memory.stats().entities == 0
        assert memory.admin.scopes() == []
        assert [check for check in memory.admin.doctor() if "index" in check.name and not check.ok] == []


@pytest.mark.full
def test_what_was_acknowledged_survives_a_kill(start_neo4j: Callable[[], Neo4jServer]) -> None:
    server = start_neo4j()
    run(server.url, "CREATE (:Kept {name: $name})", name="Ada")

    server.kill()
    with pytest.raises(NoServer):
        wait_until_ready(server.url, seconds=0)
    server.restart()

    assert run(server.url, "MATCH (n:Kept) RETURN n.name AS name") == [{"name": "Ada"}]


@pytest.mark.parametrize(
    ("ci", "said", "fails"),
    [("", "", False), ("true", "", True), ("true", "0", False), ("", "1", True)],
    ids=["by hand", "in CI", "switched off", "asked for"],
)
def test_missing_server_is_a_skip_by_hand_and_a_failure_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, said: str, fails: bool
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("GRAPHMEM_REQUIRE_NEO4J", said)
    with pytest.raises(pytest.fail.Exception if fails else pytest.skip.Exception, match="how to get one"):
        unavailable(NoServer("how to get one"))
