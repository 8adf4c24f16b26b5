"""Episodes with their mentions, and the queue of unprocessed episodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain, islice

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import Episode, EpisodeFilter, EpisodeQuery, Mention, Scope
from graphmem.protocols import EpisodeStore, require_no_cursor
from graphmem_memory.tables import ClaimRow, MemoryRole, episode_matches, episode_state


class MemoryEpisodes(MemoryRole, EpisodeStore):
    """Episodes, their claims and their mentions."""

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes; a known external id stores nothing."""
        with self._writing():
            return [self._add_episode(scope, episode) for episode in episodes]

    def _add_episode(self, scope: Scope, episode: Episode) -> tuple[str, bool]:
        if episode.scope != scope:
            raise InvalidInput(f"episode {episode.id}: its scope is {episode.scope}, the call's is {scope}")
        table = self._store.episodes
        if episode.external_id is not None:
            for known in table.keys_of("external", [(scope, episode.external_id)]):
                return (known, False)
        if table.get(episode.id) is not None:
            raise Conflict(f"episode {episode.id} is already stored")
        table.put(episode.id, episode.changed(metadata=dict(episode.metadata)))
        return (episode.id, True)

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
        with self._store.lock:
            found = self._matching(scopes, query, after)
            if newest_first:
                found = sorted(found, key=lambda e: e.id, reverse=True)
            return [e.changed(metadata=dict(e.metadata)) for e in islice(found, limit)]

    def find_episode_ids(self, scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        """Return the ids of all episodes that match."""
        with self._store.lock:
            return [episode.id for episode in self._matching(scopes, query)]

    def _matching(self, scopes: Sequence[Scope], query: EpisodeQuery, after: str = "") -> Iterable[Episode]:
        rows = self._store.episodes.read(scopes, self._candidates(scopes, query), after=after)
        found = (row for row in rows if episode_matches(row, query))
        return found if query.before is None else self._stored_before(scopes, query.before, found)

    def _candidates(self, scopes: Sequence[Scope], query: EpisodeQuery) -> Iterable[str] | None:
        """Return the ids of the episodes that an index selects for a query; None for all of the scopes."""
        table, keys, wanted = self._store.episodes, [s.key for s in scopes], query.filters or EpisodeFilter()
        if query.ids is not None:
            return query.ids
        if query.external_ids is not None:
            return table.keys_of("external", [(s, x) for s in scopes for x in query.external_ids])
        if query.session_id is not None:
            return table.keys_of("session", [(key, query.session_id) for key in keys])
        if wanted.session_ids is not None:
            return table.keys_of("session", [(key, session) for key in keys for session in wanted.session_ids])
        if wanted.session_prefix is not None:
            under = (table.values_under(key, wanted.session_prefix) for key in keys)
            return table.keys_of("session", chain.from_iterable(under))
        if query.expired_by is not None:
            return table.keys_of("expiring", keys)
        if query.hidden_at is not None:
            return table.keys_of("expiring", keys) | table.keys_of("ended", keys)
        return None

    def _stored_before(self, scopes: Sequence[Scope], before: str, found: Iterable[Episode]) -> Iterable[Episode]:
        last = self._store.episodes.get(before)
        if last is None or last.scope not in scopes or last.session_id is None:
            return []
        return [e for e in found if e.scope == last.scope and e.session_id == last.session_id and e.id < before]

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
        with self._writing():
            episodes, claims = self._store.episodes, self._store.claims
            asked = episodes.scopes() if scopes is None else scopes
            if own is not None:
                others = (claim for claim in claims.read(claims.scopes()) if not claim.owner.startswith(own))
                held = dict.fromkeys(claim.scope for claim in others if claim.until > now)
                asked = [scope for scope in asked if scope not in held]
            due = (
                episode
                for episode in episodes.read(asked, episodes.keys_of("unprocessed", [s.key for s in asked]))
                if episode_state(episode) == "pending"
                and (episode.retry_at is None or episode.retry_at <= now)
                and ((claim := claims.get(episode.id)) is None or claim.until <= now)
            )
            taken = list(islice(due, limit))
            for episode in taken:
                claims.put(episode.id, ClaimRow(episode.scope, owner, until))
            return [e.changed(metadata=dict(e.metadata)) for e in taken]

    def claim_owners(self, now: datetime) -> list[str]:
        """Return the owners whose claims last beyond a time."""
        with self._store.lock:
            claims = self._store.claims.read(self._store.claims.scopes())
            return sorted({claim.owner for claim in claims if claim.until > now})

    def release_claims(self, owners: Sequence[str]) -> list[Episode]:
        """Release the claims of the owners; return the released episodes, oldest id first."""
        with self._writing():
            held = sorted(self._store.claims.keys_of("owner", owners))
            for episode_id in held:
                self._store.claims.put(episode_id, None)
            found = filter(None, map(self._store.episodes.get, held))
            return [e.changed(metadata=dict(e.metadata)) for e in found]

    def find_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> list[Mention]:
        """Return mentions, ordered by (episode, entity) id."""
        with self._store.lock:
            table = self._store.mentions
            candidates = None if episode_ids is None else table.keys_of("episode", episode_ids)
            if entity_ids is not None:
                of_entities = table.keys_of("entity", entity_ids)
                candidates = of_entities if candidates is None else candidates & of_entities
            return [row.value for row in islice(table.read(scopes, candidates), limit)]
