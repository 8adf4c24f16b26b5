"""Ends go with what stated them: an episode that said that a fact is over, or a fact that contradicts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.ingest.contradictions import ContradictionCheck
from graphmem.models import EdgeQuery
from graphmem.protocols import ExtractedEdge, ExtractedEnding, Extraction, ExtractionRequest
from graphmem.results import Fact

OpenMemory = Callable[..., GraphMemory]
Span = tuple[str, str | None]

pytestmark = pytest.mark.server

NOW = datetime.now(UTC)


class Sayings:
    """Reads lines of ``subject | relation | target``; "over: " before one ends the fact, "wrong: " corrects it.

    Attributes
    ----------
    deaf
        Whether it misses what is over or wrong.
    """

    name, batch_size = "sayings", 1

    def __init__(self) -> None:
        self.deaf = False

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return [self._read(request.episode.text) for request in requests]

    def _read(self, text: str) -> Extraction:
        edges: list[ExtractedEdge] = []
        endings: list[ExtractedEnding] = []
        for line in text.splitlines():
            verb, _, fact = line.rpartition(": ")
            source, relation, *target = fact.split(" | ")
            if verb and self.deaf:
                continue
            if verb == "wrong":
                endings.append(ExtractedEnding(source, relation, target[0] if target else None, why="corrected"))
            elif not target:
                endings.append(ExtractedEnding(source, relation))
            else:
                until = datetime.fromisoformat(verb[6:]).replace(tzinfo=UTC) if verb.startswith("until ") else None
                edges.append(ExtractedEdge(source, relation, target[0], valid_to=until, ended=verb == "over"))
        return Extraction(edges=tuple(edges), endings=tuple(endings))


def who_eats_meat(new: Sequence[str], known: Sequence[str]) -> list[tuple[int, int]]:
    """Judge that whoever eats something doesn't avoid meat."""
    eats = [i for i, fact in enumerate(new) if " eats " in fact]
    return [(i, j) for i in eats for j, fact in enumerate(known) if "avoids meat" in fact]


@pytest.fixture
def opened(open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> OpenMemory:
    """Return what opens a memory whose extractor reads sayings, with a check for contradictions."""

    def check(*_: object) -> ContradictionCheck:
        return ContradictionCheck(who_eats_meat)

    monkeypatch.setattr("graphmem.factory.contradiction_check", check)

    def open_one(url: str, **options: Any) -> GraphMemory:
        return open_memory(url, **{"extractor": Sayings(), "embeddings": "none", **options})

    return open_one


@pytest.fixture
def memory(store_url: str, opened: OpenMemory) -> GraphMemory:
    return opened(store_url)


def say(memory: GraphMemory, day: str, text: str, **fields: Any) -> str:
    receipt = memory.remember(text, occurred_at=f"2025-{day}", **fields)
    assert receipt.wait(60)
    return receipt.episode_id


def fact(memory: GraphMemory, target: str, of: str = "Maya") -> Fact:
    return next(f for f in memory.history(of) if f.target == target and f.end_reason != "replaced")


def spans(memory: GraphMemory, of: str = "Maya") -> dict[str, list[Span]]:
    """Return since when and until when each thing was so."""
    found: dict[str, list[Span]] = {}
    for each in sorted(memory.history(of), key=lambda f: f.valid_from):
        if each.valid_from != each.valid_to:
            end = None if each.valid_to is None else f"{each.valid_to:%m-%d}"
            found.setdefault(each.target, []).append((f"{each.valid_from:%m-%d}", end))
    return found


def state_of(memory: GraphMemory) -> dict[str, Any]:
    """Return the stored facts, by id, as far as ends go."""
    backend, scope = memory._engine.backend, memory.scope  # pyright: ignore[reportPrivateUsage]
    times = ("valid_from", "valid_to", "expired_at", "superseded_by", "end_reason", "prior_valid_to", "ends")
    rows = backend.all_edges([scope], EdgeQuery(versions="all"))
    return {row.id: {name: getattr(row, name) for name in (*times, "episode_ids")} for row in rows}


TOLD = ("Maya | uses | vim", "Maya | lives_in | Rome")
STATED = ("over: Maya | uses | vim", "over: Maya | lives_in", "wrong: Maya | lives_in | Rome", "until 2027-01-01: {}")


@pytest.mark.parametrize("ending", [*STATED[:3], STATED[3].format(TOLD[0]), STATED[3].format(TOLD[1])])
def test_a_forgotten_message_leaves_no_end_behind(memory: GraphMemory, ending: str) -> None:
    say(memory, "01-10", "\n".join(TOLD))
    before = state_of(memory)
    message = say(memory, "03-01", ending)
    assert state_of(memory) != before
    memory.forget(episode=message)
    assert state_of(memory) == before


def test_the_ends_of_a_forgotten_session_go(memory: GraphMemory) -> None:
    say(memory, "01-10", "\n".join(TOLD), session_id="a")
    before = state_of(memory)
    say(memory, "03-01", "over: Maya | uses | vim", session_id="b")
    say(memory, "03-02", "over: Maya | lives_in", session_id="b")
    assert spans(memory) == {"vim": [("01-10", "03-01")], "Rome": [("01-10", "03-02")]}
    memory.forget(session="b")
    assert state_of(memory) == before


def test_the_end_of_an_expired_message_goes(store_url: str, opened: OpenMemory) -> None:
    now = NOW
    memory = opened(store_url, clock=lambda: now)
    say(memory, "01-10", "Maya | uses | vim")
    before = state_of(memory)
    say(memory, "03-01", "over: Maya | uses | vim", expires_in="1h")
    now += timedelta(hours=2)
    memory.admin.expire()
    assert state_of(memory) == before


@pytest.mark.parametrize("ending", STATED[:3])
def test_an_end_that_is_not_extracted_again_goes(store_url: str, opened: OpenMemory, ending: str) -> None:
    sayings = Sayings()
    memory = opened(store_url, extractor=sayings)
    say(memory, "01-10", "\n".join(TOLD))
    before = spans(memory)
    say(memory, "03-01", ending)
    ended = spans(memory)
    memory.admin.backfill(again=True)
    assert spans(memory) == ended
    sayings.deaf = True
    memory.admin.backfill(again=True)
    assert spans(memory) == before


@pytest.mark.parametrize("ending", STATED[:2])
def test_an_end_that_is_extracted_again_changes_nothing(memory: GraphMemory, ending: str) -> None:
    say(memory, "01-10", "\n".join(TOLD))
    say(memory, "03-01", ending)
    say(memory, "04-01", ending)
    before = state_of(memory)
    memory.admin.backfill(again=True)
    assert state_of(memory) == before


def test_a_past_fact_that_is_not_extracted_again_is_retracted(store_url: str, opened: OpenMemory) -> None:
    sayings = Sayings()
    memory = opened(store_url, extractor=sayings)
    say(memory, "03-01", "over: Maya | uses | vim")
    assert spans(memory) == {"vim": [("02-28", "03-01")]}
    stored = state_of(memory)
    memory.admin.backfill(again=True)
    assert state_of(memory) == stored
    sayings.deaf = True
    memory.admin.backfill(again=True)
    assert spans(memory) == {}


def test_a_fact_ends_with_what_one_of_two_episodes_says(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | uses | vim")
    before = state_of(memory)
    first = say(memory, "03-01", "over: Maya | uses | vim")
    second = say(memory, "04-01", "over: Maya | uses | vim")
    assert spans(memory) == {"vim": [("01-10", "03-01")]}
    memory.forget(episode=first)
    assert (spans(memory), fact(memory, "vim").end_reason) == ({"vim": [("01-10", "04-01")]}, "over")
    memory.forget(episode=second)
    assert state_of(memory) == before


def test_a_further_episode_that_states_an_end_can_be_forgotten(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | uses | vim")
    say(memory, "03-01", "over: Maya | uses | vim")
    before = state_of(memory)
    memory.forget(episode=say(memory, "04-01", "over: Maya | uses | vim"))
    assert state_of(memory) == before


def test_a_past_fact_stays_while_one_episode_is_left_that_tells_it(memory: GraphMemory) -> None:
    first = say(memory, "03-01", "over: Maya | uses | vim")
    second = say(memory, "04-01", "over: Maya | uses | vim")
    memory.forget(episode=first)
    assert [end for _, end in spans(memory)["vim"]] == ["04-01"]
    memory.forget(episode=second)
    assert spans(memory) == {}


@pytest.mark.parametrize(
    ("by_hand", "said", "hand_first"),
    [("02-01", "03-01", True), ("03-01", "02-01", True), ("03-01", "03-01", True), ("02-01", "03-01", False)],
)
def test_an_end_by_hand_stays(memory: GraphMemory, by_hand: str, said: str, *, hand_first: bool) -> None:
    say(memory, "01-10", "Maya | uses | vim")
    message = "" if hand_first else say(memory, said, "over: Maya | uses | vim")
    memory.end(fact(memory, "vim").id, at=f"2025-{by_hand}", reason="switched")
    message = message or say(memory, said, "over: Maya | uses | vim")
    memory.forget(episode=message)
    assert spans(memory) == {"vim": [("01-10", by_hand)]}


def test_a_retraction_by_hand_stays(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | uses | vim")
    message = say(memory, "03-01", "over: Maya | uses | vim")
    memory.retract(fact(memory, "vim").id, reason="a joke")
    memory.forget(episode=message)
    assert (spans(memory), fact(memory, "vim").end_reason) == ({}, "a joke")


def test_a_fact_that_was_told_again_after_a_forgotten_end_is_one_fact(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | uses | vim")
    message = say(memory, "03-01", "over: Maya | uses | vim")
    say(memory, "04-01", "Maya | uses | vim")
    say(memory, "05-01", "over: Maya | uses | vim")
    assert spans(memory) == {"vim": [("01-10", "03-01"), ("04-01", "05-01")]}
    memory.forget(episode=message)
    assert spans(memory) == {"vim": [("01-10", "05-01")]}
    assert len(fact(memory, "vim").episode_ids) == 2


def test_a_fact_that_goes_on_ends_with_the_next_one_of_its_slot(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | lives_in | Rome")
    message = say(memory, "02-10", "over: Maya | lives_in")
    say(memory, "03-10", "Maya | lives_in | Oslo")
    say(memory, "04-10", "Maya | lives_in | Bern")
    memory.forget(episode=message)
    assert spans(memory) == {"Rome": [("01-10", "03-10")], "Oslo": [("03-10", "04-10")], "Bern": [("04-10", None)]}


def test_a_document_does_not_end_what_goes_on(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | lives_in | Rome", speaker="Maya")
    message = say(memory, "02-10", "over: Maya | lives_in", speaker="Maya")
    say(memory, "03-10", "Maya | lives_in | Oslo", metadata={"trust": "external"})
    memory.forget(episode=message)
    assert spans(memory) == {"Rome": [("01-10", None)], "Oslo": [("03-10", None)]}


def test_a_rumor_goes_on_when_the_repetition_that_ended_it_is_forgotten(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | lives_in | Rome", speaker="Maya")
    say(memory, "02-10", "Maya | lives_in | Oslo", speaker="Ben")
    again = [say(memory, day, "Maya | lives_in | Rome", speaker="Maya") for day in ("03-10", "04-10")]
    assert spans(memory)["Oslo"] == [("02-10", "03-10")]
    memory.forget(episode=again[0])
    assert spans(memory)["Oslo"] == [("02-10", "04-10")]
    memory.forget(episode=again[1])
    assert spans(memory) == {"Rome": [("01-10", None)], "Oslo": [("02-10", None)]}


# Contradictions across relations


def contradicted(memory: GraphMemory) -> tuple[str, dict[str, Any]]:
    """Tell a fact that another one contradicts; return the episode of that one, and the facts without it."""
    say(memory, "01-10", "Maya | avoids | meat")
    before = state_of(memory)
    message = say(memory, "03-01", "Maya | eats | steak")
    assert spans(memory) == {"meat": [("01-10", "03-01")], "steak": [("03-01", None)]}
    return message, before


def test_what_a_retracted_fact_contradicted_goes_on(memory: GraphMemory) -> None:
    _, before = contradicted(memory)
    steak = fact(memory, "steak").id
    memory.retract(steak)
    now = state_of(memory)
    del now[steak]
    assert now == before


def test_what_a_forgotten_fact_contradicted_goes_on(memory: GraphMemory) -> None:
    message, before = contradicted(memory)
    memory.forget(episode=message)
    assert state_of(memory) == before


def test_what_a_fact_that_is_not_extracted_again_contradicted_goes_on(store_url: str, opened: OpenMemory) -> None:
    sayings = Sayings()
    memory = opened(store_url, extractor=sayings)
    say(memory, "01-10", "Maya | avoids | meat")
    say(memory, "03-01", "over: Maya | eats | steak\nuntil 2027-01-01: Maya | eats | steak")
    assert spans(memory)["meat"] == [("01-10", "03-01")]
    sayings.deaf = True
    memory.admin.backfill(again=True)
    assert spans(memory) == {"meat": [("01-10", None)]}


def test_a_fact_stays_contradicted_while_one_episode_is_left_that_states_the_other(memory: GraphMemory) -> None:
    message, before = contradicted(memory)
    second = say(memory, "04-01", "Maya | eats | steak")
    memory.forget(episode=message)
    assert spans(memory)["meat"] == [("01-10", "03-01")]
    memory.forget(episode=second)
    assert state_of(memory) == before


def test_a_fact_of_a_slot_stays_contradicted_when_the_slot_is_told_again(memory: GraphMemory) -> None:
    say(memory, "01-10", "Maya | avoids | meat")
    message = say(memory, "03-01", "Maya | eats | steak\nover: Maya | works_at | Initech")
    say(memory, "04-01", "Maya | avoids | meat\nMaya | works_at | Globex")
    assert spans(memory)["meat"] == [("01-10", "03-01"), ("04-01", None)]
    memory.forget(episode=message)
    assert spans(memory) == {"meat": [("01-10", None)], "Globex": [("04-01", None)]}


def test_an_end_that_outlived_its_fact_goes_with_the_episode(memory: GraphMemory) -> None:
    message, before = contradicted(memory)
    memory.forget("steak")
    assert spans(memory) == {"meat": [("01-10", "03-01")]}
    memory.forget(episode=message)
    assert state_of(memory) == before


# Exports and merges


def test_ends_go_in_the_memory_that_an_export_was_read_into(
    memory: GraphMemory, opened: OpenMemory, tmp_path: Path
) -> None:
    first, before = contradicted(memory)
    second = say(memory, "04-01", "over: Maya | avoids | meat")
    memory.admin.export(tmp_path / "export.jsonl")
    there = opened(f"memory://{tmp_path.name}-read", scope=str(memory.scope))
    there.admin.import_(tmp_path / "export.jsonl")
    assert state_of(there) == state_of(memory)
    there.forget(episode=first)
    assert spans(there) == {"meat": [("01-10", "04-01")]}
    there.forget(episode=second)
    assert state_of(there) == before


def test_an_import_brings_who_else_stated_an_end(memory: GraphMemory, opened: OpenMemory, tmp_path: Path) -> None:
    say(memory, "01-10", "Maya | uses | vim")
    first = say(memory, "03-01", "over: Maya | uses | vim")
    there = opened(f"memory://{tmp_path.name}-read", scope=str(memory.scope))
    for _ in range(2):
        memory.admin.export(tmp_path / "export.jsonl")
        there.admin.import_(tmp_path / "export.jsonl")
        say(memory, "04-01", "over: Maya | uses | vim")
    there.forget(episode=first)
    assert spans(there) == {"vim": [("01-10", "04-01")]}


@pytest.mark.parametrize("forgotten", ["while merged", "after the unmerge"])
def test_a_fact_goes_on_after_its_merge_was_undone(memory: GraphMemory, forgotten: str) -> None:
    say(memory, "01-10", "Bobby | uses | vim\nRobert | avoids | meat\nRobert | knows | Bobby")
    before = state_of(memory)
    message = say(memory, "03-01", "over: Bobby | uses | vim\nRobert | eats | steak\nover: Robert | knows | Bobby")
    [made] = memory.admin.merge("Robert", into="Bobby")
    if forgotten == "while merged":
        memory.forget(episode=message)
    memory.admin.unmerge(made.id)
    if forgotten == "after the unmerge":
        memory.forget(episode=message)
    assert state_of(memory) == before


@pytest.mark.parametrize("undone", [True, False])
@pytest.mark.parametrize("how", ["forget", "retract"])
def test_what_a_folded_fact_contradicted_goes_on(memory: GraphMemory, how: str, *, undone: bool) -> None:
    say(memory, "01-10", "Robert | avoids | meat")
    message = say(memory, "03-01", "Robert | eats | steak")
    say(memory, "04-01", "Bobby | eats | steak", session_id="other")
    [made] = memory.admin.merge("Robert", into="Bobby")
    of = "Robert" if undone else "Bobby"
    if undone:
        memory.admin.unmerge(made.id)
    if how == "retract":
        memory.retract(fact(memory, "steak", of).id)
    else:
        memory.forget(episode=message)
        if not undone:
            assert spans(memory, of)["meat"] == [("01-10", "03-01")]  # somebody else states it as well
            memory.forget(session="other")
    assert spans(memory, of)["meat"] == [("01-10", None)]
