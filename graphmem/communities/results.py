"""The communities that a scope has now with their members, and what callers get of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

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
from graphmem.protocols import GraphBackend

_NEVER = datetime.min.replace(tzinfo=UTC)

State = tuple[str, Mapping[str, datetime]]
"""The last erasure (`GraphBackend.erasure_token`), and id of a community → when anything of it changed last."""


@dataclass(frozen=True, slots=True)
class Present:
    """The communities of a scope that have not ended.

    Attributes
    ----------
    communities
        By id.
    keys, since
        Of each level: entity id → id of its community, and since when it is in it.
    extra
        Memberships of entities that are in another community of that level, too, or in one that has ended.
    latest
        When any of it changed last; the smallest time if there is nothing.
    erasure
        What had been forgotten before any of it was read.
    """

    communities: dict[str, Community] = field(default_factory=dict[str, Community])
    keys: dict[int, dict[str, str]] = field(default_factory=dict[int, "dict[str, str]"])
    since: dict[int, dict[str, datetime]] = field(default_factory=dict[int, "dict[str, datetime]"])
    extra: list[Membership] = field(default_factory=list[Membership])
    latest: datetime = _NEVER
    erasure: str = ""

    def ended(self, level: int, entity_id: str, moment: datetime) -> Membership:
        """Return the membership that an entity has in a community of a level, ended at a moment."""
        since, community_id = self.since[level][entity_id], self.keys[level][entity_id]
        return Membership.trusted(community_id=community_id, entity_id=entity_id, since=since, until=moment)

    @property
    def state(self) -> State:
        """What tells whether somebody changed them since, or forgot something that they may quote."""
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
    """Read what tells whether the communities have changed since they were read, or something was forgotten."""
    communities = {c.id: c.updated_at for c in backend.all_communities([scope], CommunityQuery())}
    return backend.erasure_token(scope), communities


class Member(Model):
    """An entity in a community."""

    id: str
    name: str
    entity_type: str


class FoundCommunity(Model):
    """A community with its members, as it is or was at the moment that was asked for.

    Attributes
    ----------
    id
        Stays the same from one refresh to the next, as long as the community goes on.
    level
        0 is the partition of the scope; the communities of a further level are parts of those of the one before.
    name, summary, fingerprint
        As they were made last; the summary of a community that has ended is its last one.
    members
        In the order of their ids.
    score
        How well it fits the question, in [0, 1]; None without one.
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
        """Ids of the members."""
        return tuple(member.id for member in self.members)

    def __len__(self) -> int:
        return len(self.members)


class Refreshed(Model):
    """What a refresh of communities did.

    Attributes
    ----------
    algorithm
        How they were found.
    communities, levels
        How many there are, on all levels; how many levels.
    members
        Entities that are in one.
    created, updated, ended
        Communities that are new, that changed in members, facts or text, and that are no more.
    moved
        Members that left a community which goes on, or came into one that was there before.
    summarized, failed
        Summaries that the language model wrote; that it could not write: they are tried again by the next refresh.
    modularity
        Of the first level, in [-0.5, 1].
    seconds
        Wall time.
    """

    algorithm: CommunityAlgorithm
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
