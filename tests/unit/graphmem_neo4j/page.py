"""What docs/reference/neo4j-graph.md says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "neo4j-graph.md").read_text("utf-8")


def listed_properties() -> dict[str, set[str]]:
    """Return label or relationship type → the properties that the tables of the page list."""
    rows: list[str] = re.findall(r"^\| `:.*\|$", PAGE, re.MULTILINE)
    cells = [[re.findall(r"`:?(\w+)`", cell) for cell in row.split("|")[1:-1]] for row in rows]
    return {label: set(row[-1]) for row in cells for label in row[0]}
