"""Tests of facts: stored completely, unique while active, ended once, found by every field of `EdgeQuery`."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    INFERRED_BY,
    PREMISES,
    AsOf,
    Changes,
    Corroboration,
    Edge,
    EdgeBeginning,
    EdgeEnd,
    EdgeExpiry,
    EdgeQuery,
    EdgeType,
    EntityQuery,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents
from graphmem.testing.rows import (
    FUTURE,
    SCALARS,
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode_id,
    home,
    ids,
    numbers_of,
    project,
    put_edges,
    put_entities,
    put_episodes,
    put_graph,
    reprs,
)

EVERY = EdgeQuery(versions="all")


class EdgeTests(StoreTests):
    """Edges are stored completely, replaced by id, and unique by key while they are active."""

    def test_every_field_of_an_edge_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        put_episodes(store, 1, 2, 3)
        written = edge(
            1,
            1,
            2,
            relation="works_at",
            edge_type=EdgeType.CAUSAL,
            fact="Zoë → 北京 🦊 % _ \\ ' \"\nnext line",
            confidence=0.1 + 0.2,
            valid_from=day(-30000),
            valid_to=FUTURE,
            recorded_at=day(2.25),
            expired_at=day(3.125),
            superseded_by=edge_id(7),
            episode_ids=(episode_id(3), episode_id(1), episode_id(2)),
            retrieval_count=2.5,
            last_retrieved_at=day(4),
            properties=dict(SCALARS),
            certainty="hearsay",
            kind="event",
            valid_from_assumed=True,
            told_at=day(2.5),
            prior_valid_to=day(5),
            end_reason="Zoë said so → \n'",
            ends=(
                EdgeEnd(by=episode_id(9), at=day(5.5), told_at=day(4.75)),
                EdgeEnd(by="", at=day(5), told_at=day(5)),
                EdgeEnd(by="Zoë → '\"", at=FUTURE, told_at=day(6.25)),
            ),
            beginnings=(
                EdgeBeginning(by=episode_id(9), at=day(0.5), told_at=day(4.75)),
                EdgeBeginning(by="Zoë → '\"", at=FUTURE, told_at=day(6.25)),
            ),
        )
        put_edges(store, written)
        (read,) = store.find_edges([home()], EVERY)
        assert read == written
        assert type(read.edge_type) is EdgeType
        assert reprs(read.properties) == reprs(SCALARS)

    def test_an_inferred_edge_comes_back_with_rule_and_premises(self, store: GraphBackend) -> None:
        properties = {INFERRED_BY: "transitive part_of", PREMISES: f"{edge_id(1)} {edge_id(2)}"}
        put_graph(store, edge(3, 1, 2, kind="inferred", properties=properties))
        [read] = store.find_edges([home()], EVERY)
        assert (read.kind, read.inferred_by, read.premises) == (
            "inferred",
            "transitive part_of",
            (edge_id(1), edge_id(2)),
        )
        put_edges(store, read.changed(kind="state"))
        assert store.find_edges([home()], EVERY) == [read.changed(kind="state")]

    def test_fields_of_an_edge_that_were_not_given_come_back_as_defaults(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        assert store.find_edges([home()], EVERY) == [edge(1, 1, 2)]

    def test_an_edge_is_replaced_by_id_and_can_be_pointed_elsewhere(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 3, 4))
        moved = edge(1, 4, 3, relation="likes", edge_type=EdgeType.TEMPORAL, fact="new", properties={"a": 1})
        put_edges(store, moved)
        found = {
            "all": numbers_of(store.find_edges([home()], EVERY)),
            "old end": numbers_of(store.find_edges([home()], EdgeQuery(touching=(entity_id(1),)))),
            "new end": numbers_of(store.find_edges([home()], EdgeQuery(source_ids=(entity_id(4),)))),
        }
        assert found == {"all": [1, 2], "old end": [], "new end": [1]}
        assert store.get_edges([home()], [edge_id(1)]) == {edge_id(1): moved}

    @pytest.mark.parametrize("part", ["fact", "confidence", "valid_from"])
    def test_an_active_key_that_another_edge_holds_is_a_conflict(self, store: GraphBackend, part: str) -> None:
        put_graph(store, edge(1, 1, 2))
        before = contents(store, home())
        other: dict[str, Any] = {"fact": "said otherwise", "confidence": 0.5, "valid_from": day(5)}
        with pytest.raises(Conflict):
            put_edges(store, edge(2, 2, 1), edge(3, 1, 2, **{part: other[part]}))
        assert contents(store, home()) == before

    def test_a_replaced_edge_must_not_take_an_active_key_either(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3))
        with pytest.raises(Conflict):
            put_edges(store, edge(2, 1, 2))

    def test_a_replaced_edge_frees_its_key(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3))
        put_edges(store, edge(1, 1, 3), edge(4, 1, 2))
        assert numbers_of(store.find_edges([home()], EVERY)) == [1, 2, 4]

    def test_edges_that_differ_in_one_part_of_the_key_live_together(self, store: GraphBackend) -> None:
        rows = [
            edge(1, 1, 2),
            edge(2, 2, 1),
            edge(3, 1, 3),
            edge(4, 1, 2, relation="likes"),
            edge(5, 1, 2, edge_type=EdgeType.ENTITY),
        ]
        put_graph(store, *rows)
        assert store.find_edges([home()], EVERY) == rows

    def test_versions_that_ended_may_share_a_key(self, store: GraphBackend) -> None:
        rows = [edge(n, 1, 2, valid_to=day(n), expired_at=day(n)) for n in (1, 2, 3)]
        put_graph(store, *rows, edge(4, 1, 2))
        assert store.find_edges([home()], EdgeQuery(keys=(rows[0].key,), versions="all")) == [*rows, edge(4, 1, 2)]

    @pytest.mark.parametrize("ends", [(1, 9), (9, 1)], ids=["target", "source"])
    def test_an_edge_to_an_absent_entity_is_refused(self, store: GraphBackend, ends: tuple[int, int]) -> None:
        put_entities(store, entity(1))
        with pytest.raises(InvalidInput):
            put_edges(store, edge(1, *ends))

    def test_an_edge_from_an_absent_episode_is_refused(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        with pytest.raises(InvalidInput):
            put_edges(store, edge(1, 1, 2, episode_ids=(episode_id(9),)))

    def test_changing_an_edge_that_was_given_or_read_changes_nothing_in_the_store(self, store: GraphBackend) -> None:
        given = edge(1, 1, 2, properties={"a": 1})
        put_graph(store, given)
        given.properties["a"] = 3
        store.find_edges([home()], EVERY)[0].properties["a"] = 2
        assert store.find_edges([home()], EVERY)[0].properties == {"a": 1}


class ExpiryTests(StoreTests):
    """An edge ends once; a corroboration raises its confidence; neither changes another field of the row."""

    def test_an_expiry_sets_the_end_and_nothing_else(self, store: GraphBackend) -> None:
        put_episodes(store, 1)
        old = edge(1, 1, 2, fact="f", confidence=0.25, episode_ids=(episode_id(1),), properties={"a": 1})
        put_graph(store, old, edge(2, 2, 3))
        ends = (
            EdgeEnd(by=edge_id(2), at=day(3), told_at=day(3)),
            EdgeEnd(by=episode_id(1), at=day(3.5), told_at=day(3.25)),
        )
        expiry = EdgeExpiry(edge_id(1), day(3), day(4), edge_id(2), "over", ends)
        store.write(home(), Changes(expiries=(expiry,)))
        ended = old.changed(valid_to=day(3), expired_at=day(4), superseded_by=edge_id(2), end_reason="over", ends=ends)
        assert store.find_edges([home()], EVERY) == [ended, edge(2, 2, 3)]

    def test_a_second_expiry_changes_nothing(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(3), day(4), edge_id(2)),)))
        once = contents(store, home())
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(1), day(6), edge_id(3)),)))
        assert contents(store, home()) == once

    def test_an_edge_with_a_known_end_is_not_closed_again(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, valid_to=day(9)))
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(3), day(4)),)))
        assert store.find_edges([home()], EVERY) == [edge(1, 1, 2, valid_to=day(9))]

    def test_the_successor_may_take_the_key_in_the_same_write(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        successor = edge(2, 1, 2, valid_from=day(3))
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(3), day(4), edge_id(2)),), edges=(successor,)))
        assert store.find_edges([home()], EdgeQuery(versions="active")) == [successor]

    def test_an_expiry_frees_the_key_for_later_writes(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(3), day(4)),)))
        put_edges(store, edge(2, 1, 2))
        assert numbers_of(store.find_edges([home()], EdgeQuery(versions="active"))) == [2]

    def test_a_retraction_ends_where_it_began(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, valid_from=day(2)))
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(2), day(5)),)))
        assert store.find_edges([home()], EVERY) == [
            edge(1, 1, 2, valid_from=day(2), valid_to=day(2), expired_at=day(5))
        ]

    def test_an_end_before_the_beginning_is_refused(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, valid_from=day(2)))
        before = contents(store, home())
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(1), day(5)),)))
        assert contents(store, home()) == before

    def test_expiring_an_absent_edge_is_refused(self, store: GraphBackend) -> None:
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(9), day(1), day(5)),)))

    @pytest.mark.parametrize(("given", "kept"), [(0.75, 0.75), (0.25, 0.5), (0.5, 0.5)])
    def test_a_corroboration_raises_the_confidence_and_never_lowers_it(
        self, store: GraphBackend, given: float, kept: float
    ) -> None:
        put_graph(store, edge(1, 1, 2, confidence=0.5))
        store.write(home(), Changes(corroborations=(Corroboration(edge_id(1), given),)))
        assert store.find_edges([home()], EVERY)[0].confidence == kept

    def test_a_corroboration_adds_each_episode_once_behind_the_others(self, store: GraphBackend) -> None:
        put_episodes(store, 1, 2, 5, 9)
        put_graph(store, edge(1, 1, 2, episode_ids=(episode_id(5), episode_id(2))))
        added = (episode_id(2), episode_id(9), episode_id(1))
        store.write(home(), Changes(corroborations=(Corroboration(edge_id(1), 0.0, added),)))
        together = tuple(episode_id(n) for n in (5, 2, 9, 1))
        assert store.find_edges([home()], EVERY)[0].episode_ids == together

    def test_a_corroboration_touches_nothing_else(self, store: GraphBackend) -> None:
        put_episodes(store, 1)
        row = edge(1, 1, 2, fact="f", confidence=0.5, recorded_at=day(1), retrieval_count=2.0, properties={"a": 1})
        put_graph(store, row)
        store.write(home(), Changes(corroborations=(Corroboration(edge_id(1), 0.75, (episode_id(1),)),)))
        assert store.find_edges([home()], EVERY) == [row.changed(confidence=0.75, episode_ids=(episode_id(1),))]

    def test_several_corroborations_of_an_edge_add_up(self, store: GraphBackend) -> None:
        put_episodes(store, 1, 2)
        put_graph(store, edge(1, 1, 2, confidence=0.5))
        corroborations = (
            Corroboration(edge_id(1), 0.75, (episode_id(1),)),
            Corroboration(edge_id(1), 0.625, (episode_id(2),)),
        )
        store.write(home(), Changes(corroborations=corroborations))
        (row,) = store.find_edges([home()], EVERY)
        assert (row.confidence, row.episode_ids) == (0.75, (episode_id(1), episode_id(2)))

    def test_an_edge_can_be_supported_in_the_write_that_brings_it(self, store: GraphBackend) -> None:
        put_entities(store, entity(1), entity(2))
        row = edge(1, 1, 2, confidence=0.5)
        store.write(home(), Changes(edges=(row,), corroborations=(Corroboration(edge_id(1), 0.75),)))
        assert store.find_edges([home()], EVERY) == [row.changed(confidence=0.75)]

    def test_supporting_an_absent_edge_is_refused(self, store: GraphBackend) -> None:
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(corroborations=(Corroboration(edge_id(9), 0.5),)))

    def test_a_corroboration_by_an_absent_episode_is_refused(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(corroborations=(Corroboration(edge_id(1), 0.5, (episode_id(9),)),)))


class RetrievalTests(StoreTests):
    """A retrieval is counted once per call and edge."""

    def test_a_retrieval_counts_the_edge_and_both_ends(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, retrieval_count=0.5), edge(2, 3, 4))
        store.record_retrievals([home()], [edge_id(1)], day(7))
        edges = [edge(1, 1, 2, retrieval_count=1.5, last_retrieved_at=day(7)), edge(2, 3, 4)]
        assert store.find_edges([home()], EVERY) == edges
        assert [e.access_count for e in store.find_entities([home()], EntityQuery())] == [1, 1, 0, 0]

    def test_an_id_that_is_given_twice_counts_once(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        store.record_retrievals([home()], [edge_id(1), edge_id(1)], day(7))
        assert store.find_edges([home()], EVERY)[0].retrieval_count == 1.0
        assert [e.access_count for e in store.find_entities([home()], EntityQuery())] == [1, 1]

    def test_an_entity_is_accessed_once_for_each_edge_it_is_an_end_of(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 2, 3))
        store.record_retrievals([home()], [edge_id(1), edge_id(2)], day(7))
        assert [e.access_count for e in store.find_entities([home()], EntityQuery())] == [1, 2, 1]

    def test_retrievals_of_absent_edges_are_ignored(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        store.record_retrievals([home()], [edge_id(9), edge_id(1)], day(7))
        assert store.find_edges([home()], EVERY)[0].retrieval_count == 1.0

    def test_an_edge_that_ended_is_counted_too(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, valid_to=day(1), expired_at=day(1)))
        store.record_retrievals([home()], [edge_id(1)], day(7))
        assert store.find_edges([home()], EVERY)[0].retrieval_count == 1.0


_GIVEN: list[tuple[tuple[int, int], dict[str, Any]]] = [
    ((1, 2), {"fact": "Anna knows Berta", "confidence": 0.5, "kind": "inferred"}),
    ((2, 1), {"relation": "likes", "fact": "100% sure", "recorded_at": day(2)}),
    ((1, 3), {"relation": "works_at", "fact": "snake_case", "edge_type": EdgeType.ENTITY}),
    (
        (1, 4),
        {
            "relation": "works_at",
            "valid_from": day(2),
            "valid_to": day(4),
            "expired_at": day(5),
            "ends": tuple(EdgeEnd(by=i, at=day(n), told_at=day(n)) for i, n in (("a message", 4), ("another", 6))),
        },
    ),
    ((3, 4), {"edge_type": EdgeType.CAUSAL, "fact": "back\\slash", "valid_from": day(3), "kind": "event"}),
    ((4, 2), {"valid_from": day(1), "valid_to": FUTURE, "fact": "*star* \"quote\" 'tick'"}),
    (
        (2, 3),
        {"valid_from": day(2), "valid_to": day(2), "expired_at": day(3), "superseded_by": "a fact", "fact": "ÄRGER"},
    ),
]


def people() -> tuple[Edge, ...]:
    """Return facts between four people, one for each case of a query."""
    return tuple(edge(n, source, target, **given) for n, ((source, target), given) in enumerate(_GIVEN, start=1))


ALONE: dict[str, tuple[Callable[[], EdgeQuery], list[int]]] = {
    "ids": (lambda: EdgeQuery(ids=(edge_id(6), edge_id(1), edge_id(99)), versions="all"), [1, 6]),
    "source_ids": (lambda: EdgeQuery(source_ids=(entity_id(1), entity_id(4)), versions="all"), [1, 3, 4, 6]),
    "target_ids": (lambda: EdgeQuery(target_ids=(entity_id(4), entity_id(1)), versions="all"), [2, 4, 5]),
    "touching": (lambda: EdgeQuery(touching=(entity_id(4),), versions="all"), [4, 5, 6]),
    "relations": (lambda: EdgeQuery(relations=("works_at", "likes"), versions="all"), [2, 3, 4]),
    "edge_types": (lambda: EdgeQuery(edge_types=(EdgeType.ENTITY, EdgeType.CAUSAL), versions="all"), [3, 5]),
    "keys": (lambda: EdgeQuery(keys=(people()[0].key, people()[3].key), versions="all"), [1, 4]),
    "slots": (
        lambda: EdgeQuery(
            slots=((entity_id(1), "works_at"), (entity_id(2), "likes"), (entity_id(2), "works_at")), versions="all"
        ),
        [2, 3, 4],
    ),
    "kinds": (lambda: EdgeQuery(kinds=("inferred", "event"), versions="all"), [1, 5]),
    "ended_by": (lambda: EdgeQuery(ended_by=("another", "a fact", "nobody"), versions="all"), [4, 7]),
    "text": (lambda: EdgeQuery(text="know", versions="all"), [1, 5, 6, 7]),
    "window": (lambda: EdgeQuery(window=("valid_from", day(1), day(2)), versions="all"), [4, 7]),
    "visible": (lambda: EdgeQuery(), [1, 2, 3, 5, 6]),
    "active": (lambda: EdgeQuery(versions="active"), [1, 2, 3, 5]),
    "past": (lambda: EdgeQuery(versions="past"), [4]),
    "all": (lambda: EdgeQuery(versions="all"), [1, 2, 3, 4, 5, 6, 7]),
}

_LISTS = (
    "ids",
    "source_ids",
    "target_ids",
    "touching",
    "relations",
    "edge_types",
    "keys",
    "slots",
    "kinds",
    "ended_by",
)
_FIELDS = (*_LISTS, "text", "window")


class EdgeQueryTests(StoreTests):
    """Every field of `EdgeQuery` restricts the result, several are ANDed, and pages continue after the last row."""

    @pytest.mark.parametrize("field", ALONE)
    def test_a_field_alone_restricts(self, store: GraphBackend, field: str) -> None:
        put_graph(store, *people())
        query, expected = ALONE[field]
        assert numbers_of(store.find_edges([home()], query())) == expected

    @pytest.mark.parametrize("field", _FIELDS)
    def test_fields_together_are_anded(self, store: GraphBackend, field: str) -> None:
        put_graph(store, *people())
        for other in (*_FIELDS, "visible", "active"):
            (one, first), (two, second) = ALONE[field], ALONE[other]
            both = replace(two(), **{field: getattr(one(), field)}, versions=two().versions)
            expected = sorted(set(first) & set(second)) if other != field else first
            assert numbers_of(store.find_edges([home()], both)) == expected, f"{field} and {other}"

    def test_three_fields_together_are_anded(self, store: GraphBackend) -> None:
        put_graph(store, *people())
        for names in combinations(_FIELDS, 3):
            query = EdgeQuery(versions="all", **{name: getattr(ALONE[name][0](), name) for name in names})
            expected = sorted(set[int].intersection(*(set(ALONE[name][1]) for name in names)))
            assert numbers_of(store.find_edges([home()], query)) == expected, names

    @pytest.mark.parametrize("field", _LISTS)
    def test_an_empty_list_of_values_matches_no_edge(self, store: GraphBackend, field: str) -> None:
        put_graph(store, *people())
        assert store.find_edges([home()], replace(EVERY, **{field: ()})) == []

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("%", [2]),
            ("_", [3, 4]),
            ("\\", [5]),
            ("*", [6]),
            ('"quote"', [6]),
            ("'tick'", [6]),
            ("ANNA", [1]),
            ("b", [1, 5]),
            ("LIKES", [2]),
            ("0% S", [2]),
            ("a%b", []),
            ("ÄRGER", [7]),
            ("ärger", []),
            ("", [1, 2, 3, 4, 5, 6, 7]),
        ],
    )
    def test_text_is_looked_for_as_it_stands_in_fact_or_relation(
        self, store: GraphBackend, text: str, expected: list[int]
    ) -> None:
        put_graph(store, *people())
        assert numbers_of(store.find_edges([home()], EdgeQuery(text=text, versions="all"))) == expected

    @pytest.mark.parametrize("axis", ["valid_from", "valid_to", "recorded_at", "expired_at"])
    def test_a_window_is_open_at_its_beginning_and_closed_at_its_end(self, store: GraphBackend, axis: Any) -> None:
        tick = timedelta(microseconds=1)
        times = [day(5), day(5) + tick, day(6), day(7), day(7) + tick]
        base: dict[str, Any] = {"valid_from": day(0), "valid_to": day(20), "recorded_at": day(0), "expired_at": day(20)}
        given: list[dict[str, Any]] = [{**base, axis: moment} for moment in times]
        put_graph(store, *(edge(n, 1, 2, **times_of) for n, times_of in enumerate(given)), edge(9, 2, 1))
        query = EdgeQuery(window=(axis, day(5), day(7)), versions="all")
        assert numbers_of(store.find_edges([home()], query)) == [1, 2, 3]

    def test_thousands_of_edge_ids_and_keys_may_be_named(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(1500)))
        put_edges(store, *(edge(n, n, (n + 1) % 1500) for n in range(1500)))
        asked = [edge_id(n) for n in range(3000)]
        assert sorted(store.get_edges([home()], asked)) == asked[:1500]
        ends = tuple(entity_id(n) for n in range(3000))
        assert len(store.find_edges([home()], EdgeQuery(touching=ends), limit=5000)) == 1500
        keys = tuple(edge(n, n, (n + 1) % 1500).key for n in range(1500))
        assert len(store.find_edges([home()], EdgeQuery(keys=keys), limit=5000)) == 1500

    @pytest.mark.parametrize("chunk", [1, 2, 3, 7])
    def test_paging_of_edges_neither_skips_nor_repeats(self, store: GraphBackend, chunk: int) -> None:
        order = (9, 3, 12, 1, 7, 5, 14, 0, 2, 13, 4, 6, 8, 10, 11)
        put_entities(store, *(entity(n) for n in range(16)))
        put_edges(store, *(edge(n, n, n + 1, edge_type=EdgeType.CAUSAL if n % 3 else EdgeType.ENTITY) for n in order))
        put_graph(store, *(edge(n, n, n + 1, project()) for n in range(100, 105)))
        everywhere = [*range(15), *range(100, 105)]
        causal = EdgeQuery(edge_types=(EdgeType.CAUSAL,))
        of_first = EdgeQuery(touching=tuple(entity_id(n) for n in range(0, 16, 2)))
        assert numbers_of(list(store.all_edges([home(), project()], EdgeQuery(), chunk=chunk))) == everywhere
        assert numbers_of(list(store.all_edges([home()], causal, chunk=chunk))) == [n for n in range(15) if n % 3]
        assert numbers_of(list(store.all_edges([home()], of_first, chunk=chunk))) == list(range(15))

    def test_a_page_of_edges_holds_as_many_rows_as_the_limit(self, store: GraphBackend) -> None:
        put_graph(store, *people())
        sizes = [len(store.find_edges([home()], EVERY, limit=limit)) for limit in (1, 6, 7, 8)]
        newest = [len(store.find_edges([home()], EVERY, limit=limit, newest_first=True)) for limit in (1, 6, 7, 8)]
        assert (sizes, newest) == ([1, 6, 7, 7], [1, 6, 7, 7])

    def test_newest_first_is_by_valid_from_then_recorded_at_then_id(self, store: GraphBackend) -> None:
        put_graph(
            store,
            edge(1, 1, 2, valid_from=day(3), recorded_at=day(5)),
            edge(2, 2, 1, valid_from=day(1), recorded_at=day(9)),
            edge(3, 2, 3, valid_from=day(3), recorded_at=day(2)),
            edge(4, 3, 2, valid_from=day(3), recorded_at=day(2)),
            edge(5, 3, 1, valid_from=day(4), recorded_at=day(0)),
        )
        rows = store.find_edges([home()], EVERY, newest_first=True)
        assert numbers_of(rows) == [5, 1, 4, 3, 2]
        assert store.find_edges([home()], EVERY, newest_first=True, limit=2) == rows[:2]

    def test_past_facts_are_over_and_neither_replaced_nor_retracted(self, store: GraphBackend) -> None:
        put_graph(
            store,
            edge(1, 1, 2, valid_to=day(2)),
            edge(2, 1, 3, valid_to=day(2), expired_at=day(3), end_reason="over"),
            edge(3, 2, 1, valid_to=day(2), superseded_by=edge_id(1)),
            edge(4, 3, 1, valid_from=day(2), valid_to=day(2), expired_at=day(3)),
            edge(5, 4, 1, valid_to=FUTURE),
            edge(6, 1, 4),
            edge(7, 3, 2, valid_to=day(5)),
        )
        past = EdgeQuery(versions="past")
        assert numbers_of(store.find_edges([home()], past)) == [1, 2, 7]
        about = EdgeQuery(touching=(entity_id(1),), versions="past", as_of=AsOf(day(1), day(1)))
        assert numbers_of(store.find_edges([home()], about)) == [1, 2]
        newest = store.find_edges([home()], about, newest_first=True, limit=1)
        assert numbers_of(newest) == [2]

    def test_active_facts_are_told_by_what_communities_are_found_by(self, store: GraphBackend) -> None:
        begin = day(-30000) + timedelta(microseconds=3)
        stored = edge(1, 1, 2, edge_type=EdgeType.CAUSAL, confidence=0.1 + 0.2, retrieval_count=2.5, valid_from=begin)
        put_graph(store, stored, edge(2, 2, 3, valid_to=FUTURE), edge(3, 3, 1, valid_from=day(1), valid_to=day(1)))
        expected = (edge_id(1), entity_id(1), entity_id(2), "causal", 0.1 + 0.2, 2.5, begin.timestamp())
        assert store.find_active_facts(home()) == [expected]

    def test_active_facts_about_archived_entities_and_inferred_ones_are_left_out(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(1, 5)), entity(5, archived_at=day(1)))
        put_edges(store, edge(1, 5, 1), edge(2, 1, 2), edge(3, 2, 5), edge(4, 3, 4))
        put_edges(store, edge(6, 1, 3, kind="inferred"))
        assert [fact.id for fact in store.find_active_facts(home())] == [edge_id(2), edge_id(4)]

    @pytest.mark.parametrize("chunk", [1, 2, 3, 7])
    def test_paging_of_active_facts_neither_skips_nor_repeats(self, store: GraphBackend, chunk: int) -> None:
        kinds = tuple(EdgeType)
        put_entities(store, *(entity(n, archived_at=day(1) if n == 7 else None) for n in range(16)))
        put_edges(store, *(edge(n, n, n + 1, edge_type=kinds[n % 5]) for n in (9, 3, 12, 1, 7, 5, 14, 0, 2, 13, 4, 6)))
        put_graph(store, *(edge(n, n, n + 1, project()) for n in range(100, 105)))
        found: list[str] = []
        while page := store.find_active_facts(home(), after=found[-1] if found else "", limit=chunk):
            assert len(page) <= chunk
            found += [fact.id for fact in page]
        assert found == [edge_id(n) for n in (0, 1, 2, 3, 4, 5, 9, 12, 13, 14)]

    def test_get_edges_returns_every_version_and_leaves_out_the_absent(self, store: GraphBackend) -> None:
        put_graph(store, *people())
        found = store.get_edges([home()], [edge_id(7), edge_id(99), edge_id(4)])
        assert found == {edge_id(4): people()[3], edge_id(7): people()[6]}

    def test_ids_of_a_row_come_in_ascending_order_whatever_the_order_asked(self, store: GraphBackend) -> None:
        put_graph(store, *people())
        query = EdgeQuery(ids=tuple(reversed(ids(people()))), versions="all")
        assert numbers_of(store.find_edges([home()], query)) == [1, 2, 3, 4, 5, 6, 7]
