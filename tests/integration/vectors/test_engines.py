"""What is particular to the engines: processes that are killed, servers that are away, files that are gone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmem.errors import IndexUnavailable, InvalidInput
from graphmem.models import Changes
from graphmem.protocols import GraphBackend, VectorState
from graphmem.registry import open_backend
from graphmem.testing.rows import episode, episode_id, home
from graphmem.testing.vectors import DIMENSION, entry, towards, vectors
from graphmem.vectors import VectorFollower
from graphmem.vectors.edge import QdrantEdgeVectorIndex
from graphmem.vectors.qdrant import QdrantVectorIndex, connect

WRITE = """
import sys
from graphmem.models import Scope
from graphmem.registry import open_backend
from graphmem.testing.vectors import DIMENSION
from graphmem.vectors import VectorFollower
from graphmem.vectors.edge import QdrantEdgeVectorIndex
scope = Scope.from_key(sys.argv[3])
store = open_backend(sys.argv[1])
index = QdrantEdgeVectorIndex(sys.argv[2])
print("ready", flush=True)
while True:
    VectorFollower(store, index, lambda: DIMENSION).sync(scope)
    print("synced", flush=True)
    index.clear(scope)
"""

local_mode = pytest.mark.filterwarnings(
    "ignore:Payload indexes have no effect in the local Qdrant", "ignore:Local mode performs exact"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GraphBackend]:
    """Open a store with 1,500 episodes and their vectors."""
    store = open_backend(f"sqlite:///{tmp_path}/memory.db")
    store.add_episodes(home(), [episode(number) for number in range(1, 1501)])
    store.write(home(), Changes(index=tuple(entry(number, [1, number], [number, 1]) for number in range(1, 1501))))
    yield store
    store.close()


class Client:
    """A client in local mode that can lose its server."""

    def __init__(self) -> None:
        from qdrant_client import QdrantClient

        self.local = QdrantClient(":memory:")
        self.away = False

    def __getattr__(self, name: str) -> Any:
        if self.away:
            raise ConnectionRefusedError("Connection refused")
        return getattr(self.local, name)


@pytest.mark.parametrize("syncs", [0, 1, 2])
def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_a_sync_does_not_mend(
    store: GraphBackend, tmp_path: Path, syncs: int
) -> None:
    command = [sys.executable, "-c", WRITE, f"sqlite:///{tmp_path}/memory.db", str(tmp_path / "vectors"), home().key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(syncs + 1)]
        process.kill()
    assert lines == ["ready\n", *["synced\n"] * syncs]
    index = QdrantEdgeVectorIndex(tmp_path / "vectors")
    try:
        assert VectorFollower(store, index, lambda: DIMENSION).sync(home())
        assert index.count(home(), "episode") == 1500
        assert index.search([home()], "episode", towards(1, 1), limit=1)[0].key == episode_id(1)
    finally:
        index.close()


def test_a_shard_that_was_deleted_is_filled_again(store: GraphBackend, tmp_path: Path) -> None:
    for _ in range(2):
        index = QdrantEdgeVectorIndex(tmp_path / "vectors")
        VectorFollower(store, index, lambda: DIMENSION).sync(home())
        assert index.count(home(), "episode") == 1500
        index.close()
        shutil.rmtree(tmp_path / "vectors" / "graphmem_episodes")


def test_a_damaged_folder_is_told(tmp_path: Path) -> None:
    index = QdrantEdgeVectorIndex(tmp_path)
    index.upsert(home(), "episode", [("a", vectors([1]))])
    index.close()
    (tmp_path / "graphmem_episodes" / "edge_config.json").write_text("not JSON")
    damaged = QdrantEdgeVectorIndex(tmp_path)
    with pytest.raises(IndexUnavailable, match="delete the folder"):
        damaged.search([home()], "episode", towards(1), limit=1)
    [(_, well, detail)] = damaged.diagnose()
    assert not well
    assert str(tmp_path) in detail
    damaged.close()


@local_mode
def test_a_server_that_comes_back_is_asked_again_after_the_pause() -> None:
    client: Any = Client()
    index = QdrantVectorIndex(client, pause=0.0)
    index.upsert(home(), "episode", [("a", vectors([1]))])
    client.away = True
    with pytest.raises(IndexUnavailable, match="Connection refused"):
        index.search([home()], "episode", towards(1), limit=1)
    client.away = False
    assert [hit.key for hit in index.search([home()], "episode", towards(1), limit=1)] == ["a"]


@local_mode
def test_a_server_that_is_away_is_left_alone_during_the_pause() -> None:
    client: Any = Client()
    index = QdrantVectorIndex(client, pause=3600.0)
    index.upsert(home(), "episode", [("a", vectors([1]))])
    client.away = True
    with pytest.raises(IndexUnavailable):
        index.search([home()], "episode", towards(1), limit=1)
    client.away = False
    with pytest.raises(IndexUnavailable, match="Connection refused"):
        index.search([home()], "episode", towards(1), limit=1)


@local_mode
def test_a_scope_whose_collection_was_deleted_counts_as_not_taken_in() -> None:
    client: Any = Client()
    index = QdrantVectorIndex(client)
    index.upsert(home(), "episode", [("a", vectors([1]))])
    index.set_state(home(), VectorState("m", 0, 1))
    client.delete_collection("graphmem_episodes")
    assert QdrantVectorIndex(client).state(home()) is None


@local_mode
def test_a_process_that_writes_one_kind_keeps_the_collections_of_the_others_in_the_state() -> None:
    client: Any = Client()
    index = QdrantVectorIndex(client)
    index.upsert(home(), "episode", [("a", vectors([1]))])
    index.upsert(home(), "entity", [("x", vectors([1]))])
    index.set_state(home(), VectorState("m", 0, 1))
    other = QdrantVectorIndex(client)
    other.upsert(home(), "entity", [("y", vectors([1]))])
    other.set_state(home(), VectorState("m", 0, 2))
    assert QdrantVectorIndex(client).state(home()) == VectorState("m", 0, 2)
    client.delete_collection("graphmem_episodes")
    assert QdrantVectorIndex(client).state(home()) is None


@local_mode
def test_two_stores_on_one_server_are_kept_apart_by_their_prefixes() -> None:
    client: Any = Client()
    one, other = QdrantVectorIndex(client, "one"), QdrantVectorIndex(client, "other")
    one.upsert(home(), "episode", [("a", vectors([1]))])
    one.set_state(home(), VectorState("m", 0, 1))
    assert (other.count(home(), "episode"), other.state(home())) == (0, None)


def test_the_password_of_a_refused_url_is_masked() -> None:
    with pytest.raises(InvalidInput, match=r"u:\*\*\*@host") as caught:
        connect("qdrant://u:hidden@host:6333")
    assert "hidden" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_by_doctor() -> None:
    index = QdrantVectorIndex(connect("http://127.0.0.1:9"))
    [(_, well, detail)] = index.diagnose()
    assert not well
    assert "search continues" in detail
    index.close()
