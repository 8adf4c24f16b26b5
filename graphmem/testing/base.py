"""The hooks of the conformance kit, and what its tests share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
from graphmem.testing.rows import SCOPES

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which a thread that hasn't finished counts as stuck."""


class StoreTests(ABC):
    """Hooks that a subclass fills in: how to get a store to test."""

    stateful_settings: ClassVar[settings] = settings(
        max_examples=40,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    """How long random operations search; a subclass may set more examples."""

    @abstractmethod
    def open_store(self, tmp_path: Path) -> GraphBackend:
        """Return a fresh, empty store.

        Parameters
        ----------
        tmp_path
            An empty directory for its files; another one at each call.
        """

    def reopen(self, store: GraphBackend) -> GraphBackend | None:  # noqa: ARG002  for subclasses
        """Return another connection to the data of `store`, or None if such a store has only one."""
        return None

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[GraphBackend]:
        """Open a fresh store, and close it after the test."""
        store = self.open_store(tmp_path)
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


@dataclass(frozen=True)
class Contents:
    """Everything that a store shows of one scope."""

    entities: list[Entity]
    aliases: list[Alias]
    edges: list[Edge]
    episodes: list[Episode]
    mentions: list[Mention]
    communities: list[Community]
    memberships: list[Membership]
    recalls: list[RecallTrace]
    merges: list[Merge]
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
        stats=store.stats(scope),
    )


def everything(store: GraphBackend, scopes: Sequence[Scope] = SCOPES) -> dict[str, Contents]:
    """Read all rows of several scopes, by the scopes' keys."""
    return {scope.key: contents(store, scope) for scope in scopes}


def in_threads(works: Sequence[Callable[[], T]]) -> list[T]:
    """Run each piece of work in a thread of its own, all started together, and return their results in order.

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
