"""A store whose calls are spans passes the conformance kit like the store itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from graphmem import telemetry
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.telemetry import traced_backend
from graphmem.testing import GraphBackendTests


class TestTracedMemory(GraphBackendTests):
    stateful_settings = settings(GraphBackendTests.stateful_settings, max_examples=3)
    url: str

    @pytest.fixture(autouse=True)
    def within_a_span(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
        with telemetry.span("graphmem.recall"):
            assert telemetry.is_within_span()
            yield

    def open_store(self, tmp_path: Path) -> GraphBackend:
        self.url = f"memory://traced.{'.'.join(tmp_path.parts[-3:])}"
        return traced_backend(open_backend(self.url), self.url)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:
        return traced_backend(open_backend(self.url), self.url)
