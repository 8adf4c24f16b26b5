"""The server that Neo4j's tests run on is what they take it for, and what they do to it is what they mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.neo4j_server import Neo4jServer, NoServer, run, unavailable, wait_until_ready


def test_server_is_of_the_lts_line_with_gds(neo4j_url: str) -> None:
    [row] = run(neo4j_url, "CALL dbms.components() YIELD versions RETURN versions[0] AS server, gds.version() AS gds")

    assert row["server"].startswith("5.26.")
    assert row["gds"].startswith("2.13.")


def test_wiping_leaves_neither_data_nor_schema(empty_neo4j_url: str) -> None:
    [row] = run(empty_neo4j_url, "MATCH (n) RETURN count(n) AS nodes")

    assert row == {"nodes": 0}
    assert run(empty_neo4j_url, "SHOW INDEXES YIELD type WHERE type <> 'LOOKUP'") == []


def test_what_was_acknowledged_survives_a_kill(start_neo4j: Callable[[], Neo4jServer]) -> None:
    server = start_neo4j()
    run(server.url, "CREATE (:Kept {name: $name})", name="Ada")

    server.kill()
    with pytest.raises(NoServer):
        wait_until_ready(server.url, seconds=0)
    server.restart()

    assert run(server.url, "MATCH (n:Kept) RETURN n.name AS name") == [{"name": "Ada"}]


def test_missing_server_is_a_skip_by_hand_and_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHMEM_REQUIRE_NEO4J", raising=False)
    with pytest.raises(pytest.skip.Exception, match="get one"):
        unavailable(NoServer("get one"))

    monkeypatch.setenv("GRAPHMEM_REQUIRE_NEO4J", "1")
    with pytest.raises(pytest.fail.Exception, match="get one"):
        unavailable(NoServer("get one"))
