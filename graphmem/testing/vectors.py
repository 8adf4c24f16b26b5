"""Tests of the `VectorIndex` contract and of its synchronization with a store.

::

    class TestMyIndex(VectorIndexTests):
        def open_index(self, tmp_path):
            return MyVectorIndex(tmp_path)

        def reopen(self, index, tmp_path):
            return MyVectorIndex(tmp_path)
"""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from graphmem.errors import IndexMismatch
from graphmem.models import Changes, IndexEntry, IndexKind, Scope
from graphmem.protocols import GraphBackend, VectorIndex, VectorState
from graphmem.registry import open_backend
from graphmem.testing.base import in_threads
from graphmem.testing.rows import (
    World,
    elsewhere,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    new_world,
    project,
    put_entities,
    scope_of,
)
from graphmem.vectors import VectorFollower

DIMENSION = 16

Vectors = NDArray[np.float32]


def vectors(*rows: Sequence[float]) -> Vectors:
    """Return rows as the vectors of a key, padded with zeros to the dimension of the tests."""
    return np.array([[*row, *[0.0] * (DIMENSION - len(row))] for row in rows], dtype=np.float32)


def towards(*numbers: float) -> Vectors:
    """Return one vector."""
    return vectors(numbers)[0]


def random_items(count: int, seed: int, each: int = 2) -> list[tuple[str, Vectors]]:
    """Return keys with `each` random vectors, the same for the same seed."""
    chance = np.random.default_rng(seed)
    rows = chance.standard_normal((count, each, DIMENSION)).astype(np.float32)
    return [(f"key {number}", rows[number]) for number in range(count)]


def nearest(items: Sequence[tuple[str, Vectors]], vector: Vectors, limit: int) -> list[str]:
    """Return the keys that a search has to find, computed from all cosines."""
    unit = vector / np.linalg.norm(vector)
    scores = {key: float((rows @ unit / np.linalg.norm(rows, axis=1)).max()) for key, rows in items}
    return sorted(scores, key=lambda key: (-scores[key], key))[:limit]


def entry(number: int, *rows: Sequence[float], model: str = "m", complete: bool = True) -> IndexEntry:
    """Return the index entry of episode `number`: the vector of the whole text, then those of its sentences."""
    packed = vectors(*rows).astype("<f2").tobytes() if rows else b""
    return IndexEntry(kind="episode", key=episode_id(number), model=model, vectors=packed, complete=complete)


class VectorIndexHooks(ABC):
    """Base class with the hooks that a subclass overrides to provide the index to test."""

    other_scopes: ClassVar[int] = 1000
    """Number of other scopes in the tests of crowded indexes; a slow and exact engine may use fewer."""

    keeps: ClassVar[bool] = True
    """Whether the index persists after it was closed, also for other processes."""

    @abstractmethod
    def open_index(self, tmp_path: Path) -> VectorIndex:
        """Return a fresh, empty index.

        Parameters
        ----------
        tmp_path
            An empty directory for its files.
        """

    def reopen(self, index: VectorIndex, tmp_path: Path) -> VectorIndex:
        """Close an index and return one on the same data; an in-process index is empty."""
        index.close()
        return self.open_index(tmp_path)

    def open_store(self, tmp_path: Path) -> GraphBackend:
        """Return an empty store for an index to follow."""
        return open_backend(f"memory://{'.'.join(tmp_path.parts[-3:])}")

    def crowd(self, index: VectorIndex, others: Sequence[tuple[Scope, Vectors]]) -> None:
        """Write a key for each of many scopes; an engine with slow transactions may combine the writes."""
        for scope, rows in others:
            index.upsert(scope, "episode", [(f"of {scope.key}", rows)])

    @pytest.fixture(autouse=True)
    def world(self) -> Iterator[World]:
        """Create scopes and row ids for the test."""
        with new_world() as world:
            yield world

    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[VectorIndex]:
        """Open a fresh index, and close it after the test."""
        index = self.open_index(tmp_path)
        yield index
        index.close()

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[GraphBackend]:
        """Open a store with 30 episodes and no index entries."""
        store = self.open_store(tmp_path)
        store.add_episodes(home(), [episode(number) for number in range(1, 31)])
        store.add_episodes(project(), [episode(number, project()) for number in range(31, 33)])
        yield store
        store.close()


class VectorSearchTests(VectorIndexHooks):
    """A search finds the nearest keys of the scopes that it names."""

    def test_the_nearest_keys_are_found_best_first(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("near", vectors([3, 1])), ("far", vectors([-1, 1])), ("same", vectors([2]))])
        found = index.search([home()], "episode", towards(5), limit=2)
        assert [(hit.scope, hit.key) for hit in found] == [(home(), "same"), (home(), "near")]
        assert [hit.score for hit in found] == pytest.approx([1.0, 3 / 10**0.5], abs=1e-5)

    def test_a_key_counts_by_its_nearest_vector(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("many", vectors([-1], [0, 1], [1, 0.1])), ("one", vectors([1, 1]))])
        assert [hit.key for hit in index.search([home()], "episode", towards(1), limit=5)] == ["many", "one"]

    def test_a_key_with_many_vectors_takes_one_place(self, index: VectorIndex) -> None:
        crowd = vectors(*([10, 0.01 * number] for number in range(60)))
        index.upsert(home(), "episode", [("crowd", crowd), ("a", vectors([1, 1])), ("b", vectors([1, 2]))])
        assert [hit.key for hit in index.search([home()], "episode", towards(1), limit=3)] == ["crowd", "a", "b"]

    def test_only_the_scopes_that_are_named_are_searched(self, index: VectorIndex) -> None:
        for scope in (home(), project(), elsewhere()):
            index.upsert(scope, "episode", [(f"in {scope.key}", vectors([1]))])
        found = index.search([project(), elsewhere()], "episode", towards(1), limit=5)
        assert {(hit.scope, hit.key) for hit in found} == {(s, f"in {s.key}") for s in (project(), elsewhere())}
        assert index.search([], "episode", towards(1), limit=5) == []

    def test_of_equally_near_keys_the_smallest_come_first(self, index: VectorIndex) -> None:
        for scope, keys in ((home(), "dbe"), (project(), "ca")):
            index.upsert(scope, "episode", [(key, vectors([1, 1])) for key in keys])
        index.upsert(home(), "episode", [("near", vectors([1]))])
        found = index.search([home(), project()], "episode", towards(1), limit=9)
        assert [hit.key for hit in found] == ["near", *"abcde"]

    def test_a_scope_that_is_named_twice_is_searched_once(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("a", vectors([1])), ("b", vectors([1, 1]))])
        found = index.search([home(), project(), home()], "episode", towards(1), limit=5)
        assert [hit.key for hit in found] == ["a", "b"]

    def test_kinds_are_apart(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("a", vectors([1]))])
        index.upsert(home(), "entity", [("a", vectors([0, 1]))])
        assert [hit.score for hit in index.search([home()], "entity", towards(1), limit=5)] == pytest.approx([0.0])

    def test_an_empty_index_finds_nothing(self, index: VectorIndex) -> None:
        assert index.search([home()], "episode", towards(1), limit=5) == []
        assert index.count(home(), "episode") == 0

    def test_any_text_may_be_a_key_or_a_scope(self, index: VectorIndex) -> None:
        scope, key = Scope('d\'or "x" — 中'), 'O\'Brien \\ "q" 🦊\n$q'
        index.upsert(scope, "name", [(key, vectors([1])), ("other", vectors([0, 1]))])
        assert [hit.key for hit in index.search([scope], "name", towards(1), limit=1)] == [key]
        index.delete(scope, "name", [key])
        assert [hit.key for hit in index.search([scope], "name", towards(1), limit=5)] == ["other"]


class VectorWriteTests(VectorIndexHooks):
    """A write replaces the existing vectors of a key."""

    def test_a_key_that_is_written_again_has_its_new_vectors_only(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("a", vectors([1], [0, 1], [0, 0, 1])), ("b", vectors([1]))])
        index.upsert(home(), "episode", [("a", vectors([0, 0, 0, 1]))])
        assert index.count(home(), "episode") == 2
        found = {hit.key: hit.score for hit in index.search([home()], "episode", towards(0, 1), limit=5)}
        assert found == pytest.approx({"a": 0.0, "b": 0.0}, abs=1e-6)

    def test_of_a_key_that_comes_twice_the_later_counts(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("a", vectors([1])), ("a", vectors([0, 1]))])
        assert [hit.score for hit in index.search([home()], "episode", towards(0, 1), limit=5)] == pytest.approx([1.0])

    def test_a_key_without_vectors_is_deleted(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("a", vectors([1])), ("b", vectors([1]))])
        index.upsert(home(), "episode", [("a", np.empty((0, DIMENSION), np.float32))])
        assert [hit.key for hit in index.search([home()], "episode", towards(1), limit=5)] == ["b"]

    def test_deleted_keys_are_gone_from_their_scope_only(self, index: VectorIndex) -> None:
        for scope in (home(), project()):
            index.upsert(scope, "episode", [("a", vectors([1], [1, 1])), ("b", vectors([1]))])
        index.delete(home(), "episode", ["a", "absent"])
        assert (index.count(home(), "episode"), index.count(project(), "episode")) == (1, 3)

    def test_many_are_written_at_once(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", random_items(1200, seed=1))
        assert index.count(home(), "episode") == 2400

    def test_vectors_of_another_dimension_are_refused(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("a", vectors([1]))])
        other = np.ones((1, DIMENSION + 1), np.float32)
        with pytest.raises(IndexMismatch):
            index.upsert(project(), "episode", [("b", other)])
        with pytest.raises(IndexMismatch):
            index.search([home()], "episode", other[0], limit=1)
        assert [hit.key for hit in index.search([home()], "episode", towards(1), limit=5)] == ["a"]

    def test_after_a_reset_another_dimension_is_taken(self, index: VectorIndex) -> None:
        places: list[tuple[Scope, IndexKind]] = [
            *((home(), "episode"), (home(), "entity")),
            *((project(), "episode"), (project(), "entity")),
        ]
        for scope, kind in places:
            index.upsert(scope, kind, [("a", vectors([1]))])
            index.set_state(scope, VectorState("m", 0, 1))
        index.reset()
        assert [index.state(scope) for scope in (home(), project())] == [None, None]
        assert [index.count(scope, kind) for scope, kind in places] == [0] * 4
        longer = np.ones(DIMENSION + 1, np.float32)
        for scope, kind in places:
            index.upsert(scope, kind, [("b", longer.reshape(1, -1))])
        for scope, kind in places:
            assert [hit.key for hit in index.search([scope], kind, longer, limit=5)] == ["b"]

    def test_clearing_a_scope_takes_its_vectors_and_its_state(self, index: VectorIndex) -> None:
        for scope in (home(), project()):
            index.upsert(scope, "episode", [("a", vectors([1]))])
            index.upsert(scope, "entity", [("a", vectors([1]))])
            index.set_state(scope, VectorState("m", 2, 7, "a", 6))
        index.clear(home())
        assert [index.count(home(), kind) for kind in ("episode", "entity")] == [0, 0]
        assert [index.count(project(), kind) for kind in ("episode", "entity")] == [1, 1]
        assert (index.state(home()), index.state(project())) == (None, VectorState("m", 2, 7, "a", 6))

    def test_an_index_that_is_used_is_well(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("a", vectors([1]))])
        found = index.diagnose()
        assert found
        assert [check for check, passed, _ in found if not passed] == []

    def test_threads_write_and_search_at_once(self, index: VectorIndex) -> None:
        index.upsert(home(), "episode", [("first", vectors([1]))])

        def write(part: int) -> int:
            for number in range(5):
                index.upsert(home(), "episode", [(f"{part}-{number}", vectors([0, 1], [0, 0, 1]))])
            return 0

        def search() -> int:
            return sum(index.search([home()], "episode", towards(1), limit=1)[0].key == "first" for _ in range(10))

        assert in_threads([lambda: write(1), lambda: write(2), search, search]) == [0, 0, 10, 10]
        assert index.count(home(), "episode") == 21


class CrowdedTests(VectorIndexHooks):
    """Results of a scope don't depend on the number of other scopes with nearer vectors."""

    def test_the_true_nearest_of_a_scope_are_found_among_many_others(self, index: VectorIndex) -> None:
        items = random_items(300, seed=2)
        index.upsert(home(), "episode", items)
        chance = np.random.default_rng(3)
        questions = chance.standard_normal((20, DIMENSION)).astype(np.float32)
        noise = 0.1 * chance.standard_normal((self.other_scopes, 3, DIMENSION)).astype(np.float32)
        nearer = [(scope_of(f"other {i}"), questions[i % 20] + noise[i]) for i in range(self.other_scopes)]
        self.crowd(index, nearer)
        hit, places = 0, 0
        for question in questions:
            found = index.search([home(), scope_of("other 7")], "episode", question, limit=11)
            wanted = set(nearest(items, question, 10))
            assert {one.scope.key for one in found} <= {home().key, scope_of("other 7").key}
            hit += len(wanted & {one.key for one in found if one.scope == home()})
            places += len(wanted)
        assert hit / places >= 0.99


class FollowingTests(VectorIndexHooks):
    """An index that follows a store has the entries of the store after any change to either."""

    def follower(self, store: GraphBackend, index: VectorIndex) -> VectorFollower:
        """Return a follower that copies the entries of a store to an index."""
        return VectorFollower(store, index, lambda: DIMENSION)

    def keys(self, index: VectorIndex, scope: Scope | None = None) -> list[str]:
        """Return all keys of episodes in an index."""
        return sorted(hit.key for hit in index.search([scope or home()], "episode", towards(1, 1, 1), limit=100))

    def put(self, store: GraphBackend, *entries: IndexEntry, scope: Scope | None = None) -> None:
        """Write index entries to the store."""
        store.write(scope or home(), Changes(index=entries))

    def test_what_is_behind_is_taken_in(self, store: GraphBackend, index: VectorIndex) -> None:
        follower = self.follower(store, index)
        self.put(store, entry(1, [1]), entry(2, [0, 1]))
        assert follower.sync(home())
        self.put(store, entry(3, [0, 0, 1]))
        assert self.keys(index) == [episode_id(1), episode_id(2)]
        assert follower.sync(home())
        assert self.keys(index) == [episode_id(number) for number in (1, 2, 3)]

    def test_an_episode_is_found_by_its_sentences_and_not_by_the_whole(
        self, store: GraphBackend, index: VectorIndex
    ) -> None:
        self.put(store, entry(1, [1], [0, 1], [0, 0, 1]), entry(2, [1]))
        self.follower(store, index).sync(home())
        found = {hit.key: hit.score for hit in index.search([home()], "episode", towards(1), limit=5)}
        assert found == pytest.approx({episode_id(1): 0.0, episode_id(2): 1.0}, abs=1e-3)

    def test_entities_are_taken_in(self, store: GraphBackend, index: VectorIndex) -> None:
        put_entities(store, entity(1))
        packed = vectors([1]).astype("<f2").tobytes()
        self.put(store, IndexEntry(kind="entity", key=entity_id(1), model="m", vectors=packed))
        self.follower(store, index).sync(home())
        assert [hit.key for hit in index.search([home()], "entity", towards(1), limit=5)] == [entity_id(1)]

    def test_an_entry_without_usable_vectors_is_not_found(self, store: GraphBackend, index: VectorIndex) -> None:
        self.put(store, entry(1, [0]), entry(2, [1]))
        self.put(store, entry(3, model="", complete=False))
        self.follower(store, index).sync(home())
        assert self.keys(index) == [episode_id(2)]

    def test_an_entry_that_was_written_again_counts_as_it_is_now(self, store: GraphBackend, index: VectorIndex) -> None:
        follower = self.follower(store, index)
        self.put(store, entry(1, [1], [1], [0, 1]))
        follower.sync(home())
        self.put(store, entry(1, [0, 0, 1]))
        follower.sync(home())
        assert index.count(home(), "episode") == 1

    def test_a_process_that_died_before_it_recorded_the_state_is_made_up_for(
        self, store: GraphBackend, index: VectorIndex
    ) -> None:
        self.put(store, entry(1, [1]))
        self.follower(store, index).sync(home())
        before = index.state(home())
        assert before is not None
        self.put(store, entry(2, [1], [1], [0, 1]))
        self.follower(store, index).sync(home())
        index.set_state(home(), before)  # simulates a crash at this point
        self.put(store, entry(2, [0, 0, 1]), entry(3, [1]))
        assert self.follower(store, index).sync(home())
        assert self.keys(index) == [episode_id(number) for number in (1, 2, 3)]
        assert index.count(home(), "episode") == 3

    def test_the_index_is_up_to_date_after_it_was_opened_again(
        self, store: GraphBackend, index: VectorIndex, tmp_path: Path
    ) -> None:
        self.put(store, *(entry(number, [1, number]) for number in range(1, 21)))
        self.follower(store, index).sync(home())
        self.put(store, entry(21, [1]))
        again = self.reopen(index, tmp_path)
        try:
            assert (self.keys(again) != [], again.state(home()) is not None) == (self.keeps, self.keeps)
            assert self.follower(store, again).sync(home())
            assert self.keys(again) == [episode_id(number) for number in range(1, 22)]
        finally:
            again.close()

    def test_entries_that_were_removed_are_gone(self, store: GraphBackend, index: VectorIndex) -> None:
        follower = self.follower(store, index)
        self.put(store, entry(1, [1]), entry(2, [1]))
        self.put(store, entry(31, [1]), scope=project())
        follower.sync(home())
        follower.sync(project())
        store.reset_index(home())
        self.put(store, entry(2, [1], model="another"))
        assert follower.sync(home())
        assert (self.keys(index), self.keys(index, project())) == ([episode_id(2)], [episode_id(31)])

    def test_a_store_that_lost_its_vectors_empties_the_index(self, store: GraphBackend, index: VectorIndex) -> None:
        follower = self.follower(store, index)
        self.put(store, entry(1, [1]))
        follower.sync(home())
        store.reset_index(home())
        assert follower.sync(home())
        assert (self.keys(index), index.state(home())) == ([], None)

    def test_an_index_that_followed_another_store_is_filled_anew(
        self, store: GraphBackend, index: VectorIndex, tmp_path: Path
    ) -> None:
        with_more = open_backend(f"memory://{'.'.join(tmp_path.parts[-3:])}.other")
        with_more.add_episodes(home(), [episode(number) for number in range(1, 90)])
        self.put(with_more, *(entry(number, [1]) for number in range(40, 80)))
        self.follower(with_more, index).sync(home())
        with_more.close()
        self.put(store, entry(1, [1]), entry(2, [1]))
        assert self.follower(store, index).sync(home())
        assert self.keys(index) == [episode_id(1), episode_id(2)]

    def test_a_sync_out_of_time_is_gone_on_with(self, store: GraphBackend, index: VectorIndex) -> None:
        names = [IndexEntry(kind="name", key=f"name {number}", model="m") for number in range(1500)]
        self.put(store, entry(1, [1]), *names, entry(2, [1]))
        follower = self.follower(store, index)
        read: list[int] = []
        assert not follower.sync(home(), seconds=0)
        assert self.keys(index) == [episode_id(1)]
        assert follower.sync(home(), on_progress=read.append)
        assert self.keys(index) == [episode_id(1), episode_id(2)]
        assert read == [502]

    def test_two_followers_of_one_scope_end_with_what_the_store_has(
        self, store: GraphBackend, index: VectorIndex
    ) -> None:
        self.put(store, *(entry(number, [1, number]) for number in range(1, 21)))
        followers = [self.follower(store, index) for _ in range(2)]
        in_threads([lambda f=follower: f.sync(home()) for follower in followers])
        self.put(store, entry(3, [1], [1], [1]))
        assert all(follower.sync(home()) for follower in followers)
        assert index.count(home(), "episode") == 21


class VectorIndexTests(VectorSearchTests, VectorWriteTests, CrowdedTests, FollowingTests):
    """All tests of a vector index; see `VectorIndexHooks` for the hooks."""
