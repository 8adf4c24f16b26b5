"""Episodes that end and expire: what search, recall and context return of them, and how they are erased."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory, InvalidInput, NotFound
from graphmem.errors import BackendUnavailable, Conflict
from graphmem.ingest.requests import build_requests
from graphmem.models import FORGETTING, AsOf, Changes, EpisodeEnd, EpisodeExpiry, EpisodeQuery, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import GraphBackend
from graphmem.testing.rows import scope_of
from graphmem.upkeep.erase import Erased
from graphmem.upkeep.forget import _erase_batch, expire  # pyright: ignore[reportPrivateUsage]
from tests.e2e.clock import HandSetClock
from tests.e2e.test_upkeep import left_of
from tests.e2e.toy import FAILS, ToyExtractor
from tests.e2e.word_vectors import TokenWordVectors

OpenMemory = Callable[..., GraphMemory]

pytestmark = pytest.mark.server

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock(NOW)


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory, clock: HandSetClock) -> GraphMemory:
    return open_memory(store_url, embeddings=TokenWordVectors(), clock=clock, max_attempts=1)


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


def test_nothing_of_an_episode_is_returned_once_it_has_expired(memory: GraphMemory, clock: HandSetClock) -> None:
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
        "entities": lambda: [entity.name for entity in memory.entities()],
        "entities by name": lambda: [entity.name for entity in memory.entities("Porto")],
        "session": lambda: [episode.text for episode in memory.session("s")],
        "episodes": lambda: [episode.text for episode in memory.episodes([short])],
        "all episodes": lambda: [episode.text for episode in memory.episodes()],
        "all facts": lambda: [fact.target for fact in memory.facts()],
    }
    before = {name: "Porto" in str(read()) for name, read in everywhere.items()}
    clock.now = NOW + HOUR
    after = {name: "Porto" in str(read()) for name, read in everywhere.items()}
    assert before == dict.fromkeys(everywhere, True)
    assert after == dict.fromkeys(everywhere, False)
    assert texts(memory) == ["Maya | visits | Nice"]
    assert targets(memory) == ["Nice"]


READS: dict[str, Callable[[GraphMemory, str, str], object]] = {
    "entities": lambda memory, _, __: memory.entities(),
    "entities by name": lambda memory, _, __: memory.entities("Zora"),
    "counts of entities": lambda memory, _, __: memory.admin.entity_counts(),
    "counts of entities by name": lambda memory, _, __: memory.admin.entity_counts("Zora"),
    "facts": lambda memory, _, __: memory.facts("Maya"),
    "history": lambda memory, _, __: memory.history("Maya"),
    "diff": lambda memory, _, __: memory.diff(NOW - 2 * HOUR, NOW + HOUR),
    "episodes": lambda memory, episode, _: memory.episodes([episode]),
    "session": lambda memory, _, __: memory.session("s"),
    "search": lambda memory, _, __: memory.search("Whom does Maya meet?").found,
    "recall": lambda memory, _, __: memory.recall("Whom does Maya meet?").facts,
    "seeds": lambda memory, _, __: memory.recall("Where does Zora work?").seeds,
    "context": lambda memory, _, __: memory.context("Whom does Maya meet?", explain=True),
    "trace": lambda memory, _, trace: [
        one for one in (*memory.admin.traces(), *memory.admin.traces("Zora")) if one.id == trace
    ],
    "communities": lambda memory, _, __: memory.communities(),
    "communities by name": lambda memory, _, __: memory.communities("Zora"),
    "merges": lambda memory, _, __: [repr(one.model_dump()) for one in memory.admin.merges()],
    "page": lambda memory, _, __: memory.visualize(),
    "page around": lambda memory, _, __: memory.visualize("Maya"),
    "chart": lambda memory, _, __: memory.visualize(format="mermaid"),
    "dead letters": lambda memory, _, __: memory.admin.dead_letters(),
    "inference": lambda memory, _, __: memory.admin.infer(dry_run=True),
}


@pytest.mark.parametrize("read", READS)
def test_no_read_names_who_is_known_only_from_what_has_expired(
    memory: GraphMemory, clock: HandSetClock, read: str
) -> None:
    for n in range(4):
        told(memory, f"Maya | visits | Place {n}", occurred_at=NOW - HOUR, session_id="s")
    zora = told(
        memory,
        "Maya | meets | Zora\nZora | works_at | Acme\nZora B | works_at | Acme\nAcme | part_of | Globex",
        occurred_at=NOW - HOUR,
        session_id="s",
        expires_in=HOUR,
    )
    told(memory, f"Zora {FAILS}", expires_in=HOUR, session_id="s")
    assert memory.admin.merge("Zora B", into="Zora")
    memory.admin.refresh_communities()
    trace = memory.recall("Where does Zora work?", trace=True).trace_id or ""
    assert "Zora" in str(READS[read](memory, zora, trace))
    clock.now = NOW + 2 * HOUR
    assert "Zora" not in str(READS[read](memory, zora, trace))


def test_a_trace_of_who_is_known_only_from_what_has_expired_is_gone(memory: GraphMemory, clock: HandSetClock) -> None:
    told(memory, "Zora | works_at | Acme", expires_in=HOUR)
    told(memory, "Maya | visits | Nice")
    asked = [memory.recall(f"What does {name} do?", trace=True).trace_id or "" for name in ("Maya", "Zora")]
    assert [trace.id for trace in memory.admin.traces(limit=1)] == asked[1:]
    clock.now = NOW + 2 * HOUR
    assert [trace.id for trace in memory.admin.traces(limit=1)] == asked[:1]
    assert [seed.name for seed in memory.why(asked[0]).seeds] == ["Maya"]
    with pytest.raises(NotFound):
        memory.why(asked[1])


def test_an_episode_that_expires_while_it_waits_is_not_extracted(
    store_url: str, open_memory: OpenMemory, clock: HandSetClock
) -> None:
    extractor = ToyExtractor()
    memory = open_memory(store_url, extractor=extractor, clock=clock)
    lines = ["Maya | visits | Nice", "Maya | visits | Porto", "Maya | visits | Turin"]
    for text, lifetime in zip(lines, (None, HOUR, None), strict=True):
        memory.remember(text, session_id="s", expires_in=lifetime)
    clock.now = NOW + HOUR
    assert memory.flush(10) == 0
    assert extractor.seen == [lines[0], lines[2]]
    assert targets(memory) == ["Nice", "Turin"]


def test_a_fact_that_another_episode_states_outlives_the_expired_one(memory: GraphMemory, clock: HandSetClock) -> None:
    told(memory, "Maya | visits | Porto", expires_in=60)
    told(memory, "Maya | visits | Porto")
    clock.now = NOW + HOUR
    assert targets(memory) == ["Porto"]
    assert len(texts(memory)) == 1


def test_expired_facts_take_no_place_of_others(memory: GraphMemory, clock: HandSetClock) -> None:
    for n in range(6):
        told(memory, f"Maya | visits | Hut {n}", expires_in=HOUR)
    for n in range(3):
        told(memory, f"Maya | visits | Place {n}")
    for n in range(12):
        told(memory, f"Maya | visits | Hall {n}", expires_in=HOUR)
    clock.now += 2 * HOUR
    expected = ["Place 2", "Place 1"]
    assert [fact.target for fact in memory.facts("Maya", limit=2)] == expected
    assert [fact.target for fact in memory.history("Maya", limit=2)] == expected
    assert [fact.target for fact in memory.history("Maya", limit=2, as_of=clock.now)] == expected
    assert [entity.name for entity in memory.entities(limit=4)] == ["Maya", "Place 0", "Place 1", "Place 2"]
    found = memory.diff(NOW - HOUR, NOW + HOUR, limit=2)
    assert ([fact.target for fact in found.began], found.truncated) == (["Place 0", "Place 1"], True)


def test_nothing_expired_is_shown_to_a_model_or_inferred_from(memory: GraphMemory, clock: HandSetClock) -> None:
    told(memory, "Maya | works_at | Acme", session_id="s", speaker="Zoe", expires_in=HOUR)
    memory.add_facts([("Acme", "part_of", "Globex"), ("Maya", "likes", "tea")])
    later = told(memory, "Maya | visits | Rome", session_id="s", speaker="Maya")
    assert memory.admin.infer(dry_run=True).added

    def shown() -> tuple[list[str], str | None]:
        asked = store_of(memory).get_episodes([memory.scope], [later])[later]
        store = store_of(memory)
        [request] = build_requests(store, memory.scope, [asked], 4, DEFAULT_ONTOLOGY, now=clock.now)
        return sorted(fact.target for fact in request.known.facts), request.addressee

    assert shown() == (["Acme", "Globex", "tea"], "Zoe")
    clock.now += 2 * HOUR
    assert shown() == (["tea"], None)
    assert memory.admin.infer(dry_run=True).added == 0


@pytest.mark.parametrize(("expired", "live", "reads"), [(25, 0, 1), (24, 1, 1), (5, 1, 0), (5, 25, 0)])
def test_a_fact_of_many_sources_is_hidden_once_all_of_them_have_expired(
    memory: GraphMemory, clock: HandSetClock, monkeypatch: pytest.MonkeyPatch, expired: int, live: int, reads: int
) -> None:
    text = "Maya | visits | Porto"
    memory.ingest(
        [*({"text": text} for _ in range(live)), *({"text": text, "expires_in": HOUR} for _ in range(expired))]
    )
    store, asked, clock.now = store_of(memory), list[int](), NOW + 2 * HOUR
    find = store.find_episode_ids

    def counted(scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        asked.append(len(query.ids or ()))
        return find(scopes, query)

    monkeypatch.setattr(store, "find_episode_ids", counted)
    assert [fact.target for fact in memory.facts("Maya")] == ["Porto"] * bool(live)
    assert asked == [expired + live - 20] * reads
    assert [fact.target for fact in memory.history("Maya")] == ["Porto"] * bool(live)
    assert targets(memory) == ["Porto"] * bool(live)


def test_an_episode_that_has_ended_is_found_in_the_past_alone(memory: GraphMemory, clock: HandSetClock) -> None:
    old = told(memory, "Maya | visits | Nice", occurred_at=NOW - 3 * HOUR)
    told(memory, "Maya | visits | Porto", occurred_at=NOW - HOUR)
    store_of(memory).write(memory.scope, Changes(episode_ends=(EpisodeEnd(old, NOW - HOUR),)))
    assert texts(memory) == ["Maya | visits | Porto"]
    assert texts(memory, as_of=NOW - 2 * HOUR) == ["Maya | visits | Nice"]
    assert [episode.id for episode in memory.episodes([old])] == [old]
    store_of(memory).write(memory.scope, Changes(episode_expiries=(EpisodeExpiry(old, NOW),)))
    assert texts(memory, as_of=NOW - 2 * HOUR) == []


def test_an_extended_lifetime_counts_and_a_clock_that_goes_back_fails_nothing(
    memory: GraphMemory, clock: HandSetClock
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


def rows_of(memory: GraphMemory) -> dict[str, int]:
    stats = memory.stats()
    return {"episodes": stats.episodes, "facts": stats.edges, "entities": stats.entities, "mentions": stats.mentions}


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_has_expired_is_erased_like_what_is_forgotten(
    memory: GraphMemory, open_memory: OpenMemory, clock: HandSetClock, dry_run: bool
) -> None:
    other = open_memory("memory://other", embeddings=TokenWordVectors(), clock=clock)
    for each in (memory, other):
        told(each, "Maya | visits | Nice")
        told(each, "Maya | visits | Porto", session_id="s", expires_in=HOUR)
        told(each, "Maya | visits | Nice", session_id="s", expires_in=HOUR)
        told(each, "Ann | visits | Oslo", expires_in=3 * HOUR)
        each.search("Where is Maya?")
    assert memory.admin.expire().episodes == 0
    clock.now = NOW + 2 * HOUR
    before, expected = rows_of(memory), other.forget(session="s", dry_run=dry_run)
    done = memory.admin.expire(dry_run=dry_run)
    counted = {name: value for name, value in done.model_dump().items() if isinstance(value, int)}
    assert counted == {name: getattr(expected, name) for name in counted}
    assert (done.episodes, done.left) == (2, ())
    assert done.examples == expected.examples
    assert rows_of(memory) == (before if dry_run else rows_of(other))
    assert memory.stats().expired_episodes == (0 if dry_run else 2)
    assert texts(memory) == ["Ann | visits | Oslo", "Maya | visits | Nice"]


def test_more_than_a_batch_expires_at_once_and_what_was_extended_stays(
    memory: GraphMemory, clock: HandSetClock
) -> None:
    turns = [{"text": f"Maya | visits | Place {n}", "expires_in": HOUR} for n in range(30)]
    memory.ingest(turns)
    ids = store_of(memory).find_episode_ids([memory.scope], EpisodeQuery())
    later = EpisodeExpiry(ids[7], NOW + 5 * HOUR)
    store_of(memory).write(memory.scope, Changes(episode_expiries=(later,)))
    clock.now = NOW + 2 * HOUR
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphmem.upkeep.forget._BATCH", 8)
        assert memory.admin.expire().episodes == 29
    assert memory.stats().expired_episodes == 29
    assert texts(memory) == ["Maya | visits | Place 7"]


def test_what_was_erased_stays_erased_when_the_clock_goes_back(
    memory: GraphMemory, clock: HandSetClock, tmp_path: Path
) -> None:
    told(memory, "Maya | visits | Porto", expires_in=HOUR)
    clock.now = NOW + 2 * HOUR
    assert memory.admin.expire().episodes == 1
    clock.now = NOW - 24 * HOUR
    assert memory.admin.expire().episodes == 0
    assert (texts(memory), targets(memory), memory.session("s")) == ([], [], [])
    assert memory.stats().expired_episodes == 1


@pytest.mark.full(store_url="neo4j")
@pytest.mark.whole_store
def test_the_background_erases_what_has_expired_in_every_scope_and_cleans_the_files_once(
    store_url: str, open_memory: OpenMemory, clock: HandSetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, cleaned = open_memory(store_url, clock=clock), list[None]()
    kind = type(store_of(memory))
    scrub = kind.scrub
    monkeypatch.setattr(kind, "scrub", lambda store: cleaned.append(None) or scrub(store))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    scopes = [memory.scope, scope_of("other"), scope_of("third")]
    for scope in scopes:
        told(memory.in_scope(scope), "Maya | visits | Porto", expires_in=HOUR)
    clock.now = NOW + 2 * HOUR
    with open_memory(store_url, clock=clock, background=True) as second:
        second._engine.schedule_expiry()  # pyright: ignore[reportPrivateUsage]
        deadline = time.monotonic() + 60
        while any(memory.in_scope(scope).stats().episodes for scope in scopes) and time.monotonic() < deadline:
            time.sleep(0.02)
    assert [memory.in_scope(scope).stats().expired_episodes for scope in scopes] == [1, 1, 1]
    assert len(cleaned) == 1
    states = [store_of(memory).find_job_state(scope, FORGETTING) for scope in scopes]
    assert [state.begun_at for state in states] == [None] * 3


def test_a_scope_whose_erasure_fails_keeps_no_other_from_it(
    open_memory: OpenMemory, clock: HandSetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, failing = open_memory("memory://", clock=clock, background=True), list[Scope]()
    scopes = [memory.scope, scope_of("other"), scope_of("third")]
    for scope in scopes:
        told(memory.in_scope(scope), "Maya | visits | Porto", expires_in=HOUR)

    def first_fails(backend: Any, index: Any, scope: Scope, *given: Any, **options: Any) -> Any:
        failing.append(scope)
        if scope == failing[0]:
            raise Conflict("the store is out of order")
        return expire(backend, index, scope, *given, **options)

    monkeypatch.setattr("graphmem.engine.expire", first_fails)
    clock.now = NOW + 2 * HOUR
    engine = memory._engine  # pyright: ignore[reportPrivateUsage]
    engine.schedule_expiry()
    deadline = time.monotonic() + 60
    while not engine.background_errors() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "Conflict: the store is out of order" in engine.background_errors()
    left = [scope for scope in scopes if memory.in_scope(scope).stats().episodes]
    assert left == failing[:1]


def test_once_the_store_is_gone_no_other_scope_waits_for_it(
    open_memory: OpenMemory, clock: HandSetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, tried = open_memory("memory://", clock=clock, background=True), list[Scope]()
    for scope in (memory.scope, scope_of("other"), scope_of("third")):
        told(memory.in_scope(scope), "Maya | visits | Porto", expires_in=HOUR)

    def gone(backend: Any, index: Any, scope: Scope, *given: Any, **options: Any) -> Any:
        del backend, index, given, options
        tried.append(scope)
        raise BackendUnavailable("gone")

    monkeypatch.setattr("graphmem.engine.expire", gone)
    clock.now = NOW + 2 * HOUR
    with pytest.raises(BackendUnavailable):
        memory._engine._expire_some()  # pyright: ignore[reportPrivateUsage]
    assert len(tried) == 1


def killed(*_: object) -> Any:
    raise KeyboardInterrupt


def test_files_that_a_killed_process_left_are_cleaned_by_the_next_one(
    sqlite_file: Path, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory(f"sqlite:///{sqlite_file}")
    told(memory, "Maya | visits | Oslo")
    told(memory, "Maya | visits | Zanzibar", external_id="gone")
    with monkeypatch.context() as patch:
        patch.setattr(type(store_of(memory)), "scrub", killed)
        with pytest.raises(KeyboardInterrupt):
            memory.forget(episode="gone")
    memory.close()
    assert left_of(sqlite_file, "zanzibar") == ["zanzibar"]
    with open_memory(f"sqlite:///{sqlite_file}", background=True) as second:
        deadline = time.monotonic() + 30
        while store_of(second).find_job_state(second.scope, FORGETTING).begun_at and time.monotonic() < deadline:
            time.sleep(0.02)
    assert left_of(sqlite_file, "zanzibar") == []


def test_files_are_cleaned_after_the_batches_before_a_failure(
    sqlite_file: Path, open_memory: OpenMemory, clock: HandSetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory(f"sqlite:///{sqlite_file}", clock=clock)
    for place in ("Zanzibar", "Oslo"):
        told(memory, f"Maya | visits | {place}", expires_in=HOUR)
    clock.now = NOW + 2 * HOUR
    batches: list[object] = []

    def second_fails(*given: Any) -> Erased | None:
        batches.append(given)
        return killed() if len(batches) == 2 else _erase_batch(*given)

    with monkeypatch.context() as patch:
        patch.setattr("graphmem.upkeep.forget._BATCH", 1)
        patch.setattr("graphmem.upkeep.forget._erase_batch", second_fails)
        with pytest.raises(KeyboardInterrupt):
            memory.admin.expire()
    assert left_of(sqlite_file, "zanzibar", "oslo") == ["oslo"]


def test_no_picture_community_or_summary_shows_what_has_expired(memory: GraphMemory, clock: HandSetClock) -> None:
    for n in range(4):
        told(memory, f"Maya | visits | Place {n}")
    told(memory, "Maya | hides | Place 1 # afraid of sharks", expires_in=HOUR)
    told(memory, "Maya | works_at | Lab", expires_in=HOUR)
    memory.add_facts([("Lab", "part_of", "Globex")])
    assert memory.admin.infer().added
    memory.admin.refresh_communities()

    def shown() -> str:
        entities = " ".join(entity.summary for entity in (*memory.entities(), *memory.entities("Maya")))
        return f"{memory.visualize()} {memory.visualize('Maya', format='mermaid')} {memory.communities()} {entities}"

    assert "hides" in shown()
    assert "sharks" in shown()
    assert "(inferred)" in shown()
    clock.now = NOW + 2 * HOUR
    assert "Place 3" in shown()
    assert [word in shown() for word in ("hides", "sharks", "(inferred)")] == [False, False, False]


def test_a_context_about_everything_quotes_no_summary_while_something_expired_is_there(
    memory: GraphMemory, clock: HandSetClock
) -> None:
    for n in range(6):
        told(memory, f"Maya | visits | Place {n}")
    told(memory, "Maya | visits | Porto", expires_in=HOUR)
    memory.admin.refresh_communities()
    assert "Porto" in memory.context("What are the main topics?")
    clock.now = NOW + 2 * HOUR
    assert "Porto" not in memory.context("What are the main topics?")
    memory.admin.expire()
    assert "Porto" not in memory.context("What are the main topics?")
