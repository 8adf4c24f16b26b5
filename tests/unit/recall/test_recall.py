"""Facts for a question, by every strategy, on a store that is filled by hand."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np
import pytest

from graphmem import Embeddings, GraphMemory
from graphmem.errors import InvalidInput
from graphmem.models import (
    Alias,
    AsOf,
    Changes,
    Edge,
    EdgeType,
    Entity,
    Episode,
    ExpandLimits,
    Mention,
    Scope,
    Subgraph,
)
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import GraphBackend
from graphmem.recall.entity_embeddings import EntityEmbeddings, Vectors
from graphmem.recall.evidence import Evidence, stated_facts
from graphmem.recall.options import RecallOptions
from graphmem.recall.recall import RecallContext, recall
from graphmem.registry import open_backend
from graphmem.results import RecallResult, Strategy, StrategyChoice
from graphmem.settings import Settings

SCOPE = Scope("tests")
NOW = datetime(2026, 2, 1, tzinfo=UTC)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def day(n: int) -> datetime:
    return datetime(2026, 1, n, tzinfo=UTC)


def entity(name: str) -> Entity:
    return Entity(
        id=name,
        scope=SCOPE,
        name=name.title(),
        canonical_name=name,
        entity_type="concept",
        first_seen_at=day(1),
        last_seen_at=day(1),
        recorded_at=day(1),
    )


def edge(source: str, relation: str, target: str, confidence: float = 0.9, kind: EdgeType = EdgeType.SEMANTIC) -> Edge:
    return Edge(
        id=f"{source}-{target}",
        scope=SCOPE,
        source_id=source,
        target_id=target,
        relation=relation,
        edge_type=kind,
        fact=f"{source} {relation} {target}",
        confidence=confidence,
        valid_from=day(1),
        recorded_at=day(1),
    )


NAMES = ("maya", "globex", "austin", "jonas", "berlin", "rust", "outage")
EDGES = (
    edge("maya", "works_at", "globex"),
    edge("globex", "based_in", "austin", 0.8),
    edge("maya", "knows", "jonas", 0.5),
    edge("jonas", "lives_in", "berlin", 0.7),
    edge("maya", "uses", "rust", 0.6),
    edge("jonas", "uses", "rust", 0.95),
    edge("rust", "caused", "outage", 0.9, EdgeType.CAUSAL),
)


@pytest.fixture(params=["memory://", "sqlite:///{}/store.db"])
def backend(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[GraphBackend]:
    store = open_backend(request.param.format(tmp_path))
    episodes = [
        Episode(id=i, scope=SCOPE, text=i, occurred_at=day(n), recorded_at=day(n)) for i, n in (("old", 1), ("new", 20))
    ]
    store.add_episodes(SCOPE, episodes)
    pairs = [("maya", "old"), ("globex", "old"), ("maya", "new"), ("rust", "new"), ("jonas", "new")]
    store.write(
        SCOPE,
        Changes(
            entities=tuple(map(entity, NAMES)),
            aliases=tuple(Alias(alias=name, entity_type="concept", entity_id=name) for name in NAMES),
            edges=EDGES,
            mentions=tuple(Mention(entity_id=n, episode_id=e, surface=n, seen_at=day(1)) for n, e in pairs),
        ),
    )
    yield store
    store.close()


def ask(
    backend: GraphBackend,
    query: str = "Maya",
    *,
    strategy: StrategyChoice | None = None,
    embeddings: EntityEmbeddings | None = None,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> RecallResult:
    chosen = RecallOptions.of(Settings(**(settings or {})), strategy=strategy, **options)
    return recall(RecallContext(backend, [SCOPE], DEFAULT_ONTOLOGY, NOW, embeddings), query, chosen)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_fact_tells_its_seed_its_path_and_its_hop(backend: GraphBackend, strategy: Strategy) -> None:
    found = ask(backend, strategy=strategy)
    assert found.strategy == strategy
    assert [(f.seed, f.path[0], len(f.path) - 1) for f in found] == [("Maya", "Maya", f.hop) for f in found]
    assert all({f.source, f.target} & {f.path[-1]} for f in found)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_parts_of_a_score_are_those_of_the_formula(backend: GraphBackend, strategy: Strategy) -> None:
    for _ in range(3):
        backend.record_retrievals([SCOPE], ["maya-jonas"], day(20))
    parts = {f.id: f.parts for f in ask(backend, strategy=strategy, temporal_decay_rate=0.1)}
    near, often, causal = (parts[fact_id] for fact_id in ("maya-rust", "maya-jonas", "rust-outage"))
    assert near
    assert often
    assert causal
    assert (near.confidence, near.edge_type) == (0.6, 1.0)
    assert often.confidence == pytest.approx(0.5 * (1 + 0.2 * math.log(4)))
    assert causal.edge_type == 1.2
    assert near.recency == pytest.approx(1 + 1 / (1 + 31 * 0.1))
    hops = (1.0, 1.0) if strategy == "spreading" else (1.0, 0.5)
    assert (near.proximity, causal.proximity) == hops


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_score_is_the_product_of_its_parts_and_the_evidence(backend: GraphBackend, strategy: Strategy) -> None:
    for fact in ask(backend, "Where does Maya work?", strategy=strategy, temporal_decay_rate=0.1):
        assert fact.parts is not None
        parts = fact.parts.model_dump()
        evidence = parts.pop("evidence")
        assert fact.score == pytest.approx(math.prod(parts.values()) + evidence)


def test_a_question_that_names_a_relation_prefers_its_facts(backend: GraphBackend) -> None:
    factors = {f.relation: f.parts.relation for f in ask(backend, "Where does Maya work?") if f.parts}
    assert factors.pop("works_at") == 3.0
    assert set(factors.values()) == {1.0}
    assert {f.parts.relation for f in ask(backend, "Where is Maya?") if f.parts} == {1.0}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_facts_come_best_first_and_within_the_limit(backend: GraphBackend, strategy: Strategy) -> None:
    scores = [fact.score or 0.0 for fact in ask(backend, strategy=strategy, limit=3)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_a_limit_of_none_gives_no_facts(backend: GraphBackend) -> None:
    found = ask(backend, limit=0)
    assert (found.facts, [seed.name for seed in found.seeds]) == ((), ["Maya"])
    with pytest.raises(InvalidInput, match="limit"):
        ask(backend, limit=-1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_the_edge_types_asked_for_are_followed(backend: GraphBackend, strategy: Strategy) -> None:
    found = ask(backend, "rust", strategy=strategy, edge_types=(EdgeType.CAUSAL,))
    assert [fact.target for fact in found] == ["Outage"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_fact_about_an_archived_entity_takes_no_place(backend: GraphBackend, limit: int) -> None:
    hidden = [entity(name).changed(archived_at=day(2)) for name in ("globex", "austin")]
    facts = [edge.changed(episode_ids=("new",)) for edge in EDGES if edge.id not in ("rust-outage", "maya-rust")]
    backend.write(SCOPE, Changes(entities=tuple(hidden), edges=tuple(facts)))
    options, evidence = RecallOptions.of(Settings(), limit=limit), Evidence(episode_ids=("new",))
    found = recall(RecallContext(backend, [SCOPE], DEFAULT_ONTOLOGY, NOW, evidence=evidence), "zebra", options)
    expected = ["jonas-rust", "jonas-berlin", "maya-jonas"]
    assert [fact.id for fact in found] == expected[:limit]


def test_facts_whose_episode_is_erased_during_a_recall_are_left_out(
    backend: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stated(_scope: Scope, _ids: Sequence[str]) -> list[str]:
        return [edge.id for edge in EDGES]

    monkeypatch.setattr(backend, "find_edges_of_episodes", stated)
    options, evidence = RecallOptions.of(Settings()), Evidence(episode_ids=("old",))
    assert stated_facts(backend, [SCOPE], "Maya", evidence, options, DEFAULT_ONTOLOGY, NOW).edges == {}


def test_facts_of_fewer_episodes_are_read_where_they_are_too_many(
    backend: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def stated(_scope: Scope, ids: Sequence[str]) -> list[str]:
        asked.append(list(ids))
        return [f"{episode_id}-{n}" for episode_id in ids for n in range(900)]

    def get(_scopes: Sequence[Scope], ids: Sequence[str]) -> dict[str, Edge]:
        asked.append(list(ids))
        return {}

    monkeypatch.setattr(backend, "find_edges_of_episodes", stated)
    monkeypatch.setattr(backend, "get_edges", get)
    options, evidence = RecallOptions.of(Settings()), Evidence(episode_ids=("a", "b", "c", "d", "e"))
    stated_facts(backend, [SCOPE], "Maya", evidence, options, DEFAULT_ONTOLOGY, NOW)
    assert [len(ids) for ids in asked] == [5, 2, 1800]
    assert asked[1] == ["a", "b"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_hops_bound_what_is_reached(backend: GraphBackend, strategy: Strategy) -> None:
    assert {fact.target for fact in ask(backend, strategy=strategy, max_hops=1)} == {"Globex", "Jonas", "Rust"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_question_about_nothing_known_gives_nothing(backend: GraphBackend, strategy: Strategy) -> None:
    found = ask(backend, "zebra", strategy=strategy)
    assert (found.facts, found.strategy, found.timed_out) == ((), strategy, False)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_before_it_was_recorded_nothing_is_found(backend: GraphBackend, strategy: Strategy) -> None:
    before = AsOf(known=datetime(2025, 12, 1, tzinfo=UTC))
    assert ask(backend, strategy=strategy, as_of=before).facts == ()


def test_the_default_is_bfs_and_a_setting_changes_it(backend: GraphBackend) -> None:
    assert ask(backend).strategy == "bfs"
    assert ask(backend, settings={"recall_strategy": "ppr"}).strategy == "ppr"


def test_an_unknown_strategy_is_refused(backend: GraphBackend) -> None:
    with pytest.raises(InvalidInput, match=r"strategy.*dfs"):
        ask(backend, strategy="dfs")  # type: ignore[arg-type]


def test_the_cheapest_way_changes_the_order_and_not_what_is_reached(backend: GraphBackend) -> None:
    assert {f.id for f in ask(backend, strategy="astar")} == {f.id for f in ask(backend, strategy="bfs")}


def test_spreading_reaches_a_hop_further_by_default(backend: GraphBackend) -> None:
    assert ask(backend, strategy="spreading").facts != ()
    assert RecallOptions.of(Settings()).hops("spreading") == 3 > RecallOptions.of(Settings()).hops("bfs")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spreading_decay_lambda", 0.2),
        ("spreading_activation_threshold", 0.7),
        ("spreading_inhibition_threshold", 0.2),
        ("spreading_max_activated_nodes", 1),
        ("spreading_max_hops", 1),
    ],
)
def test_every_limit_of_spreading_can_be_set(backend: GraphBackend, name: str, value: float) -> None:
    def scores(**settings: Any) -> list[float | None]:
        return [fact.score for fact in ask(backend, strategy="spreading", settings=settings)]

    assert scores(**{name: value}) != scores()


class Slow:
    """A store that takes its time to expand."""

    def __init__(self, store: GraphBackend, seconds: float) -> None:
        self._store, self._seconds = store, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def expand(self, *args: Any, limits: ExpandLimits | None = None, **options: Any) -> Subgraph:
        end = time.monotonic() + self._seconds
        found = self._store.expand(*args, limits=limits, **options)
        while time.monotonic() < end:
            pass
        return found


def test_past_its_time_spreading_returns_what_is_there(backend: GraphBackend) -> None:
    slow: Any = Slow(backend, 0.02)
    found = ask(slow, strategy="spreading", settings={"spreading_time_limit": 0.01})
    assert found.timed_out
    assert {"Globex", "Jonas", "Rust"} <= {fact.target for fact in found}


def test_what_is_spoken_of_together_gains_in_the_walk_once_it_is(backend: GraphBackend) -> None:
    """Maya is mentioned with Globex, and from the 20th with Rust and Jonas as well."""

    def lead(as_of: AsOf) -> float:
        ranks = {f.id: f.parts.reach for f in ask(backend, strategy="ppr", as_of=as_of) if f.parts}
        return ranks["maya-rust"] - ranks["maya-globex"]

    assert lead(AsOf(valid=day(10), known=NOW)) < lead(AsOf(valid=day(25), known=NOW))
    assert lead(AsOf(valid=day(25), known=day(10))) < lead(AsOf(valid=day(25), known=NOW))


class Towards:
    """Vectors in which the question means one entity, and two entities are names for the same."""

    def __init__(self, *goals: str) -> None:
        self.goals = goals

    def of_query(self, query: str) -> Vectors:
        return np.array([1.0, 0.0])

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
        return np.array([[1.0, 0.0] if i in self.goals else [0.0, 0.0] for i in entity_ids])

    def nearest(self, scopes: Sequence[Scope], question: Vectors, limit: int) -> Sequence[tuple[str, float]]:
        return [(goal, 0.5) for goal in self.goals]


def reach(backend: GraphBackend, fact: str, strategy: Strategy, embeddings: EntityEmbeddings | None) -> float:
    return next(
        f.parts.reach for f in ask(backend, strategy=strategy, embeddings=embeddings) if f.id == fact and f.parts
    )


def test_the_cheapest_way_leads_towards_what_the_question_means(backend: GraphBackend) -> None:
    assert reach(backend, "maya-globex", "astar", None) == pytest.approx(1 / (1 + 0.1))
    assert reach(backend, "maya-globex", "astar", Towards("globex")) == pytest.approx(1 / (1 + 0.1 * 0.01))


def test_seeds_are_found_by_meaning_where_words_find_none(backend: GraphBackend) -> None:
    found = [s.entity_id for s in ask(backend, "hardly any word", embeddings=Towards("globex")).seeds]
    assert found == ["globex"]


def test_words_that_find_seeds_leave_meaning_out_but_in_hybrid_mode(backend: GraphBackend) -> None:
    by_words = ask(backend, "Maya", embeddings=Towards("globex")).seeds
    both = ask(backend, "Maya", embeddings=Towards("globex"), settings={"seed_mode": "hybrid"}).seeds
    assert "globex" not in [s.entity_id for s in by_words]
    assert {s.entity_id: s.text for s in both}["globex"] == 0.5


def test_near_synonyms_share_rank(backend: GraphBackend) -> None:
    same = Towards("maya", "berlin")
    assert reach(backend, "jonas-berlin", "ppr", same) > reach(backend, "jonas-berlin", "ppr", None)


@pytest.mark.parametrize(
    ("query", "strategy"), [("Maya", "ppr"), ("rust?", "ppr"), ("Why did Maya leave yesterday?", "ppr"), ("may", "bfs")]
)
def test_auto_takes_what_serves_the_kind_of_question(backend: GraphBackend, query: str, strategy: str) -> None:
    assert ask(backend, query, strategy="auto").strategy == strategy


def test_auto_follows_the_types_that_the_question_is_about(backend: GraphBackend) -> None:
    """The causal and the semantic facts of Rust, and with types of the caller's, those."""
    assert "Outage" in {f.target for f in ask(backend, "Why is there trouble with Rust?", strategy="auto")}
    asked = ask(backend, "Why Rust?", strategy="auto", edge_types=(EdgeType.SEMANTIC,))
    assert "Outage" not in {f.target for f in asked}


def test_auto_takes_all_types_where_those_of_the_question_lead_nowhere(backend: GraphBackend) -> None:
    backend.write(
        SCOPE,
        Changes(
            entities=(entity("fire"), entity("smoke")), edges=(edge("fire", "caused", "smoke", 0.9, EdgeType.CAUSAL),)
        ),
    )
    assert [f.target for f in ask(backend, "When was the smoke first seen?", strategy="auto")] == ["Smoke"]


def test_no_hops_are_refused_for_spreading_alone() -> None:
    assert RecallOptions.of(Settings(), strategy="auto", max_hops=0).max_hops == 0
    with pytest.raises(InvalidInput, match="max_hops"):
        RecallOptions.of(Settings(), strategy="spreading", max_hops=0)


class SameVectors(Embeddings):
    """Embeddings by which all texts are near to each other."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0]] * len(texts)

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


@pytest.mark.parametrize("question", ["", "?", "(", "@", "…", "?! ()", "+", "$"])
def test_a_question_of_only_punctuation_finds_nothing(question: str) -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings=SameVectors(), background=False) as memory:
        memory.add_facts([("Maya", "knows", "Ben")])
        assert len(memory.recall("who?")) == 1  # by vectors alone
        assert memory.recall(question).facts == ()
        assert memory.context(question) == ""
