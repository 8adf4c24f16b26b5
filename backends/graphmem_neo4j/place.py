"""Where a store is and who logs in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from graphmem.errors import InvalidInput

_SCHEMES = {f"{scheme}{tls}" for scheme in ("neo4j", "bolt") for tls in ("", "+s", "+ssc")}


@dataclass(frozen=True, slots=True)
class Place:
    """A database on a server.

    Attributes
    ----------
    uri
        What the driver connects to; without user and password.
    database
        Its name; None is the default one of the user.
    login
        User name and password; None logs nobody in.
    """

    uri: str
    database: str | None
    login: tuple[str, str] | None = field(repr=False)

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.uri if self.database is None else f"{self.uri}/{self.database}"


def place_of(
    url: str, username: str | None = None, password: str | None = None, environment: Mapping[str, str] | None = None
) -> Place:
    """Read a URL; what it leaves open comes from the arguments, then from the environment.

    Raises
    ------
    InvalidInput
        If it names no server, or a password but no user.
    """
    expected = "expected neo4j://[user[:password]@]host[:port][/database], or bolt://, with +s or +ssc for TLS"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"store URL: {expected}") from None  # it isn't shown: it may hold a password
    database = unquote(parts.path.strip("/")) or None
    if parts.scheme not in _SCHEMES or not host or (database is not None and "/" in database):
        raise InvalidInput(f"store URL of scheme {parts.scheme!r}: {expected}")
    address = f"[{host}]" if ":" in host else host
    query = f"?{parts.query}" if parts.query else ""
    uri = f"{parts.scheme}://{address}:{port or 7687}{query}"
    return Place(uri, database, _login(parts, username, password, os.environ if environment is None else environment))


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
