"""The server of a store: its address in the store URL, first connection, version check, errors, and the schema."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, repeat
from ssl import SSLCertVerificationError, SSLError
from urllib.parse import SplitResult, unquote, urlsplit

import neo4j
from neo4j import Driver, GraphDatabase, ManagedTransaction, Query, Session, unit_of_work
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

from graphmem.errors import (
    BackendUnavailable,
    Conflict,
    GraphMemError,
    InvalidInput,
    SchemaTooNew,
    StoreAccessDenied,
    StoreFull,
    StoreReadOnly,
)
from graphmem.models import split_attachments
from graphmem_cypher import migrations, query
from graphmem_neo4j.rows import metadata_entries

_FORBIDDEN = "Neo.ClientError.Security.Forbidden"
_REFUSED_TOO_OFTEN = "Neo.ClientError.Security.AuthenticationRateLimit"
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
        return BackendUnavailable(
            f"{place}: the server doesn't answer ({reason_of(error)}); check that it runs, and the address"
        )
    return BackendUnavailable(f"{place}: {error}")


def _conflict_reason(message: str) -> str:
    """Return the reason: another row of graphmem, or a constraint of another program on a label that graphmem uses."""
    if "graphmem" in message.partition(" = ")[0].lower():  # what follows are values
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
    if isinstance(error, AuthError) or code == _REFUSED_TOO_OFTEN:
        return StoreAccessDenied(
            f"{place}: user name or password are wrong or missing ({code}); they come from the URL, from the settings "
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


# Server -------------------------------------------------------------------------------------------


_SCHEMES = {f"{scheme}{tls}" for scheme in ("neo4j", "bolt") for tls in ("", "+s", "+ssc")}
_SYSTEM = "system"
_OLDEST = (5, 26)
_PAUSE = 0.25
_CONNECTED_FOR = 200.0  # load balancers drop connections that are idle for four minutes or more, some without a word
RETRIED_FOR = 30.0
"""Seconds for which a call is repeated that the server asks to repeat."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A database on a server, and the login to it.

    Attributes
    ----------
    uri
        URI that the driver connects to, without user and password.
    database
        Name of the database; None for the default database of the user.
    login
        User name and password; None for no authentication.
    """

    uri: str
    database: str | None
    login: tuple[str, str] | None = field(repr=False)

    @property
    def name(self) -> str:
        """The name used in messages."""
        return self.uri if self.database is None else f"{self.uri}/{self.database}"


def parse_url(
    url: str, username: str | None = None, password: str | None = None, environment: Mapping[str, str] | None = None
) -> ServerAddress:
    """Parse a store URL; a missing login comes from the arguments, then from the environment.

    Raises
    ------
    InvalidInput
        If the URL names no server, or a database without a graph.
    """
    expected = "expected neo4j://[user[:password]@]host[:port][/database], or bolt://, with +s or +ssc for TLS"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"store URL: {expected}") from None  # not shown: it may contain a password
    database = unquote(parts.path.strip("/")) or None
    if parts.scheme not in _SCHEMES or not host or (database is not None and "/" in database):
        raise InvalidInput(f"store URL of scheme {parts.scheme!r}: {expected}")
    if database is not None and database.lower() == _SYSTEM:
        raise InvalidInput(
            f"store URL: the database {_SYSTEM!r} has Neo4j's users and databases, and no graph; name another one, or "
            "none for the default database of the user"
        )
    address = f"[{host}]" if ":" in host else host
    query = f"?{parts.query}" if parts.query else ""
    uri = f"{parts.scheme}://{address}:{port or 7687}{query}"
    login = _login(parts, username, password, os.environ if environment is None else environment)
    return ServerAddress(uri, database, login)


def _login(
    parts: SplitResult, username: str | None, password: str | None, environment: Mapping[str, str]
) -> tuple[str, str] | None:
    user = unquote(parts.username) if parts.username else username
    secret = unquote(parts.password) if parts.password is not None else password
    if user is None:
        user = environment.get("NEO4J_USERNAME") or None
    if secret is None:
        secret = environment.get("NEO4J_PASSWORD") or None
    if user is None and secret is None:
        return None
    return user or "neo4j", secret or ""


def connect(address: ServerAddress, wait: float) -> Driver:
    """Return a driver whose server has answered.

    Parameters
    ----------
    address
        The database.
    wait
        Seconds to wait for a server that doesn't answer: it may be starting.

    Raises
    ------
    BackendUnavailable
        If the server doesn't answer, the login or the database is wrong, or the server is older than 5.26.
    """
    with translated(address.name):
        driver = GraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType]  options of any type
            address.uri,
            auth=address.login,
            user_agent="graphmem",
            connection_timeout=max(1.0, min(wait, 15.0)),
            max_connection_lifetime=_CONNECTED_FOR,
            connection_acquisition_timeout=RETRIED_FOR,  # a frozen server accepts connections but never answers
            max_transaction_retry_time=RETRIED_FOR,
            notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
            telemetry_disabled=True,
        )
    try:
        require_new_enough(_first_answer(driver, address, wait), address.name)
    except BaseException:
        driver.close()
        raise
    return driver


def _first_answer(driver: Driver, address: ServerAddress, wait: float) -> str:
    """Return the agent string of the server, waiting until it answers."""
    deadline = time.monotonic() + wait
    logged = False
    while True:
        try:
            with _quiet_pool(), driver.session(database=address.database) as session:  # pyright: ignore[reportUnknownMemberType]
                return session.run("RETURN 1").consume().server.agent
        except (ServiceUnavailable, SessionExpired, TransientError) as error:
            if isinstance(_innermost(error), SSLCertVerificationError):
                raise BackendUnavailable(
                    f"{address.name}: the server's certificate isn't trusted ({reason_of(error)}); have it signed, or "
                    "take any with +ssc in place of +s in the URL"
                ) from error
            if time.monotonic() >= deadline:
                raise BackendUnavailable(
                    f"{address.name}: {_state(error)} after {wait:g} s ({reason_of(error)}); {_remedy(error)}"
                ) from error
            if not logged:
                _log.warning("%s: %s yet (%s); waiting up to %g s", address.name, _state(error), reason_of(error), wait)
                logged = True
            time.sleep(_PAUSE)
        except (Neo4jError, DriverError) as error:
            raise translate(error, address.name) from error


@contextmanager
def _quiet_pool() -> Generator[None, None, None]:
    """Keep the driver from logging each failed attempt: `_first_answer` logs once that it waits."""
    pool = logging.getLogger("neo4j.pool")

    def drop(record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING

    pool.addFilter(drop)
    try:
        yield
    finally:
        pool.removeFilter(drop)


def _state(error: Exception) -> str:
    return "the server is reachable, its database isn't" if isinstance(error, TransientError) else "no connection"


def _remedy(error: Exception) -> str:
    if isinstance(_innermost(error), SSLError):
        return "where the server has no TLS, take the URL without +s or +ssc"
    if "looks like HTTP" in reason_of(error):
        return "this is the port of its web pages; that of Bolt is 7687, unless it was set to another one"
    return (
        "check that the server runs, and the address; if it takes longer to start, raise the setting store_wait "
        "(GRAPHMEM_STORE_WAIT)"
    )


def _innermost(error: BaseException) -> BaseException:
    """Return the first cause of an error: the driver wraps it by address, and addresses into groups."""
    while True:
        grouped: Sequence[BaseException] = getattr(error, "exceptions", ())
        inner = grouped[0] if grouped else error.__cause__ or error.__context__
        if inner is None:
            return error
        error = inner


def reason_of(error: Exception) -> str:
    """Return the reason of an error of the driver in one line."""
    if isinstance(error, Neo4jError):
        return error.message or str(error.code)
    inner = _innermost(error)
    text = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner)
    return text.partition("\n")[0]


def require_new_enough(agent: str, place: str) -> None:
    """Raise for servers before 5.26; calendar versions like 2025.01 are newer than all of those.

    Parameters
    ----------
    agent
        Agent string of the server.
    place
        Name of the store in messages.
    """
    match = re.match(r"Neo4j/(\d+)\.(\d+)", agent)
    if match is not None and (int(match[1]), int(match[2])) < _OLDEST:
        raise BackendUnavailable(f"{place}: the server is {agent}, graphmem needs Neo4j 5.26 or later")


# Schema -------------------------------------------------------------------------------------------


_DONE_BY_ANOTHER = (
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
    "Neo.ClientError.Schema.IndexAlreadyExists",
    "Neo.ClientError.Schema.ConstraintAlreadyExists",
)
_RECORDED_WITHIN = 5
_TRIES = 24
OUR_NAMES = "graphmem_"
"""Beginning of the names of the indexes and constraints of graphmem."""
_POPULATED_WITHIN = 300
_METADATA_ENTRIES = 16  # the last migration that changes their form
_EPISODES_AT_ONCE = 5000
_IN_PARTS = "IN TRANSACTIONS"
"""Words in a statement that makes its own transactions."""


def schema_number(session: Session) -> int:
    """Return the number of the last migration that a database has; 0 is none."""
    return session.execute_read(_read_number)


def _read_number(transaction: ManagedTransaction) -> int:
    record = transaction.run(query("schema_number")).single(strict=True)
    return record[0] or 0


def migrate(open_session: Callable[[], Session], place: str, *, upgrade: bool = True) -> bool:
    """Bring a database to the newest schema and wait until its indexes serve; return whether it still has to be.

    Without `upgrade`, only read the number of its schema.

    Raises
    ------
    SchemaTooNew
        If a newer program wrote it; nothing is touched.
    BackendUnavailable
        If an index could not be built.
    """
    with open_session() as session:
        number, newest = schema_number(session), max(migrations())
        if number > newest:
            raise SchemaTooNew(
                f"{place}: has schema {number}, this graphmem knows up to {newest}; "
                "upgrade with pip install -U graphmem"
            )
        if not upgrade:
            return number < newest
        for step, (name, statements) in migrations().items():
            if step > number:
                for statement in statements:
                    if number or _IN_PARTS not in statement:  # a new database has no rows to convert
                        _apply(session, statement)
                if number and step == _METADATA_ENTRIES:
                    _enter_metadata(session)
                _record(session, step, name)
        _await_indexes(session, place)
        return False


def _apply(session: Session, statement: Query | str) -> None:
    def work(transaction: ManagedTransaction) -> None:
        transaction.run(statement).consume()  # type: ignore[arg-type]

    with unless_done_by_another():
        if _IN_PARTS in str(statement):
            _apply_in_parts(session, str(statement))
        else:
            session.execute_write(work)


def _apply_in_parts(session: Session, statement: str) -> None:
    """Run a statement with new tries after time limits, each twice as long; what was done in parts stays.

    While it is planned, it and a schema statement of another program can wait for each other's locks, which the server
    doesn't detect.
    """
    limits = (_RECORDED_WITHIN * 2.0**n for n in count())
    _within(limits, lambda seconds: session.run(Query(statement, timeout=seconds)).consume())  # type: ignore[arg-type]


@contextmanager
def unless_done_by_another() -> Generator[None]:
    """Pass over the refusal of an index or a constraint that somebody else has made at the same moment."""
    try:
        yield
    except ClientError as error:
        if error.code not in _DONE_BY_ANOTHER:
            raise


def _enter_metadata(session: Session) -> None:
    """Set the `metadata_entries` that an earlier version stored otherwise or not, in transactions of some thousand."""
    after = ""
    while page := [record[0] for record in session.run(query("episodes_with_metadata"), q=_page_after(after))]:
        entries = [metadata_entries(split_attachments(json.loads(stored))[0]) for _, stored, _ in page]
        changed = [[row[0], new] for row, new in zip(page, entries, strict=True) if new != row[2]]
        session.execute_write(_set_entries, changed)
        after = page[-1][0]


def _page_after(after: str) -> dict[str, object]:
    return {"after": after, "limit": _EPISODES_AT_ONCE}


def _set_entries(transaction: ManagedTransaction, rows: Sequence[Sequence[object]]) -> None:
    transaction.run(query("set_metadata_entries"), q={"rows": rows}).consume()


def _record(session: Session, number: int, name: str) -> None:
    """Note that a migration was done, with new tries after short time limits.

    A schema statement of another program and this statement can wait for each other's locks, which the server doesn't
    detect: whoever records gives way.
    """

    @unit_of_work(timeout=_RECORDED_WITHIN)
    def work(transaction: ManagedTransaction) -> None:
        transaction.run(query("record_migration"), q={"number": number, "name": name}).consume()

    _within(repeat(_RECORDED_WITHIN, _TRIES), lambda _: session.execute_write(work))


def _within(limits: Iterable[float], attempt: Callable[[float], object]) -> None:
    """Call with one time limit, in seconds, after the other until it is kept; raise the error of the last one."""
    past: ClientError | None = None
    for seconds in limits:
        try:
            attempt(seconds)
        except ClientError as error:
            if error.code not in (PAST_CLIENT_LIMIT, PAST_SERVER_LIMIT):
                raise
            past = error
        else:
            return
    if past is not None:
        raise past


def _await_indexes(session: Session, place: str) -> None:
    for name, state, *_ in [record[0] for record in session.run(query("indexes"))]:
        if not name.startswith(OUR_NAMES):
            continue
        if state == "POPULATING":
            session.run(query("await_index"), q={"name": name, "seconds": _POPULATED_WITHIN}).consume()
        elif state == "FAILED":
            raise BackendUnavailable(f"{place}: the index {name} could not be built; drop it and open the store again")
