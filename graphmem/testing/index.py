"""Tests of the search index in a store: entries by position, rows without entries, and the model."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    Changes,
    EdgeExpiry,
    EpisodeEnd,
    EpisodeExpiry,
    IndexCursor,
    IndexEntry,
    IndexKind,
    IndexState,
    IndexStatus,
    Removal,
    Scope,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.rows import (
    FUTURE,
    day,
    edge,
    edge_id,
    elsewhere,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    project,
    put_edges,
    put_entities,
    put_graph,
)


def entry(kind: IndexKind, key: str, **fields: object) -> IndexEntry:
    """Return an index entry of the model "m"."""
    return replace(IndexEntry(kind=kind, key=key, model="m"), **fields)


def put_index(store: GraphBackend, *entries: IndexEntry, scope: Scope | None = None) -> None:
    """Write index entries."""
    store.write(scope or home(), Changes(index=entries))


def keys(store: GraphBackend, scope: Scope | None = None, after: int = 0) -> list[str]:
    """Return the keys of all entries of a scope in read order."""
    return [found.key for found in store.read_index(scope or home(), after=after)]


class IndexTests(StoreTests):
    """Index entries are read as written, after any position, and rows without one are found."""

    def test_every_field_of_an_entry_comes_back_and_its_position_is_the_stores(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1)])
        written = entry(
            "episode", episode_id(1), vectors=bytes(range(256)), pieces=b"\x00\xff\x00", detail='{"names":["Zoë 🦊"]}'
        )
        put_index(store, written)
        [found] = store.read_index(home())
        assert replace(found, position=0) == written
        assert found.position > 0
        assert store.find_index(home(), "episode", [episode_id(1), episode_id(9)]) == [found]

    def test_pages_go_on_behind_a_position(self, store: GraphBackend) -> None:
        put_index(store, *(entry("name", f"name {i}") for i in range(5)))
        put_index(store, entry("name", "later"))
        first = store.read_index(home(), limit=4)
        rest = store.read_index(home(), after=first[-1].position, limit=4)
        assert [found.key for found in (*first, *rest)] == [*(f"name {i}" for i in range(5)), "later"]
        assert store.read_index(home(), after=rest[-1].position) == []

    def test_a_page_may_be_of_one_kind(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        of_entities = [entry("entity", entity_id(i)) for i in (1, 2)]
        put_index(store, entry("name", "a"), of_entities[0], entry("name", "b"), of_entities[1])
        first, second = store.read_index(home(), kind="entity")
        assert (first.key, second.key) == (entity_id(1), entity_id(2))
        assert store.read_index(home(), kind="entity", limit=1) == [first]
        assert store.read_index(home(), kind="entity", after=first.position) == [second]
        assert store.read_index(home(), kind="fact") == []

    def test_an_entry_that_is_written_again_moves_to_the_end_and_stands_once(self, store: GraphBackend) -> None:
        put_index(store, entry("name", "a"), entry("name", "b"))
        last = store.read_index(home())[-1].position
        put_index(store, entry("name", "a", detail="new"))
        assert keys(store) == ["b", "a"]
        assert [found.detail for found in store.read_index(home(), after=last)] == ["new"]

    def test_one_key_of_two_kinds_is_two_entries(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        put_index(store, entry("name", entity_id(1)), entry("entity", entity_id(1)))
        assert len(store.find_index(home(), "name", [entity_id(1)])) == 1
        assert len(store.read_index(home())) == 2

    def test_entries_are_found_in_the_order_of_their_keys(self, store: GraphBackend) -> None:
        put_index(store, *(entry("name", key) for key in ("b", "d", "a", "c")))
        found = store.find_index(home(), "name", ["c", "d", "x", "a", "b"])
        assert [each.key for each in found] == ["a", "b", "c", "d"]

    def test_an_entry_may_come_with_its_row(self, store: GraphBackend) -> None:
        store.write(home(), Changes(entities=(entity(1),), index=(entry("entity", entity_id(1)),)))
        assert keys(store) == [entity_id(1)]

    def test_an_entry_and_its_row_are_written_both_or_neither(self, store: GraphBackend) -> None:
        entries = entry("entity", entity_id(1)), entry("entity", entity_id(9))
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(entities=(entity(1),), index=entries))
        assert (store.get_entities([home()], [entity_id(1)]), keys(store)) == ({}, [])
        put_entities(store, entity(1))
        with pytest.raises(Conflict):
            store.write(home(), Changes(entities=(entity(2, name="Entity 1"),), index=entries[:1]))
        assert keys(store) == []

    @pytest.mark.parametrize("kind", ["episode", "fact", "entity"])
    def test_an_entry_of_a_row_that_is_not_in_the_scope_is_refused(self, store: GraphBackend, kind: IndexKind) -> None:
        store.add_episodes(project(), [episode(1, project())])
        store.write(
            project(), Changes(entities=(entity(1, project()), entity(2, project())), edges=(edge(1, 1, 2, project()),))
        )
        key = {"episode": episode_id(1), "fact": edge_id(1), "entity": entity_id(1)}[kind]
        with pytest.raises(InvalidInput):
            put_index(store, entry(kind, key))
        assert store.read_index(home()) == []
        put_index(store, entry(kind, key), scope=project())
        assert keys(store, project()) == [key]

    def test_scopes_have_indexes_of_their_own(self, store: GraphBackend) -> None:
        put_index(store, entry("name", "anna"), scope=home())
        put_index(store, entry("name", "anna", model="other"), scope=project())
        assert [found.model for found in store.read_index(home())] == ["m"]
        assert [found.model for found in store.find_index(project(), "name", ["anna"])] == ["other"]
        assert store.read_index(elsewhere()) == []
        assert store.index_state(elsewhere()) == IndexState()


class UnindexedTests(StoreTests):
    """Rows without a complete entry are found in pages."""

    @pytest.mark.parametrize(
        ("kind", "id_of"),
        [("episode", episode_id), ("fact", edge_id), ("entity", entity_id)],
        ids=["episode", "fact", "entity"],
    )
    def test_rows_without_an_entry_are_found_behind_an_id(
        self, store: GraphBackend, kind: IndexKind, id_of: Callable[[int], str]
    ) -> None:
        for scope, numbers in ((home(), range(1, 5)), (project(), range(9, 11))):
            store.add_episodes(scope, [episode(i, scope) for i in numbers])
            put_entities(store, *(entity(i, scope) for i in numbers))
            first, last = numbers[0], numbers[-1]
            put_edges(store, *(edge(i, first, last, scope, relation=f"relation {i}") for i in numbers))
        put_index(store, entry(kind, id_of(2)))
        waiting = [id_of(i) for i in (1, 3, 4)]
        assert store.find_unindexed(home(), kind) == waiting
        assert store.find_unindexed(home(), kind, limit=2) == waiting[:2]
        assert [store.find_unindexed(home(), kind, after=after, limit=1) for after in (id_of(2), *waiting)] == [
            waiting[1:2],
            waiting[1:2],
            waiting[2:],
            [],
        ]
        assert store.find_unindexed(home(), "name") == []

    def test_a_row_with_an_incomplete_entry_is_unindexed(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1)])
        put_index(store, entry("episode", episode_id(1), model="", complete=False))
        assert store.find_unindexed(home(), "episode") == [episode_id(1)]
        put_index(store, entry("episode", episode_id(1)))
        assert store.find_unindexed(home(), "episode") == []

    def test_facts_that_ended_are_not_looked_for(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        store.write(home(), Changes(edges=(edge(1, 1, 2), edge(2, 1, 2, relation="likes"))))
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), valid_to=day(1), expired_at=day(1)),)))
        assert store.find_unindexed(home(), "fact") == [edge_id(2)]

    def test_inferred_facts_are_not_indexed(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, kind="inferred"), edge(2, 2, 3))
        assert store.find_unindexed(home(), "fact") == [edge_id(2)]
        assert store.index_status([IndexCursor(home(), fact=edge_id(0))])[0].waiting
        store.write(home(), Changes(removals=(Removal("edge", edge_id(2)),)))
        assert not store.index_status([IndexCursor(home(), fact=edge_id(0))])[0].waiting

    def test_facts_of_all_types_are_found_in_the_order_of_their_ids(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        types = ("causal", "semantic", "entity", "co_occurrence", "temporal")
        store.write(home(), Changes(edges=tuple(edge(i, 1, 2, edge_type=kind) for i, kind in enumerate(types, 1))))
        assert store.find_unindexed(home(), "fact") == [edge_id(i) for i in range(1, 6)]

    def test_archived_entities_are_not_looked_for(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2, archived_at=day(1)))
        assert store.find_unindexed(home(), "entity") == [entity_id(1)]


class IndexNewsTests(StoreTests):
    """The index status of many scopes in one call equals that of separate calls."""

    def test_news_tell_what_lies_behind_each_cursor(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(i) for i in range(1, 4)])
        put_entities(store, entity(1), entity(2))
        kinds = ("causal", "semantic", "entity", "co_occurrence", "temporal")
        store.write(home(), Changes(edges=tuple(edge(i, 1, 2, edge_type=kind) for i, kind in enumerate(kinds, 1))))
        put_index(store, *(entry("episode", episode_id(i)) for i in range(1, 4)))
        put_index(store, *(entry("fact", edge_id(i)) for i in (1, 2, 4, 5)))
        last = store.read_index(home())[-1].position
        cursors = [
            IndexCursor(scope, episode=after_episode, fact=after_fact, position=position)
            for scope in (elsewhere(), home())
            for after_episode in ("", episode_id(3))
            for after_fact in ("", edge_id(2), edge_id(3), edge_id(5))
            for position in (0, last - 1, last)
        ]
        for cursor in cursors:
            assert store.index_status([cursor]) == GraphBackend.index_status(store, [cursor])

    def test_news_are_of_the_scopes_that_were_asked_about_in_their_order(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1), episode(2)])
        store.add_episodes(project(), [episode(9, project())])
        put_index(store, entry("episode", episode_id(1)), entry("name", "a", complete=False))
        put_index(store, entry("episode", episode_id(9), model="other"), scope=project())
        assert store.index_status([]) == []
        [in_project, nothing, at_home] = store.index_status(
            [IndexCursor(project()), IndexCursor(elsewhere()), IndexCursor(home())]
        )
        assert (in_project.state.model, in_project.waiting, in_project.entries) == ("other", False, True)
        assert nothing == IndexStatus()
        assert (at_home.state.model, at_home.waiting, at_home.entries) == ("m", True, True)
        assert not store.index_status([IndexCursor(home(), episode=episode_id(2))])[0].waiting

    def test_news_tell_whether_an_episode_ends_or_expires(self, store: GraphBackend) -> None:
        rows = [episode(1, home()), episode(2, project(), ended_at=FUTURE), episode(3, elsewhere(), expires_at=day(1))]
        for row in rows:
            store.add_episodes(row.scope, [row])
        cursors = [IndexCursor(row.scope) for row in rows]
        assert [status.limited for status in store.index_status(cursors)] == [False, True, True]
        store.write(home(), Changes(episode_expiries=(EpisodeExpiry(episode_id(1), FUTURE),)))
        store.write(project(), Changes(episode_ends=(EpisodeEnd(episode_id(2), None),)))
        assert [status.limited for status in store.index_status(cursors)] == [True, False, True]

    def test_an_incomplete_entry_waits(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1)])
        put_index(store, entry("episode", episode_id(1), model="", complete=False))
        [news] = store.index_status([IndexCursor(home())])
        assert (news.state.model, news.waiting, news.entries) == (None, True, True)


class IndexStateTests(StoreTests):
    """The index of a scope has one model and a token that changes when entries are removed."""

    def test_the_first_complete_entry_sets_the_model(self, store: GraphBackend) -> None:
        assert store.index_state(home()) == IndexState()
        put_index(store, entry("name", "a", model="", complete=False))
        assert store.index_state(home()).model is None
        put_index(store, entry("name", "a"))
        assert store.index_state(home()).model == "m"

    def test_an_entry_of_another_model_is_refused(self, store: GraphBackend) -> None:
        put_index(store, entry("name", "a"))
        with pytest.raises(InvalidInput):
            put_index(store, entry("name", "b"), entry("name", "c", model="other"))
        assert keys(store) == ["a"]

    def test_a_reset_forgets_entries_and_model_of_its_scope_only(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1)])
        put_index(store, entry("episode", episode_id(1)), entry("name", "a"))
        put_index(store, entry("name", "a"), scope=project())
        before = store.index_state(home()).generation
        assert store.reset_index(home()) == 2
        assert store.read_index(home()) == []
        assert store.index_state(home()).model is None
        assert store.index_state(home()).generation > before
        assert store.find_unindexed(home(), "episode") == [episode_id(1)]
        assert keys(store, project()) == ["a"]
        put_index(store, entry("name", "a", model="other"))
        assert store.index_state(home()).model == "other"

    def test_positions_are_not_given_again_after_a_reset(self, store: GraphBackend) -> None:
        put_index(store, entry("name", "a"))
        last = store.read_index(home())[-1].position
        store.reset_index(home())
        put_index(store, entry("name", "b"))
        assert store.read_index(home())[0].position > last
