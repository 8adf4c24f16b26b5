"""Decisions: which rows a new telling of a fact adds or changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from graphmem.ingest.supersession.rules import (
    Compatible,
    FactSource,
    Sources,
    begun_as_stated,
    begun_with,
    day_after,
    is_moved,
    is_over,
    may_overrule,
    supported,
    tellers_of,
    told_at,
)
from graphmem.ingest.supersession.slot import Decision, Slot
from graphmem.models import Edge, ended, is_retracted, may_end, retracted


def decide(
    known: Iterable[Edge],
    new: Edge,
    sources: Sources,
    *,
    single_valued: bool,
    now: datetime,
    compatible: Compatible | None = None,
) -> Decision:
    """Decide what a new telling changes.

    Parameters
    ----------
    known
        Versions of the same fact, and of a single-valued relation all versions of its source.
    new
        The telling as a row: its `valid_to` is a stated end.
    sources
        Episodes of the rows, as far as they matter: without them a row counts as told once.
    single_valued
        Whether facts with other targets end each other.
    now
        Transaction time.
    compatible
        Facts that don't end each other, because one implies the other.
    """
    known = list(known)
    same = [edge for edge in known if edge.key == new.key and not is_retracted(edge)]
    if new.kind == "event":
        return _decide_event([edge for edge in same if edge.kind == "event"], new, sources, now)
    if not known:
        return Decision((new,), new.id)
    states = [edge for edge in same if edge.kind == "state"]
    if is_over(new):
        return _decide_past(states, new, sources, now)
    for edge in states:
        if (confirmed := _confirmed_past(edge, new)) is not None:
            return Decision((confirmed,), edge.id)
    return Slot(known, new, sources, single_valued=single_valued, now=now, compatible=compatible).derive()


def _decide_event(events: Sequence[Edge], new: Edge, sources: Sources, now: datetime) -> Decision:
    """Store an event as an interval of at least a day, or confirm the one of `events` that overlaps it (rule 6).

    "Paris, on 8 January", told twice, is one event; told of 8 February, it is another one.
    """
    day = day_after(new.valid_from)
    until = day if new.valid_to is None else max(day, new.valid_to)
    met = [e for e in events if e.valid_to is not None and e.valid_from < until and new.valid_from < e.valid_to]
    less_sure = [edge for edge in met if _counts_in_place_of(edge, new, sources)]
    if known := next((edge for edge in met if edge not in less_sure), None):
        return Decision((supported(known, new),), known.id)
    return _in_place_of(less_sure, new.changed(valid_to=until), now)


def _decide_past(states: Sequence[Edge], new: Edge, sources: Sources, now: datetime) -> Decision:
    """Store a fact that was over when it was told, or change the one of `states` that it is about (rule 7)."""
    end = new.valid_to or told_at(new)
    met = [e for e in states if e.valid_from < end and (e.valid_to is None or new.valid_from < e.valid_to)]
    less_sure = [edge for edge in met if _counts_in_place_of(edge, new, sources)]
    for edge in sorted(states, key=lambda edge: edge.valid_from, reverse=True):
        if edge not in less_sure and (changed := told_as_past(edge, new, sources, now)) is not None:
            return Decision((changed,), edge.id)
    return _in_place_of(less_sure, new, now)


def _counts_in_place_of(edge: Edge, new: Edge, sources: Sources) -> bool:
    """Return whether a telling counts in place of a known row of its fact: it is surer, or the first not external."""
    is_surer = may_end(new.certainty, edge.certainty, same_fact=True)
    by_documents = may_overrule("external", tellers_of(edge, sources))
    if "external" in tellers_of(new, sources):
        return is_surer and by_documents
    return is_surer or (by_documents and new.certainty != edge.certainty)


def _in_place_of(less_sure: Sequence[Edge], new: Edge, now: datetime) -> Decision:
    """Store a fact, and take back the rows that it counts in place of: a planned trip that was made."""
    return Decision((*(retracted(edge, now, "replaced", new.id) for edge in less_sure), new), new.id)


def told_as_past(edge: Edge, new: Edge, sources: Sources, now: datetime) -> Edge | None:
    """Return a version as changed by a telling `new` that its fact is over; None if the telling isn't about it.

    An open version ends, a planned end moves, and a version that overlaps the past one is confirmed. "I worked at
    Aalto until May" ends the job at Aalto that was open, but not one that began in June.
    """
    end = new.valid_to or told_at(new)
    if edge.valid_from >= end:
        return None
    teller = next(iter(tellers_of(new, sources)), None)
    may_change_end = may_end(new.certainty, edge.certainty) and may_overrule(teller, tellers_of(edge, sources))
    confirmed = supported(edge, new)
    if edge.valid_to is None:
        return begun_as_stated(ended(confirmed, end, now, "over")) if may_change_end else None
    held_again = not new.valid_from_assumed and new.valid_from >= edge.valid_to
    is_changed = end < edge.valid_to or is_moved(edge, confirmed.ends)
    if may_change_end and is_changed and not held_again:
        return begun_with(ended(confirmed, end, now, "over"), new)
    return begun_as_stated(confirmed) if new.valid_from < edge.valid_to else None


def _confirmed_past(edge: Edge, new: Edge) -> Edge | None:
    """Return a past version as confirmed by a telling of a time before its end; None if the telling isn't about it.

    "I worked at Aalto until May" is confirmed by "I work at Aalto", told in March, which arrives later. As that was
    told sooner, it also replaces an assumed beginning.
    """
    if edge.valid_to is None or not is_over(edge) or new.valid_from >= edge.valid_to:
        return None
    confirmed = begun_as_stated(supported(edge, new))
    if edge.valid_from <= new.valid_from:
        return confirmed
    is_sooner = told_at(new) < told_at(edge) and (new.valid_to is None or new.valid_to > edge.valid_from)
    if not is_sooner:
        return None
    return confirmed.changed(valid_from=new.valid_from) if confirmed.valid_from_assumed else confirmed


def settle(
    known: Iterable[Edge],
    sources: Sources,
    *,
    single_valued: bool = True,
    now: datetime,
    compatible: Compatible | None = None,
) -> tuple[Edge, ...]:
    """Derive versions again, without a new telling; return the rows that change. Parameters as in `decide`."""
    slot = Slot(list(known), None, sources, single_valued=single_valued, now=now, compatible=compatible)
    return slot.derive().edges


def less_sure(one: Edge, other: Edge, sources: Sources, *, now: datetime) -> Edge | None:
    """Return the less sure of two active rows of a fact, which the other one ends; None if they are equally sure.

    Each row counts as told once, at its first telling, and by an external source only if nobody else told it. A
    retracted row was told when the other one was known: it confirms that one.
    """
    if one.certainty == other.certainty:
        return None
    told = {edge.id: _told_once(edge, sources.get(edge.id, ())) for edge in (one, other)}
    changed = settle((one, other), told, now=now)
    return next(edge for edge in changed if not edge.is_active)


def _told_once(edge: Edge, sources: Sequence[FactSource]) -> Sequence[FactSource]:
    if not sources:
        return ()
    first = min(sources, key=lambda source: source.told_at)
    is_external = all(source.teller == "external" for source in sources)
    return (FactSource(first.episode_id, edge.told_at or first.told_at, "external" if is_external else None),)
