"""Hooks of the conformance kit and helpers shared by its tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier, Thread
from typing import ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from graphmem.models import (
    Alias,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    IndexEntry,
    JobState,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    RecallQuery,
    RecallTrace,
    Scope,
    StoreStats,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.rows import World, all_scopes, new_world, world

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which a thread that hasn't finished counts as stuck."""


class StoreTests(ABC):
    """Base class with the hooks that a subclass overrides to provide the store to test."""

    shares_store: ClassVar[bool] = False
    """Whether all tests of the class share one store that is opened once; each test uses scopes of its own.

    Use it for stores that are slow to open or used by others at the same time. If False, each test opens a store.
    """

    stateful_settings: ClassVar[settings] = settings(
        max_examples=40,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    """How long random operations search; a subclass may set more examples."""

    @abstractmethod
    def open_store(self, tmp_path: Path) -> GraphBackend:
        """Return a store: a new, empty one, or with `shares_store` any store in which tests may create scopes.

        Parameters
        ----------
        tmp_path
            An empty directory for its files; a different one for each call.
        """

    def open_empty_store(self, tmp_path: Path) -> GraphBackend:
        """Return an empty store that nobody else uses, for tests of the whole store."""
        return self.open_store(tmp_path)

    def reopen(self, store: GraphBackend) -> GraphBackend | None:  # noqa: ARG002  for subclasses
        """Return another connection to the data of `store`, or None if the store supports only one."""
        return None

    def discard(self, store: GraphBackend, scopes: Sequence[Scope]) -> None:
        """Remove the rows of a test from these scopes of a shared store; the default uses the store's `clear`."""
        for scope in scopes:
            store.clear(scope)

    @pytest.fixture(autouse=True)
    def world(self) -> Iterator[World]:
        """Create scopes and row ids for the test."""
        with new_world() as world:
            yield world

    @pytest.fixture(scope="class")
    @classmethod
    def shared_store(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphBackend]:
        """Open the store of all tests of a class."""
        store = cls().open_store(tmp_path_factory.mktemp("store"))
        yield store
        store.close()

    @pytest.fixture
    def store(self, request: pytest.FixtureRequest, world: World) -> Iterator[GraphBackend]:
        """Return the store under test with empty scopes for the test; they are cleared after it."""
        if not self.shares_store:
            yield request.getfixturevalue("own_store")
            return
        store: GraphBackend = request.getfixturevalue("shared_store")
        yield store
        self.discard(store, world.scopes)
        left = [scope.key for scope in store.scopes() if scope in world.scopes]
        assert left == [], f"cleared scopes still exist: {left}"

    @pytest.fixture
    def own_store(self, request: pytest.FixtureRequest, tmp_path: Path, world: World) -> Iterator[GraphBackend]:
        """Open a store for one test, which may close it."""
        shared: GraphBackend | None = request.getfixturevalue("shared_store") if self.shares_store else None
        store = self.open_store(tmp_path)
        yield store
        store.close()
        if shared is not None:
            self.discard(shared, world.scopes)

    @pytest.fixture
    def empty_store(self, tmp_path: Path) -> Iterator[GraphBackend]:
        """Open an empty store that nobody else uses, and close it after the test."""
        store = self.open_empty_store(tmp_path)
        yield store
        store.close()

    @pytest.fixture
    def second(self, store: GraphBackend) -> Iterator[GraphBackend]:
        """Open another connection to the data of the store under test."""
        second = self.reopen(store)
        if second is None:
            pytest.skip("this store has one connection only")
        yield second
        second.close()


def own_scopes(store: GraphBackend) -> list[Scope]:
    """Return the scopes of the running test that aren't empty, in the order of the store."""
    ours = world().scopes
    return [scope for scope in store.scopes() if scope in ours]


@dataclass(frozen=True)
class Contents:
    """All rows that a store returns for one scope."""

    entities: list[Entity]
    aliases: list[Alias]
    edges: list[Edge]
    episodes: list[Episode]
    mentions: list[Mention]
    communities: list[Community]
    memberships: list[Membership]
    recalls: list[RecallTrace]
    merges: list[Merge]
    index: list[IndexEntry]
    index_model: str | None
    job_states: list[JobState]
    stats: StoreStats


def contents(store: GraphBackend, scope: Scope) -> Contents:
    """Read all rows of a scope (up to 100,000 of each kind)."""
    limit = 100_000
    entities = store.find_entities([scope], EntityQuery(archived=True), limit=limit)
    return Contents(
        entities=entities,
        aliases=store.find_aliases([scope], [e.id for e in entities]),
        edges=store.find_edges([scope], EdgeQuery(versions="all"), limit=limit),
        episodes=store.find_episodes([scope], EpisodeQuery(), limit=limit),
        mentions=store.find_mentions([scope], limit=limit),
        communities=store.find_communities([scope], CommunityQuery(ended=True), limit=limit),
        memberships=store.find_memberships([scope], MembershipQuery(ended=True), limit=limit),
        recalls=store.find_recalls([scope], RecallQuery(), limit=limit),
        merges=store.find_merges([scope], MergeQuery(undone=True), limit=limit),
        index=sorted((_unplaced(e) for e in store.read_index(scope, limit=limit)), key=lambda e: (e.kind, e.key)),
        index_model=store.index_state(scope).model,
        job_states=store.find_job_states(scope),
        stats=store.stats(scope),
    )


def _unplaced(entry: IndexEntry) -> IndexEntry:
    """Return an entry of the index without its position, which differs between stores."""
    return replace(entry, position=0)


def everything(store: GraphBackend, scopes: Sequence[Scope] | None = None) -> dict[str, Contents]:
    """Read all rows of several scopes, by default the three of the test, by scope key."""
    return {scope.key: contents(store, scope) for scope in scopes or all_scopes()}


def in_threads(works: Sequence[Callable[[], T]]) -> list[T]:
    """Run each function in its own thread, all started together, and return the results in order.

    Raises
    ------
    Exception
        The first error of a thread.
    AssertionError
        If a thread is stuck.
    """
    barrier = Barrier(len(works))
    results: dict[int, T] = {}
    errors: list[Exception] = []

    def run(position: int, work: Callable[[], T]) -> None:
        try:
            barrier.wait(PATIENCE)
            results[position] = work()
        except Exception as error:  # noqa: BLE001  handed to the caller below
            errors.append(error)

    threads = [Thread(target=run, args=item, daemon=True) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), f"a thread is stuck after {PATIENCE} s"
    return [results[position] for position in range(len(works))]
