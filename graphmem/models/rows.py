"""The rows of a memory: scopes, entities, facts, episodes, mentions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal, Self, cast
from urllib.parse import quote, unquote

from pydantic import Field, model_validator

from graphmem.errors import InvalidInput
from graphmem.models.base import (
    END_OF_TIME,
    MAX_FACT_BYTES,
    MAX_RELATION_BYTES,
    Attachment,
    Confidence,
    Identifier,
    Model,
    Properties,
    Text,
    UTCDateTime,
    new_id,
    split_attachments,
    utc_now,
)
from graphmem.models.metadata import ATTACHMENTS, UTC_OFFSET


class EdgeType(StrEnum):
    """The five typed subgraphs of a memory (MAGMA, arXiv 2601.03236); parsed case-sensitively."""

    SEMANTIC = "semantic"
    TEMPORAL = "temporal"
    CAUSAL = "causal"
    ENTITY = "entity"
    CO_OCCURRENCE = "co_occurrence"


_ScopePart = Annotated[str, Field(min_length=1, max_length=256)]


class Scope(Model):
    """The owner of a row. Every row has one; every read and write names one.

    Parameters
    ----------
    domain
        A tenant, a user or an application; domains are isolated from each other.
    project_id
        An optional part of a domain. ``Scope("a")`` and ``Scope("a", "p")`` are different scopes:
        None never means "all projects".
    """

    domain: _ScopePart = "default"
    project_id: _ScopePart | None = None

    def __init__(self, domain: str = "default", project_id: str | None = None) -> None:
        super().__init__(domain=domain, project_id=project_id)

    @property
    def key(self) -> str:
        """The key of the scope in stores and exports, percent-encoded and unique."""
        return _scope_key(self.domain, self.project_id)

    @staticmethod
    def from_key(key: str) -> Scope:
        """Parse the value of `key`."""
        return _scope_of(key)

    def __str__(self) -> str:
        """Return the text that `from_text` parses to this scope: ``domain`` or ``domain/project``, not encoded."""
        if "/" in self.domain:
            return f"/{self.key}"
        return self.domain if self.project_id is None else f"{self.domain}/{self.project_id}"

    @staticmethod
    def from_text(text: str) -> Scope:
        """Parse a scope from ``domain`` or ``domain/project``, split at the first "/"; nothing is decoded.

        Different texts are different scopes, and `str` is the inverse. A scope whose domain contains a "/", which only
        the constructor can create, is written as "/" followed by its `key`.

        Raises
        ------
        InvalidInput
            If a part is empty or longer than 256 characters.
        """
        domain, slash, project = text.partition("/")
        if domain or not slash:
            return Scope(domain, project if slash else None)
        scope = _scope_of(project) if project[:1] not in ("", "/") else None
        if scope is None or str(scope) != text:
            raise InvalidInput(f"scope {text!r:.120}: nothing stands before the first '/'; write domain/project")
        return scope


@lru_cache(maxsize=4096)
def _scope_of(key: str) -> Scope:
    domain, slash, project = key.partition("/")
    return Scope(unquote(domain), unquote(project) if slash else None)


@lru_cache(maxsize=4096)
def _scope_key(domain: str, project_id: str | None) -> str:
    key = quote(domain, safe="")
    return key if project_id is None else f"{key}/{quote(project_id, safe='')}"


class AsOf(Model):
    """A point on both time axes.

    Parameters
    ----------
    valid
        Valid time: when the fact held in the world. Defaults to `known`, so that ``AsOf(known=k)`` is
        what was known at k about that moment.
    known
        Transaction time: what graphmem had recorded by then. Defaults to now.
    """

    valid: UTCDateTime
    known: UTCDateTime

    def __init__(self, valid: datetime | str | None = None, known: datetime | str | None = None) -> None:
        known = utc_now() if known is None else known
        super().__init__(valid=known if valid is None else valid, known=known)


class Entity(Model):
    """A node of the graph: a person or thing that facts are about.

    `first_seen_at` is the earliest known time of the entity: of a mention, or the start of a fact.
    """

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
    """A normalized surface form that stands for one entity of its type in a scope."""

    alias: Text
    entity_type: str
    entity_id: str


Certainty = Literal["stated", "plan", "hearsay", "possible"]
"""How sure a fact was when it was told: stated, planned, reported of somebody else, or merely possible."""

FactKind = Literal["state", "event", "inferred"]
"""Whether a fact is a state, which holds until it ends, an event, which happened once, or implied by other facts."""

STATED_KINDS: tuple[FactKind, ...] = ("state", "event")
"""Kinds of the facts that were stated."""

EndReason = Literal["over", "corrected", "replaced"]
"""Why extraction ended a fact: it stopped being true, it never was, or another one took its place."""


_NO_END = {"expired_at": None, "superseded_by": None, "end_reason": None, "prior_valid_to": None}


class EdgeEnd(Model):
    """One end of a fact.

    Parameters
    ----------
    by
        Id of the episode that stated it, or of the fact that contradicts the one that ended; empty for an end by hand.
    at
        When the fact ended; `END_OF_TIME` calls off the ends that were told before.
    told_at
        When that was said; `at` in rows of older versions.
    """

    by: str
    at: UTCDateTime
    told_at: UTCDateTime

    @model_validator(mode="before")
    @classmethod
    def _told(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {"told_at": data.get("at"), **data}  # exports of older versions don't have it


class EdgeBeginning(Model):
    """A beginning of a fact, as an episode stated it.

    Parameters
    ----------
    by
        Id of the episode.
    at, told_at
        When the fact began, and when that was said.
    """

    by: str
    at: UTCDateTime
    told_at: UTCDateTime


class Edge(Model):
    """One version of a fact, with its times on both axes.

    Valid time is ``[valid_from, valid_to)``: when the fact held in the world. Transaction time is
    ``[recorded_at, expired_at)``: from when graphmem recorded the fact until it recorded its end.

    Parameters
    ----------
    certainty, kind
        How sure the fact is, and whether it is a state, an event or inferred.
    properties
        Scalars of the caller; of an inferred fact `INFERRED_BY` and `PREMISES`.
    valid_from_assumed
        Whether no beginning was told: `valid_from` is the time of telling, or the last day of a fact that was over.
    told_at
        When the telling that decided the times of the fact occurred; None in rows of older versions.
    prior_valid_to
        The stated end of a fact that ended sooner than stated.
    end_reason
        Why the fact ended: a value of `EndReason`, or the words given to ``retract`` or ``end``.
    ends
        All ends that were stated, in the order in which they were learned; `end_of` says which of them counts. That
        another fact of its slot superseded the fact is not among them.
    beginnings
        All beginnings that its episodes stated; older versions didn't record them. Events have none.
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
    certainty: Certainty = "stated"
    kind: FactKind = "state"
    valid_from_assumed: bool = False
    told_at: UTCDateTime | None = None
    prior_valid_to: UTCDateTime | None = None
    end_reason: Text | None = None
    ends: tuple[EdgeEnd, ...] = ()
    beginnings: tuple[EdgeBeginning, ...] = ()

    @model_validator(mode="after")
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
        """The key that is unique among the active edges of a scope."""
        return (self.source_id, self.target_id, self.relation, self.edge_type)

    @property
    def is_active(self) -> bool:
        """Whether the edge has neither an end nor an expiry."""
        return self.valid_to is None and self.expired_at is None

    @property
    def is_inferred(self) -> bool:
        """Whether the edge was inferred from others."""
        return self.kind == "inferred"

    @property
    def inferred_by(self) -> str | None:
        """Name of the rule that inferred the edge; None if it was stated."""
        return str(self.properties.get(INFERRED_BY)) if self.is_inferred else None

    @property
    def premises(self) -> tuple[str, ...]:
        """Ids of the edges that the edge was inferred from; empty if it was stated."""
        return tuple(str(self.properties.get(PREMISES, "")).split()) if self.is_inferred else ()

    def as_known(self, known: datetime) -> Self:
        """Return the fact as recorded at a transaction time, with the end that was known then."""
        if self.expired_at is None or self.expired_at <= known:
            return self
        return self.changed(valid_to=self.prior_valid_to, **_NO_END)

    @property
    def ended_by(self) -> set[str]:
        """Ids of the episodes and facts that ended the edge: see `EdgeQuery.ended_by`."""
        return {end.by for end in self.ends} | ({self.superseded_by} if self.superseded_by is not None else set())

    @property
    def stated_end(self) -> datetime | None:
        """The end that counts if no other fact of its slot supersedes the fact; None if no end was stated."""
        return end_of(self.ends, self.prior_valid_to)

    @property
    def first_stated(self) -> EdgeBeginning | None:
        """The beginning that was stated first, of those that lie before the end; None if none is known."""
        before = (each for each in self.beginnings if self.valid_to is None or each.at < self.valid_to)
        return min(before, key=lambda each: each.told_at, default=None)

    def stated_by(self, episode_ids: Collection[str]) -> Self:
        """Return the fact with these episodes, without beginnings that others stated."""
        left = tuple(each for each in self.beginnings if each.by in episode_ids)
        return self.changed(episode_ids=tuple(episode_ids), beginnings=left)

    def without_end(self) -> Self:
        """Return the fact as it was before it was superseded: with its stated end, if any, and its own beginning."""
        begins = self.told_at if self.valid_from_assumed and self.told_at is not None else self.valid_from
        return self.changed(valid_from=begins, valid_to=self.stated_end, **_NO_END)

    def without_ends(self, by: Collection[str], keep: Collection[EdgeEnd] = ()) -> Self:
        """Return the fact without the ends that these episodes and facts brought; one that others stated counts then.

        Ends set by hand, and ends whose source isn't known, stay. Ends in `keep` stay, too.
        """
        left = tuple(end for end in self.ends if end.by not in by or end in keep)
        gone = {end.at for end in self.ends} - {end.at for end in left}
        prior = None if self.prior_valid_to in gone else self.prior_valid_to
        edge = self.changed(ends=left, prior_valid_to=prior)
        if self.superseded_by not in by and gone.isdisjoint((self.valid_to, END_OF_TIME)):
            return edge
        edge = edge.without_end()
        if self.superseded_by is None:
            edge = edge.changed(valid_from=self.valid_from)
        return edge if edge.valid_to in (None, prior) else edge.changed(expired_at=self.expired_at, end_reason="over")


EdgeKey = tuple[str, str, str, EdgeType]

INFERRED_BY, PREMISES = "inferred_by", "premises"
"""Properties of an inferred edge: the name of the rule, and the ids of the premises, separated by spaces."""


_SURENESS: Mapping[Certainty, int] = {"possible": 0, "hearsay": 1, "plan": 2, "stated": 3}


def sureness(certainty: Certainty) -> int:
    """Return the rank of a certainty, the higher the surer."""
    return _SURENESS[certainty]


def least_sure(certainties: Iterable[Certainty]) -> Certainty:
    """Return the least sure of some certainties."""
    return min(certainties, key=sureness)


def may_end(later: Certainty, earlier: Certainty, *, same_fact: bool = False) -> bool:
    """Return whether a telling of one certainty may end a fact of another.

    A plan ends only plans, and is ended by plans, or by its own fact once that is stated. Otherwise a fact ends those
    that aren't surer.
    """
    if same_fact:
        return _SURENESS[later] > _SURENESS[earlier]
    if "plan" in (later, earlier):
        return later == earlier
    return _SURENESS[later] >= _SURENESS[earlier]


def is_visible(
    valid_from: datetime,
    valid_to: datetime | None,
    recorded_at: datetime,
    expired_at: datetime | None,
    prior_valid_to: datetime | None,
    as_of: AsOf | None,
    now: datetime,
) -> bool:
    """Return whether a read sees a version of a fact; the single definition that every store implements.

    With `as_of`: recorded by `known`, started by `valid`, and not ended at `valid`; an end that was not yet recorded
    at `known` doesn't count, but the one stated before, `prior_valid_to`, does. Without: not ended at `now` and not
    retracted, so that facts that start or end in the future are visible.
    """
    if as_of is None:
        return valid_to is None or (valid_to > now and valid_to > valid_from)
    if recorded_at > as_of.known or valid_from > as_of.valid:
        return False
    end = prior_valid_to if expired_at is not None and as_of.known < expired_at else valid_to
    return end is None or as_of.valid < end


def is_retracted(edge: Edge) -> bool:
    """Return whether a fact never held."""
    return edge.valid_from == edge.valid_to


def end_of(ends: Collection[EdgeEnd], *others: datetime | None) -> datetime | None:
    """Return the end that counts: the first in time, except that a planned one yields to what was told later.

    An end is planned if it lay ahead when it was told. What was told later moves it to a later time only if it names
    one: an end that is simply told to be over, at the time of telling, doesn't. `END_OF_TIME` calls off what was told
    before.

    Parameters
    ----------
    ends
        The stated ends.
    *others
        Ends whose time of telling isn't known.
    """
    recorded = {end.at for end in ends}
    found: datetime | None = min((at for at in others if at is not None and at not in recorded), default=None)
    planned = False
    for end in sorted(ends, key=lambda end: (end.told_at, end.at)):
        if end.at == END_OF_TIME:
            found = None
        elif found is None or end.at < found or (planned and end.at not in (found, end.told_at)):
            found, planned = end.at, end.at > end.told_at
    return found


def ended(edge: Edge, at: datetime, now: datetime, reason: str, by: str | None = None) -> Edge:
    """Return a fact with an end, not before its beginning; a sooner end replaces a stated one, which is kept.

    Parameters
    ----------
    edge
        The fact.
    at, now
        When it ended, and when that is recorded.
    reason
        Why it ended.
    by
        Id of the fact that supersedes it.
    """
    at = max(at, edge.valid_from)
    prior = edge.prior_valid_to or (edge.valid_to if edge.superseded_by is None else None)
    return edge.changed(valid_to=at, expired_at=now, superseded_by=by, end_reason=reason, prior_valid_to=prior)


def with_end(edge: Edge, end: EdgeEnd) -> Edge:
    """Return a fact with a further stated end, whether it counts or not: see `Edge.ends`."""
    return edge if end in edge.ends else edge.changed(ends=(*edge.ends, end))


def retracted(edge: Edge, now: datetime, reason: str, by: str | None = None) -> Edge:
    """Return a fact that never held: it ends where it begins; parameters as in `ended`."""
    return ended(edge, edge.valid_from, now, reason, by)


def is_past(valid_from: datetime, valid_to: datetime | None, superseded_by: str | None, now: datetime) -> bool:
    """Return whether a version of a fact is over without having been replaced or retracted."""
    return superseded_by is None and valid_to is not None and valid_from < valid_to <= now


EpisodeSource = Literal["message", "document", "triple"]


class Episode(Model):
    """One ingested item: a message, a document or a set of triples.

    `ended_at` is when the episode was replaced, if it was; it stays as history. From `expires_at` on, nothing of the
    episode is returned, and it is going to be erased. Both are decided by `is_live`.

    Metadata in which a store keeps attachments (`split_attachments`) is split when an episode is built from it.
    """

    id: str = Field(default_factory=new_id)
    scope: Scope
    source: EpisodeSource = "message"
    text: Text
    session_id: Identifier | None = None
    role: Identifier | None = None
    speaker: Identifier | None = None
    title: Text | None = None
    occurred_at: UTCDateTime = Field(default_factory=utc_now)
    recorded_at: UTCDateTime = Field(default_factory=utc_now)
    metadata: Properties = {}
    attachments: tuple[Attachment, ...] = ()
    external_id: Identifier | None = None
    processed_at: UTCDateTime | None = None
    attempts: int = 0
    error: Text | None = None
    retry_at: UTCDateTime | None = None
    ended_at: UTCDateTime | None = None
    expires_at: UTCDateTime | None = None

    @model_validator(mode="before")
    @classmethod
    def _split_metadata(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        given = cast("dict[str, Any]", fields)
        metadata: object = given.get("metadata")
        if not isinstance(metadata, dict) or ATTACHMENTS not in metadata:
            return given
        stored = cast("Properties", metadata)
        attachments = given.get(ATTACHMENTS) or split_attachments(stored)[1]
        if not attachments:
            return given
        return {**given, "metadata": {k: v for k, v in stored.items() if k != ATTACHMENTS}, ATTACHMENTS: attachments}

    @property
    def searchable_text(self) -> str:
        """The text, then one line for each attachment that it doesn't quote: the description, else the name."""
        shown = (each.description or each.name for each in self.attachments)
        return "\n".join((self.text, *(words for words in shown if words and words not in self.text)))

    @property
    def attached(self) -> str:
        """The attachments that the text doesn't quote, such as ``[image: a dog on a beach]``; "" for none."""
        return " ".join(shown for each in self.attachments if (shown := str(each)) not in self.text)

    @property
    def author(self) -> str:
        """Who or what a quote of it names: its speaker, else its title, its role or its kind of source."""
        return self.speaker or self.title or self.role or self.source

    @property
    def local_time(self) -> datetime:
        """The time of occurrence in the author's UTC offset if known, otherwise in UTC; resolves words like "today"."""
        offset = self.metadata.get(UTC_OFFSET)
        if not isinstance(offset, str):
            return self.occurred_at
        try:
            return self.occurred_at.astimezone(datetime.strptime(offset, "%z").tzinfo)
        except (ValueError, OverflowError):
            return self.occurred_at


def is_live(ended_at: datetime | None, expires_at: datetime | None, as_of: AsOf | None, now: datetime) -> bool:
    """Return whether an episode can be found; the single definition that every store implements.

    It has not expired at `now`, whatever `as_of`, and not ended: at `now`, or at `as_of.valid` as `as_of.known`.
    """
    return not is_expired(expires_at, now) and (ended_at is None or ended_at > ended_by(as_of, now))


def is_expired(expires_at: datetime | None, now: datetime) -> bool:
    """Return whether an episode has expired: nothing of it is returned by any read."""
    return expires_at is not None and expires_at <= now


def ended_by(as_of: AsOf | None, now: datetime) -> datetime:
    """Return the time by which an episode must have ended to be hidden from a read."""
    return now if as_of is None else min(as_of.valid, as_of.known)


class Mention(Model):
    """A mention of an entity in an episode; at most one row per pair, so an episode counts once."""

    entity_id: str
    episode_id: str
    surface: Text
    confidence: Confidence = 1.0
    seen_at: UTCDateTime


def one_or_many(scopes: Scope | Iterable[Scope]) -> tuple[Scope, ...]:
    """Return the scopes of a read as a tuple without duplicates; raise `InvalidInput` if there are none."""
    found = (scopes,) if isinstance(scopes, Scope) else tuple(dict.fromkeys(scopes))
    if not found:
        raise InvalidInput("scopes: at least one scope is required, got none")
    if wrong := [scope for scope in found if not isinstance(scope, Scope)]:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"scopes: expected Scope objects, got {wrong[0]!r}")
    return found
