"""Supersession, decided without a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.ingest.fact_ledger import End, FactLedger
from graphmem.ingest.supersession.rules import FactSource, reopened
from graphmem.models import Edge, EdgeType, Removal, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def year(y: int) -> datetime:
    return datetime(y, 1, 1, tzinfo=UTC)


def fact(target: str, since: int, until: int | None = None, *, relation: str = "works_at", **fields: Any) -> Edge:
    return Edge(
        scope=Scope(),
        source_id="maya",
        target_id=target,
        relation=relation,
        valid_from=year(since),
        valid_to=None if until is None else year(until),
        recorded_at=NOW,
        **fields,
    )


def ledger(*known: Edge) -> FactLedger:
    return FactLedger(known, DEFAULT_ONTOLOGY, NOW)


def test_the_same_key_merges_with_the_higher_confidence_and_both_episodes() -> None:
    known = fact("globex", 2020, confidence=0.6, episode_ids=("e1",))
    facts = ledger(known)
    held_by = facts.add(fact("globex", 2024, confidence=0.9, episode_ids=("e2",)))
    assert held_by == known.id
    assert facts.edges == ()
    [support] = facts.corroborations
    assert (support.edge_id, support.confidence, support.episode_ids) == (known.id, 0.9, ("e2",))


def test_a_lower_confidence_does_not_lower_the_known_one() -> None:
    facts = ledger(fact("globex", 2020, confidence=0.9))
    facts.add(fact("globex", 2024, confidence=0.2, episode_ids=("e1",)))
    assert facts.corroborations[0].confidence == 0.9


def test_a_single_valued_relation_ends_the_old_target_when_the_new_one_begins() -> None:
    old, new = fact("initech", 2020), fact("globex", 2024)
    facts = ledger(old)
    facts.add(new)
    [closing] = facts.expiries
    assert (closing.edge_id, closing.valid_to, closing.expired_at) == (old.id, year(2024), NOW)
    assert closing.superseded_by == new.id
    assert facts.edges == (new,)


def test_a_multi_valued_relation_keeps_both() -> None:
    facts = ledger(fact("vim", 2020, relation="uses"))
    facts.add(fact("emacs", 2024, relation="uses"))
    assert facts.expiries == ()
    assert len(facts.edges) == 1


def test_an_out_of_order_fact_is_stored_closed_and_ends_nothing() -> None:
    current = fact("globex", 2024)
    facts = ledger(current)
    facts.add(fact("initech", 2020))
    assert facts.expiries == ()
    [edge] = facts.edges
    assert (edge.valid_from, edge.valid_to, edge.superseded_by) == (year(2020), year(2024), current.id)


def test_a_late_fact_between_two_known_ones_ends_where_the_next_begins() -> None:
    globex = fact("globex", 2024)
    hooli = fact("hooli", 2022, 2024, superseded_by=globex.id)
    facts = ledger(fact("initech", 2018, 2022, superseded_by=hooli.id), hooli, globex)
    facts.add(fact("umbrella", 2020))
    [edge] = facts.created
    assert edge.valid_to == year(2022)


def test_facts_of_one_batch_supersede_each_other_in_any_order() -> None:
    for order in ((2020, 2022, 2024), (2024, 2022, 2020), (2022, 2024, 2020)):
        facts = ledger()
        for since in order:
            facts.add(fact(f"company-{since}", since))
        ends = {e.valid_from: e.valid_to for e in facts.edges}
        assert ends == {year(2020): year(2022), year(2022): year(2024), year(2024): None}, order


def test_a_named_end_closes_the_active_fact_of_that_key() -> None:
    vim = fact("vim", 2020, relation="uses")
    facts = ledger(vim)
    assert facts.end([vim.key], End(year(2025), year(2025)))
    assert facts.expiries[0].valid_to == year(2025)


def test_an_end_that_was_told_before_a_fact_began_is_not_of_that_fact() -> None:
    vim = fact("vim", 2023, relation="uses")
    facts = ledger(vim)
    assert not facts.end([vim.key], End(year(2021), year(2021)))
    facts.end_edge(vim.id, fact("vi", 2021, relation="uses"), "other")
    assert facts.expiries == ()


def test_a_plan_that_was_told_is_cancelled_before_it_begins() -> None:
    plan = fact("vim", 2023, relation="uses", told_at=year(2020))
    facts = ledger(plan)
    assert facts.end([plan.key], End(year(2021), year(2021)))
    assert facts.expiries[0].valid_to == year(2023)


def test_what_was_said_while_a_fact_held_supports_that_version() -> None:
    vim = fact("vim", 2020, 2022, relation="uses", episode_ids=("e1",))
    facts = ledger(vim)
    assert facts.add(fact("vim", 2021, relation="uses", episode_ids=("e2",))) == vim.id
    assert facts.edges == ()
    assert facts.add(fact("vim", 2022, relation="uses")) != vim.id


def test_an_end_before_the_beginning_closes_when_it_was_told() -> None:
    vim = fact("vim", 2020, relation="uses")
    facts = ledger(vim)
    facts.end([vim.key], End(year(2010), year(2025)))
    assert facts.expiries[0].valid_to == year(2025)


def test_whatever_a_relation_of_one_value_holds_can_end_by_itself() -> None:
    old = fact("initech", 2020)
    facts = ledger(old)
    facts.end_slot((old.source_id, old.relation), End(year(2024), year(2025)))
    facts.add(fact("globex", 2026))
    assert [(c.edge_id, c.valid_to) for c in facts.expiries] == [(old.id, year(2024))]


def test_an_end_that_was_told_before_a_fact_began_leaves_it() -> None:
    facts = ledger(fact("initech", 2020))
    facts.end_slot(("maya", "works_at"), End(year(2010), year(2015)))
    assert facts.expiries == ()


def test_an_end_of_something_unknown_changes_nothing() -> None:
    facts = ledger()
    assert not facts.end([("maya", "vim", "uses", EdgeType.SEMANTIC)], End(year(2025), year(2025)))
    assert facts.expiries == ()


def test_a_fact_that_is_stated_with_its_end_closes_the_active_one() -> None:
    known = fact("vim", 2020, relation="uses")
    facts = ledger(known)
    facts.add(fact("vim", 2020, 2025, relation="uses"))
    assert facts.edges == ()
    assert facts.expiries[0].valid_to == year(2025)


def test_a_closed_fact_stated_again_adds_no_row() -> None:
    facts = ledger(fact("initech", 2018, 2022))
    facts.add(fact("initech", 2018, 2022, episode_ids=("e2",)))
    assert facts.edges == ()
    assert facts.corroborations[0].episode_ids == ("e2",)


def test_a_past_job_stated_with_both_times_leaves_the_present_one() -> None:
    facts = ledger(fact("globex", 2020))
    facts.add(fact("initech", 2010, 2015))
    assert facts.expiries == ()
    assert facts.edges[0].valid_to == year(2015)


def test_coming_back_to_a_former_target_is_a_new_version() -> None:
    facts = ledger(fact("initech", 2018, 2022), fact("globex", 2022))
    facts.add(fact("initech", 2025))
    assert [e.target_id for e in facts.edges] == ["initech"]
    assert facts.expiries[0].valid_to == year(2025)


def test_an_edge_is_closed_at_most_once_in_a_batch() -> None:
    facts = ledger(fact("initech", 2020))
    facts.add(fact("globex", 2022))
    facts.add(fact("hooli", 2021))
    assert len(facts.expiries) == 1
    assert {e.target_id: e.valid_to for e in facts.edges} == {"globex": None, "hooli": year(2022)}


@pytest.mark.parametrize(("until", "is_told_anew"), [(2021, False), (2024, True), (None, True)])
def test_what_was_over_when_it_was_told_again_gets_no_version(until: int | None, is_told_anew: bool) -> None:
    told = fact("Paris", 2020, until, kind="event", episode_ids=("e1", "e2"))
    sources = [FactSource("e1", year(2020)), FactSource("e2", year(2023))]
    again = reopened(told, year(2022), sources, year(2025))
    assert (again is not None) == is_told_anew


def test_a_contradicted_edge_ends_when_the_new_fact_begins() -> None:
    vegan = fact("meat", 2020, relation="avoids")
    facts = ledger(vegan)
    new = fact("steak", 2024, relation="enjoys")
    facts.end_edge(vegan.id, new, facts.add(new))
    assert (facts.expiries[0].valid_to, facts.expiries[0].superseded_by) == (year(2024), new.id)


def lives_in(target: str, month: int, episode: str, text: str = "", **fields: Any) -> Edge:
    told = datetime(2025, month, 1, tzinfo=UTC)
    text = text or f"{target}, says {episode}"
    times = {"valid_from": told, "told_at": told, "valid_from_assumed": True}
    return fact(target, 2025, relation="lives_in", fact=text, episode_ids=(episode,), **fields).changed(**times)


def names(entity_ids: Collection[str]) -> dict[str, str]:
    return {entity_id: entity_id.title() for entity_id in entity_ids}


def told_by(*tellings: Edge) -> Callable[[Sequence[Edge]], dict[str, list[FactSource]]]:
    times = {edge.episode_ids[0]: edge.told_at or NOW for edge in tellings}
    return lambda edges: {edge.id: [FactSource(i, times[i]) for i in edge.episode_ids] for edge in edges}


def test_a_version_told_only_by_later_episodes_does_not_keep_the_sentence_of_the_first() -> None:
    first, again, between = lives_in("oslo", 1, "e1"), lives_in("oslo", 9, "e2"), lives_in("rome", 5, "e3")
    known = first.changed(episode_ids=("e1", "e2"))
    facts = FactLedger([known], DEFAULT_ONTOLOGY, NOW, told_by(first, again, between))
    facts.add(between)
    assert facts.restate(names) == ()
    assert {(e.fact, e.episode_ids) for e in facts.edges} == {
        ("oslo, says e1", ("e1",)),
        ("rome, says e3", ("e3",)),
        ("Maya lives in Oslo", ("e2",)),
    }


def test_a_version_takes_the_sentence_that_one_of_its_episodes_told() -> None:
    first, again, between = lives_in("oslo", 1, "e1"), lives_in("oslo", 9, "e2"), lives_in("rome", 5, "e3")
    facts = FactLedger([], DEFAULT_ONTOLOGY, NOW, told_by(first, again, between))
    for edge in (first, again, between):
        facts.add(edge)
    facts.restate(names)
    assert {(e.fact, e.episode_ids) for e in facts.edges} == {
        ("oslo, says e1", ("e1",)),
        ("rome, says e3", ("e3",)),
        ("oslo, says e2", ("e2",)),
    }


def test_a_fact_that_its_first_episode_does_not_state_any_more_loses_the_sentence_and_its_index_entry() -> None:
    known = lives_in("oslo", 1, "e1", properties={"floor": 3}).changed(episode_ids=("e1", "e2"))
    facts = ledger(known)
    facts.narrow(known.id, {"e1"})
    assert facts.restate(names) == (Removal("index", known.id, "fact"),)
    [edge] = facts.edges
    assert (edge.fact, edge.properties, edge.episode_ids) == ("Maya lives in Oslo", {}, ("e2",))


def test_a_fact_that_another_episode_confirms_keeps_its_sentence() -> None:
    known = lives_in("oslo", 1, "e1")
    facts = ledger(known)
    facts.add(lives_in("oslo", 2, "e2"))
    assert (facts.restate(names), facts.edges) == ((), ())


def test_every_version_of_a_corrected_fact_has_an_episode_that_states_it() -> None:
    correction, between = lives_in("rome", 3, "e2"), lives_in("oslo", 2, "e3")
    known = lives_in("rome", 1, "e1").changed(episode_ids=("e2",))  # it begins where the wrong fact began
    facts = FactLedger([known], DEFAULT_ONTOLOGY, NOW, told_by(correction, between))
    facts.add(between)
    facts.restate(names)
    assert sorted((e.target_id, e.episode_ids) for e in facts.edges) == [("oslo", ("e3",)), ("rome", ("e2",))]
    [closing] = facts.expiries
    assert (closing.edge_id, closing.valid_to) == (known.id, between.valid_from)


# Occupations --------------------------------------------------------------------------------------


def occupation(target: str, since: int) -> Edge:
    return fact(target, since, relation="works_as", episode_ids=("e1",))


def test_an_occupation_ends_with_the_job() -> None:
    nurse = occupation("nurse", 2020)
    facts = ledger(fact("mercy", 2020, episode_ids=("e1",)), nurse)
    facts.end([("maya", "mercy", "works_at", EdgeType.SEMANTIC)], End(year(2024), year(2024), "e2"))
    assert {(e.edge_id, e.valid_to) for e in facts.expiries} >= {(nurse.id, year(2024))}


def test_a_job_that_had_ended_or_never_held_ends_no_occupation() -> None:
    for end in (End(year(2021), year(2024), "e2"), End(year(2024), year(2024), "e2", why="corrected")):
        nurse = occupation("nurse", 2023)
        facts = ledger(fact("mercy", 2020, episode_ids=("e1",)), nurse)
        facts.end([("maya", "mercy", "works_at", EdgeType.SEMANTIC)], end)
        assert nurse.id not in {e.edge_id for e in facts.expiries}


def test_an_occupation_that_was_told_without_the_job_stays() -> None:
    facts = ledger(fact("blue bar", 2021, episode_ids=("e2",)), occupation("photographer", 2020))
    facts.end([("maya", "blue bar", "works_at", EdgeType.SEMANTIC)], End(year(2024), year(2024), "e3"))
    assert len(facts.expiries) == 1


def test_a_new_job_ends_no_occupation() -> None:
    nurse = occupation("nurse", 2020)
    facts = ledger(fact("mercy", 2020, episode_ids=("e1",)), nurse)
    facts.add(fact("globex", 2024))
    assert nurse.id not in {e.edge_id for e in facts.expiries}


def test_an_occupation_that_is_told_again_after_the_end_of_the_job_goes_on_from_then() -> None:
    job, nurse = fact("mercy", 2020, episode_ids=("e1",)), fact("nurse", 2020, relation="works_as", episode_ids=("e1",))
    first, again = nurse.changed(told_at=year(2020)), nurse.changed(episode_ids=("e3",), told_at=year(2025))
    facts = FactLedger([job, nurse.changed(episode_ids=("e1", "e3"))], DEFAULT_ONTOLOGY, NOW, told_by(first, again))
    facts.end([job.key], End(year(2024), year(2024), "e2"))
    assert sorted((e.valid_from, e.valid_to) for e in facts.edges) == [(year(2020), year(2024)), (year(2025), None)]
