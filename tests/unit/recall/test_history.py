"""History and diff, against versions made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from graphmem.models import AsOf, Changes, Edge, EdgeExpiry, Entity, Scope, utc_now
from graphmem.protocols import GraphBackend
from graphmem.recall.facts import diff, history
from graphmem.registry import open_backend

SCOPE = Scope("tests")


def day(n: int) -> datetime:
    return datetime(2026, 1, n, tzinfo=UTC)


def entity(name: str) -> Entity:
    return Entity(
        id=name,
        scope=SCOPE,
        name=name,
        canonical_name=name,
        entity_type="concept",
        first_seen_at=day(1),
        last_seen_at=day(1),
        recorded_at=day(1),
    )


@pytest.fixture
def backend() -> Iterator[GraphBackend]:
    """Learned on the 2nd: since the 1st, maya at initech. Learned on the 6th: since the 5th, at globex."""
    store = open_backend("memory://")
    old, new = (
        Edge(
            id=target,
            scope=SCOPE,
            source_id="maya",
            target_id=target,
            relation="works_at",
            valid_from=day(since),
            recorded_at=day(learned),
        )
        for target, since, learned in (("initech", 1, 2), ("globex", 5, 6))
    )
    store.write(SCOPE, Changes(entities=tuple(map(entity, ("maya", "initech", "globex"))), edges=(old,)))
    store.write(SCOPE, Changes(expiries=(EdgeExpiry("initech", day(5), day(6), "globex"),), edges=(new,)))
    yield store
    store.close()


def versions(backend: GraphBackend, as_of: AsOf | None = None, limit: int = 10) -> list[tuple[str, datetime | None]]:
    found = history(backend, [SCOPE], ["maya"], relation=None, text=None, as_of=as_of, limit=limit, now=utc_now())
    return [(f.target, f.valid_to) for f in found]


def test_all_versions_newest_first(backend: GraphBackend) -> None:
    assert versions(backend) == [("globex", None), ("initech", day(5))]


def test_no_more_than_the_limit(backend: GraphBackend) -> None:
    assert versions(backend, limit=1) == [("globex", None)]


def test_before_the_end_was_learned_it_is_not_told(backend: GraphBackend) -> None:
    assert versions(backend, AsOf(known=day(5))) == [("initech", None)]


def test_before_anything_was_learned_there_is_nothing(backend: GraphBackend) -> None:
    assert versions(backend, AsOf(known=day(1))) == []


def test_what_had_not_begun_is_not_told(backend: GraphBackend) -> None:
    assert versions(backend, AsOf(valid=day(3))) == [("initech", day(5))]


def test_a_diff_is_behind_its_start_and_up_to_its_end(backend: GraphBackend) -> None:
    changed = diff(backend, [SCOPE], day(1), day(5), limit=10, now=utc_now())
    assert ([f.id for f in changed.began], [f.id for f in changed.ended]) == (["globex"], ["initech"])
    assert [f.id for f in changed.learned] == ["initech"]


def test_a_diff_that_is_cut_says_so(backend: GraphBackend) -> None:
    assert diff(backend, [SCOPE], datetime(2025, 1, 1, tzinfo=UTC), day(9), limit=1, now=utc_now()).truncated
    assert not diff(backend, [SCOPE], day(1), day(9), limit=2, now=utc_now()).truncated


def test_a_retracted_fact_neither_began_nor_ended(backend: GraphBackend) -> None:
    backend.write(SCOPE, Changes(expiries=(EdgeExpiry("globex", day(5), day(8)),)))
    changed = diff(backend, [SCOPE], day(4), day(9), limit=10, now=utc_now())
    assert [f.id for f in changed.began] == []
    assert [f.id for f in changed.ended] == ["initech"]
