"""Episodes with their mentions, and the queue of unprocessed episodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    Episode,
    EpisodeQuery,
    Mention,
    Scope,
    SessionSummary,
    combined_sessions,
    ended_by,
    with_attachments,
)
from graphmem.protocols import EpisodeStore, distinct_episodes, require_no_cursor
from graphmem_sqlite.connection import SQLiteRole
from graphmem_sqlite.rows import (
    EPISODE_COLUMNS,
    add_scope,
    as_json,
    as_of_values,
    episode_of,
    micros,
    micros_or_none,
    moment,
    properties_json,
    scope_keys,
)

KNOWN_EXTERNAL = """
SELECT e.external_id, e.id FROM json_each(:ids) AS wanted
CROSS JOIN episodes AS e ON e.scope = :scope AND e.external_id = wanted.value
"""
KNOWN_EPISODES = "SELECT e.id FROM json_each(?) AS wanted CROSS JOIN episodes AS e ON e.id = wanted.value"
INSERT_EPISODE = """
INSERT INTO episodes (
    id, scope, source, text, session_id, role, speaker, title, occurred_at, recorded_at, metadata, external_id,
    processed_at, attempts, error, retry_at, ended_at, expires_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_PAGE = ("SELECT", EPISODE_COLUMNS, "FROM episodes AS e CROSS JOIN scopes AS s ON s.key = e.scope WHERE e.key IN (")
ID_PAGE = ("SELECT e.id FROM episodes AS e WHERE e.key IN (",)
_BY_ID_ORDER = ") ORDER BY +e.id LIMIT :limit"
_NEWEST_FIRST = ") ORDER BY +e.id DESC LIMIT :limit"
_SCOPE_CHECK = "AND x.scope IN (SELECT value FROM json_each(:scopes)) AND x.id > :after"
_BY_ID = "SELECT x.key FROM json_each(:ids) AS wanted CROSS JOIN episodes AS x WHERE x.id = wanted.value"
_BY_EXTERNAL_ID = """
SELECT x.key FROM json_each(:scopes) AS wanted CROSS JOIN json_each(:external_ids) AS named
CROSS JOIN episodes AS x WHERE x.scope = wanted.value AND x.external_id = named.value
"""
_OF_EACH_SCOPE = "SELECT k.key FROM json_each(:scopes) AS wanted CROSS JOIN episodes AS k ON k.key IN ("
_BY_SESSION = "SELECT x.key FROM episodes AS x WHERE x.scope = wanted.value AND x.session_id = :session"
_BY_SESSIONS = """
SELECT x.key FROM json_each(:sessions) AS named CROSS JOIN episodes AS x
WHERE x.scope = wanted.value AND x.session_id = named.value
"""
_BY_SESSION_PREFIX = "SELECT x.key FROM episodes AS x INDEXED BY episodes_by_session WHERE x.scope = wanted.value"
_BY_STATE = "SELECT x.key FROM episodes AS x INDEXED BY episodes_unprocessed_by_scope WHERE x.scope = wanted.value"
_EXPIRED = """
SELECT x.key FROM episodes AS x INDEXED BY episodes_expiring
WHERE x.scope = wanted.value AND x.expires_at <= :expired_by
"""
_HIDDEN = """
SELECT x.key FROM (
    SELECT h.key FROM episodes AS h INDEXED BY episodes_expiring
    WHERE h.scope = wanted.value AND h.expires_at <= :hidden_at
    UNION
    SELECT h.key FROM episodes AS h INDEXED BY episodes_ended WHERE h.scope = wanted.value AND h.ended_at <= :hidden_end
) AS hidden CROSS JOIN episodes AS x ON x.key = hidden.key WHERE 1
"""
_BY_SCOPE = "SELECT x.key FROM episodes AS x INDEXED BY episodes_by_scope WHERE x.scope = wanted.value"
_SCOPE_END = "ORDER BY x.id LIMIT :limit)"
_SCOPE_END_NEWEST = "ORDER BY x.id DESC LIMIT :limit)"
_BEFORE = """
SELECT x.key FROM episodes AS last CROSS JOIN episodes AS x INDEXED BY episodes_by_session
WHERE last.id = :before AND last.scope IN (SELECT value FROM json_each(:scopes))
AND x.scope = last.scope AND x.session_id = last.session_id AND x.id < :before
"""
_IS_BEFORE = """
AND x.id < :before AND (x.scope, x.session_id) IN (SELECT last.scope, last.session_id FROM episodes AS last
    WHERE last.id = :before AND last.scope IN (SELECT value FROM json_each(:scopes)))
"""
_FILTERS = {
    "ids": "AND x.id IN (SELECT value FROM json_each(:ids))",
    "external_ids": "AND x.external_id IN (SELECT value FROM json_each(:external_ids))",
    "before": _IS_BEFORE,
    "session_id": "AND x.session_id = :session",
    "as_of": "AND x.recorded_at <= :known AND x.occurred_at <= :valid",
    "live_at": "AND ifnull(x.expires_at > :live_at, 1) AND ifnull(x.ended_at > :live_end, 1)",
    "hidden_at": "AND (x.expires_at <= :hidden_at OR x.ended_at <= :hidden_end)",
    "expired_by": "AND x.expires_at <= :expired_by",
}
_FILTERED = {
    "session_ids": "AND x.session_id IN (SELECT value FROM json_each(:sessions))",
    # texts are compared byte by byte, and no text has the byte FF
    "session_prefix": "AND x.session_id >= :session_prefix AND x.session_id < :session_prefix || CAST(x'FF' AS TEXT)",
    "speakers": "AND x.speaker IN (SELECT value FROM json_each(:speakers))",
    "roles": "AND x.role IN (SELECT value FROM json_each(:roles))",
    "sources": "AND x.source IN (SELECT value FROM json_each(:sources))",
    "since": "AND x.occurred_at >= :since",
    "until": "AND x.occurred_at < :until",
    "metadata": "AND (:contained = '' OR instr(x.metadata, :contained)) AND metadata_matches(x.metadata, :metadata)",
}
"""Field of a filter → its condition."""
_SESSIONS = """
SELECT x.session_id, count(*), min(x.occurred_at), max(x.occurred_at),
    json_group_array(DISTINCT x.speaker) FILTER (WHERE x.speaker IS NOT NULL)
FROM episodes AS x INDEXED BY episodes_by_session WHERE x.scope = :scope
"""
_FIRST_SESSIONS = "AND x.session_id >= ''"
_SESSIONS_AFTER = "AND x.session_id > :after"
_SESSIONS_END = "GROUP BY x.session_id ORDER BY x.session_id LIMIT :limit"
_PENDING = "AND x.processed_at IS NULL AND (x.error IS NULL OR x.retry_at IS NOT NULL)"
_STATES = {
    "processed": "AND x.processed_at IS NOT NULL",
    "pending": _PENDING,
    "failed": "AND x.processed_at IS NULL AND x.error IS NOT NULL AND x.retry_at IS NULL",
}

_DUE = """
AND (x.retry_at IS NULL OR x.retry_at <= :now) AND (x.claimed_by IS NULL OR x.claimed_until <= :now)
ORDER BY x.id LIMIT :limit
"""
WAITING_SCOPES = """
WITH RECURSIVE waiting (scope) AS (
    SELECT min(scope) FROM episodes INDEXED BY episodes_unprocessed_by_scope WHERE processed_at IS NULL
    UNION ALL
    SELECT (
        SELECT min(e.scope) FROM episodes AS e INDEXED BY episodes_unprocessed_by_scope
        WHERE e.processed_at IS NULL AND e.scope > waiting.scope
    ) FROM waiting WHERE waiting.scope IS NOT NULL
)
SELECT scope FROM waiting
"""
_NOT_ELSEWHERE = """
wanted.value NOT IN (
    SELECT c.scope FROM episodes AS c INDEXED BY episodes_claimed
    WHERE c.claimed_by IS NOT NULL AND c.claimed_until > :now AND substr(c.claimed_by, 1, length(:own)) <> :own
)
"""
DUE_ANYWHERE = " ".join(
    (
        "SELECT x.key, x.id FROM episodes AS x INDEXED BY episodes_unprocessed WHERE x.processed_at IS NULL",
        _PENDING,
        _DUE,
    )
)
DUE_IN_SCOPES = " ".join(
    (
        "SELECT k.key, k.id",
        "FROM json_each(:scopes) AS wanted CROSS JOIN episodes AS k ON k.key IN (",
        _BY_STATE,
        _PENDING,
        _DUE,
        ") WHERE",
        _NOT_ELSEWHERE,
        "ORDER BY +k.id LIMIT :limit",
    )
)
CLAIM = "UPDATE episodes SET claimed_by = ?, claimed_until = ? WHERE key = ?"
READ_CLAIMED = " ".join(
    (*_PAGE, "SELECT value FROM json_each(:keys)", _BY_ID_ORDER),
)
CLAIM_OWNERS = "SELECT DISTINCT claimed_by FROM episodes WHERE claimed_by IS NOT NULL AND claimed_until > ? ORDER BY 1"
RELEASE = """
UPDATE episodes SET claimed_by = NULL, claimed_until = NULL
WHERE claimed_by IN (SELECT value FROM json_each(?)) RETURNING key
"""

_MENTION = "SELECT e.id, p.id, m.surface, m.confidence, m.seen_at"
_MENTION_ORDER = "AND e.scope IN (SELECT value FROM json_each(:scopes)) ORDER BY p.id, e.id LIMIT :limit"
MENTIONS_OF_ENTITIES = " ".join(
    (
        _MENTION,
        """
        FROM json_each(:entities) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
        CROSS JOIN mentions AS m ON m.entity = e.key CROSS JOIN episodes AS p ON p.key = m.episode WHERE 1
        """,
        _MENTION_ORDER,
    )
)
MENTIONS_IN_EPISODES = " ".join(
    (
        _MENTION,
        """
        FROM json_each(:episodes) AS wanted CROSS JOIN episodes AS p ON p.id = wanted.value
        CROSS JOIN mentions AS m ON m.episode = p.key CROSS JOIN entities AS e ON e.key = m.entity WHERE 1
        """,
        _MENTION_ORDER,
    )
)
MENTIONS_OF_BOTH = " ".join(
    (
        _MENTION,
        """
        FROM json_each(:entities) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
        CROSS JOIN json_each(:episodes) AS named CROSS JOIN episodes AS p ON p.id = named.value
        CROSS JOIN mentions AS m ON m.entity = e.key AND m.episode = p.key WHERE 1
        """,
        _MENTION_ORDER,
    )
)
ALL_MENTIONS = " ".join(
    (
        _MENTION,
        """
        FROM json_each(:scopes) AS wanted CROSS JOIN episodes AS p INDEXED BY episodes_by_scope
        ON p.scope = wanted.value
        CROSS JOIN mentions AS m ON m.episode = p.key CROSS JOIN entities AS e ON e.key = m.entity WHERE 1
        """,
        _MENTION_ORDER,
    )
)
_MENTIONS = {
    (False, False): ALL_MENTIONS,
    (True, False): MENTIONS_OF_ENTITIES,
    (False, True): MENTIONS_IN_EPISODES,
    (True, True): MENTIONS_OF_BOTH,
}
"""Whether entities and whether episodes are given → the statement."""


class SQLiteEpisodes(SQLiteRole, EpisodeStore):
    """Episodes, their claims and their mentions."""

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes durably; a known external id stores nothing."""
        with self._database.writing() as connection:
            for episode in episodes:
                if episode.scope is not scope and episode.scope != scope:
                    raise InvalidInput(f"episode {episode.id}: its scope is {episode.scope}, the call's is {scope}")
            scope_key = add_scope(connection, scope)
            wanted = as_json(e.external_id for e in episodes if e.external_id is not None)
            known: dict[str, str] = dict(connection.execute(KNOWN_EXTERNAL, {"ids": wanted, "scope": scope_key}))
            results, fresh = distinct_episodes(episodes, known)
            for (taken,) in connection.execute(KNOWN_EPISODES, (as_json(fresh),)):
                raise Conflict(f"episode {taken} is already stored")
            connection.executemany(INSERT_EPISODE, [_episode_row(e, scope_key) for e in fresh.values()])
            return results

    def find_episodes(
        self,
        scopes: Sequence[Scope],
        query: EpisodeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Episode]:
        """Return a page of the episodes that match."""
        require_no_cursor(after, newest_first=newest_first)
        values = {**_values(query), "after": after, "limit": limit}
        with self._database.reading() as connection:
            values["scopes"] = as_json(scope_keys(connection, scopes))
            rows = connection.execute(episode_statement(query, newest_first=newest_first), values)
            return [episode_of(row) for row in rows]

    def find_episode_ids(self, scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        """Return the ids of all episodes that match."""
        values = {**_values(query), "after": "", "limit": -1}
        with self._database.reading() as connection:
            values["scopes"] = as_json(scope_keys(connection, scopes))
            return [found for (found,) in connection.execute(episode_statement(query, page=ID_PAGE), values)]

    def find_sessions(
        self, scopes: Sequence[Scope], query: EpisodeQuery, *, after: str | None = None, limit: int = 1000
    ) -> list[SessionSummary]:
        """Return a page of the sessions that matching episodes are of; reads the episodes of this page only."""
        statement = session_statement(query, later_page=after is not None)
        values = {**_values(query), "after": after, "limit": limit}
        found: list[SessionSummary] = []
        with self._database.reading() as connection:
            keys = scope_keys(connection, scopes)
            values["scopes"] = as_json(keys)
            for key in keys:
                for row in connection.execute(statement, {**values, "scope": key}):
                    first, last, speakers = moment(row[2]), moment(row[3]), tuple(json.loads(row[4]))
                    found.append(SessionSummary(row[0], row[1], first, last, speakers))
        return combined_sessions(found, limit)

    def claim_episodes(
        self,
        owner: str,
        *,
        now: datetime,
        until: datetime,
        limit: int,
        scopes: Sequence[Scope] | None = None,
        own: str | None = None,
    ) -> list[Episode]:
        """Claim pending episodes that are due and unclaimed, oldest id first."""
        values: dict[str, Any] = {"now": micros(now), "limit": limit}
        statement = DUE_ANYWHERE
        with self._database.writing() as connection:
            if scopes is not None:
                wanted = scope_keys(connection, scopes)
            elif own is not None:
                wanted = [key for (key,) in connection.execute(WAITING_SCOPES) if key is not None]
            else:
                wanted = None
            if wanted is not None:
                statement, values["scopes"], values["own"] = DUE_IN_SCOPES, as_json(wanted), own
            keys = [row[0] for row in connection.execute(statement, values)]
            connection.executemany(CLAIM, [(owner, micros(until), key) for key in keys])
            claimed = connection.execute(READ_CLAIMED, {"keys": as_json(keys), "limit": len(keys)})
            return [episode_of(row) for row in claimed]

    def claim_owners(self, now: datetime) -> list[str]:
        """Return the owners whose claims last beyond a time."""
        with self._database.reading() as connection:
            return [owner for (owner,) in connection.execute(CLAIM_OWNERS, (micros(now),))]

    def release_claims(self, owners: Sequence[str]) -> list[Episode]:
        """Release the claims of the owners; return the released episodes, oldest id first."""
        with self._database.writing() as connection:
            keys = [key for (key,) in connection.execute(RELEASE, (as_json(owners),))]
            released = connection.execute(READ_CLAIMED, {"keys": as_json(keys), "limit": len(keys)})
            return [episode_of(row) for row in released]

    def find_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> list[Mention]:
        """Return mentions, ordered by (episode, entity) id."""
        values: dict[str, Any] = {"limit": limit}
        if entity_ids is not None:
            values["entities"] = as_json(entity_ids)
        if episode_ids is not None:
            values["episodes"] = as_json(episode_ids)
        statement = _MENTIONS[entity_ids is not None, episode_ids is not None]
        with self._database.reading() as connection:
            values["scopes"] = as_json(scope_keys(connection, scopes))
            return [
                Mention.model_construct(
                    None, entity_id=row[0], episode_id=row[1], surface=row[2], confidence=row[3], seen_at=moment(row[4])
                )
                for row in connection.execute(statement, values)
            ]


def _episode_row(episode: Episode, scope_key: int) -> tuple[Any, ...]:
    return (
        episode.id,
        scope_key,
        episode.source,
        episode.text,
        episode.session_id,
        episode.role,
        episode.speaker,
        episode.title,
        micros(episode.occurred_at),
        micros(episode.recorded_at),
        properties_json(with_attachments(episode.metadata, episode.attachments)),
        episode.external_id,
        micros_or_none(episode.processed_at),
        episode.attempts,
        episode.error,
        micros_or_none(episode.retry_at),
        micros_or_none(episode.ended_at),
        micros_or_none(episode.expires_at),
    )


def _values(query: EpisodeQuery) -> dict[str, Any]:
    """Return the parameters of a query."""
    values: dict[str, Any] = {"session": query.session_id, "before": query.before}
    if query.ids is not None:
        values["ids"] = as_json(query.ids)
    if query.external_ids is not None:
        values["external_ids"] = as_json(query.external_ids)
    if query.as_of is not None:
        values |= as_of_values(query.as_of)
    for name, now in (("live", query.live_at), ("hidden", query.hidden_at)):
        if now is not None:
            values[f"{name}_at"], values[f"{name}_end"] = micros(now), micros(ended_by(query.as_of, now))
    values["expired_by"] = micros_or_none(query.expired_by)
    if (wanted := query.filters) is not None:
        lists = {
            "sessions": wanted.session_ids,
            "speakers": wanted.speakers,
            "roles": wanted.roles,
            "sources": wanted.sources,
        }
        values |= {name: as_json(given or ()) for name, given in lists.items()}
        values["session_prefix"] = wanted.session_prefix
        values["metadata"] = json.dumps(wanted.metadata)
        equal = (one["$eq"] for one in wanted.metadata.values() if isinstance(one.get("$eq"), str))
        values["contained"] = max(map(json.dumps, equal), key=len, default="")  # sought before metadata is decoded
        values["since"], values["until"] = micros_or_none(wanted.since), micros_or_none(wanted.until)
    return values


def episode_statement(query: EpisodeQuery, *, newest_first: bool = False, page: tuple[str, ...] = _PAGE) -> str:
    """Return the statement that reads a page of a query, assembled from constants."""
    served, begin, end = _way_in(query, newest_first=newest_first)
    order = _NEWEST_FIRST if newest_first else _BY_ID_ORDER
    return " ".join((*page, begin, _SCOPE_CHECK, *_conditions(query, served), end, order))


def session_statement(query: EpisodeQuery, *, later_page: bool) -> str:
    """Return the statement that reads a page of the sessions of one scope, assembled from constants."""
    begin = _SESSIONS_AFTER if later_page else _FIRST_SESSIONS
    return " ".join((_SESSIONS, begin, *_conditions(query), _SESSIONS_END))


def _conditions(query: EpisodeQuery, served: str = "") -> list[str]:
    """Return the conditions of a query, without that of a field which is served by an index."""
    filters = [text for name, text in _FILTERS.items() if name != served and getattr(query, name) is not None]
    if (wanted := query.filters) is not None:
        given = (name for name in _FILTERED if getattr(wanted, name) not in (None, {}))
        filters += [_FILTERED[name] for name in given if name != served]
    if query.state is not None:
        filters.append(_STATES[query.state])
    return filters


def _way_in(query: EpisodeQuery, *, newest_first: bool) -> tuple[str, str, str]:
    if query.ids is not None:
        return "ids", _BY_ID, ""
    if query.external_ids is not None:
        return "external_ids", _BY_EXTERNAL_ID, ""
    end = _SCOPE_END_NEWEST if newest_first else _SCOPE_END
    if query.before is not None:
        return "before", " ".join(("SELECT key FROM (", _BEFORE)), end
    if query.session_id is not None:
        return "session_id", " ".join((_OF_EACH_SCOPE, _BY_SESSION)), end
    if query.filters is not None and query.filters.session_ids is not None:
        return "session_ids", " ".join((_OF_EACH_SCOPE, _BY_SESSIONS)), end
    if query.filters is not None and query.filters.session_prefix is not None:
        return "", " ".join((_OF_EACH_SCOPE, _BY_SESSION_PREFIX)), end
    if query.expired_by is not None:
        return "expired_by", " ".join((_OF_EACH_SCOPE, _EXPIRED)), end
    if query.hidden_at is not None:
        return "hidden_at", " ".join((_OF_EACH_SCOPE, _HIDDEN)), end
    if query.state in ("pending", "failed"):
        return "", " ".join((_OF_EACH_SCOPE, _BY_STATE)), end
    return "", " ".join((_OF_EACH_SCOPE, _BY_SCOPE)), end
