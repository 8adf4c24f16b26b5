"""Retries: how often a call of a server is repeated that the server asks to repeat, or doesn't answer."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from neo4j.exceptions import DriverError, Neo4jError, ServiceUnavailable, SessionExpired

from graphmem_neo4j.server import RETRIED_FOR, reason_of

T = TypeVar("T")

ANSWERED_WITHIN = 10.0
"""Seconds after which calls of a server that doesn't answer fail; a server that restarts takes that long or longer."""

_OUTAGE = 60.0  # seconds between two failures of one outage at most
_PAUSE, _LONGEST_PAUSE, _JITTER = 0.25, 4.0, 0.2
_log = logging.getLogger(__name__)


class Retries:
    """The retries of the calls of one database.

    A call is repeated for `RETRIED_FOR` seconds while the server asks for it (deadlock, change of leader). While the
    server doesn't answer, all calls wait for it together: until `ANSWERED_WITHIN` seconds after the first that failed.
    Later ones fail after a second attempt, since a recall or a search makes several, until the server has answered one.

    Parameters
    ----------
    place
        Name of the store in log lines.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._away_since = 0.0
        self._failed_at = float("-inf")

    def run(self, call: Callable[[], T], *, mend: Callable[[Neo4jError | DriverError], bool]) -> T:
        """Return the result of a call, repeated as long as it may be.

        Parameters
        ----------
        call
            Makes one attempt.
        mend
            Told of each error that is worth a retry; returns whether it has removed the cause: then the next attempt
            is made at once, whatever the time.
        """
        failed_at, pause = float("inf"), _PAUSE
        while True:
            try:
                result = call()
            except (Neo4jError, DriverError) as error:
                if not error.is_retryable():
                    raise
                if mend(error):
                    continue
                now = time.monotonic()
                failed_at = min(now, failed_at)
                if not self._may_repeat(error, now, failed_at):
                    raise
                _log.info("%s: will be retried (%s)", self._place, error)
            else:
                self._failed_at = float("-inf")
                return result
            time.sleep(pause * random.uniform(1 - _JITTER, 1 + _JITTER))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _may_repeat(self, error: Exception, now: float, failed_at: float) -> bool:
        if not isinstance(error, (ServiceUnavailable, SessionExpired)):
            return now - failed_at < RETRIED_FOR
        if now - self._failed_at > _OUTAGE:
            self._away_since = now
            _log.warning("%s: no answer (%s); waiting up to %g s", self._place, reason_of(error), ANSWERED_WITHIN)
        self._failed_at = now
        # where the first attempt was on a connection that was lost while idle, the second one makes a new connection
        return now - self._away_since < ANSWERED_WITHIN or now == failed_at
