"""Speed against plain sqlite3, and how it holds as the memory grows. See docs/development/benchmarks.md.

    python tests/bench/speed.py [--json] [--quick]

Runs that are compared alternate, and medians are compared: the machine may be busy with other things as well.
`--json` prints the figures as one JSON object on the last line; `--quick` leaves out the graph of a million edges.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import raw
import world
from world import World

from graphmem import GraphMemory, Scope
from graphmem.models import ExpandLimits
from graphmem.protocols import Extraction, ExtractionRequest
from graphmem.registry import open_backend

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("GRAPHMEM_DATA", ROOT.parent / "shared" / "data")) / "musique_passages_openie.jsonl"
RUNS = 5
QUESTIONS = 200
NARROW = ExpandLimits(max_degree=10)  # a hub and an ordinary node give answers of one size
HEAVY = {"numpy", "scipy", "pydantic", "spacy", "langchain", "langchain_core", "torch", "neo4j", "typer", "rich"}

Triples = list[dict[str, str]]


@dataclass
class Figures:
    """What was measured, and the targets it is held against."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    targets: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def aim(self, name: str, value: float, at_most: float) -> None:
        """Note a figure that has to stay below a target."""
        self.targets[name] = (round(value, 3), at_most)

    def as_json(self) -> dict[str, Any]:
        """Return everything as one object."""
        targets = {name: {"value": v, "target": t, "met": v <= t} for name, (v, t) in self.targets.items()}
        return {**self.values, "targets": targets}

    def print(self) -> None:
        """Print everything, a line each."""
        for name, value in self.values.items():
            print(f"{name:34} " + "  ".join(f"{k}={v}" for k, v in value.items()))
        for name, (value, target) in self.targets.items():
            print(f"{'ok ' if value <= target else 'MISS'} {name}: {value:g} (at most {target:g})")


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@contextmanager
def folder() -> Generator[Path]:
    """Yield a folder that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="graphmem-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def passages() -> tuple[list[Triples], str]:
    """Return triples by passage: those of MuSiQue where they are, else made-up ones."""
    if DATA.is_file():
        found: list[Triples] = []
        for number, line in enumerate(DATA.read_text("utf-8").splitlines()):
            parts = [t for t in json.loads(line)["triples"] if len(t) == 3 and all(isinstance(p, str) for p in t)]
            found.append(
                [{"subject": s, "relation": r, "object": o, "source": f"passage {number}"} for s, r, o in parts]
            )
        return [p for p in found if p], DATA.name
    made = list(world.triples(17_000))
    return [made[i : i + 10] for i in range(0, len(made), 10)], "synthetic"


# Writing


def measure_writes(figures: Figures, quick: bool) -> None:
    """Bulk and one-at-a-time writes against the same rows through plain sqlite3."""
    groups, source = passages()
    with folder() as place:
        with GraphMemory.open(f"sqlite:///{place / 'donor.db'}", extractor="none", embeddings="none") as memory:
            for group in groups:
                memory.add_facts(group, skip_invalid=True)
        units = raw.units_of(place / "donor.db")
        edges = sum(len(unit["edges"]) for unit in units)
        received = sum(map(len, groups))
        bulk, single, remember = (_alternated(place, *pair) for pair in _write_pairs(groups, units))
    for name, (ours, plain), rows in (
        ("bulk", bulk, received),
        ("one_at_a_time", single, received),
        ("remember", remember, len(groups)),
    ):
        figures.values[f"write_{name}"] = {
            "rows": rows,
            "graphmem_rows_per_s": round(rows / ours),
            "sqlite_rows_per_s": round(rows / plain),
            "ratio": round(ours / plain, 2),
        }
    figures.values["triples"] = {"source": source, "given": received, "passages": len(groups), "edges": edges}
    figures.aim("bulk add_facts, times raw sqlite3", bulk[0] / bulk[1], 4.0)
    figures.aim("one passage a transaction, times raw sqlite3", single[0] / single[1], 3.0)
    figures.aim("remember, times raw sqlite3", remember[0] / remember[1], 3.0)


Side = Callable[[Path], float]


def _write_pairs(groups: list[Triples], units: list[raw.Unit]) -> Iterator[tuple[Side, Side]]:
    texts = [" ".join(f"{t['subject']} {t['relation']} {t['object']}." for t in group) for group in groups]
    turns = [{**{table: [] for table in raw.TABLES}, "episodes": unit["episodes"]} for unit in units]
    turns[0]["scopes"] = units[0]["scopes"]

    def ours(work: Callable[[GraphMemory], object]) -> Side:
        def run(path: Path) -> float:
            # what goes on behind the caller's back isn't what is measured
            with GraphMemory.open(f"sqlite:///{path}", extractor="none", embeddings="none", background=False) as memory:
                return seconds(lambda: work(memory))

        return run

    def plain(batches: Sequence[raw.Unit]) -> Side:
        def run(path: Path) -> float:
            with closing(raw.connect(path)) as connection:
                return seconds(lambda: raw.insert(connection, batches))

        return run

    flat = [triple for group in groups for triple in group]
    yield ours(lambda m: m.add_facts(flat, skip_invalid=True)), plain(raw.batches_of(units, 1000))
    yield ours(lambda m: [m.add_facts(group, skip_invalid=True) for group in groups]), plain(units)
    yield ours(lambda m: [m.remember(text) for text in texts]), plain(turns)


def _alternated(place: Path, ours: Side, plain: Side) -> tuple[float, float]:
    """Return the medians of both, run in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(RUNS):
        for side, run in zip(times, (ours, plain), strict=True):
            side.append(run(place / "run.db"))
            for left in place.glob("run.db*"):
                left.unlink()
    return statistics.median(times[0]), statistics.median(times[1])


class SlowModel:
    """Extractor with the timing of a language model: a second per call, several calls at once."""

    name = "slow"
    batch_size = 1
    concurrency = 4

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Find nothing."""
        time.sleep(1.0)
        return [Extraction() for _ in requests]


def measure_conversations(figures: Figures, quick: bool) -> None:
    """Fifty concurrent conversations, each in its own scope, that store their turns one after another."""
    for name, extractor in {"none": "none", "spacy": "spacy", "model of 1 s": SlowModel()}.items():
        runs = [asyncio.run(_converse(extractor)) for _ in range(RUNS)]
        cuts = [statistics.quantiles(run, n=20) for run in runs]
        p50, p95 = (1e3 * statistics.median(cut[at] for cut in cuts) for at in (9, 18))
        figures.values[f"aremember, extractor {name}"] = {"p50_ms": round(p50, 1), "p95_ms": round(p95, 1)}
        figures.aim(f"aremember p95 in 50 conversations, extractor {name}, ms", p95, 50)


async def _converse(extractor: Any) -> list[float]:
    """Return the seconds of each turn."""
    times: list[float] = []

    async def talk(memory: GraphMemory, number: int) -> None:
        for turn in range(20):
            begun = time.perf_counter()
            await memory.aremember(f"I met Ravi Menon in Lisbon on day {turn}.", speaker=f"User {number}")
            times.append(time.perf_counter() - begun)

    with folder() as place:
        url = f"sqlite:///{place}/run.db"
        async with GraphMemory.open(url, extractor=extractor, embeddings="none") as memory:
            await asyncio.gather(*(talk(memory.in_scope(Scope("users", str(n))), n) for n in range(50)))
    return times


# Reading


def measure_reads(figures: Figures, quick: bool) -> None:
    """Recall and two-hop expand as the graph grows; the hub against ordinary nodes."""
    sizes = [10_000, 200_000] if quick else [10_000, 100_000, 1_000_000]
    with folder() as place:
        worlds = [world.build(place / f"{size}.db", size) for size in sizes]
        read = [Reading(w) for w in worlds]
        for _ in range(RUNS):
            for reading in read:
                reading.run()
        for reading in read:
            size = (place / f"{reading.world.edges}.db").stat().st_size
            found = {**reading.figures(), "bytes_per_edge": round(size / reading.world.edges)}
            figures.values[f"read_{reading.world.edges}"] = found
            reading.close()
        first, last = read[0], read[-1]
        for kind in ("recall", "expand"):
            growth = first.p50(kind), last.p50(kind)
            figures.aim(f"{kind} p50 at {sizes[-1]:,} edges, times that at {sizes[0]:,}", growth[1] / growth[0], 3.0)
        for kind in ("recall", "narrow_expand"):
            ratio = last.p50(f"hub_{kind}") / last.p50(kind)
            figures.aim(f"{kind} of a hub, times an ordinary node (same answer size)", ratio, 3.0)


class Reading:
    """Questions to one store, in rounds, and how long each took."""

    def __init__(self, built: World) -> None:
        self.world = built
        self._memory = GraphMemory.open(
            built.url, scope=built.scope, extractor="none", embeddings="none", background=False
        )
        self._backend = open_backend(built.url)
        self._rounds = 0
        self._times: dict[str, list[float]] = {}
        self._sizes: dict[str, list[int]] = {}  # edges that each kind of expand returned
        self._edges = 0
        self._facts: list[int] = []
        for entity_id, name in built.ordinary[-50:]:  # warm up
            self._recall(name)
            self._expand(entity_id)

    def _recall(self, name: str) -> None:
        self._facts.append(len(self._memory.recall(f"Where did {name} study, and who was met?").facts))

    def _expand(self, entity_id: str, limits: ExpandLimits | None = None) -> None:
        found = self._backend.expand([self._memory.scope], [entity_id], hops=2, limits=limits)
        self._edges = len(found.edge_ids)

    def run(self) -> None:
        """Ask a round of questions."""
        size = QUESTIONS // RUNS
        asked = islice(self.world.ordinary, self._rounds * size, (self._rounds + 1) * size)
        self._rounds += 1
        for entity_id, name in asked:
            self._note("recall", lambda name=name: self._recall(name))
            self._note("expand", lambda entity_id=entity_id: self._expand(entity_id))
            self._note("narrow_expand", lambda entity_id=entity_id: self._expand(entity_id, NARROW))
        if self.world.hub is not None:
            hub_id, hub_name = self.world.hub
            for _ in range(10):
                self._note("hub_recall", lambda: self._recall(hub_name))
                self._note("hub_expand", lambda: self._expand(hub_id))
                self._note("hub_narrow_expand", lambda: self._expand(hub_id, NARROW))

    def _note(self, kind: str, work: Callable[[], object]) -> None:
        self._times.setdefault(kind, []).append(seconds(work))
        if kind.endswith("expand"):
            self._sizes.setdefault(kind, []).append(self._edges)

    def p50(self, kind: str) -> float:
        """Return the median in seconds."""
        return statistics.median(self._times[kind])

    def figures(self) -> dict[str, float]:
        """Return the figures in milliseconds."""
        found: dict[str, float] = {"facts_p50": statistics.median(self._facts)}
        for kind, times in self._times.items():
            found[f"{kind}_p50_ms"] = round(1e3 * statistics.median(times), 2)
            found[f"{kind}_p95_ms"] = round(1e3 * statistics.quantiles(times, n=20)[-1], 2)
        for kind, edges in self._sizes.items():
            found[f"{kind}_edges"] = statistics.median(edges)
        return found

    def close(self) -> None:
        """Close the store."""
        self._memory.close()
        self._backend.close()


# Starting, memory, size


def measure_imports(figures: Figures, quick: bool) -> None:
    """`import graphmem` in fresh interpreters, and what it brings along."""
    lines = {
        "import graphmem": "import graphmem",
        "from graphmem import GraphMemory": "from graphmem import GraphMemory",
        "nothing": "pass",
    }
    times: dict[str, list[float]] = {line: [] for line in lines}
    brought: dict[str, list[str]] = {}
    for _ in range(2 * RUNS):
        for name, line in lines.items():
            took, modules = _fresh(
                f"import time, sys; t = time.perf_counter(); {line}; t = time.perf_counter() - t; "
                f"print(t, *sorted({{m.split('.')[0] for m in sys.modules}} & {HEAVY!r}))"
            )
            times[name].append(took)
            brought[name] = modules
    for name in ("import graphmem", "from graphmem import GraphMemory"):
        ms = 1e3 * statistics.median(times[name])
        figures.values[name.replace(" ", "_")] = {"ms": round(ms, 1), "heavy_modules": brought[name]}
    figures.aim("import graphmem, ms", 1e3 * statistics.median(times["import graphmem"]), 150.0)
    figures.aim("heavy modules that import graphmem loads", len(brought["import graphmem"]), 0)


def _fresh(program: str) -> tuple[float, list[str]]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    took, *rest = done.stdout.split()
    return float(took), rest


def measure_memory(figures: Figures, quick: bool) -> None:
    """Peak memory of bulk loads of N and of 4 N facts, each in a process of its own."""
    size = 10_000 if quick else 40_000
    peaks: dict[int, float] = {}
    for count in (size, 4 * size):
        program = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
            f"import speed; speed.load_and_tell({count})"
        )
        took, [peak, stored] = _fresh(program)
        peaks[count] = float(peak)
        figures.values[f"load_{count}"] = {
            "seconds": round(took, 2),
            "rows_per_s": round(count / took),
            "peak_rss_mb": round(float(peak)),
            "bytes_per_edge": round(float(stored)),
        }
    figures.aim("peak memory of a load of 4 N, times that of N", peaks[4 * size] / peaks[size], 1.25)


def load_and_tell(count: int) -> None:
    """Load facts in bulk; print seconds, peak memory in MB and bytes on disk for each edge."""
    with folder() as place:
        with GraphMemory.open(f"sqlite:///{place / 'load.db'}", extractor="none", embeddings="none") as memory:
            took = seconds(lambda: memory.add_facts(world.triples(count)))
            peak = peak_memory()
            edges = memory.stats().edges
        size = (place / "load.db").stat().st_size
    print(took, peak / 1e6, size / edges)


def peak_memory() -> int:
    """Return the most bytes that this process ever held in memory."""
    status = Path("/proc/self/status")
    if status.is_file():  # ru_maxrss would begin at what the process held that started this one
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


MEASURES = {
    "writes": measure_writes,
    "conversations": measure_conversations,
    "reads": measure_reads,
    "imports": measure_imports,
    "memory": measure_memory,
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")
    parser.add_argument("--quick", action="store_true", help="no graph of a million edges")
    parser.add_argument("--only", choices=MEASURES, help="one group of measures")
    options = parser.parse_args()
    figures = Figures()
    figures.values["machine"] = {
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    for name, measure in MEASURES.items():
        if options.only in (None, name):
            took = seconds(lambda measure=measure: measure(figures, options.quick))
            print(f"{name}: measured in {took:.0f} s", file=sys.stderr, flush=True)
    figures.print()
    if options.json:
        print(json.dumps(figures.as_json()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
