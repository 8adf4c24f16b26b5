"""Detecting communities in a graph of 100,000 entities and a million facts. See docs/development/benchmarks.md.

    python tests/bench/communities.py [--json] [--edges N] [--neo4j bolt://user:password@host:port]

The graph has groups of 100, 70 % of the facts are inside of one. In process: from arrays, beside igraph and networkit
where they are installed. On SQLite, with a hundredth and a tenth of the edges: a refresh through the API, first,
unchanged, and after 1 % of new facts, in one group and spread over all, and how long a new entity takes to join. With
`--neo4j` (a server that only this uses: what graphmem has on it is deleted): by Graph Data Science. `--json` prints the
figures as one JSON object on the last line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmem.communities import refresh as refreshing
from graphmem.communities.assignment import Assignment
from graphmem.communities.detection import leiden, propagate
from graphmem.communities.graph import EntityGraph, Pairs, in_units, modularity
from graphmem.communities.refresh import CommunityRefresh
from graphmem.models import Changes, Edge, Entity, MembershipQuery, Scope, new_id, utc_now
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.shared_servers import empty

RUNS = 5
GROUP = 100
INSIDE = 0.7
SCOPE = Scope("bench-communities")
PUT_ENTITIES = "UNWIND $ids AS id CREATE (:Graphmem:Entity {id: id, scope: $scope})"
PUT_EDGES = (
    "UNWIND $rows AS row MATCH (s:Graphmem {id: row[0]}) MATCH (t:Graphmem {id: row[1]}) "
    "CREATE (s)-[:SEMANTIC {graphmem_id: row[2], scope: $scope, confidence: row[3]}]->(t)"
)

Arrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def graph_arrays(edges: int, seed: int = 0) -> tuple[int, Arrays]:
    """Return the number of nodes, and source, target and confidence of each edge."""
    nodes = edges // 10
    chance = np.random.default_rng(seed)
    source = chance.integers(0, nodes, edges)
    near = source // GROUP * GROUP + chance.integers(0, GROUP, edges)
    target = np.where(chance.random(edges) < INSIDE, near, chance.integers(0, nodes, edges))
    kept = source != target
    return nodes, (source[kept], target[kept], np.round(0.5 + 0.5 * chance.random(int(kept.sum())), 2))


def within_a_group(edges: int) -> Arrays:
    """Return facts between the entities of the first group."""
    chance = np.random.default_rng(2)
    source, target = chance.integers(0, GROUP, (2, edges))
    kept = source != target
    return source[kept], target[kept], np.full(int(kept.sum()), 0.7)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return seconds and result of a call."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def in_process(nodes: int, arrays: Arrays) -> dict[str, Any]:
    """Measure what is done in process, and the other libraries on the same arrays; all run in turns."""
    source, target, confidence = arrays
    names = [f"{n:08}" for n in range(nodes)]
    pairs = Pairs.of(names, source, target, in_units(confidence))
    build_seconds, graph = timed(lambda: EntityGraph.of(pairs))
    rivals = {"graphmem": lambda: propagate(graph), **others(nodes, arrays)}
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(RUNS):
        for name, run in rivals.items():
            seconds[name].append(timed(run)[0])
    labels = propagate(graph)
    leiden_seconds, levels = timed(lambda: leiden(graph))
    return {
        "build_s": round(build_seconds, 2),
        "label_propagation_s": {name: round(statistics.median(times), 2) for name, times in seconds.items()},
        "label_propagation_communities": len(np.unique(labels)),
        "label_propagation_modularity": round(modularity(pairs, labels), 3),
        "leiden_s": round(leiden_seconds, 2),
        "leiden_levels": [len(np.unique(level)) for level in levels],
        "leiden_modularity": round(modularity(pairs, levels[0]), 3),
        "bytes_an_edge": round(peak_memory(names, arrays) / len(source)),
    }


def kept(edges: int) -> dict[str, Any]:
    """Measure refreshes of a SQLite file, and how new entities join, in a small graph and in this one."""
    nodes, arrays = graph_arrays(edges)
    with tempfile.TemporaryDirectory() as folder:
        store = open_backend(f"sqlite:///{folder}/memory.db")
        ids = put(store, nodes, arrays)
        refresh = CommunityRefresh(store, Settings()).refresh
        spent = watch_reads(store)
        first, first_reading = refreshed(refresh, spent)
        unchanged, _ = refreshed(refresh, spent)
        put_facts(store, ids, within_a_group(edges // 100))
        near, near_reading = refreshed(refresh, spent)
        put_facts(store, ids, tuple(values[: edges // 100] for values in graph_arrays(edges, seed=1)[1]))
        more, more_reading = refreshed(refresh, spent)
        joining = statistics.median(join(store, ids) for _ in range(RUNS))
        store.close()
    return {
        "edges": len(arrays[0]),
        "first_s": round(first, 2),
        "first_reading_s": round(first_reading, 2),
        "unchanged_s": round(unchanged, 2),
        "after_1_percent_in_a_group_s": round(near, 2),
        "after_1_percent_in_a_group_reading_s": round(near_reading, 2),
        "share_apart_from_reading_in_a_group": round((near - near_reading) / (first - first_reading), 3),
        "after_1_percent_s": round(more, 2),
        "after_1_percent_reading_s": round(more_reading, 2),
        "share_apart_from_reading": round((more - more_reading) / (first - first_reading), 3),
        "join_ms": round(1000 * joining, 2),
    }


def worked(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of processor time and the result of a call: what a busy machine doesn't change."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def refreshed(refresh: Callable[[Scope], Any], spent: list[float]) -> tuple[float, float]:
    """Return the processor seconds that a refresh took, and those of them that it read from the store."""
    spent.clear()
    seconds, _ = worked(lambda: refresh(SCOPE))
    return seconds, sum(spent)


def watch_reads(store: GraphBackend) -> list[float]:
    """Return a list that takes in the seconds of reading rows, and of reading facts into arrays."""
    spent: list[float] = []
    within = [False]

    def watched(find: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            if within[0]:
                return find(*args, **named)
            within[0] = True
            try:
                seconds, found = worked(lambda: find(*args, **named))
            finally:
                within[0] = False
            spent.append(seconds)
            return found

        return run

    for name in ("read_facts", "read_present"):
        setattr(refreshing, name, watched(getattr(refreshing, name)))
    for name in dir(store):
        if name.startswith(("find_", "get_")):
            setattr(store, name, watched(getattr(store, name)))
    return spent


def put(store: GraphBackend, nodes: int, arrays: Arrays) -> list[str]:
    """Write the graph; return the ids of its nodes."""
    ids = sorted(new_id() for _ in range(nodes))
    for start in range(0, nodes, 5_000):
        store.write(SCOPE, Changes(entities=tuple(node(i) for i in ids[start : start + 5_000])))
    put_facts(store, ids, arrays)
    return ids


def node(entity_id: str) -> Entity:
    """Return an entity that is named after its id."""
    now = utc_now()
    values: dict[str, Any] = {"name": entity_id, "canonical_name": entity_id, "entity_type": "concept"}
    return Entity(id=entity_id, scope=SCOPE, **values, first_seen_at=now, last_seen_at=now)


def put_facts(store: GraphBackend, ids: list[str], arrays: tuple[Any, ...]) -> None:
    """Write facts between nodes; each its own relation, so that none is the same as another."""
    now = utc_now()
    rows: list[tuple[int, int, float]] = list(zip(*(values.tolist() for values in arrays), strict=True))
    for start in range(0, len(rows), 5_000):
        some = tuple(
            Edge(
                scope=SCOPE,
                source_id=ids[a],
                target_id=ids[b],
                relation=new_id(),
                fact="One knows another.",
                confidence=c,
                valid_from=now,
            )
            for a, b, c in rows[start : start + 5_000]
        )
        store.write(SCOPE, Changes(edges=some))


def join(store: GraphBackend, ids: list[str]) -> float:
    """Return the processor seconds in which a new entity with ten neighbors joins a community."""
    assignment = Assignment(store)
    while not assignment.step(SCOPE):
        pass
    now, new = utc_now(), new_id()
    edges = tuple(
        Edge(scope=SCOPE, source_id=new, target_id=i, relation="knows", valid_from=now) for i in ids[:GROUP:10]
    )
    store.write(SCOPE, Changes(entities=(node(new),), edges=edges))
    seconds, _ = worked(lambda: assignment.step(SCOPE))
    found = store.find_memberships([SCOPE], MembershipQuery(entity_ids=(new,)))
    assert len(found) == 1
    return seconds


def peak_memory(names: list[str], arrays: Arrays) -> int:
    """Return the most bytes that building the graph and propagating labels takes, besides what was there before."""
    tracemalloc.start()
    propagate(EntityGraph.of(Pairs.of(names, arrays[0], arrays[1], in_units(arrays[2]))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def others(nodes: int, arrays: Arrays) -> dict[str, Callable[[], Any]]:
    """Return label propagation of other libraries, ready to run; theirs are not in `pip install graphmem`."""
    source, target, confidence = arrays
    found: dict[str, Callable[[], Any]] = {}
    try:
        igraph: Any = import_module("igraph")
        graph = igraph.Graph(n=nodes, edges=np.column_stack([source, target]))
        found["igraph"] = lambda: graph.community_label_propagation(weights=confidence)
    except ImportError:
        pass
    try:
        networkit: Any = import_module("networkit")
        other = networkit.GraphFromCoo((confidence, (source, target)), n=nodes, weighted=True, directed=False)
        found["networkit"] = lambda: networkit.community.PLP(other).run()
    except ImportError:
        pass
    return found


def by_gds(url: str, nodes: int, arrays: Arrays) -> dict[str, Any]:
    """Measure Graph Data Science on a server."""
    from graphmem_neo4j import open_backend

    empty(url)
    store = open_backend(url, timeout=600.0)
    try:
        load_seconds, _ = timed(lambda: load(store, nodes, arrays))
        detector: Any = store.community_detector
        parts: dict[str, list[float]] = {}
        watch(detector, parts)
        runs = [timed(lambda: detector.detect(SCOPE)) for _ in range(RUNS)]
        found = runs[-1][1]
        leiden_seconds, levels = timed(lambda: detector.detect(SCOPE, "leiden"))
    finally:
        empty(url)
        store.close()
    return {
        "load_s": round(load_seconds, 1),
        "label_propagation_s": round(statistics.median(seconds for seconds, _ in runs), 2),
        **{f"{name}_s": round(statistics.median(times), 2) for name, times in parts.items()},
        "label_propagation_communities": int(found.levels[0].max()) + 1,
        "label_propagation_modularity": round(found.modularity, 3),
        "leiden_s": round(leiden_seconds, 2),
        "leiden_levels": [int(level.max()) + 1 for level in levels.levels],
        "leiden_modularity": round(levels.modularity, 3),
    }


def watch(detector: Any, parts: dict[str, list[float]]) -> None:
    """Note how long the queries of a detector take: the projection, the algorithm, reading the labels."""
    runner = detector._client._query_runner
    run_query, call = runner.run_retryable_cypher, runner.call_procedure

    def query_timed(text: str, *args: Any, **named: Any) -> Any:
        seconds, found = timed(lambda: run_query(text, *args, **named))
        name = "projection" if "gds.graph.project(" in text else "labels" if "nodeProperty" in text else None
        if name is not None:
            parts.setdefault(name, []).append(seconds)
        return found

    def call_timed(endpoint: str, *args: Any, **named: Any) -> Any:
        seconds, found = timed(lambda: call(endpoint, *args, **named))
        if "labelPropagation" in endpoint:
            parts.setdefault("algorithm", []).append(seconds)
        return found

    runner.run_retryable_cypher, runner.call_procedure = query_timed, call_timed


def load(store: Any, nodes: int, arrays: Arrays) -> None:
    """Write the graph by plain Cypher: what is measured is finding communities in it."""
    ids = [new_id() for _ in range(nodes)]
    edge_ids = [new_id() for _ in arrays[0]]
    ends = zip(arrays[0].tolist(), arrays[1].tolist(), edge_ids, arrays[2].tolist(), strict=True)
    rows: list[list[str | float]] = [[ids[a], ids[b], edge_id, weight] for a, b, edge_id, weight in ends]
    with store.database.session() as session:
        for start in range(0, nodes, 10_000):
            session.run(PUT_ENTITIES, ids=ids[start : start + 10_000], scope=SCOPE.key).consume()
        for start in range(0, len(rows), 10_000):
            session.run(PUT_EDGES, rows=rows[start : start + 10_000], scope=SCOPE.key).consume()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")
    parser.add_argument("--edges", type=int, default=1_000_000, help="a tenth of them are entities")
    parser.add_argument("--neo4j", metavar="URL", help="measure Graph Data Science on this server, too")
    options = parser.parse_args()
    nodes, arrays = graph_arrays(options.edges)
    figures: dict[str, Any] = {"nodes": nodes, "edges": len(arrays[0]), "in_process": in_process(nodes, arrays)}
    figures["kept"] = [kept(many) for many in (options.edges // 100, options.edges // 10)]
    if options.neo4j:
        figures["gds"] = by_gds(options.neo4j, nodes, arrays)
    for name, value in figures.items():
        print(f"{name:12} {value}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
