"""Facts that rules imply: the closure of some facts under the rules of an ontology. Pure functions, without a store.

A fact holds for an interval, and what it implies together with another one holds while both do. For each time, the
result is the closure of the facts that hold then; a fact that holds already, stated or implied, isn't implied again.
Therefore the derivation terminates even for rules that imply each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from graphmem.models import Certainty, least_sure, sureness
from graphmem.ontology import InferenceRule

MOST_SHARING = 25
"""Number of sources that may share a target; a larger group is too general to imply a relation."""

_CONSIDERED, _LEAST = 10, 10_000
"""Candidates of a round: this many for each fact that may still be implied, and at least this number."""

Key = tuple[str, str, str]
"""Source, relation and target."""

Span = tuple[datetime, datetime]
"""Interval in valid time, closed at its beginning and open at its end."""


class TemporalFact(NamedTuple):
    """A fact with the interval in which it holds; `ref` identifies it among the facts of a derivation."""

    ref: str
    source: str
    relation: str
    target: str
    span: Span
    confidence: float
    certainty: Certainty = "stated"

    @property
    def key(self) -> Key:
        """Source, relation and target."""
        return (self.source, self.relation, self.target)


class ImpliedFact(NamedTuple):
    """A fact with the rule that implies it, and the facts that it follows from; those that are implied come earlier."""

    fact: TemporalFact
    rule: InferenceRule
    premises: tuple[TemporalFact, ...]


@dataclass(slots=True)
class Closure:
    """Result of a derivation.

    Attributes
    ----------
    implied
        The implied facts, each after its premises.
    truncated
        Whether the limit was reached, or a round had too many candidates, such as all pairs of a hub.
    too_large
        Groups of more than `MOST_SHARING` sources that share a target, as (relation, target).
    """

    implied: list[ImpliedFact] = field(default_factory=list[ImpliedFact])
    truncated: bool = False
    too_large: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def compute_closure(
    facts: Iterable[TemporalFact], rules: Sequence[InferenceRule], taken: Mapping[Key, Sequence[Span]], limit: int
) -> Closure:
    """Return the facts that rules imply.

    Parameters
    ----------
    facts
        Stated facts.
    rules
        Rules to apply. Shared targets count only if they are stated; these rules come last.
    taken
        Intervals in which a fact needn't be implied, because it is stated or was rejected.
    limit
        Maximum number of implied facts. A round considers at most ten times as many candidates as are left of it, or
        10,000; those with the surest premises come first.
    """
    return _Derivation(rules, taken, limit).run(list(facts))


class _Derivation:
    """A semi-naive derivation: each round joins the facts of the last round with all facts."""

    def __init__(self, rules: Sequence[InferenceRule], taken: Mapping[Key, Sequence[Span]], limit: int) -> None:
        self._rules = [rule for rule in rules if rule.kind != "shared"]
        self._shared = [rule for rule in rules if rule.kind == "shared"]
        self._taken: defaultdict[Key, list[Span]] = defaultdict(list)
        for key, spans in taken.items():
            self._taken[key].extend(spans)
        self._limit = limit
        self._from: defaultdict[tuple[str, str], list[TemporalFact]] = defaultdict(list)
        self._to: defaultdict[tuple[str, str], list[TemporalFact]] = defaultdict(list)
        self._closure = Closure()

    def run(self, facts: list[TemporalFact]) -> Closure:
        facts = sorted(facts, key=_premise_rank)
        self._know(facts)
        self._derive(facts, first=True)
        if not self._closure.truncated and self._shared:
            self._derive(self._accept(self._sharing(facts)))
        return self._closure

    def _derive(self, frontier: list[TemporalFact], *, first: bool = False) -> None:
        while frontier and not self._closure.truncated:
            frontier, first = self._accept(self._joined(frontier, first=first)), False

    def _know(self, facts: Iterable[TemporalFact]) -> None:
        for fact in facts:
            self._from[fact.relation, fact.source].append(fact)
            self._to[fact.relation, fact.target].append(fact)

    # Candidates -----------------------------------------------------------------------------------

    def _joined(self, frontier: Iterable[TemporalFact], *, first: bool) -> Iterator[ImpliedFact]:
        """Yield what the facts of a frontier imply, alone or together with another fact."""
        by_relation: defaultdict[str, list[TemporalFact]] = defaultdict(list)
        for fact in frontier:
            by_relation[fact.relation].append(fact)
        for rule in self._rules:
            if rule.kind in ("inverse", "symmetric"):
                for fact in by_relation[rule.relations[0]]:
                    yield from self._implied(rule, fact.target, fact.source, (fact,))
                continue
            one, other = rule.relations * 2 if rule.kind == "transitive" else rule.relations
            for fact in by_relation[one]:
                for next_fact in self._from.get((other, fact.target), ()):
                    yield from self._implied(rule, fact.source, next_fact.target, (fact, next_fact))
            for fact in () if first else by_relation[other]:  # of the first frontier these are the same pairs
                for earlier in self._to.get((one, fact.source), ()):
                    yield from self._implied(rule, earlier.source, fact.target, (earlier, fact))

    def _sharing(self, facts: Iterable[TemporalFact]) -> Iterator[ImpliedFact]:
        """Yield what facts with the same target imply."""
        for rule in self._shared:
            groups: defaultdict[str, list[TemporalFact]] = defaultdict(list)
            for fact in facts:
                if fact.relation == rule.relations[0]:
                    groups[fact.target].append(fact)
            for target, group in groups.items():
                if len({fact.source for fact in group}) > MOST_SHARING:
                    self._closure.too_large.add((rule.relations[0], target))
                    continue
                for fact in group:
                    for other in group:
                        if fact.source < other.source:
                            yield from self._implied(rule, fact.source, other.source, (fact, other))

    def _implied(
        self, rule: InferenceRule, source: str, target: str, premises: tuple[TemporalFact, ...]
    ) -> Iterator[ImpliedFact]:
        """Yield a fact unless it connects an entity with itself or its premises never hold at the same time."""
        begin = max(fact.span[0] for fact in premises)
        end = min(fact.span[1] for fact in premises)
        if source == target or begin >= end:
            return
        key = (source, rule.conclusion, target)
        if any(taken[0] <= begin and end <= taken[1] for taken in self._taken.get(key, ())):
            return
        confidence = min(fact.confidence for fact in premises) * rule.confidence
        certainty = least_sure(fact.certainty for fact in premises)
        yield ImpliedFact(TemporalFact("", *key, (begin, end), confidence, certainty), rule, premises)

    # Choice ---------------------------------------------------------------------------------------

    def _accept(self, candidates: Iterable[ImpliedFact]) -> list[TemporalFact]:
        """Keep the parts of the candidates that aren't covered yet, the most certain first; return their facts."""
        accepted: list[TemporalFact] = []
        most = max(_CONSIDERED * (self._limit - len(self._closure.implied)), _LEAST)
        considered = list(islice(candidates, most + 1))
        if len(considered) > most:
            self._closure.truncated = True
            considered.pop()
        for candidate in sorted(considered, key=_rank):
            fact = candidate.fact
            source, relation, target = fact.key
            taken = [*self._taken[fact.key], *(self._reverse(candidate))]
            for span in _uncovered(fact.span, taken):
                if len(self._closure.implied) >= self._limit:
                    self._closure.truncated = True
                    self._know(accepted)
                    return accepted
                ref = f"{source} {relation} {target} {span[0].isoformat()}"
                part = fact._replace(ref=ref, span=span)
                self._taken[fact.key].append(span)
                self._closure.implied.append(candidate._replace(fact=part))
                accepted.append(part)
        self._know(accepted)
        return accepted

    def _reverse(self, candidate: ImpliedFact) -> Sequence[Span]:
        """Return when the reverse of a fact is known, if a `shared` rule implies the fact; nothing for other rules."""
        source, relation, target = candidate.fact.key
        return self._taken.get((target, relation, source), ()) if candidate.rule.kind == "shared" else ()


def _rank(candidate: ImpliedFact) -> tuple[object, ...]:
    """Return the sort key of candidates: the surest first, then an order that doesn't depend on that of the facts."""
    fact = candidate.fact
    refs = tuple(premise.ref for premise in candidate.premises)
    return (-sureness(fact.certainty), -fact.confidence, fact.span[0], candidate.rule.name, fact.key, refs)


def _premise_rank(fact: TemporalFact) -> tuple[object, ...]:
    """Return the sort key of stated facts: the surest first, then an order that doesn't depend on the given one."""
    return (-sureness(fact.certainty), -fact.confidence, fact.key, fact.span, fact.ref)


def _uncovered(span: Span, taken: Iterable[Span]) -> Iterator[Span]:
    """Yield the parts of an interval outside of others."""
    begin, end = span
    for other_begin, other_end in sorted(taken):
        if other_end <= begin or other_begin >= end:
            continue
        if other_begin > begin:
            yield begin, other_begin
        begin = max(begin, other_end)
        if begin >= end:
            return
    if begin < end:
        yield begin, end
