"""Tests of entities, their aliases and search."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from typing import Any

import pytest

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Alias, AsOf, Changes, EdgeType, EntityHit, EntityQuery, Removal
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents
from graphmem.testing.rows import (
    FUTURE,
    SCALARS,
    day,
    edge,
    entity,
    entity_id,
    home,
    ids,
    number_of,
    numbers_of,
    project,
    put_edges,
    put_entities,
    reprs,
)


class EntityTests(StoreTests):
    """Entities are stored completely, found by every field of `EntityQuery`, and unique by name and type."""

    def test_every_field_of_an_entity_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        written = entity(
            1,
            name="Zoë 北京 🦊",
            canonical_name="zoë 北京 🦊",
            entity_type="organization",
            summary="Line one\nline two: “quoted” % _ \\ '",
            properties=dict(SCALARS),
            confidence=0.1 + 0.2,
            first_seen_at=day(1.5),
            last_seen_at=day(2.25),
            recorded_at=day(3.125),
            access_count=7,
            archived_at=day(4),
            valid_from=day(-400),
            valid_to=FUTURE,
        )
        put_entities(store, written)
        (read,) = store.find_entities([home()], EntityQuery(archived=True))
        assert read == written
        assert reprs(read.properties) == reprs(SCALARS)

    def test_fields_of_an_entity_that_were_not_given_come_back_as_defaults(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        assert store.find_entities([home()], EntityQuery()) == [entity(1)]

    def test_an_entity_is_replaced_by_id(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, summary="old", properties={"a": 1}), entity(2))
        new = entity(
            1,
            summary="new",
            properties={"b": 2},
            confidence=0.5,
            first_seen_at=day(-1),
            last_seen_at=day(9),
            access_count=3,
            valid_from=day(0),
            valid_to=day(8),
        )
        put_entities(store, new)
        assert store.find_entities([home()], EntityQuery()) == [new, entity(2)]

    def test_an_archived_entity_is_revived_by_replacing_it(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, archived_at=day(3)))
        put_entities(store, entity(1))
        assert store.find_entities([home()], EntityQuery()) == [entity(1)]

    def test_changing_an_entity_that_was_given_or_read_changes_nothing_in_the_store(self, store: GraphBackend) -> None:
        given = entity(1, properties={"a": 1})
        put_entities(store, given)
        given.properties["a"] = 3
        store.find_entities([home()], EntityQuery())[0].properties["a"] = 2
        assert store.find_entities([home()], EntityQuery())[0].properties == {"a": 1}

    def test_a_name_and_type_that_another_entity_holds_is_a_conflict(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna"))
        before = contents(store, home())
        with pytest.raises(Conflict):
            store.write(home(), Changes(entities=(entity(2, name="Berta"), entity(3, name="Anna"))))
        assert contents(store, home()) == before

    def test_a_name_may_stand_for_one_entity_of_each_type_and_scope(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Jordan"), entity(2, name="Jordan", entity_type="location"))
        put_entities(store, entity(3, project(), name="Jordan"))
        assert numbers_of(store.find_entities([home(), project()], EntityQuery())) == [1, 2, 3]

    def test_entities_are_selected_by_id(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(1, 6)))
        query = EntityQuery(ids=(entity_id(4), entity_id(2), entity_id(2), entity_id(99)))
        assert numbers_of(store.find_entities([home()], query)) == [2, 4]

    def test_thousands_of_entity_ids_may_be_named(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(2500)))
        asked = [entity_id(n) for n in range(5000)]
        assert sorted(store.get_entities([home()], asked)) == asked[:2500]

    def test_entities_are_selected_by_type(self, store: GraphBackend) -> None:
        types = ("person", "tool", "event", "tool")
        put_entities(store, *(entity(n, entity_type=kind) for n, kind in enumerate(types)))
        assert numbers_of(store.find_entities([home()], EntityQuery(entity_types=("tool", "event")))) == [1, 2, 3]

    def test_ids_and_types_are_anded(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n, entity_type=kind) for n, kind in enumerate(("person", "tool", "tool"))))
        query = EntityQuery(ids=(entity_id(0), entity_id(1)), entity_types=("tool",))
        assert numbers_of(store.find_entities([home()], query)) == [1]

    @pytest.mark.parametrize("query", [EntityQuery(ids=()), EntityQuery(entity_types=())], ids=["ids", "types"])
    def test_an_empty_list_of_values_matches_no_entity(self, store: GraphBackend, query: EntityQuery) -> None:
        put_entities(store, entity(1))
        assert store.find_entities([home()], query) == []

    def test_archived_entities_are_left_out_unless_asked_for_or_named(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2, archived_at=day(1)), entity(3, archived_at=day(2)))
        reads = {
            "plain": EntityQuery(),
            "asked": EntityQuery(archived=True),
            "named": EntityQuery(ids=(entity_id(1), entity_id(2))),
            "of a type": EntityQuery(entity_types=("person",)),
        }
        found = {name: numbers_of(store.find_entities([home()], query)) for name, query in reads.items()}
        assert found == {"plain": [1], "asked": [1, 2, 3], "named": [1, 2], "of a type": [1]}

    def test_get_entities_leaves_out_the_absent(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2, archived_at=day(1)))
        found = store.get_entities([home()], [entity_id(9), entity_id(2), entity_id(1)])
        assert found == {entity_id(1): entity(1), entity_id(2): entity(2, archived_at=day(1))}

    @pytest.mark.parametrize("chunk", [1, 2, 3, 7])
    def test_paging_of_entities_neither_skips_nor_repeats(self, store: GraphBackend, chunk: int) -> None:
        kinds = ("person", "person", "tool")
        rows = [entity(n, entity_type=kinds[n % 3]) for n in (9, 3, 12, 1, 7, 5, 14, 0, 2, 13, 4, 6, 8, 10, 11)]
        put_entities(store, *rows)
        put_entities(store, *(entity(n, project()) for n in range(100, 105)))
        every = sorted([*ids(rows), *(entity_id(n) for n in range(100, 105))])
        people = [i for i in every if number_of(i) % 3 != 2 or number_of(i) >= 100]
        assert ids(list(store.all_entities([home(), project()], EntityQuery(), chunk=chunk))) == every
        assert ids(
            list(store.all_entities([project(), home()], EntityQuery(entity_types=("person",)), chunk=chunk))
        ) == (people)

    def test_a_page_of_entities_holds_as_many_rows_as_the_limit(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(5)))
        sizes = [len(store.find_entities([home()], EntityQuery(), limit=limit)) for limit in (1, 4, 5, 6)]
        assert sizes == [1, 4, 5, 5]

    @pytest.mark.parametrize(
        ("fields", "as_of", "seen"),
        [
            ({"recorded_at": day(2)}, AsOf(day(9), day(2)), True),
            ({"recorded_at": day(2)}, AsOf(day(9), day(1)), False),
            ({"first_seen_at": day(2)}, AsOf(day(2), day(9)), True),
            ({"first_seen_at": day(2)}, AsOf(day(1), day(9)), False),
            ({"valid_from": day(3)}, AsOf(day(3), day(9)), True),
            ({"valid_from": day(3)}, AsOf(day(2), day(9)), False),
            ({"valid_to": day(5)}, AsOf(day(4), day(9)), True),
            ({"valid_to": day(5)}, AsOf(day(5), day(9)), False),
            ({"last_seen_at": day(8)}, AsOf(day(1), day(1)), True),
        ],
    )
    def test_an_entity_is_seen_as_of_its_times(
        self, store: GraphBackend, fields: dict[str, Any], as_of: AsOf, seen: bool
    ) -> None:
        put_entities(store, entity(1, **fields))
        assert bool(store.find_entities([home()], EntityQuery(as_of=as_of))) is seen


class AliasTests(StoreTests):
    """An alias of a type belongs to one entity of a scope and is matched as a whole, character by character."""

    def test_a_name_resolves_to_every_entity_that_goes_by_it(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Jordan"), entity(2, name="Jordan", entity_type="location"), entity(3))
        found = store.resolve_names(home(), ["jordan", "nobody", "entity 3"])
        assert sorted((name, row.id) for name, row in found) == [
            ("entity 3", entity_id(3)),
            ("jordan", entity_id(1)),
            ("jordan", entity_id(2)),
        ]

    def test_a_resolved_entity_comes_whole(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna", properties={"a": 1}, summary="s"))
        assert store.resolve_names(home(), ["anna"]) == [
            ("anna", entity(1, name="Anna", properties={"a": 1}, summary="s"))
        ]

    def test_an_alias_is_kept_as_it_was_given_whatever_the_display_name(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna", canonical_name="anna"))
        put_entities(store, entity(1, name="ANNA", canonical_name="anna"))
        assert [name for name, _ in store.resolve_names(home(), ["anna"])] == ["anna"]
        assert store.find_aliases([home()], [entity_id(1)]) == [_alias("anna", 1)]

    def test_archived_entities_resolve_too(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna", archived_at=day(1)))
        assert [row.id for _, row in store.resolve_names(home(), ["anna"])] == [entity_id(1)]

    def test_an_alias_can_be_pointed_elsewhere(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        store.write(home(), Changes(aliases=(_alias("annie", 1),)))
        store.write(home(), Changes(aliases=(_alias("annie", 2),)))
        assert [row.id for _, row in store.resolve_names(home(), ["annie"])] == [entity_id(2)]
        assert store.find_aliases([home()], [entity_id(1)]) == [_alias("entity 1", 1)]

    def test_a_name_that_an_entity_gives_up_still_stands_for_it(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna"), entity(2))
        put_entities(store, entity(1, name="Anna Maria"))
        put_entities(store, entity(2, entity_type="organization"))
        found = store.resolve_names(home(), ["anna", "anna maria", "entity 2"])
        assert sorted((name, row.id) for name, row in found) == [
            ("anna", entity_id(1)),
            ("anna maria", entity_id(1)),
            ("entity 2", entity_id(2)),
            ("entity 2", entity_id(2)),
        ]
        assert [(a.alias, a.entity_type) for a in store.find_aliases([home()], [entity_id(2)])] == [
            ("entity 2", "organization"),
            ("entity 2", "person"),
        ]

    def test_a_name_that_an_entity_gives_up_may_be_taken_by_another(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna"))
        taken = Changes(
            entities=(entity(1, name="Anna Maria"), entity(2, name="Anna")),
            aliases=(_alias("anna maria", 1), _alias("anna", 2)),
        )
        store.write(home(), taken)
        found = store.resolve_names(home(), ["anna", "anna maria"])
        assert sorted((name, row.id) for name, row in found) == [
            ("anna", entity_id(2)),
            ("anna maria", entity_id(1)),
        ]

    def test_a_name_of_one_entity_may_become_the_own_name_of_another(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        store.write(home(), Changes(aliases=(_alias("annie", 1), _alias("anna", 1))))
        put_entities(store, entity(2, name="Annie"))
        store.write(home(), Changes(entities=(entity(3, name="Anna"),)))
        found = store.resolve_names(home(), ["annie", "anna"])
        assert sorted((name, row.id) for name, row in found) == [("anna", entity_id(1)), ("annie", entity_id(2))]
        assert [a.alias for a in store.find_aliases([home()], [entity_id(1)])] == ["anna", "entity 1"]

    def test_the_own_name_of_one_entity_may_stand_for_another_and_outlives_it(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        store.write(home(), Changes(aliases=(_alias("entity 1", 2),)))
        for _ in range(2):
            assert [row.id for _, row in store.resolve_names(home(), ["entity 1"])] == [entity_id(2)]
            assert store.find_aliases([home()], [entity_id(1)]) == []
            assert store.find_aliases([home()], [entity_id(2)]) == [_alias("entity 1", 2), _alias("entity 2", 2)]
            store.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
        store.write(home(), Changes(removals=(Removal("entity", entity_id(2)),)))
        assert store.resolve_names(home(), ["entity 1", "entity 2"]) == []

    def test_the_name_of_a_removed_entity_is_read_in_the_same_transaction(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))

        def work() -> list[Alias]:
            store.write(home(), Changes(aliases=(_alias("entity 1", 2),)))
            store.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
            return store.find_aliases([home()], [entity_id(1), entity_id(2)])

        assert store.atomic(work) == [_alias("entity 1", 2), _alias("entity 2", 2)]

    def test_names_that_differ_in_a_character_are_different(self, store: GraphBackend) -> None:
        names = ["straße", "strasse", "café", "cafe", "a%b", "a_b", "axb", "o'neil", 'o"neil', "a\\b", "北京", "🦊🦊🦊"]
        put_entities(store, *(entity(n, name=name) for n, name in enumerate(names)))
        found = {name: [numbers_of([row]) for _, row in store.resolve_names(home(), [name])] for name in names}
        assert found == {name: [[n]] for n, name in enumerate(names)}

    def test_thousands_of_names_may_be_asked(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(1500)))
        found = store.resolve_names(home(), [f"entity {n}" for n in range(3000)])
        assert sorted(row.id for _, row in found) == [entity_id(n) for n in range(1500)]

    def test_aliases_come_in_the_order_of_entity_and_alias(self, store: GraphBackend) -> None:
        put_entities(store, entity(2), entity(1), entity(3))
        store.write(home(), Changes(aliases=(_alias("zed", 1), _alias("b", 2), _alias("a", 2))))
        assert store.find_aliases([home()], [entity_id(2), entity_id(1)]) == [
            _alias("entity 1", 1),
            _alias("zed", 1),
            _alias("a", 2),
            _alias("b", 2),
            _alias("entity 2", 2),
        ]

    def test_an_alias_of_an_absent_entity_is_refused(self, store: GraphBackend) -> None:
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(aliases=(_alias("ghost", 9),)))


class SearchTests(StoreTests):
    """Entities are found by alias and by word prefixes."""

    def test_a_word_matches_the_beginning_of_any_word_of_the_name(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="New Zürich-Nord"), entity(2, name="Anew"), entity(3, name="york"))
        found = {word: _found(store, word) for word in ("new", "zür", "nord", "yo", "zürich")}
        assert found == {"new": [1], "zür": [1], "nord": [1], "yo": [3], "zürich": [1]}

    def test_a_word_matches_the_summary_too(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, summary="Plays the Violin."), entity(2))
        assert _found(store, "viol") == [1]

    def test_one_word_of_several_is_enough(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna"), entity(2, name="Berta"), entity(3, name="Clara"))
        assert _found(store, "berta", "anna", "xyz") == [1, 2]

    def test_words_of_a_query_language_are_plain_words(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Near and not"), entity(2, name="Other"))
        assert _found(store, "and", "not", "near") == [1]

    def test_hundreds_of_words_may_be_asked(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna"))
        assert _found(store, *(f"word{n}" for n in range(300)), "anna") == [1]

    def test_nothing_asked_finds_nothing(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        assert store.search_entities([home()], words=[], phrases=[], limit=10) == []

    def test_a_replaced_entity_is_found_by_its_new_words_only(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna", canonical_name="x", summary="pianist"))
        put_entities(store, entity(1, name="Berta", canonical_name="x", summary="lawyer"))
        found = {word: _found(store, word) for word in ("anna", "pianist", "berta", "lawyer")}
        assert found == {"anna": [], "pianist": [], "berta": [1], "lawyer": [1]}

    def test_the_name_counts_more_than_the_summary(self, store: GraphBackend) -> None:
        put_entities(
            store, entity(1, name="Other", summary="violin"), entity(2, name="violin", summary="other"), entity(3)
        )
        (best,) = store.search_entities([home()], words=["violin"], phrases=[], limit=1)
        assert best.entity.id == entity_id(2)

    def test_an_entity_is_found_by_a_phrase_that_is_its_alias(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Acme Labs"), entity(2, name="Acme"))
        hits = store.search_entities([home()], words=[], phrases=["acme labs", "labs"], limit=10)
        assert [(hit.entity.id, hit.alias) for hit in hits] == [(entity_id(1), "acme labs")]

    def test_the_longest_phrase_is_the_alias_of_the_hit(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Acme"))
        store.write(home(), Changes(aliases=(_alias("acme laboratories", 1),)))
        hits = store.search_entities([home()], words=["acme"], phrases=["acme", "acme laboratories"], limit=10)
        assert [(hit.entity.id, hit.alias) for hit in hits] == [(entity_id(1), "acme laboratories")]

    def test_the_longest_aliases_come_first_then_the_smallest_ids(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n, name=name) for n, name in enumerate(("bob", "ann", "longer", "eve"))))
        hits = store.search_entities([home()], words=[], phrases=["ann", "bob", "eve", "longer"], limit=3)
        assert sorted(numbers_of([hit.entity for hit in hits])) == [0, 1, 2]

    def test_at_most_the_limit_is_found_by_words(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(9)))
        assert len(store.search_entities([home()], words=["entity"], phrases=[], limit=4)) == 4

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_the_limit_is_one_for_all_scopes_and_counts_aliases_and_words_apart(
        self, store: GraphBackend, limit: int
    ) -> None:
        for start, scope in ((0, home()), (100, project())):
            put_entities(store, *(entity(start + n, scope, name=f"Alias {n}") for n in range(2)))
            put_entities(store, *(entity(start + n, scope, name=f"Word {n}") for n in range(2, 4)))
        hits = store.search_entities([home(), project()], words=["word"], phrases=["alias 0", "alias 1"], limit=limit)
        found = {is_alias: [h.entity for h in hits if (h.alias is not None) is is_alias] for is_alias in (True, False)}
        assert sorted(numbers_of(found[True])) == [0, 1, 100][:limit]
        assert len({row.id for row in found[False]}) == len(hits) - len(found[True]) == limit

    def test_archived_entities_are_found_by_name_alone(self, store: GraphBackend) -> None:
        put_entities(store, entity(1, name="Anna", archived_at=day(1)))
        assert store.search_entities([home()], words=["anna"], phrases=[], limit=10) == []
        [hit] = store.search_entities([home()], words=["anna"], phrases=["anna"], limit=10)
        assert (numbers_of([hit.entity]), hit.alias) == ([1], "anna")

    def test_a_hit_counts_visible_edges_and_their_types(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(1, 5)))
        put_edges(
            store,
            edge(1, 1, 2),
            edge(2, 3, 1, edge_type=EdgeType.CAUSAL),
            edge(3, 1, 4, edge_type=EdgeType.CAUSAL),
            edge(4, 1, 4, edge_type=EdgeType.TEMPORAL, valid_to=day(1), expired_at=day(1)),
            edge(5, 2, 3),
        )
        hits = store.search_entities([home()], words=[], phrases=["entity 1"], limit=10)
        assert hits == [EntityHit(entity(1), "entity 1", degree=3, edge_types=2)]


def _alias(name: str, n: int) -> Alias:
    return Alias(alias=name, entity_type="person", entity_id=entity_id(n))


def _found(store: GraphBackend, *words: str) -> list[int]:
    hits = store.search_entities([home()], words=list(words), phrases=[], limit=10)
    return sorted(numbers_of([hit.entity for hit in hits]))
