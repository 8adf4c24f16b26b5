"""Tests of recall traces."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphmem.errors import InvalidInput
from graphmem.models import AsOf, Changes, RecallQuery, RecallTrace, TracedFact, TracedSeed
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents, own_scopes
from graphmem.testing.rows import (
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode_id,
    home,
    project,
    put_entities,
    put_episodes,
    put_graph,
    put_recalls,
    recall_id,
    recall_numbers,
    recall_trace,
    traced_episode,
)


class RecallTests(StoreTests):
    """Traces are stored completely and found by every field of `RecallQuery`."""

    def test_every_field_of_a_trace_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        _fill(store)
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
        _fill(store)
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
        assert recall_numbers(store.find_recalls([home()], RecallQuery(**query()))) == numbers
        newest = store.find_recalls([home()], RecallQuery(**query()), newest_first=True)
        assert recall_numbers(newest) == numbers[::-1]

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
        assert recall_numbers(found) == [1, 2, 3, 4, 5, 101, 102]
        by_seed = store.find_recalls([home()], RecallQuery(entity_ids=(entity_id(1),)), after=recall_id(2), limit=chunk)
        assert recall_numbers(by_seed) == [3, 4, 5][:chunk]

    def test_the_newest_traces_are_the_last(self, store: GraphBackend) -> None:
        put_recalls(store, *(recall_trace(n) for n in range(6)))
        assert recall_numbers(store.find_recalls([home()], RecallQuery(), limit=2, newest_first=True)) == [5, 4]

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
        _fill(store)
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


def _fill(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 2), edge(2, 2, 3))
    put_episodes(store, 1, 2)


def _four(store: GraphBackend) -> None:
    """Write four traces: with a seed; a fact and an episode; two facts; an episode."""
    _fill(store)
    put_recalls(
        store,
        recall_trace(1, seeds=[1]),
        recall_trace(2, facts=[(1, 2)], episodes=(traced_episode(1, rank=1),)),
        recall_trace(3, seeds=[2], facts=[(1, 2), (2, 3)]),
        recall_trace(4, episodes=(traced_episode(2),)),
    )
