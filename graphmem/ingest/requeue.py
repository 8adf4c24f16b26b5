"""Episodes that are put back into the queue: dead letters, delayed ones, and what is to be extracted again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from graphmem.ingest.failures import Failure
from graphmem.ingest.gate import SKIPPED
from graphmem.models import Changes, Episode, EpisodeQuery, EpisodeState, Outcome, Scope
from graphmem.protocols import GraphBackend

_PAGE = 500


def without_delay(episode: Episode, now: datetime) -> Outcome | None:
    """Return what lets an episode be tried now that a model has delayed; None for any other."""
    failure = Failure.read(episode.error)
    if failure is None or failure.kind == "episode" or episode.retry_at is None or episode.retry_at <= now:
        return None
    return Outcome(episode.id, error=episode.error, attempts=episode.attempts, retry_at=now)


def to_be_read_again(episode: Episode) -> Outcome | None:
    """Return what lets an episode be extracted again; None for ready-made facts, and what isn't to be extracted."""
    if episode.source == "triple" or SKIPPED in episode.metadata:
        return None
    return Outcome(episode.id, attempts=1)  # a first try would replace nothing: see `Writer`


def put_back(
    backend: GraphBackend, scope: Scope, state: EpisodeState, outcome: Callable[[Episode], Outcome | None]
) -> int:
    """Write an outcome for each episode of a state that has one, page by page; return how many those are.

    Of pending episodes it reads on only while there are any: the oldest are tried first, so that the delayed ones come
    first.
    """

    def page(behind: str) -> tuple[int, str]:
        rows = backend.find_episodes([scope], EpisodeQuery(state=state), after=behind, limit=_PAGE)
        outcomes = tuple(found for row in rows if (found := outcome(row)) is not None)
        if outcomes:
            backend.write(scope, Changes(outcomes=outcomes))
        more = rows and (outcomes or state != "pending")
        return len(outcomes), rows[-1].id if more else ""

    done, after = backend.atomic(lambda: page(""))
    while after:
        count, after = backend.atomic(lambda behind=after: page(behind))
        done += count
    return done
