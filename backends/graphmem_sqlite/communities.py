"""Communities and their memberships: reads and writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from graphmem.models import AsOf, Community, CommunityQuery, Membership, MembershipQuery, Scope
from graphmem.protocols import CommunityStore
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.rows import (
    COMMUNITY_KEYS,
    as_json,
    community_of,
    micros,
    micros_or_none,
    moment,
    moment_or_none,
    require_free,
    require_keys,
    scope_keys,
)

# Ways into communities: each selects keys of communities `x`, and ends where filters are added.
_PAGE = """
SELECT c.id, s.scope_key, c.level, c.name, c.summary, c.fingerprint, p.id, c.created_at, c.updated_at, c.ended_at
FROM communities AS c CROSS JOIN scopes AS s ON s.key = c.scope LEFT JOIN communities AS p ON p.key = c.parent
WHERE c.key IN (
"""
_END = ") ORDER BY +c.id LIMIT :limit"
_SCOPE_CHECK = "AND x.scope IN (SELECT value FROM json_each(:scopes)) AND x.id > :after"
_BY_ID = "SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN communities AS x WHERE x.id = wanted.value"
_BY_MEMBER = """
SELECT x.key FROM json_each(:entities) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
CROSS JOIN memberships AS m INDEXED BY memberships_by_entity ON m.entity = e.key
CROSS JOIN communities AS x ON x.key = m.community WHERE 1
"""
_OF_EACH_SCOPE = "SELECT k.key FROM json_each(:scopes) AS wanted CROSS JOIN communities AS k ON k.key IN ("
_BY_LEVEL = """
SELECT x.key FROM communities AS x INDEXED BY communities_by_level WHERE x.scope = wanted.value AND x.level = :level
"""
_BY_SCOPE = "SELECT x.key FROM communities AS x INDEXED BY communities_by_scope WHERE x.scope = wanted.value"
_BEHIND = "AND x.id > :after"
_SCOPE_END = "ORDER BY x.id LIMIT :limit)"
_IS_NAMED = "AND x.id IN (SELECT value FROM json_each(:ids))"
_LEVEL = "AND x.level = :level"
_NOT_ENDED = "AND x.ended_at IS NULL"
_BEGUN = "AND x.created_at <= :moment"
_NOT_ENDED_AT = "AND (x.ended_at IS NULL OR :moment < x.ended_at)"

# Ways into memberships: each selects keys of memberships `m` of entities `e` and communities `x`.
_MEMBERS = """
SELECT x.id, e.id, m.since, m.until FROM memberships AS m
CROSS JOIN communities AS x ON x.key = m.community CROSS JOIN entities AS e ON e.key = m.entity WHERE m.key IN (
"""
_MEMBERS_END = ") ORDER BY x.id, e.id, m.since LIMIT :limit"
_MEMBER_SCOPE_CHECK = "AND x.scope IN (SELECT value FROM json_each(:scopes))"
_OF_ENTITIES = """
SELECT m.key FROM json_each(:entities) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
CROSS JOIN memberships AS m INDEXED BY memberships_by_entity ON m.entity = e.key
CROSS JOIN communities AS x ON x.key = m.community WHERE 1
"""
_OF_COMMUNITIES = """
SELECT m.key FROM json_each(:communities) AS wanted CROSS JOIN communities AS x ON x.id = wanted.value
CROSS JOIN memberships AS m ON m.community = x.key CROSS JOIN entities AS e ON e.key = m.entity WHERE 1
"""
_MEMBERS_OF_EACH_SCOPE = "SELECT k.key FROM json_each(:scopes) AS wanted CROSS JOIN memberships AS k ON k.key IN ("
_OF_LEVEL = """
SELECT m.key FROM communities AS x INDEXED BY communities_by_level
CROSS JOIN memberships AS m ON m.community = x.key CROSS JOIN entities AS e ON e.key = m.entity
WHERE x.scope = wanted.value AND x.level = :level AND x.id >= :after_community
"""
_OF_SCOPE = """
SELECT m.key FROM communities AS x INDEXED BY communities_by_scope
CROSS JOIN memberships AS m ON m.community = x.key CROSS JOIN entities AS e ON e.key = m.entity
WHERE x.scope = wanted.value AND x.id >= :after_community
"""
_MEMBERS_SCOPE_END = "ORDER BY x.id, e.id, m.since LIMIT :limit)"
_IS_NAMED_COMMUNITY = "AND x.id IN (SELECT value FROM json_each(:communities))"
_MEMBERS_BEHIND = "AND (x.id, e.id, m.since) > (:after_community, :after_entity, :after_since)"
_IS_MEMBER = "AND m.until IS NULL"
_JOINED = "AND m.since <= :moment"
_NOT_LEFT = "AND (m.until IS NULL OR :moment < m.until)"

KNOWN_COMMUNITIES = """
SELECT c.id, c.key, c.scope FROM json_each(?) AS wanted CROSS JOIN communities AS c ON c.id = wanted.value
"""
LAST_COMMUNITY = "SELECT coalesce(max(key), 0) FROM communities"
PUT_COMMUNITY = """
INSERT INTO communities (key, id, scope, level, name, summary, fingerprint, parent, created_at, updated_at, ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    level = excluded.level, name = excluded.name, summary = excluded.summary, fingerprint = excluded.fingerprint,
    parent = excluded.parent, created_at = excluded.created_at, updated_at = excluded.updated_at,
    ended_at = excluded.ended_at
"""
PUT_MEMBERSHIP = """
INSERT INTO memberships (community, entity, since, until) VALUES (?, ?, ?, ?)
ON CONFLICT (community, entity, since) DO UPDATE SET until = excluded.until
"""


class SQLiteCommunities(SQLiteRole, CommunityStore):
    """Communities and their memberships, in all their states."""

    def find_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Community]:
        """Return a page of the communities that match, in ascending order of id."""
        with self._database.reading() as connection:
            values = {
                **_values(connection, scopes, query, limit),
                "after": after,
                "ids": None if query.ids is None else as_json(query.ids),
            }
            return [community_of(row) for row in connection.execute(community_statement(query), values)]

    def find_memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, *, after: Membership | None = None, limit: int = 1000
    ) -> list[Membership]:
        """Return a page of the memberships that match, in ascending order of their keys."""
        statement = membership_statement(query, later_page=after is not None)
        with self._database.reading() as connection:
            values = {
                **_values(connection, scopes, query, limit),
                "communities": None if query.community_ids is None else as_json(query.community_ids),
                "after_community": "" if after is None else after.community_id,
                "after_entity": None if after is None else after.entity_id,
                "after_since": None if after is None else micros(after.since),
            }
            return [
                Membership.trusted(
                    community_id=row[0], entity_id=row[1], since=moment(row[2]), until=moment_or_none(row[3])
                )
                for row in connection.execute(statement, values)
            ]


def _values(
    connection: sqlite3.Connection, scopes: Sequence[Scope], query: CommunityQuery | MembershipQuery, limit: int
) -> dict[str, Any]:
    return {
        "scopes": as_json(scope_keys(connection, scopes)),
        "limit": limit,
        "level": query.level,
        "entities": None if query.entity_ids is None else as_json(query.entity_ids),
        "moment": None if query.as_of is None else micros(min(query.as_of.valid, query.as_of.known)),
    }


def community_statement(query: CommunityQuery) -> str:
    """Return the statement that reads a page of a query, assembled from constants."""
    parts = [_PAGE]
    whole_scopes = query.ids is None and query.entity_ids is None
    if query.entity_ids is not None:
        parts += [_BY_MEMBER, _SCOPE_CHECK, *([] if query.ids is None else [_IS_NAMED])]
        parts += _member_dates(query.as_of, ended=query.ended)
    elif query.ids is not None:
        parts += [_BY_ID, _SCOPE_CHECK]
    else:
        parts += [_OF_EACH_SCOPE, _BY_SCOPE if query.level is None else _BY_LEVEL, _BEHIND]
    if query.level is not None and not whole_scopes:
        parts.append(_LEVEL)
    if query.as_of is not None:
        parts += [_BEGUN, *([] if query.ended else [_NOT_ENDED_AT])]
    elif not query.ended:
        parts.append(_NOT_ENDED)
    if whole_scopes:
        parts.append(_SCOPE_END)
    return " ".join((*parts, _END))


def membership_statement(query: MembershipQuery, *, later_page: bool = False) -> str:
    """Return the statement that reads a page of a query, assembled from constants."""
    parts = [_MEMBERS]
    whole_scopes = query.community_ids is None and query.entity_ids is None
    if query.entity_ids is not None:
        parts += [_OF_ENTITIES, _MEMBER_SCOPE_CHECK, *([] if query.community_ids is None else [_IS_NAMED_COMMUNITY])]
    elif query.community_ids is not None:
        parts += [_OF_COMMUNITIES, _MEMBER_SCOPE_CHECK]
    else:
        parts += [_MEMBERS_OF_EACH_SCOPE, _OF_SCOPE if query.level is None else _OF_LEVEL]
    if query.level is not None and not whole_scopes:
        parts.append(_LEVEL)
    if later_page:
        parts.append(_MEMBERS_BEHIND)
    parts += _member_dates(query.as_of, ended=query.ended)
    if whole_scopes:
        parts.append(_MEMBERS_SCOPE_END)
    return " ".join((*parts, _MEMBERS_END))


def _member_dates(as_of: AsOf | None, *, ended: bool) -> list[str]:
    if as_of is None:
        return [] if ended else [_IS_MEMBER]
    return [_JOINED] if ended else [_JOINED, _NOT_LEFT]


def put_communities(
    connection: sqlite3.Connection, scope: Scope, scope_key: int, communities: Sequence[Community]
) -> None:
    """Insert communities, or replace them by id.

    Raises
    ------
    Conflict
        If an id is taken in another scope.
    InvalidInput
        If a parent isn't in the scope.
    """
    rows = {c.id: c for c in communities}
    if not rows:
        return
    found = connection.execute(KNOWN_COMMUNITIES, (as_json(rows),)).fetchall()
    require_free("community", ((row[0], row[2]) for row in found), scope_key)
    keys: dict[str, int] = {row[0]: row[1] for row in found}
    (last,) = connection.execute(LAST_COMMUNITY).fetchone()
    keys.update((i, key) for key, i in enumerate([i for i in rows if i not in keys], last + 1))
    parents = dict.fromkeys(c.parent_id for c in rows.values() if c.parent_id is not None and c.parent_id not in keys)
    keys.update(require_keys(connection, COMMUNITY_KEYS, scope, scope_key, list(parents)))
    connection.executemany(
        PUT_COMMUNITY,
        [
            (
                keys[c.id],
                c.id,
                scope_key,
                c.level,
                c.name,
                c.summary,
                c.fingerprint,
                None if c.parent_id is None else keys[c.parent_id],
                micros(c.created_at),
                micros(c.updated_at),
                micros_or_none(c.ended_at),
            )
            for c in rows.values()
        ],
    )


def put_memberships(
    connection: sqlite3.Connection,
    scope: Scope,
    scope_key: int,
    memberships: Sequence[Membership],
    entities: Mapping[str, int],
) -> None:
    """Insert memberships, or replace them; `entities` gives id → key of the entities they name.

    Raises
    ------
    InvalidInput
        If a community isn't in the scope.
    """
    named = list(dict.fromkeys(m.community_id for m in memberships))
    communities = require_keys(connection, COMMUNITY_KEYS, scope, scope_key, named)
    connection.executemany(
        PUT_MEMBERSHIP,
        [
            (communities[m.community_id], entities[m.entity_id], micros(m.since), micros_or_none(m.until))
            for m in memberships
        ],
    )
