"""Graph Data Science on a real server: what it leaves behind, what it agrees with, and what is done without it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.communities import InProcessDetector
from graphmem.communities.refresh import CommunityRefresh
from graphmem.errors import BackendUnavailable, GraphTooLarge
from graphmem.models import CommunityAlgorithm, Edge, Partition, Scope
from graphmem.settings import Settings
from graphmem.testing.communities_detect import (
    ALGORITHMS,
    KARATE,
    Pairs,
    planted,
    put_pairs,
    seed_of,
    share_that_stayed,
)
from graphmem.testing.rows import edge, entity, home, put_edges, put_entities
from graphmem_neo4j import Neo4jBackend, open_backend
from graphmem_neo4j.detector import GdsDetector, client_of
from tests.integration.neo4j.support import ask
from tests.neo4j_server import Neo4jServer

PROJECTIONS = "CALL gds.graph.list() YIELD graphName RETURN graphName ORDER BY graphName"


@pytest.fixture
def store(empty_neo4j_url: str) -> Generator[Neo4jBackend, None, None]:
    store = open_backend(empty_neo4j_url)
    yield store
    store.close()


@pytest.mark.full(algorithm="label_propagation")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_is_left_in_the_catalogue_of_gds(store: Neo4jBackend, algorithm: CommunityAlgorithm) -> None:
    put_pairs(store, KARATE)
    found = gds_of(store).detect(home(), algorithm)
    gds_of(store).detect(home(), algorithm, seed_of(found))
    assert ask(store, PROJECTIONS) == []


@pytest.mark.parametrize("failing", ["label_propagation", "modularity", "run_cypher"])
def test_the_projection_is_dropped_after_an_error_in_the_middle(
    store: Neo4jBackend, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    put_pairs(store, KARATE)
    client: Any = client_of(store.database)
    seen: list[list[str]] = []

    def fail(*_: object, **__: object) -> None:
        seen.append(ask(store, PROJECTIONS))
        raise RuntimeError("in the middle")

    if failing == "run_cypher":
        project = client.run_cypher

        def project_only(text: str, values: object) -> Any:
            return project(text, values) if "gds.graph.project(" in text else fail()

        monkeypatch.setattr(client, "run_cypher", project_only)
    else:
        runner, ran = client._query_runner, client._query_runner.call_procedure
        procedure = "gds.labelPropagation.mutate" if failing == "label_propagation" else "gds.modularity.stats"

        def all_but_one(endpoint: str, *args: object, **named: object) -> Any:
            return fail() if endpoint == procedure else ran(endpoint, *args, **named)

        monkeypatch.setattr(runner, "call_procedure", all_but_one)
    with pytest.raises(RuntimeError, match="in the middle"):
        GdsDetector(store.database, client).detect(home())
    assert [len(names) for names in seen] == [1]
    assert seen[0][0].startswith("graphmem-")
    assert f"-{os.getpid()}-" in seen[0][0]
    assert ask(store, PROJECTIONS) == []


@pytest.mark.full
def test_projections_of_others_stay(store: Neo4jBackend) -> None:
    put_pairs(store, KARATE)
    ask(store, "MATCH (a)-->(b) WITH gds.graph.project('theirs', a, b) AS g RETURN g.nodeCount")
    try:
        gds_of(store).detect(home())
        assert ask(store, PROJECTIONS) == ["theirs"]
    finally:
        ask(store, "CALL gds.graph.drop('theirs') YIELD graphName RETURN graphName")


def test_what_was_just_written_is_seen(store: Neo4jBackend) -> None:
    put_pairs(store, [(1, 2)])
    assert len(gds_of(store).detect(home()).node_ids) == 2
    put_pairs(store, [(3, 4)], first=2)
    assert len(gds_of(store).detect(home()).node_ids) == 4


def test_a_graph_that_the_heap_can_not_take_is_refused_before_it_is_copied(store: Neo4jBackend) -> None:
    put_pairs(store, KARATE)
    detector = GdsDetector(store.database, client_of(store.database), heap_share=0.0)
    with pytest.raises(GraphTooLarge, match=r"server\.memory\.heap\.max_size"):
        detector.detect(home())
    assert ask(store, PROJECTIONS) == []


def test_without_the_client_communities_are_found_in_process(
    store: Neo4jBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_found(_: str) -> None:
        return None

    monkeypatch.setattr("graphmem_neo4j.backend.find_spec", not_found)
    assert store.community_detector is None
    put_pairs(store, KARATE)
    assert CommunityRefresh(store, Settings()).refresh(home()).modularity > 0.3


def test_with_gds_a_refresh_takes_it(store: Neo4jBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    put_pairs(store, KARATE)
    refuse_all_others(monkeypatch)
    assert CommunityRefresh(store, Settings()).refresh(home()).modularity > 0.3


def refuse_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("communities were looked for in process")

    monkeypatch.setattr("graphmem.communities.refresh.partition_of", refused)


def test_where_the_heap_can_not_take_the_graph_a_refresh_goes_on_in_process(
    store: Neo4jBackend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_pairs(store, KARATE)
    monkeypatch.setattr(gds_of(store), "_heap_share", 0.0)
    with caplog.at_level(logging.WARNING):
        done = CommunityRefresh(store, Settings()).refresh(home())
    assert done.modularity > 0.3
    assert "server.memory.heap.max_size" in caplog.text


@pytest.mark.full
def test_without_gds_on_the_server_communities_are_found_in_process(start_neo4j: Callable[..., Neo4jServer]) -> None:
    store = open_backend(start_neo4j(gds=False).url, wait=60)
    try:
        put_pairs(store, KARATE)
        assert store.community_detector is None
        assert CommunityRefresh(store, Settings()).refresh(home()).modularity > 0.3
    finally:
        store.close()


@pytest.mark.full
def test_a_server_that_is_gone_is_named_soon_and_not_waited_for_for_minutes(
    start_neo4j: Callable[..., Neo4jServer],
) -> None:
    server = start_neo4j()
    store = open_backend(server.url, wait=60)
    try:
        put_pairs(store, [(1, 2)])
        detector = gds_of(store)
        server.kill()
        with pytest.raises(BackendUnavailable) as caught:
            detector.detect(home())
        assert "graphmem-tests" not in str(caught.value)
    finally:
        store.close()


@pytest.mark.full(algorithm="label_propagation")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_both_detectors_split_the_karate_club_as_well(store: Neo4jBackend, algorithm: CommunityAlgorithm) -> None:
    put_pairs(store, KARATE)
    by_gds, here = (detector.detect(home(), algorithm) for detector in (gds_of(store), InProcessDetector(store)))
    assert by_gds.modularity == pytest.approx(here.modularity, abs=0.05)


@dataclass(frozen=True)
class Found:
    """What a detector found before and, seeded with that, after one more edge in a hundred."""

    before: Partition
    after: Partition


Both = dict[CommunityAlgorithm, tuple[Found, Found]]


@pytest.fixture(scope="module")
def in_groups(neo4j_url: str) -> Both:
    """Return what GDS and the detector in process find in 10,000 entities with known groups."""
    store = open_backend(neo4j_url)
    pairs, more = planted(200, 50, 60_000, 0.7), planted(200, 50, 600, 0.7, seed=1)
    put_in_parts(store, pairs)
    found = found_by_both(store, home(), lambda: put_edges(store, *numbered(more, 100_000)))
    store.close()
    return found


@pytest.fixture(scope="module")
def in_passages(neo4j_url: str, shared_data: Path) -> Both:
    """Return the same of facts that a language model took from real passages."""
    lines = (shared_data / "musique_passages_openie.jsonl").read_text("utf-8").splitlines()
    facts = [
        {"subject": t[0], "relation": t[1], "object": t[2]}
        for line in lines
        for t in json.loads(line)["triples"]
        if len(t) == 3 and all(isinstance(part, str) for part in t)
    ]
    few = len(facts) // 100
    store = open_backend(neo4j_url)
    with GraphMemory.open(neo4j_url, scope=home(), extractor="none", background=False) as memory:
        memory.add_facts(facts[:-few], skip_invalid=True)
        found = found_by_both(store, memory.scope, lambda: memory.add_facts(facts[-few:], skip_invalid=True))
    store.close()
    return found


@pytest.mark.full
@pytest.mark.timeout(900)  # the first one writes the graph
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("graph", ["in_groups", "in_passages"])
def test_both_detectors_find_partitions_of_the_same_quality(
    request: pytest.FixtureRequest, graph: str, algorithm: CommunityAlgorithm
) -> None:
    by_gds, here = request.getfixturevalue(graph)[algorithm]
    assert by_gds.before.node_ids == here.before.node_ids
    assert by_gds.before.modularity == pytest.approx(here.before.modularity, abs=0.05)


@pytest.mark.full
@pytest.mark.timeout(900)  # the first one writes the graph
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("graph", ["in_groups", "in_passages"])
@pytest.mark.parametrize("detector", [0, 1], ids=["GDS", "in process"])
def test_members_keep_their_communities_when_few_edges_come(
    request: pytest.FixtureRequest, graph: str, algorithm: CommunityAlgorithm, detector: int
) -> None:
    found: Found = request.getfixturevalue(graph)[algorithm][detector]
    assert share_that_stayed(found.before, found.after) >= 0.95


def found_by_both(store: Neo4jBackend, scope: Scope, add: Callable[[], object]) -> Both:
    detectors = gds_of(store), InProcessDetector(store)
    before: dict[CommunityAlgorithm, list[Partition]] = {
        algorithm: [d.detect(scope, algorithm) for d in detectors] for algorithm in ALGORITHMS
    }
    add()
    found: Both = {}
    for algorithm, old in before.items():
        one, two = (Found(b, d.detect(scope, algorithm, seed_of(b))) for d, b in zip(detectors, old, strict=True))
        found[algorithm] = one, two
    return found


def gds_of(store: Neo4jBackend) -> GdsDetector:
    detector = store.community_detector
    assert detector is not None
    return detector


def put_in_parts(store: Neo4jBackend, pairs: Pairs) -> None:
    """Write a large graph in transactions of 5,000 edges, with the entities first."""
    numbers = sorted({n for pair in pairs for n in pair})
    for start in range(0, len(numbers), 5000):
        put_entities(store, *(entity(n) for n in numbers[start : start + 5000]))
    edges = numbered(pairs, 1)
    for start in range(0, len(edges), 5000):
        put_edges(store, *edges[start : start + 5000])


def numbered(pairs: Pairs, first: int) -> list[Edge]:
    return [edge(n, a, b, relation=f"r{n}") for n, (a, b) in enumerate(pairs, first)]
