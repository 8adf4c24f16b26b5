"""Current communities of a scope, and result types of community search and refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from graphmem.models import (
    Community,
    CommunityAlgorithm,
    CommunityQuery,
    Membership,
    MembershipQuery,
    Model,
    Scope,
    UTCDateTime,
)
from graphmem.models.base import START_OF_TIME
from graphmem.protocols import GraphBackend

State = tuple[str, Mapping[str, datetime]]
"""The erasure token (`GraphBackend.erasure_token`), and community id → `updated_at`."""


@dataclass(frozen=True, slots=True)
class Present:
    """The communities of a scope that have not ended.

    Attributes
    ----------
    communities
        Communities by id.
    keys, since
        By level: entity id → id of its community, and start of the membership.
    extra
        Surplus memberships: of entities with another community on that level, or in an ended community.
    latest
        Time of the latest change; the minimum datetime without communities.
    erasure
        The erasure token before reading.
    """

    communities: dict[str, Community] = field(default_factory=dict[str, Community])
    keys: dict[int, dict[str, str]] = field(default_factory=dict[int, "dict[str, str]"])
    since: dict[int, dict[str, datetime]] = field(default_factory=dict[int, "dict[str, datetime]"])
    extra: list[Membership] = field(default_factory=list[Membership])
    latest: datetime = START_OF_TIME
    erasure: str = ""

    def ended(self, level: int, entity_id: str, moment: datetime) -> Membership:
        """Return the membership that an entity has in a community of a level, ended at a moment."""
        since, community_id = self.since[level][entity_id], self.keys[level][entity_id]
        return Membership.trusted(community_id=community_id, entity_id=entity_id, since=since, until=moment)

    @property
    def state(self) -> State:
        """The state to compare for detecting concurrent changes and erasures."""
        return self.erasure, {community.id: community.updated_at for community in self.communities.values()}


def read_present(backend: GraphBackend, scope: Scope, chunk: int) -> Present:
    """Read the communities and their members, `chunk` rows at a time."""
    erasure = backend.erasure_token(scope)
    found = Present({c.id: c for c in backend.all_communities([scope], CommunityQuery())}, erasure=erasure)
    latest = max((c.updated_at for c in found.communities.values()), default=found.latest)
    for membership in backend.all_memberships([scope], MembershipQuery(), chunk=chunk):
        latest = max(latest, membership.since)
        community = found.communities.get(membership.community_id)
        keys = {} if community is None else found.keys.setdefault(community.level, {})
        if community is None or membership.entity_id in keys:
            found.extra.append(membership)
        else:
            keys[membership.entity_id] = community.id
            found.since.setdefault(community.level, {})[membership.entity_id] = membership.since
    return replace(found, latest=latest)


def read_state(backend: GraphBackend, scope: Scope) -> State:
    """Read the current `State`, for detecting concurrent changes and erasures."""
    communities = {c.id: c.updated_at for c in backend.all_communities([scope], CommunityQuery())}
    return backend.erasure_token(scope), communities


class Member(Model):
    """An entity in a community."""

    id: str
    name: str
    entity_type: str


class FoundCommunity(Model):
    """A community with its members at the requested time.

    Attributes
    ----------
    id
        Stable across refreshes as long as the community continues.
    level
        0 is the partition of the scope; communities of each further level are parts of those of the previous level.
    name, summary, fingerprint
        The latest values, also for an ended community.
    members
        Members in the order of their ids.
    score
        Relevance to the question, in [0, 1]; None without a question.
    """

    id: str
    level: int
    name: str
    summary: str
    fingerprint: str
    parent_id: str | None
    members: tuple[Member, ...]
    created_at: UTCDateTime
    updated_at: UTCDateTime
    ended_at: UTCDateTime | None = None
    score: float | None = None

    @property
    def entity_ids(self) -> tuple[str, ...]:
        """The ids of the members."""
        return tuple(member.id for member in self.members)

    def __len__(self) -> int:
        return len(self.members)


class Refreshed(Model):
    """Result of a refresh of communities.

    Attributes
    ----------
    algorithm
        Algorithm that was used.
    fallback
        Reason why the requested algorithm, or the detector of the store, was not used; empty if they were.
    communities, levels
        Number of communities on all levels, and number of levels.
    members
        Number of entities in a community.
    created, updated, ended
        Numbers of communities that are new, that changed in members, facts or text, and that ended.
    moved
        Number of members that left a continuing community or joined an existing one.
    summarized, failed
        Numbers of summaries by the language model that succeeded and failed; failures are retried by the next refresh.
    modularity
        Modularity of the first level, in [-0.5, 1].
    seconds
        Wall time.
    """

    algorithm: CommunityAlgorithm
    fallback: str = ""
    communities: int = 0
    levels: int = 0
    members: int = 0
    created: int = 0
    updated: int = 0
    ended: int = 0
    moved: int = 0
    summarized: int = 0
    failed: int = 0
    modularity: float = 0.0
    seconds: float = 0.0
