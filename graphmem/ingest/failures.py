"""Failed extractions: what is stored of one, when it is tried again, when the queue pauses, how it is put back.

A bad answer is the failure of its episode and uses up one of its tries. A model that is away or misconfigured says
nothing about the episode: it costs no try, and when it is everybody's failure the queue stops asking for a while.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from graphmem.ingest.content_filter import SKIPPED
from graphmem.llm.errors import FailureKind
from graphmem.models import Changes, Episode, EpisodeQuery, EpisodeState, ProcessingResult, Scope
from graphmem.protocols import GraphBackend
from graphmem.settings import Settings

_OUTAGE = 3  # different episodes in a row that met an unavailable model
_BEHIND_THE_PROBE = 0.1  # share of a pause after which the episode that caused it is tried: others go first
_STORED = re.compile(r"(\w+): (.*) \[(\w+) since (\S+), (\d+)×, last (\S+)\]", re.DOTALL)
_REASON_LENGTH = 400
_KINDS: dict[str, FailureKind] = {"own": "episode", "unavailable": "unavailable", "misconfigured": "misconfigured"}
_WORDS = {kind: word for word, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an episode isn't extracted; `str` is what is stored as its `error`, and `read` reads that back.

    Attributes
    ----------
    kind
        Where the cause lies.
    reason
        The error, with the name of its class.
    since, last
        First and last time that the episode failed in this way.
    times
        How often it did, without interruption by a failure of another kind.
    """

    kind: FailureKind
    reason: str
    since: datetime
    last: datetime
    times: int = 1

    @classmethod
    def of(cls, error: Exception, kind: FailureKind, now: datetime) -> Self:
        """Return the failure that an error is, as the first one."""
        return cls(kind, f"{type(error).__name__}: {error}"[:_REASON_LENGTH], now, now)

    @classmethod
    def read(cls, error: str | None) -> Self | None:
        """Return the stored failure of an episode; None if there is none, or another program wrote it."""
        found = _STORED.fullmatch(error or "")
        if found is None or found[3] not in _KINDS:
            return None
        try:
            since, last = (datetime.fromisoformat(text).astimezone(UTC) for text in (found[4], found[6]))
        except ValueError:
            return None
        return cls(_KINDS[found[3]], f"{found[1]}: {found[2]}", since, last, int(found[5]))

    def after(self, earlier: Failure | None) -> Failure:
        """Return this failure counted on from the one before it, if both are of a kind."""
        if earlier is None or earlier.kind != self.kind:
            return self
        return replace(self, since=earlier.since, times=earlier.times + 1)

    def __str__(self) -> str:
        since, last = (moment.isoformat(timespec="milliseconds") for moment in (self.since, self.last))
        return f"{self.reason} [{_WORDS[self.kind]} since {since}, {self.times}×, last {last}]"


@dataclass(frozen=True, slots=True)
class Pause:
    """Extraction waits: for a model that is unavailable, or for somebody to repair the configuration."""

    kind: FailureKind
    reason: str
    since: datetime
    until: datetime
    probes: int = 1


def told(pause: Pause, extractor: str) -> str:
    """Return the one line that says why extraction waits, until when, and what helps."""
    what = "is paused" if pause.kind == "misconfigured" else "waits for its model"
    until = max(pause.until, pause.since).isoformat(timespec="seconds")
    return (
        f"extraction by {extractor} {what}: {pause.reason}; episodes stay in the queue, "
        f"the next try is at {until}; graphmem backfill tries at once"
    )


class RetryRule:
    """Says when an episode is tried again, and when the queue pauses; keeps no store and takes the time as given.

    Parameters
    ----------
    settings
        `max_attempts`, `retry_delay`, `retry_delay_limit`, `retry_days` and `probe_interval`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._failing: set[str] = set()
        self._last_success: datetime | None = None
        self.pause: Pause | None = None

    def waits(self, now: datetime) -> bool:
        """Return whether the queue is to leave its episodes where they are for now."""
        return self.pause is not None and now < self.pause.until

    def probe_now(self) -> None:
        """Let the next episode be tried whether its time has come or not."""
        if self.pause is not None:
            self.pause = replace(self.pause, until=datetime.min.replace(tzinfo=UTC))

    def succeeded(self, now: datetime) -> Pause | None:
        """Note that the extractor answered; return the pause that this ended."""
        self._failing.clear()
        self._last_success = now
        ended, self.pause = self.pause, None
        return ended

    def judge(self, episode: Episode, error: Exception, kind: FailureKind, now: datetime) -> tuple[Failure, bool]:
        """Return what is stored of a failed try, and whether it begins a pause.

        An episode that was refused as if the configuration were wrong, while others were read since, is refused for
        what it says.
        """
        earlier = Failure.read(episode.error)
        if kind == "misconfigured" and earlier is not None and self._last_success is not None:
            kind = "episode" if self._last_success > earlier.last else kind
        failure = Failure.of(error, kind, now).after(earlier)
        if kind == "episode":
            return failure, False
        self._failing.add(episode.id)
        if kind == "unavailable" and len(self._failing) < _OUTAGE and self.pause is None:
            return failure, False
        return failure, self._begin_pause(failure, now)

    def _begin_pause(self, failure: Failure, now: datetime) -> bool:
        before = self.pause
        if before is not None and now < before.until:
            return False  # of the calls that were under way when it began
        probes = before.probes + 1 if before is not None and before.kind == failure.kind else 1
        delay = self._settings.probe_interval
        if failure.kind == "unavailable":
            delay = min(delay, self._doubled(probes))
        since = before.since if before is not None and before.kind == failure.kind else now
        self.pause = Pause(failure.kind, failure.reason, since, now + timedelta(seconds=delay), probes)
        return before is None or before.kind != failure.kind

    def next_try(self, episode: Episode, failure: Failure, now: datetime) -> datetime | None:
        """Return when a failed episode is tried again; None: not by itself, it is a dead letter."""
        settings = self._settings
        if failure.kind == "episode":
            attempts = episode.attempts + 1
            return None if attempts >= settings.max_attempts else now + timedelta(seconds=self._doubled(attempts))
        if failure.kind == "misconfigured":
            until = self.pause.until if self.pause is not None else now
            return max(now, until) + timedelta(seconds=settings.probe_interval * _BEHIND_THE_PROBE)
        if now - failure.since >= timedelta(days=settings.retry_days):
            return None
        return now + timedelta(seconds=min(settings.retry_delay_limit, self._doubled(failure.times)))

    def _doubled(self, times: int) -> float:
        return self._settings.retry_delay * 2.0 ** min(times - 1, 60)


_PAGE = 500


def without_delay(episode: Episode, now: datetime) -> ProcessingResult | None:
    """Return what lets an episode be tried now that a model has delayed; None for any other."""
    failure = Failure.read(episode.error)
    if failure is None or failure.kind == "episode" or episode.retry_at is None or episode.retry_at <= now:
        return None
    return ProcessingResult(episode.id, error=episode.error, attempts=episode.attempts, retry_at=now)


def to_be_read_again(episode: Episode) -> ProcessingResult | None:
    """Return what lets an episode be extracted again; None for ready-made facts, and what isn't to be extracted."""
    if episode.source == "triple" or SKIPPED in episode.metadata:
        return None
    return ProcessingResult(episode.id, attempts=1)  # a first try would replace nothing: see `Writer`


def put_back(
    backend: GraphBackend, scope: Scope, state: EpisodeState, outcome: Callable[[Episode], ProcessingResult | None]
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
