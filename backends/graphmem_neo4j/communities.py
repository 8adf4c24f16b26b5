"""Communities and their memberships: reads, and their part of a write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.models import AsOf, Changes, Community, CommunityQuery, Membership, MembershipQuery, Scope
from graphmem.protocols import CommunityStore
from graphmem_neo4j.checked_rows import community_of, membership_of
from graphmem_neo4j.connection import Neo4jRole, Transaction
from graphmem_neo4j.existing import NamedRows
from graphmem_neo4j.rows import keys_of


class Neo4jCommunities(Neo4jRole, CommunityStore):
    """Communities and their memberships, in all their states."""

    def find_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Community]:
        """Return a page of the communities that match, in ascending order of id."""
        name = "communities_of_scopes"
        if query.entity_ids is not None:
            name = "communities_of_entities"
        elif query.ids is not None:
            name = "communities_by_id"
        elif query.level is not None:
            name = "communities_of_level"
        rows = self._database.read(
            name,
            scopes,
            scopes=keys_of(scopes),
            ids=_distinct(query.ids),
            entities=_distinct(query.entity_ids),
            level=query.level,
            after=after,
            limit=limit,
            **_dates(query.as_of, ended=query.ended),
        )
        return [community_of(row) for row in rows]

    def find_memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, *, after: Membership | None = None, limit: int = 1000
    ) -> list[Membership]:
        """Return a page of the memberships that match, in ascending order of their keys."""
        name = "memberships_of_scopes"
        if query.entity_ids is not None:
            name = "memberships_of_entities"
        elif query.community_ids is not None:
            name = "memberships_of_communities"
        elif query.level is not None:
            name = "memberships_of_level"
        rows = self._database.read(
            name,
            scopes,
            scopes=keys_of(scopes),
            communities=_distinct(query.community_ids),
            entities=_distinct(query.entity_ids),
            level=query.level,
            after_community="" if after is None else after.community_id,
            after_entity=None if after is None else after.entity_id,
            after_since=None if after is None else after.since,
            limit=limit,
            **_dates(query.as_of, ended=query.ended),
        )
        return [membership_of(row) for row in rows]


def _dates(as_of: AsOf | None, *, ended: bool) -> dict[str, Any]:
    return {"moment": None if as_of is None else min(as_of.valid, as_of.known), "ended": ended}


def _distinct(ids: Sequence[str] | None) -> list[str] | None:
    return None if ids is None else list(dict.fromkeys(ids))


class CommunityPlan:
    """The communities and memberships of a write, checked before anything is written."""

    def __init__(self, scope: Scope, changes: Changes) -> None:
        self._scope = scope
        self._changes = changes
        self._communities = {c.id: c for c in changes.communities}
        self._memberships = {m.key: m for m in changes.memberships}

    def validate(self, named: NamedRows) -> None:
        """Raise if an id is taken or a referenced row isn't in the scope; add the communities to `named`."""
        for community in self._changes.communities:
            named.require_free("community", community)
        named.kinds.update(dict.fromkeys(self._communities, ("community", self._scope.key)))
        for community in self._changes.communities:
            if community.parent_id is not None:
                named.require("community", community.parent_id)
        for membership in self._changes.memberships:
            named.require("community", membership.community_id)
            named.require("entity", membership.entity_id)

    def run(self, transaction: Transaction) -> None:
        """Write the rows."""
        if self._communities:
            transaction.run("put_communities", rows=[_community_row(c) for c in self._communities.values()])
        if self._memberships:
            transaction.run("put_memberships", rows=[_membership_row(m) for m in self._memberships.values()])


def _community_row(community: Community) -> dict[str, Any]:
    """Return a community as a row of the query ``put_communities``."""
    return {
        "id": community.id,
        "values": {
            "scope": community.scope.key,
            "domain": community.scope.domain,
            "project": community.scope.project_id,
            "level": community.level,
            "name": community.name,
            "summary": community.summary,
            "fingerprint": community.fingerprint,
            "parent_id": community.parent_id,
        },
        "created_at": community.created_at.isoformat(),
        "updated_at": community.updated_at.isoformat(),
        "ended_at": None if community.ended_at is None else community.ended_at.isoformat(),
    }


def _membership_row(membership: Membership) -> dict[str, Any]:
    """Return a membership as a row of the query ``put_memberships``."""
    return {
        "entity": membership.entity_id,
        "community": membership.community_id,
        "since": membership.since.isoformat(),
        "until": None if membership.until is None else membership.until.isoformat(),
    }
