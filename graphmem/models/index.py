"""What recall keeps in a store beside the rows: index entries, cursors and traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from graphmem.models.base import Model, Text, UTCDateTime, new_id, utc_now
from graphmem.models.rows import AsOf, Scope

IndexKind = Literal["episode", "fact", "name", "entity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """What recall keeps of an episode, a fact, an entity, or a name; one for each (kind, key) of a scope.

    Attributes
    ----------
    kind
        Of what.
    key
        Id of the episode, edge or entity; a name itself, in the form that names are compared in.
    model
        The embedding model that the vectors are of; "" where there is none.
    vectors
        float16, little-endian, row by row: for an episode the whole, then its sentences; else one. Empty without
        a model.
    pieces
        int8, 128 a row: the pieces of an episode with content. Empty where the model gives none.
    detail
        JSON: of an episode its names and pieces, of a fact its sentence.
    complete
        False where the model failed: the row stays unindexed, so that it is tried again.
    position
        Set by the store: grows with every entry that is written in a scope.
    """

    kind: IndexKind
    key: str
    model: str = ""
    vectors: bytes = b""
    pieces: bytes = b""
    detail: str = ""
    complete: bool = True
    position: int = 0


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index of a scope: the model that it was built with (None: nothing is indexed), and its generation.

    The generation changes whenever an entry was removed: whoever keeps a copy reads it anew.
    """

    model: str | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class IndexCursor:
    """What is asked of a scope's index: whether something lies behind an episode id, a fact id and a position."""

    scope: Scope
    episode: str = ""
    fact: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How the index of a scope stands.

    Attributes
    ----------
    state
        Its model and its generation.
    waiting
        Whether episodes or active facts behind those asked about have no complete entry.
    entries
        Whether there are entries behind the position.
    """

    state: IndexState = IndexState()
    waiting: bool = False
    entries: bool = False


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
