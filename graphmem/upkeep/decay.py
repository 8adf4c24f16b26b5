"""Retrieval counts fade (spec: upkeep, decay)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from graphmem.models import Changes, Scope, utc_now
from graphmem.protocols import GraphBackend
from graphmem.upkeep.schedule import Stopping

JOB = "decay"
_MARK = "retrieval counts"  # how far the counts of a scope have faded: by the schedule or by hand


@dataclass(frozen=True, slots=True)
class DecayRule:
    """How counts fade.

    Attributes
    ----------
    rate
        λ in ``count × exp(−λ × days)`` (setting `link_weight_decay_lambda`).
    interval
        Days within which a retrieved fact keeps its count (setting `link_weight_decay_interval`).
    """

    rate: float
    interval: float


def decay(backend: GraphBackend, scope: Scope, rule: DecayRule, stopping: Stopping, now: datetime | None = None) -> int:
    """Lower the retrieval counts of facts that weren't retrieved of late.

    Works page by page; each is one transaction with the mark of how far it came. Interrupted, it goes on from there
    with the time at which it began, so that no count is lowered twice. Run again at once it changes nothing: no time
    has passed.

    Parameters
    ----------
    backend, scope
        Whose facts.
    rule
        How counts fade.
    stopping
        Asked after each page whether to leave the rest for the next run.
    now
        The moment up to which they fade; defaults to the present.

    Returns
    -------
    int
        Facts with a count above 0 that were looked at.
    """
    looked_at = 0
    moment = utc_now() if now is None else now
    while True:
        done, more = backend.atomic(lambda: _page(backend, scope, rule, moment))
        looked_at += done
        if not more or stopping():
            return looked_at


def is_interrupted(backend: GraphBackend, scope: Scope) -> bool:
    """Tell whether a decay of this scope has begun and not ended."""
    return backend.find_mark(scope, _MARK).begun_at is not None


def _page(backend: GraphBackend, scope: Scope, rule: DecayRule, now: datetime) -> tuple[int, bool]:
    mark = backend.find_mark(scope, _MARK)
    begun = mark.begun_at or now
    if mark.done_at is not None and begun <= mark.done_at:
        return 0, False
    done, cursor = backend.decay_retrievals(
        scope,
        rate=rule.rate,
        idle_since=begun - timedelta(days=rule.interval),
        since=mark.done_at,
        now=begun,
        after=mark.cursor,
    )
    after = (
        replace(mark, begun_at=begun, cursor=cursor)
        if cursor
        else replace(mark, done_at=begun, begun_at=None, cursor="")
    )
    backend.write(scope, Changes(marks=(after,)))
    return done, bool(cursor)
