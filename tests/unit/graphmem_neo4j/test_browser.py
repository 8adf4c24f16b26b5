"""The address of Neo4j Browser on a database, from the URL of the store and what the server tells."""

from __future__ import annotations

import pytest

from graphmem_neo4j.browser import browser_url
from graphmem_neo4j.server import parse_url

TOLD = {
    "server.http.enabled": "true",
    "server.http.advertised_address": "inside:8474",
    "server.https.enabled": "false",
    "server.https.advertised_address": "inside:8473",
}


@pytest.mark.parametrize(
    ("url", "told", "address"),
    [
        ("neo4j://db", {}, "http://db:7474/browser/?connectURL=neo4j://db:7687"),
        ("bolt://ann@db:7688", {}, "http://db:7474/browser/?connectURL=bolt://ann@db:7688"),
        ("bolt://db/team", {}, "http://db:7474/browser/?connectURL=bolt://db:7687&db=team"),
        ("bolt://[::1]", {}, "http://[::1]:7474/browser/?connectURL=bolt://%5B::1%5D:7687"),
        ("neo4j+s://db", {}, "https://db:7473/browser/?connectURL=neo4j%2Bs://db:7687"),
        ("bolt+ssc://db", {}, "https://db:7473/browser/?connectURL=bolt%2Bs://db:7687"),
        ("neo4j://db", TOLD, "http://db:8474/browser/?connectURL=neo4j://db:7687"),
        ("neo4j://db", {**TOLD, "server.https.enabled": "true"}, "https://db:8473/browser/?connectURL=neo4j://db:7687"),
        ("neo4j+s://db", TOLD, "http://db:8474/browser/?connectURL=neo4j%2Bs://db:7687"),
    ],
)
def test_address_leads_to_the_page_of_the_server_and_on_to_the_database(
    url: str, told: dict[str, str], address: str
) -> None:
    assert browser_url(parse_url(url, environment={}), told) == address


def test_address_has_no_password() -> None:
    address = browser_url(parse_url("neo4j://ann:se%26cret@db", environment={}), {})
    assert "cret" not in address
    assert "ann@db" in address
