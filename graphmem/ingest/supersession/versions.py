"""Tellings of a fact and its versions: when each holds, and what ends it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from graphmem.ingest.supersession.rules import (
    FactSource,
    Teller,
    day_after,
    day_before,
    end_apart_from,
    may_overrule,
    same_day,
    told_at,
)
from graphmem.models import Certainty, Edge, EdgeEnd, end_of, may_end
from graphmem.models.base import TICK


@dataclass(frozen=True, slots=True)
class Telling:
    """One telling of a fact: who told it and when, and from when it says that the fact holds.

    `edge` is the row that it is of, and `is_first` says whether it began that row. The beginning is `assumed` if none
    was told.
    """

    edge: Edge
    source: FactSource
    begins: datetime
    certainty: Certainty
    assumed: bool = True
    is_first: bool = False

    def follows(self, other: Telling, dated: Iterable[Telling]) -> bool:
        """Return whether this telling, told no earlier, comes after another one; `dated` state beginnings (rule 2).

        "In Berlin since January", told in March, comes after Rome, told in February without a beginning, and before
        "in Rome since February".
        """
        begins = other.stated_beginning(dated)
        return begins is None or self.begins >= begins or (not self.assumed and same_day(self.begins, begins))

    def stated_beginning(self, dated: Iterable[Telling]) -> datetime | None:
        """Return the stated beginning by which a telling is ordered; None if whatever was told later comes after it.

        A repetition without a beginning takes the last one that was stated for its fact.
        """
        if not self.assumed:
            return self.begins
        stated = (t.begins for t in dated if t.edge.key == self.edge.key and t.begins <= self.source.told_at)
        return max(stated, default=None)


def tellings_of(edge: Edge, sources: Iterable[FactSource], others: Collection[str]) -> list[Telling]:
    """Return the tellings of a row: the one that began it, and one for each further episode.

    `others` are the ids of the rows of its slot: that one of them superseded it isn't an end that was told.
    """
    known = {s.episode_id: s for s in sources if s.episode_id in edge.episode_ids}
    told, assumed = _first_told(edge, known.values())
    stated = {each.by: each.at for each in edge.beginnings}
    candidates = [source for source in known.values() if source.told_at == told]
    first = next((s for s in candidates if (s.episode_id in stated) != assumed), next(iter(candidates), None))
    further = [source for source in known.values() if source is not first]
    if first is None:  # of a correction, which counts as told when the wrong fact was, before its episodes
        earliest = min(further, key=lambda source: source.told_at, default=None)
        first = FactSource("" if earliest is None else earliest.episode_id, told)
    end = end_apart_from(edge, others)
    begins = told if assumed else stated.get(first.episode_id, edge.valid_from)
    tellings = [Telling(edge, first, begins, edge.certainty, assumed=assumed, is_first=True)]
    for source in further:
        at = stated.get(source.episode_id)
        begins = _repeated_at(edge, end, source.told_at) if at is None else at
        tellings.append(Telling(edge, source, begins, edge.certainty, assumed=at is None))
    return tellings


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


@dataclass(slots=True)
class Version:
    """A run of tellings of one fact.

    `edge` is its row, `absorbed` are stored rows that become a part of it. `ends` are its stated ends, `end` is the one
    that counts.
    """

    edge: Edge
    tellings: list[Telling]
    end: datetime | None
    ends: tuple[EdgeEnd, ...]
    closed_by: Closing | None = None
    absorbed: list[Edge] = field(default_factory=list[Edge])

    @property
    def begin(self) -> Telling:
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

    def holds_at(self, telling: Telling) -> bool:
        """Return whether the fact may still hold at a telling."""
        return self.closed_by is None and (self.end is None or telling.begins < self.end)

    def is_ended_by(self, telling: Telling) -> bool:
        """Return whether a telling of another target ends this fact (rules 4 and 5)."""
        other_target = self.edge.target_id != telling.edge.target_id
        return other_target and may_end(telling.certainty, self.edge.certainty) and self.yields_to(telling)

    def is_replaced_by(self, telling: Telling) -> bool:
        """Return whether a telling of the same fact begins a new version: it is surer, or the first not external.

        What a document stated as certain is only a plan once somebody says so.
        """
        if may_end(telling.certainty, self.edge.certainty, same_fact=True):
            return True
        differs = telling.certainty != self.edge.certainty and telling.source.teller != "external"
        return differs and may_overrule("external", self.tellers)

    def was_foretold_by(self, telling: Telling) -> bool:
        """Return whether a telling of the same fact, from a later day on, is less sure and was told before this."""
        is_surer = may_end(self.edge.certainty, telling.certainty, same_fact=True)
        return is_surer and all(t.source.told_at > telling.source.told_at for t in self.tellings)

    def comes_true_with(self, telling: Telling) -> bool:
        """Return whether this is a plan whose day has passed when a telling states it without a beginning (rule 4)."""
        begin, is_stated = self.begin, telling.certainty == "stated" and telling.assumed
        is_dated_plan = self.edge.certainty == "plan" and not begin.assumed
        return is_stated and is_dated_plan and begin.begins <= telling.source.told_at

    def yields_to(self, telling: Telling) -> bool:
        """Return whether the teller may end this fact (rule 5)."""
        return may_overrule(telling.source.teller, self.tellers)

    def interval(self, end: VersionEnd) -> tuple[datetime, VersionEnd]:
        """Return when the version begins and ends, as its end may lie before the beginning that was told (rule 3).

        If another fact ends it there, it had begun on the day before if its beginning is assumed (case 4). Told within
        a day after its beginning, it held until it was told (case 9); otherwise it never held (case 24).
        """
        begin = self.begin
        if end.at is None or begin.begins < end.at:
            return begin.begins, end
        if end.by is None:
            return end.at, end
        if begin.assumed:
            return day_before(end.at), end
        if begin.begins < begin.source.told_at <= day_after(begin.begins):
            return begin.begins, end._replace(at=begin.source.told_at)
        return begin.begins, end._replace(at=begin.begins, reason="corrected")


class VersionEnd(NamedTuple):
    """When and why a version ends, by which fact, and when it ends apart from that; `at` is None while it holds."""

    at: datetime | None
    reason: str | None
    by: str | None = None
    prior: datetime | None = None


class Closing(NamedTuple):
    """The version and the telling of it that end another version."""

    successor: Version
    telling: Telling

    @property
    def at(self) -> datetime:
        """When the successor begins or, if it held before the other one, when it was told again."""
        is_first = self.successor.tellings[0] is self.telling
        return self.successor.begin.begins if is_first else self.telling.begins


def with_certainty_that_counts(telling: Telling, latest: Version | None) -> Telling:
    """Return a telling with its effective certainty: an external one raises no certainty that others stated (rule 5).

    A document that says "Maya lives in Tokyo" confirms a plan of hers, and doesn't make it come true (case 84).
    """
    if telling.source.teller != "external" or latest is None or not latest.holds_at(telling):
        return telling
    raises = may_end(telling.certainty, latest.edge.certainty, same_fact=True) and not latest.yields_to(telling)
    return replace(telling, certainty=latest.edge.certainty) if raises else telling
