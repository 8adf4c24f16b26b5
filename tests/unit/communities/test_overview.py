"""Communities that answer a question about everything."""

from __future__ import annotations

from graphmem.communities.search import Centroids, CommunitySearch
from graphmem.models import AsOf
from graphmem.registry import open_backend
from graphmem.testing.rows import community, day, entity, home, membership, put_communities, put_entities


def test_an_overview_as_of_a_time_has_the_communities_of_then_behind_many_changed_ones() -> None:
    store = open_backend("memory://")
    put_entities(store, *(entity(n) for n in range(100)))
    changed, unchanged = range(20), range(20, 25)
    rows = [community(n, name=f"C{n}", updated_at=day(9 if n in changed else 1)) for n in (*changed, *unchanged)]
    members = [membership(4 * n + k, n) for n in (*changed, *unchanged) for k in range(4 if n in changed else 2)]
    put_communities(store, *rows, members=members)
    search = CommunitySearch(store, None, Centroids(store))
    question = "What are the main themes in all my notes?"
    assert [c.name for c in search.overview([home()], question, AsOf(day(5), day(5)))] == [f"C{n}" for n in unchanged]
    assert len(search.overview([home()], question, None)) == 20
