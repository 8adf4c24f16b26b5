"""Contents of a write (rows, removals, merge records, job states), and the mark of a running migration."""

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
from graphmem.models.rows import Alias, Edge, EdgeEnd, Entity, Mention, Scope

MergeMethod = Literal["vectors", "llm", "text", "manual"]
Cosine = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)]


class FoldedEdge(Model):
    """A fact of the merged entity that duplicated a fact of the kept entity.

    Attributes
    ----------
    edge
        The fact before the merge; its row was removed.
    into
        The duplicate of the kept entity before it received the confidence and the episodes. None if the fact
        connected the two entities and was dropped.
    """

    edge: Edge
    into: Edge | None = None


class ForeignData(Model):
    """Data of others on the row of a merged entity that moved to the kept one; only stores that people edit have it.

    Attributes
    ----------
    relationships
        Number of relationships that moved.
    labels, properties
        Names of the labels and properties that the kept entity received.
    unmoved
        Names of properties that the kept entity already had, with another value, which stays. The store keeps the
        value of the merged entity for `unmerge`.
    """

    relationships: int = 0
    labels: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    unmoved: tuple[str, ...] = ()


class Merge(Model):
    """A merge of two entities, or of a new name into an entity.

    Attributes
    ----------
    kept_id, kept
        The entity that was kept, and its row before the merge.
    merged
        The row that was removed. If a new name became an alias during ingestion, the row it would have become.
    method, score
        What decided the merge: vectors, an LLM that was asked, a text that tells both names, or a person; and the
        cosine of the two if one was computed.
    at
        Time of the merge.
    aliases
        Aliases of the merged entity before the merge.
    added
        Further aliases that the kept entity received because the entity types differ.
    edges
        Facts that moved to the kept entity, and inferred ones that were ended by hand and changed, before the merge.
    folded
        Facts that duplicated a fact of the kept entity or connected the two entities.
    mentions
        Mentions of the merged entity before the merge.
    shared
        Episodes of these mentions that also mention the kept entity.
    foreign
        Relationships, labels and properties of others that moved to the kept entity; None if there were none.
    undone_at
        Time at which the merge was undone.
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
    foreign: ForeignData | None = None
    undone_at: UTCDateTime | None = None

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Yield the names and counts for `repr`; all rows would fill pages."""
        yield from (("id", self.id), ("merged", self.merged.name), ("kept", self.kept.name), ("method", self.method))
        yield from (("facts", len(self.edges) + len(self.folded)), ("mentions", len(self.mentions)))
        yield from (("at", f"{self.at:%Y-%m-%dT%H:%M:%SZ}"), ("undone", self.undone_at is not None))


_NEGLIGIBLE = 0.001  # lower counts become 0, which bounds the facts that a store scans for decay


@dataclass(frozen=True, slots=True)
class JobState:
    """Progress of a maintenance job in a scope; one row per (scope, job).

    Attributes
    ----------
    job
        Name of the job.
    done_at
        When the job last completed; None if it never did.
    episodes
        Number of processed episodes in the scope at that time. For the job states that only count deleted facts
        and expired episodes, their number so far.
    begun_at
        Start of a run that has not completed: it is running or was interrupted.
    cursor
        Position of that run, in a format private to the job.
    """

    job: str
    done_at: datetime | None = None
    episodes: int = 0
    begun_at: datetime | None = None
    cursor: str = ""


FORGETTING = "forget"
"""Job of the state that an erasure writes: a new cursor each time, and `begun_at` until files are scrubbed too."""


def decayed(
    count: float,
    retrieved: datetime | None,
    *,
    rate: float,
    idle_since: datetime,
    since: datetime | None,
    now: datetime,
) -> float:
    """Return a retrieval count after decay; the single definition that every store implements.

    ``count × exp(−rate × days)`` with the days since the last retrieval or the last decay, whichever is later. The
    count of a fact retrieved after `idle_since` is unchanged, as is one for which neither time is known.
    """
    if retrieved is not None and retrieved > idle_since:
        return count
    begin = max((moment for moment in (retrieved, since) if moment is not None), default=now)
    faded = count * math.exp(-rate * max(0.0, (now - begin) / timedelta(days=1)))
    return faded if faded >= _NEGLIGIBLE else 0.0


@dataclass(frozen=True, slots=True)
class Corroboration:
    """A repeated statement of an edge: its confidence becomes the higher of the two and the episodes are added."""

    edge_id: str
    confidence: float
    episode_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeExpiry:
    """The end of an edge, its reason and who stated it, set once in the transaction that adds its successor.

    Nothing else changes. Expiring an edge that isn't active has no effect.
    """

    edge_id: str
    valid_to: datetime
    expired_at: datetime
    superseded_by: str | None = None
    reason: str | None = None
    ends: tuple[EdgeEnd, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessingResult:
    """Result of processing a queued episode: processed, or a failed attempt with the time of the next one."""

    episode_id: str
    processed_at: datetime | None = None
    error: str | None = None
    attempts: int = 0
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EpisodeRedaction:
    """Replacement text of an episode, used only by erasure; the index entries of the episode are removed."""

    episode_id: str
    text: str


@dataclass(frozen=True, slots=True)
class EpisodeEnd:
    """The time at which an episode was replaced; None takes an end back. The episode stays as history."""

    episode_id: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class EpisodeExpiry:
    """The time from which an episode is hidden and to be erased; None means never."""

    episode_id: str
    expires_at: datetime | None


RemovalKind = Literal["entity", "alias", "edge", "episode", "mention", "community", "recall", "index", "merge"]


@dataclass(frozen=True, slots=True)
class Removal:
    """Removal of a row; one that isn't in the scope is ignored.

    Removing an entity removes its aliases, facts, mentions and memberships. Removing an episode removes its mentions
    and its id from the facts that it stated; the facts stay. Removing a community removes its memberships and clears
    `parent_id` of its parts. Removing an entity, a fact or an episode also removes its index entries and the rows of
    recall traces that name it; the other rows of a trace stay, as do merges.

    Attributes
    ----------
    kind
        Kind of row to remove.
    id
        The alias itself for an alias, the entity id for a mention, the key for an index entry; otherwise the row's id.
    qualifier
        Second part of the key: entity type for an alias, episode id for a mention, kind for an index entry.
    """

    kind: RemovalKind
    id: str
    qualifier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All changes of one write to a scope, applied atomically.

    Applied in this order: entities (inserted, or replaced by id), aliases (inserted, or repointed), expiries, edges
    (inserted, or replaced by id), corroborations, mentions (the first of an entity and an episode is kept), results,
    redactions, ends and expiries of episodes, communities (inserted, or replaced by id; a parent may follow its parts),
    memberships (inserted, or replaced by community, entity and `since`), recalls (the first of an id is kept), index
    (inserted, or replaced by kind and key), merges (inserted, or replaced by id), job states (inserted, or replaced by
    job), removals.
    """

    entities: tuple[Entity, ...] = ()
    aliases: tuple[Alias, ...] = ()
    expiries: tuple[EdgeExpiry, ...] = ()
    edges: tuple[Edge, ...] = ()
    corroborations: tuple[Corroboration, ...] = ()
    mentions: tuple[Mention, ...] = ()
    results: tuple[ProcessingResult, ...] = ()
    redactions: tuple[EpisodeRedaction, ...] = ()
    episode_ends: tuple[EpisodeEnd, ...] = ()
    episode_expiries: tuple[EpisodeExpiry, ...] = ()
    communities: tuple[Community, ...] = ()
    memberships: tuple[Membership, ...] = ()
    recalls: tuple[RecallTrace, ...] = ()
    index: tuple[IndexEntry, ...] = ()
    merges: tuple[Merge, ...] = ()
    job_states: tuple[JobState, ...] = ()
    removals: tuple[Removal, ...] = ()


MoveState = Literal["copying", "cutting", "cut", "moved", "receiving", "serving", "served", "returning", "abandoned"]
"""State of a store in a migration: the first four are those of the source, the others those of the target.

The target stays ``served`` after the migration, which tells that it is the one that the source was moved to.
"""


@dataclass(frozen=True, slots=True)
class Move:
    """Mark of the migration that a store takes part in; a store has at most one.

    Attributes
    ----------
    id
        Id of the migration, the same in both stores.
    state
        State of this store in it.
    source, target
        URLs of the two stores, without passwords.
    started_at
        When the migration was started.
    """

    id: str
    state: MoveState
    source: str
    target: str
    started_at: datetime

    @property
    def mark(self) -> str:
        """The text that stores compare at each write: id and state."""
        return f"{self.id} {self.state}"


def mark_of(move: Move | None) -> str:
    """Return the text of a mark; "" for none."""
    return "" if move is None else move.mark
