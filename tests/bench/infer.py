"""Time of inference by rules over ten thousand entities: `python tests/bench/infer.py [URL]`, by default SQLite.

People work in teams of twenty; teams are part of companies, and these part of groups and located in cities.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator

from graphmem import GraphMemory

PEOPLE, TEAM, COMPANIES, CITIES = 8_500, 20, 850, 100


def triples() -> Iterator[tuple[str, str, str]]:
    """Yield the facts of ten thousand entities."""
    teams = PEOPLE // TEAM
    for n in range(PEOPLE):
        yield f"Person {n:05}", "works_at", f"Team {n // TEAM:04}"
        yield f"Person {n:05}", "lives_in", f"City {n % CITIES:03}"
    for n in range(teams):
        yield f"Team {n:04}", "part_of", f"Company {n % COMPANIES:04}"
    for n in range(COMPANIES):
        yield f"Company {n:04}", "part_of", f"Group {n % 100:03}"
        yield f"Company {n:04}", "located_in", f"City {n % CITIES:03}"
    for n in range(CITIES):
        yield f"City {n:03}", "located_in", f"Country {n % 25:02}"


def main() -> None:
    """Load the facts, and print the seconds of inferring three times: all, nothing new, and after one end."""
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/infer.db"
        scope = f"bench-{time.time_ns()}"
        with GraphMemory.open(url, scope=scope, extractor="none", embeddings="none", background=False) as memory:
            memory.add_facts(triples(), occurred_at="2026-01-01")
            stats = memory.stats()
            print(f"{url.split('/')[0]} {stats.entities:,} entities, {stats.edges:,} facts")
            for limit in (10_000, 10_000, 50_000):
                begun = time.perf_counter()
                done = memory.admin.infer(limit=limit)
                seconds = time.perf_counter() - begun
                print(f"limit {limit:,}: {seconds:.2f} s, {done.added:,} added, {done.kept:,} kept, {done.by_rule}")
            [fact, *_] = memory.facts("Team 0001", limit=100)
            begun = time.perf_counter()
            memory.end(fact.id)
            print(f"end of {fact.fact!r}: {1000 * (time.perf_counter() - begun):.0f} ms")
            begun = time.perf_counter()
            memory.add_facts([("Person 00001", "likes", "Tea")])
            print(f"an unrelated fact: {1000 * (time.perf_counter() - begun):.0f} ms")
            memory.admin.clear()


if __name__ == "__main__":
    main()
