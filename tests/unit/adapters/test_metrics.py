"""The metrics for Prometheus: their text, the worker's endpoint, and the command that prints them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Hashable, Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from graphmem.adapters.cli.health import Health, serving
from graphmem.adapters.prometheus import PrometheusRecorder
from graphmem.telemetry import METRICS, count, recording, register_gauges, span, timed
from tests.unit.adapters.in_process import Shell


class Source:
    """A store of three facts."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self) -> Mapping[Hashable, Mapping[str, float]]:
        return {self._name: {"graph_relationships_count": 3.0}, self: {"graph_queue_age_seconds": 7.0}}


def samples(text: bytes) -> dict[str, float]:
    """Return the samples of a text by name and labels, without the empty ones."""
    return {
        f"{sample.name}{json.dumps(sample.labels) if sample.labels else ''}": sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.value and not sample.name.endswith("_created")
    }


@pytest.fixture
def recorder() -> PrometheusRecorder:
    return PrometheusRecorder()


def test_what_is_counted_while_recording_is_in_the_text(recorder: PrometheusRecorder) -> None:
    source, other, same = Source("one"), Source("other"), Source("one")
    count("graph_merges_total")
    with recording(recorder):
        register_gauges(source.read)
        register_gauges(other.read)
        register_gauges(same.read)
        count("graph_merges_total", 2)
        count("graph_extractions_total", status="success")
        with timed("graph_traversal_duration_ms", depth="2"):
            pass
        with span("graphmem.search", duration="graph_search_duration_ms"):
            pass
    count("graph_merges_total", 4)
    found = samples(recorder.text())
    assert found["graph_merges_total"] == 2
    assert found['graph_extractions_total{"status": "success"}'] == 1
    assert found['graph_traversal_duration_ms_count{"depth": "2"}'] == 1
    assert found["graph_search_duration_ms_count"] == 1
    assert found["graph_relationships_count"] == 6
    assert found["graph_queue_age_seconds"] == 7
    del source, other, same
    assert "graph_relationships_count" not in samples(recorder.text())


def test_every_metric_can_be_recorded(recorder: PrometheusRecorder) -> None:
    with recording(recorder):
        for metric in METRICS.values():
            if metric.kind != "gauge":
                count(metric.name, 1, **dict.fromkeys(metric.labels, "some"))
    names = {name.partition("{")[0].removesuffix("_count") for name in samples(recorder.text())}
    assert names >= {metric.name for metric in METRICS.values() if metric.kind != "gauge"}


def test_a_recorder_that_raises_changes_nothing(recorder: PrometheusRecorder) -> None:
    with recording(recorder), timed("graph_search_duration_ms"):
        count("graph_merges_total", no_such_label="x")


def get(port: int) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/metrics")
    reply = connection.getresponse()
    return reply.status, reply.headers["Content-Type"], reply.read()


def test_the_endpoint_of_the_worker_answers_prometheus(recorder: PrometheusRecorder, shell: Shell) -> None:
    with recording(recorder), serving(Health(), "127.0.0.1", 0, recorder.text) as port:
        count("graph_extractions_total", 3, status="success")
        status, kind, body = get(port)
        assert (status, kind.partition(";")[0]) == (200, "text/plain")
        assert samples(body)['graph_extractions_total{"status": "success"}'] == 3
        printed = shell.run("metrics", "--health-port", str(port))
        assert 'graph_extractions_total{status="success"} 3.0\n' in printed.out
        found = shell.run("metrics", "--health-port", str(port), "--json").document
        assert found['graph_extractions_total{status="success"}'] == 3


def test_without_the_package_the_endpoint_and_the_command_say_what_to_install(shell: Shell) -> None:
    with serving(Health(), "127.0.0.1", 0) as port:
        status, _, body = get(port)
        assert (status, b"graphmem[otel]" in body) == (404, True)
        ran = shell.run("metrics", "--health-port", str(port))
        assert (ran.code, ran.out) == (1, "")
        assert "graphmem[otel]" in ran.err
    ran = shell.run("metrics", "--health-port", str(port))
    assert (ran.code, ran.out) == (1, "")
    assert f"no worker answers at 127.0.0.1:{port}" in ran.err


@pytest.mark.parametrize("host", ["bad host", "a" * 70 + ".example"])
def test_a_name_that_is_none_of_a_host_is_one_line(shell: Shell, host: str) -> None:
    ran = shell.run("metrics", "--health-host", host)
    assert (ran.code, f"no worker answers at {host}:8700" in " ".join(ran.err.split())) == (1, True)
