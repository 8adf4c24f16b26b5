"""A server of its own for what the shared one can't be: without GDS, with TLS, killed and started, read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.neo4j_server import Neo4jServer, NoServer
from tests.shared_servers import unavailable

TLS = {
    "NEO4J_dbms_ssl_policy_bolt_enabled": "true",
    "NEO4J_dbms_ssl_policy_bolt_base__directory": "/tls",
    "NEO4J_dbms_ssl_policy_bolt_private__key": "private.key",
    "NEO4J_dbms_ssl_policy_bolt_public__certificate": "public.crt",
    "NEO4J_dbms_ssl_policy_bolt_client__auth": "NONE",
    "NEO4J_server_bolt_tls__level": "OPTIONAL",
}


@pytest.fixture(scope="session")
def plain_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Neo4jServer, None, None]:
    """Yield a server without GDS, with a certificate that nobody signed."""
    try:
        server = Neo4jServer(TLS, gds=False, files=_certificate(tmp_path_factory.mktemp("tls")))
    except NoServer as error:
        unavailable(error)
        return
    yield server.start()
    server.remove()


def _certificate(folder: Path) -> dict[str, bytes]:
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout private.key -out public.crt"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True, timeout=60)
    return {f"/tls/{name}": (folder / name).read_bytes() for name in ("private.key", "public.crt")}
