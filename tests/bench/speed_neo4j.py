"""Speed on a Neo4j server against the plain driver, and as the memory grows: docs/development/benchmarks.md.

    GRAPHMEM_TEST_NEO4J_URL=bolt://neo4j:PASSWORD@localhost:7687 python tests/bench/speed_neo4j.py [--json] [--quick]

The server's data is deleted. Runs that are compared alternate, and medians are compared: batch by batch, question by
question, each side in a scope of its own of the same database.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, LiteralString

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

import raw_neo4j
import speed
from neo4j import Driver, GraphDatabase
from speed import Figures, Reading, Triples, seconds
from world import World

from graphmem import GraphMemory
from graphmem.models import ExpandLimits, Scope
from graphmem.registry import open_backend
from graphmem_neo4j.server import parse_url
from tests.neo4j_server import forget_plans
from tests.shared_servers import empty

BATCH = 1000
PASSAGES = 600
WARM = 0.1
"""Share of the runs that aren't counted: the server makes its plans and compiles them."""
HEAP = """CALL dbms.queryJmx('java.lang:type=MemoryPool,*') YIELD name, attributes
WHERE attributes.Type.value = 'HEAP'
RETURN sum(attributes.PeakUsage.value.properties.used) AS peak"""


class Bench:
    """A server to measure on.

    Parameters
    ----------
    url
        Its address with user and password.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        address = parse_url(url)
        self.driver: Driver = GraphDatabase.driver(address.uri, auth=address.login)  # pyright: ignore[reportUnknownMemberType]

    def query(self, text: Any, **values: Any) -> list[list[Any]]:
        """Return the rows of a statement."""
        with self.driver.session() as session:  # pyright: ignore[reportUnknownMemberType]
            return [record.values() for record in session.run(text, values)]

    def _opened(self, scope: str) -> GraphMemory:
        """Open a scope; what is indexed and kept up behind the caller's back is left out of what is timed."""
        return GraphMemory.open(self.url, scope=Scope(scope), extractor="none", embeddings="none", background=False)

    def writes(self, figures: Figures, quick: bool) -> None:
        """Bulk and one-at-a-time writes against the plain driver."""
        groups, source = speed.passages()
        flat = [triple for group in groups for triple in group]
        bulk = [flat[start : start + BATCH] for start in range(0, len(flat), BATCH)]
        figures.values["triples"] = {"source": source, "given": len(flat), "passages": len(groups)}
        for name, units in (("bulk", bulk), ("one_at_a_time", groups[:PASSAGES])):
            self._alternated(figures, name, units)

    def _alternated(self, figures: Figures, name: str, units: Sequence[Triples]) -> None:
        plain: dict[str, LiteralString] = {"stated": raw_neo4j.STATED, "traced": raw_neo4j.TRACED}
        times: dict[str, list[float]] = {"graphmem": [], "stated": [], "traced": []}
        with self._opened(f"graphmem {name}") as memory:

            def write(side: str, unit: Triples) -> float:
                if side == "graphmem":
                    return seconds(lambda: memory.add_facts(unit, skip_invalid=True))
                scope = Scope(f"{side} {name}")
                # not all of them beforehand: the collector would go through them while graphmem works
                rows = raw_neo4j.rows_of(unit, scope)
                return seconds(lambda: raw_neo4j.merge(self.driver, plain[side], scope, rows))

            sides = list(times)
            for number in range(len(units)):
                turn = number % len(sides)
                for side in sides[turn:] + sides[:turn]:
                    times[side].append(write(side, units[number]))
        begin = max(1, int(WARM * len(units)))
        counted = sum(len(unit) for unit in units[begin:])
        found: dict[str, float] = {side: round(counted / sum(took[begin:])) for side, took in times.items()}
        for side in plain:
            ratio = statistics.median(
                a / b for a, b in zip(times["graphmem"][begin:], times[side][begin:], strict=True)
            )
            found[f"times_{side}"] = round(ratio, 2)
        figures.values[f"write_{name}_rows_per_s"] = found
        figures.aim(f"{name} add_facts, times UNWIND … MERGE of the same triples", found["times_traced"], 2.0)

    def reads(self, figures: Figures, quick: bool) -> None:
        """Recall and two-hop expand as the graph grows, the hub against ordinary nodes, and a hand-written query."""
        sizes = [10_000, 200_000] if quick else [10_000, 100_000, 1_000_000]
        worlds: list[World] = []
        for size in sizes:
            took = seconds(lambda size=size: worlds.append(self._world(size)))
            print(f"graph of {size:,} edges written in {took:.0f} s", file=sys.stderr, flush=True)
        forget_plans(self.url)  # they were made for an empty database
        read = [Reading(world) for world in worlds]
        for _ in range(speed.RUNS):
            for reading in read:
                reading.run()
        for reading in read:
            figures.values[f"read_{reading.world.edges}"] = reading.figures()
        self._hand_written(figures, read[0])
        first, last = read[0], read[-1]
        for kind in ("recall", "expand"):
            growth = last.p50(kind) / first.p50(kind)
            figures.aim(f"{kind} p50 at {sizes[-1]:,} edges, times that at {sizes[0]:,}", growth, 3.0)
        for kind in ("recall", "narrow_expand"):
            ratio = last.p50(f"hub_{kind}") / last.p50(kind)
            figures.aim(f"{kind} of a hub, times an ordinary node (same answer size)", ratio, 3.0)
        for reading in read:
            reading.close()

    def _world(self, size: int) -> World:
        return raw_neo4j.build(self.driver, self.url, Scope(f"read {size}"), size)

    def _hand_written(self, figures: Figures, reading: Reading) -> None:
        """`expand` of two hops, and one query that returns the same edges."""
        limits = ExpandLimits(max_frontier=100_000)  # an answer that is cut nowhere, as the query's
        backend = open_backend(self.url)
        times: dict[str, list[float]] = {"expand": [], "query": []}
        same = 0
        asked = reading.world.ordinary[:100]
        for entity_id, _ in asked:
            sizes: list[int] = []
            second = limits.per_node(max(1, len(self.query(raw_neo4j.NEAR, id=entity_id))))

            def expand(entity_id: str = entity_id, sizes: list[int] = sizes) -> None:
                sizes.append(len(backend.expand([reading.world.scope], [entity_id], hops=2, limits=limits).edge_ids))

            def query(entity_id: str = entity_id, sizes: list[int] = sizes, second: int = second) -> None:
                sizes.append(len(self.query(raw_neo4j.TWO_HOPS, id=entity_id, first=limits.per_node(1), second=second)))

            times["expand"].append(seconds(expand))
            times["query"].append(seconds(query))
            same += sizes[0] == sizes[1]
        backend.close()
        found = {f"{side}_p50_ms": round(1e3 * statistics.median(took), 2) for side, took in times.items()}
        figures.values["two_hops"] = {**found, "same_number_of_edges": f"{same} of {len(asked)}"}
        figures.aim(
            "expand of two hops, times a hand-written query",
            statistics.median(times["expand"]) / statistics.median(times["query"]),
            2.0,
        )

    def memory(self, figures: Figures, quick: bool) -> None:
        """Peak memory of a bulk load: of this process' Python objects, and the heap of the server."""
        groups, _ = speed.passages()
        flat = [triple for group in groups for triple in group]
        with self._opened("memory") as memory:
            tracemalloc.start()
            memory.add_facts(flat, skip_invalid=True)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        [[heap]] = self.query(HEAP)
        figures.values["peak_memory"] = {"client_objects_mb": round(peak / 1e6, 1), "server_heap_mb": round(heap / 1e6)}

    def communities(self, figures: Figures, quick: bool) -> None:
        """Label propagation inside of the server."""
        edges = 100_000 if quick else 1_000_000
        scope = Scope(f"communities {edges}")
        built = raw_neo4j.build(self.driver, self.url, scope, edges)
        backend = open_backend(self.url)
        if (detector := backend.community_detector) is not None:
            took = [seconds(lambda find=detector: find.detect(scope)) for _ in range(3)]
            figures.values["label_propagation"] = {
                "entities": built.edges * 2 // 20,
                "edges": edges,
                "seconds": round(statistics.median(took), 2),
            }
        backend.close()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")
    parser.add_argument("--quick", action="store_true", help="no graph of a million edges")
    parser.add_argument("--only", choices=("writes", "reads", "memory", "communities"), help="one group of measures")
    options = parser.parse_args()
    url = os.environ["GRAPHMEM_TEST_NEO4J_URL"]
    empty(url)
    open_backend(url).close()  # constraints and indexes
    bench, figures = Bench(url), Figures()
    measures: dict[str, Callable[[Figures, bool], None]] = {
        "writes": bench.writes,
        "memory": bench.memory,
        "reads": bench.reads,
        "communities": bench.communities,
    }
    for name, measure in measures.items():
        if options.only in (None, name):
            took = seconds(lambda measure=measure: measure(figures, options.quick))
            print(f"{name}: measured in {took:.0f} s", file=sys.stderr, flush=True)
    bench.driver.close()
    figures.print()
    if options.json:
        print(json.dumps(figures.as_json()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
