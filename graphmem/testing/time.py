"""Tests of both time axes: visibility of facts, against a table worked out by hand."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest

from graphmem.models import AsOf, Changes, EdgeExpiry, EdgeQuery
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.rows import FUTURE, day, edge, edge_id, entity_id, home, numbers_of, put_edges, put_graph

TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Case:
    """The times of a fact, a point on both axes (None for the present), and whether the fact is visible."""

    what: str
    valid_from: datetime
    valid_to: datetime | None
    recorded_at: datetime
    expired_at: datetime | None
    prior_valid_to: datetime | None
    valid: datetime | None
    known: datetime | None
    seen: bool


def _case(
    what: str,
    times: tuple[float, float | None, float, float | None],
    moment: tuple[float, float],
    seen: bool,
    *,
    prior: float | None = None,
) -> Case:
    valid_from, valid_to, recorded_at, expired_at = times
    return Case(
        what,
        day(valid_from),
        None if valid_to is None else day(valid_to),
        day(recorded_at),
        None if expired_at is None else day(expired_at),
        None if prior is None else day(prior),
        day(moment[0]),
        day(moment[1]),
        seen,
    )


# times: valid_from, valid_to, recorded_at, expired_at; moment: valid, known; in days
CASES = [
    _case("open, after its beginning", (2, None, 4, None), (3, 5), True),
    _case("open, at its beginning", (2, None, 4, None), (2, 5), True),
    _case("open, before its beginning", (2, None, 4, None), (1, 5), False),
    _case("open, when it was recorded", (2, None, 4, None), (3, 4), True),
    _case("open, before it was recorded", (2, None, 4, None), (3, 3), False),
    _case("begins in the future of the moment", (8, None, 4, None), (5, 5), False),
    _case("begins in the future, asked for that future", (8, None, 4, None), (8, 5), True),
    _case("ended, before its end", (2, 6, 2, 7), (5, 9), True),
    _case("ended, at its end", (2, 6, 2, 7), (6, 9), False),
    _case("ended, after its end", (2, 6, 2, 7), (8, 9), False),
    _case("ended, after its end, which was not known yet", (2, 6, 2, 7), (8, 6.5), True),
    _case("ended, at its end, which was not known yet", (2, 6, 2, 7), (6, 6), True),
    _case("ended, at the moment the end was learned", (2, 6, 2, 7), (8, 7), False),
    _case("ended, before its beginning, end not known", (2, 6, 2, 7), (1, 6.5), False),
    _case("end learned ahead of time, not reached", (2, 6, 2, 3), (5, 4), True),
    _case("end learned ahead of time, reached", (2, 6, 2, 3), (6, 4), False),
    _case("end learned ahead of time, before that", (2, 6, 2, 3), (6, 2.5), True),
    _case("closed on arrival, within", (2, 6, 8, None), (4, 9), True),
    _case("closed on arrival, at its end", (2, 6, 8, None), (6, 9), False),
    _case("closed on arrival, not recorded yet", (2, 6, 8, None), (4, 7), False),
    _case("closed on arrival and marked so, within", (2, 6, 8, 8), (4, 9), True),
    _case("closed on arrival and marked so, after", (2, 6, 8, 8), (7, 9), False),
    _case("retracted, since then", (2, 2, 2, 5), (3, 6), False),
    _case("retracted, at the moment it was", (2, 2, 2, 5), (3, 5), False),
    _case("retracted, before that", (2, 2, 2, 5), (3, 4), True),
    _case("retracted, about its beginning", (2, 2, 2, 5), (2, 6), False),
    _case("never true on arrival", (2, 2, 2, None), (2, 6), False),
    _case("recorded before it began", (5, None, 1, None), (6, 2), True),
    _case("ended sooner than stated, before the stated end, not known", (2, 4, 2, 7), (5, 6), True, prior=6),
    _case("ended sooner than stated, before the stated end, known", (2, 4, 2, 7), (5, 7), False, prior=6),
    _case("ended sooner than stated, at the stated end, not known", (2, 4, 2, 7), (6, 6), False, prior=6),
    _case("ended sooner than stated, after the stated end, not known", (2, 4, 2, 7), (8, 6), False, prior=6),
    _case("ended sooner than stated, before its end", (2, 4, 2, 7), (3, 8), True, prior=6),
    _case("retracted, after the stated end, not known", (2, 2, 2, 7), (8, 6), False, prior=6),
    _case("retracted, before the stated end, not known", (2, 2, 2, 7), (5, 6), True, prior=6),
]

NOW_CASES = [
    Case("open", day(2), None, day(2), None, None, None, None, True),
    Case("begins in the future", FUTURE, None, day(2), None, None, None, None, True),
    Case("ends in the future", day(2), FUTURE, day(2), None, None, None, None, True),
    Case("ends in the future, as was learned", day(2), FUTURE, day(2), day(3), None, None, None, True),
    Case("begins and ends in the future", FUTURE, FUTURE + TICK, day(2), None, None, None, None, True),
    Case("ended", day(2), day(3), day(2), day(3), None, None, None, False),
    Case("closed on arrival", day(2), day(3), day(2), None, None, None, None, False),
    Case("retracted", day(2), day(2), day(2), day(3), None, None, None, False),
    Case("retracted before it began", FUTURE, FUTURE, day(2), day(3), None, None, None, False),
    Case("recorded in the future", day(2), None, FUTURE, None, None, None, None, True),
]


class TimeTests(StoreTests):
    """A read returns the facts for which `is_visible` holds: valid at one time, as known at another."""

    @pytest.mark.parametrize("case", [*CASES, *NOW_CASES], ids=lambda case: case.what)
    def test_a_fact_is_seen_when_it_held_as_far_as_was_known(self, store: GraphBackend, case: Case) -> None:
        _write(store, case)
        assert bool(store.find_edges([home()], EdgeQuery(as_of=_as_of(case)))) is case.seen

    @pytest.mark.parametrize("case", [*CASES, *NOW_CASES], ids=lambda case: case.what)
    def test_a_walk_follows_the_facts_that_are_seen(self, store: GraphBackend, case: Case) -> None:
        _write(store, case)
        graph = store.expand([home()], [entity_id(1)], hops=1, as_of=_as_of(case))
        assert (graph.edge_ids == [edge_id(1)], len(graph.node_ids)) == (case.seen, 2 if case.seen else 1)

    @pytest.mark.parametrize("case", NOW_CASES, ids=lambda case: case.what)
    def test_the_degree_of_a_hit_counts_the_facts_that_are_seen(self, store: GraphBackend, case: Case) -> None:
        _write(store, case)
        (hit,) = store.search_entities([home()], words=[], phrases=["entity 1"], limit=1)
        assert hit.degree == int(case.seen)

    def test_times_are_exact_to_the_microsecond(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, valid_from=day(1) + TICK, valid_to=day(1) + 3 * TICK))
        seen = [bool(store.find_edges([home()], EdgeQuery(as_of=AsOf(day(1) + n * TICK, day(9))))) for n in range(5)]
        assert seen == [False, True, True, False, False]

    def test_times_of_another_zone_are_the_same_moments(self, store: GraphBackend) -> None:
        tokyo = timezone(timedelta(hours=9))
        row = edge(1, 1, 2, valid_from=day(1).astimezone(tokyo), recorded_at=day(1).astimezone(tokyo))
        put_graph(store, row)
        store.write(
            home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(2).astimezone(tokyo), day(3).astimezone(tokyo)),))
        )
        (read,) = store.get_edges([home()], [edge_id(1)]).values()
        assert (read.valid_from, read.valid_to, read.expired_at) == (day(1), day(2), day(3))
        assert read.valid_to is not None
        assert read.valid_to.tzinfo == UTC

    def test_times_before_1970_and_far_ahead_keep_their_order(self, store: GraphBackend) -> None:
        early, late = datetime(1066, 10, 14, 9, 0, 0, 123457, UTC), datetime(9999, 12, 31, 23, 59, 59, 999_998, UTC)
        put_graph(store, edge(1, 1, 2, valid_from=early), edge(2, 2, 1, valid_from=late), edge(3, 1, 3))
        assert numbers_of(store.find_edges([home()], EdgeQuery(), newest_first=True)) == [2, 3, 1]
        read = store.get_edges([home()], [edge_id(1), edge_id(2)])
        assert [read[edge_id(n)].valid_from for n in (1, 2)] == [early, late]

    def test_the_versions_of_a_fact_each_show_at_their_time(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, relation="lives_in", valid_from=day(1), recorded_at=day(1)), edge(9, 2, 3))
        moved = edge(2, 1, 3, relation="lives_in", valid_from=day(5), recorded_at=day(7))
        store.write(home(), Changes(expiries=(EdgeExpiry(edge_id(1), day(5), day(7), edge_id(2)),), edges=(moved,)))
        slot = ((entity_id(1), "lives_in"),)

        def visible(valid: float, known: float) -> list[int]:
            query = EdgeQuery(slots=slot, as_of=AsOf(day(valid), day(known)))
            return numbers_of(store.find_edges([home()], query))

        assert {
            "then, as known then": visible(3, 3),
            "later, as known before the move was told": visible(6, 6),
            "later, as known now": visible(6, 8),
            "then, as known now": visible(3, 8),
        } == {
            "then, as known then": [1],
            "later, as known before the move was told": [1],
            "later, as known now": [2],
            "then, as known now": [1],
        }

    def test_as_of_is_ignored_where_all_versions_are_asked(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2, valid_to=day(1), expired_at=day(1)))
        put_edges(store, edge(2, 1, 2, valid_from=day(8), recorded_at=day(8)))
        assert numbers_of(store.find_edges([home()], EdgeQuery(versions="all", as_of=AsOf(day(3), day(3))))) == [1, 2]


def _write(store: GraphBackend, case: Case) -> None:
    put_graph(
        store,
        edge(
            1,
            1,
            2,
            valid_from=case.valid_from,
            valid_to=case.valid_to,
            recorded_at=case.recorded_at,
            expired_at=case.expired_at,
            prior_valid_to=case.prior_valid_to,
        ),
    )


def _as_of(case: Case) -> AsOf | None:
    return None if case.valid is None else AsOf(case.valid, case.known)
