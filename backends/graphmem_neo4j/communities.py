"""Reading communities and who was in them, and the rows that `graphmem_neo4j.groups` stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.models import AsOf, Community, CommunityQuery, Membership, MembershipQuery, Scope
from graphmem_neo4j.connection import Database
from graphmem_neo4j.entities import keys_of
from graphmem_neo4j.rows import community_of, moment, moment_or_none


def find_communities(
    database: Database, scopes: Sequence[Scope], query: CommunityQuery, after: str, limit: int
) -> list[Community]:
    """Return a page of the communities that match, in ascending order of id."""
    name = "communities_of_scopes"
    if query.entity_ids is not None:
        name = "communities_of_entities"
    elif query.ids is not None:
        name = "communities_by_id"
    elif query.level is not None:
        name = "communities_of_level"
    rows = database.read(
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
    database: Database, scopes: Sequence[Scope], query: MembershipQuery, after: Membership | None, limit: int
) -> list[Membership]:
    """Return a page of the memberships that match, in ascending order of their keys."""
    name = "memberships_of_scopes"
    if query.entity_ids is not None:
        name = "memberships_of_entities"
    elif query.community_ids is not None:
        name = "memberships_of_communities"
    elif query.level is not None:
        name = "memberships_of_level"
    rows = database.read(
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
    return [
        Membership.trusted(community_id=row[0], entity_id=row[1], since=moment(row[2]), until=moment_or_none(row[3]))
        for row in rows
    ]


def _dates(as_of: AsOf | None, *, ended: bool) -> dict[str, Any]:
    return {"moment": None if as_of is None else min(as_of.valid, as_of.known), "ended": ended}


def _distinct(ids: Sequence[str] | None) -> list[str] | None:
    return None if ids is None else list(dict.fromkeys(ids))


def community_row(community: Community) -> dict[str, Any]:
    """Return a community as ``put_communities`` takes it."""
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


def membership_row(membership: Membership) -> dict[str, Any]:
    """Return a membership as ``put_memberships`` takes it."""
    return {
        "entity": membership.entity_id,
        "community": membership.community_id,
        "since": membership.since.isoformat(),
        "until": None if membership.until is None else membership.until.isoformat(),
    }
