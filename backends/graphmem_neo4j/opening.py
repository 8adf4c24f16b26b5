"""Reaching a server: who answers, since when, and whether this program can work with it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from ssl import SSLCertVerificationError

import neo4j
from neo4j import Driver, GraphDatabase
from neo4j.exceptions import DriverError, Neo4jError, ServiceUnavailable, SessionExpired, TransientError

from graphmem.errors import BackendUnavailable
from graphmem_neo4j.failures import translate, translated
from graphmem_neo4j.place import Place

_OLDEST = (5, 26)
_PAUSE = 0.25
_RETRIED_FOR = 30.0
_log = logging.getLogger(__name__)


def connect(place: Place, wait: float) -> Driver:
    """Return a driver that has spoken with its server.

    Parameters
    ----------
    place
        The database.
    wait
        Seconds to wait for a server that doesn't answer: it may be starting.

    Raises
    ------
    BackendUnavailable
        If nobody answers, the login or the database are wrong, or the server is older than 5.26.
    """
    with translated(place.name):
        driver = GraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType]  options of any type
            place.uri,
            auth=place.login,
            user_agent="graphmem",
            connection_timeout=max(1.0, min(wait, 15.0)),
            connection_acquisition_timeout=_RETRIED_FOR,  # a frozen server still takes connections, and never speaks
            max_transaction_retry_time=_RETRIED_FOR,
            notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
            telemetry_disabled=True,
        )
    try:
        require_new_enough(_first_answer(driver, place, wait), place.name)
    except BaseException:
        driver.close()
        raise
    return driver


def _first_answer(driver: Driver, place: Place, wait: float) -> str:
    """Return what the server calls itself."""
    deadline = time.monotonic() + wait
    told = False
    while True:
        try:
            with _quiet_pool(), driver.session(database=place.database) as session:  # pyright: ignore[reportUnknownMemberType]
                return session.run("RETURN 1").consume().server.agent
        except (ServiceUnavailable, SessionExpired, TransientError) as error:
            if isinstance(_innermost(error), SSLCertVerificationError):
                raise BackendUnavailable(
                    f"{place.name}: the server's certificate isn't trusted ({_reason(error)}); have it signed, or take "
                    "any with +ssc in place of +s in the URL"
                ) from error
            if time.monotonic() >= deadline:
                raise BackendUnavailable(
                    f"{place.name}: {_state(error)} after {wait:g} s ({_reason(error)}); check that the server runs, "
                    "and the address; if it takes longer to start, raise the setting store_wait (GRAPHMEM_STORE_WAIT)"
                ) from error
            if not told:
                _log.warning("%s: %s yet (%s); waiting up to %g s", place.name, _state(error), _reason(error), wait)
                told = True
            time.sleep(_PAUSE)
        except (Neo4jError, DriverError) as error:
            raise translate(error, place.name) from error


@contextmanager
def _quiet_pool() -> Generator[None, None, None]:
    """Keep the driver from logging each attempt that fails: that the server is waited for is said once, here."""
    pool = logging.getLogger("neo4j.pool")

    def drop(record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING

    pool.addFilter(drop)
    try:
        yield
    finally:
        pool.removeFilter(drop)


def _state(error: Exception) -> str:
    return "the server is there but the database isn't" if isinstance(error, TransientError) else "nobody answers"


def _innermost(error: BaseException) -> BaseException:
    """Return the first cause, which the driver wraps into the addresses that it tried and those into groups."""
    while True:
        grouped: Sequence[BaseException] = getattr(error, "exceptions", ())
        inner = grouped[0] if grouped else error.__cause__ or error.__context__
        if inner is None:
            return error
        error = inner


def _reason(error: Exception) -> str:
    if isinstance(error, Neo4jError):
        return error.message or str(error.code)
    inner = _innermost(error)
    told = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner)
    return told.partition("\n")[0]


def require_new_enough(agent: str, place: str) -> None:
    """Refuse servers before 5.26; numbers like 2025.01 come after all of those.

    Parameters
    ----------
    agent
        What the server calls itself.
    place
        What messages call the store.
    """
    match = re.match(r"Neo4j/(\d+)\.(\d+)", agent)
    if match is not None and (int(match[1]), int(match[2])) < _OLDEST:
        raise BackendUnavailable(f"{place}: the server is {agent}, graphmem needs Neo4j 5.26 or later")
