"""Tests of upkeep in a store (job states, decay, idle entities, complete removal), and of recall traces."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from graphmem.errors import InvalidInput
from graphmem.models import (
    AsOf,
    Changes,
    CommunityQuery,
    EdgeQuery,
    EpisodeQuery,
    EpisodeRedaction,
    IndexEntry,
    JobState,
    RecallQuery,
    RecallTrace,
    Removal,
    StoreStats,
    TracedFact,
    TracedSeed,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents, everything, own_scopes
from graphmem.testing.merges import mention, merge, put_merges
from graphmem.testing.rows import (
    community,
    community_id,
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
    project,
    put_communities,
    put_edges,
    put_entities,
    put_episodes,
    put_graph,
    put_recalls,
    recall_id,
    recall_trace,
    traced_episode,
)


def index_entry(key: str, kind: str = "episode") -> IndexEntry:
    """Return a small entry of the index."""
    return IndexEntry(kind=kind, key=key, model="m", vectors=b"\x00\x3c", detail="{}")  # pyright: ignore[reportArgumentType]


class JobStateTests(StoreTests):
    """States of jobs are stored by scope and job."""

    def test_every_field_of_a_job_state_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        job_states = (JobState("b", day(1), 7, day(2), "cursor “ü”"), JobState("a"))
        store.write(home(), Changes(job_states=job_states))
        assert store.find_job_states(home()) == [job_states[1], job_states[0]]
        assert store.find_job_states(project()) == []

    def test_a_job_state_is_replaced_by_job(self, store: GraphBackend) -> None:
        store.write(home(), Changes(job_states=(JobState("a", day(1), 7, day(2), "x"),)))
        store.write(home(), Changes(job_states=(JobState("a", day(3), 8),)))
        assert store.find_job_states(home()) == [JobState("a", day(3), 8)]

    def test_job_states_of_one_job_in_two_scopes_are_apart(self, store: GraphBackend) -> None:
        for scope, n in ((home(), 1), (project(), 101)):
            put_entities(store, entity(n, scope))
            store.write(scope, Changes(job_states=(JobState("a", day(n)),)))
        assert [store.find_job_states(scope) for scope in (home(), project())] == [
            [JobState("a", day(1))],
            [JobState("a", day(101))],
        ]

    def test_a_job_state_is_undone_with_its_transaction(self, store: GraphBackend) -> None:
        store.write(home(), Changes(job_states=(JobState("a", day(1)),)))

        def work() -> None:
            store.write(home(), Changes(job_states=(JobState("a", day(2)), JobState("b"))))
            raise InvalidInput("stop")

        with pytest.raises(InvalidInput):
            store.atomic(work)
        assert store.find_job_states(home()) == [JobState("a", day(1))]


class DecayTests(StoreTests):
    """Retrieval counts decay by the days since their last change."""

    def test_a_count_fades_by_the_days_since_its_last_retrieval(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, retrieval_count=8.0, last_retrieved_at=day(0)), edge(2, 2, 3))
        done = store.decay_retrievals(home(), rate=0.1, idle_since=day(9), since=None, now=day(10))
        assert done == (1, "")
        counts = {e.id: e.retrieval_count for e in store.find_edges([home()], EdgeQuery(versions="all"))}
        assert counts == {edge_id(1): pytest.approx(8 * math.exp(-1)), edge_id(2): 0.0}

    def test_a_count_fades_no_further_than_since_it_faded_last(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, retrieval_count=8.0, last_retrieved_at=day(0)))
        store.decay_retrievals(home(), rate=0.1, idle_since=day(9), since=day(8), now=day(10))
        assert store.get_edges([home()], [edge_id(1)])[edge_id(1)].retrieval_count == pytest.approx(8 * math.exp(-0.2))

    def test_what_was_retrieved_of_late_keeps_its_count(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, retrieval_count=8.0, last_retrieved_at=day(9.5)))
        store.decay_retrievals(home(), rate=0.1, idle_since=day(9), since=day(8), now=day(10))
        assert store.get_edges([home()], [edge_id(1)])[edge_id(1)].retrieval_count == 8.0

    def test_a_count_that_is_next_to_nothing_becomes_nothing_and_is_not_looked_at_again(
        self, store: GraphBackend
    ) -> None:
        put_graph(store, edge(1, 1, 2, retrieval_count=1.0, last_retrieved_at=day(0), valid_to=day(1)))
        for left in (1, 0):
            done = store.decay_retrievals(home(), rate=10.0, idle_since=day(9), since=None, now=day(10))
            assert done == (left, "")

    def test_all_counts_fade_page_by_page(self, store: GraphBackend) -> None:
        people = range(50)
        pairs = [(a, b) for a in people for b in people if a != b][:2300]
        used: dict[str, Any] = {"retrieval_count": 8.0, "last_retrieved_at": day(0)}
        put_graph(store, *(edge(n, a, b, **used) for n, (a, b) in enumerate(pairs)))
        counts, after = list[int](), ""
        while (after or not counts) and sum(counts) <= len(pairs):
            done, after = store.decay_retrievals(
                home(), rate=0.1, idle_since=day(9), since=None, now=day(10), after=after
            )
            counts.append(done)
        assert sum(counts) == len(pairs)
        left = [row.retrieval_count for row in store.all_edges([home()], EdgeQuery())]
        assert left == pytest.approx([8 * math.exp(-1)] * len(pairs))

    def test_decay_in_one_scope_touches_no_other(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, retrieval_count=8.0, last_retrieved_at=day(0)))
        before = everything(store)
        assert store.decay_retrievals(project(), rate=1.0, idle_since=day(9), since=None, now=day(10)) == (0, "")
        assert everything(store) == before


class IdleTests(StoreTests):
    """Idle and least connected entities are found for eviction."""

    def test_an_entity_is_not_idle_while_a_fact_about_it_goes_on(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, valid_to=day(9)), edge(2, 3, 4, valid_to=day(5), expired_at=day(1)))
        put_graph(store, edge(3, 5, 6, valid_to=day(4)), edge(4, 7, 8, valid_from=day(6), valid_to=day(6)))
        assert store.find_idle(home(), before=day(4), now=day(4)) == [entity_id(n) for n in (5, 6, 7, 8)]

    def test_an_entity_is_not_idle_while_a_fact_about_it_expired_lately(self, store: GraphBackend) -> None:
        put_graph(
            store,
            *(
                edge(n, 2 * n, 2 * n + 1, valid_to=day(1), expired_at=when)
                for n, when in ((1, day(4)), (2, day(4) + timedelta(microseconds=1)), (3, day(8)))
            ),
        )
        assert store.find_idle(home(), before=day(4), now=day(9)) == [entity_id(n) for n in (2, 3)]

    def test_an_entity_is_idle_without_active_facts_and_unseen(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 3, 4, valid_to=day(1), expired_at=day(1)), edge(3, 5, 2))
        put_entities(store, entity(6, last_seen_at=day(5)), entity(7, recorded_at=day(5)), entity(8))
        put_entities(store, entity(9, archived_at=day(1)))
        put_entities(store, entity(101, project()))
        assert store.find_idle(home(), before=day(4), now=day(4)) == [entity_id(n) for n in (3, 4, 8)]
        assert store.find_idle(home(), before=day(4), now=day(4), limit=2) == [entity_id(n) for n in (3, 4)]
        assert store.find_idle(home(), before=day(-1), now=day(4)) == []

    @pytest.mark.parametrize("seen", ["last_seen_at", "recorded_at"])
    def test_an_entity_is_idle_from_the_moment_on(self, store: GraphBackend, seen: str) -> None:
        tick = timedelta(microseconds=1)
        moments = (day(4) - tick, day(4), day(4) + tick)
        rows: list[dict[str, Any]] = [{seen: moment} for moment in moments]
        put_entities(store, *(entity(n, **fields) for n, fields in enumerate(rows)))
        assert store.find_idle(home(), before=day(4), now=day(9)) == [entity_id(0), entity_id(1)]

    def test_the_least_connected_come_first_then_those_seen_longest_ago(self, store: GraphBackend) -> None:
        people = [entity(n, last_seen_at=day(10 - n)) for n in range(1, 6)]
        put_entities(store, *people, entity(6, archived_at=day(1)))
        put_edges(store, edge(1, 1, 2), edge(2, 3, 1), edge(3, 4, 5, valid_to=day(1)))
        put_entities(store, entity(101, project()))
        expected = [entity_id(n) for n in (5, 4, 3, 2, 1)]
        assert store.find_least_connected(home()) == expected
        assert store.find_least_connected(home(), limit=3) == expected[:3]
        put_entities(store, *(entity(n, last_seen_at=day(9)) for n in (8, 7, 9)))
        assert store.find_least_connected(home()) == [entity_id(n) for n in (5, 4, 7, 8, 9, 3, 2, 1)]

    def test_the_facts_of_an_episode_are_those_that_it_stated_in_all_versions(self, store: GraphBackend) -> None:
        put_episodes(store, 1, 2, 3)
        both = (episode_id(1), episode_id(2))
        put_graph(store, edge(1, 1, 2, episode_ids=both), edge(2, 2, 3, valid_to=day(1), episode_ids=(episode_id(2),)))
        put_edges(store, edge(3, 3, 1, episode_ids=(episode_id(3),)), edge(4, 1, 3))
        assert store.find_edges_of_episodes(home(), [episode_id(2)]) == [edge_id(1), edge_id(2)]
        assert store.find_edges_of_episodes(home(), [episode_id(1), episode_id(3)]) == [edge_id(1), edge_id(3)]
        assert store.find_edges_of_episodes(project(), [episode_id(1)]) == []
        assert store.find_edges_of_episodes(home(), []) == []

    def test_the_facts_of_an_episode_are_found_whatever_characters_are_in_its_id(self, store: GraphBackend) -> None:
        own = episode_id(1)
        ids = [own, own[:-1], f"{own} {own}", f'"{own}"', f"{own}\\", f'{own}\\"', f"{own}*", f"{own.upper()} OR"]
        store.add_episodes(home(), [episode(1).changed(id=i) for i in ids])
        put_graph(store, *(edge(n, 1, 2, relation=f"r{n}", episode_ids=(i,)) for n, i in enumerate(ids, 1)))
        found = [store.find_edges_of_episodes(home(), [i]) for i in ids]
        assert found == [[edge_id(n)] for n in range(1, len(ids) + 1)]
        assert store.find_edges_of_episodes(home(), ids[4:]) == [edge_id(n) for n in range(5, len(ids) + 1)]
        assert store.find_edges_of_episodes(home(), [f"{own}?", "", " ", "*"]) == []


class ErasureTests(StoreTests):
    """Rows of every kind can be removed completely."""

    def test_an_episode_goes_with_all_that_names_it_and_its_facts_stay(self, store: GraphBackend) -> None:
        put_episodes(store, 1, 2)
        episode_ids = (episode_id(1), episode_id(2))
        put_graph(store, edge(1, 1, 2, episode_ids=episode_ids), edge(2, 2, 1, episode_ids=episode_ids[:1]))
        store.write(home(), Changes(mentions=(mention(1, 1), mention(1, 2)), index=(index_entry(episode_id(1)),)))
        put_recalls(store, recall_trace(1, seeds=[1], episodes=(traced_episode(1), traced_episode(2))))
        generation = store.index_state(home()).generation
        store.write(home(), Changes(removals=(Removal("episode", episode_id(1)),)))
        left = contents(store, home())
        assert [e.id for e in left.episodes] == [episode_id(2)]
        assert [e.episode_ids for e in left.edges] == [(episode_id(2),), ()]
        assert left.mentions == [mention(1, 2)]
        assert [len(trace.episodes) for trace in left.recalls] == [1]
        assert store.read_index(home()) == []
        assert store.index_state(home()).generation != generation
        assert store.find_edges_of_episodes(home(), [episode_id(1)]) == []

    def test_a_community_goes_with_its_members_and_its_parts_stay(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        parts = (community(1), community(2, level=1, parent_id=community_id(1)))
        put_communities(store, *parts, members=[membership(1, 1), membership(1, 2)])
        store.write(home(), Changes(removals=(Removal("community", community_id(1)),)))
        assert store.find_communities([home()], CommunityQuery()) == [community(2, level=1)]
        assert contents(store, home()).memberships == [membership(1, 2)]

    def test_a_trace_and_an_entry_of_the_index_go_by_themselves(self, store: GraphBackend) -> None:
        put_episodes(store, 1)
        put_recalls(store, recall_trace(1), recall_trace(2))
        store.write(home(), Changes(index=(index_entry(episode_id(1)), index_entry("anna", "name"))))
        generation = store.index_state(home()).generation
        gone = (Removal("recall", recall_id(1)), Removal("index", episode_id(1), "episode"))
        store.write(home(), Changes(removals=gone))
        assert [trace.id for trace in store.find_recalls([home()], RecallQuery())] == [recall_id(2)]
        assert [(entry.kind, entry.key) for entry in store.read_index(home())] == [("name", "anna")]
        assert store.index_state(home()).generation != generation
        assert store.find_unindexed(home(), "episode") == [episode_id(1)]

    def test_a_text_is_replaced_and_its_entry_of_the_index_goes(self, store: GraphBackend) -> None:
        put_episodes(store, 1)
        store.write(home(), Changes(index=(index_entry(episode_id(1)),)))
        [before] = store.find_episodes([home()], EpisodeQuery())
        store.write(home(), Changes(redactions=(EpisodeRedaction(episode_id(1), "less"),)))
        assert store.find_episodes([home()], EpisodeQuery()) == [before.changed(text="less")]
        assert store.read_index(home()) == []

    def test_what_is_of_another_scope_is_not_removed(self, store: GraphBackend) -> None:
        _fill(store, 0)
        before = everything(store)
        removals = (
            Removal("episode", episode_id(1)),
            Removal("community", community_id(1)),
            Removal("recall", recall_id(1)),
            Removal("index", episode_id(1), "episode"),
        )
        store.write(project(), Changes(removals=removals))
        assert everything(store) == before
        assert len(store.read_index(home())) == 1

    def test_a_scope_is_cleared_whole_and_no_other_is(self, store: GraphBackend) -> None:
        _fill(store, 0)
        put_graph(store, edge(101, 101, 102, project()))
        kept = contents(store, project())
        for _ in range(2):
            store.clear(home())
            assert own_scopes(store) == [project()]
            assert store.stats(home()) == StoreStats()
            assert (store.read_index(home()), store.find_job_states(home())) == ([], [])
            assert store.index_state(home()).model is None
        assert contents(store, project()) == kept
        assert store.scrub() or self.shares_store  # others may use the store

    @pytest.mark.parametrize("cleared", [False, True], ids=["removed", "cleared"])
    def test_an_external_id_is_free_when_its_episode_is_gone(self, store: GraphBackend, cleared: bool) -> None:
        store.add_episodes(home(), [episode(1, external_id="x")])
        if cleared:
            store.clear(home())
        else:
            store.write(home(), Changes(removals=(Removal("episode", episode_id(1)),)))
        again = episode(2, external_id="x")
        assert store.add_episodes(home(), [again]) == [(episode_id(2), True)]
        assert store.find_episodes([home()], EpisodeQuery(external_ids=("x",))) == [again]

    def test_the_index_of_a_cleared_scope_never_has_a_generation_again(self, store: GraphBackend) -> None:
        seen: list[int] = []
        for _ in range(3):
            _fill(store, 0)
            seen.append(store.index_state(home()).generation)
            store.write(home(), Changes(removals=(Removal("index", episode_id(1), "episode"),)))
            seen.append(store.index_state(home()).generation)
            store.clear(home())
        assert len(set(seen)) == len(seen)


def _fill(store: GraphBackend, start: int) -> None:
    """Write rows of every kind to the scope."""
    put_episodes(store, start + 1)
    put_graph(store, edge(start + 1, start + 1, start + 2, episode_ids=(episode_id(start + 1),)))
    put_communities(store, community(start + 1), members=[membership(start + 1, start + 1)])
    put_recalls(store, recall_trace(start + 1, seeds=[start + 1], facts=[(start + 1, start + 2)]))
    put_merges(store, merge(start + 1))
    job_states = (JobState("a", day(1)),)
    changes = Changes(
        mentions=(mention(start + 1, start + 1),), index=(index_entry(episode_id(start + 1)),), job_states=job_states
    )
    store.write(home(), changes)
    store.claim_episodes("a", now=day(1), until=day(2), limit=9, scopes=[home()])


class RecallTests(StoreTests):
    """Traces are stored completely and found by every field of `RecallQuery`."""

    def test_every_field_of_a_trace_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        _fill_traces(store)
        written = RecallTrace(
            id=recall_id(1),
            scope=home(),
            query="Where does Zoë “live”?\n% _ \\ ' 北京 🦊",
            strategy="ppr",
            asked_at=day(1.5),
            as_of=AsOf(day(-3), day(2.25)),
            seeds=(
                TracedSeed(entity_id=entity_id(2), score=0.1 + 0.2),
                TracedSeed(entity_id=entity_id(1), score=0.0),
            ),
            facts=(
                _fact(2, 1, score=1.75, hop=1, channel="graph", rank=1),
                _fact(1, 2, score=-0.5, hop=0, channel="fact", rank=None),
                _fact(2, 3, score=0.25, hop=2, channel="semantic", rank=2),
            ),
            episodes=(
                traced_episode(2, score=3.5, rank=1),
                traced_episode(1, channel="graph"),
                traced_episode(2, channel="semantic", rank=2),
            ),
        )
        put_recalls(store, written)
        assert store.find_recalls([home()], RecallQuery()) == [written]

    def test_a_trace_that_found_nothing_is_kept(self, store: GraphBackend) -> None:
        put_recalls(store, recall_trace(1))
        assert store.find_recalls([home()], RecallQuery()) == [recall_trace(1)]
        assert own_scopes(store) == [home()]

    def test_a_trace_is_written_once(self, store: GraphBackend) -> None:
        _fill_traces(store)
        put_recalls(store, recall_trace(1, seeds=[1]))
        put_recalls(store, recall_trace(1, seeds=[2], query="another?"), recall_trace(2, seeds=[2]))
        assert store.find_recalls([home()], RecallQuery()) == [recall_trace(1, seeds=[1]), recall_trace(2, seeds=[2])]

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            (lambda: {"ids": (recall_id(3), recall_id(1), recall_id(1), recall_id(9))}, [1, 3]),
            (lambda: {"entity_ids": (entity_id(1),)}, [1]),
            (lambda: {"entity_ids": (entity_id(2),)}, [2, 3]),
            (lambda: {"entity_ids": (entity_id(1), entity_id(2), entity_id(9))}, [1, 2, 3]),
            (lambda: {"edge_ids": (edge_id(1),)}, [2, 3]),
            (lambda: {"edge_ids": (edge_id(2), edge_id(9))}, [3]),
            (lambda: {"episode_ids": (episode_id(1),)}, [2]),
            (lambda: {"episode_ids": (episode_id(1), episode_id(2))}, [2, 4]),
            (lambda: {"entity_ids": (entity_id(2),), "edge_ids": (edge_id(2),)}, [3]),
            (lambda: {"entity_ids": (entity_id(2),), "episode_ids": (episode_id(1),)}, [2]),
            (lambda: {"edge_ids": (edge_id(1),), "episode_ids": (episode_id(2),)}, []),
            (lambda: {"ids": (recall_id(2), recall_id(4)), "edge_ids": (edge_id(1),)}, [2]),
            (lambda: {"ids": (recall_id(2), recall_id(4)), "entity_ids": (entity_id(2),)}, [2]),
            (lambda: {"ids": ()}, []),
            (lambda: {"entity_ids": ()}, []),
            (lambda: {"edge_ids": ()}, []),
            (lambda: {"episode_ids": ()}, []),
        ],
    )
    def test_traces_are_selected_by_id_entity_fact_and_episode(
        self, store: GraphBackend, query: Callable[[], dict[str, Any]], numbers: list[int]
    ) -> None:
        _four(store)
        assert numbers_of(store.find_recalls([home()], RecallQuery(**query()))) == numbers
        newest = store.find_recalls([home()], RecallQuery(**query()), newest_first=True)
        assert numbers_of(newest) == numbers[::-1]

    def test_a_found_trace_has_all_of_its_rows(self, store: GraphBackend) -> None:
        _four(store)
        whole = store.find_recalls([home()], RecallQuery(ids=(recall_id(3),)))
        assert store.find_recalls([home()], RecallQuery(edge_ids=(edge_id(2),))) == whole
        assert [len(trace.facts) for trace in whole] == [2]

    @pytest.mark.parametrize("chunk", [1, 2, 3])
    def test_paging_of_traces_neither_skips_nor_repeats(self, store: GraphBackend, chunk: int) -> None:
        put_entities(store, entity(1))
        put_recalls(store, *(recall_trace(n, seeds=[1]) for n in (3, 1, 5, 2, 4)))
        put_recalls(store, *(recall_trace(n, project()) for n in (102, 101)))
        found: list[RecallTrace] = []
        while page := store.find_recalls(
            [project(), home()], RecallQuery(), after=found[-1].id if found else "", limit=chunk
        ):
            found += page
        assert numbers_of(found) == [1, 2, 3, 4, 5, 101, 102]
        by_seed = store.find_recalls([home()], RecallQuery(entity_ids=(entity_id(1),)), after=recall_id(2), limit=chunk)
        assert numbers_of(by_seed) == [3, 4, 5][:chunk]

    def test_the_newest_traces_are_the_last(self, store: GraphBackend) -> None:
        put_recalls(store, *(recall_trace(n) for n in range(6)))
        assert numbers_of(store.find_recalls([home()], RecallQuery(), limit=2, newest_first=True)) == [5, 4]

    def test_newest_first_has_no_second_page(self, store: GraphBackend) -> None:
        with pytest.raises(InvalidInput):
            store.find_recalls([home()], RecallQuery(), after=recall_id(1), newest_first=True)

    def test_a_trace_of_many_rows_is_kept_in_order(self, store: GraphBackend) -> None:
        put_graph(store, *(edge(n, 0, n) for n in range(1, 400)))
        facts = [(n, n) for n in (*range(399, 200, -1), *range(1, 201))]
        written = recall_trace(1, seeds=range(300), facts=facts)
        put_recalls(store, written)
        assert store.find_recalls([home()], RecallQuery()) == [written]

    @pytest.mark.parametrize(
        "trace",
        [
            lambda: recall_trace(1, seeds=[9]),
            lambda: recall_trace(1, seeds=[101]),
            lambda: recall_trace(1, facts=[(9, 1)]),
            lambda: recall_trace(1, facts=[(101, 1)]),
            lambda: recall_trace(1, facts=[(1, 9)]),
            lambda: recall_trace(1, facts=[(1, 101)]),
            lambda: recall_trace(1, episodes=(traced_episode(9),)),
            lambda: recall_trace(1, episodes=(traced_episode(101),)),
        ],
        ids=["seed", "strange seed", "fact", "strange fact", "end", "strange end", "episode", "strange episode"],
    )
    def test_a_trace_that_names_what_is_not_in_the_scope_is_refused(
        self, store: GraphBackend, trace: Callable[[], RecallTrace]
    ) -> None:
        _fill_traces(store)
        put_graph(store, edge(101, 101, 102, project()))
        put_episodes(store, 101, scope=project())
        before = contents(store, home())
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(recalls=(recall_trace(2, seeds=[1]), trace())))
        assert contents(store, home()) == before

    def test_a_trace_may_name_what_its_write_brings(self, store: GraphBackend) -> None:
        trace = recall_trace(1, seeds=[1], facts=[(1, 2)])
        store.write(home(), Changes(entities=(entity(1), entity(2)), edges=(edge(1, 1, 2),), recalls=(trace,)))
        assert store.find_recalls([home()], RecallQuery()) == [trace]

    def test_a_trace_outlives_the_end_and_the_replacement_of_its_fact(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        put_recalls(store, recall_trace(1, facts=[(1, 2)]))
        ended = edge(1, 1, 2, fact="reworded", edge_type="causal", valid_to=day(3), expired_at=day(4))
        store.write(home(), Changes(edges=(ended,)))
        query = RecallQuery(edge_ids=(edge_id(1),))
        assert store.find_recalls([home()], query) == [recall_trace(1, facts=[(1, 2)])]

    def test_stats_count_traces(self, store: GraphBackend) -> None:
        put_recalls(store, recall_trace(1), recall_trace(2))
        put_recalls(store, recall_trace(101, project()))
        assert store.stats(home()).recalls == 2

    @pytest.mark.parametrize(
        "fields",
        [{"score": float("nan")}, {"hop": -1}, {"rank": 0}],
        ids=["score", "hop", "rank"],
    )
    def test_a_row_that_cannot_be_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput):
            _fact(1, 1, **fields)


def _fact(n: int, at: int, **fields: Any) -> TracedFact:
    given: dict[str, Any] = {"score": 1.0, "hop": 0, "channel": "graph", **fields}
    return TracedFact(edge_id=edge_id(n), entity_id=entity_id(at), **given)


def _fill_traces(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 2), edge(2, 2, 3))
    put_episodes(store, 1, 2)


def _four(store: GraphBackend) -> None:
    """Write four traces: with a seed; a fact and an episode; two facts; an episode."""
    _fill_traces(store)
    put_recalls(
        store,
        recall_trace(1, seeds=[1]),
        recall_trace(2, facts=[(1, 2)], episodes=(traced_episode(1, rank=1),)),
        recall_trace(3, seeds=[2], facts=[(1, 2), (2, 3)]),
        recall_trace(4, episodes=(traced_episode(2),)),
    )
