"""Queries that reads take, and what reads return beside rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphmem.models.rows import AsOf, EdgeKey, EdgeType, Entity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuery:
    """Which entities to read; None doesn't restrict.

    `ids` and `entity_types` select; `as_of` leaves out what was not recorded by `known`, not seen by
    `valid`, or outside of its own validity. Archived ones are left out unless `archived` is True or
    they are named in `ids`.
    """

    ids: tuple[str, ...] | None = None
    entity_types: tuple[str, ...] | None = None
    as_of: AsOf | None = None
    archived: bool = False


Versions = Literal["visible", "active", "all"]
TimeAxis = Literal["valid_from", "valid_to", "recorded_at", "expired_at"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeQuery:
    """Which edges to read; None doesn't restrict, several are ANDed.

    Attributes
    ----------
    ids, source_ids, target_ids, relations, edge_types
        Allowed values of that column.
    touching
        Entity ids of which either end is one.
    keys
        (source, target, relation, edge type) tuples, matched whole.
    slots
        (source, relation) tuples, matched whole: the versions of a single-valued fact.
    text
        A piece of text that the fact or the relation contains, in any letter case of ASCII; no wildcards.
    window
        (axis, after, until): rows whose time on that axis is in ``(after, until]``.
    versions
        "visible" (the default: `is_visible` with `as_of`), "active", or "all" (`as_of` is ignored).
    """

    ids: tuple[str, ...] | None = None
    source_ids: tuple[str, ...] | None = None
    target_ids: tuple[str, ...] | None = None
    touching: tuple[str, ...] | None = None
    relations: tuple[str, ...] | None = None
    edge_types: tuple[EdgeType, ...] | None = None
    keys: tuple[EdgeKey, ...] | None = None
    slots: tuple[tuple[str, str], ...] | None = None
    text: str | None = None
    window: tuple[TimeAxis, datetime, datetime] | None = None
    versions: Versions = "visible"
    as_of: AsOf | None = None


EpisodeState = Literal["processed", "pending", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeQuery:
    """Which episodes to read; None doesn't restrict, several are ANDed.

    `before` is an episode id: those of its session that were stored before it (ids are in the order of storing).
    `state`: processed; pending (not processed, tries left); failed (not processed, none left).
    `as_of` leaves out what was recorded after `known` or occurred after `valid`.
    """

    ids: tuple[str, ...] | None = None
    external_ids: tuple[str, ...] | None = None
    session_id: str | None = None
    before: str | None = None
    state: EpisodeState | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityQuery:
    """Which communities to read; None doesn't restrict, several are ANDed.

    Attributes
    ----------
    ids, level
        Allowed ids; the one level.
    entity_ids
        Communities in which one of these entities is, at the moment that is seen.
    as_of, ended
        The moment, and whether what is over is seen too: see `existed`.
    """

    ids: tuple[str, ...] | None = None
    level: int | None = None
    entity_ids: tuple[str, ...] | None = None
    as_of: AsOf | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipQuery:
    """Which memberships to read; None doesn't restrict, several are ANDed.

    Attributes
    ----------
    community_ids, entity_ids
        Allowed ids of either side.
    level
        The level of the community.
    as_of, ended
        The moment, and whether memberships that are over are seen too: see `existed`. Whether the community is over
        isn't looked at: whoever ends one ends its memberships in the same write.
    """

    community_ids: tuple[str, ...] | None = None
    entity_ids: tuple[str, ...] | None = None
    level: int | None = None
    as_of: AsOf | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """Which recall traces to read; None doesn't restrict, several are ANDed.

    Attributes
    ----------
    ids
        Allowed ids.
    entity_ids
        Traces of which a seed, or the end at which a fact was found, is one of these.
    edge_ids, episode_ids
        Traces that came upon one of these, returned or not.
    """

    ids: tuple[str, ...] | None = None
    entity_ids: tuple[str, ...] | None = None
    edge_ids: tuple[str, ...] | None = None
    episode_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeQuery:
    """Which merges to read; None doesn't restrict, several are ANDed.

    Attributes
    ----------
    ids
        Allowed ids.
    entity_ids
        Merges in which one of these was kept or went.
    undone
        Whether those that were undone are read too.
    """

    ids: tuple[str, ...] | None = None
    entity_ids: tuple[str, ...] | None = None
    undone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandLimits:
    """How much of the graph one `expand` may touch.

    A hop starts from at most `max_frontier` nodes and reads of each the
    ``max(5, min(max_degree, max_edges // nodes in the frontier))`` best edges.
    """

    max_frontier: int = 300
    max_degree: int = 300
    max_edges: int = 1500

    def per_node(self, frontier: int) -> int:
        """Edges that are read of each node of a frontier of this size."""
        return max(5, min(self.max_degree, self.max_edges // max(1, frontier)))


@dataclass(frozen=True, slots=True)
class EntityHit:
    """An entity that a search found.

    Attributes
    ----------
    entity
        The entity.
    alias
        The longest of the asked phrases that is an alias of it, or None if only words matched.
    degree
        Visible edges, counted over the 1,000 most confident ones.
    edge_types
        Distinct edge types among those.
    """

    entity: Entity
    alias: str | None
    degree: int
    edge_types: int


class ActiveFact(NamedTuple):
    """What communities are found by, of an active fact between two entities that aren't archived.

    Attributes
    ----------
    id, source_id, target_id, edge_type, confidence, retrieval_count
        As in `Edge`.
    valid_from
        Seconds since 1970, UTC.
    """

    id: str
    source_id: str
    target_id: str
    edge_type: EdgeType
    confidence: float
    retrieval_count: float
    valid_from: float


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The neighborhood of some seeds as arrays: n nodes, m edges.

    Attributes
    ----------
    node_ids, names, entity_types
        n texts each; nodes are ordered by depth, then id.
    depth
        int array (n,): hops from the nearest seed, edges taken both ways.
    edge_ids, relations, facts
        m texts each.
    edge_types
        m edge types.
    source, target
        int arrays (m,): positions in the node lists.
    confidence, retrieval_count
        float arrays (m,).
    valid_from
        float array (m,): seconds since 1970, UTC.
    """

    node_ids: list[str]
    names: list[str]
    entity_types: list[str]
    depth: NDArray[np.int64]
    edge_ids: list[str]
    relations: list[str]
    edge_types: list[EdgeType]
    facts: list[str]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    confidence: NDArray[np.float64]
    retrieval_count: NDArray[np.float64]
    valid_from: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StoreStats:
    """How much a scope holds; totals count all rows, archived and ended ones included.

    `community_members` are those that are in a community of level 0 now.
    """

    entities: int = 0
    archived_entities: int = 0
    aliases: int = 0
    edges: int = 0
    active_edges: int = 0
    episodes: int = 0
    pending_episodes: int = 0
    failed_episodes: int = 0
    mentions: int = 0
    communities: int = 0
    ended_communities: int = 0
    community_members: int = 0
    recalls: int = 0
    edges_by_type: Mapping[str, int] = field(default_factory=dict[str, int])
    entities_by_type: Mapping[str, int] = field(default_factory=dict[str, int])
