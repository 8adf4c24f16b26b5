"""Query types of reads, filters of episodes and their meaning, and result types other than rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, cast, get_args

from pydantic import BeforeValidator, Field

from graphmem.models.base import Identifier, Model, Properties, Scalar, Text, UTCDateTime
from graphmem.models.metadata import ATTACHMENTS
from graphmem.models.rows import AsOf, EdgeKey, EdgeType, Entity, Episode, EpisodeSource, FactKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Operator = Literal["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists"]
_OPERATORS = frozenset(get_args(Operator))
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class _Value(Model):
    """A value of a condition, checked like a metadata value."""

    metadata: Properties


def _scalar(key: str, name: str, value: object) -> Scalar:
    if value is not None and not isinstance(value, (str, int, float)):
        raise ValueError(f"{key}: {name} takes a text, a number, a boolean or null, got {value!r:.80}")
    return next(iter(_Value(metadata={key: value}).metadata.values()))


def _operand(key: str, name: object, value: object) -> Any:
    """Return the value of an operator in the form that stores compare; raise ValueError if it takes another type."""
    if name not in _OPERATORS:
        raise ValueError(f"{key}: unknown operator {name!r:.40}; known are {', '.join(get_args(Operator))}")
    if name == "$exists":
        if not isinstance(value, bool):
            raise ValueError(f"{key}: $exists takes true or false, got {value!r:.80}")
        return value
    if name in ("$in", "$nin"):
        if isinstance(value, str) or not isinstance(value, (Sequence, set, frozenset)):
            raise ValueError(f"{key}: {name} takes a list, got {value!r:.80}")
        return [_scalar(key, str(name), one) for one in cast("Sequence[object]", value)]
    checked = _scalar(key, str(name), value)
    if name in ORDERS and (checked is None or isinstance(checked, bool)):
        raise ValueError(f"{key}: {name} takes a text or a number, got {checked!r}")
    return checked


def _conditions(given: object) -> dict[str, dict[str, Any]]:
    """Return conditions in full form: `$eq` in place of a bare value, `$in` of a list of values."""
    if not isinstance(given, Mapping):
        raise ValueError("expected a mapping of metadata keys to values or operators")
    found: dict[str, dict[str, Any]] = {}
    for raw, wanted in cast("Mapping[object, object]", given).items():
        if not isinstance(raw, str):
            raise ValueError(f"{raw!r:.80}: a metadata key is a text")
        [key] = _Value(metadata={raw: None}).metadata
        if key == ATTACHMENTS:
            raise ValueError(f"{key}: attachments can't be filtered")
        bare: dict[object, object] = {"$in" if isinstance(wanted, (list, tuple, set, frozenset)) else "$eq": wanted}
        operators = cast("Mapping[object, object]", wanted) if isinstance(wanted, Mapping) else bare
        if not operators:
            raise ValueError(f"{key}: no operator is given; known are {', '.join(get_args(Operator))}")
        found[key] = {str(name): _operand(key, name, value) for name, value in operators.items()}
    return found


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Identifiers = Annotated[tuple[Identifier, ...], BeforeValidator(_one_or_many)]
_Sources = Annotated[tuple[EpisodeSource, ...], BeforeValidator(_one_or_many)]
_Conditions = Annotated[dict[str, Any], BeforeValidator(_conditions)]


class EpisodeFilter(Model):
    """Filter for episodes; None doesn't restrict, conditions are ANDed.

    Parameters
    ----------
    session_ids, speakers, roles, sources
        Allowed values of that field; one text stands for a list of it. They are compared as stored, so that upper and
        lower case differ, also of speakers, other than for `asked_by`.
    session_prefix
        Episodes of sessions whose id begins with this text: no wildcards, and upper and lower case differ.
    since, until
        Episodes that occurred at `since` or later, and before `until`.
    metadata
        Key → value, a list of alternative values, or operators with values: ``{"topic": "tax", "team": ["a", "b"],
        "page": {"$gte": 2, "$lt": 9}}``.

        ``$eq``, ``$ne``, ``$in``, ``$nin`` compare by type and value: 1 equals 1.0, but neither True nor "1". A key
        that an episode doesn't have counts as null. ``$gt``, ``$gte``, ``$lt``, ``$lte`` compare numbers with numbers
        and texts with texts, by code points; other values never match. ``$exists`` is true for a stored null.
    """

    session_ids: _Identifiers | None = None
    session_prefix: Text | None = None
    speakers: _Identifiers | None = None
    roles: _Identifiers | None = None
    sources: _Sources | None = None
    since: UTCDateTime | None = None
    until: UTCDateTime | None = None
    metadata: _Conditions = Field(default_factory=dict[str, Any])

    @property
    def is_empty(self) -> bool:
        """Whether the filter matches all episodes."""
        return not self.metadata and all(
            getattr(self, name) is None for name in type(self).model_fields if name != "metadata"
        )


def filter_matches(episode: Episode, wanted: EpisodeFilter) -> bool:
    """Return whether a filter matches an episode; the single definition that every store implements."""
    return (
        (wanted.session_ids is None or episode.session_id in wanted.session_ids)
        and (
            wanted.session_prefix is None
            or (episode.session_id is not None and episode.session_id.startswith(wanted.session_prefix))
        )
        and (wanted.speakers is None or episode.speaker in wanted.speakers)
        and (wanted.roles is None or episode.role in wanted.roles)
        and (wanted.sources is None or episode.source in wanted.sources)
        and (wanted.since is None or episode.occurred_at >= wanted.since)
        and (wanted.until is None or episode.occurred_at < wanted.until)
        and metadata_matches(episode.metadata, wanted.metadata)
    )


def metadata_matches(metadata: Mapping[str, Scalar], conditions: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether all conditions hold for the metadata of an episode."""
    return all(
        _holds(metadata, key, name, value) for key, operators in conditions.items() for name, value in operators.items()
    )


def _holds(metadata: Mapping[str, Scalar], key: str, name: str, wanted: Any) -> bool:
    value = metadata.get(key)
    match name:
        case "$exists":
            return (key in metadata) is wanted
        case "$eq":
            return _equal(value, wanted)
        case "$ne":
            return not _equal(value, wanted)
        case "$in":
            return any(_equal(value, one) for one in wanted)
        case "$nin":
            return not any(_equal(value, one) for one in wanted)
        case _:
            return _comparable(value, wanted) and ORDERS[name](value, wanted)


def _equal(value: Scalar, wanted: Scalar) -> bool:
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _comparable(value: Scalar, wanted: Scalar) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    return isinstance(value, str) == isinstance(wanted, str)


# Queries ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuery:
    """Filter for entities; None doesn't restrict.

    `ids` and `entity_types` select; `as_of` excludes entities not recorded by `known`, not seen by `valid`, or outside
    of their own validity. Archived entities are excluded unless `archived` is True or they are named in `ids`.
    """

    ids: tuple[str, ...] | None = None
    entity_types: tuple[str, ...] | None = None
    as_of: AsOf | None = None
    archived: bool = False


Versions = Literal["visible", "active", "past", "all"]
TimeAxis = Literal["valid_from", "valid_to", "recorded_at", "expired_at"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeQuery:
    """Filter for edges; None doesn't restrict, conditions are ANDed.

    Attributes
    ----------
    ids, source_ids, target_ids, relations, edge_types
        Allowed values of that column.
    touching
        Entity ids that match either end.
    keys
        (source, target, relation, edge type) tuples, matched exactly.
    slots
        (source, relation) tuples, matched exactly: the versions of a single-valued fact.
    kinds
        Allowed values of `Edge.kind`.
    ended_by
        Edges that one of these episodes or facts ended, by id: see `Edge.superseded_by` and `EdgeEnd.by`.
    text
        Substring of the fact or the relation, ASCII case-insensitive; no wildcards.
    window
        (axis, after, until): rows whose time on that axis is in ``(after, until]``.
    versions
        "visible" (the default: `is_visible` with `as_of`); or, whatever `as_of`, "active", "past" (`is_past`) or "all".
    """

    ids: tuple[str, ...] | None = None
    source_ids: tuple[str, ...] | None = None
    target_ids: tuple[str, ...] | None = None
    touching: tuple[str, ...] | None = None
    relations: tuple[str, ...] | None = None
    edge_types: tuple[EdgeType, ...] | None = None
    keys: tuple[EdgeKey, ...] | None = None
    slots: tuple[tuple[str, str], ...] | None = None
    kinds: tuple[FactKind, ...] | None = None
    ended_by: tuple[str, ...] | None = None
    text: str | None = None
    window: tuple[TimeAxis, datetime, datetime] | None = None
    versions: Versions = "visible"
    as_of: AsOf | None = None


EpisodeState = Literal["processed", "pending", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeQuery:
    """Filter for episodes; None doesn't restrict, conditions are ANDed.

    `before` is an episode id and selects the earlier episodes of its session (ids are in insertion order).
    `state`: processed; pending (not processed, attempts left); failed (not processed, no attempts left).
    `as_of` excludes episodes recorded after `known` or that occurred after `valid`.
    `filters`: those that `filter_matches`.
    `live_at` excludes episodes that can't be found at that time (`is_live`, with `as_of`); `hidden_at` selects them.
    `expired_by` selects those whose `expires_at` isn't later.
    """

    ids: tuple[str, ...] | None = None
    external_ids: tuple[str, ...] | None = None
    session_id: str | None = None
    before: str | None = None
    state: EpisodeState | None = None
    as_of: AsOf | None = None
    filters: EpisodeFilter | None = None
    live_at: datetime | None = None
    hidden_at: datetime | None = None
    expired_by: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityQuery:
    """Filter for communities; None doesn't restrict, conditions are ANDed.

    Attributes
    ----------
    ids, level
        Allowed ids; the required level.
    entity_ids
        Communities that contain one of these entities at the time of the read.
    as_of, ended
        Time of the read, and whether ended communities are included: see `existed`.
    """

    ids: tuple[str, ...] | None = None
    level: int | None = None
    entity_ids: tuple[str, ...] | None = None
    as_of: AsOf | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipQuery:
    """Filter for memberships; None doesn't restrict, conditions are ANDed.

    Attributes
    ----------
    community_ids, entity_ids
        Allowed ids of either side.
    level
        The level of the community.
    as_of, ended
        Time of the read, and whether ended memberships are included: see `existed`. The end of the community isn't
        checked, because a community and its memberships end in the same write.
    """

    community_ids: tuple[str, ...] | None = None
    entity_ids: tuple[str, ...] | None = None
    level: int | None = None
    as_of: AsOf | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """Filter for recall traces; None doesn't restrict, conditions are ANDed.

    Attributes
    ----------
    ids
        Allowed ids.
    entity_ids
        Traces with one of these as a seed or as the `entity_id` of a fact.
    edge_ids, episode_ids
        Traces that reached one of these, returned or not.
    """

    ids: tuple[str, ...] | None = None
    entity_ids: tuple[str, ...] | None = None
    edge_ids: tuple[str, ...] | None = None
    episode_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeQuery:
    """Filter for merges; None doesn't restrict, conditions are ANDed.

    Attributes
    ----------
    ids
        Allowed ids.
    entity_ids
        Merges in which one of these was kept or merged.
    undone
        Whether undone merges are included.
    """

    ids: tuple[str, ...] | None = None
    entity_ids: tuple[str, ...] | None = None
    undone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandLimits:
    """Limits of one `expand`.

    A hop starts from at most `max_frontier` nodes and reads the
    ``max(5, min(max_degree, max_edges // nodes in the frontier))`` best edges of each.
    """

    max_frontier: int = 300
    max_degree: int = 300
    max_edges: int = 1500

    def per_node(self, frontier: int) -> int:
        """Return the number of edges read per node for a frontier of this size."""
        return max(5, min(self.max_degree, self.max_edges // max(1, frontier)))


@dataclass(frozen=True, slots=True)
class EntityHit:
    """An entity found by a search.

    Attributes
    ----------
    entity
        The entity.
    alias
        The longest query phrase that is an alias of the entity, or None if only words matched.
    degree
        Number of visible edges, counted over the 1,000 with the highest confidence.
    edge_types
        Number of distinct edge types among them.
    """

    entity: Entity
    alias: str | None
    degree: int
    edge_types: int


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session: its id, the number of its episodes, when they occurred, and who spoke.

    `first_at` and `last_at` are the times of the earliest and the latest episode; `speakers` are sorted.
    """

    id: str
    episodes: int
    first_at: datetime
    last_at: datetime
    speakers: tuple[str, ...] = ()


def combined_sessions(parts: Iterable[SessionSummary], limit: int) -> list[SessionSummary]:
    """Return the first sessions by id, at most `limit`, of summaries of parts of them: of episodes, or of scopes."""
    groups: dict[str, list[SessionSummary]] = {}
    for part in parts:
        groups.setdefault(part.id, []).append(part)
    return [
        SessionSummary(
            id=session_id,
            episodes=sum(part.episodes for part in group),
            first_at=min(part.first_at for part in group),
            last_at=max(part.last_at for part in group),
            speakers=tuple(sorted({speaker for part in group for speaker in part.speakers})),
        )
        for session_id, group in sorted(groups.items())[:limit]
    ]


class ActiveFact(NamedTuple):
    """Columns of an active fact between two unarchived entities that community detection reads.

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


K = TypeVar("K")
SubgraphEdge = tuple[str, K, K, str, EdgeType, str, float, float, float, bool]
"""Id, keys of source and target, relation, type, fact, confidence, retrieval count, start (seconds), inferred."""


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    """The neighborhood of a set of seeds as arrays: n nodes, m edges.

    Attributes
    ----------
    node_ids, names, entity_types
        n strings each; nodes are ordered by depth, then id.
    depth
        int array (n,): hops from the nearest seed, ignoring edge direction.
    edge_ids, relations, facts
        m strings each.
    edge_types
        m edge types.
    source, target
        int arrays (m,): positions in the node lists.
    confidence, retrieval_count
        float arrays (m,).
    valid_from
        float array (m,): seconds since 1970, UTC.
    inferred
        bool array (m,): whether the edge was inferred from others.
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
    inferred: NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        names = [each.name for each in fields(self)]
        return isinstance(other, Subgraph) and all(list(getattr(self, n)) == list(getattr(other, n)) for n in names)

    @classmethod
    def of(
        cls, nodes: Mapping[K, tuple[str, str, str]], depth: Mapping[K, int], edges: Iterable[SubgraphEdge[K]]
    ) -> Subgraph:
        """Return the subgraph of the nodes with a depth and the edges between them; any key may name a node.

        Parameters
        ----------
        nodes
            Key → id, name and type.
        depth
            Key → hops from the nearest seed.
        edges
            Edges in any order.
        """
        import numpy as np  # not at the top: opening a store needs no numpy

        order = sorted(depth, key=lambda key: (depth[key], nodes[key][0]))
        position = {key: i for i, key in enumerate(order)}
        inside = sorted((e for e in edges if e[1] in position and e[2] in position), key=lambda edge: edge[0])
        return cls(
            node_ids=[nodes[key][0] for key in order],
            names=[nodes[key][1] for key in order],
            entity_types=[nodes[key][2] for key in order],
            depth=np.array([depth[key] for key in order], dtype=np.int64),
            edge_ids=[edge[0] for edge in inside],
            relations=[edge[3] for edge in inside],
            edge_types=[edge[4] for edge in inside],
            facts=[edge[5] for edge in inside],
            source=np.array([position[edge[1]] for edge in inside], dtype=np.int64),
            target=np.array([position[edge[2]] for edge in inside], dtype=np.int64),
            confidence=np.array([edge[6] for edge in inside], dtype=np.float64),
            retrieval_count=np.array([edge[7] for edge in inside], dtype=np.float64),
            valid_from=np.array([edge[8] for edge in inside], dtype=np.float64),
            inferred=np.array([edge[9] for edge in inside], dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Row counts of a scope; totals include archived and ended rows.

    `aliases` counts all names of entities, their own canonical names among them: one without other names counts 1.
    `community_members` counts the entities that are currently in a community of level 0.
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
