"""A turn that is forgotten, or not understood any more, leaves the facts as if it had never been told."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple, ParamSpec, TypeVar

import pytest

from graphmem import Fact, GraphMemory
from graphmem.models import Certainty
from graphmem.protocols import EndingReason, ExtractedEdge, ExtractedEnding, Extraction, ExtractionRequest
from graphmem_memory.backend import MemoryBackend

WHY: dict[str, EndingReason] = {"over": "over", "wrong": "corrected", "continues": "continues"}
FACTS = ("lives_in Rome", "lives_in Oslo", "lives_in Bonn", "uses vim")
SURE: dict[str, Certainty] = {"perhaps": "hearsay", "planned": "plan"}
Row = tuple[str, str, str, str]
P = ParamSpec("P")
R = TypeVar("R")


class Turn(NamedTuple):
    day: str
    text: str
    speaker: str = "Maya"

    @property
    def since(self) -> str:
        """The day that it states as a beginning; without one, text that occurs nowhere."""
        return self.text.split()[-1] if self.text[-1].isdigit() else "no day"


class Sayings:
    """Reads "<relation> <target>" as a fact about the speaker, and as an end after one of `WHY`, except in `missed`.

    A day after it says since when the fact holds, except in `undated`, and one after "until" its end. With "perhaps"
    before it, the fact is hearsay, with "planned" a plan; "visited" is an event.
    """

    name, batch_size = "sayings", 1

    def __init__(self) -> None:
        self.missed: Turn | None = None
        self.undated: Turn | None = None

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        return [self._read(request) for request in requests]

    def _read(self, request: ExtractionRequest) -> Extraction:
        day = f"{request.episode.occurred_at:%Y-%m-%d}"
        if self.missed is not None and day == self.missed.day:
            return Extraction()
        who, words = request.episode.speaker or "", request.episode.text.split()
        certainty = SURE.get(words[0], "stated")
        relation, target, *since = words[words[0] in SURE :]
        if relation in WHY:
            ending = ExtractedEnding(who, target, next(iter(since), None), why=WHY[relation])
            return Extraction(endings=(ending,))
        until = read_day(since.pop()) if "until" in since else None
        if self.undated is not None and day == self.undated.day:
            since = []
        begin = read_day(since[0]) if since and since[0] != "until" else None
        sentence = f"{who} {relation} {target}, as told on {day}"
        edge = ExtractedEdge(
            who, relation, target, fact=sentence, valid_from=begin, valid_to=until, certainty=certainty
        )
        edge = replace(edge, kind="event") if relation == "visited" else edge
        return Extraction(edges=(edge,))


def read_day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def chat(seed: int, facts: Sequence[str], *, late: bool, dated: bool = False) -> tuple[list[Turn], int]:
    """Return up to five turns, in order or not, and the number of one of them; some of them dated, all differently."""
    chance = random.Random(seed)
    turns = [Turn(f"2025-{month:02d}-10", chance.choice(facts)) for month in range(1, chance.randint(3, 6))]
    if dated:
        since = [f" 2025-{chance.randint(1, n):02d}-{20 + n}" if chance.random() < 0.6 else "" for n in range(1, 6)]
        turns = [turn._replace(text=turn.text + day) for turn, day in zip(turns, since, strict=False)]
    if late:
        chance.shuffle(turns)
    return turns, chance.randrange(len(turns))


def told(turns: Sequence[Turn], sayings: Sayings | None = None) -> tuple[GraphMemory, list[str]]:
    """Return a memory of some turns, and their ids."""
    memory = GraphMemory.open("memory://", extractor=sayings or Sayings(), embeddings="none", background=False)
    ids: list[str] = []
    for turn in turns:
        ids.append(memory.remember(turn.text, occurred_at=turn.day, speaker=turn.speaker).episode_id)
        memory.flush()
    return memory, ids


def history(memory: GraphMemory, name: str = "Maya") -> list[Row]:
    """Return what was so of somebody, since when and until when, and when it was told first."""
    known: Sequence[Fact] = memory.history(name) if memory.entities(name) else ()
    facts = (fact for fact in known if fact.source == name and fact.valid_from != fact.valid_to)
    return sorted((f.target, f"{f.valid_from}"[:10], f"{f.valid_to}"[:10], f"{f.told_at}"[:10]) for f in facts)


def seen(memory: GraphMemory, name: str) -> tuple[str, str]:
    """Return the days on which somebody was first and last seen."""
    [entity] = (entity for entity in memory.entities(name) if entity.name == name)
    return f"{entity.first_seen_at:%Y-%m-%d}", f"{entity.last_seen_at:%Y-%m-%d}"


def exported(memory: GraphMemory) -> str:
    lines = io.StringIO()
    memory.admin.export(lines)
    return lines.getvalue()


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_forgotten_turn_leaves_no_date_behind(late: bool, dated: bool) -> None:
    for seed in range(60):
        turns, number = chat(seed, FACTS, late=late, dated=dated)
        others = [turn for turn in turns if turn is not turns[number]]
        memory, ids = told(turns)
        never, _ = told(others)
        with memory, never:
            memory.forget(episode=ids[number])
            assert history(memory) == history(never), (seed, turns, number)
            assert turns[number].day not in exported(memory), (seed, turns, number)
            assert turns[number].since not in exported(memory), (seed, turns, number)


def test_a_fact_that_goes_on_keeps_the_turns_of_both_its_versions() -> None:
    turns = [Turn("2025-03-10", "uses vim 2025-12-24"), Turn("2025-07-10", "uses vim 2025-10-16")]
    memory, ids = told([turns[0], Turn("2025-05-10", "over uses vim"), turns[1]])
    never, _ = told(turns)
    with memory, never:
        memory.forget(episode=ids[1])
        assert history(memory) == history(never)
        assert [len(fact.episode_ids) for fact in memory.facts("Maya")] == [2]


def test_turns_that_state_beginnings_give_the_same_facts_in_any_order() -> None:
    for seed in range(60):
        turns, _ = chat(seed, FACTS, late=True, dated=True)
        memory, _ = told(turns)
        in_order, _ = told(sorted(turns))
        with memory, in_order:
            assert history(memory) == history(in_order), (seed, turns)


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("forgotten_first", [False, True])
def test_a_forgotten_turn_leaves_no_date_in_the_ledger_of_merges(forgotten_first: bool, dated: bool) -> None:
    for seed in (*range(100), 344, 362, 766):
        turns, number = chat(seed, FACTS, late=False, dated=dated)
        chance = random.Random(seed)
        turns = [turn._replace(speaker=chance.choice(["Maya", "Mia"])) for turn in turns]
        memory, ids = told([*turns, Turn("2024-01-10", "knows Zoe"), Turn("2024-02-10", "knows Bob", "Mia")])
        with memory:
            [merge] = memory.admin.merge("Mia", into="Maya")
            if forgotten_first:
                memory.forget(episode=ids[number])
                assert turns[number].day not in exported(memory), (seed, turns, number)
            memory.admin.unmerge(merge.id)
            if not forgotten_first:
                memory.forget(episode=ids[number])
            assert turns[number].day not in exported(memory), (seed, turns, number)
            assert turns[number].since not in exported(memory), (seed, turns, number)


def divided(
    seed: int, facts: Sequence[str], *, late: bool, merged: bool = True
) -> tuple[GraphMemory, list[Turn], list[str], int]:
    """Return a memory in which Maya and Mia were one while about half of the turns were told, unless not `merged`."""
    turns, number = chat(seed, facts, late=late, dated=True)
    chance = random.Random(seed)
    turns = [turn._replace(speaker=chance.choice(["Maya", "Mia"])) for turn in turns]
    memory, _ = told([Turn("2024-01-10", "knows Zoe"), Turn("2024-02-10", "knows Bob", "Mia")])
    merges: list[str] = []
    ids: list[str] = []
    for n, turn in enumerate(turns):
        if merged and n == len(turns) // 2:
            merges += (merge.id for merge in memory.admin.merge("Mia", into="Maya"))
        ids.append(memory.remember(turn.text, occurred_at=turn.day, speaker=turn.speaker).episode_id)
        memory.flush()
    for merge in merges:
        memory.admin.unmerge(merge)
    return memory, turns, ids, number


@pytest.mark.parametrize("late", [False, True])
def test_a_turn_told_between_a_merge_and_its_unmerge_leaves_no_date_behind(late: bool) -> None:
    for seed in range(60):
        memory, turns, ids, number = divided(seed, FACTS, late=late)
        with memory:
            memory.forget(episode=ids[number])
            assert turns[number].day not in exported(memory), (seed, turns, number)
            assert turns[number].since not in exported(memory), (seed, turns, number)


@pytest.mark.parametrize("late", [False, True])
def test_after_an_unmerge_facts_hold_as_the_turns_about_each_say(late: bool) -> None:
    for seed in range(60):
        memory, turns, _, _ = divided(seed, FACTS, late=late)
        apart, _, _, _ = divided(seed, FACTS, late=late, merged=False)
        with memory, apart:
            assert history(memory) == history(apart), (seed, turns)
            assert history(memory, "Mia") == history(apart, "Mia"), (seed, turns)


HOMES = [
    Turn("2025-03-10", "lives_in Bonn"),
    Turn("2025-04-10", "lives_in Rome", "Mia"),
    Turn("2025-05-10", "lives_in Bonn", "Mia"),
]


def test_a_home_that_both_tell_is_current_after_a_merge_if_another_one_lies_between() -> None:
    memory, _ = told([Turn("2024-02-10", "knows Bob", "Mia"), *HOMES])
    apart, _ = told(HOMES)
    with memory, apart:
        [merge] = memory.admin.merge("Mia", into="Maya")
        assert [(target, begin) for target, begin, end, _ in history(memory) if end == "None" and target != "Bob"] == [
            ("Bonn", "2025-05-10")
        ]
        memory.admin.unmerge(merge.id)
        assert history(memory) == history(apart)
        assert history(memory, "Mia")[1:] == history(apart, "Mia")


def maya_only(*_: object) -> set[str]:
    return {"maya"}


def test_an_unmerge_gives_back_a_home_that_an_earlier_version_merged_into_a_past_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory, _ = told(HOMES)
    apart, _ = told(HOMES)
    with memory, apart:
        monkeypatch.setattr("graphmem.upkeep.merge._names", maya_only)
        [merge] = memory.admin.merge("Mia", into="Maya")
        assert merge.folded
        memory.admin.unmerge(merge.id)
        for name in ("Maya", "Mia"):
            assert history(memory, name) == history(apart, name)


def test_after_a_forget_and_an_unmerge_facts_and_entities_are_as_never_merged() -> None:
    people = [Turn("2024-01-10", "knows Zoe"), Turn("2024-02-10", "knows Bob", "Mia")]
    for seed in range(40):
        turns, number = chat(seed, FACTS, late=False, dated=True)
        chance = random.Random(seed)
        turns = [turn._replace(speaker=chance.choice(["Maya", "Mia"])) for turn in turns]
        memory, ids = told([*people, *turns])
        never, _ = told([*people, *(turn for turn in turns if turn is not turns[number])])
        with memory, never:
            [merge] = memory.admin.merge("Mia", into="Maya")
            memory.forget(episode=ids[number + len(people)])
            memory.admin.unmerge(merge.id)
            for name in ("Maya", "Mia"):
                assert history(memory, name) == history(never, name), (seed, turns, number)
                assert seen(memory, name) == seen(never, name), (seed, turns, number)


@pytest.mark.parametrize("since", [False, True])
def test_an_unmerge_reads_entities_and_episodes_as_often_for_many_facts_as_for_few(
    monkeypatch: pytest.MonkeyPatch, since: bool
) -> None:
    reads: list[str] = []
    for name in ("get_entities", "get_episodes"):
        monkeypatch.setattr(MemoryBackend, name, counted(reads, getattr(MemoryBackend, name)))
    counts: list[int] = []
    for size in (2, 20):
        known = [Turn("2024-01-10", f"knows Person{n}", name) for n in range(size) for name in ("Maya", "Mia")]
        memory, _ = told(known)
        with memory:
            [merge] = memory.admin.merge("Mia", into="Maya")
            for n in range(size if since else 0):
                memory.remember(f"knows Person{n}", occurred_at="2024-02-10", speaker="Mia")
                memory.remember(f"uses Tool{n}", occurred_at="2024-02-10", speaker="Mia")
            memory.flush()
            reads.clear()
            memory.admin.unmerge(merge.id)
            counts.append(len(reads))
    assert counts[0] == counts[1]


def counted(calls: list[str], method: Callable[P, R]) -> Callable[P, R]:
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        calls.append(method.__name__)
        return method(*args, **kwargs)

    return call


def test_a_fact_goes_back_whole_without_the_turn_about_the_kept_one() -> None:
    memory, ids = told([Turn("2025-02-10", "lives_in Oslo"), Turn("2024-02-10", "knows Bob", "Mia")])
    with memory:
        [merge] = memory.admin.merge("Mia", into="Maya")
        memory.remember("lives_in Oslo", occurred_at="2025-03-10", speaker="Mia")
        memory.flush()
        memory.forget(episode=ids[0])
        memory.admin.unmerge(merge.id)
        assert history(memory) == []
        assert [target for target, *_ in history(memory, "Mia")] == ["Bob", "Oslo"]


def test_a_merged_entity_keeps_no_date_of_the_turn_that_was_the_only_one_about_it_before_the_merge() -> None:
    memory, ids = told([Turn("2025-01-10", "knows Bob", "Mia"), Turn("2025-02-10", "knows Zoe")])
    with memory:
        memory.admin.merge("Mia", into="Maya")
        memory.remember("uses vim", occurred_at="2025-03-10", speaker="Mia")
        memory.flush()
        memory.forget(episode=ids[0])
        assert len(memory.admin.merges()) == 1
        assert "2025-01-10" not in exported(memory)


def test_an_undone_merge_keeps_no_date_that_the_kept_one_had_from_another_merge() -> None:
    memory, _ = told([Turn("2024-01-10", "knows Bob", name) for name in ("Maya", "Mia", "Maja")])
    with memory:
        [first] = memory.admin.merge("Maja", into="Mia")
        gone = memory.remember("uses vim", occurred_at="2025-01-10", speaker="Maja").episode_id
        memory.flush()
        [second] = memory.admin.merge("Maya", into="Mia")
        for merge in (second, first):
            memory.admin.unmerge(merge.id)
        memory.forget(episode=gone)
        assert "2025-01-10" not in exported(memory)


@pytest.mark.parametrize("since", ["", " 2025-01-05"])
def test_a_fact_is_hearsay_again_without_the_turn_that_stated_it(since: str) -> None:
    memory, ids = told([Turn("2025-02-10", "perhaps uses vim" + since), Turn("2025-01-10", "uses vim")])
    never, _ = told([Turn("2025-02-10", "perhaps uses vim" + since)])
    with memory, never:
        memory.forget(episode=ids[1])
        assert history(memory) == history(never)
        assert [fact.certainty for fact in memory.facts("Maya")] == ["hearsay"]


def test_hearsay_ends_when_the_remaining_turns_say_that_the_stated_fact_begins() -> None:
    others = [Turn("2025-06-10", "perhaps uses vim"), Turn("2025-07-10", "uses vim 2025-09-16")]
    memory, ids = told([Turn("2025-05-10", "uses vim 2025-11-28"), *others])
    never, _ = told(others)
    with memory, never:
        memory.forget(episode=ids[0])
        assert history(memory) == history(never)
        assert "2025-11-28" not in exported(memory)


@pytest.mark.parametrize(
    ("forgotten", "left"),
    [(0, ("Rome", "2025-03-10", "None", "2025-03-10")), (1, ("Rome", "2025-02-20", "None", "2025-01-10"))],
)
def test_a_fact_keeps_no_day_of_a_forgotten_plan(forgotten: int, left: Row) -> None:
    memory, ids = told([Turn("2025-01-10", "planned lives_in Rome 2025-02-20"), Turn("2025-03-10", "lives_in Rome")])
    assert history(memory) == [("Rome", "2025-02-20", "None", "2025-03-10")]
    memory.forget(episode=ids[forgotten])
    assert history(memory) == [left]


@pytest.mark.parametrize("sooner", ["planned uses vim 2025-02-20", "perhaps uses vim"])
@pytest.mark.parametrize(("last", "forgotten"), [("over uses vim", 1), ("wrong uses vim", 2)])
def test_what_was_told_of_a_surer_version_counts_without_it_and_the_other_way_round(
    sooner: str, last: str, forgotten: int
) -> None:
    turns = [Turn("2025-01-10", sooner), Turn("2025-03-10", "uses vim"), Turn("2025-04-10", last)]
    memory, ids = told(turns)
    never, _ = told([turn for turn in turns if turn is not turns[forgotten]])
    with memory, never:
        memory.forget(episode=ids[forgotten])
        assert history(memory) == history(never)


@pytest.mark.parametrize("kept", ["Maya", "Mia"])
def test_a_plan_of_a_merged_person_is_no_telling_that_it_came_true(kept: str) -> None:
    turns = [Turn("2025-01-10", "planned lives_in Rome 2025-02-20", "Mia"), Turn("2025-03-10", "lives_in Rome")]
    memory, ids = told(turns)
    with memory:
        memory.admin.merge("Mia" if kept == "Maya" else "Maya", into=kept)
        memory.forget(episode=ids[1])
        assert [(fact.certainty, fact.when) for fact in memory.history(kept)] == [("plan", "since 2025-02-20")]


def test_a_merged_fact_keeps_no_day_of_a_forgotten_plan_that_came_true() -> None:
    turns = [Turn("2025-01-10", "planned uses vim 2025-02-20", "Mia"), Turn("2025-03-10", "uses vim")]
    memory, ids = told([*turns, Turn("2025-04-10", "uses vim", "Mia")])
    with memory:
        memory.admin.merge("Mia", into="Maya")
        memory.forget(episode=ids[0])
        assert history(memory) == [("vim", "2025-03-10", "None", "2025-03-10")]


def test_a_trip_is_planned_again_without_the_turn_that_says_that_it_was_made() -> None:
    turns = [Turn("2025-01-10", "planned visited Rome 2025-02-20"), Turn("2025-03-10", "visited Rome 2025-02-20")]
    memory, ids = told(turns)
    shown = sorted((fact.certainty, fact.when) for fact in memory.history("Maya"))
    assert shown == [("plan", "replaced"), ("stated", "on 2025-02-20")]
    memory.forget(episode=ids[1])
    assert [(fact.certainty, fact.when) for fact in memory.history("Maya")] == [("plan", "on 2025-02-20")]


def test_a_fact_that_others_state_stays_stated() -> None:
    turns = [Turn("2025-02-10", "perhaps uses vim"), Turn("2025-01-10", "uses vim"), Turn("2025-03-10", "uses vim")]
    memory, ids = told(turns)
    with memory:
        memory.forget(episode=ids[1])
        assert [fact.certainty for fact in memory.facts("Maya")] == ["stated"]


def test_an_entity_keeps_no_date_that_hearsay_of_a_stated_fact_told() -> None:
    memory, ids = told([Turn("2025-02-10", "uses vim"), Turn("2025-03-10", "perhaps uses vim 2025-01-05")])
    with memory:
        memory.forget(episode=ids[1])
        assert "2025-01-05" not in exported(memory)


MARRIED = {"subject": "Tom", "relation": "married to", "object": "Zoe"}
PARTS = {"Hooli": ("Acme", "Globex", "Initech"), "Acme": ("Globex", "Initech"), "Globex": ("Initech",)}


@pytest.mark.parametrize("late", [False, True])
def test_inferred_facts_keep_no_date_of_a_forgotten_turn(late: bool) -> None:
    for seed in range(60):
        turns, number = chat(seed, ("",), late=late, dated=True)
        chance = random.Random(seed)
        for n, turn in enumerate(turns):
            whole, parts = chance.choice([*PARTS.items()])
            turns[n] = turn._replace(text=f"part_of {chance.choice(parts)}{turn.text}", speaker=whole)
        memory, ids = told(turns)
        never, _ = told([turn for turn in turns if turn is not turns[number]])
        with memory, never:
            memory.admin.infer()
            memory.forget(episode=ids[number])
            assert turns[number].day not in exported(memory), (seed, turns, number)
            assert turns[number].since not in exported(memory), (seed, turns, number)
            memory.admin.infer()
            never.admin.infer()
            assert [history(memory, part) for part in PARTS] == [history(never, part) for part in PARTS], (seed, turns)


def test_an_inferred_fact_goes_on_without_the_turn_that_ended_its_premise() -> None:
    home = [Turn("2025-01-10", "lives_in Rome"), Turn("2025-01-10", "located_in Italy", "Rome")]
    memory, ids = told([*home, Turn("2025-03-10", "over lives_in")])
    with memory:
        memory.admin.infer()
        memory.forget(episode=ids[2])
        assert history(memory) == [
            ("Italy", "2025-01-10", "None", "None"),
            ("Rome", "2025-01-10", "None", "2025-01-10"),
        ]


def test_an_inferred_fact_keeps_its_end_by_hand_on_the_day_of_a_forgotten_turn() -> None:
    home = [Turn("2025-01-10", "lives_in Rome"), Turn("2025-01-10", "located_in Italy", "Rome")]
    memory, ids = told([*home, Turn("2025-03-10", "knows Bob")])
    with memory:
        memory.admin.infer()
        [fact] = (fact for fact in memory.facts("Maya") if fact.target == "Italy")
        memory.end(fact.id, at="2025-03-10", reason="moved out")
        memory.forget(episode=ids[2])
        memory.admin.infer()
        [fact] = (fact for fact in memory.history("Maya") if fact.target == "Italy")
        assert (f"{fact.valid_to:%Y-%m-%d}", fact.end_reason) == ("2025-03-10", "moved out")


def test_an_inferred_fact_keeps_no_planned_end_of_a_forgotten_turn() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        for end, day in (("2026-08-10", "2025-01-10"), ("2026-03-12", "2025-03-10")):
            memory.add_facts([{**MARRIED, "valid_to": end, "source": end}], occurred_at=day)
            memory.admin.infer()
        memory.forget(episode="2026-08-10")
        assert "2026-08-10" not in exported(memory)


def test_what_was_inferred_about_both_goes_with_a_turn_about_one_of_them() -> None:
    memory, _ = told([Turn("2025-01-10", "knows Zoe"), Turn("2025-01-10", "knows Bob", "Mia")])
    with memory:
        [merge] = memory.admin.merge("Mia", into="Maya")
        memory.remember("located_in Italy", occurred_at="2025-02-10", speaker="Rome")
        gone = memory.remember("lives_in Rome", occurred_at="2025-03-10", speaker="Mia").episode_id
        memory.flush()
        memory.admin.infer()
        memory.admin.unmerge(merge.id)
        memory.forget(episode=gone)
        assert "2025-03-10" not in exported(memory)


ENDS = (*FACTS, "over uses", "over lives_in")


@pytest.mark.parametrize(("facts", "late"), [(FACTS, False), (FACTS, True), (ENDS, False)])
def test_an_extraction_that_states_the_same_again_changes_nothing(facts: Sequence[str], late: bool) -> None:
    for seed in range(30):
        turns, _ = chat(seed, facts, late=late)
        memory, _ = told(turns)
        with memory:
            before = history(memory)
            memory.admin.backfill(again=True)
            assert history(memory) == before, (seed, turns)


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_turn_that_states_nothing_when_it_is_extracted_again_leaves_no_date_behind(late: bool, dated: bool) -> None:
    for seed in range(60):
        turns, number = chat(seed, FACTS, late=late, dated=dated)
        sayings = Sayings()
        memory, _ = told(turns, sayings)
        never, _ = told([turn for turn in turns if turn is not turns[number]])
        with memory, never:
            sayings.missed = turns[number]
            memory.admin.backfill(again=True)
            assert history(memory) == history(never), (seed, turns, number)


@pytest.mark.parametrize("late", [False, True])
def test_a_turn_that_states_no_beginning_when_it_is_extracted_again_leaves_no_date_behind(late: bool) -> None:
    for seed in range(60):
        turns, number = chat(seed, FACTS, late=late, dated=True)
        sayings = Sayings()
        memory, _ = told(turns, sayings)
        relation_and_target = " ".join(turns[number].text.split()[:2])
        others = [turn._replace(text=relation_and_target) if turn is turns[number] else turn for turn in turns]
        never, _ = told(others)
        with memory, never:
            sayings.undated = turns[number]
            memory.admin.backfill(again=True)
            assert history(memory) == history(never), (seed, turns, number)


class Quoting(Sayings):
    """Adds the text of the turn before to each sentence."""

    def _read(self, request: ExtractionRequest) -> Extraction:
        read, before = super()._read(request), " ".join(turn.text for turn in request.context)
        return replace(read, edges=tuple(replace(edge, fact=f"{edge.fact} {before}") for edge in read.edges))


def test_a_community_keeps_no_words_that_a_fact_took_from_a_forgotten_turn() -> None:
    memory = GraphMemory.open("memory://", extractor=Quoting(), embeddings="none", background=False)
    with memory:
        gone = memory.remember("over xylophones", occurred_at="2025-01-10", speaker="Tom", session_id="s").episode_id
        for text in ("knows Bob", "knows Zoe"):
            memory.remember(text, occurred_at="2025-01-11", speaker="Maya", session_id="s")
        memory.flush()
        memory.admin.refresh_communities()
        assert "xylophones" in str(memory.communities())
        memory.forget(episode=gone)
        assert "xylophones" not in exported(memory)


@pytest.mark.parametrize("known", ["knows Bob", "knows Zoe"])
def test_a_merged_entity_gets_no_words_back_that_a_fact_took_from_a_forgotten_turn(known: str) -> None:
    memory = GraphMemory.open("memory://", extractor=Quoting(), embeddings="none", background=False)
    with memory:
        gone = memory.remember("over xylophones", occurred_at="2025-01-10", speaker="Tom", session_id="s").episode_id
        memory.remember("knows Bob", occurred_at="2025-01-11", speaker="Maya", session_id="s")
        memory.remember(known, occurred_at="2025-01-12", speaker="Mia", session_id="t")
        memory.flush()
        [merge] = memory.admin.merge("Maya", into="Mia")
        memory.forget(episode=gone)
        assert "xylophones" not in exported(memory)
        memory.admin.unmerge(merge.id)
        assert [fact.fact for fact in memory.facts("Maya")] == ["Maya knows Bob"]


@pytest.mark.parametrize("relation", ["uses vim", "lives_in Rome"])
@pytest.mark.parametrize("since", ["", " 2025-01-05"])
def test_a_retracted_fact_stays_so_without_its_first_turn(relation: str, since: str) -> None:
    memory, ids = told([Turn("2025-02-10", relation + since), Turn("2025-03-10", relation)])
    with memory:
        memory.retract(memory.facts("Maya")[0].id)
        memory.forget(episode=ids[0])
        [fact] = memory.history("Maya")
        assert (fact.valid_from, f"{fact.valid_to:%Y-%m-%d}") == (fact.valid_to, "2025-03-10")
        assert not [day for day in ("2025-02-10", "2025-01-05") if day in exported(memory)]


def test_a_newer_export_brings_the_beginnings_that_its_turns_state() -> None:
    memory, _ = told([Turn("2025-02-10", "uses vim")])
    there = GraphMemory.open("memory://", extractor=Sayings(), embeddings="none", background=False)
    with memory, there:
        there.admin.import_(io.StringIO(exported(memory)))
        memory.remember("uses vim 2025-01-05", occurred_at="2025-03-10", speaker="Maya")
        memory.flush()
        there.admin.import_(io.StringIO(exported(memory)))
        assert exported(there).count('"at":"2025-01-05T00:00:00Z"') == 1


def test_a_turn_that_was_not_understood_any_more_leaves_no_entity_behind() -> None:
    turn, sayings = Turn("2025-02-10", "knows Quirin"), Sayings()
    memory, ids = told([turn], sayings)
    with memory:
        sayings.missed = turn
        memory.admin.backfill(again=True)
        memory.forget(episode=ids[0])
        assert not [name for name in ("Quirin", "Maya") if name in exported(memory)]


ROME = "lives_in Rome"
UNTOLD = {
    "what the first turn began, another one told as past": (0, f"05 {ROME}", f"17 {ROME} until 2025-03-15"),
    "two turns take a fact back": (1, f"02 {ROME}", f"08 wrong {ROME}", f"21 wrong {ROME}"),
    "an end was told before the turns that are left": (
        0,
        f"26 {ROME} 2025-03-01",
        f"25 {ROME}",
        f"13 over {ROME}",
    ),
    "an end was told before its fact, whose end had moved its beginning": (
        0,
        "25 lives_in Oslo 2025-03-03",
        f"17 {ROME}",
        f"09 over {ROME}",
    ),
    "a fact was told again after it was taken back": (
        2,
        f"04 {ROME} 2025-03-26",
        "06 lives_in Oslo 2025-03-27",
        f"19 wrong {ROME}",
        f"24 {ROME}",
    ),
    "an end was called off": (
        2,
        f"03 {ROME} until 2025-03-14",
        f"05 continues {ROME}",
        "14 lives_in Oslo",
        f"25 {ROME} 2025-03-18",
    ),
    "a fact was told as past since another one held": (
        1,
        f"04 {ROME}",
        "10 lives_in Oslo",
        f"19 {ROME} until 2025-03-12",
    ),
    "a planned end, and another one held in between": (
        1,
        f"13 {ROME} until 2025-03-27",
        "14 lives_in Oslo",
        f"18 {ROME}",
    ),
    "a fact was told as past twice": (
        0,
        f"02 {ROME} 2025-02-23",
        f"10 {ROME} until 2025-03-09",
        f"20 over {ROME}",
    ),
    "another one holds since": (
        0,
        f"04 {ROME}",
        "14 lives_in Oslo",
        f"17 {ROME} until 2025-03-13",
    ),
}


@pytest.mark.parametrize(("number", "texts"), [(case[0], case[1:]) for case in UNTOLD.values()], ids=UNTOLD)
def test_facts_are_as_if_a_turn_had_never_been_told(number: int, texts: Sequence[str]) -> None:
    turns = [Turn(f"2025-03-{text[:2]}", text[3:]) for text in texts]
    memory, ids = told(turns)
    never, _ = told([turn for turn in turns if turn is not turns[number]])
    with memory, never:
        memory.forget(episode=ids[number])
        assert history(memory) == history(never)


def test_facts_are_as_if_a_turn_had_never_been_told_among_past_facts_and_corrections() -> None:
    for seed in range(80):
        turns, number = chat(seed, FACTS, late=False, dated=True)
        chance = random.Random(-seed - 1)
        for n, turn in enumerate(turns):
            what, fact = chance.random(), " ".join(turn.text.split()[:2])
            if what < 0.2 and n != number:
                turns[n] = turn._replace(text=f"wrong {fact}")
            elif 0.2 <= what < 0.4:
                turns[n] = turn._replace(text=f"{fact} until {turn.day[:-2]}0{chance.randint(1, 9)}")
        memory, ids = told(turns)
        never, _ = told([turn for turn in turns if turn is not turns[number]])
        with memory, never:
            memory.forget(episode=ids[number])
            assert history(memory) == history(never), (seed, turns, number)
