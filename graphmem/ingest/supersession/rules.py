"""Rules for single facts, and the rows that follow from them: who may end a fact, when it ended, what confirms it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, Literal, NamedTuple

from graphmem.models import (
    Edge,
    EdgeBeginning,
    EdgeEnd,
    EdgeKey,
    end_of,
    ended,
    is_retracted,
    may_end,
    new_id,
    with_end,
)
from graphmem.models.base import END_OF_TIME, START_OF_TIME
from graphmem.text.normalize import plain_fact

DAY = timedelta(days=1)

Teller = Literal["subject", "other", "external"]
"""Who states a fact: the one it is about, somebody else, or an external text, such as a document or a tool's output."""


class FactSource(NamedTuple):
    """An episode that states a fact, and when it occurred; `teller` is None if the speaker isn't known."""

    episode_id: str
    told_at: datetime
    teller: Teller | None = None


Sources = Mapping[str, Sequence[FactSource]]
"""Edge id → the episodes that state it."""

Compatible = Mapping[frozenset[EdgeKey], datetime]
"""Two facts of a slot that hold together, as one implies the other → until when: they don't end each other before."""


DEPENDENT_RELATIONS: Mapping[str, str] = {"works_at": "works_as"}
"""Relation → the relation whose facts end with it (rule 10)."""


# Rules --------------------------------------------------------------------------------------------


def may_overrule(teller: Teller | None, tellers: Collection[Teller | None]) -> bool:
    """Return whether a teller may end a fact that others told (rule 5).

    A document ends only what documents alone told, and what Tom says of Maya doesn't end what she said herself.
    """
    if teller == "external":
        return bool(tellers) and set(tellers) == {"external"}
    return teller != "other" or "subject" not in tellers


def tellers_of(edge: Edge, sources: Sources) -> list[Teller | None]:
    """Return who told a fact, one for each known source."""
    return [source.teller for source in sources.get(edge.id, ())]


def hold_together(compatible: Compatible, key: EdgeKey, other: EdgeKey, at: datetime) -> bool:
    """Return whether two facts of a slot hold together at a time (rule 9)."""
    until = compatible.get(frozenset((key, other)))
    return until is not None and at < until


def ends_from(by: Edge, edge: Edge, sources: Sources) -> datetime | None:
    """Return from when a stored fact ends another one; None if it may not.

    That is its beginning or, if its first teller may not end the other one, the first telling by somebody who may. A
    fact that began before the other one ends it by a later telling.
    """
    if (by.relation, by.target_id) == (edge.relation, edge.target_id):
        return by.valid_from
    if not may_end(by.certainty, edge.certainty):
        return None
    tellers = tellers_of(edge, sources)
    told = sorted(sources.get(by.id, ()), key=lambda source: source.told_at)
    allowed = [source for source in told if may_overrule(source.teller, tellers)]
    if by.valid_from < edge.valid_from and not same_day(by.valid_from, edge.valid_from):
        return next((source.told_at for source in allowed if source.told_at > edge.valid_from), None)
    if allowed[:1] == told[:1]:
        return by.valid_from
    return max(by.valid_from, allowed[0].told_at) if allowed else None


def is_over(edge: Edge) -> bool:
    """Return whether a fact was told when it was over already; such a fact ends nothing (rule 7)."""
    if edge.valid_to is None or edge.expired_at is not None or edge.superseded_by is not None:
        return False
    return edge.valid_to <= told_at(edge)


def is_moved(edge: Edge, ends: Collection[EdgeEnd]) -> bool:
    """Return whether a fact that has ended would end later by these ends, as its end was planned (rule 3)."""
    if edge.valid_to is None or edge.superseded_by is not None:
        return False
    end = end_of(ends, edge.valid_to)
    return end is not None and end > edge.valid_to


def end_apart_from(edge: Edge, others: Collection[str]) -> datetime | None:
    """Return the end of a fact apart from its being superseded by one of `others`."""
    return edge.stated_end if edge.superseded_by in others else edge.valid_to


def told_at(edge: Edge) -> datetime:
    """Return when a fact was told; rows of older versions don't say it, and count as told when they were recorded."""
    return edge.told_at or edge.recorded_at


def same_day(one: datetime, other: datetime) -> bool:
    """Return whether two beginnings are the same day, if one of them is only a date (rule 2)."""
    return time() in (one.time(), other.time()) and one.date() == other.date()


def day_before(moment: datetime) -> datetime:
    """Return a time one day earlier, or the first one of the calendar."""
    return moment - DAY if moment - START_OF_TIME > DAY else START_OF_TIME


def day_after(moment: datetime) -> datetime:
    """Return a time one day later, or the last one of the calendar."""
    return moment + DAY if END_OF_TIME - moment > DAY else END_OF_TIME


# Changed rows -------------------------------------------------------------------------------------


def superseded(edge: Edge, by: Edge, successor: str, now: datetime) -> Edge | None:
    """Return a fact as ended by another one that contradicts it; None if it began or was told later than that.

    If it began later only by assumption, it had begun on the day before; if both began on the same day, it held until
    it was told.
    """
    at = by.valid_from
    if edge.valid_to is not None and edge.valid_to <= at:
        return None
    if edge.valid_from > at:
        if told_at(edge) > told_at(by):
            return None
        if edge.valid_from_assumed:
            edge = edge.changed(valid_from=day_before(at))
        elif same_day(edge.valid_from, at):
            at = told_at(edge)
        else:
            return None
    stated = EdgeEnd(by=successor, at=max(at, edge.valid_from), told_at=told_at(by))
    return ended(with_end(edge, stated), at, now, "replaced", successor)


def reopened(edge: Edge, at: datetime, sources: Sequence[FactSource], now: datetime) -> Edge | None:
    """Return the version that begins with the first telling of a fact after its end was told; None if there is none.

    A stated end before that telling isn't the end of the version. An event that was over by then isn't told again.
    """
    told = sorted((s for s in sources if s.episode_id in edge.episode_ids), key=lambda source: source.told_at)
    later = [source for source in told if source.told_at > at]
    if not later or len(later) == len(edge.episode_ids):
        return None
    begins, episodes = later[0].told_at, tuple(source.episode_id for source in later)
    ahead = [end for end in edge.ends if end.at > begins]
    running = edge.without_ends({end.by for end in edge.ends} if len(ahead) < len(edge.ends) else (), keep=ahead)
    if running.valid_to is not None and running.valid_to <= begins:
        return None
    again = new_version(running, now, valid_from=begins, valid_from_assumed=True, told_at=begins)
    return again.stated_by(episodes)


def new_version(edge: Edge, now: datetime, **fields: Any) -> Edge:
    """Return a further version of a fact as a new row that differs in these fields."""
    fresh = {"id": new_id(), "recorded_at": now, "retrieval_count": 0.0, "last_retrieved_at": None}
    return edge.changed(**fresh, **fields)


def supported(edge: Edge, new: Edge) -> Edge:
    """Return a fact that another telling confirms: with the higher confidence, and episodes and ends of both."""
    return edge.changed(
        confidence=max(edge.confidence, new.confidence),
        episode_ids=tuple(dict.fromkeys(edge.episode_ids + new.episode_ids)),
        ends=tuple(dict.fromkeys(edge.ends + new.ends)),
        beginnings=beginnings_of(edge, new),
    )


def beginnings_of(edge: Edge, other: Edge) -> tuple[EdgeBeginning, ...]:
    """Return the stated beginnings of a fact and of another row of it; only one that is as sure counts."""
    return tuple(dict.fromkeys(edge.beginnings + (other.beginnings if other.certainty == edge.certainty else ())))


def begun_as_stated(edge: Edge) -> Edge:
    """Return a past fact with the beginning that was stated first; one that an older version recorded keeps its own."""
    first = edge.first_stated
    is_recorded = edge.valid_from_assumed or edge.valid_from in {each.at for each in edge.beginnings}
    return edge.changed(valid_from=first.at, valid_from_assumed=False) if first is not None and is_recorded else edge


def begun_with(edge: Edge, other: Edge) -> Edge:
    """Return a fact as begun when it or another row of it says: the stated beginning told first, or else the first."""
    stated = [row for row in (edge, other) if not row.valid_from_assumed]
    first = min(stated, key=told_at) if stated else min(edge, other, key=lambda row: row.valid_from)
    return with_begin_of(edge.changed(beginnings=beginnings_of(edge, other)), first)


def with_begin_of(edge: Edge, other: Edge) -> Edge:
    """Return a fact with the beginning of another row, unless it ended before that; a retracted one stays retracted."""
    begun = {name: getattr(other, name) for name in ("valid_from", "valid_from_assumed", "told_at")}
    if is_retracted(edge):
        return edge.changed(**begun, valid_to=other.valid_from)
    return edge if edge.valid_to is not None and edge.valid_to <= other.valid_from else edge.changed(**begun)


def with_sources(edge: Edge, episode_ids: Iterable[str], name_of: Callable[[str], str], *, plain: bool = False) -> Edge:
    """Return a fact as stated by a subset of its episodes.

    Its sentence and properties came from its first episode. Without that one, or with `plain`, the plain triple
    replaces the sentence and the properties are cleared.
    """
    left = tuple(episode_ids)
    if not plain and left[:1] == edge.episode_ids[:1]:
        return edge.stated_by(left)
    fact = plain_fact(name_of(edge.source_id), edge.relation, name_of(edge.target_id))
    return edge.stated_by(left).changed(fact=fact, properties=edge.properties if edge.is_inferred else {})


def without_telling(edge: Edge, removed: Mapping[str, datetime], left: Sequence[FactSource]) -> Edge:
    """Return a fact without its tellings by `removed` episodes, as the sources `left` tell it.

    Parameters
    ----------
    edge
        The fact.
    removed
        Episode id → when it told the fact.
    left
        Its other episodes.

    Returns
    -------
    Edge
        If a removed episode stated the current beginning or was the first to tell the fact, the beginning is the first
        one that the remaining episodes state, or else the time of their first telling. These keep their beginning:
        events and past facts, unless a removed episode stated it, and facts that have a stated beginning without a
        recorded source, if all remaining tellings are later. A retracted fact stays retracted.
    """
    told, times = edge.told_at, {source.told_at for source in left}
    counted = {each.by for each in edge.beginnings if each.at == edge.valid_from and not edge.valid_from_assumed}
    edge = edge.changed(beginnings=tuple(each for each in edge.beginnings if each.by not in removed))
    is_withdrawn = bool(counted) and counted <= removed.keys()
    is_first = told in removed.values() and told not in times
    if told is None or not times or not (is_first or is_withdrawn):
        return edge
    first = min(times)
    begins = min([first, *(each.at for each in edge.beginnings)])
    earlier = [end for end in edge.ends if end.by and max(end.at, end.told_at) < begins]  # nobody told it by then
    if earlier and not is_retracted(edge):
        edge = edge.without_ends({end.by for end in earlier}, [end for end in edge.ends if end not in earlier])
    lasts = edge.changed(valid_to=None) if is_retracted(edge) else edge
    stated, is_past = lasts.first_stated, edge.kind == "event" or is_over(edge)
    if not is_withdrawn and (is_past or (stated is None and not edge.valid_from_assumed and first > told)):
        return edge.changed(told_at=max(first, told))
    if stated is not None:
        begun = {"valid_from": stated.at, "valid_from_assumed": False, "told_at": stated.told_at}
    else:
        begins = first if lasts.valid_to is None or first < lasts.valid_to else day_before(lasts.valid_to)
        begun = {"valid_from": begins, "valid_from_assumed": True, "told_at": first}
    moved = edge.changed(**{**begun, "told_at": max(first, told) if is_past else begun["told_at"]})
    if not is_retracted(edge):
        said = {bool(end.by) for end in edge.ends if end.at == moved.valid_to}  # not by hand
        was_over = said == {True} and is_over(moved.changed(expired_at=None))
        return moved.changed(expired_at=None, end_reason=None, prior_valid_to=None) if was_over else moved
    ends = (each.changed(at=moved.valid_from) if each.at == edge.valid_from else each for each in edge.ends)
    return moved.changed(valid_to=moved.valid_from, ends=tuple(ends))
