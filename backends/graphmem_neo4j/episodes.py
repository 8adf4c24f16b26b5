"""Episodes with their mentions, and the queue of unprocessed episodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Episode, EpisodeQuery, Mention, Scope, SessionSummary, combined_sessions, ended_by
from graphmem.protocols import EpisodeStore, distinct_episodes, require_no_cursor
from graphmem_neo4j.checked_rows import episode_of, mention_of
from graphmem_neo4j.connection import Neo4jRole, Transaction
from graphmem_neo4j.rows import (
    Times,
    episode_row,
    filter_values,
    ids_of,
    index_key,
    keys_of,
    moment,
    prefix_keys,
)

_ALL = 2**31 - 1  # rows of a page that has all


class Neo4jEpisodes(Neo4jRole, EpisodeStore):
    """Episodes, their claims and their mentions."""

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes durably; a known external id stores nothing."""
        for episode in episodes:
            if episode.scope is not scope and episode.scope != scope:
                raise InvalidInput(f"episode {episode.id}: its scope is {episode.scope}, the call's is {scope}")
        if not episodes:
            return []
        return self._database.write(lambda transaction: _add(transaction, scope, episodes))

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
        rows = self._matching(scopes, query, after=after, limit=limit, newest_first=newest_first)
        return [episode_of(row) for row in rows]

    def find_episode_ids(self, scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        """Return the ids of all episodes that match."""
        return self._matching(scopes, query, limit=_ALL, ids_only=True)

    def find_sessions(
        self, scopes: Sequence[Scope], query: EpisodeQuery, *, after: str | None = None, limit: int = 1000
    ) -> list[SessionSummary]:
        """Return a page of the sessions that matching episodes are of.

        The server counts the episodes of all sessions for each page, as it orders texts by UTF-16.
        """
        if (values := self._values(scopes, query)) is None:
            return []
        rows = self._database.read("sessions_of_scopes", scopes, after="", **values)
        parts = (
            SessionSummary(session_id, number, moment(first), moment(last), tuple(speakers))
            for session_id, number, first, last, speakers in rows
            if after is None or session_id > after
        )
        return combined_sessions(parts, limit)

    def _matching(
        self,
        scopes: Sequence[Scope],
        query: EpisodeQuery,
        *,
        after: str = "",
        limit: int,
        newest_first: bool = False,
        ids_only: bool = False,
    ) -> list[Any]:
        if (values := self._values(scopes, query)) is None:
            return []
        values |= {"after": after, "limit": limit, "newest": newest_first, "ids_only": ids_only}
        return [row for rows in self._page(scopes, query, values, newest_first=newest_first) for row in rows]

    def _values(self, scopes: Sequence[Scope], query: EpisodeQuery) -> dict[str, Any] | None:
        """Return the parameters of the fragment ``episode_filters``; None for a query that nothing matches."""
        values: dict[str, Any] = {
            "scopes": keys_of(scopes),
            "ids": None if query.ids is None else ids_of(query.ids),
            "external_ids": query.external_ids,
            "session": query.session_id,
            "before": query.before,
            "before_scope": None,
            "before_session": None,
            **{state: query.state == state for state in ("processed", "pending", "failed")},
            "valid": None if query.as_of is None else query.as_of.valid,
            "known": None if query.as_of is None else query.as_of.known,
            "filter": filter_values(query.filters),
            "live_at": query.live_at,
            "live_end": None if query.live_at is None else ended_by(query.as_of, query.live_at),
            "hidden_at": query.hidden_at,
            "hidden_end": None if query.hidden_at is None else ended_by(query.as_of, query.hidden_at),
            "expired_by": query.expired_by,
        }
        if query.before is not None:
            last = self._database.read("session_of_episode", scopes, id=query.before, scopes=values["scopes"])
            if not last or query.session_id not in (None, last[0][1]):
                return None
            values["before_scope"], values["before_session"], _ = last[0]
            values["scopes"], values["session"] = [values["before_scope"]], values["before_session"]
        return values

    def _page(
        self, scopes: Sequence[Scope], query: EpisodeQuery, values: dict[str, Any], *, newest_first: bool
    ) -> list[list[Any]]:
        """Return the rows in lists of 50: a record costs more than a row, and may not hold a page of long texts."""
        read = self._database.read
        if query.ids is not None:
            return read("episodes_by_id", scopes, **values)
        if query.external_ids is not None:
            keys = list(dict.fromkeys(index_key(external_id) for external_id in query.external_ids))
            return read("episodes_by_external_id", scopes, external_keys=keys, **values)
        sessions = None if query.filters is None else query.filters.session_ids
        if values["session"] is not None:
            sessions = (values["session"],)
        if sessions is not None:
            return read("episodes_of_sessions", scopes, session_keys=[index_key(s) for s in sessions], **values)
        if query.filters is not None and query.filters.session_prefix is not None:
            begins = prefix_keys(query.filters.session_prefix)
            return read("episodes_by_session_prefix", scopes, session_keys=begins, **values)
        if query.expired_by is not None:
            return read("expired_episodes", scopes, **values)
        if query.hidden_at is not None:
            return read("hidden_episodes", scopes, **values)
        if query.state in ("pending", "failed"):
            return read("unprocessed_episodes", scopes, **values)
        return read("newest_episodes_of_scopes" if newest_first else "episodes_of_scopes", scopes, **values)

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
        """Claim pending episodes that are due and unclaimed, oldest id first; locks their scopes before it reads."""
        asked = None if scopes is None else keys_of(scopes)
        values: dict[str, Any] = {"now": now, "limit": limit, "own": own}

        def work(transaction: Transaction) -> list[Episode]:
            while due := transaction.run("scopes_due", scopes=asked, **values):
                transaction.lock(map(Scope.from_key, due))
                if rows := transaction.run("claim_episodes", scopes=due, owner=owner, until=until, **values):
                    return [episode_of(row) for row in rows]
            return []  # others have claimed what was due

        return self._database.write(work)

    def claim_owners(self, now: datetime) -> list[str]:
        """Return the owners whose claims last beyond a time."""
        return self._database.read("claim_owners", now=now)

    def release_claims(self, owners: Sequence[str]) -> list[Episode]:
        """Release the claims of the owners; return the released episodes, oldest id first."""
        wanted = list(dict.fromkeys(owners))

        def work(transaction: Transaction) -> list[Episode]:
            held = transaction.run("scopes_claimed", owners=wanted)
            if not held:
                return []
            transaction.lock(Scope.from_key(key) for key in held)
            return [episode_of(row) for row in transaction.run("release_claims", owners=wanted, scopes=held)]

        return self._database.write(work)

    def find_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> list[Mention]:
        """Return mentions, ordered by (episode, entity) id."""
        name = "mentions_of_scopes"
        if episode_ids is not None:
            name = "mentions_in_episodes"
        elif entity_ids is not None:
            name = "mentions_of_entities"
        rows = self._database.read(
            name,
            scopes,
            scopes=keys_of(scopes),
            entities=None if entity_ids is None else list(dict.fromkeys(entity_ids)),
            episodes=None if episode_ids is None else list(dict.fromkeys(episode_ids)),
            limit=limit,
        )
        return [mention_of(row) for row in rows]


def _add(transaction: Transaction, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
    found, new = distinct_episodes(episodes, {})
    given = list(new.values())
    times = Times()
    rows: list[tuple[int, str | None, str | None]] = transaction.run_locked(
        "add_episodes",
        [scope],
        scope=scope.key,
        domain=scope.domain,
        project=scope.project_id,
        rows=[episode_row(episode, times) for episode in given],
        times=times.texts,
    )
    held: dict[str, str] = {}
    for position, holder, taken in rows:
        if holder is None:
            raise Conflict(f"episode {taken} is already stored")
        held[given[position].id] = holder
    return [(held.get(i, i), is_new and i not in held) for i, is_new in found]
