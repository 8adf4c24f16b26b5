"""Clients of the MCP server: the official one, connected in this process, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from graphmem.adapters.mcp import MemoryServer

SUITE_SERVER = (str(Path(__file__).with_name("suite_server.py")),)
"""A program with the tools of the official conformance suite beside ours."""

ERAS = ["legacy", "auto"]
"""Modes of the client: the handshake of older specifications, and the stateless protocol, which it finds by asking."""


def text_of(result: CallToolResult) -> str:
    """Return the text of a result."""
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def data_of(result: CallToolResult) -> dict[str, Any]:
    """Return the structured content of a result that is no error."""
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    return result.structured_content


def run(server: MemoryServer, era: str, work: Callable[[Client], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run work with a client that is connected in this process."""

    async def connected() -> None:
        async with Client(server, mode=era, **options) as client:
            await work(client)

    asyncio.run(connected())


@asynccontextmanager
async def over_stdio(folder: Path, era: str, *options: str) -> AsyncGenerator[Client]:
    """Start `graphmem mcp` with a store in a folder and connect a client to it."""
    arguments = ["-m", "graphmem", "mcp", "--store", f"sqlite:///{folder}/memory.db", *options]
    variables = {"GRAPHMEM_EMBEDDINGS": "none", "GRAPHMEM_EXTRACTOR": "none"}
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=folder, env=variables)
    async with Client(server, mode=era) as client:
        yield client


class Served:
    """A process of `graphmem mcp --http`."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url

    @asynccontextmanager
    async def client(self, era: str, token: str | None = None, **options: Any) -> AsyncGenerator[Client]:
        """Connect a client that sends a token."""
        async with httpx2.AsyncClient(headers=_bearer(token), timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=era, **options) as client:
                yield client

    def post(self, body: bytes | dict[str, Any], token: str | None = None, **headers: str) -> httpx2.Response:
        """Post a request as it is, without the client."""
        accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.post(self.url, content=content, headers={**accepted, **_bearer(token), **headers}, timeout=60)


def _bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@contextmanager
def served(
    folder: Path, *options: str, host: str = "127.0.0.1", program: Sequence[str] = ("-m", "graphmem")
) -> Generator[Served]:
    """Run `graphmem mcp --http`, or another program in its place, with a store in a folder until the block ends."""
    with closing(socket.socket()) as free:
        free.bind((host, 0))
        port = free.getsockname()[1]
    arguments = [*program, "mcp", "--store", f"sqlite:///{folder}/memory.db", "--http", f"{host}:{port}"]
    variables = {**os.environ, "GRAPHMEM_EMBEDDINGS": "none", "GRAPHMEM_EXTRACTOR": "none"}
    process = subprocess.Popen([sys.executable, *arguments, *options], cwd=folder, env=variables)
    try:
        until = time.monotonic() + 60
        while socket.socket().connect_ex((host, port)):
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server doesn't listen"
            time.sleep(0.05)
        yield Served(process, f"http://{host}:{port}/mcp")
    finally:
        process.terminate()
        process.wait(30)
