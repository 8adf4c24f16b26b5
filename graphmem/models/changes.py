"""What a write carries: rows, removals, records of the merge ledger, and states of upkeep jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from graphmem.models.base import Model, UTCDateTime, new_id, utc_now
from graphmem.models.communities import Community, Membership
from graphmem.models.index import IndexEntry, RecallTrace
from graphmem.models.rows import Alias, Edge, Entity, Mention, Scope

MergeMethod = Literal["vectors", "llm", "manual"]
Cosine = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)]


class FoldedEdge(Model):
    """A fact of the merged entity that the kept one had already.

    Attributes
    ----------
    edge
        As it was; its row is gone.
    into
        As the kept entity's was before it took in confidence and episodes; None where the fact was between the two
        entities and was dropped.
    """

    edge: Edge
    into: Edge | None = None


class Merge(Model):
    """Two entities, or an entity and a new name, were taken for one.

    Attributes
    ----------
    kept_id, kept
        The entity that stayed, and its row before.
    merged
        The row that went; where a name became an alias while it was read, the row that it would have got.
    method, score
        What decided: the vectors, the LLM that was asked, or a person; the cosine of the two where one was computed.
    at
        When.
    aliases
        What the merged entity was called, as it was.
    added
        Names under which the kept entity is known since then besides those, because its type is another.
    edges
        Its facts that moved, as they were.
    folded
        Its facts that did not.
    mentions
        Its mentions, as they were.
    shared
        Episodes of these mentions that mentioned the kept entity too.
    undone_at
        When it was undone.
    """

    id: str = Field(default_factory=new_id)
    scope: Scope
    kept_id: str
    kept: Entity
    merged: Entity
    method: MergeMethod
    score: Cosine | None = None
    at: UTCDateTime = Field(default_factory=utc_now)
    aliases: tuple[Alias, ...] = ()
    added: tuple[Alias, ...] = ()
    edges: tuple[Edge, ...] = ()
    folded: tuple[FoldedEdge, ...] = ()
    mentions: tuple[Mention, ...] = ()
    shared: tuple[str, ...] = ()
    undone_at: UTCDateTime | None = None

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Yield what `repr` shows: names and counts, where all of its rows are pages."""
        yield from (("id", self.id), ("merged", self.merged.name), ("kept", self.kept.name), ("method", self.method))
        yield from (("facts", len(self.edges) + len(self.folded)), ("mentions", len(self.mentions)))
        yield from (("at", f"{self.at:%Y-%m-%dT%H:%M:%SZ}"), ("undone", self.undone_at is not None))


_NOTHING = 0.001  # a count below this is 0: the facts that a store looks through don't pile up


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job of upkeep has come in a scope; one for each (scope, job).

    Attributes
    ----------
    job
        Its name.
    done_at
        When it last ran to its end, None before that.
    episodes
        How many processed episodes the scope had then.
    begun_at
        When a run began that has not ended: it is going on, or was interrupted.
    cursor
        Where that run is; the job knows what it means.
    """

    job: str
    done_at: datetime | None = None
    episodes: int = 0
    begun_at: datetime | None = None
    cursor: str = ""


FORGETTING = "forget"
"""Job of the mark that an erasure leaves: another cursor each time; `begun_at` until files are clean, too."""


def decayed(
    count: float,
    retrieved: datetime | None,
    *,
    rate: float,
    idle_since: datetime,
    since: datetime | None,
    now: datetime,
) -> float:
    """Return what a retrieval count has faded to: the one definition, which every store follows.

    ``count × exp(−rate × days)``, the days since the last retrieval or the last decay, whichever is later. A count that
    was retrieved after `idle_since` stays as it is, and so does one of which neither is known.
    """
    if retrieved is not None and retrieved > idle_since:
        return count
    begin = max((moment for moment in (retrieved, since) if moment is not None), default=now)
    faded = count * math.exp(-rate * max(0.0, (now - begin) / timedelta(days=1)))
    return faded if faded >= _NOTHING else 0.0


@dataclass(frozen=True, slots=True)
class Corroboration:
    """An edge was stated again: its confidence rises to the higher of the two, the episodes are added."""

    edge_id: str
    confidence: float
    episode_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeExpiry:
    """An edge ended: set once, in the transaction that brings the successor; nothing else of the row changes.

    Closing an edge that isn't active changes nothing.
    """

    edge_id: str
    valid_to: datetime
    expired_at: datetime
    superseded_by: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessingResult:
    """What became of an episode in the queue: processed, or a failed try with the time of the next."""

    episode_id: str
    processed_at: datetime | None = None
    error: str | None = None
    attempts: int = 0
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Redaction:
    """The text of an episode is replaced, which only erasure does; what the index holds of the episode goes."""

    episode_id: str
    text: str


RemovalKind = Literal["entity", "alias", "edge", "episode", "mention", "community", "recall", "index", "merge"]


@dataclass(frozen=True, slots=True)
class Removal:
    """A row goes; one that isn't in the scope is left out.

    With an entity go its aliases, facts, mentions and memberships; with an episode its mentions, and its id from the
    facts that it stated, which stay; with a community its memberships, and what was part of it is part of nothing. With
    an entity, a fact or an episode goes what the index holds of it, and the rows of recall traces that name it. The
    other rows of a trace stay, as do merges.

    Attributes
    ----------
    kind
        Of what.
    id
        Of an alias the alias itself, of a mention the id of its entity, of an entry of the index its key; else its id.
    of
        Of an alias its type, of a mention the id of its episode, of an entry of the index its kind.
    """

    kind: RemovalKind
    id: str
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Everything that one write brings into a scope; all of it is stored, or nothing.

    Applied in this order: entities (inserted, or replaced by id), aliases (inserted, or pointed
    elsewhere), closings, edges (inserted, or replaced by id), supports, mentions (the first of an entity
    and an episode stays), outcomes, redactions, communities (inserted, or replaced by id; a parent may stand behind
    its parts), memberships (inserted, or replaced by community, entity and `since`), recalls (the first of an id
    stays), index (inserted, or replaced by kind and key), merges (inserted, or replaced by id), marks (inserted, or
    replaced by job), removals.
    """

    entities: tuple[Entity, ...] = ()
    aliases: tuple[Alias, ...] = ()
    closings: tuple[EdgeExpiry, ...] = ()
    edges: tuple[Edge, ...] = ()
    supports: tuple[Corroboration, ...] = ()
    mentions: tuple[Mention, ...] = ()
    outcomes: tuple[ProcessingResult, ...] = ()
    redactions: tuple[Redaction, ...] = ()
    communities: tuple[Community, ...] = ()
    memberships: tuple[Membership, ...] = ()
    recalls: tuple[RecallTrace, ...] = ()
    index: tuple[IndexEntry, ...] = ()
    merges: tuple[Merge, ...] = ()
    marks: tuple[JobState, ...] = ()
    removals: tuple[Removal, ...] = ()
