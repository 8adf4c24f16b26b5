"""Supersession: what a new telling of a fact changes in the known versions. Pure functions, without a store.

The versions of a slot (the values of a single-valued relation, or one fact of any other) are derived from tellings:
each says from when a fact holds, when it was told, how sure it is and who told it. The tellings are
put in order, and a version lasts from its first telling until the first later one that ends it. As the order depends on
the times of telling and not on when a telling arrives, late and early arrival give the same versions.
docs/concepts/supersession.md has the rules and a table of cases, which the tests read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Any, Literal, NamedTuple

from graphmem.models import (
    Certainty,
    Edge,
    EdgeEnd,
    EdgeKey,
    end_of,
    ended,
    is_retracted,
    may_end,
    new_id,
    retracted,
    with_end,
)
from graphmem.models.base import END_OF_TIME, START_OF_TIME, TICK
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


@dataclass(frozen=True, slots=True)
class Decision:
    """Changes by a telling: `edges`, the new and changed rows, and `holder`, the id of the row that represents it."""

    edges: tuple[Edge, ...]
    holder: str


# Decisions ----------------------------------------------------------------------------------------


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
        return _decide_event([edge for edge in same if edge.kind == "event"], new)
    if not known:
        return Decision((new,), new.id)
    states = [edge for edge in same if edge.kind == "state"]
    if is_over(new):
        return _decide_past(states, new, sources, now)
    for edge in states:
        if (confirmed := _confirmed_past(edge, new)) is not None:
            return Decision((confirmed,), edge.id)
    return _Slot(known, new, sources, single_valued=single_valued, now=now, compatible=compatible or {}).decide()


def _decide_event(events: Sequence[Edge], new: Edge) -> Decision:
    """Store an event as an interval of at least a day, or confirm the one of `events` that overlaps it (rule 6).

    "Paris, on 8 January", told twice, is one event; told of 8 February, it is another one.
    """
    day = day_after(new.valid_from)
    until = day if new.valid_to is None else max(day, new.valid_to)
    for edge in events:
        if edge.valid_to is not None and edge.valid_from < until and new.valid_from < edge.valid_to:
            return Decision((supported(edge, new),), edge.id)
    return Decision((new.changed(valid_to=until),), new.id)


def _decide_past(states: Sequence[Edge], new: Edge, sources: Sources, now: datetime) -> Decision:
    """Store a fact that was over when it was told, or change the one of `states` that it is about (rule 7)."""
    for edge in states:
        if (changed := _told_as_past(edge, new, sources, now)) is not None:
            return Decision((changed,), edge.id)
    return Decision((new,), new.id)


def _told_as_past(edge: Edge, new: Edge, sources: Sources, now: datetime) -> Edge | None:
    """Return a version as changed by a telling `new` that its fact is over; None if the telling isn't about it.

    An open version ends, a planned end moves, and a version that overlaps the past one is confirmed. "I worked at
    Aalto until May" ends the job at Aalto that was open, but not one that began in June.
    """
    end = new.valid_to or told_at(new)
    if edge.valid_from >= end:
        return None
    may_change_end = may_end(new.certainty, edge.certainty) and may_overrule(
        next(iter(_tellers(new, sources)), None), _tellers(edge, sources)
    )
    confirmed = supported(edge, new)
    if edge.valid_to is None:
        return ended(confirmed, end, now, "over") if may_change_end else None
    held_again = not new.valid_from_assumed and new.valid_from >= edge.valid_to
    if may_change_end and is_moved(edge, confirmed.ends) and not held_again:
        return begun_with(ended(confirmed, end, now, "over"), new)
    return confirmed if new.valid_from < edge.valid_to else None


def _confirmed_past(edge: Edge, new: Edge) -> Edge | None:
    """Return a past version as confirmed by a telling of a time before its end; None if the telling isn't about it.

    "I worked at Aalto until May" is confirmed by "I work at Aalto", told in March, which arrives later. As that was
    told sooner, it also replaces an assumed beginning.
    """
    if edge.valid_to is None or not is_over(edge) or new.valid_from >= edge.valid_to:
        return None
    if edge.valid_from <= new.valid_from:
        return supported(edge, new)
    if edge.valid_from_assumed and told_at(new) < told_at(edge):
        begun = {"valid_from": new.valid_from, "valid_from_assumed": new.valid_from_assumed}
        return supported(edge, new).changed(**begun)
    return None


def settle(
    known: Iterable[Edge],
    sources: Sources,
    *,
    single_valued: bool = True,
    now: datetime,
    compatible: Compatible | None = None,
) -> tuple[Edge, ...]:
    """Derive versions again, without a new telling; return the rows that change. Parameters as in `decide`."""
    slot = _Slot(list(known), None, sources, single_valued=single_valued, now=now, compatible=compatible or {})
    return slot.decide().edges


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


# Versions of a slot -------------------------------------------------------------------------------


class _Slot:
    """The versions of a slot, derived from the tellings of its rows and a new one."""

    def __init__(
        self,
        known: Sequence[Edge],
        new: Edge | None,
        sources: Sources,
        *,
        single_valued: bool,
        now: datetime,
        compatible: Compatible,
    ) -> None:
        self._ids = {e.id for e in known}
        self._rows = {e.id: e for e in known if e.kind == "state" and (not is_retracted(e) or self._is_outvoted(e))}
        self._new, self._now, self._single = new, now, single_valued
        self._sources = sources
        self._compatible = compatible
        self._versions: list[_Version] = []

    def decide(self) -> Decision:
        """Return the rows that the new telling adds or changes."""
        open_versions: dict[EdgeKey, _Version] = {}
        for told in self._ordered():
            telling = _capped(told, open_versions.get(told.key))
            version = self._place(telling, open_versions)
            for other in open_versions.values() if self._single else ():
                ends = other is not version and other.is_open_for(telling) and other.is_ended_by(telling)
                if ends and not hold_together(self._compatible, other.edge.key, telling.key, telling.begins):
                    other.closed_by = (version, telling)
        rows = [row for version in self._versions for row in self._written(version)]
        held = (v.edge.id for v in self._versions if any(t.of is self._new for t in v.tellings))
        return Decision(tuple(row for row in rows if row != self._rows.get(row.id)), next(held, ""))

    def _is_outvoted(self, edge: Edge) -> bool:
        """Return whether a fact never held only because another one began when it did."""
        return edge.end_reason == "corrected" and edge.superseded_by in self._ids

    def _ordered(self) -> list[_Telling]:
        """Return the tellings in the order in which their facts held; each is put behind those that it follows."""
        tellings = [t for edge in self._rows.values() if not is_over(edge) for t in self._tellings(edge)]
        tellings += self._tellings(self._new) if self._new is not None else []
        dated = [t for t in tellings if not t.assumed]
        ordered: list[_Telling] = []
        for telling in sorted(tellings, key=lambda t: (t.told_at, t.of.recorded_at, t.of.id)):
            at = len(ordered)
            while at and not telling.follows(ordered[at - 1], dated):
                at -= 1
            ordered.insert(at, telling)
        return ordered

    def _tellings(self, edge: Edge) -> list[_Telling]:
        """Return the tellings of a row: the one that began it, and one for each further episode."""
        known = {s.episode_id: s for s in self._sources.get(edge.id, ()) if s.episode_id in edge.episode_ids}
        told, assumed = edge.told_at, edge.valid_from_assumed
        if told is None and known:  # rows of older versions don't say when they were told
            told = min(s.told_at for s in known.values())
            assumed = told == edge.valid_from
        told = told or edge.recorded_at

        def telling(source: FactSource | None, row: Edge | None, begins: datetime, told: datetime) -> _Telling:
            teller = None if source is None else source.teller
            of = earliest if source is None else source.episode_id
            return _Telling(edge.key, edge.certainty, begins, assumed or row is None, told, teller, edge, row, of)

        # a correction tells what held from before it was told
        earliest = min(known, key=lambda i: known[i].told_at, default=None)
        first = next((s for s in known.values() if s.told_at == told), None)
        end = end_apart_from(edge, self._ids)
        end_told = min((each.told_at for each in edge.ends if each.at == end), default=None)

        def held_at(source: FactSource) -> datetime:
            """Return a time at which the fact held that a source tells: before its end if that was known by then."""
            if end is None or end_told is None or source.told_at < max(end, end_told) or end <= edge.valid_from:
                return source.told_at
            return end - TICK

        further = (telling(s, None, held_at(s), s.told_at) for s in known.values() if s is not first)
        return [telling(first, edge, told if assumed else edge.valid_from, told), *further]

    def _place(self, telling: _Telling, open_versions: dict[EdgeKey, _Version]) -> _Version:
        """Add a telling to the version of its fact that holds, or begin one."""
        current = open_versions.get(telling.key)
        row = telling.row if telling.row is not None and telling.row.id in self._rows else None
        if current is not None and current.is_open_for(telling) and not current.is_replaced_by(telling):
            if row is not None:
                as_sure = row.certainty == current.edge.certainty
                if as_sure and not current.stored:
                    current.edge, current.stored = row, True
                else:
                    current.absorbed.append(row)
                if as_sure:
                    ends = tuple(end for end in row.ends if self._may_limit(end, row, current))
                    current.limit(ends, end_apart_from(row, self._ids) if ends == row.ends else end_of(ends))
            elif telling.of is self._new and current.yields_to(telling) and (end := telling.of.valid_to):
                current.limit(telling.of.ends, end)
            current.tellings.append(telling)
            return current
        version = self._begin(telling, row)
        if current is not None and current.is_open_for(telling):
            current.closed_by = (version, telling)
        open_versions[telling.key] = version
        self._versions.append(version)
        return version

    def _may_limit(self, end: EdgeEnd, row: Edge, version: _Version) -> bool:
        """Return whether who stated an end of a row may end a version; an end that isn't of its sources was allowed."""
        tellers: dict[str, Teller | None] = {
            source.episode_id: source.teller for source in self._sources.get(row.id, ())
        }
        return end.by not in tellers or may_overrule(tellers[end.by], [t.teller for t in version.tellings])

    def _begin(self, telling: _Telling, row: Edge | None) -> _Version:
        edge, end = row, None
        if edge is not None:
            end = end_apart_from(edge, self._ids)
        elif telling.of is self._new:
            edge, end = telling.of, telling.of.valid_to
        else:  # a further telling of a row that something ended in between
            fresh = {"id": new_id(), "recorded_at": self._now, "retrieval_count": 0.0, "last_retrieved_at": None}
            ends = tuple(each for each in telling.of.ends if each.by == telling.episode_id)
            edge, end = telling.of.changed(**fresh, ends=ends), end_of(ends)
        return _Version(telling, edge, row is not None, [telling], end, edge.ends)

    def _written(self, version: _Version) -> list[Edge]:
        """Return the row of a version, and those that it replaces."""
        edge, begin = version.edge, version.begin
        told = {t.episode_id for t in version.tellings} | {i for row in version.absorbed for i in row.episode_ids}
        elsewhere = {t.episode_id for other in self._versions if other is not version for t in other.tellings}
        episodes = [i for i in edge.episode_ids if i in told or i not in elsewhere]
        for telling in version.tellings:
            if telling.of is not edge:
                episodes += [i for i in telling.of.episode_ids if i in told or telling.of is self._new]
        fields = {
            "confidence": max(t.of.confidence for t in version.tellings),
            "episode_ids": tuple(dict.fromkeys(episodes)),
            "ends": tuple(dict.fromkeys(version.ends)),
            **self._times(version),
        }
        if begin.of is not edge or begin.row is None:
            fields.update(valid_from_assumed=begin.assumed, told_at=begin.told_at)
        edge = edge.changed(**fields)
        return [edge, *(retracted(row, self._now, "replaced", edge.id) for row in version.absorbed)]

    def _times(self, version: _Version) -> dict[str, Any]:
        """Return when a version holds, and why it ends."""
        edge, begin = version.edge, version.begin
        begins, end, by = begin.begins, version.end, None
        reason, prior = edge.end_reason if edge.superseded_by is None else None, None
        if edge.superseded_by not in self._ids and end == edge.valid_to:  # a fact of another slot ended it, or none did
            by, reason, prior = edge.superseded_by, edge.end_reason, edge.prior_valid_to
        if version.closed_by is not None:
            successor, telling = version.closed_by
            starts = successor.begin.begins if successor.first is telling else telling.begins
            if end is None or starts < end:
                prior, end, by, reason = end, starts, successor.edge.id, "replaced"
        if end is not None and end <= begins and by is not None:
            if begin.assumed:
                begins = day_before(end)  # when it began isn't known, only that it had
            elif begins < begin.told_at <= day_after(begins):
                end = begin.told_at
            else:
                end, reason = begins, "corrected"
        elif end is not None:
            begins = min(begins, end)
        if (begins, end, by) == (edge.valid_from, edge.valid_to, edge.superseded_by):
            return {}
        expired = None if end is None or not version.stored else self._now
        if by is None and end == edge.valid_to:
            expired = edge.expired_at
        return {
            "valid_from": begins,
            "valid_to": end,
            "expired_at": expired,
            "superseded_by": by,
            "end_reason": reason or (None if end is None or expired is None else "over"),
            "prior_valid_to": prior,
        }


@dataclass(slots=True)
class _Version:
    """A run of tellings of one fact, and its stated ends; `closed_by` is the version and the telling that end it."""

    first: _Telling
    edge: Edge
    stored: bool
    tellings: list[_Telling]
    end: datetime | None = None
    ends: tuple[EdgeEnd, ...] = ()
    closed_by: tuple[_Version, _Telling] | None = None
    absorbed: list[Edge] = field(default_factory=list[Edge])

    @property
    def begin(self) -> _Telling:
        """The telling that says when the fact began: the first one with a stated beginning, if there is one."""
        tellings = [t for t in self.tellings if t.certainty == self.edge.certainty]
        assumed = min((t for t in tellings if t.assumed), key=lambda t: t.begins, default=None)
        stated = min((t for t in tellings if not t.assumed), key=lambda t: t.told_at, default=None)
        return stated or assumed or self.first

    def limit(self, ends: tuple[EdgeEnd, ...], end: datetime | None) -> None:
        """Apply the ends that another telling states; `end` is the one that counts among them."""
        self.ends += ends
        self.end = end_of(self.ends, self.end, end)

    def is_open_for(self, telling: _Telling) -> bool:
        """Return whether the fact may still hold at a telling."""
        return self.closed_by is None and (self.end is None or telling.begins < self.end)

    def is_ended_by(self, telling: _Telling) -> bool:
        """Return whether a telling of another target ends this fact."""
        if self.edge.target_id == telling.of.target_id or not may_end(telling.certainty, self.edge.certainty):
            return False
        return self.yields_to(telling)

    def is_replaced_by(self, telling: _Telling) -> bool:
        """Return whether a telling of the same fact begins a new version: it is surer, or the first not external."""
        if may_end(telling.certainty, self.edge.certainty, same_fact=True):
            return True
        differs = telling.certainty != self.edge.certainty and telling.teller != "external"
        return differs and may_overrule("external", [t.teller for t in self.tellings])

    def yields_to(self, telling: _Telling) -> bool:
        """Return whether the teller may end this fact."""
        return may_overrule(telling.teller, [t.teller for t in self.tellings])


def _capped(telling: _Telling, current: _Version | None) -> _Telling:
    """Return a telling with the certainty that counts: an external one raises none that somebody else told."""
    if telling.teller != "external" or current is None or not current.is_open_for(telling):
        return telling
    if current.yields_to(telling) or not may_end(telling.certainty, current.edge.certainty, same_fact=True):
        return telling
    return replace(telling, certainty=current.edge.certainty)


@dataclass(frozen=True, slots=True)
class _Telling:
    """One telling: `row` is the row that it began, None for a further telling of `of`."""

    key: EdgeKey
    certainty: Certainty
    begins: datetime
    assumed: bool
    told_at: datetime
    teller: Teller | None
    of: Edge
    row: Edge | None
    episode_id: str | None = None

    def follows(self, other: _Telling, dated: Iterable[_Telling]) -> bool:
        """Return whether this telling, told no earlier, comes after another.

        An assumed beginning never beats it. A repetition counts with the beginning that was stated for its fact.
        """
        begins = other.begins
        if other.assumed:
            stated = [t.begins for t in dated if t.key == other.key and t.begins <= other.told_at]
            if not stated:
                return True
            begins = max(stated)
        return self.begins >= begins or (not self.assumed and _same_day(self.begins, begins))


# Rules --------------------------------------------------------------------------------------------


def may_overrule(teller: Teller | None, tellers: Collection[Teller | None]) -> bool:
    """Return whether a telling may end a fact that others told: see the rule of speakers in the documentation."""
    if teller == "external":
        return bool(tellers) and set(tellers) == {"external"}
    return teller != "other" or "subject" not in tellers


def _tellers(edge: Edge, sources: Sources) -> list[Teller | None]:
    """Return who told a fact, one for each known source."""
    return [source.teller for source in sources.get(edge.id, ())]


def hold_together(compatible: Compatible, key: EdgeKey, other: EdgeKey, at: datetime) -> bool:
    """Return whether two facts of a slot hold together at a time."""
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
    tellers = _tellers(edge, sources)
    told = sorted(sources.get(by.id, ()), key=lambda source: source.told_at)
    allowed = [source for source in told if may_overrule(source.teller, tellers)]
    if by.valid_from < edge.valid_from and not _same_day(by.valid_from, edge.valid_from):
        return next((source.told_at for source in allowed if source.told_at > edge.valid_from), None)
    if allowed[:1] == told[:1]:
        return by.valid_from
    return max(by.valid_from, allowed[0].told_at) if allowed else None


def is_over(edge: Edge) -> bool:
    """Return whether a fact was told when it was over already; such a fact ends nothing."""
    ends_by_itself = edge.valid_to is not None and edge.expired_at is None and edge.superseded_by is None
    return ends_by_itself and edge.valid_to is not None and edge.valid_to <= told_at(edge)


def is_moved(edge: Edge, ends: Collection[EdgeEnd]) -> bool:
    """Return whether a fact that has ended would end later by these ends: see `end_of`."""
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


def _same_day(one: datetime, other: datetime) -> bool:
    """Return whether two beginnings are the same day, if one of them is only a date."""
    return time() in (one.time(), other.time()) and one.date() == other.date()


def day_before(moment: datetime) -> datetime:
    """Return a time one day earlier, or the first one of the calendar."""
    return moment - DAY if moment - START_OF_TIME > DAY else START_OF_TIME


def day_after(moment: datetime) -> datetime:
    """Return a time one day later, or the last one of the calendar."""
    return moment + DAY if END_OF_TIME - moment > DAY else END_OF_TIME


# Changed rows -------------------------------------------------------------------------------------


def superseded(edge: Edge, by: Edge, successor: str, now: datetime) -> Edge | None:
    """Return a fact as ended by another one that contradicts it; None if it began or was told later than that."""
    at = by.valid_from
    if edge.valid_to is not None and edge.valid_to <= at:
        return None
    if edge.valid_from > at:
        if told_at(edge) > told_at(by):
            return None
        if edge.valid_from_assumed:
            edge = edge.changed(valid_from=day_before(at))
        elif _same_day(edge.valid_from, at):
            at = told_at(edge)
        else:
            return None
    stated = EdgeEnd(by=successor, at=max(at, edge.valid_from), told_at=told_at(by))
    return ended(with_end(edge, stated), at, now, "replaced", successor)


def reopened(edge: Edge, at: datetime, sources: Sequence[FactSource], now: datetime) -> Edge | None:
    """Return the version that begins with the first telling of a fact after its end was told; None if there is none."""
    later = sorted((s for s in sources if s.told_at > at and s.episode_id in edge.episode_ids), key=lambda s: s.told_at)
    if not later or len(later) == len(edge.episode_ids):
        return None
    begins = later[0].told_at
    told = {"valid_from": begins, "valid_from_assumed": True, "told_at": begins}
    episodes = tuple(s.episode_id for s in later)
    fresh = {"id": new_id(), "recorded_at": now, "retrieval_count": 0.0, "last_retrieved_at": None}
    return edge.changed(**told, **fresh, episode_ids=episodes)


def supported(edge: Edge, new: Edge) -> Edge:
    """Return a fact that another telling confirms: with the higher confidence, and episodes and ends of both."""
    return edge.changed(
        confidence=max(edge.confidence, new.confidence),
        episode_ids=tuple(dict.fromkeys(edge.episode_ids + new.episode_ids)),
        ends=tuple(dict.fromkeys(edge.ends + new.ends)),
    )


def begun_with(edge: Edge, other: Edge) -> Edge:
    """Return a fact as begun when it or another row of it says: the stated beginning told first, or else the first."""
    first = min(
        (edge, other), key=lambda e: (e.valid_from_assumed, e.valid_from if e.valid_from_assumed else told_at(e))
    )
    return with_begin_of(edge, first)


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
        return edge.changed(episode_ids=left)
    fact = plain_fact(name_of(edge.source_id), edge.relation, name_of(edge.target_id))
    return edge.changed(episode_ids=left, fact=fact, properties=edge.properties if edge.is_inferred else {})


def without_telling(edge: Edge, removed: Collection[datetime], left: Sequence[FactSource]) -> Edge:
    """Return a fact without its tellings at the `removed` times, as the sources `left` tell it.

    If it counted as told first by a removed one, it is told first by the first of the others, and begins then if its
    beginning was assumed, or stated by a later telling than that. A beginning that the first one stated stays.
    """
    times, told = {source.told_at for source in left}, edge.told_at
    if told is None or told not in removed or not times or told in times:
        return edge
    first = min(times)
    if edge.kind == "event" or is_over(edge):
        return edge.changed(told_at=max(first, told))
    if not edge.valid_from_assumed and first > told:
        return edge.changed(told_at=first)
    begins = first if edge.valid_to is None or first < edge.valid_to else day_before(edge.valid_to)
    return edge.changed(told_at=first, valid_from=begins, valid_from_assumed=True)
