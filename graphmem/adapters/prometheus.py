"""The metrics of graphmem for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphmem.errors import MissingExtra
from graphmem.telemetry import BUCKETS, METRICS, Metric, read_gauges

try:
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtra("the metrics for Prometheus", "otel") from error


class PrometheusRecorder:
    """A recorder of metrics with a registry of its own, for `graphmem.telemetry.recording`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._metrics: dict[str, Counter | Histogram] = {}
        for metric in METRICS.values():
            if metric.kind == "counter":
                made = Counter(metric.name, metric.help, metric.labels, registry=self.registry)
            elif metric.kind == "histogram":
                made = Histogram(metric.name, metric.help, metric.labels, buckets=BUCKETS, registry=self.registry)
            else:
                continue
            self._metrics[metric.name] = made
        self.registry.register(_Gauges())

    def record(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        """Add a value to a counter or a histogram."""
        made = self._metrics[metric.name]
        child = made.labels(**labels) if labels else made
        if isinstance(child, Counter):
            child.inc(value)
        else:
            child.observe(value)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format; the gauges are read from the store."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the gauges that processes with background work have."""
        for name, value in read_gauges().items():
            yield GaugeMetricFamily(name, METRICS[name].help, value)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Yield nothing: otherwise the registry would collect once when it begins."""
        return ()
