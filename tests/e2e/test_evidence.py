"""A recall adds the facts of the episodes that a search finds for the question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from conftest import OpenMemory

from graphmem import GraphMemory
from graphmem.recall.evidence import Evidence
from tests.integration.embed.support import real_model

TURNS = [
    ("I finally handed in my notice; the new people pay twice as much.", ("Priya", "works_at", "Volta Energy")),
    ("The dentist pulled a tooth on Monday.", ("Priya", "visited", "Dr. Mertens")),
    ("We painted the kitchen yellow.", ("Priya", "painted", "the kitchen")),
]


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    memory = open_memory(store_url, embeddings="none", extractor="none")
    for n, (text, (subject, relation, target)) in enumerate(TURNS):
        turn = {"text": text, "speaker": "Priya", "session_id": f"s{n}", "external_id": f"t{n}"}
        memory.ingest([turn | {"occurred_at": f"2026-03-0{n + 1}"}])
        memory.add_facts([{"subject": subject, "relation": relation, "object": target, "source": f"t{n}"}])
    return memory


@pytest.mark.server
def test_facts_of_turns_are_found_by_the_words_of_the_turns(memory: GraphMemory) -> None:
    question = "Who handed in a notice because of the pay?"  # none of its words is in a name or a fact
    assert memory.recall(question, episodes=0).facts == ()
    [fact] = memory.recall(question)
    assert fact.fact == "Priya works at Volta Energy"
    assert fact.parts is not None
    assert (fact.seed, fact.path, fact.parts.seed) == (None, (), 0.0)
    assert fact.score == fact.parts.evidence > 0


@pytest.mark.server
def test_evidence_changes_the_order_of_facts_around_a_seed(memory: GraphMemory) -> None:
    question = "Which colour did Priya choose, yellow?"
    walked, found = memory.recall(question, episodes=0), memory.recall(question)
    assert {f.id for f in walked} == {f.id for f in found}
    assert found[0].target == "the kitchen"
    assert (found[0].seed, found[0].hop) == ("Priya", 0)


def test_a_fact_in_the_relation_that_is_asked_for_comes_before_those_of_better_texts(memory: GraphMemory) -> None:
    for n in range(8):
        turn = {"text": f"Work, work, work: the dog ate plan {n}.", "speaker": "Priya", "external_id": f"w{n}"}
        memory.ingest([turn | {"occurred_at": "2026-04-01"}])
        memory.add_facts([{"subject": "Priya", "relation": "wrote", "object": f"plan {n}", "source": f"w{n}"}])
    assert memory.recall("Where does Priya work?")[0].target == "Volta Energy"


def test_a_question_that_shares_no_word_has_no_evidence(memory: GraphMemory) -> None:
    assert memory.recall("Quarterly revenue forecast?").facts == ()


def test_of_a_list_of_facts_only_those_that_share_a_word_count(memory: GraphMemory) -> None:
    memory.add_facts([("Tom", "plays", "the cello"), ("Ada", "owns", "a bakery"), ("Ben", "repairs", "clocks")])
    assert [f.source for f in memory.recall("Is there anybody with a cello?")] == ["Tom"]


def test_every_fact_of_a_bulk_load_is_in_a_text_of_limited_length(memory: GraphMemory) -> None:
    sentences = [f"Person {n} repairs {n} old clocks" for n in range(120)] + [f"{n} " + "long " * 390 for n in range(6)]
    people = (f"Person {n}" for n in range(len(sentences)))
    triples = [
        {"subject": p, "relation": "does", "object": "work", "fact": s} for p, s in zip(people, sentences, strict=True)
    ]
    assert memory.add_facts(triples).stored == 4
    assert memory.add_facts(triples).stored == 0
    ids = {i for fact in memory.facts("work", limit=1000) for i in fact.episode_ids}
    lists = [episode.text.splitlines() for episode in memory.episodes(sorted(ids))]
    assert [len(lines) for lines in lists] == [50, 50, 23, 3]
    assert [line for lines in lists for line in lines] == [sentence.strip() for sentence in sentences]


def test_facts_that_are_added_to_a_source_later_are_searched_by_their_words(memory: GraphMemory) -> None:
    for subject, relation, target in (("Ada", "lives_in", "Kiel"), ("Tom", "plays", "the cello")):
        memory.add_facts([{"subject": subject, "relation": relation, "object": target, "source": "crm"}])
    [best, *_] = memory.search("Is there anybody with a cello?")
    assert (best.episode.external_id, best.score) == ("crm", 1.0)
    assert memory.search("Is there anybody with a piano?", k=1)[0].score == 0.0


@pytest.mark.server
def test_evidence_keeps_to_filters_types_trust_and_time(memory: GraphMemory) -> None:
    question = "Who handed in a notice because of the pay?"
    assert memory.recall(question, filters={"session_ids": ["two"]}).facts == ()
    assert memory.recall(question, edge_types=["causal"]).facts == ()
    assert memory.recall(question, as_of=datetime(2020, 1, 1, tzinfo=UTC)).facts == ()
    [fact] = memory.recall(question, min_trust="trusted")
    assert memory.recall(question, as_of=fact.valid_from)[0].id == fact.id


def test_a_fact_that_is_over_counts_half(memory: GraphMemory) -> None:
    question = "Who handed in a notice because of the pay?"
    [before] = memory.recall(question)
    memory.end(before.id)
    [after] = memory.recall(question)
    assert (before.score or 0.0) / (after.score or 1.0) == pytest.approx(2, rel=0.2)


def test_retracted_facts_and_those_of_archived_entities_are_no_evidence(memory: GraphMemory) -> None:
    question = "Who handed in a notice because of the pay?"
    [fact] = memory.recall(question)
    memory.retract(fact.id)
    assert memory.recall(question).facts == ()


def test_evidence_is_in_the_trace(memory: GraphMemory) -> None:
    found = memory.recall("Who handed in a notice because of the pay?", trace=True)
    [row] = memory.why(found.trace_id or "").facts
    assert (row.channel, row.rank, row.found_at, row.score) == ("episode", 1, "Volta Energy", found[0].score)


def test_several_facts_of_one_turn_do_not_fill_the_result(memory: GraphMemory) -> None:
    more = [("Priya", "earns", f"bonus {n}") for n in range(5)]
    memory.add_facts([{"subject": s, "relation": r, "object": o, "source": "t0"} for s, r, o in more])
    evidence = [f.parts.evidence for f in memory.recall("Who handed in a notice because of the pay?") if f.parts]
    assert len(evidence) == 6
    assert [later / earlier for earlier, later in pairwise(evidence)] == pytest.approx([0.7] * 5)


def test_in_the_first_person_nobody_of_several_is_meant(memory: GraphMemory) -> None:
    memory.ingest([{"text": "I sold my car.", "speaker": "Tom", "session_id": "two"}])
    assert memory.recall("Did I hand in my notice?").facts == ()
    assert memory.recall("Did I hand in my notice?", asked_by="Priya").facts != ()


def test_a_context_tells_what_the_search_of_its_recall_lacked(
    memory: GraphMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object) -> Evidence:
        return Evidence(degraded=("the model is away",))

    monkeypatch.setattr(memory._engine.recall, "_find_evidence", search)  # pyright: ignore[reportPrivateUsage]
    assert memory.context("Who is at Volta?", as_of="2026-03-05").degraded == ("the model is away",)


def test_a_context_without_a_probable_answer_has_no_facts(memory: GraphMemory) -> None:
    question = "Who handed in a notice because of the pay?"
    sure = memory.search(question).confidence
    assert memory.recall(question).confidence == pytest.approx(sure, abs=0.05)
    assert "Priya works at Volta Energy" in memory.context(question, min_confidence=sure)
    assert memory.context(question, min_confidence=min(1.0, sure + 0.01)) == ""


def test_what_was_told_later_answers_about_an_earlier_time(memory: GraphMemory) -> None:
    memory.add_facts([{"subject": "Priya", "relation": "works_at", "object": "Acme", "valid_from": "2020-01-01"}])
    assert "works at Acme" in memory.context("Where does Priya work?", as_of="2021-01-01", min_confidence=0.01)


@pytest.mark.server
def test_what_was_replaced_answers_a_question_about_the_past(memory: GraphMemory) -> None:
    homes = [("Rome", "2019-01-01"), ("Oslo", "2023-03-01")]
    memory.add_facts(
        [{"subject": "Priya", "relation": "lives_in", "object": home, "valid_from": at} for home, at in homes]
    )

    def found(question: str) -> list[str]:
        facts = memory.recall(question, episodes=0)
        return [fact.target for fact in facts if fact.relation == "lives_in"]

    assert found("Where does Priya live?") == ["Oslo"]
    assert found("Where did Priya use to live?") == ["Rome", "Oslo"]
    assert found("Where did Priya live before Oslo?") == ["Rome", "Oslo"]
    assert found("Where did Priya live before June 2023?") == ["Oslo", "Rome"]
    assert found("Where did Priya live before 2022?") == ["Rome"]
    assert found("Where does Priya, whom Tom met in 2020, live?") == ["Oslo", "Rome"]


@pytest.mark.server
def test_the_words_of_a_date_that_selects_the_facts_do_not_count(memory: GraphMemory) -> None:
    job = {"relation": "works_at", "object": "Acme", "fact": "Dana works at Acme since February 2026."}
    home = {"relation": "lives_in", "object": "Leeds", "fact": "Dana moved to Leeds."}
    dates = ("2026-02-02", "2025-01-01")
    memory.add_facts(
        [{"subject": "Dana", "valid_from": at, **fact} for at, fact in zip(dates, (job, home), strict=True)]
    )
    assert memory.recall("Where did Dana live in February 2026?")[0].target == "Leeds"


@pytest.mark.server
def test_before_something_is_what_held_of_the_same_subject(memory: GraphMemory) -> None:
    captains = {"Aurora": "Ada Boris Cem Dora", "Bonita": "Boris Cem Dora Elif", "Corsa": "Cem Dora Elif Finn"}
    told = [(f"MV {ship}", "captained_by", n, y) for ship, s in captains.items() for y, n in enumerate(s.split(), 2020)]
    told += [("Ann", "works_at", firm, year) for year, firm in enumerate(("Initech", "Hooli", "Globex"), 2020)]
    memory.add_facts(
        {"subject": source, "relation": relation, "object": target, "valid_from": f"{year}-01-01"}
        for source, relation, target, year in told
    )
    for fact in [fact for ship in captains for fact in memory.facts(f"MV {ship}")]:
        memory.end(fact.id, at=fact.valid_from + timedelta(days=365))
    best = memory.recall("Who captained MV Aurora before Dora?")[0]
    assert (best.source, best.target) == ("MV Aurora", "Cem")
    assert [fact.target for fact in memory.recall("Where did Ann work before Globex?")[:2]] == ["Hooli", "Initech"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Any medical conditions?", "diabetes"),
        ("Who owns an automobile?", "Volvo"),
        ("What did we talk about?", "Volvo"),
    ],
)
def test_what_is_near_in_meaning_answers_without_a_common_word(
    open_memory: OpenMemory, question: str, answer: str
) -> None:
    memory = open_memory("memory://", embeddings=real_model(), extractor="none")
    told = [
        ("diabetes", "I was diagnosed with diabetes."),
        ("Volvo", "I drive a Volvo."),
        ("Alps", "We hiked up there."),
    ]
    memory.ingest([{"speaker": "Maya", "text": text, "external_id": key} for key, text in told])
    memory.add_facts([{"subject": "Maya", "relation": "has", "object": key, "source": key} for key, _ in told])
    assert answer in memory.context(question)
    assert answer in [fact.target for fact in memory.recall(question)] or question.startswith("What did we")
