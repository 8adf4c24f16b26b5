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
from graphmem_neo4j.place import Place

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
        return address_of(self._database.place, self._told)

    @property
    def hints(self) -> tuple[str, ...]:
        """What to know for opening it."""
        place = self._database.place
        protocol, port = _page_of(place, self._told)
        hints: list[str] = []
        if port == _PORTS[protocol]:
            hints.append(f"Where the server runs in a container, its page may be on another port than {port}.")
        if _scheme(place).endswith("+s"):
            hints.append(f"For a server that has no page of its own: https://browser.neo4j.io/?{_query_of(place)}")
        if _scheme(place).endswith("+ssc"):
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
    def _told(self) -> Mapping[str, str]:
        """Settings of the server about its pages; none where this user may not read them."""
        try:
            return dict(self._database.read("web_addresses"))
        except BackendUnavailable:
            return {}


def address_of(place: Place, settings: Mapping[str, str]) -> str:
    """Return where Browser is opened on a database.

    Parameters
    ----------
    place
        The database.
    settings
        Those of the server that begin with ``server.http``, as far as they are known.
    """
    protocol, port = _page_of(place, settings)
    host = urlsplit(place.uri).hostname or ""
    return f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}/browser/?{_query_of(place)}"


def _page_of(place: Place, settings: Mapping[str, str]) -> tuple[str, int]:
    """Return protocol and port of the page; the host is that of the URL, for servers seldom know their own."""
    secure = settings.get("server.https.enabled", "true" if "+" in _scheme(place) else "false") == "true"
    protocol = "https" if secure else "http"
    port = urlsplit(f"//{settings.get(f'server.{protocol}.advertised_address', '')}").port
    return protocol, port or _PORTS[protocol]


def _query_of(place: Place) -> str:
    """Return the part of the address that tells the page what to connect to."""
    scheme, _, address = place.uri.partition("://")
    user = f"{quote(place.login[0], safe='')}@" if place.login else ""
    # a page knows no +ssc: which certificates are good is the web browser's to say
    server = f"{scheme.replace('+ssc', '+s')}://{user}{address.partition('?')[0]}"
    database = f"&db={quote(place.database, safe='')}" if place.database else ""
    return f"connectURL={quote(server, safe=':/@')}{database}"


def _scheme(place: Place) -> str:
    return urlsplit(place.uri).scheme


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive in which the files lie in a folder: Browser makes it one of the favourites."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(zipfile.ZipInfo(f"graphmem/{name}", _MADE), content)
    return archive.getvalue()
