"""The Grafana dashboard of the docs shows every metric, and no metric or label that doesn't exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphmem.telemetry import METRICS, SPANS, Metric

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD: dict[str, Any] = json.loads((DOCS / "how-to/grafana-dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(target["expr"], target["legendFormat"]) for panel in PANELS for target in panel["targets"]]
OF_SERVER = {"job", "le"}  # labels that Prometheus adds


def metrics_of(text: str) -> list[Metric]:
    """Return the metrics that a query names, as their samples are called."""
    samples = {f"{name}_bucket" if metric.kind == "histogram" else name: metric for name, metric in METRICS.items()}
    return [samples[name] for name in re.findall(r"\bgraph_\w+", text)]


def labels_of(query: str, legend: str) -> set[str]:
    groups = ",".join(re.findall(r"by \(([^)]*)\)", query)).split(",")
    others = (*re.findall(r"{{(\w+)}}", legend), *re.findall(r"(\w+)=~?\"", query))
    return {*(each.strip() for each in groups), *others} - {""}


@pytest.mark.parametrize(("query", "legend"), TARGETS)
def test_a_query_names_a_metric_and_its_labels(query: str, legend: str) -> None:
    [metric] = metrics_of(query)
    assert labels_of(query, legend) - OF_SERVER == set(metric.labels)
    assert (metric.kind == "counter") == ("rate(" in query and "_bucket" not in query)
    assert query.count("(") == query.count(")")


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {metric.name for query, _ in TARGETS for metric in metrics_of(query)}
    assert shown == METRICS.keys()


def test_the_variables_of_the_dashboard_name_a_metric() -> None:
    [job] = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    assert metrics_of(job["query"]["query"])


def test_panels_are_told_apart_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_every_span_and_metric_of_the_page_exists() -> None:
    page = (DOCS / "how-to/monitor.md").read_text("utf-8")
    named = set(re.findall(r"`(graph_\w+)`", page))
    assert named
    assert named <= METRICS.keys()
    assert {name for name in re.findall(r"`(graphmem\.[\w.]+)`", page) if name != "graphmem.toml"} <= SPANS.keys()
