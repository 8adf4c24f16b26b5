"""Latency of callers before, during and after a migration. See docs/how-to/migrate.md.

    python tests/bench/migrate.py SOURCE TARGET [--seconds 20] [--turns 1500] [--warm 60] [--rehearse]
        [--control] [--json]

Two processes write 50 turns and read 20 times a second together. They are measured after `--warm` seconds, when the
background jobs of a process that was just started have begun too. SOURCE is copied to TARGET, and both are written;
then the migration is canceled and SOURCE is used alone, which shows how much of the times is due to the memory's
growth. After that it moves to TARGET, back and there again. In the end every acknowledged turn has to be in the target
once, and 200 recalls and searches have to be equal. Passwords of a server are taken from its URL for SOURCE, and from
NEO4J_PASSWORD otherwise.

With `--rehearse`, a small memory is moved to TARGET first, and removed, so that a server that was just started has
planned and compiled its queries.

With `--control`, nothing moves: two further processes write as many turns to TARGET, which shows what the contention
for processor and disk alone costs the callers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parents[2]))

from children import toy_text
from moving import asking, migration, opened

from graphmem import GraphMemory
from graphmem.migrate.verify import verify, warm_up
from graphmem.models import EpisodeQuery, Scope

PROCESSES, WRITES, READS = 2, 50, 20
QUESTIONS = 200
_CATCH_UP = 1.0  # seconds of missed calls that are made up for; after a copy, more would be another load than asked for


def remember(memory: GraphMemory, name: str, number: int) -> str:
    """Store a turn of a chat; return its id."""
    text = toy_text(name, number)
    return memory.remember(text, speaker=name, session_id=name, external_id=f"{name}/{number}").episode_id


def call(url: str, name: str, ready: Barrier, stop: Event, results: Any, *, reads: bool = True) -> None:
    """Write and read at a fixed pace; put (time, kind, seconds, CPU seconds) of each call and the ids of the turns."""
    calls: list[tuple[float, str, float, float]] = []
    stored: list[str] = []
    with opened(url) as memory:
        stored.append(remember(memory, name, -1))
        memory.search("Person 1 visited")  # loads the models
        ready.wait()
        due, number = time.monotonic(), 0
        pace = PROCESSES / (WRITES + READS)
        while not stop.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due + pace, time.monotonic() - _CATCH_UP)
            kind = "read" if number % (WRITES + READS) % 7 in (2, 5) else "write"
            start = time.monotonic()
            used = time.thread_time()
            if kind == "read" and not reads:
                pass
            elif kind == "write":
                stored.append(remember(memory, name, number))
            elif number % 2:
                kind = "recall"
                memory.recall(f"Whom does Person {number % 7} know?")
            else:
                kind = "search"
                memory.search(f"Person {number % 7} visited")
            calls.append((start, kind, time.monotonic() - start, time.thread_time() - used))
            number += 1
    results.put((calls, stored))


def rehearse(target: str) -> None:
    """Move a small memory to the target and back beside a writer, and remove it from there."""
    with TemporaryDirectory() as folder, opened(f"sqlite:///{folder}/small.db") as memory:
        stop = threading.Event()

        def write() -> None:
            for number in count():
                remember(memory, "rehearsal", number)
                memory.recall(f"Whom does Person {number % 7} know?")
                memory.search(f"Person {number % 7} visited")
                if stop.wait(0.03):
                    return

        writer = threading.Thread(target=write)
        writer.start()
        with closing(migration(f"sqlite:///{folder}/small.db", target)) as moved:
            moved.advance("copy")
            moved.copy()
            time.sleep(20)
            moved.advance("cutover")
            time.sleep(10)
            moved.advance("rollback")
            time.sleep(10)
            moved.advance("cancel")
            stop.set()
            writer.join()
            for scope in moved.target.scopes():
                moved.target.clear(scope)
            moved.target.set_move(None, replacing=moved.target.read_move())


def fill(source: str, turns: int) -> None:
    """Store turns, so that the memory grows less between the phases."""
    with opened(source) as memory:
        for number in range(turns):
            remember(memory, "first", number)
        memory.flush()


def main() -> None:
    """Run the migration and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds before and after each command")
    parser.add_argument("--turns", type=int, default=1500, help="turns stored before")
    parser.add_argument("--warm", type=float, default=60.0, help="seconds of the same load before the first figures")
    parser.add_argument("--rehearse", action="store_true", help="move a small memory to the target before")
    parser.add_argument("--control", action="store_true", help="write to the target by other processes instead")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.rehearse:
        rehearse(given.target)
    fill(given.source, given.turns)
    context = multiprocessing.get_context("spawn")
    ready, stop, results = context.Barrier(PROCESSES + 1), context.Event(), context.Queue()
    workers = [
        context.Process(target=call, args=(given.source, f"p{i}", ready, stop, results), daemon=True)
        for i in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    phases: dict[str, tuple[float, float]] = {}

    @contextmanager
    def phase(name: str) -> Generator[None]:
        start = time.monotonic()
        yield
        phases[name] = (start, time.monotonic())
        print(f"{name}: {phases[name][1] - start:.1f} s", file=sys.stderr)

    ready.wait()
    with phase("warm up"):
        time.sleep(given.warm)
    with phase("before"):
        time.sleep(given.seconds)
    if given.control:
        others = context.Barrier(PROCESSES + 1), context.Event(), context.Queue()
        writers = [
            context.Process(target=call, args=(given.target, f"o{i}", *others), kwargs={"reads": False}, daemon=True)
            for i in range(PROCESSES)
        ]
        for writer in writers:
            writer.start()
        others[0].wait()
        with phase("others write"):
            time.sleep(given.seconds)
        others[1].set()
        stop.set()
        found = [results.get(timeout=120) for _ in workers]
        show(times_of([each for calls, _ in found for each in calls], phases), as_json=given.json)
        return
    with closing(migration(given.source, given.target)) as moved:
        with phase("copy"):
            moved.advance("copy")
            moved.copy()
        with phase("two stores"):
            time.sleep(given.seconds)
        with phase("cancel"):
            moved.advance("cancel")
        with phase("alone again"):
            time.sleep(given.seconds)
        with phase("copy again"):
            moved.advance("copy")
            moved.copy()
        for name in ("cutover", "rollback", "cutover again"):
            with phase(f"warm up for {name}"), ExitStack() as asked:
                warm_up(moved.ends()[1], moved.scopes(), asking(asked))
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
    show({**figures, **times_of(calls, phases)}, as_json=given.json)


def times_of(
    calls: list[tuple[float, str, float, float]], phases: dict[str, tuple[float, float]]
) -> dict[str, dict[str, object]]:
    """Return the times of each kind of call in each phase; the CPU time is that of the caller's thread."""
    figures: dict[str, dict[str, object]] = {}
    for name, (start, end) in phases.items():
        for kind in ("write", "recall", "search"):
            found = [(seconds, cpu) for at, what, seconds, cpu in calls if what == kind and start <= at < end]
            if len(found) > 1:
                cuts, cpu = (statistics.quantiles(times, n=20) for times in zip(*found, strict=True))
                values = {"p50": cuts[9], "p95": cuts[18], "max": max(found)[0], "CPU p50": cpu[9], "CPU p95": cpu[18]}
                shown = {f"{key} ms": f"{1000 * seconds:.1f}" for key, seconds in values.items()}
                figures[f"{name}, {kind}"] = {"n": len(found), **shown}
    return figures


def show(figures: dict[str, Any], *, as_json: bool) -> None:
    """Print the figures."""
    if as_json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
