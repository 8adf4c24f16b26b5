"""The communities that a scope has at present, and who is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graphmem.models import Community, CommunityQuery, Membership, MembershipQuery, Scope
from graphmem.protocols import GraphBackend

_NEVER = datetime.min.replace(tzinfo=UTC)

State = tuple[str, Mapping[str, datetime]]
"""The last erasure (`GraphBackend.last_erasure`), and id of a community → when anything of it changed last."""


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
    erasure = backend.last_erasure(scope)
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
    return backend.last_erasure(scope), communities
