"""Tests of atomicity: single writes, transactions, and their visibility to other connections."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from threading import Event, Thread

import pytest

from graphmem.errors import Conflict, GraphMemError
from graphmem.models import (
    Alias,
    Changes,
    CommunityQuery,
    Corroboration,
    EdgeExpiry,
    EdgeQuery,
    EntityQuery,
    EpisodeEnd,
    EpisodeExpiry,
    EpisodeQuery,
    EpisodeRedaction,
    JobState,
    MembershipQuery,
    Mention,
    ProcessingResult,
    RecallQuery,
    Removal,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import PATIENCE, StoreTests, contents, everything, own_scopes
from graphmem.testing.merges import merge
from graphmem.testing.rows import (
    FUTURE,
    claimer,
    community,
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    membership,
    numbers_of,
    put_edges,
    put_entities,
    put_episodes,
    put_graph,
    recall_trace,
)
from graphmem.testing.upkeep import index_entry


def good() -> Changes:
    """Return a write with rows in every field of `Changes`."""
    return Changes(
        entities=(entity(3), entity(1, summary="changed")),
        aliases=(Alias(alias="annie", entity_type="person", entity_id=entity_id(1)),),
        expiries=(EdgeExpiry(edge_id(1), day(3), day(4), edge_id(2)),),
        edges=(edge(2, 1, 3), edge(3, 3, 1, confidence=0.5)),
        corroborations=(Corroboration(edge_id(3), 0.75, (episode_id(1),)),),
        mentions=(Mention(entity_id=entity_id(3), episode_id=episode_id(1), surface="x", seen_at=day(1)),),
        results=(ProcessingResult(episode_id(1), processed_at=day(5), attempts=1),),
        communities=(community(1), community(2, level=1)),
        memberships=(membership(3, 1), membership(1, 2)),
        redactions=(EpisodeRedaction(episode_id(1), "redacted"),),
        episode_ends=(EpisodeEnd(episode_id(1), day(7)),),
        episode_expiries=(EpisodeExpiry(episode_id(1), day(8)),),
        recalls=(recall_trace(1, seeds=[3], facts=[(3, 1)]),),
        index=(index_entry(episode_id(1)),),
        merges=(merge(1, 1, 2),),
        job_states=(JobState("a", day(1)),),
        removals=(Removal("edge", edge_id(8)),),
    )


BAD: dict[str, Callable[[], Changes]] = {
    "entities": lambda: Changes(entities=(entity(9, name="Entity 2"),)),
    "aliases": lambda: Changes(aliases=(Alias(alias="ghost", entity_type="person", entity_id=entity_id(99)),)),
    "expiries": lambda: Changes(expiries=(EdgeExpiry(edge_id(99), day(3), day(4)),)),
    "edges": lambda: Changes(edges=(edge(9, 2, 1),)),
    "corroborations": lambda: Changes(corroborations=(Corroboration(edge_id(99), 0.5),)),
    "mentions": lambda: Changes(
        mentions=(Mention(entity_id=entity_id(99), episode_id=episode_id(1), surface="x", seen_at=day(1)),)
    ),
    "results": lambda: Changes(results=(ProcessingResult(episode_id(99), processed_at=day(5)),)),
    "redactions": lambda: Changes(redactions=(EpisodeRedaction(episode_id(99), "less"),)),
    "communities": lambda: Changes(communities=(community(9, parent_id=community(99).id),)),
    "memberships": lambda: Changes(memberships=(membership(99, 1),)),
    "recalls": lambda: Changes(recalls=(recall_trace(9, facts=[(99, 1)]),)),
}


class Oops(Exception):
    """Exception that the tests raise in a transaction."""


class AtomicityTests(StoreTests):
    """A write or a transaction is applied as a whole or not at all."""

    @pytest.mark.parametrize("part", BAD)
    def test_a_write_that_fails_in_one_part_leaves_no_trace_of_the_others(self, store: GraphBackend, part: str) -> None:
        _fill(store)
        before = everything(store)
        with pytest.raises(GraphMemError):
            store.write(home(), _joined(good(), BAD[part]()))
        assert everything(store) == before

    def test_a_good_write_brings_every_part(self, store: GraphBackend) -> None:
        assert all(getattr(good(), part.name) for part in fields(Changes))
        _fill(store)
        store.write(home(), good())
        stats = store.stats(home())
        assert (stats.entities, stats.aliases, stats.edges, stats.active_edges, stats.mentions) == (3, 3, 4, 3, 1)
        assert (stats.communities, stats.recalls) == (2, 1)
        there = contents(store, home())
        assert there.episodes == [
            episode(1, text="redacted", processed_at=day(5), attempts=1, ended_at=day(7), expires_at=day(8))
        ]
        assert (len(there.index), there.index_model, len(there.merges), len(there.job_states)) == (1, "m", 1, 1)

    def test_an_empty_write_changes_nothing(self, store: GraphBackend) -> None:
        store.write(home(), Changes())
        assert own_scopes(store) == []

    def test_a_transaction_returns_what_its_work_returns(self, store: GraphBackend) -> None:
        assert store.atomic(lambda: 42) == 42

    @pytest.mark.parametrize("error", [Oops, KeyboardInterrupt])
    def test_an_exception_undoes_all_that_the_work_wrote_and_comes_out_as_it_is(
        self, store: GraphBackend, error: type[BaseException]
    ) -> None:
        _fill(store)
        before = everything(store)

        def work() -> None:
            store.write(home(), good())
            store.add_episodes(home(), [episode(5, external_id="x")])
            store.record_retrievals([home()], [edge_id(2)], day(6))
            raise error("stop")

        with pytest.raises(error, match="stop"):
            store.atomic(work)
        assert everything(store) == before

    def test_claims_of_an_undone_transaction_are_undone(self, store: GraphBackend) -> None:
        put_episodes(store, 1)

        def work() -> None:
            store.claim_episodes(claimer("a"), now=day(1), until=FUTURE, limit=1, scopes=[home()])
            raise Oops

        with pytest.raises(Oops):
            store.atomic(work)
        assert claimer("a") not in store.claim_owners(day(1))
        assert len(store.claim_episodes(claimer("b"), now=day(1), until=FUTURE, limit=1, scopes=[home()])) == 1

    def test_an_external_id_of_an_undone_transaction_is_free(self, store: GraphBackend) -> None:
        def work() -> None:
            store.add_episodes(home(), [episode(1, external_id="x")])
            raise Oops

        with pytest.raises(Oops):
            store.atomic(work)
        assert store.add_episodes(home(), [episode(2, external_id="x")]) == [(episode_id(2), True)]

    def test_the_work_sees_what_it_wrote_through_every_read(self, store: GraphBackend) -> None:
        _fill(store)

        def work() -> dict[str, object]:
            store.write(home(), good())
            return {
                "find_entities": numbers_of(store.find_entities([home()], EntityQuery())),
                "resolve_names": [row.id for _, row in store.resolve_names(home(), ["annie"])],
                "search by word": len(store.search_entities([home()], words=["changed"], phrases=[], limit=9)),
                "find_edges": len(store.find_edges([home()], EdgeQuery(versions="active"))),
                "find_active_facts": len(store.find_active_facts(home())),
                "find_mentions": len(store.find_mentions([home()])),
                "find_episodes": len(store.find_episodes([home()], EpisodeQuery(state="processed"))),
                "find_communities": len(store.find_communities([home()], CommunityQuery())),
                "find_memberships": len(store.find_memberships([home()], MembershipQuery())),
                "find_recalls": len(store.find_recalls([home()], RecallQuery())),
                "expand": store.expand([home()], [entity_id(3)], hops=1).node_ids,
                "stats": store.stats(home()).entities,
            }

        assert store.atomic(work) == {
            "find_entities": [1, 2, 3],
            "resolve_names": [entity_id(1)],
            "search by word": 1,
            "find_edges": 3,
            "find_active_facts": 3,
            "find_mentions": 1,
            "find_episodes": 1,
            "find_communities": 2,
            "find_memberships": 2,
            "find_recalls": 1,
            "expand": [entity_id(3), entity_id(1)],
            "stats": 3,
        }

    def test_what_a_transaction_wrote_stays(self, store: GraphBackend) -> None:
        _fill(store)
        during = store.atomic(lambda: (store.write(home(), good()), everything(store))[1])
        assert everything(store) == during

    def test_a_nested_transaction_ends_with_the_outer_one(self, store: GraphBackend) -> None:
        _fill(store)
        before = everything(store)

        def outer() -> None:
            store.atomic(lambda: store.write(home(), good()))
            raise Oops

        with pytest.raises(Oops):
            store.atomic(outer)
        assert everything(store) == before

    def test_nested_transactions_stay_together(self, store: GraphBackend) -> None:
        def outer() -> int:
            put_entities(store, entity(1))
            return store.atomic(lambda: (put_entities(store, entity(2)), 7)[1])

        assert store.atomic(outer) == 7
        assert numbers_of(store.find_entities([home()], EntityQuery())) == [1, 2]

    def test_a_refused_write_inside_of_a_transaction_leaves_nothing_and_the_rest_stays(
        self, store: GraphBackend
    ) -> None:
        def work() -> None:
            put_entities(store, entity(1))
            with pytest.raises(Conflict):
                store.write(home(), Changes(entities=(entity(2), entity(3, name="Entity 1"))))
            put_entities(store, entity(4))

        store.atomic(work)
        assert numbers_of(store.find_entities([home()], EntityQuery())) == [1, 4]

    def test_a_store_works_on_after_an_undone_transaction(self, store: GraphBackend) -> None:
        def work() -> None:
            put_graph(store, edge(1, 1, 2))
            raise Oops

        with pytest.raises(Oops):
            store.atomic(work)
        put_graph(store, edge(1, 1, 2))
        assert len(store.find_edges([home()], EdgeQuery())) == 1

    def test_others_never_see_half_of_a_transaction(self, store: GraphBackend) -> None:
        started, done = Event(), Event()
        seen: set[int] = set()

        def watch() -> None:
            while True:
                last = done.is_set()
                seen.add(len(store.find_entities([home()], EntityQuery())))
                started.set()
                if last:
                    return

        def work() -> None:
            for n in range(20):
                put_entities(store, entity(n))

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        assert started.wait(PATIENCE)
        store.atomic(work)
        done.set()
        watcher.join(PATIENCE)
        assert seen == {0, 20}

    def test_others_never_see_what_is_undone(self, store: GraphBackend) -> None:
        started, done = Event(), Event()
        seen: set[int] = set()

        def watch() -> None:
            while not done.is_set():
                seen.add(len(store.find_entities([home()], EntityQuery())))
                started.set()

        def work() -> None:
            for n in range(20):
                put_entities(store, entity(n))
            raise Oops

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        assert started.wait(PATIENCE)
        with pytest.raises(Oops):
            store.atomic(work)
        done.set()
        watcher.join(PATIENCE)
        assert seen == {0}


def _fill(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 2), edge(9, 2, 1, relation="likes"))
    put_edges(store, edge(8, 2, 1))
    put_episodes(store, 1)


def _joined(one: Changes, two: Changes) -> Changes:
    return Changes(**{part.name: getattr(one, part.name) + getattr(two, part.name) for part in fields(Changes)})
