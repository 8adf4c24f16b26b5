"""Recall traces: what was asked, and why each fact and episode came up (spec: recall trace)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from graphmem.models.base import Model, Text, UTCDateTime, new_id, utc_now
from graphmem.models.rows import AsOf, Scope

Score = Annotated[float, Field(allow_inf_nan=False)]
Rank = Annotated[int, Field(ge=1)]


class TracedSeed(Model):
    """An entity from which the recall started, with its score."""

    entity_id: str
    score: Score


class TracedFact(Model):
    """A fact that the recall came upon.

    Attributes
    ----------
    edge_id, entity_id
        The fact, and the end at which it was found: the one farther from the seed.
    score, hop
        As in the result; hop is the distance of the nearer end from its seed.
    channel
        The part of the recall that found it, for example ``graph``.
    rank
        Its place in the result, from 1; None where it was considered but not returned.
    """

    edge_id: str
    entity_id: str
    score: Score
    hop: Annotated[int, Field(ge=0)]
    channel: Text
    rank: Rank | None = None


class TracedEpisode(Model):
    """An episode that the recall came upon; fields as in `TracedFact`."""

    episode_id: str
    score: Score
    channel: Text
    rank: Rank | None = None


class RecallTrace(Model):
    """One recall: written once, never changed. The rows keep their order."""

    id: str = Field(default_factory=new_id)
    scope: Scope
    query: Text
    strategy: Text
    asked_at: UTCDateTime = Field(default_factory=utc_now)
    as_of: AsOf | None = None
    seeds: tuple[TracedSeed, ...] = ()
    facts: tuple[TracedFact, ...] = ()
    episodes: tuple[TracedEpisode, ...] = ()
