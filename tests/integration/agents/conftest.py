"""What the tests of several agent frameworks share: a memory of one turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem import GraphMemory, Turn


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[GraphMemory]:
    """Return a memory that knows where Maya moved."""
    url = f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, scope="maya", extractor="none", embeddings="none", background=False) as opened:
        opened.remember(Turn(text="I moved to Lisbon.", speaker="Maya", occurred_at="2026-01-05T10:00:00Z"))  # pyright: ignore[reportArgumentType]
        yield opened
