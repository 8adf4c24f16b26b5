"""Communities as rows: groups of entities that belong together, and who was in them when (spec: community)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from graphmem.models.base import Model, Text, UTCDateTime, new_id
from graphmem.models.rows import AsOf, Scope


class Community(Model):
    """A group of entities.

    Attributes
    ----------
    level
        0 is the partition of the scope; the communities of each further level split those of the level before.
    fingerprint
        What the name and the summary were made from; while it stays the same, they needn't be made again.
    parent_id
        The community of the level before that this one is part of.
    created_at, ended_at
        When it was found, and when it was found to be no more.
    updated_at
        When anything of it, its members included, changed last.
    """

    id: str = Field(default_factory=new_id)
    scope: Scope
    level: Annotated[int, Field(ge=0)] = 0
    name: Text = ""
    summary: Text = ""
    fingerprint: Text = ""
    parent_id: str | None = None
    created_at: UTCDateTime
    updated_at: UTCDateTime
    ended_at: UTCDateTime | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _require_order("ended_at", self.ended_at, "created_at", self.created_at)
        _require_order("updated_at", self.updated_at, "created_at", self.created_at)
        if self.parent_id == self.id:
            raise ValueError(f"a community can't be part of itself: {self.id}")
        return self


class Membership(Model):
    """An entity was in a community during ``[since, until)``; one that left and came back has two rows."""

    community_id: str
    entity_id: str
    since: UTCDateTime
    until: UTCDateTime | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _require_order("until", self.until, "since", self.since)
        return self

    @property
    def key(self) -> MembershipKey:
        """What is unique among the memberships of a store, and the order in which they are read."""
        return (self.community_id, self.entity_id, self.since)


MembershipKey = tuple[str, str, datetime]


def existed(begin: datetime, end: datetime | None, as_of: AsOf | None, *, ended: bool) -> bool:
    """Tell whether a read sees a community or a membership: the one definition, which every store follows.

    They have one time for both axes, that at which graphmem found them: with `as_of` the moment seen is the earlier of
    `valid` and `known`. Without, what isn't over is seen. With `ended`, what is over is seen too.
    """
    if as_of is None:
        return ended or end is None
    moment = min(as_of.valid, as_of.known)
    return begin <= moment and (ended or end is None or moment < end)


def _require_order(name: str, end: datetime | None, begin_name: str, begin: datetime) -> None:
    if end is not None and end < begin:
        raise ValueError(f"{name} {end.isoformat()} lies before {begin_name} {begin.isoformat()}")
