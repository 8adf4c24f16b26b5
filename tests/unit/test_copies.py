"""Which copies of the index stay in memory: those used last, as many as fit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphmem import GraphMemory
from graphmem.index.copies import MEMORY, Copies
from graphmem.index.encoder import EpisodeEncoder
from graphmem.index.entity_vectors import EntityVectors, entity_entry
from graphmem.models import Changes, IndexEntry, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.search.search_index import SearchIndex
from graphmem.settings import Settings
from graphmem.testing.rows import entity, entity_id, episode, put_entities
from graphmem.text.names import PlainPhrases


@pytest.fixture
def store() -> Iterator[GraphBackend]:
    backend = open_backend("memory://")
    yield backend
    backend.close()


def test_as_many_copies_are_kept_as_fit_and_the_least_recently_used_goes_first() -> None:
    copies = Copies[str, bytearray](len, 10)
    for key in "abcde":
        copies.put(key, bytearray(2))
    copies.put("a", bytearray(2))
    copies.put("f", bytearray(3))
    assert copies.cached_keys() == ["d", "e", "a", "f"]
    copies.drop(lambda key: key in "ae")
    copies.put("g", bytearray(5))
    assert copies.cached_keys() == ["d", "f", "g"]
    assert copies.get("d") is not None
    copies.put("h", bytearray(3))
    assert copies.cached_keys() == ["g", "d", "h"]


def test_a_copy_that_has_grown_displaces_others_and_the_last_one_stays_whatever_its_size() -> None:
    copies = Copies[str, bytearray](len, 10)
    large = copies.put("large", bytearray(1))
    copies.put("small", bytearray(1))
    large.extend(bytes(20))
    copies.measure("large", large)
    assert copies.cached_keys() == ["large"]
    copies.put("small", bytearray(1))
    assert copies.cached_keys() == ["small"]


def test_a_copy_that_was_dropped_while_it_was_read_is_not_kept_again() -> None:
    copies = Copies[str, bytearray](len, 10)
    copy = copies.put("a", bytearray(1))
    copies.drop(lambda _: True)
    copies.measure("a", copy)
    assert copies.cached_keys() == []


def reads(monkeypatch: pytest.MonkeyPatch, store: GraphBackend) -> list[Scope]:
    """Return a list to which the scopes are added whose index is read."""
    scopes, pages = list[Scope](), store.entry_pages

    def counted(scope: Scope, **options: Any) -> Iterator[list[IndexEntry]]:
        scopes.append(scope)
        return pages(scope, **options)

    monkeypatch.setattr(store, "entry_pages", counted)
    return scopes


def test_the_index_of_each_of_many_users_is_read_once(monkeypatch: pytest.MonkeyPatch, store: GraphBackend) -> None:
    users = [Scope(f"user {n}") for n in range(50)]
    index = SearchIndex(store, EpisodeEncoder(None, PlainPhrases()))
    for n, user in enumerate(users):
        store.add_episodes(user, [episode(n, scope=user, text="We met in Porto.")])
        assert index.index_waiting(user)
    read = reads(monkeypatch, store)
    for user in [*users, *users]:
        with index.copy([user]) as copy:
            assert len(copy.corpus) == 1
    assert read == users


@pytest.mark.parametrize(("megabytes", "times"), [(1, 2), (2, 1)])
def test_the_setting_limits_the_size_of_copies(monkeypatch: pytest.MonkeyPatch, megabytes: int, times: int) -> None:
    given: dict[str, Any] = {"extractor": "none", "embeddings": "none", "index_memory_mb": megabytes}
    with GraphMemory.open("memory://", background=False, **given) as memory:
        users = [memory.in_scope(f"user {n}") for n in range(3)]
        for user in users:
            user.remember(" ".join(f"word{n}" for n in range(2_400)), speaker="Maya")  # about 0.5 MB
        read = reads(monkeypatch, memory._engine.backend)  # pyright: ignore[reportPrivateUsage]
        for user in [*users, *users]:
            assert user.search("word7")
        assert read == [user.scope for user in users] * times


def test_the_size_of_a_small_copy_includes_its_objects(store: GraphBackend) -> None:
    index = SearchIndex(store, EpisodeEncoder(None, PlainPhrases()))
    users = [Scope(f"user {n}") for n in range(60)]
    for n, user in enumerate(users):
        store.add_episodes(user, [episode(n, user, text="We met in Porto.")])
        index.index_waiting(user)
    sizes: list[int] = []
    tracemalloc.start()
    try:
        for user in users:
            with index.copy([user]) as copy:
                sizes.append(copy.corpus.nbytes)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.5 * used < sum(sizes) < 2 * used


def test_vectors_of_entities_are_kept_up_to_the_same_size(store: GraphBackend) -> None:
    scopes = [Scope(f"user {n}") for n in range(20)]
    vectors = EntityVectors(store, memory=10_000)
    for n, scope in enumerate(scopes):
        put_entities(store, entity(n, scope=scope))
        entry = entity_entry(entity_id(n), "person", "m", np.ones(384, np.float32))
        store.write(scope, Changes(index=(entry,)))
        assert vectors.nearest(scope, [("person", np.ones(384, np.float32))], 0.5) != [[]]
    assert 0 < len(vectors.scopes) < len(scopes)
    assert vectors.scopes == scopes[-len(vectors.scopes) :]


def test_the_default_is_that_of_the_setting() -> None:
    assert Settings().index_memory_mb * 1_000_000 == MEMORY
