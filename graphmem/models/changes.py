"""What writes carry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from graphmem.models.community import Community, Membership
from graphmem.models.index import IndexEntry
from graphmem.models.merges import Merge
from graphmem.models.recalls import RecallTrace
from graphmem.models.rows import Alias, Edge, Entity, Mention
from graphmem.models.upkeep import Mark


@dataclass(frozen=True, slots=True)
class Support:
    """An edge was stated again: its confidence rises to the higher of the two, the episodes are added."""

    edge_id: str
    confidence: float
    episode_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """An edge ended: set once, in the transaction that brings the successor; nothing else of the row changes.

    Closing an edge that isn't active changes nothing.
    """

    edge_id: str
    valid_to: datetime
    expired_at: datetime
    superseded_by: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
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
    closings: tuple[Closing, ...] = ()
    edges: tuple[Edge, ...] = ()
    supports: tuple[Support, ...] = ()
    mentions: tuple[Mention, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    redactions: tuple[Redaction, ...] = ()
    communities: tuple[Community, ...] = ()
    memberships: tuple[Membership, ...] = ()
    recalls: tuple[RecallTrace, ...] = ()
    index: tuple[IndexEntry, ...] = ()
    merges: tuple[Merge, ...] = ()
    marks: tuple[Mark, ...] = ()
    removals: tuple[Removal, ...] = ()
