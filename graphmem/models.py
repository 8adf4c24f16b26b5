"""The data model: scopes, entities, facts, episodes and what a read returns (spec: data model).

Everything here is frozen. Times are timezone-aware UTC; naive input is an error.
Models validate where data enters; hot read paths use the arrays of `Subgraph`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import quote, unquote

import uuid_utils
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic import model_validator as _model_validator

from graphmem.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Scalar = str | int | float | bool | None

MAX_NAME_BYTES = 512
MAX_RELATION_BYTES = 256
MAX_FACT_BYTES = 2048


def new_id() -> str:
    """Return a new UUIDv7 as text: unique, and ordered by the time it was made (RFC 9562)."""
    return str(uuid_utils.uuid7())


def utc_now() -> datetime:
    """Return the present moment as an aware UTC datetime."""
    return datetime.now(UTC)


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(
            f"naive datetime {value.isoformat()}: give it a time zone, for example "
            "datetime(2026, 1, 31, tzinfo=timezone.utc) or '2026-01-31T00:00:00Z'"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{value.isoformat()} is in UTC before the year 1 or after the year 9999") from None


def _no_numbers(value: Any) -> Any:
    # pydantic would read a bare number as seconds since 1970: never what a caller meant
    if isinstance(value, (int, float)):
        raise ValueError("a time is a datetime or an ISO 8601 text with a time zone, not a number")
    return value


UTCDateTime = Annotated[datetime, BeforeValidator(_no_numbers), AfterValidator(_to_utc)]
Confidence = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


def _encodable(value: Any) -> Any:
    # lone surrogates can't be stored as UTF-8 anywhere; names lose them too (graphmem.text.normalise)
    return value.encode("utf-8", "ignore").decode("utf-8") if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_encodable)]


def _scalars(value: Mapping[str, Any]) -> Mapping[str, Any]:
    for key, item in value.items():
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"property {key!r} is {item}: only finite numbers can be stored")
    return {_encodable(key): _encodable(item) for key, item in value.items()}


Properties = Annotated[dict[str, Scalar], AfterValidator(_scalars)]


class Model(BaseModel):
    """Base of the models: frozen, no unknown fields, and errors of our own tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidInput(_explain(type(self).__name__, error)) from error

    def changed(self, **updates: Any) -> Self:
        """Return a copy with some fields replaced; the new values are taken as they are."""
        return self.model_copy(update=updates)


def _explain(model: str, error: ValidationError) -> str:
    lines: list[str] = []
    for problem in error.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in problem["loc"]) or "value"
        shown = repr(problem.get("input"))
        if len(shown) > 120:
            shown = f"{shown[:117]}…"
        lines.append(f"{model}.{where}: {problem['msg']} (got {shown})")
    return "; ".join(lines)


class EdgeType(StrEnum):
    """The five typed subgraphs of a memory (MAGMA, arXiv 2601.03236); parsed case-sensitively."""

    SEMANTIC = "semantic"
    TEMPORAL = "temporal"
    CAUSAL = "causal"
    ENTITY = "entity"
    CO_OCCURRENCE = "co_occurrence"


class Scope(Model):
    """Whose data a row is. Every row carries one, every read and write names one.

    Parameters
    ----------
    domain
        A tenant, a user, an application: whatever must not see the others.
    project_id
        An optional part of a domain. ``Scope("a")`` and ``Scope("a", "p")`` are two scopes:
        an absent project is never "all projects".
    """

    domain: Annotated[str, Field(min_length=1, max_length=256)] = "default"
    project_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None

    def __init__(self, domain: str = "default", project_id: str | None = None) -> None:
        super().__init__(domain=domain, project_id=project_id)

    @property
    def key(self) -> str:
        """The scope as one text, percent-encoded, so that two scopes never share one."""
        domain = quote(self.domain, safe="")
        return domain if self.project_id is None else f"{domain}/{quote(self.project_id, safe='')}"

    @classmethod
    def from_key(cls, key: str) -> Scope:
        """Read back what `key` wrote."""
        domain, slash, project = key.partition("/")
        return cls(unquote(domain), unquote(project) if slash else None)

    def __str__(self) -> str:
        return self.key


class AsOf(Model):
    """A point on both time axes.

    Parameters
    ----------
    valid
        When the fact held in the world. Defaults to `known`, so that ``AsOf(known=k)`` is what was
        believed at k about that moment.
    known
        What graphmem had been told by then. Defaults to now.
    """

    valid: UTCDateTime
    known: UTCDateTime

    def __init__(self, valid: datetime | str | None = None, known: datetime | str | None = None) -> None:
        known = utc_now() if known is None else known
        super().__init__(valid=known if valid is None else valid, known=known)


class Entity(Model):
    """A node of the graph: somebody or something that facts are about."""

    id: str = Field(default_factory=new_id)
    scope: Scope
    name: Text
    canonical_name: Text
    entity_type: str
    summary: Text = ""
    properties: Properties = {}
    confidence: Confidence = 1.0
    first_seen_at: UTCDateTime
    last_seen_at: UTCDateTime
    recorded_at: UTCDateTime = Field(default_factory=utc_now)
    access_count: int = 0
    archived_at: UTCDateTime | None = None
    valid_from: UTCDateTime | None = None
    valid_to: UTCDateTime | None = None


class Alias(Model):
    """A normalised surface form that stands for one entity of its type in a scope."""

    alias: Text
    entity_type: str
    entity_id: str


class Edge(Model):
    """A fact: one version of it, with both of its times.

    Valid time is ``[valid_from, valid_to)``: when it held in the world. Transaction time is
    ``[recorded_at, expired_at)``: from when graphmem knew it until it learned that it had ended.
    """

    id: str = Field(default_factory=new_id)
    scope: Scope
    source_id: str
    target_id: str
    relation: Text
    edge_type: EdgeType = EdgeType.SEMANTIC
    fact: Text = ""
    confidence: Confidence = 1.0
    valid_from: UTCDateTime
    valid_to: UTCDateTime | None = None
    recorded_at: UTCDateTime = Field(default_factory=utc_now)
    expired_at: UTCDateTime | None = None
    superseded_by: str | None = None
    episode_ids: tuple[str, ...] = ()
    retrieval_count: float = 0.0
    last_retrieved_at: UTCDateTime | None = None
    properties: Properties = {}

    @_model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.source_id == self.target_id:
            raise ValueError(f"a fact needs two different ends, both are {self.source_id}")
        if self.valid_to is not None and self.valid_to < self.valid_from:
            raise ValueError(
                f"valid_to {self.valid_to.isoformat()} lies before valid_from {self.valid_from.isoformat()}"
            )
        for name, value, limit in (
            ("relation", self.relation, MAX_RELATION_BYTES),
            ("fact", self.fact, MAX_FACT_BYTES),
        ):
            if len(value) * 4 > limit and len(value.encode()) > limit:
                raise ValueError(f"{name} has {len(value.encode())} bytes, the limit is {limit}")
        if not self.relation:
            raise ValueError("relation is empty")
        return self

    @property
    def key(self) -> EdgeKey:
        """What is unique among active edges of a scope."""
        return (self.source_id, self.target_id, self.relation, self.edge_type)

    @property
    def is_active(self) -> bool:
        """Whether nothing is known to have ended it."""
        return self.valid_to is None and self.expired_at is None


EdgeKey = tuple[str, str, str, EdgeType]


def is_visible(
    valid_from: datetime,
    valid_to: datetime | None,
    recorded_at: datetime,
    expired_at: datetime | None,
    as_of: AsOf | None,
    now: datetime,
) -> bool:
    """Tell whether a version of a fact is seen by a read: the one definition, which every store follows.

    With `as_of`: recorded by `known`, begun by `valid`, and not over at `valid` (or not known to be
    over at `known`). Without: not over `now` and not retracted, so that facts that begin or end in
    the future are seen.
    """
    if as_of is None:
        return valid_to is None or (valid_to > now and valid_to > valid_from)
    if recorded_at > as_of.known or valid_from > as_of.valid:
        return False
    if valid_to is None or as_of.valid < valid_to:
        return True
    return expired_at is not None and as_of.known < expired_at


EpisodeSource = Literal["message", "document", "triple"]


class Episode(Model):
    """One ingested item: a message, a document or a set of triples."""

    id: str = Field(default_factory=new_id)
    scope: Scope
    source: EpisodeSource = "message"
    text: Text
    session_id: Text | None = None
    role: Text | None = None
    speaker: Text | None = None
    title: Text | None = None
    occurred_at: UTCDateTime = Field(default_factory=utc_now)
    recorded_at: UTCDateTime = Field(default_factory=utc_now)
    metadata: Properties = {}
    external_id: Text | None = None
    processed_at: UTCDateTime | None = None
    attempts: int = 0
    error: Text | None = None
    retry_at: UTCDateTime | None = None


class Mention(Model):
    """An entity was named in an episode; there is at most one row for the two (an episode counts once)."""

    entity_id: str
    episode_id: str
    surface: Text
    confidence: Confidence = 1.0
    seen_at: UTCDateTime


# What reads ask for -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuery:
    """Which entities to read; empty fields don't restrict.

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
    """Which edges to read; empty fields don't restrict, several are ANDed.

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
    """Which episodes to read; empty fields don't restrict, several are ANDed.

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


# What writes carry --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Support:
    """An edge was stated again: its confidence rises to the higher of the two, the episodes are added."""

    edge_id: str
    confidence: float
    episode_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """An edge ended: set once, in the transaction that brings the successor; nothing else of the row changes."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Everything that one write brings into a scope; all of it is stored, or nothing.

    Applied in this order: entities (inserted, or replaced by id), aliases (inserted, or pointed
    elsewhere), closings, edges (inserted, or replaced by id), supports, mentions (the first of an entity
    and an episode stays), outcomes.
    """

    entities: tuple[Entity, ...] = ()
    aliases: tuple[Alias, ...] = ()
    closings: tuple[Closing, ...] = ()
    edges: tuple[Edge, ...] = ()
    supports: tuple[Support, ...] = ()
    mentions: tuple[Mention, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


# What reads return --------------------------------------------------------------------------------


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
    """How much a scope holds."""

    entities: int = 0
    archived_entities: int = 0
    aliases: int = 0
    edges: int = 0
    active_edges: int = 0
    episodes: int = 0
    pending_episodes: int = 0
    failed_episodes: int = 0
    mentions: int = 0
    edges_by_type: Mapping[str, int] = field(default_factory=dict[str, int])
    entities_by_type: Mapping[str, int] = field(default_factory=dict[str, int])


def one_or_many(scopes: Scope | Iterable[Scope]) -> tuple[Scope, ...]:
    """Return the scopes of a read as a tuple; none is an error, there is no "unset means all"."""
    found = (scopes,) if isinstance(scopes, Scope) else tuple(dict.fromkeys(scopes))
    if not found:
        raise InvalidInput("scopes: a read names at least one scope, got none")
    return found
