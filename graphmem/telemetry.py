"""Spans and metrics: their names, and their recording where a program has set up OpenTelemetry or Prometheus.

Nothing is recorded, and OpenTelemetry isn't imported, until the program sets a tracer or meter provider, or adds a
`Recorder`. No span has text of users unless the setting `telemetry_text` is on: neither questions, texts, names and
scopes nor the messages of errors.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, cast
from weakref import WeakMethod

from graphmem.protocols import GraphBackend

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import Tracer

_log = logging.getLogger(__name__)

_NAME = "graphmem"

SPANS: Mapping[str, str] = {
    "graphmem.remember": "store one turn or document",
    "graphmem.ingest": "store, extract and index many turns or documents",
    "graphmem.add_facts": "store ready-made facts",
    "graphmem.process": "extract and write claimed episodes: a batch, or successive turns or passages",
    "graphmem.extract": "a call of the extractor",
    "graphmem.write": "one transaction with what was extracted, and what prepares it",
    "graphmem.resolve": "find or create the entity of each name, in the transaction",
    "graphmem.resolve.vectors": "compare new names with known entities by vectors, before the transaction",
    "graphmem.context": "facts and quotes for a prompt",
    "graphmem.recall": "facts for a question",
    "graphmem.recall.evidence": "stage of a recall: search episodes for the question",
    "graphmem.recall.seeds": "stage of a recall: find the entities that the question names",
    "graphmem.recall.facts": "stage of a recall: read the facts that the episodes state",
    "graphmem.recall.walk": "stage of a recall: read the graph around the seeds, walk it and score the facts",
    "graphmem.recall.select": "stage of a recall: read the best facts",
    "graphmem.search": "episodes for a question",
    "graphmem.search.index": "stage of a search: index stored rows that wait for it",
    "graphmem.search.copy": "stage of a search: bring the copy of the index up to date",
    "graphmem.search.question": "stage of a search: encode the question",
    "graphmem.search.rank": "stage of a search: score the episodes",
    "graphmem.search.rerank": "stage of a search: read the best episodes with a cross-encoder",
    "graphmem.index": "a step of indexing in the background",
    "graphmem.upkeep": "a run of a job of upkeep in a scope",
    "graphmem.expire": "erase expired episodes of a scope",
    "graphmem.infer": "infer facts from others in a scope",
    "graphmem.store": "a call of the store within another span; its name ends with the method: graphmem.store.expand",
    "chat": "a call of a language model; its name ends with that of the model",
}
"""Span → what it covers."""

ATTRIBUTES: Mapping[str, str] = {
    "graphmem.episodes": "number of episodes",
    "graphmem.created": "whether the episode is new",
    "graphmem.facts": "number of facts that were found or written",
    "graphmem.entities": "number of entities written",
    "graphmem.found": "number of episodes found",
    "graphmem.degraded": "whether a part of the answer is missing because a model or an index was away",
    "graphmem.strategy": "how a recall walked the graph",
    "graphmem.extractor": "name of the extractor",
    "graphmem.failed": "number of episodes that weren't extracted",
    "graphmem.job": "job of upkeep",
    "graphmem.query": "the question; only with `telemetry_text`",
    "graphmem.text": "the text that is stored; only with `telemetry_text`",
    "graphmem.scope": "the scope; only with `telemetry_text`",
    "error.type": "class of the error that ended the span",
    "db.system.name": "kind of store",
    "db.operation.name": "method of the store",
    "db.response.returned_rows": "number of rows that the store returned",
    "gen_ai.operation.name": "`chat`",
    "gen_ai.provider.name": "provider of the model, as far as it is known",
    "gen_ai.request.model": "name of the model",
    "gen_ai.response.model": "name of the model that replied",
    "gen_ai.usage.input_tokens": "tokens of the prompt, as the provider counts them",
    "gen_ai.usage.output_tokens": "tokens of the reply",
}
"""Attribute of spans → its meaning."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; `labels` have few values, never text of users."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    help: str
    labels: tuple[str, ...] = ()


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("graph_entities_stored_total", "counter", "new entities by type", ("entity_type",)),
        Metric("graph_relationships_stored_total", "counter", "new facts by type of edge", ("relationship_type",)),
        Metric(
            "graph_extractions_total",
            "counter",
            "episodes by result: success, retry (tried again later), unavailable (a model is away), failed (given up)",
            ("status",),
        ),
        Metric("graph_merges_total", "counter", "merges of entities, by hand and by resolution of names"),
        Metric(
            "graph_degraded_total",
            "counter",
            "partial answers because a model or an index was unavailable",
            ("operation",),
        ),
        Metric(
            "graph_model_calls_total",
            "counter",
            "calls of language models: success, error or timeout (no reply in time)",
            ("model", "status"),
        ),
        Metric("graph_model_tokens_total", "counter", "tokens by direction: input or output", ("model", "direction")),
        Metric("graph_model_cost_total", "counter", "cost by the setting `llm_prices`, in its currency", ("model",)),
        Metric("graph_extraction_duration_ms", "histogram", "milliseconds of a call of the extractor"),
        Metric("graph_traversal_duration_ms", "histogram", "milliseconds to read the graph to a depth", ("depth",)),
        Metric("graph_search_duration_ms", "histogram", "milliseconds of a search"),
        Metric("graph_recall_duration_ms", "histogram", "milliseconds of a recall, with its search"),
        Metric("graph_entities_count", "gauge", "entities that aren't archived"),
        Metric("graph_relationships_count", "gauge", "facts that are active"),
        Metric("graph_queue_depth", "gauge", "episodes that wait for extraction"),
        Metric("graph_queue_age_seconds", "gauge", "seconds since the oldest waiting episode was stored"),
        Metric("graph_queue_failed", "gauge", "episodes whose extraction was given up"),
    )
}
"""Name → metric. Gauges are read from the store by processes with background work."""

BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 90_000)
"""Bounds of the histograms in milliseconds."""

Attributes = Mapping[str, str | int | float | bool]


# Metrics


class Recorder(Protocol):
    """A receiver of metrics besides OpenTelemetry."""

    def record(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        """Add a value to a counter or a histogram; it must not block."""
        ...


class _Meter:
    """The instruments of a meter provider."""

    def __init__(self, provider: MeterProvider) -> None:
        self.provider = provider
        meter, self._record = provider.get_meter(_NAME), dict[str, Callable[[float, Mapping[str, str]], None]]()
        for metric in METRICS.values():
            if metric.kind == "counter":
                self._record[metric.name] = meter.create_counter(metric.name, description=metric.help).add
            elif metric.kind == "histogram":
                made = meter.create_histogram(
                    metric.name, "ms", metric.help, explicit_bucket_boundaries_advisory=BUCKETS
                )
                self._record[metric.name] = made.record
            else:
                meter.create_observable_gauge(metric.name, [partial(self._observe, metric)], description=metric.help)

    def _observe(self, metric: Metric, _: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation

        value = read_gauges().get(metric.name)
        return () if value is None else (Observation(value),)

    def record(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        """Add a value to a counter or a histogram."""
        self._record[metric.name](value, labels)


_recorders: tuple[Recorder, ...] = ()
_meter: _Meter | None = None
_lock = threading.Lock()


def _provider(module: str, getter: str, variable: str) -> Any:
    """Return the provider that the program has set; None without one.

    A program that has set one has imported the API. Where the API has a variable for the provider, that decides: its
    function looks for an environment variable each time, which takes ten times as long.
    """
    api = sys.modules.get(module)
    if api is None or vars(api).get(variable, api) is None or (current := getattr(api, getter, None)) is None:
        return None
    provider = current()
    # those of the API do nothing
    return None if type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics")) else provider


def load_providers() -> None:
    """Have the API, if the program has imported it, load the providers that environment variables name."""
    for module, getter in (("trace", "get_tracer_provider"), ("metrics", "get_meter_provider")):
        if (current := getattr(sys.modules.get(f"opentelemetry.{module}"), getter, None)) is not None:
            current()


def _current_meter() -> _Meter | None:
    global _meter
    provider = _provider("opentelemetry.metrics._internal", "get_meter_provider", "_METER_PROVIDER")
    if provider is None:
        return None
    if _meter is None or _meter.provider is not provider:
        with _lock:
            if _meter is None or _meter.provider is not provider:
                _meter = _Meter(provider)
    return _meter


def _receivers() -> Sequence[Recorder]:
    try:
        meter = _current_meter()
    except Exception:  # noqa: BLE001 - whatever a program has set up
        _log.debug("metrics", exc_info=True)
        meter = None
    return _recorders if meter is None else (*_recorders, meter)


def count(name: str, value: float = 1, **labels: str) -> None:
    """Add a value to a counter or a histogram of `METRICS`."""
    for receiver in _receivers():
        try:
            receiver.record(METRICS[name], value, labels)
        except Exception:  # noqa: BLE001 - whatever a program has set up
            _log.debug("metric %s", name, exc_info=True)


@contextmanager
def recording(recorder: Recorder) -> Generator[None]:
    """Send metrics to a recorder during the block."""
    global _recorders
    with _lock:
        _recorders = (*_recorders, recorder)
    try:
        yield
    finally:
        with _lock:
            _recorders = tuple(each for each in _recorders if each is not recorder)


GaugeSource = Callable[[], Mapping[Hashable, Mapping[str, float]]]
"""Source of gauges: for each thing that it measures, such as a scope of a store, name → value."""

_sources: list[WeakMethod[GaugeSource]] = []


def register_gauges(source: GaugeSource) -> None:
    """Have the gauges read from a bound method as long as its object exists.

    It is called on the thread of an exporter or of an endpoint, and may be called on several.
    """
    with _lock:
        _sources[:] = [*(each for each in _sources if each() is not None), WeakMethod(source)]
    _receivers()  # the instruments of the meter exist from now on


def read_gauges() -> dict[str, float]:
    """Return the current values of the gauges over all sources: the greatest age, the sum of the others.

    What several sources measure, such as two memories of one store, counts once.
    """
    by_thing: dict[Hashable, Mapping[str, float]] = {}
    for each in tuple(_sources):
        if (source := each()) is not None:
            by_thing.update(source())
    found: dict[str, float] = {}
    for values in by_thing.values():
        for name, value in values.items():
            before = found.get(name, 0.0)
            found[name] = max(before, value) if name == "graph_queue_age_seconds" else before + value
    return found


# Cost of language models

_prices: dict[str, tuple[float, float]] = {}


def add_prices(prices: Mapping[str, tuple[float, float]]) -> None:
    """Add prices of a million input and output tokens by model, for all memories of this process."""
    _prices.update(prices)


def count_tokens(model: str, received: int, sent: int) -> None:
    """Count the input and output tokens of a call of a model, and its cost if the price is known."""
    count("graph_model_tokens_total", received, model=model, direction="input")
    count("graph_model_tokens_total", sent, model=model, direction="output")
    named = (price for name, price in _prices.items() if name == model or name.endswith(f":{model}"))
    if (price := next(named, None)) is not None:
        count("graph_model_cost_total", (received * price[0] + sent * price[1]) / 1e6, model=model)


# Spans


class _NoSpan:
    """A span that isn't recorded."""

    __slots__ = ()

    def __enter__(self) -> _NoSpan:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def set(self, attributes: Attributes) -> None:
        """Do nothing."""

    def time_out(self) -> None:
        """Do nothing."""


class _Recorded:
    """A span that is recorded, in OpenTelemetry, as a duration, or both."""

    __slots__ = ("_attributes", "_begun", "_duration", "_kind", "_labels", "_name", "_span", "_token", "_tracer")

    def __init__(
        self,
        tracer: Tracer | None,
        name: str,
        attributes: Attributes | None,
        kind: str,
        duration: str | None,
        labels: Mapping[str, str],
    ) -> None:
        self._tracer, self._name, self._attributes, self._kind = tracer, name, attributes, kind
        self._duration, self._labels = duration, labels
        self._span: Any = None
        self._token: Any = None

    def __enter__(self) -> _Recorded:
        if self._tracer is not None:
            self._attempt(partial(self._start, self._tracer))
        self._begun = time.perf_counter()
        return self

    def _start(self, tracer: Tracer) -> None:
        from opentelemetry import context, trace

        kind = trace.SpanKind.CLIENT if self._kind == "client" else trace.SpanKind.INTERNAL
        span = tracer.start_span(self._name, kind=kind, attributes=self._attributes, record_exception=False)
        self._token = context.attach(trace.set_span_in_context(span))
        self._span = span

    def set(self, attributes: Attributes) -> None:
        """Set attributes of the span."""
        span = self._span
        if span is not None:
            self._attempt(partial(span.set_attributes, attributes))

    def time_out(self) -> None:
        """End the span of a call whose caller no longer waits for it; the call may run on in another thread."""
        self._end(TimeoutError)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._duration is not None:
            count(self._duration, (time.perf_counter() - self._begun) * 1e3, **self._labels)
        if self._token is not None:
            from opentelemetry import context

            self._attempt(partial(context.detach, self._token))
        self._end(kind)

    def _attempt(self, work: Callable[[], object]) -> None:
        """Call what a program has set up, which may raise anything."""
        try:
            work()
        except Exception:  # noqa: BLE001
            _log.debug("span %s", self._name, exc_info=True)

    def _end(self, kind: type[BaseException] | None) -> None:
        with _lock:
            span, self._span = self._span, None
        if span is None:
            return
        if kind is not None:  # not the message, which may quote a text
            from opentelemetry import trace

            self._attempt(partial(span.set_attribute, "error.type", kind.__name__))
            self._attempt(partial(span.set_status, trace.Status(trace.StatusCode.ERROR)))
        self._attempt(span.end)


Span = _NoSpan | _Recorded

_NO_SPAN = _NoSpan()
_tracer: tuple[object, Tracer] | None = None


def current_tracer() -> Tracer | None:
    """Return the tracer of the provider that the program has set; None without one."""
    global _tracer
    provider = _provider("opentelemetry.trace", "get_tracer_provider", "_TRACER_PROVIDER")
    if provider is None:
        return None
    known = _tracer
    if known is None or known[0] is not provider:
        try:
            known = _tracer = (provider, provider.get_tracer(_NAME))
        except Exception:  # noqa: BLE001 - whatever a program has set up
            _log.debug("tracer", exc_info=True)
            return None
    return known[1]


def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: Literal["internal", "client"] = "internal",
    duration: str | None = None,
) -> Span:
    """Return a context manager that records a span of `SPANS`; its `set` adds attributes.

    Parameters
    ----------
    name, attributes, kind
        The span.
    duration
        Histogram of `METRICS` that the duration is added to.
    """
    tracer = current_tracer()
    if tracer is None and (duration is None or not _receivers()):
        return _NO_SPAN
    return _Recorded(tracer, name, attributes, kind, duration, {})


def question_attributes(query: str, scopes: Iterable[object], *, show_text: bool) -> Attributes | None:
    """Return the attributes of a span that show a question and its scopes; None unless texts are shown."""
    return {"graphmem.query": query, "graphmem.scope": ", ".join(map(str, scopes))} if show_text else None


def timed(duration: str, **labels: str) -> Span:
    """Return a context manager that adds its duration to a histogram of `METRICS`, without a span."""
    return _Recorded(None, duration, None, "internal", duration, labels) if _receivers() else _NO_SPAN


def is_within_span() -> bool:
    """Return whether the current code runs within a span that is recorded."""
    if current_tracer() is None:
        return False
    from opentelemetry import trace

    return trace.get_current_span().is_recording()


P = ParamSpec("P")
R = TypeVar("R")


def in_span(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that records a span for each call of a function."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with span(name):
                return function(*args, **kwargs)

        return call

    return decorated


# Calls of a store ---------------------------------------------------------------------------------


_METHODS = frozenset(
    name for name in dir(GraphBackend) if not name.startswith("_") and callable(getattr(GraphBackend, name))
)
_PAGED = frozenset(name for name in _METHODS if name.startswith("all_") or name == "entry_pages") - {"all_mentions"}
"""Methods that read page by page while their result is iterated: the read of each page is a call of its own."""


_SYSTEMS = {"bolt": "neo4j"}  # scheme → system; others are the same


def traced_backend(backend: GraphBackend, url: str) -> GraphBackend:
    """Return a store that records a span for each call within another span, such as that of a recall.

    Parameters
    ----------
    backend
        The store.
    url
        Its URL, whose scheme tells the kind of store.
    """
    scheme = re.split(r"[+:]", url, maxsplit=1)[0]
    return cast("GraphBackend", _TracedBackend(backend, _SYSTEMS.get(scheme, scheme)))


def _rows(result: object) -> Attributes:
    return {"db.response.returned_rows": len(cast("Sized", result))} if isinstance(result, (list, dict)) else {}


class _TracedBackend:
    def __init__(self, backend: GraphBackend, system: str) -> None:
        self._backend = backend
        self._system = system

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        if name not in _METHODS:
            return found  # properties may change
        if name in _PAGED:
            made: Callable[..., Any] = MethodType(getattr(GraphBackend, name), self)
        else:
            made = self._traced(name, found)
        self.__dict__[name] = made
        return made

    def _traced(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        title, attributes = f"graphmem.store.{name}", {"db.system.name": self._system, "db.operation.name": name}

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not is_within_span():
                return method(*args, **kwargs)
            with span(title, attributes, kind="client") as one:
                result = method(*args, **kwargs)
                one.set(_rows(result))
                return result

        return call

    def snapshot(self, work: Callable[[GraphBackend], Any]) -> Any:
        """Run `work` with a snapshot whose calls are spans, too."""
        return self._backend.snapshot(lambda store: work(cast("GraphBackend", _TracedBackend(store, self._system))))
