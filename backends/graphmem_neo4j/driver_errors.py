"""Translation of errors of the Neo4j driver into errors of graphmem; no message shows a password."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from graphmem.errors import BackendUnavailable, Conflict, GraphMemError, InvalidInput, StoreFull, StoreReadOnly

_FORBIDDEN = "Neo.ClientError.Security.Forbidden"
_NO_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"
PAST_CLIENT_LIMIT = "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration"
PAST_SERVER_LIMIT = "Neo.ClientError.Transaction.TransactionTimedOut"
_READ_ONLY = (
    "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase",
    "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
    "Neo.ClientError.Statement.AccessMode",
)
_NO_INDEX = "There is no such fulltext schema index", "Cannot use index hint", "No such index"
_TOO_LONG = "Property value is too large to index"


@contextmanager
def translated(place: str, limit: float | None = None) -> Generator[None, None, None]:
    """Translate errors of the driver raised in a block into errors of `graphmem.errors` that name the store.

    Parameters
    ----------
    place
        Name of the store in messages.
    limit
        Time limit in seconds that the server was given, if any.
    """
    try:
        yield
    except (Neo4jError, DriverError) as error:
        raise translate(error, place, limit) from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{place}: a value can't be stored: {error}") from error


def translate(error: Neo4jError | DriverError, place: str, limit: float | None = None) -> GraphMemError:
    """Return the error of graphmem for an error of the driver; see `translated`."""
    if isinstance(error, Neo4jError):
        return _of_server(error, place, limit)
    if isinstance(error, (ServiceUnavailable, SessionExpired)):
        return BackendUnavailable(f"{place}: the server doesn't answer ({error}); check that it runs and the address")
    return BackendUnavailable(f"{place}: {error}")


def _conflict_reason(message: str) -> str:
    """Return the reason: another row of graphmem, or a constraint of another program on a label that graphmem uses."""
    if "graphmem" in message.lower():
        return "another row holds this key"
    return "a constraint that isn't graphmem's forbids it; drop that one, or give graphmem a database of its own"


def _of_server(error: Neo4jError, place: str, limit: float | None) -> GraphMemError:
    code, message = error.code or "", error.message or ""
    if isinstance(error, ConstraintError):
        return Conflict(f"{place}: {_conflict_reason(message)} ({message}); nothing was written")
    if code == _FORBIDDEN:
        return StoreReadOnly(f"{place}: this user lacks a right ({message}); grant it, or log in as another user")
    if code in _READ_ONLY:
        return StoreReadOnly(f"{place}: can be read but not written ({message})")
    if isinstance(error, AuthError):
        return BackendUnavailable(
            f"{place}: user name or password are wrong ({code}); they come from the URL, from the settings "
            "store_username and store_password, or from NEO4J_USERNAME and NEO4J_PASSWORD"
        )
    if code == _NO_DATABASE:
        return BackendUnavailable(f"{place}: the server has no such database; check the path of the URL")
    if code == PAST_CLIENT_LIMIT:
        seconds = "" if limit is None else f" of {limit:g} s"
        return BackendUnavailable(
            f"{place}: the server cancelled a query or a transaction at its time limit{seconds}; nothing of it was "
            "written. The setting store_timeout (GRAPHMEM_STORE_TIMEOUT) is that limit"
        )
    if code == PAST_SERVER_LIMIT:
        return BackendUnavailable(
            f"{place}: the server cancelled a query or a transaction at its own time limit, db.transaction.timeout; "
            "nothing of it was written"
        )
    if any(words in message for words in _NO_INDEX):
        return BackendUnavailable(f"{place}: an index is missing ({message}); run graphmem doctor")
    if "OutOfDisk" in code or "DiskFull" in code:
        return StoreFull(f"{place}: no space is left ({message}); nothing was written")
    if _TOO_LONG in message:
        return InvalidInput(f"{place}: a value is too long for an index ({message}); nothing was written")
    if isinstance(error, TransientError):
        return BackendUnavailable(f"{place}: the server asks to try again later ({message})")
    if isinstance(error, ClientError) and code.startswith("Neo.ClientError.Statement.ArithmeticError"):
        return InvalidInput(f"{place}: a value can't be stored: {message}")
    return BackendUnavailable(f"{place}: {message} ({code})")
