"""New entities join communities: which one, at what cost, and what is remembered."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from graphmem.communities.assignment import ASSIGNMENT, Assignment
from graphmem.communities.refresh import CommunityRefresh
from graphmem.models import (
    Changes,
    CommunityQuery,
    Edge,
    EdgeQuery,
    JobState,
    MembershipQuery,
    Scope,
    first_id_at,
    new_id,
    utc_now,
)
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings
from graphmem.testing.communities_detect import clique
from graphmem.testing.rows import edge, entity, entity_id, home, put_edges, put_entities


@pytest.fixture
def store() -> Generator[GraphBackend, None, None]:
    store = open_backend("memory://")
    put_entities(store, *(entity(n) for n in range(1, 100)))
    connect(store, [*clique(1, 2, 3), *clique(4, 5, 6)])
    CommunityRefresh(store, Settings()).refresh(home())
    yield store
    store.close()


def homes(store: GraphBackend) -> dict[str, str]:
    return {m.entity_id: m.community_id for m in store.all_memberships([home()], MembershipQuery(level=0))}


def connect(store: GraphBackend, pairs: Sequence[tuple[int, int]]) -> None:
    """Add facts with ids of now: assignment looks for those."""
    put_edges(store, *(edge(0, a, b).changed(id=new_id()) for a, b in pairs))


def assign(store: GraphBackend) -> None:
    while not Assignment(store).step(home()):
        pass


def test_the_community_of_most_neighbours_wins(store: GraphBackend) -> None:
    connect(store, [(9, 1), (4, 9), (9, 5)])
    assign(store)
    assert homes(store)[entity_id(9)] == homes(store)[entity_id(4)]


def test_of_two_with_as_many_neighbours_the_smaller_id_wins(store: GraphBackend) -> None:
    connect(store, [(9, 1), (9, 4)])
    assign(store)
    here = homes(store)
    assert here[entity_id(9)] == min(here[entity_id(1)], here[entity_id(4)])


def test_several_facts_with_one_neighbour_count_once(store: GraphBackend) -> None:
    connect(store, [(9, 1), (9, 4), (9, 5)])
    put_edges(store, *(edge(0, 9, 1, relation=f"likes_{n}").changed(id=new_id()) for n in range(5)))
    assign(store)
    assert homes(store)[entity_id(9)] == homes(store)[entity_id(4)]


def test_a_chain_of_new_entities_joins_whole(store: GraphBackend) -> None:
    connect(store, [(12, 11), (11, 10), (10, 9), (9, 1)])
    assign(store)
    assert {homes(store)[entity_id(n)] for n in (9, 10, 11, 12)} == {homes(store)[entity_id(1)]}


def test_who_knows_nobody_in_a_community_waits_until_one_does(store: GraphBackend) -> None:
    connect(store, [(9, 10)])
    assign(store)
    assert not {entity_id(9), entity_id(10)} & homes(store).keys()
    connect(store, [(10, 4)])
    assign(store)
    assert homes(store)[entity_id(9)] == homes(store)[entity_id(10)] == homes(store)[entity_id(4)]


def test_without_communities_everybody_waits_for_the_first_refresh() -> None:
    store = open_backend("memory://")
    put_entities(store, entity(1), entity(2))
    connect(store, [(1, 2)])
    assert Assignment(store).step(home())
    assert store.find_job_states(home()) == []
    store.close()


def test_an_archived_entity_joins_nothing(store: GraphBackend) -> None:
    put_entities(store, entity(9, archived_at=utc_now()))
    connect(store, [(9, 1)])
    assign(store)
    assert entity_id(9) not in homes(store)


def test_the_next_step_begins_behind_the_last(store: GraphBackend) -> None:
    connect(store, [(9, 1)])
    assign(store)
    [mark] = [mark for mark in store.find_job_states(home()) if mark.job == ASSIGNMENT]
    newest = max(e.id for e in store.all_edges([home()], EdgeQuery()))
    assert mark.cursor == newest
    assert store.find_edges([home()], EdgeQuery(), after=mark.cursor) == []


def test_a_community_that_grew_says_so_and_is_described_anew(store: GraphBackend) -> None:
    cluster = homes(store)[entity_id(1)]
    [before] = store.find_communities([home()], CommunityQuery(ids=(cluster,)))
    connect(store, [(9, 1)])
    assign(store)
    [grown] = store.find_communities([home()], CommunityQuery(ids=(cluster,)))
    assert grown.updated_at > before.updated_at
    CommunityRefresh(store, Settings()).refresh(home())
    [described] = store.find_communities([home()], CommunityQuery(ids=(cluster,)))
    assert described.fingerprint != before.fingerprint
    assert "4 facts" in described.summary


@pytest.mark.parametrize("others", [10, 80])
def test_what_is_read_are_the_neighbours(store: GraphBackend, monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    connect(store, [(n, n + 1) for n in range(10, 10 + others)])
    assign(store)
    CommunityRefresh(store, Settings()).refresh(home())
    newest = max(e.id for e in store.all_edges([home()], EdgeQuery()))
    store.write(home(), Changes(job_states=(JobState(ASSIGNMENT, cursor=newest),)))
    rows: list[Edge] = []
    find_edges = store.find_edges

    def counted(scopes: Sequence[Scope], query: EdgeQuery, *, after: str = "", limit: int = 1000) -> list[Edge]:
        found = find_edges(scopes, query, after=after, limit=limit)
        rows.extend(found)
        return found

    connect(store, [(99, 1), (99, 2)])
    monkeypatch.setattr(store, "find_edges", counted)
    assign(store)
    assert len(rows) == 4  # the two that are new, and those of the new entity


def test_many_new_entities_are_read_together(store: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(store, [(n, 1 + n % 6) for n in range(10, 99)])
    reads: list[str] = []
    for name in ("find_edges", "find_memberships", "find_communities"):
        read = getattr(store, name)

        def counted(*args: Any, _name: str = name, _read: Any = read, **options: Any) -> Any:
            reads.append(_name)
            return _read(*args, **options)

        monkeypatch.setattr(store, name, counted)
    assign(store)
    here = homes(store)
    assert {here[entity_id(n)] == here[entity_id(1 + n % 6)] for n in range(10, 99)} == {True}
    assert len(reads) < 30  # not three for each of them


def test_of_a_long_chain_one_step_reads_a_part(store: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    put_entities(store, *(entity(n) for n in range(100, 2600)))
    connect(store, [(n, n + 1) for n in range(100, 2599)])
    while not Assignment(store).step(home()):
        pass
    connect(store, [(100, 1)])
    reads = 0
    find_edges = store.find_edges

    def counted(*args: Any, **options: Any) -> list[Edge]:
        nonlocal reads
        reads += 1
        return find_edges(*args, **options)

    monkeypatch.setattr(store, "find_edges", counted)
    assert Assignment(store).step(home())
    joined = len(homes(store)) - 6
    assert 100 < joined < 1000
    assert reads < 3 * joined
    monkeypatch.undo()
    CommunityRefresh(store, Settings()).refresh(home())
    assert len(homes(store)) > 2000  # the others are alone


def test_ids_that_are_made_later_lie_above() -> None:
    now = utc_now()
    earlier, later = (first_id_at((now + shift).timestamp()) for shift in (timedelta(seconds=-1), timedelta(hours=1)))
    assert earlier < new_id() < later
