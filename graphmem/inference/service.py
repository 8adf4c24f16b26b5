"""Inference in a scope by rules, its results, and the storing of inferred facts: stored ones are brought in line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.inference.closure import MOST_SHARING, ImpliedFact, Key, Span, TemporalFact, compute_closure
from graphmem.inference.premises import NOT_IMPLIED, add_inferred, has_inferred, reason_by_hand, write_facts
from graphmem.models import (
    INFERRED_BY,
    PREMISES,
    STATED_KINDS,
    Changes,
    Edge,
    EdgeQuery,
    EdgeType,
    Model,
    Scope,
    is_retracted,
    new_id,
    retracted,
    utc_now,
)
from graphmem.models.base import END_OF_TIME, START_OF_TIME
from graphmem.ontology import InferenceRule, Ontology
from graphmem.protocols import GraphBackend, without_expired
from graphmem.text.normalize import plain_fact

BY_MODEL = "model"
"""Name of the rule of facts that a language model inferred."""

LIMIT = 10_000
_CHUNK = 5000
_BATCH = 1000  # rows of a transaction
_EXAMPLES = 10


class Inferred(Model):
    """Result of an inference.

    Attributes
    ----------
    added, kept, removed
        Number of new inferred facts, of those that were there and are still implied, and of those that no longer are.
    by_rule
        Number of new facts by rule; ``model`` are those of a language model.
    skipped
        Number of facts that were left out, by reason.
    truncated
        Whether the limit was reached, so that more is implied than was stored.
    examples
        Some of the new facts, each with its premises.
    dry_run
        Whether nothing was changed.
    """

    added: int = 0
    kept: int = 0
    removed: int = 0
    by_rule: dict[str, int] = {}
    skipped: dict[str, int] = {}
    truncated: bool = False
    examples: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(slots=True)
class Tally:
    """Counts of an inference while it runs."""

    added: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])

    def result(self, **more: Any) -> Inferred:
        """Return these counts, with further fields, as a result."""
        counts = {"added": self.added.total(), "by_rule": dict(self.added), "skipped": dict(self.skipped)}
        return Inferred(**counts, examples=tuple(self.examples), **more)


@dataclass(frozen=True, slots=True)
class NewFact:
    """An inferred fact to store, with its premises as they were read, or as they are to be stored."""

    edge: Edge
    premises: tuple[Edge, ...]


def infer(
    backend: GraphBackend,
    scope: Scope,
    ontology: Ontology,
    *,
    limit: int,
    dry_run: bool = False,
    now: datetime | None = None,
) -> Inferred:
    """Store what the rules of an ontology imply, and end the inferred facts that are no longer implied.

    The facts are read first and derived from outside of a transaction. A transaction stores at most 1,000 facts; it
    reads their premises again, and leaves out a fact whose premise has changed.

    Parameters
    ----------
    backend, scope, ontology
        Store, scope, and the ontology with the rules.
    limit
        Maximum number of facts that the rules derive; those that were stored before and aren't derived stay then.
    dry_run
        Change nothing; return what would be stored.
    now
        Nothing follows from facts that only episodes state which have expired by then; None is the present.
    """
    if limit < 1:
        raise InvalidInput(f"infer: limit must be at least 1, got {limit}")
    stated, inferred = read_facts(backend, scope, ontology.rules)
    stated = {edge.id: edge for edge in without_expired(backend, [scope], list(stated.values()), now or utc_now())}
    states = (temporal_fact(edge) for edge in stated.values() if edge.kind == "state")
    closure = compute_closure(states, ontology.rules, taken_by(stated.values(), inferred), limit)
    there = {_signature(row): row for row in inferred if _is_current(row)}
    rows: dict[str, Edge] = {}  # by the reference of the implied fact
    kept: set[str] = set()
    changed: list[NewFact] = []
    new: list[NewFact] = []
    for implied in closure.implied:
        premises = tuple(stated.get(p.ref) or rows[p.ref] for p in implied.premises)
        edge = _edge_of(scope, ontology, implied, premises)
        if (row := there.get(_signature(edge))) is not None:
            rows[implied.fact.ref] = row
            kept.add(row.id)
            if (row.confidence, row.certainty) != (edge.confidence, edge.certainty):
                again = row.changed(confidence=edge.confidence, certainty=edge.certainty)
                changed.append(NewFact(again, premises))
        else:
            rows[implied.fact.ref] = edge
            new.append(NewFact(edge, premises))
    outdated = [row for row in there.values() if row.id not in kept]
    if closure.truncated:  # what isn't implied within the limit may be implied beyond it
        names = {rule.name for rule in ontology.rules}
        outdated = [row for row in outdated if row.inferred_by not in names]
    tally = Tally()
    if closure.too_large:
        tally.skipped[f"more than {MOST_SHARING} share the target"] = len(closure.too_large)
    if not dry_run:
        over = [NewFact(retracted(row, utc_now(), NOT_IMPLIED), ()) for row in outdated]
        if left := _update(backend, scope, [*over, *changed], {row.id: row for row in there.values()}):
            tally.skipped["changed meanwhile"] += left
    store_new(backend, scope, new, tally, dry_run=dry_run)
    return tally.result(kept=len(kept), removed=len(outdated), truncated=closure.truncated, dry_run=dry_run)


# Reading ------------------------------------------------------------------------------------------


def read_facts(
    backend: GraphBackend, scope: Scope, rules: Iterable[InferenceRule]
) -> tuple[dict[str, Edge], list[Edge]]:
    """Return the stated facts, in all versions, that rules are about, by id; and all inferred facts."""
    relations = dict.fromkeys(name for rule in rules for name in (*rule.relations, rule.conclusion))
    about = EdgeQuery(relations=tuple(relations), kinds=STATED_KINDS, versions="all")
    stated = {edge.id: edge for edge in backend.all_edges([scope], about, chunk=_CHUNK) if not is_retracted(edge)}
    inferred = EdgeQuery(kinds=("inferred",), versions="all")
    return stated, list(backend.all_edges([scope], inferred, chunk=_CHUNK)) if has_inferred(backend, scope) else []


def temporal_fact(edge: Edge) -> TemporalFact:
    """Return an edge as a fact of a derivation."""
    what = (edge.id, edge.source_id, edge.relation, edge.target_id)
    return TemporalFact(*what, _span(edge), edge.confidence, edge.certainty)


def known_spans(backend: GraphBackend, scope: Scope, entity_ids: Sequence[str]) -> dict[Key, list[Span]]:
    """Return when facts about some entities are stated or inferred, or may not be inferred."""
    query = EdgeQuery(touching=tuple(entity_ids), versions="all")
    edges = list(backend.all_edges([scope], query, chunk=_CHUNK))
    stated = (edge for edge in edges if not edge.is_inferred and not is_retracted(edge))
    taken = taken_by(stated, (edge for edge in edges if edge.is_inferred))
    for edge in edges:
        if _is_current(edge):
            taken.setdefault((edge.source_id, edge.relation, edge.target_id), []).append(_span(edge))
    return taken


def taken_by(stated: Iterable[Edge], inferred: Iterable[Edge]) -> dict[Key, list[Span]]:
    """Return when facts needn't be inferred: while they are stated, inferred by a model, or after an end by hand."""
    taken: defaultdict[Key, list[Span]] = defaultdict(list)
    for edge in stated:
        taken[edge.source_id, edge.relation, edge.target_id].append(_span(edge))
    for row in inferred:
        key = (row.source_id, row.relation, row.target_id)
        if reason_by_hand(row):
            taken[key].append((START_OF_TIME if is_retracted(row) else row.valid_from, END_OF_TIME))
        elif row.inferred_by == BY_MODEL and not is_retracted(row):
            taken[key].append(_span(row))
    return taken


def _span(edge: Edge) -> Span:
    return (edge.valid_from, edge.valid_to or END_OF_TIME)


def _is_current(row: Edge) -> bool:
    """Return whether a fact is one that the rules inferred and have to confirm."""
    return row.is_inferred and row.inferred_by != BY_MODEL and not is_retracted(row) and not reason_by_hand(row)


def _signature(row: Edge) -> tuple[object, ...]:
    """Return the values that are equal if two inferred facts are the same."""
    return (*row.key, row.inferred_by, row.premises, row.valid_from, row.valid_to)


# Writing ------------------------------------------------------------------------------------------


def _edge_of(scope: Scope, ontology: Ontology, implied: ImpliedFact, premises: Sequence[Edge]) -> Edge:
    fact = implied.fact
    ids = [premise.id for premise in premises]
    edge_type = ontology.edge_type_of.get(fact.relation, EdgeType.SEMANTIC)
    return inferred_edge(scope, fact, edge_type, implied.rule.name, ids)


def inferred_edge(scope: Scope, fact: TemporalFact, edge_type: EdgeType, rule: str, premise_ids: Sequence[str]) -> Edge:
    """Return a new inferred fact; it gets its sentence when it is stored."""
    begin, end = fact.span
    return Edge.trusted(  # its values come from stored facts
        id=new_id(),
        scope=scope,
        source_id=fact.source,
        target_id=fact.target,
        relation=fact.relation,
        edge_type=edge_type,
        confidence=fact.confidence,
        valid_from=begin,
        valid_to=None if end == END_OF_TIME else end,
        recorded_at=utc_now(),
        properties={INFERRED_BY: rule, PREMISES: " ".join(premise_ids)},
        certainty=fact.certainty,
        kind="inferred",
    )


def _update(backend: GraphBackend, scope: Scope, facts: Sequence[NewFact], read: Mapping[str, Edge]) -> int:
    """Write changed inferred facts, in transactions of 1,000; return how many were left out.

    A fact is left out if it isn't in the store as it was read (`read`), apart from its retrievals, or if one of its
    premises has changed.
    """

    def write(batch: Sequence[NewFact]) -> int:
        ids = {edge.id for one in batch for edge in (one.edge, *one.premises)}
        there = backend.get_edges([scope], list(ids))
        written: dict[str, Edge] = {}
        for one in batch:
            stored, row = there.get(one.edge.id), read[one.edge.id]
            if stored is None or _with_retrievals_of(row, stored) != row:
                continue
            if all(p.id in written or _is_unchanged(p, there.get(p.id)) for p in one.premises):
                written[one.edge.id] = _with_retrievals_of(stored, one.edge)
        write_facts(backend, scope, Changes(edges=tuple(written.values())))
        return len(batch) - len(written)

    batches = [facts[start : start + _BATCH] for start in range(0, len(facts), _BATCH)]
    return sum(backend.atomic(partial(write, batch)) for batch in batches)


def _with_retrievals_of(counted: Edge, edge: Edge) -> Edge:
    """Return an edge with the retrievals of another version of it."""
    return edge.changed(retrieval_count=counted.retrieval_count, last_retrieved_at=counted.last_retrieved_at)


def store_new(
    backend: GraphBackend, scope: Scope, new: Sequence[NewFact], tally: Tally, *, dry_run: bool = False
) -> None:
    """Store new facts, each after its premises, in transactions of 1,000, and count them.

    A fact is left out if a premise has changed or is gone, or if the fact is there already.
    """
    names: dict[str, str] = {}
    for start in range(0, len(new), _BATCH):
        batch = new[start : start + _BATCH]
        names |= _names(backend, scope, batch, names)
        stored = batch if dry_run else backend.atomic(partial(_store, backend, scope, batch, names))
        tally.examples += _examples(stored, names, tally)
        if left := len(batch) - len(stored):
            tally.skipped["changed meanwhile"] += left
        tally.added.update(str(one.edge.inferred_by) for one in stored)


def _store(backend: GraphBackend, scope: Scope, batch: Sequence[NewFact], names: Mapping[str, str]) -> list[NewFact]:
    own = {one.edge.id for one in batch}
    ids = list({premise.id for one in batch for premise in one.premises if premise.id not in own})
    there = backend.get_edges([scope], ids)
    query = EdgeQuery(keys=tuple({one.edge.key for one in batch}), versions="all")
    known: defaultdict[object, list[Edge]] = defaultdict(list)
    for edge in backend.all_edges([scope], query, chunk=_CHUNK):
        if not is_retracted(edge) or reason_by_hand(edge):
            known[edge.key].append(edge)
    stored: dict[str, NewFact] = {}
    for one in batch:
        edge = one.edge
        holds = all(p.id in stored or _is_unchanged(p, there.get(p.id)) for p in one.premises)
        if holds and not any(_overlap(edge, other) for other in known[edge.key]):
            stored[edge.id] = NewFact(edge.changed(fact=_sentence(edge, names)), one.premises)
    if stored:
        add_inferred(backend, scope, [one.edge for one in stored.values()])
    return list(stored.values())


def _is_unchanged(read: Edge, there: Edge | None) -> bool:
    """Return whether a premise is stored as it was read, as far as an inferred fact depends on it."""
    if there is None or (there.source_id, there.target_id) != (read.source_id, read.target_id):
        return False
    sure = (there.certainty, there.kind) == (read.certainty, read.kind) and there.confidence >= read.confidence
    return sure and _span(there) == _span(read)


def _overlap(edge: Edge, other: Edge) -> bool:
    (begin, end), (other_begin, other_end) = _span(edge), _span(other)
    return bool(reason_by_hand(other)) if is_retracted(other) else begin < other_end and other_begin < end


def _names(backend: GraphBackend, scope: Scope, batch: Iterable[NewFact], known: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the entities of some facts that aren't known yet, by id."""
    edges = (edge for one in batch for edge in (one.edge, *one.premises))
    ids = {end for edge in edges for end in (edge.source_id, edge.target_id)} - known.keys()
    return {i: entity.name for i, entity in backend.get_entities([scope], sorted(ids)).items()}


def _sentence(edge: Edge, names: Mapping[str, str]) -> str:
    return plain_fact(names[edge.source_id], edge.relation, names[edge.target_id])


def _examples(stored: Sequence[NewFact], names: Mapping[str, str], tally: Tally) -> list[str]:
    def shown(one: NewFact) -> str:
        premises = "; ".join(_sentence(premise, names) for premise in one.premises)
        return f"{_sentence(one.edge, names)} (by {one.edge.inferred_by} from: {premises})"

    return [shown(one) for one in stored[: _EXAMPLES - len(tally.examples)]]
