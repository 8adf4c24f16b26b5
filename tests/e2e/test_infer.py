"""Inference on every store: facts that rules imply, and that go with their premises."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from chatting import ScriptedChat
from conftest import OpenMemory
from toy import ToyExtractor

from graphmem import Document, ExtractionFailed, GraphMemory, InvalidInput, NotFound
from graphmem.inference import service
from graphmem.inference.premises import has_inferred, write_facts
from graphmem.memory.admin import Inferred
from graphmem.models import PREMISES, AsOf, Changes, Edge, EdgeQuery, EpisodeExpiry, EpisodeQuery, Removal, utc_now
from graphmem.protocols import GraphBackend
from graphmem.results import Fact

START = datetime(2024, 1, 1, tzinfo=UTC)
EVERY = EdgeQuery(kinds=("inferred",), versions="all")


def day(n: int) -> datetime:
    return START + timedelta(days=n)


def backend_of(memory: GraphMemory) -> GraphBackend:
    return memory._engine.backend  # pyright: ignore[reportPrivateUsage]


def tell(memory: GraphMemory, *triples: tuple[str, str, str], at: int = 0, **fields: Any) -> None:
    memory.add_facts([{"subject": s, "relation": r, "object": o, **fields} for s, r, o in triples], occurred_at=day(at))


def rows(memory: GraphMemory) -> list[Edge]:
    return list(backend_of(memory).all_edges([memory.scope], EVERY))


def holding(memory: GraphMemory, at: datetime | None = None) -> dict[str, Edge]:
    """Return the sentences of the inferred facts that hold, with their rows."""
    query = EdgeQuery(kinds=("inferred",), as_of=None if at is None else AsOf(at))
    return {edge.fact: edge for edge in backend_of(memory).all_edges([memory.scope], query)}


def fact_of(memory: GraphMemory, sentence: str) -> Fact:
    [found] = [fact for fact in memory.facts(sentence.split(" ", maxsplit=1)[0]) if fact.fact == sentence]
    return found


def globex(memory: GraphMemory) -> None:
    """Tell where Maya and Tom work, and what that is part of."""
    tell(memory, ("Maya", "works_at", "Lab"), ("Tom", "works_at", "Lab"))
    tell(memory, ("Lab", "part_of", "Globex"), ("Globex", "part_of", "Holding"), confidence=0.8)


IMPLIED = {
    "Lab part of Holding",
    "Maya works at Globex",
    "Maya works at Holding",
    "Tom works at Globex",
    "Tom works at Holding",
    "Maya colleague of Tom",
}


@pytest.mark.server
def test_rules_imply_facts_of_a_kind_of_their_own(memory: GraphMemory) -> None:
    globex(memory)
    done = memory.admin.infer()
    found = holding(memory)
    assert {*found} in (IMPLIED, IMPLIED - {"Maya colleague of Tom"} | {"Tom colleague of Maya"})
    assert (done.added, done.kept, done.removed, done.truncated) == (6, 0, 0, False)
    assert done.by_rule == {"transitive part_of": 1, "composition works_at + part_of": 4, "shared works_at": 1}
    fact = fact_of(memory, "Maya works at Globex")
    assert (fact.kind, fact.inferred_by) == ("inferred", "composition works_at + part_of")
    assert fact.confidence == pytest.approx(0.72)
    assert [premise.fact for premise in fact.premises] == ["Maya works at Lab", "Lab part of Globex"]
    assert str(fact).endswith(
        "[inferred by composition works_at + part_of from: Maya works at Lab; Lab part of Globex]"
    )
    assert any("works at Globex (by composition works_at + part_of from:" in line for line in done.examples)


@pytest.mark.server
def test_a_second_inference_changes_nothing(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    before = rows(memory)
    again = memory.admin.infer()
    assert (again.added, again.kept, again.removed) == (0, 6, 0)
    assert rows(memory) == before


def test_a_dry_run_changes_nothing_and_shows_examples(memory: GraphMemory) -> None:
    globex(memory)
    done = memory.admin.infer(dry_run=True)
    assert (done.added, done.dry_run, rows(memory)) == (6, True, [])
    assert len(done.examples) == 6
    assert not has_inferred(backend_of(memory), memory.scope)


def test_the_limit_bounds_the_inferred_facts_of_the_scope(memory: GraphMemory) -> None:
    globex(memory)
    done = memory.admin.infer(limit=2)
    assert (done.added, done.truncated, len(rows(memory))) == (2, True, 2)
    assert memory.admin.infer(limit=2).added == 0
    lower = memory.admin.infer(limit=1)
    assert (lower.truncated, lower.removed, len(rows(memory))) == (True, 0, 2)
    ontology = memory._engine.ontology  # pyright: ignore[reportPrivateUsage]
    other = [rule for rule in ontology.rules if rule.name not in {edge.inferred_by for edge in rows(memory)}]
    without = service.infer(backend_of(memory), memory.scope, replace(ontology, rules=tuple(other)), limit=1)
    assert (without.truncated, without.removed) == (True, 2)  # their rules are gone
    with pytest.raises(InvalidInput, match="limit must be at least 1"):
        memory.admin.infer(limit=0)


def test_a_rule_that_loops_ends(memory: GraphMemory) -> None:
    tell(memory, ("Aaa", "part_of", "Bbb"), ("Bbb", "part_of", "Ccc"), ("Ccc", "part_of", "Aaa"))
    assert memory.admin.infer().added == 3
    assert memory.admin.infer().added == 0


def test_an_inferred_fact_holds_while_all_premises_hold(memory: GraphMemory) -> None:
    tell(memory, ("Maya", "works_at", "Lab"), at=10)
    tell(memory, ("Lab", "part_of", "Globex"), at=0, valid_from=day(20), valid_to=day(40))
    memory.admin.infer()
    assert [n for n in range(0, 60, 5) if "Maya works at Globex" in holding(memory, day(n))] == [20, 25, 30, 35]


def test_certainty_and_trust_are_those_of_the_weakest_premise(memory: GraphMemory) -> None:
    memory.ingest([Document(text="Lab | part_of | Globex", occurred_at=START)])
    tell(memory, ("Maya", "works_at", "Lab"))
    memory.admin.infer()
    fact = fact_of(memory, "Maya works at Globex")
    assert fact.trust == "external"
    assert "Maya works at Globex" in [f.fact for f in memory.recall("Where does Maya work?")]
    trusted = memory.recall("Where does Maya work?", min_trust="trusted")
    assert "Maya works at Globex" not in [f.fact for f in trusted]


def test_a_plan_implies_no_more_than_a_plan(memory: GraphMemory) -> None:
    globex(memory)
    backend = backend_of(memory)
    [planned] = [e for e in backend.all_edges([memory.scope], EdgeQuery()) if e.fact == "Maya works at Lab"]
    backend.write(memory.scope, Changes(edges=(planned.changed(certainty="plan"),)))
    memory.admin.infer()
    assert holding(memory)["Maya works at Globex"].certainty == "plan"


# Recall -------------------------------------------------------------------------------------------


@pytest.mark.server
def test_inferred_facts_rank_below_stated_ones_and_can_be_left_out(memory: GraphMemory) -> None:
    tell(memory, ("Maya", "works_at", "Lab"), ("Lab", "part_of", "Globex"), ("Maya", "visited", "Globex"))
    memory.admin.infer()
    found = memory.recall("Maya Globex")
    texts = [fact.fact for fact in found]
    assert texts.index("Maya visited Globex") < texts.index("Maya works at Globex")
    [inferred] = [fact for fact in found if fact.inferred_by]
    assert inferred.parts is not None
    assert inferred.parts.inferred == 0.5
    assert not any(fact.inferred_by for fact in memory.recall("Maya Globex", include_inferred=False))
    assert "inferred" in next(line for line in memory.context("Maya Globex").splitlines() if "works at Globex" in line)


def test_an_explanation_names_rule_and_premises(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    trace_id = memory.recall("Maya", trace=True).trace_id
    assert trace_id is not None
    trace = memory.why(trace_id)
    [fact] = [one.fact for one in trace.facts if one.fact.fact == "Maya works at Globex"]
    assert [premise.fact for premise in fact.premises] == ["Maya works at Lab", "Lab part of Globex"]
    assert any(fact.inferred_by for fact in memory.history("Maya", "works_at"))


# Premises that go ---------------------------------------------------------------------------------


@pytest.mark.server
def test_an_ended_premise_ends_what_follows_from_it(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    known = utc_now()
    memory.end(fact_of(memory, "Lab part of Globex").id, at=day(100))
    assert {*holding(memory)} == {sentence for sentence in holding(memory) if "colleague" in sentence}
    then = holding(memory, day(50))
    assert {*then} >= {"Maya works at Globex", "Maya works at Holding", "Lab part of Holding"}
    assert {edge.valid_to for edge in then.values()} == {None, day(100)}
    as_known = backend_of(memory).find_edges(
        [memory.scope], EdgeQuery(kinds=("inferred",), as_of=AsOf(valid=day(200), known=known))
    )
    assert len(as_known) == 6
    assert memory.admin.infer().added == 0


@pytest.mark.server
def test_a_retracted_premise_takes_back_what_follows_from_it(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    memory.retract(fact_of(memory, "Lab part of Globex").id)
    assert len(holding(memory, day(50))) == 1
    assert memory.admin.infer().added == 0


@pytest.mark.server
def test_a_superseded_premise_ends_what_follows_from_it(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    tell(memory, ("Maya", "works_at", "Initech"), at=30)
    assert "Maya works at Globex" not in holding(memory)
    assert "Maya works at Globex" in holding(memory, day(20))
    assert "Tom works at Globex" in holding(memory)


def test_an_end_that_is_taken_back_opens_what_follows_from_it(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    before = holding(memory)
    tell(memory, ("Maya", "works_at", "Initech"), at=30)
    memory.end(fact_of(memory, "Lab part of Globex").id, at=day(60))
    assert "Maya works at Globex" not in holding(memory)
    [moved] = fact_of(memory, "Maya works at Initech").episode_ids
    memory.forget(episode=moved)
    [globex_row] = [edge for edge in rows(memory) if edge.fact == "Maya works at Globex"]
    assert (globex_row.valid_to, globex_row.end_reason) == (day(60), "a premise ended")
    assert {*before} - {*holding(memory, day(50))} == set()


@pytest.mark.server
def test_what_follows_from_a_forgotten_premise_is_erased(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    memory.recall("Maya", trace=True)
    done = memory.forget("Globex")
    assert [edge.fact for edge in rows(memory) if "colleague" not in edge.fact] == []
    assert done.facts == 2 + 5
    assert memory.admin.infer().added == 0


def test_what_follows_from_a_forgotten_episode_is_erased(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    [episode_id] = fact_of(memory, "Maya works at Lab").episode_ids
    memory.forget(episode=episode_id)
    assert {edge.fact for edge in rows(memory)} == {"Lab part of Holding"}


def test_what_follows_from_an_expired_episode_is_hidden_and_erased(store_url: str, open_memory: OpenMemory) -> None:
    now = [utc_now()]
    memory = open_memory(store_url, clock=lambda: now[0])
    globex(memory)
    memory.admin.infer()
    [episode_id] = fact_of(memory, "Maya works at Lab").episode_ids
    expiry = EpisodeExpiry(episode_id, now[0] + timedelta(hours=1))
    backend_of(memory).write(memory.scope, Changes(episode_expiries=(expiry,)))

    def inferred() -> set[str]:
        found = (*memory.facts("Maya"), *memory.facts("Globex"), *memory.recall("Maya Lab Globex Holding"))
        return {fact.fact for fact in found if fact.inferred_by}

    assert {"Maya works at Globex", "Lab part of Holding"} <= inferred()
    now[0] += timedelta(hours=2)
    assert {edge.fact for edge in rows(memory)} == IMPLIED
    assert inferred() == {"Lab part of Holding"}
    memory.admin.expire()
    assert {edge.fact for edge in rows(memory)} == {"Lab part of Holding"}


def test_facts_of_a_merged_entity_are_inferred_again(memory: GraphMemory) -> None:
    globex(memory)
    tell(memory, ("Research", "has_floors", "three floors"))
    memory.admin.infer()
    before = {edge.fact for edge in holding(memory).values()}
    [merge] = memory.admin.merge("Lab", into="Research")
    assert not any("Lab" in edge.fact or "Globex" in edge.fact for edge in holding(memory).values())
    memory.admin.infer()
    assert {edge.fact.replace("Research", "Lab") for edge in holding(memory).values()} == before
    memory.admin.unmerge(merge.id)
    for edge in holding(memory).values():
        assert_grounded(memory, edge)
    memory.admin.infer()
    assert {edge.fact for edge in holding(memory).values()} == before


def test_what_is_stated_later_takes_the_place_of_the_inferred_fact(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    tell(memory, ("Lab", "part_of", "Holding"), at=3)
    [fact] = [fact for fact in memory.facts("Lab") if fact.target == "Holding"]
    assert (fact.kind, fact.inferred_by, fact.superseded_by) == ("state", None, None)
    memory.admin.infer()
    assert "Lab part of Holding" not in holding(memory)
    assert "Maya works at Holding" in holding(memory)
    memory.retract(fact.id)
    memory.admin.infer()
    assert "Lab part of Holding" in holding(memory)


def test_inferred_facts_neither_end_nor_confirm_stated_ones(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    tell(memory, ("Maya", "works_at", "Globex"), at=30)  # the inferred fact said so from day 0
    [stated] = [f for f in memory.history("Maya", "works_at") if f.target == "Globex" and f.kind == "state"]
    assert stated.valid_from == day(30)
    tell(memory, ("Lab", "part_of", "Holding"), ("Tom", "works_at", "Acme"), at=40)  # Acme isn't implied
    [before] = [f for f in memory.history("Tom", "works_at") if f.target == "Lab"]
    assert before.valid_to == day(40)


def held(memory: GraphMemory) -> dict[str, datetime | None]:
    """Return where Maya is stated to work, with the ends."""
    return {f.target: f.valid_to for f in memory.history("Maya", "works_at") if f.kind == "state"}


@pytest.mark.parametrize("how", ["by hand", "episode"])
def test_what_is_stated_does_not_end_the_premises_that_imply_it(
    how: str, store_url: str, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url, extractor=ToyExtractor(), background=False)

    def say(source: str, relation: str, target: str, at: int) -> None:
        if how == "by hand":
            tell(memory, (source, relation, target), at=at)
        else:
            memory.remember(f"{source} | {relation} | {target}", occurred_at=day(at))
            memory.flush()

    for source, relation, target in (
        ("Maya", "works_at", "Lab"),
        ("Lab", "part_of", "Globex"),
        ("Globex", "part_of", "Union"),
    ):
        say(source, relation, target, 0)
    memory.admin.infer()
    say("Maya", "works_at", "Globex", 10)
    say("Maya", "works_at", "Union", 20)
    assert held(memory) == {"Lab": None, "Globex": None, "Union": None}
    say("Maya", "works_at", "Lab", 30)  # implies the others
    assert held(memory) == {"Lab": None, "Globex": None, "Union": None}
    [union] = [fact for fact in memory.facts("Maya") if fact.target == "Union"]
    memory.retract(union.id)  # derives the others again
    assert held(memory) == {"Lab": None, "Globex": None, "Union": day(20)}
    say("Maya", "works_at", "Acme", 40)
    assert held(memory) == {"Lab": day(40), "Globex": day(40), "Union": day(20), "Acme": None}


@pytest.fixture
def employed(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    """Return a memory in which Maya is told to work at the Lab, which is part of Globex, and later at Globex."""
    memory = open_memory(store_url, extractor=ToyExtractor(), background=False)
    told = (("Maya | works_at | Lab", 0), ("Lab | part_of | Globex", 0), ("Maya | works_at | Globex", 10))
    for text, at in told:
        memory.remember(text, occurred_at=day(at), external_id=text)
        memory.flush()
        memory.admin.infer()
    assert held(memory) == {"Lab": None, "Globex": None}
    return memory


def test_forgetting_a_repetition_ends_neither_fact_that_implies_the_other(employed: GraphMemory) -> None:
    for text, at in (("Maya | works_at | Lab", 20), ("Maya | works_at | Globex", 30)):
        again = employed.remember(text, occurred_at=day(at)).episode_id
        employed.flush()
        employed.forget(episode=again)
        assert held(employed) == {"Lab": None, "Globex": None}


def test_a_fact_that_is_valid_again_is_not_ended_by_one_that_it_implies(employed: GraphMemory) -> None:
    moved = employed.remember("Maya | works_at | Acme", occurred_at=day(20)).episode_id
    employed.flush()
    assert held(employed) == {"Lab": day(20), "Globex": day(20), "Acme": None}
    employed.forget(episode=moved)
    assert held(employed) == {"Lab": None, "Globex": None}


def test_what_a_forgotten_fact_implied_ends_the_former_premise(employed: GraphMemory) -> None:
    again = employed.remember("Maya | works_at | Lab", occurred_at=day(20)).episode_id
    employed.flush()
    wanted = EpisodeQuery(external_ids=("Lab | part_of | Globex",))
    [division] = backend_of(employed).find_episode_ids([employed.scope], wanted)
    employed.forget(episode=division)
    employed.forget(episode=again)
    assert held(employed) == {"Lab": day(10), "Globex": None}


@pytest.mark.parametrize(
    "told",
    [
        (
            "Maya works_at Globex",
            "Lab part_of Globex",
            "Globex part_of Union",
            "Maya works_at Lab",
            "Maya works_at Lab",
        ),
        (
            *("Globex part_of Union", "Maya works_at Globex", "Lab part_of Globex", "Maya works_at Globex"),
            *("Maya works_at Lab", "Maya works_at Union"),
        ),
    ],
)
def test_a_stated_fact_that_is_valid_again_takes_the_place_of_what_was_inferred_since(
    memory: GraphMemory, told: tuple[str, ...]
) -> None:
    for n, fact in enumerate(told):
        source, relation, target = fact.split()
        tell(memory, (source, relation, target), at=10 * n)
        memory.admin.infer()
    assert {f.target for f in memory.facts("Maya") if f.relation == "works_at"} == {"Lab", "Globex", "Union"}
    for edge in holding(memory).values():
        assert_grounded(memory, edge)


def test_a_merge_ends_neither_fact_that_implies_the_other(employed: GraphMemory) -> None:
    employed.remember("Dr Chen | works_at | Globex", occurred_at=day(30))
    employed.remember("Maria | works_at | Lab", occurred_at=day(40))
    employed.flush()
    employed.admin.infer()
    merges = employed.admin.merge(["Dr Chen", "Maria"], into="Maya")
    assert held(employed) == {"Lab": None, "Globex": None}
    employed.admin.infer()
    for merge in reversed(merges):
        employed.admin.unmerge(merge.id)
        assert held(employed) == {"Lab": None, "Globex": None}


def test_what_is_no_longer_implied_ends_the_former_premise(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    memory.end(fact_of(memory, "Lab part of Globex").id, at=day(10))
    tell(memory, ("Maya", "works_at", "Globex"), at=20)
    assert held(memory) == {"Lab": day(20), "Globex": None}


def test_a_fact_that_was_retracted_by_hand_is_not_inferred_again(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    memory.retract(fact_of(memory, "Maya works at Holding").id, reason="not so")
    assert memory.admin.infer().added == 0
    assert "Maya works at Holding" not in holding(memory)
    memory.end(fact_of(memory, "Tom works at Holding").id, at=day(9))
    assert memory.admin.infer().added == 0
    assert "Tom works at Holding" in holding(memory, day(8))
    assert "Tom works at Holding" not in holding(memory)


def age(memory: GraphMemory) -> None:
    """Let the ends of facts have been recorded long ago."""
    backend = backend_of(memory)
    old = [edge.changed(expired_at=day(101)) for edge in backend.all_edges([memory.scope], EdgeQuery(versions="all"))]
    backend.write(memory.scope, Changes(edges=tuple(edge for edge in old if edge.valid_to is not None)))


def test_a_fact_that_was_retracted_by_hand_is_not_inferred_again_after_an_eviction(
    store_url: str, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url, expired_edge_retention_days=10)
    globex(memory)
    memory.admin.infer()
    memory.retract(fact_of(memory, "Maya works at Globex").id)
    memory.retract(fact_of(memory, "Maya works at Holding").id)
    memory.end(fact_of(memory, "Globex part of Holding").id, at=day(100))
    age(memory)
    assert memory.admin.evict().deleted_facts
    tell(memory, ("Globex", "part_of", "Holding"), at=200)
    memory.admin.infer()
    assert "Tom works at Holding" in holding(memory)
    assert not {"Maya works at Globex", "Maya works at Holding"} & {*holding(memory)}


def test_what_was_retracted_by_hand_is_erased_with_the_episodes_of_its_premises(
    store_url: str, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url, expired_edge_retention_days=10)
    globex(memory)
    memory.admin.infer()
    memory.retract(fact_of(memory, "Maya works at Globex").id)
    [premise] = [fact for fact in memory.facts("Lab") if fact.fact == "Lab part of Globex"]
    memory.end(premise.id, at=day(100))
    age(memory)
    memory.admin.evict()
    assert "Maya works at Globex" in {edge.fact for edge in rows(memory)}
    memory.forget(episode=premise.episode_ids[0])
    assert "Maya works at Globex" not in {edge.fact for edge in rows(memory)}


def test_eviction_of_a_premise_removes_what_follows_from_it(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, expired_edge_retention_days=10, min_edge_weight=0.5)
    globex(memory)
    memory.admin.infer()
    memory.end(fact_of(memory, "Lab part of Globex").id, at=day(100))
    age(memory)
    memory.admin.evict()
    assert {edge.fact for edge in rows(memory)} <= {"Maya colleague of Tom", "Tom colleague of Maya"}


def test_clearing_takes_everything(memory: GraphMemory) -> None:
    globex(memory)
    memory.admin.infer()
    memory.admin.clear()
    assert rows(memory) == []
    assert not has_inferred(backend_of(memory), memory.scope)
    assert memory.admin.infer().added == 0


# By a language model ------------------------------------------------------------------------------


def numbered(prompt: str) -> dict[str, int]:
    """Return the facts of a prompt, as source, relation and target, with their numbers."""
    lines = (line.split(". ", 1) for line in prompt.splitlines() if line[:1].isdigit())
    return {" ".join(text.split(" | ")[:3]): int(number) for number, text in lines}


def answering(*answers: Callable[[dict[str, int]], dict[str, Any]]) -> ScriptedChat:
    def answer(prompt: str) -> str:
        return json.dumps({"inferences": [one(numbered(prompt)) for one in answers]})

    return ScriptedChat(answer=answer)


def inference(source: str, relation: str, target: str, *premises: str | int, confidence: Any = 0.9) -> Any:
    def made(numbers: dict[str, int]) -> dict[str, Any]:
        places = [numbers[one] if isinstance(one, str) else one for one in premises]
        what = {"source": source, "relation": relation, "target": target}
        return {**what, "premises": places, "confidence": confidence}

    return made


@pytest.mark.server
def test_a_model_infers_from_named_facts(store_url: str, open_memory: OpenMemory) -> None:
    model = answering(inference("maya", "commutes to", "Oslo", "Maya works_at Lab", "Lab located_in Oslo"))
    memory = open_memory(store_url, llm=model)
    tell(
        memory, ("Maya", "works_at", "Lab"), ("Lab", "located_in", "Oslo"), ("Paul", "lives_in", "Rome"), confidence=0.8
    )
    assert memory.admin.infer("Maya", dry_run=True).added == 1
    assert rows(memory) == []
    done = memory.admin.infer("Maya")
    assert (done.added, done.by_rule) == (1, {"model": 1})
    assert "Rome" not in model.prompts[-1]
    fact = fact_of(memory, "Maya commutes to Oslo")
    assert (fact.inferred_by, fact.confidence) == ("model", pytest.approx(0.72))
    assert [premise.fact for premise in fact.premises] == ["Maya works at Lab", "Lab located in Oslo"]
    again = memory.admin.infer("Maya")
    assert (again.added, again.skipped) == (0, {"already known": 1})
    assert memory.admin.infer().removed == 0
    memory.end(fact_of(memory, "Maya works at Lab").id)
    assert holding(memory) == {}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (inference("Maya", "knows", "Oslo"), "without premises"),
        (inference("Maya", "knows", "Oslo", 1, 99), "without premises"),
        (inference("Maya", "knows", "Oslo", 0), "without premises"),
        (inference("Maya", "knows", "Atlantis", 1), "not between entities of its premises"),
        (inference("Maya", "…", "Lab", 1), "without a relation"),
        (inference("Maya", "knows", "Maya", 1), "not between entities of its premises"),
        (inference("Maya", "works at", "Lab", 1), "already known"),
        (
            inference("Maya", "knows", "Lab", "Maya works_at Lab", "Oslo part_of Norway"),
            "premise about neither end",
        ),
    ],
)
def test_what_is_not_grounded_in_the_facts_is_dropped_and_counted(
    answer: Any, reason: str, open_memory: OpenMemory, tmp_path: Path
) -> None:
    memory = open_memory(f"memory://{tmp_path.name}", llm=answering(answer))
    tell(memory, ("Maya", "works_at", "Lab"), ("Lab", "located_in", "Oslo"), ("Oslo", "part_of", "Norway"))
    done = memory.admin.infer("Lab")
    assert (done.added, done.skipped) == (0, {reason: 1})


def test_a_name_of_two_entities_among_the_premises_is_dropped(open_memory: OpenMemory, tmp_path: Path) -> None:
    answer = inference("Maya", "employed by", "Mercury", "Maya works_at Mercury", "Maya uses Mercury")
    memory = open_memory(f"memory://{tmp_path.name}", llm=answering(answer))
    tell(memory, ("Maya", "works_at", "Mercury"), object_type="organization")
    tell(memory, ("Maya", "uses", "Mercury"), object_type="tool")
    assert memory.admin.infer("Maya").skipped == {"a name of several entities": 1}


def test_a_confidence_out_of_range_counts_half(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory(f"memory://{tmp_path.name}", llm=answering(inference("Maya", "knows", "Lab", 1, confidence=7)))
    tell(memory, ("Maya", "works_at", "Lab"))
    memory.admin.infer("Lab")
    assert holding(memory)["Maya knows Lab"].confidence == 0.5


def test_a_premise_that_is_forgotten_while_the_model_thinks_implies_nothing(
    open_memory: OpenMemory, tmp_path: Path
) -> None:
    def answer(prompt: str) -> str:
        memory.forget("Lab")
        return json.dumps({"inferences": [inference("Maya", "knows", "Lab", 1)({})]})

    memory = open_memory(f"memory://{tmp_path.name}", llm=ScriptedChat(answer=answer))
    tell(memory, ("Maya", "works_at", "Lab"))
    done = memory.admin.infer("Lab")
    assert (done.added, done.skipped, rows(memory)) == (0, {"changed meanwhile": 1}, [])


def test_failures_of_the_model_are_raised(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory(f"memory://{tmp_path.name}", llm=ScriptedChat(answer=lambda prompt: "I'd rather not."))
    tell(memory, ("Maya", "works_at", "Lab"))
    with pytest.raises(ExtractionFailed, match="no list of inferences"):
        memory.admin.infer("Maya")
    with pytest.raises(NotFound):
        memory.admin.infer("Nobody")


def test_without_a_model_only_rules_infer(memory: GraphMemory) -> None:
    tell(memory, ("Maya", "works_at", "Lab"))
    with pytest.raises(InvalidInput, match="no LLM is configured"):
        memory.admin.infer("Maya")


# Beside other work --------------------------------------------------------------------------------


def test_a_premise_that_is_forgotten_meanwhile_implies_nothing(
    memory: GraphMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    globex(memory)
    compute_closure = service.compute_closure

    def forget_then_compute(*given: Any) -> Any:
        memory.forget("Globex")
        return compute_closure(*given)

    monkeypatch.setattr(service, "compute_closure", forget_then_compute)
    done = memory.admin.infer()
    assert done.skipped["changed meanwhile"] == 5
    assert {edge.relation for edge in rows(memory)} == {"colleague_of"}


def test_a_premise_that_is_forgotten_between_two_transactions_takes_its_facts_along(
    memory: GraphMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    globex(memory)
    monkeypatch.setattr(service, "_BATCH", 2)
    store, calls = service._store, 0  # pyright: ignore[reportPrivateUsage]

    def store_and_forget(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            threading.Thread(target=forget).run()
        return store(*given)

    def forget() -> None:
        memory.retract(fact_of(memory, "Lab part of Globex").id)

    monkeypatch.setattr(service, "_store", store_and_forget)
    memory.admin.infer()
    for edge in holding(memory).values():
        assert_grounded(memory, edge)


@pytest.mark.parametrize("how", ["ended", "less sure", "by hand"])
def test_a_fact_that_changes_meanwhile_keeps_its_change(
    memory: GraphMemory, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    tell(memory, ("Maya", "works_at", "Lab"))
    tell(memory, ("Lab", "part_of", "Globex"), confidence=0.5)
    memory.admin.infer()
    [premise] = backend_of(memory).find_edges([memory.scope], EdgeQuery(relations=("part_of",)))
    write_facts(backend_of(memory), memory.scope, Changes(edges=(premise.changed(confidence=1.0),)))
    compute_closure = service.compute_closure

    def change() -> None:
        if how == "ended":
            memory.end(premise.id, at=day(40))
        elif how == "less sure":
            write_facts(backend_of(memory), memory.scope, Changes(edges=(premise.changed(confidence=0.2),)))
        else:
            memory.end(fact_of(memory, "Maya works at Globex").id, at=day(20), reason="she left")

    def compute_then_change(*given: Any) -> Any:
        closure = compute_closure(*given)
        change()
        return closure

    monkeypatch.setattr(service, "compute_closure", compute_then_change)
    assert memory.admin.infer().skipped["changed meanwhile"] == 1
    [row] = [edge for edge in rows(memory) if edge.fact == "Maya works at Globex"]
    expected = {"ended": (0.45, day(40)), "less sure": (0.2, None), "by hand": (0.45, day(20))}
    assert (row.confidence, row.valid_to) == expected[how]


@pytest.mark.server
def test_two_inferences_at_once_store_nothing_twice(memory: GraphMemory) -> None:
    for n in range(12):
        tell(memory, (f"Part {n:02}", "part_of", f"Part {n + 1:02}"))
    done: list[Inferred] = []
    threads = [threading.Thread(target=lambda: done.append(memory.admin.infer())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one.added for one in done) == 66
    assert len({edge.key for edge in rows(memory)}) == len(rows(memory)) == 66


def test_an_export_brings_inferred_facts_with_rule_and_premises(memory: GraphMemory, open_memory: OpenMemory) -> None:
    globex(memory)
    memory.admin.infer()
    file = BytesIO()
    memory.admin.export(file)
    other = open_memory("memory://elsewhere", scope="imported")
    file.seek(0)
    other.admin.import_(file, rename=True)
    assert [e.changed(scope=memory.scope) for e in rows(other)] == rows(memory)
    other.retract(fact_of(other, "Lab part of Globex").id)
    assert len(holding(other)) == 1
    file.seek(0)
    other.admin.import_(file, rename=True)
    assert len(holding(other)) == 1
    assert other.admin.infer().added == 0
    other.admin.clear()


def test_an_import_into_a_scope_with_the_same_facts_keeps_those_of_the_scope(
    store_url: str, open_memory: OpenMemory
) -> None:
    memory = open_memory(store_url)
    globex(memory)
    file = BytesIO()
    memory.admin.infer()
    memory.admin.export(file)
    other = open_memory("memory://elsewhere-too", scope="imported")
    without = [line for line in file.getvalue().splitlines() if b'"kind":"inferred"' not in line]
    other.admin.import_(BytesIO(b"\n".join(without) + b"\n"), rename=True, cut_off=True)
    other.admin.infer()
    before = rows(other)
    file.seek(0)
    other.admin.import_(file, rename=True)
    assert rows(other) == before
    other.admin.clear()


def test_ids_of_premises_are_no_personal_data(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory(f"memory://{tmp_path.name}")
    globex(memory)
    memory.admin.infer()
    [row, *_] = rows(memory)
    like_an_iban = "01a21381-195f-7227-be76-2337e645d990"
    backend = backend_of(memory)
    premise = backend.get_edges([memory.scope], row.premises)[row.premises[0]].changed(id=like_an_iban, relation="near")
    named = row.changed(properties={**row.properties, PREMISES: f"{like_an_iban} {row.premises[1]}"})
    backend.write(memory.scope, Changes(edges=(premise, named)))
    file = BytesIO()
    memory.admin.export(file)
    file.seek(0)
    redacted = open_memory(f"memory://{tmp_path.name}-redacted", redact="all", redact_key="key", scope="imported")
    redacted.admin.import_(file, rename=True)
    assert any(like_an_iban in edge.premises for edge in rows(redacted))


# Comparison with an inference from scratch --------------------------------------------------------


def assert_grounded(memory: GraphMemory, edge: Edge) -> None:
    """Assert that all premises of a fact are there and hold as long as it does."""
    found = backend_of(memory).get_edges([memory.scope], edge.premises)
    assert found.keys() == set(edge.premises), edge.fact
    ends = {end for one in found.values() for end in (one.source_id, one.target_id)}
    assert {edge.source_id, edge.target_id} <= ends
    for premise in found.values():
        assert premise.valid_from <= edge.valid_from
        assert premise.valid_to is None or (edge.valid_to is not None and edge.valid_to <= premise.valid_to)
        assert edge.confidence <= premise.confidence


def content(memory: GraphMemory) -> set[tuple[object, ...]]:
    return {
        (e.source_id, e.relation, e.target_id, e.valid_from, e.valid_to)
        for e in rows(memory)
        if e.valid_to != e.valid_from
    }


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.full) for n in range(4, 12))])
def test_after_random_changes_the_facts_are_grounded_and_inferring_again_equals_inferring_anew(
    seed: int, store_url: str, open_memory: OpenMemory
) -> None:
    memory, rng = open_memory(store_url), random.Random(seed)
    names = [f"Node {letter}" for letter in "ABCDEF"]

    def some(*relations: str) -> list[Edge]:
        query = EdgeQuery(relations=relations, kinds=("state",))
        return list(backend_of(memory).all_edges([memory.scope], query))

    def tell_some() -> None:
        one, other = rng.sample(names, 2)
        relation = rng.choice(["part_of", "contains", "works_at", "married_to"])
        tell(memory, (one, relation, other), at=rng.randrange(50))

    def change(action: Callable[[Edge], object]) -> None:
        if found := some("part_of", "contains", "works_at", "married_to"):
            action(rng.choice(found))

    def end(edge: Edge) -> None:
        memory.end(edge.id, at=edge.valid_from + timedelta(days=rng.randrange(1, 40)))

    def merge() -> None:
        one, other = rng.sample(names, 2)
        try:
            memory.admin.merge(one, into=other)
        except (NotFound, InvalidInput):
            return

    def unmerge() -> None:
        if merges := memory.admin.merges(limit=1):
            memory.admin.unmerge(merges[0].id)

    actions: list[Callable[[], object]] = [
        tell_some,
        tell_some,
        lambda: change(end),
        lambda: change(lambda edge: memory.retract(edge.id)),
        lambda: change(lambda edge: memory.forget(episode=edge.episode_ids[0])),
        merge,
        unmerge,
    ]
    for _ in range(8):
        tell_some()
    memory.admin.infer()
    for _ in range(10):
        rng.choice(actions)()
        for edge in rows(memory):
            if edge.valid_to != edge.valid_from:
                assert_grounded(memory, edge)
        if rng.random() < 0.4:
            memory.admin.infer()
    memory.admin.infer()
    found = content(memory)
    backend = backend_of(memory)
    backend.write(memory.scope, Changes(removals=tuple(Removal("edge", edge.id) for edge in rows(memory))))
    memory.admin.infer()
    assert found == content(memory)
