"""The store in a Neo4j database: one server for many programs, and a graph to look at in Neo4j Browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphmem.errors import MissingExtra

try:
    import neo4j as _driver
except ImportError as error:
    raise MissingExtra("the neo4j backend", "neo4j") from error

del _driver  # imported for a clear error before a module below fails to load

from graphmem_neo4j.backend import Neo4jBackend  # noqa: E402
from graphmem_neo4j.connection import Database  # noqa: E402
from graphmem_neo4j.server import connect, parse_url  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Neo4jBackend", "open_backend"]


def open_backend(
    url: str,
    *,
    username: str | None = None,
    password: str | None = None,
    wait: float = 10.0,
    timeout: float = 120.0,
    environment: Mapping[str, str] | None = None,
    upgrade: bool = True,
) -> Neo4jBackend:
    """Open a store and migrate its database to the newest schema.

    Parameters
    ----------
    url
        ``neo4j://[user[:password]@]host[:port][/database]``, or ``bolt://`` for one server without routing; both
        with ``+s`` for TLS and ``+ssc`` for TLS with any certificate.
    username, password
        Login if the URL has none; defaults to ``NEO4J_USERNAME`` and ``NEO4J_PASSWORD``.
    wait
        Seconds to wait for a server that doesn't answer yet: it may be starting.
    timeout
        Seconds after which the server cancels a query or a transaction.
    environment
        Environment variables; those of the process by default.
    upgrade
        If False, the schema is left as it is; if it isn't the newest, the backend is for `diagnose` only
        (`needs_upgrade`).

    Raises
    ------
    InvalidInput
        If the URL names no server.
    BackendUnavailable
        If the database can't be opened: the server doesn't answer, user, password or database is wrong, the server is
        too old, a right is missing, or a newer graphmem wrote it (`SchemaTooNew`). Nothing is changed then.
    """
    address = parse_url(url, username, password, environment)
    driver = connect(address, wait)
    try:
        return Neo4jBackend(Database(address, driver, timeout, upgrade=upgrade))
    except BaseException:
        driver.close()
        raise
