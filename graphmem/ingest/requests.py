"""What an extractor is given of an episode: its speaker, who is addressed, and the turns before it."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.models import Episode, EpisodeQuery, Scope
from graphmem.protocols import ExtractionRequest, GraphBackend

_USER_ROLES = (None, "user", "human")
_SESSION_SAMPLE = 50  # turns of a session that tell who takes part in it


def build_requests(
    backend: GraphBackend, scope: Scope, episodes: Sequence[Episode], turns: int
) -> list[ExtractionRequest]:
    """Return the requests for episodes of a scope, each with up to `turns` user turns before it."""
    sessions = {e.session_id for e in episodes if e.session_id is not None}
    speakers = {session: _speakers(backend, scope, session) for session in sessions}
    requests: list[ExtractionRequest] = []
    for episode in episodes:
        named = _with_speaker(episode)
        others = speakers.get(episode.session_id or "", set()) - {named.speaker}
        addressee = next(iter(others)) if len(others) == 1 else None
        requests.append(ExtractionRequest(named, _context(backend, scope, episode, turns), addressee))
    return requests


def _speakers(backend: GraphBackend, scope: Scope, session: str) -> set[str | None]:
    query = EpisodeQuery(session_id=session)
    return {_with_speaker(e).speaker for e in backend.find_episodes([scope], query, limit=_SESSION_SAMPLE)}


def _context(backend: GraphBackend, scope: Scope, episode: Episode, turns: int) -> tuple[Episode, ...]:
    """Return the user turns before an episode in its session, oldest first."""
    if episode.session_id is None or not turns:
        return ()
    query = EpisodeQuery(session_id=episode.session_id, before=episode.id)
    earlier = backend.find_episodes([scope], query, limit=turns * 3, newest_first=True)
    users = [_with_speaker(e) for e in earlier if e.role in _USER_ROLES]
    return tuple(reversed(users[:turns]))


def _with_speaker(episode: Episode) -> Episode:
    """Give a message without a speaker the name that its role has."""
    if episode.speaker is not None or episode.source != "message":
        return episode
    return episode.changed(speaker="User" if episode.role in _USER_ROLES else "Assistant")
