"""`search` with an index outside of the store: the same answers, and what happens when the index is away."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphmem import GraphMemory, InvalidInput
from graphmem.embed.minilm import installed_weights
from graphmem.results import Check

TURNS = [
    ("Maya", "I started as a nurse at the hospital in Leeds. The night shifts are hard. My sister drives me there."),
    ("Tom", "We adopted a grey cat last week. She is called Pixel. She sleeps on the radiator."),
    ("Maya", "My bicycle was stolen near the station. I will buy a second-hand one."),
    ("Tom", "I bake sourdough every Sunday. The last loaf was flat, the oven was too cold."),
    ("Maya", "The garden is full of snails. They ate all of my lettuce."),
    ("Tom", "My brother moved to Lisbon to study architecture. He wants to restore old houses."),
]
QUESTIONS = ["What pet does Tom have?", "Who studies architecture?", "What happened to the bicycle?", "Maya's job"]
AWAY = "qdrant:http://127.0.0.1:9"  # the port of a service that nobody runs

pytestmark = pytest.mark.skipif(not installed_weights(), reason="needs the built-in embedding model: .[embeddings]")

HOLD = """
import sys
from graphmem.vectors.edge import QdrantEdgeVectorIndex
index = QdrantEdgeVectorIndex(sys.argv[1])
print([ok for _, ok, _ in index.diagnose()], flush=True)
sys.stdin.read()
"""


def memory_with(vector_index: str, folder: Path) -> GraphMemory:
    """Open the memory of a test."""
    return GraphMemory.open(
        f"sqlite:///{folder}/memory.db",
        vector_index=vector_index,
        extractor="none",
        embeddings="minilm",
        background=False,
        index_wait=60.0,
    )


def filled(vector_index: str, folder: Path) -> GraphMemory:
    """Open a memory and let it read the turns."""
    folder.mkdir(exist_ok=True)
    memory = memory_with(vector_index, folder)
    for number, (speaker, text) in enumerate(TURNS):
        memory.remember(text, speaker=speaker, session_id="s", external_id=str(number))
    return memory


def answers(memory: GraphMemory) -> list[list[tuple[str | None, float]]]:
    """Return for each question what is found, with its score."""
    return [
        [(found.episode.external_id, round(found.score, 2)) for found in memory.search(question).found]
        for question in QUESTIONS
    ]


def check_of(memory: GraphMemory) -> Check:
    """Return what doctor tells of the vector index."""
    [check] = [check for check in memory.admin.doctor() if check.name == "vector index"]
    return check


@pytest.mark.parametrize("choice", ["exact", "qdrant-edge"])
def test_an_index_outside_gives_what_the_store_gives(choice: str, tmp_path: Path) -> None:
    vector_index = f"{choice}:{tmp_path / 'vectors'}" if choice == "qdrant-edge" else choice
    with filled("store", tmp_path / "a") as plain, filled(vector_index, tmp_path / "b") as outside:
        assert answers(outside) == answers(plain)
        assert outside.search(QUESTIONS[0]).degraded == ()
        assert check_of(outside).ok


def test_a_deleted_folder_is_filled_again(tmp_path: Path) -> None:
    vector_index = f"qdrant-edge:{tmp_path / 'vectors'}"
    with filled(vector_index, tmp_path) as memory:
        before = answers(memory)
    shutil.rmtree(tmp_path / "vectors")
    with memory_with(vector_index, tmp_path) as memory:
        assert answers(memory) == before


def test_reindex_fills_the_index_outside_anew(tmp_path: Path) -> None:
    with filled(f"qdrant-edge:{tmp_path / 'vectors'}", tmp_path) as memory:
        before = answers(memory)
        told: list[int] = []
        assert memory.admin.reindex(on_progress=told.append) == len(TURNS)
        assert told[-1] == len(TURNS)
        assert answers(memory) == before


def test_a_search_goes_on_where_the_index_is_away_and_tells(tmp_path: Path) -> None:
    with filled(AWAY, tmp_path) as memory:
        results = memory.search(QUESTIONS[0])
        assert results.found[0].episode.external_id == "1"
        assert any("sentences" in told for told in results.degraded)
        assert not check_of(memory).ok


def test_a_folder_that_another_process_has_is_told_and_searched_without(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    with filled(f"qdrant-edge:{folder}", tmp_path) as memory:
        memory.search(QUESTIONS[0])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "[True]\n"
        with memory_with(f"qdrant-edge:{folder}", tmp_path) as memory:
            results = memory.search(QUESTIONS[0])
            assert results.found[0].episode.external_id == "1"
            assert any("another process has this folder open" in told for told in results.degraded)
            holder.communicate()
            assert memory.search(QUESTIONS[0]).degraded == ()


@pytest.mark.parametrize("choice", ["native", "faiss", "qdrant:", "qdrant:localhost:6333"])
def test_a_choice_that_cannot_be_is_told(choice: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"vector_index|Qdrant URL"):
        memory_with(choice, tmp_path)
