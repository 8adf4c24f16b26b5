"""Stores with one bug each in episodes or their queue, to try the conformance kit on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from broken_backends import Sound

from graphmem.models import Changes, Episode, EpisodeQuery, Scope, SessionSummary


class KeepsExternalIds(Sound):
    """Knows an external id again after its episode was removed, or its scope cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: dict[tuple[Scope, str | None], str] = {}

    def write(self, scope: Scope, changes: Changes) -> None:
        removed = [removal.id for removal in changes.removals if removal.kind == "episode"]
        rows = self.get_episodes([scope], removed).values()
        super().write(scope, changes)
        self._remember(rows)

    def clear(self, scope: Scope) -> None:
        rows = self.find_episodes([scope], EpisodeQuery())
        super().clear(scope)
        self._remember(rows)

    def _remember(self, rows: Iterable[Episode]) -> None:
        self.gone |= {(row.scope, row.external_id): row.id for row in rows if row.external_id is not None}

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        known = {e.id: self.gone[scope, e.external_id] for e in episodes if (scope, e.external_id) in self.gone}
        added = iter(super().add_episodes(scope, [e for e in episodes if e.id not in known]))
        return [(known[e.id], False) if e.id in known else next(added) for e in episodes]


class ReadsScopeByScope(Sound):
    """Reads the episodes of one scope after those of another, not by id."""

    def find_episodes(
        self, scopes: Sequence[Scope], query: EpisodeQuery, *, limit: int = 1000, **paging: Any
    ) -> list[Episode]:
        found: list[Episode] = []
        for scope in scopes:
            found += super().find_episodes([scope], query, limit=limit - len(found), **paging)
        return found


class FindsIdsScopeByScope(Sound):
    """Finds the ids of one scope after those of another."""

    def find_episode_ids(self, scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        find = super().find_episode_ids
        return [episode_id for scope in scopes for episode_id in find([scope], query)]


class ListsSessionsByTheirEpisodes(Sound):
    """Lists sessions in the order of their first episodes, not of their ids."""

    def find_sessions(
        self, scopes: Sequence[Scope], query: EpisodeQuery, *, after: str | None = None, limit: int = 1000
    ) -> list[SessionSummary]:
        found = {row.id: row for row in super().find_sessions(scopes, query, limit=10**6)}
        order = list(dict.fromkeys(e.session_id for e in self.all_episodes(scopes, query) if e.session_id is not None))
        start = 0 if after is None else order.index(after) + 1
        return [found[session_id] for session_id in order[start : start + limit]]


class CountsAllOfASession(Sound):
    """Counts all episodes of the sessions that a query matches one of."""

    def find_sessions(self, scopes: Sequence[Scope], query: EpisodeQuery, **paging: Any) -> list[SessionSummary]:
        whole = {row.id: row for row in super().find_sessions(scopes, EpisodeQuery(), limit=10**6)}
        return [whole[row.id] for row in super().find_sessions(scopes, query, **paging)]


class TakesNoSessionForOne(Sound):
    """Takes all episodes without a session for one session."""

    def _stored_before(self, scopes: Sequence[Scope], before: str, found: Iterable[Episode]) -> Iterable[Episode]:
        last = self._store.episodes.get(before)
        if last is None or last.scope not in scopes:
            return []
        return [e for e in found if e.scope == last.scope and e.session_id == last.session_id and e.id < before]


class TakesSessionsOfOneNameForOne(Sound):
    """Finds the episodes before another in any scope that has a session of its name."""

    def _stored_before(self, scopes: Sequence[Scope], before: str, found: Iterable[Episode]) -> Iterable[Episode]:
        last = self._store.episodes.get(before)
        if last is None or last.scope not in scopes or last.session_id is None:
            return []
        return [e for e in found if e.session_id == last.session_id and e.id < before]


class TakesEmptyForAbsent(Sound):
    """Stores no text where the text is empty."""

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        names = ("title", "session_id", "role", "speaker", "external_id", "error")
        rows = [row.changed(**{name: getattr(row, name) or None for name in names}) for row in episodes]
        return super().add_episodes(scope, rows)


class ReturnsItsMetadata(Sound):
    """Returns the metadata that it stores, not a copy."""

    def find_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, **paging: Any) -> list[Episode]:
        found = super().find_episodes(scopes, query, **paging)
        return [row for e in found if (row := self._store.episodes.get(e.id)) is not None]


class LeasesInSeconds(Sound):
    """Rounds the end of a claim up to the second."""

    def claim_episodes(self, owner: str, *, until: datetime, **lease: Any) -> list[Episode]:
        rounded = until.replace(microsecond=0) + timedelta(seconds=until.microsecond > 0)
        return super().claim_episodes(owner, until=rounded, **lease)


class ClaimsScopeByScope(Sound):
    """Claims all episodes of a scope before those of the next, however old these are."""

    def claim_episodes(
        self, owner: str, *, limit: int, scopes: Sequence[Scope] | None = None, **lease: Any
    ) -> list[Episode]:
        taken: list[Episode] = []
        for scope in sorted(self.scopes() if scopes is None else scopes, key=lambda scope: scope.key):
            taken += super().claim_episodes(owner, limit=limit - len(taken), scopes=[scope], **lease)
        return sorted(taken, key=lambda episode: episode.id)


class RedactsInAnyScope(Sound):
    """Replaces the text of an episode whatever its scope, and ignores absent ones."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, replace(changes, redactions=()))
        for redaction in changes.redactions:
            if (row := self._store.episodes.get(redaction.episode_id)) is not None:
                super().write(row.scope, Changes(redactions=(redaction,)))
