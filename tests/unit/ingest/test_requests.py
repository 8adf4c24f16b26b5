"""The turns before an episode in its extraction request."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.ingest.requests import build_requests
from graphmem.models import Changes, Episode, Removal, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend

AT = datetime(2025, 1, 13, tzinfo=UTC)
HERE = Scope("tests")
TURNS = 4


@pytest.fixture
def store() -> Generator[GraphBackend]:
    with_rows = open_backend("memory://")
    yield with_rows
    with_rows.close()


def put(store: GraphBackend, sessions: Sequence[str], roles: Sequence[str] = ("user",)) -> list[Episode]:
    turns = [
        Episode(scope=HERE, text=f"turn {n}", session_id=session, role=roles[n % len(roles)], occurred_at=AT)
        for n, session in enumerate(sessions)
    ]
    for turn in turns:
        store.add_episodes(HERE, [turn])
    return turns


def contexts(store: GraphBackend, episodes: Sequence[Episode]) -> list[list[str]]:
    requests = build_requests(store, HERE, episodes, TURNS, now=AT)
    return [[turn.id for turn in request.context] for request in requests]


@pytest.mark.parametrize("seed", range(20))
def test_each_request_has_the_turns_before_it(store: GraphBackend, seed: int) -> None:
    chosen = random.Random(seed)
    told = put(store, chosen.choices("ab", k=60), roles=("user", "tool", "assistant"))
    episodes = chosen.sample(told, chosen.choice((1, 5, 60)))
    expected = [
        [
            turn.id
            for turn in [t for t in told if t.session_id == episode.session_id and t.id < episode.id][-3 * TURNS :]
            if turn.role != "tool"
        ][-TURNS:]
        for episode in episodes
    ]

    assert contexts(store, episodes) == expected


def test_turns_of_one_session_are_read_together(store: GraphBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    told = put(store, "a" * 100)
    reads: list[Any] = []
    find = store.find_episodes

    def counted(*args: Any, **options: Any) -> list[Episode]:
        reads.append(args)
        return find(*args, **options)

    monkeypatch.setattr(store, "find_episodes", counted)

    contexts(store, told[40:])
    assert len(reads) == 2  # one of them for the speakers


def test_an_erased_turn_leaves_the_context_of_the_others(store: GraphBackend) -> None:
    told = put(store, "a" * 6)
    store.write(HERE, Changes(removals=(Removal("episode", told[5].id),)))

    assert contexts(store, told[4:])[0] == [turn.id for turn in told[:4]]
