"""Index entries, index cursors and recall traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from graphmem.models.base import Model, Text, UTCDateTime, new_id, utc_now
from graphmem.models.rows import AsOf, Scope

IndexKind = Literal["episode", "fact", "name", "entity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """Index entry of an episode, a fact, an entity, or a name; one for each (kind, key) of a scope.

    Attributes
    ----------
    kind
        Kind of the indexed row.
    key
        Id of the episode, edge or entity; for a name the canonical name itself.
    model
        The embedding model of the vectors; "" without a model.
    vectors
        float16, little-endian, row-major: for an episode its vector, then one for each sentence; otherwise a single
        vector. Empty without a model.
    pieces
        int8, shape (p, `piece_width(d)`), 128 for every 384 of the model's dimensions d: vectors of the content tokens
        of an episode or fact. Empty if the model has no token vectors.
    detail
        JSON. Of an episode ``names`` and ``pieces``, its content tokens; of a fact ``text``, its sentences, and
        ``episodes``, their ids; of an entity ``type``. Empty for a name.
    complete
        False if the model failed: the row counts as unindexed and is retried.
    position
        Set by the store; increases with every entry written in a scope.
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
    """State of a scope's index: the model that it was built with (None: nothing is indexed), and its generation.

    The generation changes whenever an entry is removed; a cached copy must then be reloaded.
    """

    model: str | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class IndexCursor:
    """Read position in a scope's index: the last known episode id, fact id and entry position."""

    scope: Scope
    episode: str = ""
    fact: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Status of a scope's index relative to an `IndexCursor`.

    Attributes
    ----------
    state
        Model and generation of the index.
    waiting
        Whether episodes or active facts after the cursor have no complete entry.
    entries
        Whether there are entries after the cursor's position.
    limited
        Whether an episode of the scope has an end or an expiry, at any time.
    """

    state: IndexState = IndexState()
    waiting: bool = False
    entries: bool = False
    limited: bool = False


Score = Annotated[float, Field(allow_inf_nan=False)]
Rank = Annotated[int, Field(ge=1)]


class TracedSeed(Model):
    """A seed entity of the recall, with its score."""

    entity_id: str
    score: Score


class TracedFact(Model):
    """A fact that the recall reached.

    Attributes
    ----------
    edge_id, entity_id
        The fact, and its end that is farther from the seed.
    score, hop
        As in the result; hop is the distance of the nearer end from its seed.
    channel
        The retrieval channel that found it, for example ``graph``.
    rank
        Rank in the result, from 1; None if it was considered but not returned.
    """

    edge_id: str
    entity_id: str
    score: Score
    hop: Annotated[int, Field(ge=0)]
    channel: Text
    rank: Rank | None = None


class TracedEpisode(Model):
    """An episode that the recall reached; fields as in `TracedFact`."""

    episode_id: str
    score: Score
    channel: Text
    rank: Rank | None = None


class RecallTrace(Model):
    """Trace of one recall, immutable once written; the rows keep their order."""

    id: str = Field(default_factory=new_id)
    scope: Scope
    query: Text
    strategy: Text
    asked_at: UTCDateTime = Field(default_factory=utc_now)
    as_of: AsOf | None = None
    seeds: tuple[TracedSeed, ...] = ()
    facts: tuple[TracedFact, ...] = ()
    episodes: tuple[TracedEpisode, ...] = ()
