"""What reads return, beside the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphmem.models.rows import EdgeType, Entity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    """The neighbourhood of some seeds as arrays: n nodes, m edges.

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
