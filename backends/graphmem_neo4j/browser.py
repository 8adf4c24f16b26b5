"""Neo4j Browser: its URL for a database, and the queries and the style that it can import."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from urllib.parse import quote, urlsplit

from graphmem.errors import BackendUnavailable
from graphmem.models import Scope
from graphmem.protocols import Explorer
from graphmem_cypher import saved, schema, style
from graphmem_neo4j.connection import Database
from graphmem_neo4j.server import ServerAddress

_PORTS = {"http": 7474, "https": 7473}
_DEFAULT_SCOPE = "'default'"
_RELATIONS = 150  # in the description for a language model, which has to read them
_MADE = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip; a constant, so that equal queries give equal files


class Neo4jBrowser(Explorer):
    """Neo4j Browser, as the server of a database serves it.

    Parameters
    ----------
    database
        The database to open in it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def name(self) -> str:
        """The name shown to people."""
        return "Neo4j Browser"

    @property
    def url(self) -> str:
        """The URL that opens the database; the page asks for the password."""
        return browser_url(self._database.address, self._server_settings)

    @property
    def hints(self) -> tuple[str, ...]:
        """Hints for opening it."""
        server = self._database.address
        protocol, port = _page_of(server, self._server_settings)
        hints: list[str] = []
        if port == _PORTS[protocol]:
            hints.append(f"Where the server runs in a container, its page may be on another port than {port}.")
        if _scheme(server).endswith("+s"):
            hints.append(f"For a server that has no page of its own: https://browser.neo4j.io/?{_query_of(server)}")
        if _scheme(server).endswith("+ssc"):
            hints.append("Your web browser has to trust the server's certificate: open the server's https page once.")
        return tuple(hints)

    @property
    def import_hints(self) -> tuple[str, ...]:
        """Hints for importing the files."""
        return (
            "Drop style.grass on the page, then graphmem.zip: it takes one file at a time.",
            "The queries are in the folder graphmem of its favorites (the star); edit and run '00 Parameters' first.",
        )

    def files(self, scope: Scope) -> Mapping[str, bytes]:
        """Return the queries, one by one and all in a zip, with the scope as their parameter, the style and the schema.

        The schema is a text for a language model that writes Cypher, with the relations of the scope.
        """
        queries = {
            f"{name}.cypher": text.replace(_DEFAULT_SCOPE, f"'{scope.key}'").encode() for name, text in saved().items()
        }
        return {
            "graphmem.zip": _zipped(queries),
            "style.grass": style().encode(),
            "schema.txt": self._schema(scope).encode(),
            **{f"queries/{name}": text for name, text in queries.items()},
        }

    def _schema(self, scope: Scope) -> str:
        now = datetime.now(UTC)
        found = self._database.read("relations", [scope], scope=scope.key, now=now, limit=_RELATIONS)
        lines = [
            f"{relation} ({', '.join(sources)} -> {', '.join(targets)}): {current} now, {ended} ended"
            for relation, sources, targets, current, ended in found
        ]
        described = schema().replace(_DEFAULT_SCOPE, f"'{scope.key}'")
        return "\n".join(
            [described, "Relations of this scope, with the types of their ends and the number of facts", "", *lines, ""]
        )

    @cached_property
    def _server_settings(self) -> Mapping[str, str]:
        """Settings of the server about its pages; none if this user may not read them."""
        try:
            return dict(self._database.read("web_addresses"))
        except BackendUnavailable:
            return {}


def browser_url(server: ServerAddress, settings: Mapping[str, str]) -> str:
    """Return the URL that opens Browser on a database.

    Parameters
    ----------
    server
        The database.
    settings
        Settings of the server that begin with ``server.http``, as far as known.
    """
    protocol, port = _page_of(server, settings)
    host = urlsplit(server.uri).hostname or ""
    return f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}/browser/?{_query_of(server)}"


def _page_of(server: ServerAddress, settings: Mapping[str, str]) -> tuple[str, int]:
    """Return protocol and port of the page; the host is that of the URL, because servers seldom know their own."""
    secure = settings.get("server.https.enabled", "true" if "+" in _scheme(server) else "false") == "true"
    protocol = "https" if secure else "http"
    port = urlsplit(f"//{settings.get(f'server.{protocol}.advertised_address', '')}").port
    return protocol, port or _PORTS[protocol]


def _query_of(server: ServerAddress) -> str:
    """Return the query string that tells the page which database to connect to."""
    scheme, _, address = server.uri.partition("://")
    user = f"{quote(server.login[0], safe='')}@" if server.login else ""
    # pages don't support +ssc: the web browser decides which certificates it trusts
    url = f"{scheme.replace('+ssc', '+s')}://{user}{address.partition('?')[0]}"
    database = f"&db={quote(server.database, safe='')}" if server.database else ""
    return f"connectURL={quote(url, safe=':/@')}{database}"


def _scheme(server: ServerAddress) -> str:
    return urlsplit(server.uri).scheme


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive with the files in a folder, which Browser imports as a folder of favorites."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(zipfile.ZipInfo(f"graphmem/{name}", _MADE), content)
    return archive.getvalue()
