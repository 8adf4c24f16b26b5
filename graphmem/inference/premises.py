"""Writes of facts that also end or remove inferred facts without a premise, and inferred facts rejected by hand.

Each write that ends, changes or removes facts goes through `write_facts`, which in the same transaction ends or removes
the inferred facts that lose a premise. An inferred fact shares an entity with each of its premises, so that the facts
around the changed ones contain all that may depend on them.

Rejected facts are kept, so that they aren't inferred again. The inferred facts that they follow from are kept as well,
because an erasure finds them through these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import combinations

from graphmem.models import (
    PREMISES,
    Changes,
    Edge,
    EdgeExpiry,
    EdgeKey,
    EdgeQuery,
    JobState,
    Removal,
    Scope,
    ended,
    is_retracted,
    least_sure,
    retracted,
    utc_now,
)
from graphmem.models.base import END_OF_TIME
from graphmem.protocols import GraphBackend

INFERENCE_JOB = "inference"
"""Job whose state exists in the scopes that have or had inferred facts."""

PREMISE_ENDED = "a premise ended"
STATED_SINCE = "stated since"
NOT_IMPLIED = "no longer implied"
_STILL_IMPLIED = (None, PREMISE_ENDED, STATED_SINCE)  # as long as the premises hold
_AUTOMATIC = frozenset({PREMISE_ENDED, STATED_SINCE, NOT_IMPLIED})

_CHUNK = 5000


def reason_by_hand(edge: Edge) -> str | None:
    """Return why somebody ended or retracted an inferred fact; None if nobody did."""
    return edge.end_reason if edge.is_inferred and edge.end_reason not in _AUTOMATIC else None


def has_inferred(backend: GraphBackend, scope: Scope) -> bool:
    """Return whether a scope may have inferred facts; one read."""
    return backend.find_job_state(scope, INFERENCE_JOB).done_at is not None


def write_facts(backend: GraphBackend, scope: Scope, changes: Changes, known: Mapping[str, Edge] | None = None) -> None:
    """Write changes, and in the same transaction end or remove the inferred facts that lose a premise.

    A fact that is stated takes the place of the same fact that was inferred. Raises the errors of `GraphBackend.write`.

    Parameters
    ----------
    backend, scope, changes
        As for `GraphBackend.write`.
    known
        Facts that this transaction has read, by id: those that the write replaces, and all with the key of a fact that
        it adds. With them, a write that only adds facts needs no further read.
    """
    if _may_affect_inferred(changes, known):
        backend.atomic(partial(_write, backend, scope, changes))
    else:
        backend.write(scope, changes)


def _may_affect_inferred(changes: Changes, known: Mapping[str, Edge] | None) -> bool:
    if changes.expiries or any(removal.kind in ("edge", "entity") for removal in changes.removals):
        return True
    if known is None:
        return bool(changes.edges)
    inferred = {edge.key for edge in known.values() if edge.is_inferred and edge.is_active}
    return any(edge.id in known or edge.is_inferred or edge.key in inferred for edge in changes.edges)


def add_inferred(backend: GraphBackend, scope: Scope, edges: Sequence[Edge]) -> None:
    """Write new inferred facts. Nothing was inferred from them yet, so that the inferred facts needn't be read."""
    backend.write(scope, _marked(Changes(edges=tuple(edges))))


def _marked(changes: Changes) -> Changes:
    """Return changes that also note that the scope has inferred facts."""
    return replace(changes, job_states=(*changes.job_states, JobState(INFERENCE_JOB, done_at=utc_now())))


def _write(backend: GraphBackend, scope: Scope, changes: Changes) -> None:
    if not has_inferred(backend, scope):
        has_new = any(edge.is_inferred for edge in changes.edges)
        backend.write(scope, _marked(changes) if has_new else changes)
        return
    now = utc_now()
    before = _changed_rows(backend, scope, changes)
    displaced = {edge.id: edge for edge in _displaced(backend, scope, changes)}
    first = tuple(EdgeExpiry(e.id, e.valid_from, now, reason=STATED_SINCE) for e in displaced.values())
    backend.write(scope, replace(changes, expiries=(*first, *changes.expiries)))
    _propagate(backend, scope, {**before, **displaced}, now)


def expiries_before_replacement(stored: Iterable[Edge], at: datetime) -> tuple[EdgeExpiry, ...]:
    """Return expiries for the active facts that a write replaces or removes.

    A write applies expiries first, which frees the keys of these facts for its other rows in any order.
    """
    return tuple(EdgeExpiry(edge.id, edge.valid_from, at) for edge in stored if edge.is_active)


def _changed_rows(backend: GraphBackend, scope: Scope, changes: Changes) -> dict[str, Edge]:
    """Return the stored facts that a write ends, replaces or removes, by id."""
    removed = [removal.id for removal in changes.removals if removal.kind == "edge"]
    ids = dict.fromkeys((*(e.edge_id for e in changes.expiries), *(edge.id for edge in changes.edges), *removed))
    found = backend.get_edges([scope], list(ids)) if ids else {}
    if gone := tuple(removal.id for removal in changes.removals if removal.kind == "entity"):
        query = EdgeQuery(touching=gone, versions="all")
        found.update((edge.id, edge) for edge in backend.all_edges([scope], query, chunk=_CHUNK))
    return found


def _displaced(backend: GraphBackend, scope: Scope, changes: Changes) -> Iterable[Edge]:
    """Return the active inferred facts with the key of a stated fact that becomes active."""
    keys = tuple({edge.key for edge in changes.edges if edge.is_active and not edge.is_inferred})
    if not keys:
        return ()
    written = {edge.id for edge in changes.edges}
    query = EdgeQuery(keys=keys, kinds=("inferred",), versions="active")
    return [edge for edge in backend.all_edges([scope], query, chunk=_CHUNK) if edge.id not in written]


def _propagate(backend: GraphBackend, scope: Scope, before: Mapping[str, Edge], now: datetime) -> None:
    """Bring the facts inferred from changed ones in line with their premises, and those inferred from these."""
    while before:
        after = backend.get_edges([scope], list(before))
        changed = {i: edge for i, edge in before.items() if i not in after or _differs(edge, after[i])}
        rows = [row for row in _inferred_around(backend, scope, changed.values()) if set(row.premises) & changed.keys()]
        # the end that a premise brought may be taken back: the earliest end of all premises counts then
        others = {i for row in rows if row.end_reason == PREMISE_ENDED for i in row.premises} - after.keys()
        after = {**after, **(backend.get_edges([scope], list(others)) if others else {})}
        settled = {row.id: _settled(row, changed, after, now) for row in rows}
        before = _write_settled(backend, scope, {row.id: row for row in rows}, settled, now)


def _write_settled(
    backend: GraphBackend, scope: Scope, rows: Mapping[str, Edge], settled: dict[str, Edge | None], now: datetime
) -> dict[str, Edge]:
    """Write settled facts where they differ from the stored rows; return the rows that were changed or removed, by id.

    A fact that would be valid again beside another one with its key stays ended.
    """
    for edge in _held_twice(backend, scope, rows, settled):
        settled[edge.id] = rows[edge.id]
    changed = {i: row for i, row in rows.items() if settled[i] != row}
    if changed:
        edges = tuple(edge for i in changed if (edge := settled[i]) is not None)
        expiries = expiries_before_replacement(changed.values(), now)
        removals = tuple(Removal("edge", i) for i in changed if settled[i] is None)
        backend.write(scope, Changes(expiries=expiries, edges=edges, removals=removals))
    return changed


def _held_twice(
    backend: GraphBackend, scope: Scope, rows: Mapping[str, Edge], settled: Mapping[str, Edge | None]
) -> Iterator[Edge]:
    """Yield the settled facts that would be valid again beside another one with their key."""
    opened = [edge for i, edge in settled.items() if edge is not None and edge.is_active and not rows[i].is_active]
    if opened:
        query = EdgeQuery(keys=tuple({edge.key for edge in opened}), versions="active")
        found = (settled.get(edge.id, edge) for edge in backend.all_edges([scope], query, chunk=_CHUNK))
        held = {edge.key for edge in found if edge is not None and edge.is_active}
        for edge in opened:
            if edge.key in held:
                yield edge
            held.add(edge.key)


def _differs(edge: Edge, other: Edge) -> bool:
    """Return whether two versions of a fact differ in what an inferred fact takes over."""
    return _taken_over(edge) != _taken_over(other)


def _taken_over(edge: Edge) -> tuple[object, ...]:
    what = (edge.source_id, edge.relation, edge.target_id, edge.kind)
    return (*what, edge.valid_from, edge.valid_to, edge.confidence, edge.certainty)


def _inferred_around(backend: GraphBackend, scope: Scope, edges: Iterable[Edge]) -> list[Edge]:
    """Return the inferred facts, in all versions, about the entities of some facts."""
    ends = tuple({end for edge in edges for end in (edge.source_id, edge.target_id)})
    query = EdgeQuery(touching=ends, kinds=("inferred",), versions="all")
    return list(backend.all_edges([scope], query, chunk=_CHUNK)) if ends else []


def find_compatible(
    backend: GraphBackend, scope: Scope, known: Mapping[str, Edge], gone: Collection[str] = ()
) -> dict[frozenset[EdgeKey], datetime]:
    """Return the pairs of facts with one source and relation that hold together, and until when they do.

    One implies the other, or a third one implies both: whoever works at a part of a company works at the company, too.

    Parameters
    ----------
    backend, scope
        Store and scope.
    known
        Facts by id; those that are inferred, or were until they were stated, say what is implied.
    gone
        Ids of facts that don't count as premises, since they are about to be removed.
    """
    rows = [edge for edge in known.values() if edge.is_inferred and edge.end_reason in _STILL_IMPLIED]
    ids = list({i for row in rows for i in row.premises}.difference(known, gone))
    facts = {**known, **(backend.get_edges([scope], ids) if ids else {})}
    found: dict[frozenset[EdgeKey], datetime] = {}
    implied: defaultdict[EdgeKey, dict[EdgeKey, datetime]] = defaultdict(dict)
    for row in rows:
        for premise, until in _implying(row, facts):
            _extend(found, (row.key, premise.key), until)
            implied[premise.key][row.key] = min(until, premise.valid_to or END_OF_TIME)
    for until_of in implied.values():
        for pair in combinations(until_of, 2):
            _extend(found, pair, min(until_of[key] for key in pair))
    return found


def _extend(found: dict[frozenset[EdgeKey], datetime], pair: Iterable[EdgeKey], until: datetime) -> None:
    keys = frozenset(pair)
    found[keys] = max(until, found.get(keys, until))


def _implying(
    row: Edge, facts: Mapping[str, Edge], seen: frozenset[str] = frozenset()
) -> Iterable[tuple[Edge, datetime]]:
    """Yield the premises with the source and relation of an inferred fact, and until when the others hold."""
    premises = [facts[i] for i in row.premises if i in facts]
    same = [p for p in premises if (p.source_id, p.relation) == (row.source_id, row.relation)]
    if len(premises) < len(row.premises):
        return
    until = min((p.valid_to or END_OF_TIME for p in premises if p not in same), default=END_OF_TIME)
    for premise in (p for p in same if p.id not in seen):  # an import may bring premises in a circle
        yield premise, until
        further = _implying(premise, facts, seen | {row.id})
        yield from ((each, min(end, until)) for each, end in further)


def find_dependents(backend: GraphBackend, scope: Scope, edges: Mapping[str, Edge]) -> dict[str, Edge]:
    """Return the facts that were inferred from some facts, directly or through others, by id."""
    found: dict[str, Edge] = {}
    frontier = dict(edges) if edges and has_inferred(backend, scope) else {}
    while frontier:
        rows = _inferred_around(backend, scope, frontier.values())
        known = edges.keys() | found.keys()
        frontier = {row.id: row for row in rows if row.id not in known and set(row.premises) & frontier.keys()}
        found.update(frontier)
    return found


def _settled(row: Edge, before: Mapping[str, Edge], after: Mapping[str, Edge], now: datetime) -> Edge | None:
    """Return an inferred fact as its changed premises leave it; None if one of them is gone, or is about others now.

    It keeps the reason of an end by hand, which keeps it from being inferred again.
    """
    changed = [i for i in row.premises if i in before]
    premises = [after[i] for i in changed if i in after]
    if not row.premises or len(premises) < len(changed):
        return None
    ends = {row.source_id, row.target_id}
    if any(ends.isdisjoint((premise.source_id, premise.target_id)) for premise in premises):
        return None  # an unmerge moved it; nobody would find the row by it any more
    if is_retracted(row):
        return row
    reason = reason_by_hand(row) or PREMISE_ENDED
    moved = any(_ends(p) != _ends(before[p.id]) for p in premises)
    if row.id in before and _ends(row) != _ends(before[row.id]):
        moved = False  # it moved with them
    if moved or any(is_retracted(premise) for premise in premises):
        return retracted(row, now, reason)
    begin = max(row.valid_from, *(premise.valid_from for premise in premises))
    opened = row.without_end() if row.end_reason == PREMISE_ENDED else row
    held = [after[i] for i in row.premises if i in after]
    end = min((e for e in (opened.valid_to, *(p.valid_to for p in held)) if e is not None), default=None)
    if end is not None and end <= begin:
        return retracted(row, now, reason)
    narrowed = (row if end == row.valid_to else opened).changed(
        valid_from=begin,
        confidence=min(row.confidence, *(premise.confidence for premise in premises)),
        certainty=least_sure((row.certainty, *(premise.certainty for premise in premises))),
    )
    return narrowed if end in (None, narrowed.valid_to) else ended(narrowed, end, now, reason)


def _ends(edge: Edge) -> tuple[str, str, str]:
    return (edge.source_id, edge.relation, edge.target_id)


def replace_times(backend: GraphBackend, scope: Scope, edges: Collection[Edge], times: Set[datetime]) -> None:
    """Replace erased times of the inferred facts about the entities of some facts by those of their premises.

    An inferred fact has them from a premise, or from the same fact that was stated from or until then. One that would
    hold twice without them is retracted.
    """
    if not times or not has_inferred(backend, scope):
        return
    now, frontier = utc_now(), [*edges]
    while frontier:
        found = _inferred_around(backend, scope, frontier)
        rows = {row.id: row for row in found if not times.isdisjoint(times_of(row))}
        ids = list({i for row in rows.values() for i in row.premises})
        there = backend.get_edges([scope], ids) if ids else {}
        settled: dict[str, Edge | None] = {}
        for i in sorted(rows):  # ids are in the order of time, and premises are stored first
            premises = [there[p] for p in rows[i].premises if p in there]
            settled[i] = there[i] = _without_times(rows[i], times, premises, now)
        for edge in [*_held_twice(backend, scope, rows, settled)]:
            settled[edge.id] = retracted(edge, now, NOT_IMPLIED)
        frontier = [*_write_settled(backend, scope, rows, settled, now).values()]


def times_of(edge: Edge) -> set[datetime]:
    """Return when a fact began and ended, or was to end."""
    ends = (edge.valid_to, edge.prior_valid_to, *(end.at for end in edge.ends))
    return {edge.valid_from, *(at for at in ends if at is not None)}


def _without_times(row: Edge, times: Set[datetime], premises: Sequence[Edge], now: datetime) -> Edge:
    """Return an inferred fact with times of its premises in place of others; one that never held stays so.

    An end by hand stays: nobody told it who is forgotten.
    """
    begin, end, is_wrong = row.valid_from, row.valid_to, is_retracted(row)
    if begin in times:
        begin = max((premise.valid_from for premise in premises), default=begin)
    if end in times:
        stated = [each.at for each in row.ends if not each.by or each.at not in times]
        end = min((*stated, *(p.valid_to for p in premises if p.valid_to is not None)), default=None)
    ends = tuple(each.changed(at=begin) if each.at == row.valid_from else each for each in row.ends)
    prior = None if row.prior_valid_to in times else row.prior_valid_to
    is_over = is_wrong or (end is not None and end <= begin)
    moved = row.changed(valid_from=begin, valid_to=begin if is_over else end, ends=ends, prior_valid_to=prior)
    if is_over and not is_wrong:
        return retracted(moved, now, reason_by_hand(row) or NOT_IMPLIED)
    return moved.without_end() if end is None and not is_over else moved


def settle_all(backend: GraphBackend, scope: Scope) -> int:
    """Bring all inferred facts of a scope in line with their stored premises; return how many changed.

    Use it for rows that weren't inferred here, such as those of an import.
    """
    return backend.atomic(partial(_settle_all, backend, scope)) if has_inferred(backend, scope) else 0


def _settle_all(backend: GraphBackend, scope: Scope) -> int:
    now, changed = utc_now(), 0
    while True:
        query = EdgeQuery(kinds=("inferred",), versions="all")
        rows = {row.id: row for row in backend.all_edges([scope], query, chunk=_CHUNK)}
        ids = list({i for row in rows.values() for i in row.premises})
        after = backend.get_edges([scope], ids) if ids else {}
        unmoved = {i: after.get(i, row) for row in rows.values() for i in row.premises}
        settled = {i: _settled(row, unmoved, after, now) for i, row in rows.items()}
        written = _write_settled(backend, scope, rows, settled, now)
        if not written:
            return changed
        changed += len(written)


# Rejected facts -----------------------------------------------------------------------------------


@dataclass(slots=True)
class MovedRejections:
    """Changes of rejected facts by a merge.

    Attributes
    ----------
    before
        Facts that change, as they are before the merge.
    dropped
        Rejected facts between the merged entities, which go.
    rows
        Rows to write.
    """

    before: list[Edge] = field(default_factory=list[Edge])
    dropped: list[Edge] = field(default_factory=list[Edge])
    rows: list[Edge] = field(default_factory=list[Edge])


def move_rejected(
    known: Iterable[Edge], premises: Mapping[str, str | None], repoint: Callable[[Edge], Edge], at: datetime
) -> MovedRejections:
    """Move the facts that somebody rejected to the kept entity.

    Parameters
    ----------
    known
        Inferred facts of the merged entity, and those that depend on its facts.
    premises
        Stated facts that go: id → id of the fact that takes their place, or None.
    repoint
        Replaces the merged entity of a fact by the kept one.
    at
        Time of the merge.
    """
    found = MovedRejections()
    place = dict(premises)
    for row in rejected_with_premises(known):
        by_hand, there = reason_by_hand(row) is not None, repoint(row)
        left = dict.fromkeys(new for i in row.premises if (new := place.get(i, i)) is not None)
        if there.source_id == there.target_id:
            place[row.id] = None
            found.dropped += [row] if by_hand else []
        elif not left:
            place[row.id] = None
            found.before += [row] if by_hand else []
        else:
            there = there.changed(properties={**row.properties, PREMISES: " ".join(left)})
            if not by_hand and not is_retracted(row):
                there = retracted(there, at, NOT_IMPLIED)
            if there != row:
                found.before.append(row)
                found.rows.append(there)
    return found


def rejected_with_premises(known: Iterable[Edge]) -> list[Edge]:
    """Return the facts that somebody rejected, and those of `known` that they follow from, each after its premises."""
    rows = {row.id: row for row in known}
    found, needed = {i for i, row in rows.items() if reason_by_hand(row)}, set[str]()
    while found:
        needed |= found
        found = {premise for i in found for premise in rows[i].premises if premise in rows} - needed
    return [rows[i] for i in sorted(needed)]  # ids are in the order of time, and premises are stored first
