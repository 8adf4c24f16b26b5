"""The notebooks: each runs from its first cell to its last, draws, and lies here without what it put out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ON_A_SERVER = "04-neo4j-and-gds.ipynb"


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def run(name: str, folder: Path, more: Sequence[Any] = ()) -> Any:
    """Execute a notebook, and more cells after its own, in a folder, and return it with its outputs."""
    notebook = read(FOLDER / name)
    notebook.cells += [nbformat.from_dict(cell) for cell in more]  # pyright: ignore[reportUnknownMemberType]
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()  # pyright: ignore[reportUnknownMemberType]
    return notebook


def outputs(notebook: Any, kind: str) -> list[str]:
    """Return what the cells put out in a MIME type."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [o.data[kind] for cell in cells for o in cell.outputs if "data" in o and kind in o.data]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_committed_without_output(path: Path) -> None:
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert [(cell.execution_count, cell.outputs, cell.metadata) for cell in cells if cell.outputs] == []
    assert {cell.execution_count for cell in cells} == {None}


@pytest.mark.parametrize(
    ("name", "pictures"), [("01-from-chat-to-graph", 1), ("02-communities", 6), ("03-history-of-a-fact", 2)]
)
def test_notebook_runs_and_draws(name: str, pictures: int, tmp_path: Path) -> None:
    notebook = run(f"{name}.ipynb", tmp_path)

    assert len(outputs(notebook, "image/png")) == pictures
    assert [page for page in outputs(notebook, "text/html") if "Content-Security-Policy" in page]


@pytest.mark.parametrize("name", ["01-from-chat-to-graph", "02-communities", "03-history-of-a-fact"])
def test_all_cells_of_a_notebook_can_be_run_again(name: str, tmp_path: Path) -> None:
    again = [{**cell, "id": f"{cell.id}-again"} for cell in read(FOLDER / f"{name}.ipynb").cells]

    cells = run(f"{name}.ipynb", tmp_path, again).cells

    printed = ["".join(output.text for output in cell.get("outputs", ()) if "text" in output) for cell in cells]
    assert printed[: len(again)] == printed[len(again) :]


def test_notebook_on_neo4j_runs_and_draws(
    empty_neo4j_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_NEO4J_URL", empty_neo4j_url)

    notebook = run(ON_A_SERVER, tmp_path)

    assert len(outputs(notebook, "image/png")) == 1
    assert len([page for page in outputs(notebook, "text/html") if len(page) > 1_000_000]) == 2  # two of neo4j-viz


def test_notebook_on_neo4j_says_what_is_missing_and_does_nothing_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRAPHMEM_NEO4J_URL", raising=False)

    notebook = run(ON_A_SERVER, tmp_path)

    [told] = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert told.text.startswith("no server: GRAPHMEM_NEO4J_URL names none")
    assert "make neo4j-up" in told.text
