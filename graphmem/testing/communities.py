"""Tests of communities and of their members over time."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphmem.errors import InvalidInput
from graphmem.models import AsOf, Changes, Community, CommunityQuery, Membership, MembershipQuery
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents
from graphmem.testing.rows import (
    FUTURE,
    community,
    community_id,
    day,
    entity,
    entity_id,
    home,
    ids,
    member_numbers,
    membership,
    number_of,
    numbers_of,
    project,
    put_communities,
    put_entities,
)


class CommunityTests(StoreTests):
    """Communities are stored completely, found by every field of `CommunityQuery`, and kept when they end."""

    def test_every_field_of_a_community_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        written = community(
            2,
            level=3,
            name="Zoë & 北京 🦊",
            summary="Line one\nline two: “quoted” % _ \\ '",
            fingerprint="b3:" + "0f" * 32,
            parent_id=community_id(1),
            created_at=day(1.5),
            updated_at=day(2.25),
            ended_at=FUTURE,
        )
        put_communities(store, community(1), written)
        assert store.find_communities([home()], CommunityQuery(ids=(community_id(2),), ended=True)) == [written]

    def test_fields_of_a_community_that_were_not_given_come_back_as_defaults(self, store: GraphBackend) -> None:
        put_communities(store, community(1))
        assert store.find_communities([home()], CommunityQuery()) == [community(1)]

    def test_a_community_is_replaced_by_id_and_keeps_its_members(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        first = community(1, level=1, name="old", fingerprint="x", parent_id=community_id(2))
        put_communities(store, community(2), first, members=[membership(1, 1)])
        new = community(1, name="new", summary="told", fingerprint="y", updated_at=day(3))
        put_communities(store, new)
        assert store.find_communities([home()], CommunityQuery()) == [new, community(2)]
        assert store.find_memberships([home()], MembershipQuery()) == [membership(1, 1)]

    def test_a_part_may_stand_before_its_whole_in_a_write(self, store: GraphBackend) -> None:
        part = community(1, level=1, parent_id=community_id(2))
        put_communities(store, part, community(2))
        assert store.find_communities([home()], CommunityQuery()) == [part, community(2)]

    @pytest.mark.parametrize("parent", [9, 101], ids=["absent", "of another scope"])
    def test_a_parent_that_is_not_in_the_scope_is_refused(self, store: GraphBackend, parent: int) -> None:
        put_communities(store, community(101, project()))
        with pytest.raises(InvalidInput):
            put_communities(store, community(1, parent_id=community_id(parent)))
        assert store.find_communities([home()], CommunityQuery()) == []

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            (lambda: {"ids": (community_id(4), community_id(1), community_id(1), community_id(9))}, [1, 4]),
            (lambda: {"level": 0}, [1, 2]),
            (lambda: {"level": 1}, [3, 4]),
            (lambda: {"level": 2}, []),
            (lambda: {"entity_ids": (entity_id(1),)}, [1, 3]),
            (lambda: {"entity_ids": (entity_id(1), entity_id(2), entity_id(9))}, [1, 2, 3]),
            (lambda: {"entity_ids": (entity_id(3),)}, []),
            (lambda: {"entity_ids": (entity_id(1),), "level": 1}, [3]),
            (lambda: {"entity_ids": (entity_id(1),), "ids": (community_id(1), community_id(2))}, [1]),
            (lambda: {"ids": (community_id(1), community_id(3)), "level": 1}, [3]),
            (lambda: {"ids": ()}, []),
            (lambda: {"entity_ids": ()}, []),
        ],
    )
    def test_communities_are_selected_by_id_level_and_member(
        self, store: GraphBackend, query: Callable[[], dict[str, Any]], numbers: list[int]
    ) -> None:
        put_entities(store, entity(1), entity(2), entity(3))
        rows = [community(n, level=(n - 1) // 2) for n in (1, 2, 3, 4)]
        put_communities(store, *rows, members=[membership(1, 1), membership(2, 2), membership(1, 3)])
        assert numbers_of(store.find_communities([home()], CommunityQuery(**query()))) == numbers

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            (dict, [2, 3]),
            (lambda: {"ended": True}, [1, 2, 3]),
            (lambda: {"ids": (community_id(1), community_id(2))}, [2]),
            (lambda: {"as_of": AsOf(day(0), day(9))}, []),
            (lambda: {"as_of": AsOf(day(1), day(9))}, [1, 2]),
            (lambda: {"as_of": AsOf(day(9), day(1))}, [1, 2]),
            (lambda: {"as_of": AsOf(day(2.99), day(9))}, [1, 2]),
            (lambda: {"as_of": AsOf(day(3), day(9))}, [2, 3]),
            (lambda: {"as_of": AsOf(day(9), day(9)), "ended": True}, [1, 2, 3]),
            (lambda: {"as_of": AsOf(day(2), day(2)), "ended": True}, [1, 2]),
        ],
    )
    def test_communities_are_seen_as_of_their_times(
        self, store: GraphBackend, query: Callable[[], dict[str, Any]], numbers: list[int]
    ) -> None:
        put_communities(
            store,
            community(1, created_at=day(1), updated_at=day(3), ended_at=day(3)),
            community(2, created_at=day(1), updated_at=day(5)),
            community(3, created_at=day(3), updated_at=day(3)),
        )
        assert numbers_of(store.find_communities([home()], CommunityQuery(**query()))) == numbers

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            ({}, [2]),
            ({"as_of": AsOf(day(2), day(9))}, [1]),
            ({"as_of": AsOf(day(4), day(9))}, [2]),
            ({"as_of": AsOf(day(0), day(9))}, []),
            ({"ended": True}, [1, 2]),
        ],
    )
    def test_communities_of_an_entity_are_those_of_the_moment(
        self, store: GraphBackend, query: dict[str, Any], numbers: list[int]
    ) -> None:
        put_entities(store, entity(1))
        put_communities(store, community(1), community(2), members=[membership(1, 1, 1, 3), membership(1, 2, 4)])
        found = store.find_communities([home()], CommunityQuery(entity_ids=(entity_id(1),), **query))
        assert numbers_of(found) == numbers

    @pytest.mark.parametrize("chunk", [1, 2, 3, 7])
    def test_paging_of_communities_neither_skips_nor_repeats(self, store: GraphBackend, chunk: int) -> None:
        rows = [community(n, level=n % 2) for n in (9, 3, 12, 1, 7, 5, 0, 2, 4, 6, 8, 10, 11)]
        put_communities(store, *rows)
        put_communities(store, *(community(n, project()) for n in range(100, 105)))
        every = sorted([*ids(rows), *(community_id(n) for n in range(100, 105))])
        even = [i for i in every if number_of(i) % 2 == 0 or number_of(i) >= 100]
        assert ids(list(store.all_communities([home(), project()], CommunityQuery(), chunk=chunk))) == every
        assert ids(list(store.all_communities([project(), home()], CommunityQuery(level=0), chunk=chunk))) == even

    def test_a_page_of_communities_holds_as_many_rows_as_the_limit(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        put_communities(store, *(community(n) for n in range(5)), members=[membership(1, n) for n in range(5)])
        queries = (CommunityQuery(), CommunityQuery(level=0), CommunityQuery(entity_ids=(entity_id(1),)))
        sizes = [[len(store.find_communities([home()], q, limit=limit)) for limit in (1, 4, 6)] for q in queries]
        assert sizes == [[1, 4, 5]] * 3

    def test_stats_count_present_and_ended_communities(self, store: GraphBackend) -> None:
        put_communities(store, community(1), community(2), community(3, updated_at=day(2), ended_at=day(2)))
        stats = store.stats(home())
        assert (stats.communities, stats.ended_communities) == (3, 1)

    def test_stats_count_who_is_in_a_community_of_the_first_level(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in (1, 2, 3, 4)))
        put_communities(
            store,
            community(1),
            community(2, level=1, parent_id=community_id(1)),
            members=[membership(1, 1), membership(2, 1), membership(3, 1, 0, 1), membership(1, 2)],
        )
        assert store.stats(home()).community_members == 2
        assert store.stats(project()).community_members == 0

    @pytest.mark.parametrize(
        "fields",
        [
            lambda: {"level": -1},
            lambda: {"ended_at": day(-1)},
            lambda: {"updated_at": day(-1)},
            lambda: {"parent_id": community_id(1)},
            lambda: {"created_at": day(0).replace(tzinfo=None)},
        ],
        ids=["negative level", "ended before it was found", "updated before it was found", "its own part", "naive"],
    )
    def test_a_community_that_cannot_be_is_refused(self, fields: Callable[[], dict[str, Any]]) -> None:
        with pytest.raises(InvalidInput):
            community(1, **fields())


class MembershipTests(StoreTests):
    """Memberships begin and end; each earlier state of a partition can be read."""

    def test_a_membership_is_ended_by_writing_it_again(self, store: GraphBackend) -> None:
        _two_states(store)
        assert store.find_memberships([home()], MembershipQuery(entity_ids=(entity_id(2),), ended=True)) == [
            membership(2, 1, 1, 5),
            membership(2, 2, 5),
        ]

    def test_an_entity_may_leave_and_come_back(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        rows = [membership(1, 1, 1, 3), membership(1, 1, 5)]
        put_communities(store, community(1), members=rows)
        assert store.find_memberships([home()], MembershipQuery(ended=True)) == rows
        assert store.find_memberships([home()], MembershipQuery()) == rows[1:]

    @pytest.mark.parametrize(
        ("as_of", "members"),
        [
            (None, [(1, 1), (2, 2), (3, 2)]),
            (AsOf(day(0), day(9)), []),
            (AsOf(day(1), day(9)), [(1, 1), (2, 1), (3, 2)]),
            (AsOf(day(4.99), day(9)), [(1, 1), (2, 1), (3, 2)]),
            (AsOf(day(9), day(4)), [(1, 1), (2, 1), (3, 2)]),
            (AsOf(day(5), day(9)), [(1, 1), (2, 2), (3, 2)]),
        ],
    )
    def test_members_are_those_of_the_moment(
        self, store: GraphBackend, as_of: AsOf | None, members: list[tuple[int, int]]
    ) -> None:
        _two_states(store)
        assert member_numbers(store.find_memberships([home()], MembershipQuery(as_of=as_of))) == members

    @pytest.mark.parametrize(
        ("query", "members"),
        [
            (lambda: {"community_ids": (community_id(1), community_id(1), community_id(9))}, [(1, 1), (2, 1)]),
            (lambda: {"entity_ids": (entity_id(2), entity_id(3), entity_id(9))}, [(2, 1), (3, 2), (2, 3)]),
            (lambda: {"entity_ids": (entity_id(2),), "community_ids": (community_id(1), community_id(2))}, [(2, 1)]),
            (lambda: {"level": 0}, [(1, 1), (2, 1), (3, 2)]),
            (lambda: {"level": 1}, [(1, 3), (2, 3)]),
            (lambda: {"level": 1, "entity_ids": (entity_id(2), entity_id(3))}, [(2, 3)]),
            (lambda: {"level": 1, "community_ids": (community_id(1), community_id(3))}, [(1, 3), (2, 3)]),
            (lambda: {"level": 7}, []),
            (lambda: {"entity_ids": ()}, []),
            (lambda: {"community_ids": ()}, []),
        ],
    )
    def test_memberships_are_selected_by_community_entity_and_level(
        self, store: GraphBackend, query: Callable[[], dict[str, Any]], members: list[tuple[int, int]]
    ) -> None:
        put_entities(store, entity(1), entity(2), entity(3))
        rows = [membership(1, 1), membership(2, 1), membership(3, 2), membership(1, 3), membership(2, 3)]
        put_communities(store, community(1), community(2), community(3, level=1), members=rows)
        assert member_numbers(store.find_memberships([home()], MembershipQuery(**query()))) == members

    @pytest.mark.parametrize("chunk", [1, 2, 3, 7])
    @pytest.mark.parametrize(
        "fields",
        [dict, lambda: {"level": 0}, lambda: {"community_ids": tuple(community_id(n) for n in range(110))}],
        ids=["all", "a level", "named communities"],
    )
    def test_paging_of_memberships_neither_skips_nor_repeats(
        self, store: GraphBackend, fields: Callable[[], dict[str, Any]], chunk: int
    ) -> None:
        for scope, start in ((home(), 0), (project(), 100)):
            put_entities(store, *(entity(start + n, scope) for n in range(6)))
            rows = [membership(start + n, start + n % 3, since) for since in (2, 1) for n in (5, 3, 1, 0, 4, 2)]
            put_communities(store, *(community(start + n, scope) for n in range(3)), members=rows)
        found = list(store.all_memberships([project(), home()], MembershipQuery(ended=True, **fields()), chunk=chunk))
        assert [m.key for m in found] == sorted(m.key for m in found)
        assert len(found) == len({m.key for m in found}) == 24

    def test_thousands_of_members_may_be_written_and_asked_for(self, store: GraphBackend) -> None:
        put_entities(store, *(entity(n) for n in range(2500)))
        put_communities(store, community(1), community(2), members=[membership(n, 1 + n % 2) for n in range(2500)])
        query = MembershipQuery(entity_ids=tuple(entity_id(n) for n in range(5000)))
        assert len(store.find_memberships([home()], query, limit=10_000)) == 2500

    def test_a_partition_is_replaced_as_a_whole_or_not_at_all(self, store: GraphBackend) -> None:
        _two_states(store)
        before = contents(store, home())
        change = Changes(
            communities=(
                community(1, updated_at=day(8), ended_at=day(8)),
                community(3, created_at=day(8), updated_at=day(8)),
            ),
            memberships=(membership(1, 1, 1, 8), membership(1, 3, 8), membership(99, 3, 8)),
        )
        with pytest.raises(InvalidInput):
            store.write(home(), change)
        assert contents(store, home()) == before

    @pytest.mark.parametrize(
        "row",
        [lambda: membership(9, 1), lambda: membership(1, 9), lambda: membership(101, 1), lambda: membership(1, 101)],
        ids=range(4),
    )
    def test_a_membership_of_what_is_not_in_the_scope_is_refused(
        self, store: GraphBackend, row: Callable[[], Membership]
    ) -> None:
        for scope, start in ((home(), 0), (project(), 100)):
            put_entities(store, entity(start + 1, scope))
            put_communities(store, community(start + 1, scope))
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(memberships=(row(),)))
        assert store.find_memberships([home(), project()], MembershipQuery(ended=True)) == []

    def test_a_membership_that_ends_before_it_begins_is_refused(self) -> None:
        with pytest.raises(InvalidInput):
            membership(1, 1, since=2, until=1)

    def test_entities_communities_and_members_come_in_one_write(self, store: GraphBackend) -> None:
        changes = Changes(entities=(entity(1),), communities=(_named(1, "Makers"),), memberships=(membership(1, 1),))
        store.write(home(), changes)
        (found,) = store.find_communities([home()], CommunityQuery(entity_ids=(entity_id(1),)))
        assert found.name == "Makers"


def _named(n: int, name: str) -> Community:
    return community(n, name=name)


def _two_states(store: GraphBackend) -> None:
    """Write three entities in two communities since day 1; entity 2 moves from community 1 to 2 on day 5."""
    put_entities(store, entity(1), entity(2), entity(3))
    first = [membership(1, 1, 1), membership(2, 1, 1), membership(3, 2, 1)]
    put_communities(store, community(1), community(2), members=first)
    store.write(home(), Changes(memberships=(membership(2, 1, 1, 5), membership(2, 2, 5))))
