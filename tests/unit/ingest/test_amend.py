"""Facts that are retracted or ended by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem import AsOf, GraphMemory, InvalidInput, NotFound
from graphmem.results import Fact

NEVER = "01890000-0000-7000-8000-000000000000"


@pytest.fixture(params=["memory://", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphMemory]:
    place = tmp_path_factory.mktemp("store") / "memory.db"
    url = f"sqlite:///{place}" if request.param == "sqlite" else request.param
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False) as memory:
        for day, place in (("2026-01-10", "Rome"), ("2026-02-10", "Oslo")):
            memory.add_facts([("Maya", "lives in", place)], occurred_at=day)
        memory.add_facts([("Maya", "uses", "vim")], occurred_at="2026-01-10")
        yield memory


def fact(memory: GraphMemory, target: str) -> Fact:
    return next(f for f in memory.history("Maya") if f.target == target)


def held(memory: GraphMemory, as_of: str | None = None) -> set[str]:
    return {f.target for f in memory.facts("Maya", as_of=as_of)}


def test_what_a_retracted_fact_had_ended_goes_on(memory: GraphMemory) -> None:
    done = memory.retract(fact(memory, "Oslo").id, reason="it was a joke")
    assert (done.valid_to, done.end_reason) == (done.valid_from, "it was a joke")
    assert held(memory) == {"Rome", "vim"}
    rome = fact(memory, "Rome")
    assert (rome.valid_to, rome.expired_at, rome.superseded_by, rome.end_reason) == (None, None, None, None)


def test_a_retracted_fact_stays_in_the_history_and_is_not_retracted_twice(memory: GraphMemory) -> None:
    first = memory.retract(fact(memory, "vim").id)
    assert (first.end_reason, memory.retract(first.id, reason="again")) == ("retracted", first)
    assert fact(memory, "vim") == first


def test_a_retraction_stays_when_the_slot_is_told_again(memory: GraphMemory) -> None:
    wrong = memory.retract(fact(memory, "Oslo").id)
    memory.add_facts([("Maya", "lives in", "Bern")], occurred_at="2026-03-10")
    assert fact(memory, "Oslo") == wrong
    assert held(memory) == {"Bern", "vim"}
    assert held(memory, "2026-02-20") == {"Rome", "vim"}


def test_a_fact_ends_at_a_time_with_a_reason(memory: GraphMemory) -> None:
    done = memory.end(fact(memory, "vim").id, at="2026-03-01", reason="switched")
    assert done.valid_to is not None
    assert (done.valid_to.date().isoformat(), done.end_reason) == ("2026-03-01", "switched")
    assert (held(memory), held(memory, "2026-02-20")) == ({"Oslo"}, {"Oslo", "vim"})


def test_a_fact_ends_now_by_default_and_sooner_than_known(memory: GraphMemory) -> None:
    vim = memory.end(fact(memory, "vim").id)
    assert vim.end_reason == "over"
    rome = memory.end(fact(memory, "Rome").id, at="2026-01-20")
    assert (rome.superseded_by, rome.end_reason) == (None, "over")
    assert held(memory, "2026-02-01") == {"vim"}


@pytest.mark.parametrize("at", ["2026-01-01", "2026-06-01"])
def test_an_end_before_the_beginning_or_after_the_end_is_refused(memory: GraphMemory, at: str) -> None:
    rome = fact(memory, "Rome")
    with pytest.raises(InvalidInput, match="can't end at"):
        memory.end(rome.id, at=at)
    assert fact(memory, "Rome") == rome


def test_a_fact_of_another_scope_is_unknown(memory: GraphMemory) -> None:
    other = memory.in_scope("other")
    for fact_id in (fact(memory, "vim").id, NEVER):
        with pytest.raises(NotFound, match="is not in scope other"):
            other.retract(fact_id)
        with pytest.raises(NotFound, match="is not in scope other"):
            other.end(fact_id)
    assert held(memory) == {"Oslo", "vim"}


def test_a_reason_that_names_somebody_who_is_forgotten_goes(memory: GraphMemory) -> None:
    memory.add_facts([("Jonas", "knows", "Priya")])
    vim = memory.end(fact(memory, "vim").id, reason="Jonas Meyer said so")
    memory.forget("Jonas")
    assert fact(memory, "vim").changed(end_reason=vim.end_reason) == vim
    assert fact(memory, "vim").end_reason == "over"


def test_a_stated_end_holds_again_when_what_ended_it_sooner_is_forgotten(memory: GraphMemory) -> None:
    home = {"subject": "Ada", "relation": "lives in", "valid_from": "2026-01-01"}
    memory.add_facts([{**home, "object": "Rome", "valid_to": "2027-01-01"}], occurred_at="2026-02-01")
    memory.add_facts([("Ada", "lives in", "Bern")], occurred_at="2026-04-01")
    ends = {f.target: f.valid_to for f in memory.history("Ada")}
    assert (ends["Bern"], ends["Rome"] and ends["Rome"].date().isoformat()) == (None, "2026-04-01")
    [bern] = [f for f in memory.history("Ada") if f.target == "Bern"]
    memory.forget(episode=bern.episode_ids[0])
    [rome] = memory.history("Ada")
    assert (rome.valid_to and rome.valid_to.date().isoformat(), rome.superseded_by) == ("2027-01-01", None)


def test_a_planned_end_moves_with_what_is_told_later_and_back_if_that_is_forgotten(memory: GraphMemory) -> None:
    contract = {"subject": "Ada", "relation": "works at", "object": "Acme", "valid_from": "2026-01-01"}
    memory.add_facts([{**contract, "valid_to": "2026-03-31"}], occurred_at="2026-01-05")
    memory.add_facts([{**contract, "valid_to": "2026-06-30"}], occurred_at="2026-03-01")
    [acme] = memory.history("Ada")
    assert acme.valid_to is not None
    assert acme.valid_to.date().isoformat() == "2026-06-30"
    memory.forget(episode=max(acme.episode_ids))
    [acme] = memory.history("Ada")
    assert acme.valid_to is not None
    assert acme.valid_to.date().isoformat() == "2026-03-31"


def test_an_end_that_still_lies_ahead_is_moved_by_hand(memory: GraphMemory) -> None:
    for at in ("2126-03-01", "2126-06-01"):
        done = memory.end(fact(memory, "vim").id, at=at)
        assert done.valid_to is not None
        assert done.valid_to.date().isoformat() == at
    memory.add_facts([("Maya", "uses", "vim")], occurred_at="2026-04-01")
    assert fact(memory, "vim").valid_to == done.valid_to


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
def test_personal_data_is_redacted_from_a_reason(url: str, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'memory.db'}" if url == "sqlite" else url
    with GraphMemory.open(place, extractor="none", embeddings="none", background=False, redact="facts") as memory:
        memory.add_facts([("Maya", "uses", "vim")])
        [vim] = memory.facts("Maya")
        assert memory.retract(vim.id, reason="says maya@example.org").end_reason == "says [email]"


def test_an_earlier_transaction_time_shows_the_end_that_was_known_then(memory: GraphMemory) -> None:
    rented = {"subject": "Maya", "relation": "rents", "object": "a flat"}
    memory.add_facts([{**rented, "valid_from": "2026-02-01", "valid_to": "2027-01-01"}])
    flat = fact(memory, "a flat")
    ended = memory.end(flat.id, at="2026-12-01")
    assert ended.recorded_at < (ended.expired_at or ended.recorded_at)
    before = AsOf("2026-12-15", ended.recorded_at)
    (shown,) = (f for f in memory.facts("Maya", as_of=before) if f.target == "a flat")
    (recalled,) = (f for f in memory.recall("What does Maya rent?", as_of=before).facts if f.target == "a flat")
    assert (shown.valid_to, recalled.valid_to, shown.expired_at) == (flat.valid_to, flat.valid_to, None)
    assert "a flat" not in held(memory, "2026-12-15")
    assert all(f.target != "a flat" for f in memory.facts("Maya", as_of=AsOf("2027-02-01", ended.recorded_at)))
