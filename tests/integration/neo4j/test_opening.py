"""Opening a Neo4j store: who logs in, what is said when it can't be opened, and what it leaves alone."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from graphmem.errors import BackendUnavailable, Conflict, InvalidInput, SchemaTooNew
from graphmem.models import Attachment, Changes, EdgeType, EntityQuery, Episode, EpisodeFilter, EpisodeQuery
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.registry import open_backend as open_by_url
from graphmem_neo4j import Neo4jBackend, open_backend
from graphmem_neo4j.server import parse_url
from tests.integration.neo4j.support import SCOPE, ask, drop_schema, edge, entity, of, without_login

SECRET = "s3cr3t-w0rd"


@pytest.fixture
def store(empty_neo4j_url: str) -> Generator[Neo4jBackend, None, None]:
    store = open_backend(empty_neo4j_url)
    yield store
    store.close()


def test_the_registry_opens_bolt_and_neo4j_urls(neo4j_url: str) -> None:
    for scheme in ("bolt", "neo4j"):
        store = open_by_url(neo4j_url.replace("bolt:", f"{scheme}:", 1))
        assert isinstance(store, Neo4jBackend)
        store.close()


def test_the_path_of_the_url_is_the_database(neo4j_url: str) -> None:
    store = open_backend(f"{neo4j_url}/neo4j")
    assert store.database.address.database == "neo4j"
    store.close()


def test_user_and_password_may_come_from_the_environment(neo4j_url: str) -> None:
    parts = urlsplit(neo4j_url)
    environment = {"NEO4J_USERNAME": parts.username or "", "NEO4J_PASSWORD": parts.password or ""}
    open_backend(without_login(neo4j_url), environment=environment).close()


def test_the_url_goes_before_arguments_and_those_before_the_environment() -> None:
    environment = {"NEO4J_USERNAME": "env", "NEO4J_PASSWORD": "env-secret"}
    logins = [
        parse_url("neo4j://a:b%2F%40c@host", "user", "word", environment).login,
        parse_url("neo4j://a@host", None, None, environment).login,
        parse_url("neo4j://host", "user", "word", environment).login,
        parse_url("neo4j://host", None, None, environment).login,
        parse_url("neo4j://host", None, None, {}).login,
    ]
    assert logins == [("a", "b/@c"), ("a", "env-secret"), ("user", "word"), ("env", "env-secret"), None]


@pytest.mark.parametrize(
    ("url", "uri", "database"),
    [
        ("neo4j://host", "neo4j://host:7687", None),
        ("neo4j+s://u:p@host:1/data", "neo4j+s://host:1", "data"),
        ("bolt+ssc://[::1]/my%20data/", "bolt+ssc://[::1]:7687", "my data"),
        ("neo4j://host/?region=eu", "neo4j://host:7687?region=eu", None),
    ],
)
def test_a_url_names_server_and_database(url: str, uri: str, database: str | None) -> None:
    address = parse_url(url, environment={})
    assert (address.uri, address.database) == (uri, database)


@pytest.mark.parametrize(
    "url", ["neo4j://", "neo4j:host", "neo4j://u:s3cr3t-w0rd@host:port", "neo4j://h/a/b", "neo4j+x://h"]
)
def test_a_url_that_names_no_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_url(url)
    assert SECRET not in str(caught.value)


def test_the_database_of_users_is_refused_with_what_to_name_instead() -> None:
    with pytest.raises(InvalidInput, match="name another one, or none for the default database"):
        parse_url("bolt://neo4j:word@host/System")


def test_a_wrong_password_is_named_as_that_and_not_shown(neo4j_url: str) -> None:
    with pytest.raises(BackendUnavailable, match="user name or password are wrong") as caught:
        open_backend(without_login(neo4j_url), username="neo4j", password=SECRET, environment={})
    assert SECRET not in _told(caught.value)


def test_a_database_that_does_not_exist_is_named(neo4j_url: str) -> None:
    with pytest.raises(BackendUnavailable, match=r"/nowhere: the server has no such database"):
        open_backend(f"{neo4j_url}/nowhere")


def test_a_server_without_tls_is_said_to_need_another_url(neo4j_url: str) -> None:
    with pytest.raises(BackendUnavailable, match=r"has no TLS, take the URL without \+s or \+ssc"):
        open_backend(neo4j_url.replace("bolt:", "bolt+ssc:", 1), wait=0.0)


def test_the_port_of_web_pages_is_said_to_be_the_wrong_one() -> None:
    with ThreadPoolExecutor(1) as pool, closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        served = pool.submit(serve)
        with pytest.raises(BackendUnavailable, match="the port of its web pages; that of Bolt is 7687"):
            open_backend(f"bolt://neo4j:{SECRET}@127.0.0.1:{server.getsockname()[1]}", wait=0.0)
        served.result(timeout=10)


def test_a_server_that_is_not_there_is_waited_for_and_then_named_without_the_password() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(BackendUnavailable, match=rf"bolt://localhost:{port}: no connection after 0.5 s") as caught:
        open_backend(f"bolt://neo4j:{SECRET}@localhost:{port}", wait=0.5)
    assert 0.5 <= time.monotonic() - begun < 30
    assert SECRET not in _told(caught.value)


def test_a_newer_schema_is_left_alone(store: Neo4jBackend, empty_neo4j_url: str) -> None:
    store.write(SCOPE, of(entity("Anna")))
    ask(store, "CREATE (:Graphmem:Migration {migration: 9999})")
    try:
        with pytest.raises(SchemaTooNew, match="has schema 9999"):
            open_backend(empty_neo4j_url)
    finally:
        ask(store, "MATCH (m:Graphmem {migration: 9999}) DELETE m")
    assert len(store.find_entities([SCOPE], EntityQuery())) == 1


def test_names_of_an_older_schema_are_found(store: Neo4jBackend, empty_neo4j_url: str) -> None:
    anna, ben, carl = entity("Anna"), entity("Ben"), entity("Carl")
    store.write(SCOPE, of(anna, ben, carl))
    ask(store, "MATCH (m:Graphmem) WHERE m.migration >= 9 DELETE m")
    # schema 8 had a node for every name, and another constraint
    ask(
        store,
        "CREATE CONSTRAINT graphmem_alias FOR (n:Graphmem) REQUIRE (n.scope, n.alias, n.entity_type) IS UNIQUE",
    )
    names = [["anna", anna.id], ["annie", anna.id], ["ben", anna.id], ["carl", carl.id]]
    ask(
        store,
        "UNWIND $names AS row "
        "CREATE (:Graphmem:Alias {scope: $scope, alias: row[0], entity_type: 'person', entity_id: row[1]})",
        names=names,
        scope=SCOPE.key,
    )
    for _ in range(2):
        opened = open_backend(empty_neo4j_url)
        found = opened.resolve_names(SCOPE, [name for name, _ in names])
        assert sorted([name, row.id] for name, row in found) == names
        opened.write(SCOPE, of(anna, carl))
        opened.close()
        assert ask(store, "MATCH (a:Alias) RETURN [a.canonical_name, a.alias]") == [["annie", None]]
        assert ask(store, "SHOW INDEXES YIELD name WHERE name = 'graphmem_alias' RETURN name") == []
        ask(store, "MATCH (m:Graphmem) WHERE m.migration >= 9 DELETE m")


@pytest.mark.slow  # whoever waits too long for a lock begins again after 5 s
def test_programs_that_open_a_new_database_at_once_all_find_it_ready(store: Neo4jBackend, empty_neo4j_url: str) -> None:
    drop_schema(store)
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(open_backend, [empty_neo4j_url] * 4))
    try:
        stores[0].write(SCOPE, of(entity("Anna")))
        assert [what for what, well, _ in stores[1].diagnose() if not well] == []
        with pytest.raises(Conflict):
            stores[2].write(SCOPE, of(entity("Anna")))
    finally:
        for opened in stores:
            opened.close()


def test_each_entity_type_is_a_label_and_each_edge_type_a_relationship_type(store: Neo4jBackend) -> None:
    people = [entity(f"one {kind}", entity_type=kind) for kind in sorted(DEFAULT_ONTOLOGY.entity_types)]
    store.write(SCOPE, of(*people))
    facts = tuple(edge(people[0], people[1], edge_type=kind) for kind in EdgeType)
    store.write(SCOPE, Changes(edges=facts))
    labels = ask(store, "MATCH (e:Entity) RETURN [e.entity_type, [l IN labels(e) WHERE toLower(l) = e.entity_type]]")
    assert sorted(labels) == [[kind, [kind.capitalize()]] for kind in sorted(DEFAULT_ONTOLOGY.entity_types)]
    kinds = ask(store, "MATCH (:Entity)-[r]->(:Entity) RETURN type(r)")
    assert sorted(kinds) == ["CAUSAL", "CO_OCCURRENCE", "ENTITY", "SEMANTIC", "TEMPORAL"]


def test_what_browser_shows_reads_well(store: Neo4jBackend) -> None:
    anna, acme = entity("Anna"), entity("Acme", entity_type="organization")
    store.write(SCOPE, of(anna, acme))
    store.write(SCOPE, Changes(edges=(edge(anna, acme, "works_at", fact="Anna works at Acme"),)))
    shown = ask(
        store,
        "MATCH (a:Entity:Person {name: 'Anna'})-[r:SEMANTIC]->(o:Entity:Organization) "
        "RETURN [a.domain, r.relation, r.fact, toString(r.valid_from), o.name]",
    )
    assert shown == [["neo4j-tests", "works_at", "Anna works at Acme", "2026-01-01T00:00:00Z", "Acme"]]


def test_a_closed_backend_says_so(store: Neo4jBackend) -> None:
    store.close()
    with pytest.raises(BackendUnavailable, match="was closed"):
        store.scopes()


def _told(error: BaseException) -> str:
    """Return everything that an error and its causes say."""
    told: list[str] = []
    found: BaseException | None = error
    while found is not None:
        told.append(f"{found!r} {found}")
        found = found.__cause__
    return "\n".join(told)


def test_metadata_that_an_earlier_version_stored_can_be_filtered(store: Neo4jBackend, empty_neo4j_url: str) -> None:
    shown = Attachment(kind="image", name="a.png")
    rows = [Episode(scope=SCOPE, text="x", metadata={"n": n, "a'b": "ü"}, attachments=(shown,)) for n in range(3)]
    store.add_episodes(SCOPE, [*rows, Episode(scope=SCOPE, text="y")])
    ask(store, "MATCH (e:Episode) REMOVE e.metadata_entries")
    ask(store, "MATCH (m:Graphmem) WHERE m.migration >= 10 DELETE m")
    with closing(open_backend(empty_neo4j_url)) as opened:
        query = EpisodeQuery(filters=EpisodeFilter(metadata={"n": {"$gte": 1}, "a'b": "ü"}))
        assert opened.find_episodes([SCOPE], query) == rows[1:]


def test_texts_that_an_earlier_version_stored_are_ordered_by_code_points(
    store: Neo4jBackend, empty_neo4j_url: str
) -> None:
    texts = ["\uffee", "\U0001f98a"]
    rows = [Episode(scope=SCOPE, text="x", metadata={"v": text}) for text in texts]
    store.add_episodes(SCOPE, rows)
    for row, text in zip(rows, texts, strict=True):
        ask(store, "MATCH (e:Graphmem {id: $id}) SET e.metadata_entries = [$old]", id=row.id, old=f"1:v:t{text}")
    ask(store, "MATCH (m:Graphmem) WHERE m.migration >= 16 DELETE m")
    with closing(open_backend(empty_neo4j_url)) as opened:
        for wanted, expected in (({"$gt": texts[0]}, rows[1:]), (texts[1], rows[1:]), ({"$lt": texts[1]}, rows[:1])):
            query = EpisodeQuery(filters=EpisodeFilter(metadata={"v": wanted}))
            assert opened.find_episodes([SCOPE], query) == expected
