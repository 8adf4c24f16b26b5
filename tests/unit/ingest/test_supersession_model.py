"""Supersession of random tellings: against a model by brute force, and in any order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem.ingest.supersession.rules import DAY
from graphmem.models import may_end
from tests.unit.ingest.told import Facts, Telling, date, moment

START = moment("03-01")
DAYS = 24
CERTAINTIES: tuple[Any, ...] = ("stated", "stated", "stated", "hearsay", "possible", "plan")


@st.composite
def sequences(draw: st.DrawFn, *, planned_ends: bool = False) -> list[Telling]:
    """Draw tellings of different days, in the order of arrival; with planned ends, some say until when a fact
    holds, and none since when.

    Rows keep one certainty. So that no telling is lost in a row, a target has one.
    """
    told = draw(st.lists(st.integers(6, DAYS - 1), min_size=1, max_size=6, unique=True))
    certainties = dict(zip("ABC", draw(st.tuples(*[st.sampled_from(CERTAINTIES)] * 3)), strict=True))
    found: list[Telling] = []
    for day in told:
        target = draw(st.sampled_from("ABC"))
        fields: dict[str, Any] = {"certainty": certainties[target]}
        fields["teller"] = draw(st.sampled_from((None, None, "subject", "other", "external")))
        if not planned_ends and draw(st.booleans()):
            fields["since"] = START + draw(st.integers(0, DAYS - 1)) * DAY
        if planned_ends and draw(st.booleans()):
            fields["until"] = START + (day + draw(st.integers(1, 6))) * DAY
        found.append(Telling(START + day * DAY + timedelta(hours=12), target, **fields))
    return found


@dataclass
class Run:
    """Tellings of one fact that nothing interrupts."""

    tellings: list[Telling]
    end: datetime | None = None
    ends: list[Telling] = field(default_factory=list[Telling])
    by: tuple[Run, Telling] | None = None

    @property
    def certainty(self) -> Any:
        return self.tellings[0].certainty

    @property
    def begin(self) -> tuple[datetime, bool]:
        """The beginning and whether it is assumed."""
        same = [t for t in self.tellings if t.certainty == self.certainty]
        stated = [t for t in same if t.since is not None]
        assumed = [t.told_at for t in same if t.since is None]
        return (begin_of(min(stated, key=lambda t: t.told_at)), False) if stated else (min(assumed), True)

    def holds_at(self, telling: Telling) -> bool:
        return self.by is None and (self.end is None or begin_of(telling) < self.end)

    def shown(self) -> str:
        begin, assumed = self.begin
        end, reason = self.end, ""
        if self.by is not None:
            run, telling = self.by
            starts = run.begin[0] if telling is run.tellings[0] else begin_of(telling)
            if end is None or starts < end:
                end, reason = starts, " replaced"
        if end is not None and end <= begin and reason:
            told = next((t.told_at for t in self.tellings if t.since == begin), begin)
            if not assumed and not begin < told <= begin + DAY:
                return f"{self.name} never"
            begin, end = (end - DAY, end) if assumed else (begin, told)
        until = "" if end is None else date(end)
        return f"{self.name} {'?' if assumed else ''}{date(min(begin, end or begin))}..{until}{reason}"

    @property
    def name(self) -> str:
        return self.tellings[0].target + ("" if self.certainty == "stated" else f" {self.certainty}")


def begin_of(telling: Telling) -> datetime:
    return telling.since or telling.told_at


def anchor(telling: Telling, tellings: Sequence[Telling]) -> datetime:
    """Return the beginning that was stated for a fact by then; without one, every beginning told later is after it."""
    if telling.since is not None:
        return telling.since
    same = (t.since for t in tellings if t.target == telling.target and t.since is not None)
    return max((since for since in same if since <= telling.told_at), default=datetime.min.replace(tzinfo=UTC))


def may_overrule(telling: Telling, run: Run) -> bool:
    told_by = {t.teller for t in run.tellings}
    if telling.teller == "external" and told_by != {"external"}:
        return False
    return telling.teller != "other" or "subject" not in told_by


def ends(telling: Telling, run: Run) -> bool:
    return may_overrule(telling, run) and may_end(telling.certainty, run.certainty)


def model(tellings: Sequence[Telling]) -> list[str]:
    """Replay all tellings from the beginning, without rows."""
    ordered: list[Telling] = []
    for telling in sorted(tellings, key=lambda t: t.told_at):
        at = len(ordered)
        while at and begin_of(telling) < anchor(ordered[at - 1], tellings):
            at -= 1
        ordered.insert(at, telling)
    runs: list[Run] = []
    latest: dict[str, Run] = {}
    for telling in ordered:
        run = latest.get(telling.target)
        if run is not None and run.holds_at(telling) and not may_end(telling.certainty, run.certainty, same_fact=True):
            run.tellings.append(telling)
        else:
            following = Run([telling])
            if run is not None and run.holds_at(telling):
                run.by = (following, telling)
            run = latest[telling.target] = following
            runs.append(run)
        if telling.until is not None and (run.tellings == [telling] or may_overrule(telling, run)):
            run.ends.append(telling)
            run.end = max(run.ends, key=lambda t: t.told_at).until  # all of them were plans when they were told
        for other in latest.values():
            if other is not run and other.holds_at(telling) and ends(telling, other):
                other.by = (run, telling)
    return sorted(run.shown() for run in runs)


def stored(facts: Facts) -> list[str]:
    return [shown.removesuffix(" over") for shown in facts.shown()]


@given(sequences())
@settings(max_examples=60, deadline=None)
def test_tellings_are_stored_as_the_model_says_in_any_order_of_arrival(tellings: list[Telling]) -> None:
    expected = model(tellings)
    in_order, as_they_come, at_once = Facts(), Facts(), Facts()
    for telling in sorted(tellings, key=lambda t: t.told_at):
        in_order.tell([telling])
    for telling in tellings:
        as_they_come.tell([telling])
    at_once.tell(tellings)
    assert [stored(facts) for facts in (in_order, as_they_come, at_once)] == [expected] * 3


@given(sequences(planned_ends=True))
@settings(max_examples=60, deadline=None)
def test_planned_ends_are_stored_as_the_model_says_if_they_arrive_in_the_order_in_which_they_were_told(
    tellings: list[Telling],
) -> None:
    in_order = Facts()
    for telling in sorted(tellings, key=lambda t: t.told_at):
        in_order.tell([telling])
    assert stored(in_order) == model(tellings)
