"""How far the work that keeps a memory in order has come (spec: upkeep)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

_NOTHING = 0.001  # a count below this is 0: the facts that a store looks through don't pile up


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a job of upkeep has come in a scope; one for each (scope, job).

    Attributes
    ----------
    job
        Its name.
    done_at
        When it last ran to its end, None before that.
    episodes
        How many processed episodes the scope had then.
    begun_at
        When a run began that has not ended: it is going on, or was interrupted.
    cursor
        Where that run is; the job knows what it means.
    """

    job: str
    done_at: datetime | None = None
    episodes: int = 0
    begun_at: datetime | None = None
    cursor: str = ""


FORGETTING = "forget"
"""Job of the mark that an erasure leaves: another cursor each time; `begun_at` until files are clean, too."""


def decayed(
    count: float,
    retrieved: datetime | None,
    *,
    rate: float,
    idle_since: datetime,
    since: datetime | None,
    now: datetime,
) -> float:
    """Return what a retrieval count has faded to: the one definition, which every store follows.

    ``count × exp(−rate × days)``, the days since the last retrieval or the last decay, whichever is later. A count that
    was retrieved after `idle_since` stays as it is, and so does one of which neither is known.
    """
    if retrieved is not None and retrieved > idle_since:
        return count
    begin = max((moment for moment in (retrieved, since) if moment is not None), default=now)
    faded = count * math.exp(-rate * max(0.0, (now - begin) / timedelta(days=1)))
    return faded if faded >= _NOTHING else 0.0
