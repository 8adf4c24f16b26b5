"""Episodes that end and expire: what search, recall and context return of them, and how they are erased."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem import GraphMemory, InvalidInput
from graphmem.models import AsOf, Changes, EpisodeEnd, EpisodeExpiry, EpisodeQuery
from graphmem.protocols import GraphBackend
from tests.e2e.test_search import TokenWordVectors

OpenMemory = Callable[..., GraphMemory]

pytestmark = pytest.mark.server

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory, clock: Hands) -> GraphMemory:
    return open_memory(store_url, embeddings=TokenWordVectors(), clock=clock)


def store_of(memory: GraphMemory) -> GraphBackend:
    return memory._engine.backend  # pyright: ignore[reportPrivateUsage]


def told(memory: GraphMemory, text: str, **fields: Any) -> str:
    receipt = memory.remember(text, **fields)
    assert receipt.wait(60)
    return receipt.episode_id


def texts(memory: GraphMemory, **options: Any) -> list[str]:
    return sorted(found.episode.text for found in memory.search("What does Maya visit?", k=10, **options))


def targets(memory: GraphMemory, **options: Any) -> list[str]:
    return sorted(fact.target for fact in memory.recall("What does Maya visit?", **options))


def test_nothing_of_an_episode_is_returned_once_it_has_expired(memory: GraphMemory, clock: Hands) -> None:
    told(memory, "Maya | visits | Nice", occurred_at=NOW - HOUR, session_id="s")
    short = told(memory, "Maya | visits | Porto", occurred_at=NOW - HOUR, session_id="s", expires_in=HOUR)
    everywhere: dict[str, Callable[[], object]] = {
        "search": lambda: texts(memory),
        "search as of before": lambda: texts(memory, as_of=AsOf(NOW, NOW + HOUR)),
        "filtered search": lambda: texts(memory, filters={"session_ids": "s"}),
        "recall": lambda: targets(memory),
        "recall by ppr": lambda: targets(memory, strategy="ppr"),
        "filtered recall": lambda: targets(memory, filters={"session_ids": "s"}),
        "context": lambda: memory.context("What does Maya visit?"),
        "facts": lambda: [fact.target for fact in memory.facts("Maya")],
        "history": lambda: [fact.target for fact in memory.history("Maya")],
        "diff": lambda: [fact.target for fact in memory.diff(NOW - 2 * HOUR, NOW + HOUR).learned],
        "session": lambda: [episode.text for episode in memory.session("s")],
        "episodes": lambda: [episode.text for episode in memory.episodes([short])],
    }
    before = {name: "Porto" in str(read()) for name, read in everywhere.items()}
    clock.now = NOW + HOUR
    after = {name: "Porto" in str(read()) for name, read in everywhere.items()}
    assert before == dict.fromkeys(everywhere, True)
    assert after == dict.fromkeys(everywhere, False)
    assert texts(memory) == ["Maya | visits | Nice"]
    assert targets(memory) == ["Nice"]


def test_a_fact_that_another_episode_states_outlives_the_expired_one(memory: GraphMemory, clock: Hands) -> None:
    told(memory, "Maya | visits | Porto", expires_in=60)
    told(memory, "Maya | visits | Porto")
    clock.now = NOW + HOUR
    assert targets(memory) == ["Porto"]
    assert len(texts(memory)) == 1


def test_an_episode_that_has_ended_is_found_in_the_past_alone(memory: GraphMemory, clock: Hands) -> None:
    old = told(memory, "Maya | visits | Nice", occurred_at=NOW - 3 * HOUR)
    told(memory, "Maya | visits | Porto", occurred_at=NOW - HOUR)
    store_of(memory).write(memory.scope, Changes(episode_ends=(EpisodeEnd(old, NOW - HOUR),)))
    assert texts(memory) == ["Maya | visits | Porto"]
    assert texts(memory, as_of=NOW - 2 * HOUR) == ["Maya | visits | Nice"]
    assert [episode.id for episode in memory.episodes([old])] == [old]
    store_of(memory).write(memory.scope, Changes(episode_expiries=(EpisodeExpiry(old, NOW),)))
    assert texts(memory, as_of=NOW - 2 * HOUR) == []


def test_an_extended_lifetime_counts_and_a_clock_that_goes_back_fails_nothing(
    memory: GraphMemory, clock: Hands
) -> None:
    kept = told(memory, "Maya | visits | Porto", expires_in="1h")
    store_of(memory).write(memory.scope, Changes(episode_expiries=(EpisodeExpiry(kept, NOW + 3 * HOUR),)))
    clock.now = NOW + 2 * HOUR
    assert texts(memory) == ["Maya | visits | Porto"]
    clock.now = NOW + 4 * HOUR
    assert texts(memory) == []
    clock.now = NOW - 24 * HOUR
    assert texts(memory) == ["Maya | visits | Porto"]
    assert told(memory, "Maya | visits | Nice", expires_in=HOUR)
    assert sorted(texts(memory)) == ["Maya | visits | Nice", "Maya | visits | Porto"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (90, timedelta(seconds=90)),
        (0.5, HOUR / 7200),
        ("12h", 12 * HOUR),
        ("1.5 d", 36 * HOUR),
        (HOUR, HOUR),
    ],
)
def test_a_lifetime_is_a_duration_seconds_or_a_text(memory: GraphMemory, given: Any, expected: timedelta) -> None:
    [stored] = memory.episodes([memory.remember("Maya | visits | Porto", expires_in=given).episode_id])
    assert stored.expires_at == NOW + expected


@pytest.mark.parametrize(
    "fields",
    [
        *({"expires_in": wrong} for wrong in (0, -1, "soon", "5 years", True, float("nan"), 1e300, "9999999999w")),
        {"expires_in": 9e11},
        {"expires_at": "tomorrow"},
        {"expires_at": "2100-01-01", "expires_in": 5},
    ],
)
def test_a_lifetime_that_is_none_is_refused(memory: GraphMemory, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="expires"):
        memory.remember("Maya | visits | Porto", **fields)
    assert store_of(memory).find_episodes([memory.scope], EpisodeQuery()) == []
