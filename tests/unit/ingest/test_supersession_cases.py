"""Every case of docs/concepts/supersession.md."""

from __future__ import annotations

import re
from itertools import permutations, product
from pathlib import Path

import pytest

from graphmem.ingest.fact_ledger import End, FactLedger
from graphmem.ontology import DEFAULT_ONTOLOGY
from tests.unit.ingest.told import NOW, Facts, moment, read

PAGE = Path(__file__).parents[3] / "docs/concepts/supersession.md"
ROW = re.compile(r"\| (\d+) \| `([^`]*)` \| `([^`]*)` \| .+ \|")
FOUND = [match for match in map(ROW.match, PAGE.read_text().splitlines()) if match]
CASES = [(int(m[1]), m[2], sorted(filter(None, m[3].split("; ")))) for m in FOUND]
WITHOUT_ENDS = [case for case in CASES if not re.search(" (over|wrong|continues)", case[1])]


def test_the_page_has_its_cases() -> None:
    assert [number for number, _, _ in CASES] == list(range(1, len(CASES) + 1))
    assert len(CASES) >= 80


@pytest.mark.parametrize(("number", "told", "stored"), CASES)
def test_a_case_told_one_by_one(number: int, told: str, stored: list[str]) -> None:
    facts = Facts()
    tellings = read(told)
    for episode_id in dict.fromkeys(t.episode_id for t in tellings):
        facts.tell([t for t in tellings if t.episode_id == episode_id])
    assert facts.shown() == stored


@pytest.mark.parametrize(("number", "told", "stored"), CASES)
def test_a_case_told_at_once(number: int, told: str, stored: list[str]) -> None:
    facts = Facts()
    facts.tell(read(told))
    assert facts.shown() == stored


@pytest.mark.parametrize(("number", "told", "stored"), WITHOUT_ENDS)
def test_a_case_that_arrives_in_any_order(number: int, told: str, stored: list[str]) -> None:
    for order in permutations(read(told)):
        facts = Facts()
        for telling in order:
            facts.tell([telling])
        # an end that came with the first telling was never learned
        assert [f.removesuffix(" over") for f in facts.shown()] == [f.removesuffix(" over") for f in stored], order


def test_the_certainty_of_a_fact_does_not_depend_on_whether_people_or_documents_arrive_first() -> None:
    said = [f"Tokyo{sure}{by}" for sure in ("", " plan", " hearsay") for by in ("", " by document")]
    for told in product(said, repeat=3):
        stored = set[tuple[str, ...]]()
        for order in permutations(read("; ".join(f"0{n}-10 {what}" for n, what in enumerate(told, 1)))):
            facts = Facts()
            for telling in order:
                facts.tell([telling])
            stored.add(tuple(facts.shown()))
        assert len(stored) == 1, told


def test_a_write_that_confirms_a_fact_ends_it_only_if_its_teller_may() -> None:
    facts = Facts()
    facts.tell(read("01-10 Berlin by self"))
    facts.tell(read("02-01 Berlin by document; 02-02 over Berlin by document"))
    assert facts.shown() == ["Berlin ?01-10.."]


def test_what_a_surer_telling_replaced_goes_on_when_that_alone_is_told_to_be_wrong() -> None:
    facts = Facts()
    facts.tell(read("uses: 01-10 vim hearsay"))
    facts.tell(read("uses: 02-01 vim"))
    hearsay, stated = facts.rows.values()
    ledger = FactLedger(facts.rows.values(), DEFAULT_ONTOLOGY, NOW)
    wrong = End(moment("03-01"), moment("03-01"), "wrong", why="corrected")
    assert ledger.end_fact(stated.id, wrong, lambda _: None)
    assert [edge.is_active for edge in ledger.edges if edge.id == hearsay.id] == [True]
