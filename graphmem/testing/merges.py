"""Tests of the merge ledger and of the removal of rows."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    Alias,
    Changes,
    EntityQuery,
    FoldedEdge,
    IndexEntry,
    Mention,
    Merge,
    MergeQuery,
    RecallQuery,
    Removal,
    Scope,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents, everything, own_scopes
from graphmem.testing.rows import (
    community,
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode_id,
    home,
    membership,
    numbers_of,
    project,
    put_communities,
    put_entities,
    put_episodes,
    put_graph,
    put_recalls,
    recall_trace,
    traced_episode,
    world,
)


def merge_id(n: int) -> str:
    """Return the id of merge n."""
    return world().id(n, "ed")


def merge(n: int, kept: int = 1, merged: int = 2, scope: Scope | None = None, **fields: Any) -> Merge:
    """Return merge n, manual and on day 0 unless `fields` override it."""
    given: dict[str, Any] = {"method": "manual", "at": day(0), **fields}
    scope = scope or home()
    return Merge(
        id=merge_id(n),
        scope=scope,
        kept_id=entity_id(kept),
        kept=entity(kept, scope),
        merged=entity(merged, scope),
        **given,
    )


def put_merges(store: GraphBackend, *merges: Merge) -> None:
    """Write merges of one scope."""
    store.write(merges[0].scope, Changes(merges=merges))


def mention(of: int, in_: int) -> Mention:
    """Return a mention of entity `of` in episode `in_`."""
    return Mention(entity_id=entity_id(of), episode_id=episode_id(in_), surface=f"Entity {of}", seen_at=day(0))


class MergeLedgerTests(StoreTests):
    """Merges are stored completely and found by every field of `MergeQuery`."""

    def test_every_field_of_a_merge_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        written = merge(
            1,
            method="vectors",
            score=0.1 + 0.2,
            at=day(1.5),
            aliases=(Alias(alias="zoë “z” % \\ 北京 🦊", entity_type="person", entity_id=entity_id(2)),),
            added=(Alias(alias="entity 2", entity_type="tool", entity_id=entity_id(1)),),
            edges=(edge(1, 2, 3, fact="x\ny", properties={"a": None, "b": 1.5}, episode_ids=(episode_id(1),)),),
            folded=(FoldedEdge(edge=edge(2, 2, 4), into=edge(3, 1, 4)), FoldedEdge(edge=edge(4, 1, 2))),
            mentions=(mention(2, 1),),
            shared=(episode_id(1),),
            undone_at=day(2),
        )
        put_merges(store, written)
        assert store.find_merges([home()], MergeQuery(undone=True)) == [written]

    def test_a_merge_needs_no_entity_to_be_there(self, store: GraphBackend) -> None:
        put_merges(store, merge(1))
        assert own_scopes(store) == [home()]

    def test_a_merge_is_replaced_by_id(self, store: GraphBackend) -> None:
        put_merges(store, merge(1), merge(2))
        put_merges(store, merge(1, kept=5, undone_at=day(3)))
        assert store.find_merges([home()], MergeQuery(undone=True)) == [merge(1, kept=5, undone_at=day(3)), merge(2)]
        assert store.find_merges([home()], MergeQuery(entity_ids=(entity_id(1),))) == [merge(2)]

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            (dict, [1, 2]),
            (lambda: {"undone": True}, [1, 2, 3]),
            (lambda: {"ids": (merge_id(3), merge_id(2), merge_id(9))}, [2]),
            (lambda: {"ids": (merge_id(3),), "undone": True}, [3]),
            (lambda: {"entity_ids": (entity_id(1),)}, [1, 2]),
            (lambda: {"entity_ids": (entity_id(3),), "undone": True}, [2, 3]),
            (lambda: {"entity_ids": (entity_id(1), entity_id(2))}, [1, 2]),
            (lambda: {"entity_ids": (entity_id(1),), "ids": (merge_id(2),)}, [2]),
            (lambda: {"ids": ()}, []),
            (lambda: {"entity_ids": ()}, []),
        ],
    )
    def test_merges_are_selected_by_id_and_entity(
        self, store: GraphBackend, query: Callable[[], dict[str, Any]], numbers: list[int]
    ) -> None:
        put_merges(store, merge(1, 1, 2), merge(2, 3, 1), merge(3, 3, 4, undone_at=day(1)))
        put_merges(store, merge(101, 1, 2, project()))
        assert numbers_of(store.find_merges([home()], MergeQuery(**query()))) == numbers
        newest = store.find_merges([home()], MergeQuery(**query()), newest_first=True)
        assert numbers_of(newest) == numbers[::-1]

    @pytest.mark.parametrize("chunk", [1, 2, 3])
    def test_paging_of_merges_neither_skips_nor_repeats(self, store: GraphBackend, chunk: int) -> None:
        put_merges(store, *(merge(n, undone_at=day(1) if n == 2 else None) for n in (3, 1, 5, 2, 4)))
        put_merges(store, *(merge(n, scope=project()) for n in (102, 101)))
        found: list[Merge] = []
        while page := store.find_merges(
            [project(), home()], MergeQuery(), after=found[-1].id if found else "", limit=chunk
        ):
            found += page
        assert numbers_of(found) == [1, 3, 4, 5, 101, 102]
        newest = store.find_merges([home()], MergeQuery(), limit=chunk, newest_first=True)
        assert numbers_of(newest) == [5, 4, 3][:chunk]

    def test_newest_merges_have_no_second_page(self, store: GraphBackend) -> None:
        with pytest.raises(InvalidInput):
            store.find_merges([home()], MergeQuery(), after=merge_id(1), newest_first=True)

    def test_merges_of_another_scope_are_neither_read_nor_replaced(self, store: GraphBackend) -> None:
        put_merges(store, merge(1))
        before = everything(store)
        with pytest.raises(Conflict):
            store.write(project(), Changes(merges=(merge(2, scope=project()), merge(1, scope=project()))))
        with pytest.raises(InvalidInput):
            store.write(project(), Changes(merges=(merge(2),)))
        store.write(project(), Changes(removals=(Removal("merge", merge_id(1)),)))
        assert everything(store) == before
        for query in (MergeQuery(), MergeQuery(ids=(merge_id(1),)), MergeQuery(entity_ids=(entity_id(1),))):
            assert store.find_merges([project()], query) == []

    def test_a_merge_outlives_its_entities_and_can_be_removed(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        put_merges(store, merge(1))
        store.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
        assert store.find_merges([home()], MergeQuery()) == [merge(1)]
        store.write(home(), Changes(removals=(Removal("merge", merge_id(1)),)))
        assert store.find_merges([home()], MergeQuery()) == []


class RemovalTests(StoreTests):
    """A removal deletes a row with all dependent rows and nothing else."""

    def test_an_entity_goes_with_names_facts_mentions_and_memberships(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 3, 1, valid_to=day(1)), edge(3, 2, 3))
        put_episodes(store, 1)
        store.write(home(), Changes(mentions=(mention(1, 1), mention(2, 1))))
        put_communities(store, community(1), members=(membership(1, 1), membership(2, 1)))
        store.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
        found = contents(store, home())
        assert [e.id for e in found.entities] == [entity_id(2), entity_id(3)]
        assert [a.entity_id for a in found.aliases] == [entity_id(2), entity_id(3)]
        assert [e.id for e in found.edges] == [edge_id(3)]
        assert [m.entity_id for m in found.mentions] == [entity_id(2)]
        assert [m.entity_id for m in found.memberships] == [entity_id(2)]
        assert [e.id for e in found.episodes] == [episode_id(1)]
        assert (found.stats.entities, found.stats.edges, found.stats.mentions, found.stats.aliases) == (2, 1, 1, 2)

    def test_a_removed_entity_is_found_by_nothing(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        store.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
        assert store.resolve_names(home(), ["entity 1"]) == []
        assert [
            h.entity.id for h in store.search_entities([home()], words=["entity"], phrases=["entity 1"], limit=9)
        ] == [entity_id(2)]
        assert store.expand([home()], [entity_id(1), entity_id(2)], hops=1).node_ids == [entity_id(2)]

    def test_the_name_of_a_removed_entity_is_free(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        store.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
        put_entities(store, entity(2, name="Entity 1"))
        assert [e.id for _, e in store.resolve_names(home(), ["entity 1"])] == [entity_id(2)]

    def test_a_fact_goes_and_its_key_is_free(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 1))
        store.write(home(), Changes(removals=(Removal("edge", edge_id(1)),)))
        assert [e.id for e in contents(store, home()).edges] == [edge_id(2)]
        store.write(home(), Changes(edges=(edge(3, 1, 2),)))
        assert [e.id for e in contents(store, home()).edges] == [edge_id(2), edge_id(3)]

    def test_one_alias_goes(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        names = [("other", "person"), ("other", "tool")]
        aliases = tuple(Alias(alias=a, entity_type=t, entity_id=entity_id(1)) for a, t in names)
        store.write(home(), Changes(aliases=aliases))
        store.write(home(), Changes(removals=(Removal("alias", "other", "tool"),)))
        assert [(a.alias, a.entity_type) for a in store.find_aliases([home()], [entity_id(1)])] == [
            ("entity 1", "person"),
            ("other", "person"),
        ]

    def test_one_mention_goes(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        put_episodes(store, 1, 2)
        store.write(home(), Changes(mentions=(mention(1, 1), mention(1, 2), mention(2, 1))))
        store.write(home(), Changes(removals=(Removal("mention", entity_id(1), episode_id(1)),)))
        assert store.find_mentions([home()]) == [mention(2, 1), mention(1, 2)]

    def test_traces_lose_the_rows_that_name_what_is_gone(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3), edge(3, 3, 4))
        put_episodes(store, 1)
        facts = [(1, 2), (2, 3), (3, 4), (2, 2)]
        put_recalls(store, recall_trace(1, seeds=[1, 2, 3], facts=facts, episodes=(traced_episode(1),)))
        whole = recall_trace(1, seeds=[1, 2, 3], facts=facts, episodes=(traced_episode(1),))
        store.write(home(), Changes(removals=(Removal("entity", entity_id(1)), Removal("edge", edge_id(3)))))
        left = whole.changed(seeds=whole.seeds[1:], facts=(whole.facts[1], whole.facts[3]))
        assert store.find_recalls([home()], RecallQuery()) == [left]
        assert store.find_recalls([home()], RecallQuery(edge_ids=(edge_id(1), edge_id(3)))) == []

    def test_the_index_loses_what_is_gone_and_tells_so(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3))
        kept = IndexEntry(kind="fact", key=edge_id(2), model="m")
        gone = [
            IndexEntry(kind="entity", key=entity_id(1), model="m"),
            IndexEntry(kind="fact", key=edge_id(1), model="m"),
        ]
        store.write(home(), Changes(index=(*gone, kept)))
        before = store.index_state(home())
        store.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
        assert [entry.key for entry in store.read_index(home())] == [edge_id(2)]
        assert store.index_state(home()).generation > before.generation
        assert store.index_state(home()).model == "m"

    def test_removals_come_after_the_rest_of_their_write(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        moved = edge(1, 3, 2)
        alias = Alias(alias="entity 1", entity_type="person", entity_id=entity_id(3))
        store.write(
            home(),
            Changes(
                entities=(entity(3),), aliases=(alias,), edges=(moved,), removals=(Removal("entity", entity_id(1)),)
            ),
        )
        assert contents(store, home()).edges == [moved]
        assert [e.id for _, e in store.resolve_names(home(), ["entity 1"])] == [entity_id(3)]

    def test_what_is_not_there_is_left_out(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        before = everything(store)
        absent = (
            Removal("entity", entity_id(9)),
            Removal("edge", edge_id(9)),
            Removal("edge", entity_id(1)),
            Removal("entity", edge_id(1)),
            Removal("alias", "entity 1", "tool"),
            Removal("alias", "entity 9", "person"),
            Removal("mention", entity_id(1), episode_id(1)),
            Removal("merge", merge_id(1)),
        )
        store.write(home(), Changes(removals=absent))
        assert everything(store) == before

    def test_rows_of_another_scope_are_not_removed(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        put_episodes(store, 1)
        store.write(home(), Changes(mentions=(mention(1, 1),)))
        before = everything(store)
        for removal in (
            Removal("entity", entity_id(1)),
            Removal("edge", edge_id(1)),
            Removal("alias", "entity 1", "person"),
            Removal("mention", entity_id(1), episode_id(1)),
        ):
            store.write(project(), Changes(removals=(removal,)))
        assert everything(store) == before

    def test_a_write_that_is_refused_removes_nothing(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        before = everything(store)
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(mentions=(mention(1, 9),), removals=(Removal("entity", entity_id(1)),)))
        assert everything(store) == before

    def test_many_rows_are_removed_at_once(self, store: GraphBackend) -> None:
        put_graph(store, *(edge(n, 0, n) for n in range(1, 1200)))
        store.write(home(), Changes(removals=tuple(Removal("entity", entity_id(n)) for n in range(1, 1100))))
        assert len(store.find_entities([home()], EntityQuery(), limit=2000)) == 101
        assert store.stats(home()).edges == 100
