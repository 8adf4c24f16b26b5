"""Cost of telemetry without an exporter: turns are stored, extracted and recalled with its seams and without them.

    python tests/bench/telemetry.py [TURNS]

The seams are patched out and in again from call to call, so that both see the same machine, store and questions. Prints
the medians in milliseconds of CPU time of the thread, and their ratio; the same for recalls whose spans are dropped.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from graphmem import GraphMemory, telemetry
from graphmem.protocols import ExtractedEdge, Extraction, ExtractionRequest

Seam = tuple[Any, str, object, object]
"""Owner, name, the seam, and what stands in its place without telemetry."""

PEOPLE = 60
PROVIDER = "_TRACER_PROVIDER"


class Knows:
    """Reads "A knows B"."""

    name, batch_size = "knows", 8

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        ends = [request.episode.text.split(" knows ") for request in requests]
        return [Extraction(edges=(ExtractedEdge(source, "knows", target),)) for source, target in ends]


class Drops(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def seams() -> list[Seam]:
    """Return the functions of telemetry wherever they are used, and the functions in spans."""
    nothing = telemetry.span("graphmem.recall")

    def no_span(*_: object, **__: object) -> object:
        return nothing

    stand_ins: dict[int, object] = {id(each): no_span for each in (telemetry.span, telemetry.timed, telemetry.count)}
    found: list[Seam] = []
    for module in [module for name, module in sys.modules.items() if name.startswith("graphmem")]:
        for owner in (module, *(each for each in vars(module).values() if isinstance(each, type))):
            values: dict[str, Any] = dict(vars(owner))
            for name, value in values.items():
                if id(value) in stand_ins:
                    found.append((owner, name, value, stand_ins[id(value)]))
                elif getattr(getattr(value, "__code__", None), "co_qualname", "").startswith("in_span."):
                    found.append((owner, name, value, getattr(value, "__wrapped__", None)))
    return found


def patch(found: Sequence[Seam], *, out: bool) -> None:
    for owner, name, seam, without in found:
        setattr(owner, name, without if out else seam)


@contextmanager
def opened() -> Generator[GraphMemory]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder)}/memory.db"
        with GraphMemory.open(url, extractor=Knows(), embeddings="none", background=False) as memory:
            yield memory


def seconds(call: Callable[[], object]) -> float:
    begun = time.thread_time()
    call()
    return time.thread_time() - begun


def turn(memory: GraphMemory, number: int) -> Callable[[], object]:
    def live() -> None:
        memory.remember(f"Person Number{number % PEOPLE} knows Person Number{number * 7 % PEOPLE}{number}")
        memory.flush()

    return live


def question(memory: GraphMemory, number: int) -> Callable[[], object]:
    return lambda: memory.recall(f"Whom does Person Number{number % PEOPLE} know?")


def compare(turns: int) -> None:
    found = seams()
    print(f"{len(found)} seams, {turns} turns and as many questions")
    times: dict[tuple[str, bool], list[float]] = {}
    with opened() as memory:
        for number in range(turns):
            for what, of in (("remember and extract", turn), ("recall", question)):
                for out in random.sample([True, False], 2):
                    patch(found, out=out)
                    times.setdefault((what, out), []).append(seconds(of(memory, 2 * number + out)))
                patch(found, out=False)
                question(memory, number)()  # the first question after a turn indexes it
    for what in ("remember and extract", "recall"):
        show(what, median(times[what, False]), median(times[what, True]))


def show(what: str, mine: float, other: float) -> None:
    print(f"{what}: {mine * 1e3:.3f} ms, {other * 1e3:.3f} ms without, {mine / other:.4f}")


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    compare(turns)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Drops()))
    with opened() as plain:
        trace.set_tracer_provider(provider)
        with opened() as traced:
            times: dict[bool, list[float]] = {True: [], False: []}
            for memory in (plain, traced):
                for number in range(turns // 4):
                    turn(memory, number)()
                question(memory, 0)()
            for number in range(turns):
                for on in random.sample([True, False], 2):
                    setattr(trace, PROVIDER, provider if on else None)
                    times[on].append(seconds(question(traced if on else plain, number)))
            setattr(trace, PROVIDER, provider)
    show("recall with spans", median(times[True]), median(times[False]))


if __name__ == "__main__":
    main()
