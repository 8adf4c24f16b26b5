"""Supersession: what a new telling of a fact changes in the known versions. Pure functions, without a store.

The versions of a slot (the values of a single-valued relation, or one fact of any other) are derived from tellings:
each says from when a fact holds, when it was told, how sure it is and who told it. The tellings are put in order, and
a version lasts from its first telling until the first later one that ends it. As the order depends on the times of
telling and not on when a telling arrives, late and early arrival give the same versions.

The rules and cases that docstrings name by number are those of docs/concepts/supersession.md; the tests read the cases.
The file has the decisions first, then the versions of a slot that they derive, the rules, and what changes rows.
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
    teller = next(iter(_tellers(new, sources)), None)
    may_change_end = may_end(new.certainty, edge.certainty) and may_overrule(teller, _tellers(edge, sources))
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
    """The versions of a slot, derived from the tellings of its rows and of a new one. Parameters as in `decide`."""

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
        self._ids = {edge.id for edge in known}
        self._rows = {edge.id: edge for edge in known if self._takes_part(edge)}
        self._new, self._now, self._single_valued = new, now, single_valued
        self._sources = sources
        self._compatible = compatible
        self._versions: list[_Version] = []
        self._latest: dict[EdgeKey, _Version] = {}  # of each fact

    def decide(self) -> Decision:
        """Return the rows that the new telling adds or changes."""
        ordered = self._ordered()
        for told in ordered:
            telling = _with_certainty_that_counts(told, self._latest.get(told.key))
            version = self._place(telling)
            if self._single_valued:
                self._end_others(version, telling)
        episode_ids = {telling.source.episode_id for telling in ordered}
        rows = [row for version in self._versions for row in self._written(version, episode_ids)]
        changed = tuple(row for row in rows if row != self._rows.get(row.id))
        holders = (v.edge.id for v in self._versions if any(t.edge is self._new for t in v.tellings))
        return Decision(changed, next(holders, ""))

    # Order of the tellings ------------------------------------------------------------------------

    def _takes_part(self, edge: Edge) -> bool:
        """Return whether a row takes part: it is neither an event nor retracted, nor was it over when it was told.

        A fact that never held only because another one began when it did takes part: that one may begin later now.
        """
        is_outvoted = edge.end_reason == "corrected" and edge.superseded_by in self._ids
        return edge.kind == "state" and not is_over(edge) and (not is_retracted(edge) or is_outvoted)

    def _ordered(self) -> list[_Telling]:
        """Return the tellings in the order in which their facts held (rule 2).

        They are taken as they were told, and each is put behind those that it follows.
        """
        rows = [*self._rows.values()] if self._new is None else [*self._rows.values(), self._new]
        tellings = [telling for row in rows for telling in self._tellings(row)]
        dated = [telling for telling in tellings if not telling.assumed]
        ordered: list[_Telling] = []
        for telling in sorted(tellings, key=lambda t: (t.source.told_at, t.edge.recorded_at, t.edge.id)):
            at = len(ordered)
            while at and not telling.follows(ordered[at - 1], dated):
                at -= 1
            ordered.insert(at, telling)
        return ordered

    def _tellings(self, edge: Edge) -> list[_Telling]:
        """Return the tellings of a row: the one that began it, and one for each further episode."""
        known = {s.episode_id: s for s in self._sources.get(edge.id, ()) if s.episode_id in edge.episode_ids}
        told, assumed = _first_told(edge, known.values())
        first = next((source for source in known.values() if source.told_at == told), None)
        further = [source for source in known.values() if source is not first]
        if first is None:  # of a correction, which counts as told when the wrong fact was, before its episodes
            earliest = min(further, key=lambda source: source.told_at, default=None)
            first = FactSource("" if earliest is None else earliest.episode_id, told)
        end = end_apart_from(edge, self._ids)
        begins, key, certainty = told if assumed else edge.valid_from, edge.key, edge.certainty
        return [
            _Telling(edge, key, first, begins, certainty, assumed=assumed, is_first=True),
            *(_Telling(edge, key, source, _repeated_at(edge, end, source.told_at), certainty) for source in further),
        ]

    # Versions -------------------------------------------------------------------------------------

    def _place(self, telling: _Telling) -> _Version:
        """Return the version that a telling confirms or begins.

        "I live in Berlin" confirms the version of Berlin that holds. It begins one if none holds, and also, from then
        on, if what holds is only hearsay.
        """
        latest = self._latest.get(telling.key)
        if latest is None or not latest.holds_at(telling):
            return self._begin(telling)
        if latest.is_replaced_by(telling):
            version = self._begin(telling)
            latest.closed_by = _Closing(version, telling)
            return version
        return self._confirm(latest, telling)

    def _end_others(self, version: _Version, telling: _Telling) -> None:
        """End the versions of other facts that hold at a telling of `version` and that it may end."""
        for other in self._latest.values():
            ends = other is not version and other.holds_at(telling) and other.is_ended_by(telling)
            if ends and not hold_together(self._compatible, other.edge.key, telling.key, telling.begins):
                other.closed_by = _Closing(version, telling)

    def _begin(self, telling: _Telling) -> _Version:
        """Begin a version with a telling: of a stored row, of the new one, or of a row that had ended before.

        The last one gets a row of its own: Berlin, told in January and in March, with Rome in between.
        """
        edge = telling.edge
        if self._begins_stored(telling):
            end = end_apart_from(edge, self._ids)
        elif edge is self._new:
            end = edge.valid_to
        else:
            ends = tuple(end for end in edge.ends if end.by == telling.source.episode_id)
            edge, end = _new_version(edge, self._now, ends=ends), end_of(ends)
        version = _Version(edge, [telling], end, edge.ends)
        self._latest[telling.key] = version
        self._versions.append(version)
        return version

    def _confirm(self, version: _Version, telling: _Telling) -> _Version:
        """Add a telling, with the end that it states, to a version that holds then."""
        edge = telling.edge
        if self._begins_stored(telling):
            self._unite(version, edge)
        elif edge is self._new and edge.valid_to is not None and version.yields_to(telling):
            version.limit(edge.ends, edge.valid_to)
        version.tellings.append(telling)
        return version

    def _unite(self, version: _Version, row: Edge) -> None:
        """Make a stored row a part of a version: its row if it has no stored one yet, else one that it absorbs.

        The ends of a row of another certainty, and those that their tellers may not state, don't count.
        """
        as_sure = row.certainty == version.edge.certainty
        if as_sure and not self._is_stored(version.edge):
            version.edge = row
        else:
            version.absorbed.append(row)
        if as_sure:
            sources = self._sources.get(row.id, ())
            tellers: dict[str, Teller | None] = {source.episode_id: source.teller for source in sources}
            refused = {i for i, teller in tellers.items() if not may_overrule(teller, version.tellers)}
            ends = tuple(end for end in row.ends if end.by not in refused)
            version.limit(ends, end_apart_from(row, self._ids) if ends == row.ends else end_of(ends))

    def _begins_stored(self, telling: _Telling) -> bool:
        """Return whether a telling is the one that began a stored row."""
        return telling.is_first and self._is_stored(telling.edge)

    def _is_stored(self, edge: Edge) -> bool:
        return edge.id in self._rows

    # Rows -----------------------------------------------------------------------------------------

    def _written(self, version: _Version, episode_ids: Collection[str]) -> list[Edge]:
        """Return the row of a version, and those that it absorbed as retracted; `episode_ids` are those of the slot."""
        edge, begin = version.edge, version.begin
        fields = {
            "confidence": max(telling.edge.confidence for telling in version.tellings),
            "episode_ids": self._episodes(version, episode_ids),
            "ends": tuple(dict.fromkeys(version.ends)),
            **self._times(version),
        }
        if begin.edge is not edge or not begin.is_first:
            fields.update(valid_from_assumed=begin.assumed, told_at=begin.source.told_at)
        return [edge.changed(**fields), *(retracted(row, self._now, "replaced", edge.id) for row in version.absorbed)]

    def _episodes(self, version: _Version, episode_ids: Collection[str]) -> tuple[str, ...]:
        """Return the episodes that state a version; one that told another version of its row belongs to that one."""
        told = {telling.source.episode_id for telling in version.tellings}
        told.update(i for row in version.absorbed for i in row.episode_ids)
        episodes = [i for i in version.edge.episode_ids if i in told or i not in episode_ids]
        for row in (telling.edge for telling in version.tellings):
            if row is not version.edge:
                episodes += [i for i in row.episode_ids if i in told or row is self._new]
        return tuple(dict.fromkeys(episodes))

    def _times(self, version: _Version) -> dict[str, Any]:
        """Return when a version holds, and why it ends; nothing if its row says so already."""
        edge = version.edge
        begins, end = _interval(version.begin, self._end_of(version))
        if (begins, end.at, end.by) == (edge.valid_from, edge.valid_to, edge.superseded_by):
            return {}
        expired = self._now if end.at is not None and self._is_stored(edge) else None
        if end.by is None and end.at == edge.valid_to:
            expired = edge.expired_at
        return {
            "valid_from": begins,
            "valid_to": end.at,
            "expired_at": expired,
            "superseded_by": end.by,
            "end_reason": end.reason or (None if end.at is None or expired is None else "over"),
            "prior_valid_to": end.prior,
        }

    def _end_of(self, version: _Version) -> _VersionEnd:
        """Return how a version ends: where the next one begins, as its row says, or as stated (rule 3)."""
        edge, end, closing = version.edge, version.end, version.closed_by
        if closing is not None and (end is None or closing.at < end):
            return _VersionEnd(closing.at, "replaced", closing.successor.edge.id, prior=end)
        if edge.superseded_by not in self._ids and end == edge.valid_to:  # a fact of another slot ended it, or none did
            return _VersionEnd(end, edge.end_reason, edge.superseded_by, edge.prior_valid_to)
        return _VersionEnd(end, edge.end_reason if edge.superseded_by is None else None)


class _VersionEnd(NamedTuple):
    """When and why a version ends, by which fact, and when it ends apart from that; `at` is None while it holds."""

    at: datetime | None
    reason: str | None
    by: str | None = None
    prior: datetime | None = None


class _Closing(NamedTuple):
    """The version and the telling of it that end another version."""

    successor: _Version
    telling: _Telling

    @property
    def at(self) -> datetime:
        """When the successor begins or, if it held before the other one, when it was told again."""
        is_first = self.successor.tellings[0] is self.telling
        return self.successor.begin.begins if is_first else self.telling.begins


@dataclass(slots=True)
class _Version:
    """A run of tellings of one fact.

    `edge` is its row, `absorbed` are stored rows that become a part of it. `ends` are its stated ends, `end` is the one
    that counts.
    """

    edge: Edge
    tellings: list[_Telling]
    end: datetime | None
    ends: tuple[EdgeEnd, ...]
    closed_by: _Closing | None = None
    absorbed: list[Edge] = field(default_factory=list[Edge])

    @property
    def begin(self) -> _Telling:
        """The telling that says when the fact began: the first with a stated beginning, if there is one (rule 1)."""
        tellings = [t for t in self.tellings if t.certainty == self.edge.certainty]
        assumed = min((t for t in tellings if t.assumed), key=lambda t: t.begins, default=None)
        stated = min((t for t in tellings if not t.assumed), key=lambda t: t.source.told_at, default=None)
        return stated or assumed or self.tellings[0]

    @property
    def tellers(self) -> list[Teller | None]:
        """Who told it, one for each telling."""
        return [telling.source.teller for telling in self.tellings]

    def limit(self, ends: tuple[EdgeEnd, ...], end: datetime | None) -> None:
        """Apply the ends that another telling states; `end` is the one that counts among them."""
        self.ends += ends
        self.end = end_of(self.ends, self.end, end)

    def holds_at(self, telling: _Telling) -> bool:
        """Return whether the fact may still hold at a telling."""
        return self.closed_by is None and (self.end is None or telling.begins < self.end)

    def is_ended_by(self, telling: _Telling) -> bool:
        """Return whether a telling of another target ends this fact (rules 4 and 5)."""
        other_target = self.edge.target_id != telling.edge.target_id
        return other_target and may_end(telling.certainty, self.edge.certainty) and self.yields_to(telling)

    def is_replaced_by(self, telling: _Telling) -> bool:
        """Return whether a telling of the same fact begins a new version: it is surer, or the first not external.

        What a document stated as certain is only a plan once somebody says so.
        """
        if may_end(telling.certainty, self.edge.certainty, same_fact=True):
            return True
        differs = telling.certainty != self.edge.certainty and telling.source.teller != "external"
        return differs and may_overrule("external", self.tellers)

    def yields_to(self, telling: _Telling) -> bool:
        """Return whether the teller may end this fact (rule 5)."""
        return may_overrule(telling.source.teller, self.tellers)


@dataclass(frozen=True, slots=True)
class _Telling:
    """One telling of a fact: who told it and when, and from when it says that the fact holds.

    `edge` is the row that it is of, and `is_first` says whether it began that row. The beginning is `assumed` if none
    was told.
    """

    edge: Edge
    key: EdgeKey
    source: FactSource
    begins: datetime
    certainty: Certainty
    assumed: bool = True
    is_first: bool = False

    def follows(self, other: _Telling, dated: Iterable[_Telling]) -> bool:
        """Return whether this telling, told no earlier, comes after another one; `dated` state beginnings (rule 2).

        "In Berlin since January", told in March, comes after Rome, told in February without a beginning, and before
        "in Rome since February".
        """
        begins = other.stated_beginning(dated)
        return begins is None or self.begins >= begins or (not self.assumed and _same_day(self.begins, begins))

    def stated_beginning(self, dated: Iterable[_Telling]) -> datetime | None:
        """Return the stated beginning by which a telling is ordered; None if whatever was told later comes after it.

        A repetition without a beginning takes the last one that was stated for its fact.
        """
        if not self.assumed:
            return self.begins
        stated = (t.begins for t in dated if t.key == self.key and t.begins <= self.source.told_at)
        return max(stated, default=None)


def _first_told(edge: Edge, sources: Collection[FactSource]) -> tuple[datetime, bool]:
    """Return when a row was told first, and whether its beginning is assumed (rule 1).

    Rows of older versions say neither: their beginning is assumed if it is when their first episode occurred.
    """
    if edge.told_at is not None or not sources:
        return told_at(edge), edge.valid_from_assumed
    told = min(source.told_at for source in sources)
    return told, told == edge.valid_from


def _repeated_at(edge: Edge, end: datetime | None, told: datetime) -> datetime:
    """Return when a fact held that was told again: then or, if its end was known by then, just before the end.

    "I used to live in Oslo", told after it was over, takes no end back (cases 130 and 131).
    """
    end_told = min((each.told_at for each in edge.ends if each.at == end), default=None)
    if end is None or end_told is None or told < max(end, end_told) or end <= edge.valid_from:
        return told
    return end - TICK


def _with_certainty_that_counts(telling: _Telling, latest: _Version | None) -> _Telling:
    """Return a telling as sure as it counts: an external one raises no certainty that others stated (rule 5).

    A document that says "Maya lives in Tokyo" confirms a plan of hers, and doesn't make it come true (case 84).
    """
    if telling.source.teller != "external" or latest is None or not latest.holds_at(telling):
        return telling
    raises = may_end(telling.certainty, latest.edge.certainty, same_fact=True) and not latest.yields_to(telling)
    return replace(telling, certainty=latest.edge.certainty) if raises else telling


def _interval(begin: _Telling, end: _VersionEnd) -> tuple[datetime, _VersionEnd]:
    """Return when a version began and ended, if its end may lie before the beginning that a telling gives (rule 3).

    If another fact ends it there, it had begun on the day before if its beginning is assumed (case 4). Told within a
    day after its beginning, it held until it was told (case 9); otherwise it never held (case 24).
    """
    if end.at is None or begin.begins < end.at:
        return begin.begins, end
    if end.by is None:
        return end.at, end
    if begin.assumed:
        return day_before(end.at), end
    if begin.begins < begin.source.told_at <= day_after(begin.begins):
        return begin.begins, end._replace(at=begin.source.told_at)
    return begin.begins, end._replace(at=begin.begins, reason="corrected")


# Rules --------------------------------------------------------------------------------------------


def may_overrule(teller: Teller | None, tellers: Collection[Teller | None]) -> bool:
    """Return whether a teller may end a fact that others told (rule 5).

    A document ends only what documents alone told, and what Tom says of Maya doesn't end what she said herself.
    """
    if teller == "external":
        return bool(tellers) and set(tellers) == {"external"}
    return teller != "other" or "subject" not in tellers


def _tellers(edge: Edge, sources: Sources) -> list[Teller | None]:
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
    tellers = _tellers(edge, sources)
    told = sorted(sources.get(by.id, ()), key=lambda source: source.told_at)
    allowed = [source for source in told if may_overrule(source.teller, tellers)]
    if by.valid_from < edge.valid_from and not _same_day(by.valid_from, edge.valid_from):
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


def _same_day(one: datetime, other: datetime) -> bool:
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
        elif _same_day(edge.valid_from, at):
            at = told_at(edge)
        else:
            return None
    stated = EdgeEnd(by=successor, at=max(at, edge.valid_from), told_at=told_at(by))
    return ended(with_end(edge, stated), at, now, "replaced", successor)


def reopened(edge: Edge, at: datetime, sources: Sequence[FactSource], now: datetime) -> Edge | None:
    """Return the version that begins with the first telling of a fact after its end was told; None if there is none."""
    told = sorted((s for s in sources if s.episode_id in edge.episode_ids), key=lambda source: source.told_at)
    later = [source for source in told if source.told_at > at]
    if not later or len(later) == len(edge.episode_ids):
        return None
    begins, episodes = later[0].told_at, tuple(source.episode_id for source in later)
    return _new_version(edge, now, valid_from=begins, valid_from_assumed=True, told_at=begins, episode_ids=episodes)


def _new_version(edge: Edge, now: datetime, **fields: Any) -> Edge:
    """Return a further version of a fact as a new row that differs in these fields."""
    fresh = {"id": new_id(), "recorded_at": now, "retrieval_count": 0.0, "last_retrieved_at": None}
    return edge.changed(**fresh, **fields)


def supported(edge: Edge, new: Edge) -> Edge:
    """Return a fact that another telling confirms: with the higher confidence, and episodes and ends of both."""
    return edge.changed(
        confidence=max(edge.confidence, new.confidence),
        episode_ids=tuple(dict.fromkeys(edge.episode_ids + new.episode_ids)),
        ends=tuple(dict.fromkeys(edge.ends + new.ends)),
    )


def begun_with(edge: Edge, other: Edge) -> Edge:
    """Return a fact as begun when it or another row of it says: the stated beginning told first, or else the first."""
    stated = [row for row in (edge, other) if not row.valid_from_assumed]
    first = min(stated, key=told_at) if stated else min(edge, other, key=lambda row: row.valid_from)
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
    told, times = edge.told_at, {source.told_at for source in left}
    if told is None or told not in removed or not times or told in times:
        return edge
    first = min(times)
    if edge.kind == "event" or is_over(edge):
        return edge.changed(told_at=max(first, told))
    if not edge.valid_from_assumed and first > told:
        return edge.changed(told_at=first)
    begins = first if edge.valid_to is None or first < edge.valid_to else day_before(edge.valid_to)
    return edge.changed(told_at=first, valid_from=begins, valid_from_assumed=True)
