"""Latency of callers before, during and after a migration. See docs/how-to/migrate.md.

    python tests/bench/migrate.py SOURCE TARGET [--seconds 20] [--json]

Two processes write 50 turns and read 20 times a second together, while the memory moves from SOURCE to TARGET, back and
there again. Afterwards every acknowledged turn has to be in the target once, and 200 recalls and searches have to be
equal. Passwords of a server are taken from its URL for SOURCE, and from NEO4J_PASSWORD otherwise.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parents[2]))

from children import toy_text
from moving import asking, migration, opened

from graphmem.migrate.verify import verify
from graphmem.models import EpisodeQuery, Scope

PROCESSES, WRITES, READS = 2, 50, 20
QUESTIONS = 200


def call(url: str, name: str, stop: Event, results: Any) -> None:
    """Write and read at a fixed pace; put (time, kind, seconds) of each call and the ids of the turns."""
    calls: list[tuple[float, str, float]] = []
    stored: list[str] = []
    with opened(url) as memory:
        begun, number = time.monotonic(), 0
        pace = PROCESSES / (WRITES + READS)
        while not stop.is_set():
            time.sleep(max(0.0, begun + number * pace - time.monotonic()))
            kind = "read" if number % (WRITES + READS) % 7 in (2, 5) else "write"
            start = time.monotonic()
            if kind == "write":
                stored.append(memory.remember(toy_text(name, number), external_id=f"{name}/{number}").episode_id)
            elif number % 2:
                memory.recall(f"Whom does Person {number % 7} know?")
            else:
                memory.search(f"Person {number % 7} visited")
            calls.append((start, kind, time.monotonic() - start))
            number += 1
    results.put((calls, stored))


def main() -> None:
    """Run the migration and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds before and after each command")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    stop, results = context.Event(), context.Queue()
    workers = [
        context.Process(target=call, args=(given.source, f"p{i}", stop, results), daemon=True) for i in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    phases: dict[str, tuple[float, float]] = {}

    @contextmanager
    def phase(name: str) -> Generator[None]:
        start = time.monotonic()
        yield
        phases[name] = (start, time.monotonic())

    time.sleep(given.seconds / 2)  # the processes start
    with phase("before"):
        time.sleep(given.seconds)
    with closing(migration(given.source, given.target)) as moved:
        with phase("copy"):
            moved.advance("copy")
            moved.copy()
        with phase("two stores"):
            time.sleep(given.seconds)
        for name in ("cutover", "rollback", "cutover again"):
            with phase(name):
                moved.advance("rollback" if name == "rollback" else "cutover")
            with phase(f"after {name}"):
                time.sleep(given.seconds / 2)
        stop.set()
        found = [results.get(timeout=120) for _ in workers]
        calls = [each for calls, _ in found for each in calls]
        stored = [each for _, ids in found for each in ids]
        moved.settle()
        with ExitStack() as asked:
            checked = verify(*moved.ends(), moved.scopes(), asking(asked), QUESTIONS)
        held = moved.target.find_episode_ids([Scope()], EpisodeQuery())
        moved.advance("cleanup")
    figures: dict[str, Any] = {
        "load": os.getloadavg()[0],
        "stored": len(stored),
        "lost": len(set(stored) - set(held)),
        "twice": len(held) - len(set(held)),
        "equal recalls": f"{checked.recalls} of {checked.questions}",
        "equal searches": f"{checked.searches} of {checked.questions}",
        "differences": list(checked.differences)[:5],
    }
    for name, (start, end) in phases.items():
        for kind in ("write", "read"):
            times = [seconds for at, what, seconds in calls if what == kind and start <= at < end]
            if len(times) > 1:
                cuts = statistics.quantiles(times, n=20)
                p50, p95, longest = (f"{1000 * seconds:.1f}" for seconds in (cuts[9], cuts[18], max(times)))
                figures[f"{name}, {kind}"] = {"n": len(times), "p50 ms": p50, "p95 ms": p95, "max ms": longest}
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
