"""Neo4j Browser: where it is for a database, and the queries and the style that it can import."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from functools import cached_property
from urllib.parse import quote, urlsplit

from graphmem.errors import BackendUnavailable
from graphmem.models import Scope
from graphmem.protocols import Explorer
from graphmem_cypher import saved, style
from graphmem_neo4j.connection import Database

_PORTS = {"http": 7474, "https": 7473}
_DEFAULT_SCOPE = "'default'"
_MADE = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold: equal queries give equal files


class Neo4jBrowser(Explorer):
    """Neo4j Browser, as the server of a database serves it.

    Parameters
    ----------
    database
        The database to look at.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def name(self) -> str:
        """What people call it."""
        return "Neo4j Browser"

    @property
    def url(self) -> str:
        """Where it is opened on the database: the page asks for the password."""
        place = self._database.place
        protocol, port = self._page
        return f"{protocol}://{_host(place.uri)}:{port}/browser/?{self._query}"

    @property
    def hints(self) -> tuple[str, ...]:
        """What to know for opening it."""
        protocol, port = self._page
        scheme = urlsplit(self._database.place.uri).scheme
        hints: list[str] = []
        if port == _PORTS[protocol]:
            hints.append(f"Where the server runs in a container, its page may be on another port than {port}.")
        if scheme.endswith("+s"):
            hints.append(f"For a server that has no page of its own: https://browser.neo4j.io/?{self._query}")
        if scheme.endswith("+ssc"):
            hints.append("Your web browser has to trust the server's certificate: open the server's https page once.")
        return tuple(hints)

    @property
    def import_hints(self) -> tuple[str, ...]:
        """How it imports the files."""
        return (
            "Drop style.grass on the page, then graphmem.zip: it takes one file at a time.",
            "The queries are in the folder graphmem of its favourites (the star); edit and run '00 Parameters' first.",
        )

    def files(self, scope: Scope) -> Mapping[str, bytes]:
        """Return the queries, one by one and all in a zip, with the scope as their parameter, and the style."""
        queries = {
            f"{name}.cypher": text.replace(_DEFAULT_SCOPE, f"'{scope.key}'").encode() for name, text in saved().items()
        }
        return {
            "graphmem.zip": _zipped(queries),
            "style.grass": style().encode(),
            **{f"queries/{name}": text for name, text in queries.items()},
        }

    @cached_property
    def _page(self) -> tuple[str, int]:
        """Protocol and port of the page."""
        place = self._database.place
        try:
            told = dict(self._database.read("web_addresses"))
        except BackendUnavailable:  # this user may not read settings
            protocol = "https" if "+" in urlsplit(place.uri).scheme else "http"
            return protocol, _PORTS[protocol]
        protocol = "https" if told.get("server.https.enabled") == "true" else "http"
        port = urlsplit(f"//{told.get(f'server.{protocol}.advertised_address', '')}").port
        return protocol, port or _PORTS[protocol]

    @property
    def _query(self) -> str:
        place = self._database.place
        scheme, _, address = place.uri.partition("://")
        user = f"{quote(place.login[0], safe='')}@" if place.login else ""
        # a page knows no +ssc: which certificates are good is the web browser's to say
        server = f"{scheme.replace('+ssc', '+s')}://{user}{address.partition('?')[0]}"
        database = f"&db={quote(place.database, safe='')}" if place.database else ""
        return f"connectURL={quote(server, safe=':/@')}{database}"


def _host(uri: str) -> str:
    host = urlsplit(uri).hostname or ""
    return f"[{host}]" if ":" in host else host


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive in which the files lie in a folder: Browser makes it one of the favourites."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(zipfile.ZipInfo(f"graphmem/{name}", _MADE), content)
    return archive.getvalue()
