"""What rules imply: the closure of facts with intervals, against one that is computed for each time by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graphmem.inference import closure
from graphmem.inference.closure import MOST_SHARING, ImpliedFact, Key, Span, TemporalFact, compute_closure
from graphmem.models import Certainty
from graphmem.models.base import END_OF_TIME
from graphmem.ontology import InferenceRule

DAY = datetime(2026, 1, 1, tzinfo=UTC)
RULES = (
    InferenceRule(kind="transitive", relations=("part_of",), confidence=0.9),
    InferenceRule(kind="inverse", relations=("contains",), implies="part_of"),
    InferenceRule(kind="inverse", relations=("part_of",), implies="contains"),
    InferenceRule(kind="symmetric", relations=("married_to",)),
    InferenceRule(kind="composition", relations=("works_at", "part_of"), implies="works_at", confidence=0.8),
    InferenceRule(kind="composition", relations=("married_to", "works_at"), implies="knows"),
    InferenceRule(kind="shared", relations=("works_at",), implies="colleague_of", confidence=0.5),
)


def day(n: int | None) -> datetime:
    return END_OF_TIME if n is None else DAY + timedelta(days=n)


def fact(
    source: str,
    relation: str,
    target: str,
    begin: int = 0,
    end: int | None = None,
    *,
    confidence: float = 1.0,
    certainty: Certainty = "stated",
) -> TemporalFact:
    ref = f"{source} {relation} {target} {begin}"
    return TemporalFact(ref, source, relation, target, (day(begin), day(end)), confidence, certainty)


def taken_by(facts: Iterable[TemporalFact]) -> dict[Key, list[Span]]:
    taken: dict[Key, list[Span]] = {}
    for one in facts:
        taken.setdefault(one.key, []).append(one.span)
    return taken


def implied(
    facts: Sequence[TemporalFact], rules: Sequence[InferenceRule] = RULES, limit: int = 1000
) -> list[ImpliedFact]:
    return compute_closure(facts, rules, taken_by(facts), limit).implied


def keys(found: Iterable[ImpliedFact]) -> list[str]:
    return sorted(" ".join(one.fact.key) for one in found)


def test_each_kind_of_rule_implies_its_relation() -> None:
    found = implied(
        [
            fact("lab", "part_of", "globex"),
            fact("globex", "part_of", "holding"),
            fact("maya", "works_at", "lab"),
            fact("tom", "works_at", "lab"),
            fact("maya", "married_to", "ben"),
            fact("park", "contains", "pond"),
        ],
        (*RULES[:2], *RULES[3:]),
    )
    assert keys(found) == [
        "ben knows globex",
        "ben knows holding",
        "ben knows lab",
        "ben married_to maya",
        "lab part_of holding",
        "maya colleague_of tom",
        "maya works_at globex",
        "maya works_at holding",
        "pond part_of park",
        "tom works_at globex",
        "tom works_at holding",
    ]


def test_rules_that_imply_each_other_come_to_an_end() -> None:
    ring = [fact(a, "part_of", b) for a, b in (("a", "b"), ("b", "c"), ("c", "a"))]
    assert keys(implied(ring)) == sorted(
        [f"{a} part_of {b}" for a, b in ("ac", "ba", "cb")]
        + [f"{a} contains {b}" for a in "abc" for b in "abc" if a != b]
    )


def test_an_implied_fact_holds_while_all_premises_hold() -> None:
    [found] = implied([fact("a", "part_of", "b", 1, 9), fact("b", "part_of", "c", 3)], RULES[:1])
    assert found.fact.span == (day(3), day(9))
    assert implied([fact("a", "part_of", "b", 1, 3), fact("b", "part_of", "c", 3)], RULES[:1]) == []


def test_confidence_and_certainty_are_never_above_those_of_the_premises() -> None:
    facts = [
        fact("a", "part_of", "b", confidence=0.8, certainty="plan"),
        fact("b", "part_of", "c", confidence=0.5, certainty="hearsay"),
    ]
    [found] = implied(facts, RULES[:1])
    assert (found.fact.confidence, found.fact.certainty) == (pytest.approx(0.45), "hearsay")


def test_what_is_stated_is_not_implied_while_it_is() -> None:
    facts = [fact("a", "part_of", "b"), fact("b", "part_of", "c"), fact("a", "part_of", "c", 2, 5)]
    assert [found.fact.span for found in implied(facts, RULES[:1])] == [(day(0), day(2)), (day(5), END_OF_TIME)]


def test_the_surest_derivation_is_kept() -> None:
    facts = [fact("a", "part_of", "b"), fact("b", "part_of", "d", confidence=0.3)]
    facts += [fact("a", "part_of", "c"), fact("c", "part_of", "d", confidence=0.6)]
    [found] = implied(facts, RULES[:1])
    assert [premise.target for premise in found.premises] == ["c", "d"]


def test_too_large_a_group_implies_nothing() -> None:
    facts = [fact(f"p{n:02}", "works_at", "acme") for n in range(MOST_SHARING)]
    assert len(implied(facts)) == MOST_SHARING * (MOST_SHARING - 1) // 2
    facts.append(fact("one more", "works_at", "acme"))
    closure = compute_closure(facts, RULES, taken_by(facts), 1000)
    assert (closure.implied, closure.too_large) == ([], {("works_at", "acme")})


def test_a_stated_reverse_of_a_shared_relation_is_enough() -> None:
    facts = [fact("a", "works_at", "x"), fact("b", "works_at", "x"), fact("b", "colleague_of", "a")]
    assert implied(facts) == []


@pytest.mark.parametrize("sharers", [200, 400])
def test_the_pairs_of_a_hub_are_not_all_considered(sharers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure, "_LEAST", 1000)
    ranked: list[ImpliedFact] = []
    rank = closure._rank  # pyright: ignore[reportPrivateUsage]

    def counted(candidate: ImpliedFact) -> tuple[object, ...]:
        ranked.append(candidate)
        return rank(candidate)

    monkeypatch.setattr(closure, "_rank", counted)
    into = [fact(f"a{n}", "part_of", "hub", confidence=0.5 + n / 1000) for n in range(sharers)]
    out = [fact("hub", "part_of", f"b{n}") for n in range(sharers)]
    found = [compute_closure(facts, RULES[:1], {}, 150) for facts in (into + out, out[::-1] + into[::-1])]
    assert found[0] == found[1]
    assert found[0].truncated
    assert len(found[0].implied) == 150
    assert len(ranked) == 2 * 1500
    assert {one.fact.source for one in found[0].implied} == {f"a{sharers - 1}"}


def test_the_limit_cuts_the_same_facts_off_each_time() -> None:
    facts = [fact(f"n{n}", "part_of", f"n{n + 1}") for n in range(12)]
    closure = compute_closure(facts, RULES[:1], taken_by(facts), 20)
    again = compute_closure(facts[::-1], RULES[:1], taken_by(facts), 20)
    assert closure.truncated
    assert [one.fact.key for one in closure.implied] == [one.fact.key for one in again.implied]
    assert not compute_closure(facts, RULES[:1], taken_by(facts), 66).truncated


# Against brute force ------------------------------------------------------------------------------

DAYS = 6
NODES = st.sampled_from("abcde")
ENDS = st.tuples(NODES, NODES).filter(lambda pair: pair[0] != pair[1])


@st.composite
def facts_of_days(draw: st.DrawFn) -> TemporalFact:
    source, target = draw(ENDS)
    relation = draw(st.sampled_from(("part_of", "contains", "married_to", "works_at")))
    begin, lasts = draw(st.integers(0, DAYS - 1)), draw(st.none() | st.integers(1, 4))
    confidence = draw(st.sampled_from((0.25, 0.5, 1.0)))
    return fact(source, relation, target, begin, None if lasts is None else begin + lasts, confidence=confidence)


FACT = facts_of_days()


def closure_at(moment: datetime, facts: Sequence[TemporalFact], rules: Sequence[InferenceRule]) -> set[Key]:
    """Return what holds at a time, by applying every rule to every pair until nothing is new."""
    stated = {one.key for one in facts if one.span[0] <= moment < one.span[1]}
    known = set(stated)
    while True:
        new: set[Key] = set()
        for rule in rules:
            first, *more = rule.relations
            for a, r, b in known:
                if r == first and rule.kind in ("inverse", "symmetric"):
                    new.add((b, rule.conclusion, a))
                for c, s, d in known:
                    if (
                        rule.kind in ("transitive", "composition")
                        and (r, s) == (first, (more or [first])[0])
                        and b == c
                    ):
                        new.add((a, rule.conclusion, d))
                    if rule.kind == "shared" and r == s == first and b == d and a < c:
                        both = {(a, r, b), (c, s, d)} <= stated and (c, rule.conclusion, a) not in stated
                        new |= {(a, rule.conclusion, c)} if both else set()
        new = {key for key in new if key[0] != key[2]} - known
        if not new:
            return known
        known |= new


@hypothesis_settings(max_examples=150, deadline=None)
@given(st.lists(FACT, max_size=9, unique_by=lambda one: one.ref), st.sets(st.sampled_from(RULES), min_size=1))
def test_at_each_time_the_closure_is_that_of_the_facts_that_hold_then(
    facts: list[TemporalFact], rules: set[InferenceRule]
) -> None:
    ordered = sorted(rules, key=lambda rule: rule.name)
    found = implied(facts, ordered)
    for n in range(DAYS + 5):
        moment = day(n)
        held = [one for one in (*facts, *(one.fact for one in found)) if one.span[0] <= moment < one.span[1]]
        assert {one.key for one in held} == closure_at(moment, facts, ordered)
        times = Counter(one.fact.key for one in found if one.fact.span[0] <= moment < one.fact.span[1])
        assert all(count == 1 for count in times.values()), "implied twice at one time"
    known = {one.ref for one in facts}
    for one in found:
        assert {premise.ref for premise in one.premises} <= known, "a premise comes later"
        known.add(one.fact.ref)
        assert one.fact.confidence <= min(premise.confidence for premise in one.premises)
        assert all(premise.span[0] <= one.fact.span[0] for premise in one.premises)
        assert all(one.fact.span[1] <= premise.span[1] for premise in one.premises)


@hypothesis_settings(max_examples=50, deadline=None)
@given(st.lists(FACT, max_size=8, unique_by=lambda one: one.ref), st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_matter(facts: list[TemporalFact], random: object) -> None:
    shuffled = list(facts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert implied(facts) == implied(shuffled)
