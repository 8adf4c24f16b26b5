"""Versions of the facts of a slot, derived from the tellings of its rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graphmem.ingest.supersession.rules import (
    Compatible,
    Sources,
    end_apart_from,
    hold_together,
    is_over,
    may_overrule,
    new_version,
)
from graphmem.ingest.supersession.versions import (
    Closing,
    Telling,
    Version,
    VersionEnd,
    tellings_of,
    with_certainty_that_counts,
)
from graphmem.models import Edge, EdgeKey, end_of, is_retracted, retracted
from graphmem.models.base import END_OF_TIME


@dataclass(frozen=True, slots=True)
class Decision:
    """Changes by a telling: `edges`, the new and changed rows, and `holder`, the id of the row that represents it."""

    edges: tuple[Edge, ...]
    holder: str


class Slot:
    """The versions of a slot, derived from the tellings of its rows and of a new one. Parameters as in `decide`."""

    def __init__(
        self,
        known: Sequence[Edge],
        new: Edge | None,
        sources: Sources,
        *,
        single_valued: bool,
        now: datetime,
        compatible: Compatible | None,
    ) -> None:
        self._ids = {edge.id for edge in known}
        self._rows = {edge.id: edge for edge in known if self._takes_part(edge)}
        self._new, self._now, self._single_valued = new, now, single_valued
        self._sources = sources
        self._compatible = compatible or {}
        self._versions: list[Version] = []
        self._latest: dict[EdgeKey, Version] = {}  # of each fact

    def derive(self) -> Decision:
        """Return the rows that the new telling adds or changes."""
        ordered = self._ordered()
        for told in ordered:
            telling = self._begun_as_planned(with_certainty_that_counts(told, self._latest.get(told.edge.key)))
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
        is_replaced = edge.end_reason == "corrected" and edge.superseded_by in self._ids
        is_outvoted = is_replaced and edge.stated_end != edge.valid_from
        return edge.kind == "state" and not is_over(edge) and (not is_retracted(edge) or is_outvoted)

    def _ordered(self) -> list[Telling]:
        """Return the tellings in the order in which their facts held (rule 2).

        They are taken as they were told, and each is put behind those that it follows.
        """
        rows = [*self._rows.values()] if self._new is None else [*self._rows.values(), self._new]
        tellings = [telling for row in rows for telling in tellings_of(row, self._sources.get(row.id, ()), self._ids)]
        dated = [telling for telling in tellings if not telling.assumed]
        ordered: list[Telling] = []
        for telling in sorted(tellings, key=lambda t: (t.source.told_at, t.edge.recorded_at, t.edge.id)):
            at = len(ordered)
            while at and not telling.follows(ordered[at - 1], dated):
                at -= 1
            ordered.insert(at, telling)
        return ordered

    # Versions -------------------------------------------------------------------------------------

    def _place(self, telling: Telling) -> Version:
        """Return the version that a telling confirms or begins.

        "I live in Berlin" confirms the version of Berlin that holds. It begins one if none holds, and also, from then
        on, if what holds is only hearsay. A plan that came true before its day never held.
        """
        latest = self._latest.get(telling.edge.key)
        if latest is None or not latest.holds_at(telling):
            return self._begin(telling)
        if latest.is_replaced_by(telling):
            version = self._begin(telling)
            latest.closed_by = Closing(version, telling)
            return version
        if latest.was_foretold_by(telling):
            version = self._begin(telling)
            version.closed_by = Closing(latest, latest.tellings[0])
            self._latest[telling.edge.key] = latest
            return version
        return self._confirm(latest, telling)

    def _begun_as_planned(self, telling: Telling) -> Telling:
        """Return a telling without a beginning with that of the plan that it says has come true (rule 4).

        Not if another fact, which it ends, was told to hold or to end after that.
        """
        plan = self._latest.get(telling.edge.key)
        if plan is None or not plan.holds_at(telling) or not plan.comes_true_with(telling):
            return telling
        begins = plan.begin.begins
        ended = (v for v in self._latest.values() if self._single_valued and v.is_ended_by(telling))
        last = [max(version.end or begins, *(t.source.told_at for t in version.tellings)) for version in ended]
        return telling if any(at > begins for at in last) else replace(telling, begins=begins)

    def _end_others(self, version: Version, telling: Telling) -> None:
        """End the versions of other facts that hold at a telling of `version` and that it may end."""
        for other in self._latest.values():
            ends = other is not version and other.holds_at(telling) and other.is_ended_by(telling)
            if ends and not hold_together(self._compatible, other.edge.key, telling.edge.key, telling.begins):
                other.closed_by = Closing(version, telling)

    def _begin(self, telling: Telling) -> Version:
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
            ends += tuple(end for end in edge.ends if ends and end.at == END_OF_TIME)  # they call these off
            edge, end = new_version(edge, self._now, ends=ends), end_of(ends)
        version = Version(edge, [telling], end, edge.ends)
        self._latest[telling.edge.key] = version
        self._versions.append(version)
        return version

    def _confirm(self, version: Version, telling: Telling) -> Version:
        """Add a telling, with the end that it states, to a version that holds then."""
        edge = telling.edge
        if self._begins_stored(telling):
            self._unite(version, edge)
        elif edge is self._new and edge.valid_to is not None and version.yields_to(telling):
            version.limit(edge.ends, edge.valid_to)
        version.tellings.append(telling)
        return version

    def _unite(self, version: Version, row: Edge) -> None:
        """Make a stored row a part of a version: its row if it has no stored one yet, else one that it absorbs.

        The ends of a row of another certainty, and those that their tellers may not state, don't count.
        """
        as_sure = row.certainty == version.edge.certainty
        if as_sure and version.edge.id not in self._rows:
            version.edge = row
        else:
            version.absorbed.append(row)
        if as_sure:
            told = {source.episode_id: source for source in self._sources.get(row.id, ())}
            refused = {i for i, source in told.items() if not may_overrule(source.teller, version.tellers)}
            ends = tuple(end for end in row.ends if end.by not in refused)
            version.limit(ends, end_apart_from(row, self._ids) if ends == row.ends else end_of(ends))

    def _begins_stored(self, telling: Telling) -> bool:
        """Return whether a telling is the one that began a stored row."""
        return telling.is_first and telling.edge.id in self._rows

    # Rows -----------------------------------------------------------------------------------------

    def _written(self, version: Version, episode_ids: Collection[str]) -> list[Edge]:
        """Return the row of a version, and those that it absorbed as retracted; `episode_ids` are those of the slot."""
        edge, begin = version.edge, version.begin
        episodes = self._episodes(version, episode_ids)
        as_sure = (telling.edge for telling in version.tellings if telling.certainty == edge.certainty)
        stated = (each for row in (edge, *as_sure) for each in row.beginnings if each.by in episodes)
        fields = {
            "confidence": max(telling.edge.confidence for telling in version.tellings),
            "episode_ids": episodes,
            "beginnings": tuple(dict.fromkeys(stated)),
            "ends": tuple(dict.fromkeys(version.ends)),
            **self._times(version),
        }
        if begin.edge is not edge or not begin.is_first:
            fields.update(valid_from_assumed=begin.assumed, told_at=begin.source.told_at)
        return [edge.changed(**fields), *(retracted(row, self._now, "replaced", edge.id) for row in version.absorbed)]

    def _episodes(self, version: Version, episode_ids: Collection[str]) -> tuple[str, ...]:
        """Return the episodes that state a version; one that told another version of its row belongs to that one."""
        told = {telling.source.episode_id for telling in version.tellings}
        told.update(i for row in version.absorbed for i in row.episode_ids)
        episodes = [i for i in version.edge.episode_ids if i in told or i not in episode_ids]
        for row in (telling.edge for telling in version.tellings):
            if row is not version.edge:
                episodes += [i for i in row.episode_ids if i in told or row is self._new]
        return tuple(dict.fromkeys(episodes))

    def _times(self, version: Version) -> dict[str, Any]:
        """Return when a version holds, and why it ends; nothing if its row says so already."""
        edge = version.edge
        begins, end = version.interval(self._end_of(version))
        if (begins, end.at, end.by) == (edge.valid_from, edge.valid_to, edge.superseded_by):
            return {}
        expired = self._now if end.at is not None and edge.id in self._rows else None
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

    def _end_of(self, version: Version) -> VersionEnd:
        """Return how a version ends: where the next one begins, as its row says, or as stated (rule 3)."""
        edge, end, closing = version.edge, version.end, version.closed_by
        if closing is not None and (end is None or closing.at < end):
            return VersionEnd(closing.at, "replaced", closing.successor.edge.id, prior=end)
        if edge.superseded_by not in self._ids and end == edge.valid_to:  # a fact of another slot ended it, or none did
            return VersionEnd(end, edge.end_reason, edge.superseded_by, edge.prior_valid_to)
        return VersionEnd(end, edge.end_reason if edge.superseded_by is None else None)
