"""Failed extractions: stored record, retry schedule, pauses of the queue, and requeueing.

An invalid reply is a failure of its episode and uses up one attempt. An unavailable or misconfigured model is no
failure of the episode and uses up none; it pauses the queue: a misconfigured one at once, an unavailable one after
several episodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from graphmem.llm.providers import FailureKind
from graphmem.models import Changes, Episode, EpisodeQuery, EpisodeState, ProcessingResult, Scope
from graphmem.models.base import START_OF_TIME
from graphmem.models.metadata import SKIPPED
from graphmem.protocols import GraphBackend
from graphmem.settings import Settings

_OUTAGE = 3  # consecutive different episodes that failed on an unavailable model
_BEHIND_THE_PROBE = 0.1  # share of the probe interval by which a misconfigured episode follows the pause: others first
_STORED = re.compile(r"(\w+): (.*) \[(\w+) since (\S+), (\d+)×, last (\S+)\]", re.DOTALL)
_LONGEST_DELAY = 1e9  # seconds; the next attempt is still at a date
_REASON_LENGTH = 400
_KINDS: dict[str, FailureKind] = {"own": "episode", "unavailable": "unavailable", "misconfigured": "misconfigured"}
_WORDS = {kind: word for word, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of an episode. `str` returns the text stored as its `error`, and `read` parses it.

    Attributes
    ----------
    kind
        Category of the cause.
    reason
        The error message, prefixed with the name of its class.
    since, last
        Time of the first and the last failure of this kind.
    times
        Number of consecutive failures of this kind.
    """

    kind: FailureKind
    reason: str
    since: datetime
    last: datetime
    times: int = 1

    @classmethod
    def of(cls, error: Exception, kind: FailureKind, now: datetime) -> Self:
        """Return a first failure for an error."""
        return cls(kind, f"{type(error).__name__}: {error}"[:_REASON_LENGTH], now, now)

    @classmethod
    def read(cls, error: str | None) -> Self | None:
        """Return the stored failure of an episode; None if there is none or the text has another format."""
        found = _STORED.fullmatch(error or "")
        if found is None or found[3] not in _KINDS:
            return None
        try:
            since, last = (datetime.fromisoformat(text).astimezone(UTC) for text in (found[4], found[6]))
        except ValueError:
            return None
        return cls(_KINDS[found[3]], f"{found[1]}: {found[2]}", since, last, int(found[5]))

    def after(self, earlier: Failure | None) -> Failure:
        """Return this failure with the count and start of the previous one, if both are of the same kind."""
        if earlier is None or earlier.kind != self.kind:
            return self
        return replace(self, since=earlier.since, times=earlier.times + 1)

    def __str__(self) -> str:
        since, last = (moment.isoformat(timespec="milliseconds") for moment in (self.since, self.last))
        return f"{self.reason} [{_WORDS[self.kind]} since {since}, {self.times}×, last {last}]"


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause of extraction, caused by an unavailable model or a wrong configuration."""

    kind: FailureKind
    reason: str
    since: datetime
    until: datetime
    probes: int = 1


def pause_message(pause: Pause, extractor: str) -> str:
    """Return a log line with the cause of a pause, its end and the remedy."""
    what = "is paused" if pause.kind == "misconfigured" else "waits for its model"
    until = max(pause.until, pause.since).isoformat(timespec="seconds")
    return (
        f"extraction by {extractor} {what}: {pause.reason}; episodes stay in the queue, "
        f"the next try is at {until}; graphmem backfill tries at once"
    )


class RetryRule:
    """Schedule of retries and pauses. Uses no store; callers pass the current time.

    Parameters
    ----------
    settings
        `max_attempts`, `retry_delay`, `retry_delay_limit`, `retry_days` and `probe_interval`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._failing: set[str] = set()
        self._last_success: datetime | None = None
        self._outage_at: datetime | None = None  # last failure in an outage, at first the first failure of the process
        self.pause: Pause | None = None

    def waits(self, now: datetime) -> bool:
        """Return whether extraction is paused at this time."""
        return self.pause is not None and now < self.pause.until

    def probe_now(self) -> None:
        """Allow the next attempt immediately, before the pause is over."""
        if self.pause is not None:
            self.pause = replace(self.pause, until=START_OF_TIME)

    def succeeded(self, now: datetime) -> Pause | None:
        """Record a reply of the extractor; return the pause that it ended, if any."""
        self._failing.clear()
        self._last_success = now
        ended, self.pause = self.pause, None
        return ended

    def judge(self, episode: Episode, error: Exception, kind: FailureKind, now: datetime) -> tuple[Failure, bool]:
        """Return the failure to store for an attempt, and whether it begins a pause.

        A repeated "misconfigured" failure counts as a failure of the episode if others were extracted in between:
        the model then rejects the text.
        """
        earlier = Failure.read(episode.error)
        if kind == "misconfigured" and earlier is not None and self._last_success is not None:
            kind = "episode" if self._last_success > earlier.last else kind
        failure = Failure.of(error, kind, now).after(earlier)
        if kind == "episode":
            return failure, False
        self._outage_at = self._outage_at or now
        self._failing.add(episode.id)
        if kind == "unavailable" and len(self._failing) < _OUTAGE and self.pause is None:
            return failure, False
        return failure, self._begin_pause(failure, now)

    def _begin_pause(self, failure: Failure, now: datetime) -> bool:
        before, self._outage_at = self.pause, now
        if before is not None and now < before.until:
            return False  # the call was already running when the pause began
        probes = before.probes + 1 if before is not None and before.kind == failure.kind else 1
        delay = self._settings.probe_interval
        if failure.kind == "unavailable":
            delay = min(delay, self._doubled(probes))
        since = before.since if before is not None and before.kind == failure.kind else now
        self.pause = Pause(failure.kind, failure.reason, since, now + timedelta(seconds=delay), probes)
        return before is None or before.kind != failure.kind

    def next_try(self, episode: Episode, failure: Failure, now: datetime) -> datetime | None:
        """Return the time of the next attempt for a failed episode; None makes it a dead letter.

        An outage, in which all episodes wait, makes none a dead letter, however long it lasts.
        """
        settings = self._settings
        if failure.kind == "episode":
            attempts = attempts_after(episode, failure)
            return None if attempts >= settings.max_attempts else now + timedelta(seconds=self._doubled(attempts))
        if failure.kind == "misconfigured":
            until = self.pause.until if self.pause is not None else now
            return max(now, until) + timedelta(seconds=settings.probe_interval * _BEHIND_THE_PROBE)
        since = max(failure.since, self._outage_at or failure.since)
        if now - since >= timedelta(days=settings.retry_days):
            return None
        return now + timedelta(seconds=min(settings.retry_delay_limit, self._doubled(failure.times)))

    def _doubled(self, times: int) -> float:
        return min(self._settings.retry_delay * 2.0 ** min(times - 1, 60), _LONGEST_DELAY)


def attempts_after(episode: Episode, failure: Failure) -> int:
    """Return the number of attempts of an episode after a failure, which counts if it is one of the episode.

    A requeued episode has an attempt without an error (see `requeued`), in whose place the first counts.
    """
    is_requeued = episode.attempts > 0 and episode.error is None
    return episode.attempts + (failure.kind == "episode" and not is_requeued)


_PAGE = 500


def without_delay(episode: Episode, now: datetime) -> ProcessingResult | None:
    """Return the result that makes an episode delayed by a model failure due now; None for other episodes."""
    failure = Failure.read(episode.error)
    if failure is None or failure.kind == "episode" or episode.retry_at is None or episode.retry_at <= now:
        return None
    return ProcessingResult(episode.id, error=episode.error, attempts=episode.attempts, retry_at=now)


def without_reason(episode: Episode) -> ProcessingResult | None:
    """Return the result that leaves only the class of the error of a waiting or failed episode; None without an error.

    The message may quote another episode, which was part of the same call of the model.
    """
    failure = Failure.read(episode.error)
    if failure is None:
        return None
    name = failure.reason.partition(":")[0]
    error = str(replace(failure, reason=f"{name}: the message was erased, it may have quoted an erased text"))
    return ProcessingResult(episode.id, error=error, attempts=episode.attempts, retry_at=episode.retry_at)


def delayed_before(backend: GraphBackend, episode: Episode) -> list[Episode]:
    """Return the earlier turns of the session of an episode that wait for their next attempt."""
    earlier = backend.find_episodes([episode.scope], EpisodeQuery(state="pending", before=episode.id))
    return [one for one in earlier if one.retry_at is not None]


def after_delayed(backend: GraphBackend, episode: Episode, now: datetime) -> ProcessingResult:
    """Return a result that postpones an episode until delayed turns before it were retried; it uses up no attempt."""
    last = max(delayed_before(backend, episode), key=lambda one: one.retry_at or now, default=None)
    failure = None if last is None else Failure.read(last.error)
    error = None if failure is None else str(replace(failure, reason="ExtractionFailed: waits for an earlier turn"))
    retry_at = now if last is None else last.retry_at
    return ProcessingResult(episode.id, error=error, attempts=episode.attempts, retry_at=retry_at)


def requeued(episode: Episode) -> ProcessingResult | None:
    """Return the result that requeues an extracted episode; None for ready-made facts and skipped episodes."""
    if episode.source == "triple" or SKIPPED in episode.metadata:
        return None
    return ProcessingResult(episode.id, attempts=1)  # `Writer` replaces earlier results from the second attempt on


def requeue(
    backend: GraphBackend, scope: Scope, state: EpisodeState, result: Callable[[Episode], ProcessingResult | None]
) -> int:
    """Write the result of each episode in a state, page by page; return the number of episodes written.

    Episodes for which `result` returns None stay as they are. Pending episodes are read up to the first page without a
    result whose last one was never attempted: the oldest are attempted first, so the later ones weren't either.
    """

    def page(after: str) -> tuple[int, str]:
        rows = backend.find_episodes([scope], EpisodeQuery(state=state), after=after, limit=_PAGE)
        results = tuple(found for row in rows if (found := result(row)) is not None)
        if results:
            backend.write(scope, Changes(results=results))
        more = bool(rows) and (bool(results) or state != "pending" or rows[-1].attempts > 0)
        return len(results), rows[-1].id if more else ""

    done, after = backend.atomic(lambda: page(""))
    while after:
        count, after = backend.atomic(lambda after=after: page(after))
        done += count
    return done
