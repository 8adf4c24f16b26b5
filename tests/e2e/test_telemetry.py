"""Spans and metrics of a memory with the real SDK of OpenTelemetry and exporters in memory."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
import timeit
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from chatting import ScriptedChat
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from shell import GRAPHMEM
from toy import FAILS, ToyExtractor

from graphmem import GraphMemory, telemetry
from graphmem.errors import InvalidInput
from graphmem.llm.chat import Chat, NoReply
from graphmem.telemetry import ATTRIBUTES, METRICS, SPANS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "Zanzibar"


class Letters:
    """An embedding model of counted letters."""

    def embed_documents(self, texts: list[str], /) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str, /) -> list[float]:
        return [1.0 + text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]


class Longest:
    """A cross-encoder that prefers long texts."""

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [float(len(text)) for _, text in text_pairs]


class Recorded:
    """What the SDK has recorded."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    @property
    def names(self) -> Counter[str]:
        return Counter(span.name for span in self.spans)

    def named(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found

    def path(self, span: ReadableSpan) -> list[str]:
        """Return the names of a span and of those that it is in."""
        by_id = {each.context.span_id: each for each in self.spans if each.context}
        found = [span.name]
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            found.append(span.name)
        return found

    @property
    def points(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Metric → values of the labels → value, or the number of values of a histogram."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: {
                tuple(str(value) for value in (point.attributes or {}).values()): getattr(
                    point, "value", getattr(point, "count", 0)
                )
                for point in metric.data.data_points
            }
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """Set providers as a program does, for one test."""
    found = Recorded()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", found.tracers)
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", found.meters)
    yield found
    found.meters.shutdown()


def opened(url: str = "memory://", **options: Any) -> GraphMemory:
    given: dict[str, Any] = {"extractor": ToyExtractor(), "embeddings": "none", "background": False, "index_wait": 60.0}
    return GraphMemory.open(url, **{**given, **options})


def test_a_turn_and_a_question_are_spans_by_stage(store_url: str, recorded: Recorded) -> None:
    with opened(store_url) as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        memory.flush()
        memory.recall("Whom does Alice Stone know?")
    found = {span.name: recorded.path(span) for span in recorded.spans}
    process, write, recall = ["graphmem.process"], ["graphmem.write", "graphmem.process"], ["graphmem.recall"]
    assert found["graphmem.remember"] == ["graphmem.remember"]
    assert found["graphmem.store.add_episodes"][1:] == ["graphmem.remember"]
    assert found["graphmem.extract"][1:] == process
    assert found["graphmem.write"] == write
    assert found["graphmem.resolve"][1:] == ["graphmem.store.atomic", *write]
    assert found["graphmem.store.write"][1:] == ["graphmem.store.atomic", *write]
    for stage in ("seeds", "facts", "walk", "select", "evidence"):
        assert found[f"graphmem.recall.{stage}"][1:] == recall
    for stage in ("index", "copy", "rank"):
        assert found[f"graphmem.search.{stage}"][1:] == ["graphmem.recall.evidence", *recall]
    assert found["graphmem.store.expand"][1:] == ["graphmem.recall.walk", *recall]
    expand = recorded.named("graphmem.store.expand")
    system = re.sub(r"^bolt|[+:].*", lambda found: "neo4j" if found[0] == "bolt" else "", store_url)
    assert dict(expand.attributes or {}) == {"db.system.name": system, "db.operation.name": "expand"}
    assert expand.kind is trace.SpanKind.CLIENT
    assert dict(recorded.named("graphmem.write").attributes or {}) == {"graphmem.entities": 2, "graphmem.facts": 1}
    assert (recorded.named("graphmem.recall").attributes or {})["graphmem.facts"] == 1


def a_life(memory: GraphMemory) -> None:
    """Do what the spans and the metrics are about."""
    memory.remember(f"Alice Stone | knows | {SECRET} Fox", speaker=f"{SECRET} Moe", session_id=f"{SECRET} talk")
    asyncio.run(memory.aremember(f"Alice Stone | lives in | {SECRET}"))
    memory.remember(f"{SECRET} {FAILS}")
    memory.flush()
    memory.ingest([{"text": f"{SECRET} Poe | likes | Tea Time", "expires_at": NOW + timedelta(days=1)}])
    memory.add_facts([(f"{SECRET} Roe", "knows", "Alice Stone")], occurred_at=NOW)
    assert memory.recall(f"Whom does Alice Stone know in {SECRET}?")
    assert memory.search(f"Who likes {SECRET}?", diversity=0.1)
    assert memory.context(f"Alice Stone and {SECRET}")
    assert memory.recall("Who is Alice Stone?", max_hops=1)
    memory.admin.merge(f"{SECRET} Roe", into="Alice Stone")
    memory.admin.expire()
    memory.admin.infer()
    with pytest.raises(InvalidInput):
        memory.recall("Who is it?", scopes=[f"{SECRET}", "other"], trace=True)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it didn't happen in time"
        time.sleep(0.02)


def of_everything(recorded: Recorded, **options: Any) -> dict[str, dict[tuple[str, ...], float]]:
    """Live a life with all parts; return the metrics before the memory is closed."""
    usage = {"input_tokens": 1_000, "output_tokens": 100, "total_tokens": 1_100}
    replies: list[BaseMessage] = [AIMessage(json.dumps({"pairs": []}), usage_metadata=usage)]
    model = FakeMessagesListChatModel(responses=replies)
    clock = [NOW]
    with opened(
        scope=f"{SECRET}/notes",
        embeddings=Letters(),
        cross_encoder=Longest(),
        llm=model,
        contradiction_check=True,
        llm_prices={"fake:FakeMessagesListChatModel": (2.0, 10.0)},
        background=True,
        community_refresh_interval=1,
        max_attempts=1,
        clock=lambda: clock[0],
        **options,
    ) as memory:
        a_life(memory)
        clock[0] += timedelta(days=2)
        memory.admin.expire()
        wait_until(lambda: recorded.names["graphmem.upkeep"] > 0)
        wait_until(lambda: recorded.names["graphmem.index"] > 0)
        points = recorded.points
    assert points["graph_entities_count"][()] > 0
    return points


def test_every_span_metric_and_attribute_of_the_tables_occurs_and_no_other(recorded: Recorded) -> None:
    points = of_everything(recorded, telemetry_text=True)
    names = {
        "graphmem.store" if name.startswith("graphmem.store.") else "chat" if name.startswith("chat ") else name
        for name in recorded.names
    }
    assert names == SPANS.keys()
    assert all(span.parent for span in recorded.spans if span.name.startswith("graphmem.store."))
    attributes = {name for span in recorded.spans for name in span.attributes or {}}
    assert attributes == ATTRIBUTES.keys() - {"gen_ai.response.model"}  # the real client has it
    assert points.keys() == METRICS.keys() - {"graph_degraded_total"}
    for name, metric in METRICS.items():
        assert {len(labels) for labels in points.get(name, {})} <= {len(metric.labels)}


def test_the_metrics_of_the_specification_have_its_names_and_labels() -> None:
    specified = {
        ("graph_entities_stored_total", "counter", ("entity_type",)),
        ("graph_relationships_stored_total", "counter", ("relationship_type",)),
        ("graph_extractions_total", "counter", ("status",)),
        ("graph_merges_total", "counter", ()),
        ("graph_extraction_duration_ms", "histogram", ()),
        ("graph_traversal_duration_ms", "histogram", ("depth",)),
        ("graph_search_duration_ms", "histogram", ()),
        ("graph_entities_count", "gauge", ()),
        ("graph_relationships_count", "gauge", ()),
    }
    assert specified <= {(metric.name, metric.kind, metric.labels) for metric in METRICS.values()}


def test_no_text_of_users_is_in_any_span_or_metric(recorded: Recorded) -> None:
    points = of_everything(recorded)
    assert [span.to_json() for span in recorded.spans if SECRET in span.to_json()] == []
    assert SECRET not in repr(points)


def test_the_setting_shows_texts_questions_and_scopes(recorded: Recorded) -> None:
    with opened(scope="home", telemetry_text=True) as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        asyncio.run(memory.aremember("Alice Stone | likes | Bob Fox"))
        memory.search("Alice?")
        memory.recall("Bob?")
    shown = [dict(span.attributes or {}) for span in recorded.spans]
    texts = [str(each["graphmem.text"]) for each in shown if "graphmem.text" in each]
    assert texts == ["Alice Stone | knows | Bob Fox", "Alice Stone | likes | Bob Fox"]
    asked = [(each["graphmem.query"], each["graphmem.scope"]) for each in shown if "graphmem.query" in each]
    assert asked == [("Alice?", "home"), ("Bob?", "home")]


def test_an_error_ends_its_span_without_its_message(recorded: Recorded) -> None:
    with opened() as memory, pytest.raises(InvalidInput):
        memory.recall("Who?", scopes=[SECRET, "other"], trace=True)
    span = recorded.named("graphmem.recall")
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "InvalidInput"
    assert not span.events
    assert SECRET not in span.to_json()


def test_episodes_are_counted_by_result(recorded: Recorded) -> None:
    with opened(max_attempts=2, retry_delay=0.01) as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        memory.remember(f"it {FAILS}")
        memory.flush()
    points = recorded.points
    assert points["graph_extractions_total"] == {("success",): 1, ("retry",): 1, ("failed",): 1}
    assert points["graph_entities_stored_total"] == {("concept",): 2}
    assert points["graph_relationships_stored_total"] == {("semantic",): 1}


def test_the_reader_that_is_away_is_counted_as_such(recorded: Recorded) -> None:
    class Away(ToyExtractor):
        def extract(self, requests: Sequence[Any]) -> list[Any]:
            return [ConnectionError("refused")] * len(requests)

    with opened(extractor=Away()) as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        memory.admin.backfill()
    assert recorded.points["graph_extractions_total"] == {("unavailable",): 1}


def test_an_answer_without_a_part_is_counted(recorded: Recorded) -> None:
    class Broken(Letters):
        def embed_query(self, text: str, /) -> list[float]:
            raise RuntimeError("away")

    with opened(embeddings=Broken()) as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        assert memory.search("Alice").degraded
        assert memory.recall("Alice").degraded
    assert recorded.points["graph_degraded_total"] == {("search",): 1, ("recall",): 1}
    assert (recorded.named("graphmem.search").attributes or {})["graphmem.degraded"] is True


def test_tokens_and_cost_of_a_model_are_counted(recorded: Recorded) -> None:
    usage = {"input_tokens": 3_000, "output_tokens": 200, "total_tokens": 3_200}
    reply = json.dumps({"entities": [], "edges": [{"source": "Ann Lee", "relation": "knows", "target": "Bo Kim"}]})
    model = FakeMessagesListChatModel(responses=[AIMessage(reply, usage_metadata=usage)])
    name = "FakeMessagesListChatModel"
    with opened(extractor="llm", llm=model, llm_prices={name: (2.0, 10.0)}) as memory:
        memory.remember("Ann Lee knows Bo Kim, as you know.")
        memory.flush()
        assert memory.facts("Ann Lee")
    points = recorded.points
    assert points["graph_model_tokens_total"] == {(name, "input"): 3_000, (name, "output"): 200}
    assert points["graph_model_cost_total"] == {(name,): pytest.approx(0.008)}
    assert points["graph_model_calls_total"] == {(name, "success"): 1}
    call = recorded.named(f"chat {name}")
    assert recorded.path(call)[1:] == ["graphmem.extract", "graphmem.process"]
    assert dict(call.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": name,
        "gen_ai.provider.name": "unknown",
        "gen_ai.usage.input_tokens": 3_000,
        "gen_ai.usage.output_tokens": 200,
    }


def test_the_span_of_a_call_that_times_out_ends_when_its_caller_gets_the_error(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    released, answered = threading.Event(), threading.Event()

    def answer(_: str) -> str:
        released.wait(60)
        answered.set()
        return "yes"

    try:
        [reply] = Chat(ScriptedChat(answer=answer), timeout=0.05).ask(["Is it so?"])
        assert isinstance(reply, NoReply)
        call = recorded.named("chat ScriptedChat")
        assert not answered.is_set()
        assert (call.attributes or {})["error.type"] == "TimeoutError"
        assert (call.status.status_code, call.end_time is not None) == (StatusCode.ERROR, True)
    finally:
        released.set()
    assert answered.wait(60)
    for thread in threading.enumerate():
        if thread.name == "graphmem-llm":
            thread.join(60)
    assert recorded.names["chat ScriptedChat"] == 1
    assert caplog.messages == []


def test_the_queue_is_measured_by_who_works_on_it(recorded: Recorded) -> None:
    class Hangs(ToyExtractor):
        released = threading.Event()

        def extract(self, requests: Sequence[Any]) -> list[Any]:
            self.released.wait(60)
            return super().extract(requests)

    with opened(background=False) as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        assert "graph_queue_depth" not in recorded.points
    extractor = Hangs()
    with opened(background=True, extractor=extractor) as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        memory.remember("Alice Stone | knows | Rob Fox", occurred_at=NOW)
        points = recorded.points
        assert points["graph_queue_depth"] == {(): 2}
        assert 0 <= points["graph_queue_age_seconds"][()] < 60
        assert points["graph_queue_failed"] == {(): 0}
        extractor.released.set()
    assert "graph_queue_depth" not in recorded.points


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_a_store_counts_once_however_many_memories_it_has(recorded: Recorded, place: str, tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}" if place == "memory" else f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, extractor="none", embeddings="none") as memory:
        memory.add_facts([("Alice Stone", "knows", "Bob Fox")])
        with GraphMemory.open(url, extractor="none", embeddings="none", scope="other") as other:
            other.add_facts([("Rob Fox", "knows", "Ann Lee")])
            assert recorded.points["graph_relationships_count"] == {(): 2}


class HangingSpans(SpanExporter):
    """An exporter that doesn't come back until it is released."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.entered.set()
        self.released.wait(120)
        return SpanExportResult.FAILURE


class HangingMetrics(MetricExporter):
    """The same for metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.released = threading.Event(), threading.Event()

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        self.entered.set()
        self.released.wait(120)
        return MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return False

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None: ...


def test_nothing_waits_for_an_exporter_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    spans, values = HangingSpans(), HangingMetrics()
    tracers = TracerProvider()
    batch = BatchSpanProcessor(spans, max_queue_size=16, schedule_delay_millis=10, max_export_batch_size=8)
    tracers.add_span_processor(batch)
    meters = MeterProvider([PeriodicExportingMetricReader(values, export_interval_millis=10)])
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracers)
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", meters)
    done = threading.Event()

    def live() -> None:
        with opened(background=True) as memory:
            memory.remember("Alice Stone | knows | Bob Fox")
            assert memory.flush(60) == 0
            spans.entered.wait(60)
            values.entered.wait(60)
            for n in range(20):  # far more spans than the queue of the SDK holds
                memory.remember(f"Alice Stone | knows | Person {n}")
                assert memory.recall("Whom does Alice Stone know?")
            assert memory.flush(60) == 0
        done.set()

    thread = threading.Thread(target=live, daemon=True)
    try:
        thread.start()
        assert done.wait(60)
        assert spans.entered.is_set()
        assert values.entered.is_set()
        assert not spans.released.is_set()
    finally:
        spans.released.set()
        values.released.set()
        thread.join(60)
        tracers.shutdown()
        meters.shutdown()


@pytest.mark.parametrize("starts", [True, False])
def test_a_provider_that_raises_costs_nothing_but_its_spans(monkeypatch: pytest.MonkeyPatch, starts: bool) -> None:
    class Broken(trace.NonRecordingSpan):
        def get_tracer(self, *_: Any) -> Broken:
            return self

        def start_span(self, *_: Any, **__: Any) -> Broken:
            return self if starts else self._fail()

        def _fail(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("broken")

        set_attributes = set_attribute = set_status = end = _fail

    broken = Broken(trace.INVALID_SPAN_CONTEXT)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", broken)
    with opened() as memory:
        memory.remember("Alice Stone | knows | Bob Fox")
        memory.flush()
        assert memory.recall("Whom does Alice Stone know?")
        with pytest.raises(InvalidInput):
            memory.recall("Alice", limit=-1)


def test_a_running_worker_answers_prometheus(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False) as memory:
        memory.remember("Alice Stone knows Bob Fox.")
        memory.remember("Rob Fox knows Bob Fox.")
    line = {"text": "Alice Stone knows Bob Fox.", "edges": [["Alice Stone", "knows", "Bob Fox"]]}
    (tmp_path / "recorded.jsonl").write_text(json.dumps(line), "utf-8")
    command = [GRAPHMEM, "worker", "--store", url, "--extractor", f"recorded:{tmp_path}/recorded.jsonl"]
    variables = {**os.environ, "GRAPHMEM_EMBEDDINGS": "none", "GRAPHMEM_MAX_ATTEMPTS": "1"}
    found: dict[str, float] = {}

    def has_extracted() -> bool:
        asked = [GRAPHMEM, "metrics", "--json", "--health-port", port]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        found.update(json.loads(done.stdout))
        return found.get('graph_extractions_total{status="success"}') == 1

    with subprocess.Popen([*command, "--health-port", "0"], stderr=subprocess.PIPE, text=True, env=variables) as worker:
        try:
            assert worker.stderr is not None
            port = next(line for line in worker.stderr if "health:" in line).rpartition(":")[2].partition("/")[0]
            wait_until(has_extracted)
        finally:
            worker.terminate()
    assert found['graph_relationships_stored_total{relationship_type="semantic"}'] == 1
    assert found["graph_extraction_duration_ms_count"] >= 1
    assert {name for name, metric in METRICS.items() if metric.kind == "gauge"} <= found.keys()


def test_without_a_provider_the_seams_take_less_than_a_hundredth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> None: ...

    with opened(url=f"sqlite:///{tmp_path}/memory.db") as memory:

        def live() -> float:
            begun = time.perf_counter()
            memory.remember("Alice Stone | knows | Bob Fox")
            memory.flush()
            memory.recall("Whom does Alice Stone know?")
            return time.perf_counter() - begun

        live()
        whole = median(live() for _ in range(20))
        seam = telemetry.in_span("graphmem.recall")(nothing)
        each = min(timeit.repeat(seam, number=1_000, repeat=20)) / 1_000
        looks, look = [0], vars(telemetry)["_provider"]

        def counted(*names: str) -> object:
            looks[0] += 1
            return look(*names)

        monkeypatch.setattr(telemetry, "_provider", counted)
        live()
    assert looks[0] > 15
    assert looks[0] * each < whole / 100


PROGRAM = """
import sys
from graphmem import GraphMemory
with GraphMemory.open("memory://", extractor="none", embeddings="none") as memory:
    memory.remember("Alice knows Bob.")
    memory.recall("Alice?")
    memory.context("Alice?")
print([name for name in sys.modules if name.startswith(("opentelemetry", "prometheus_client"))])
"""


def test_without_a_provider_opentelemetry_is_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
