"""Clients of the MCP server: the official one, connected in this process, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from graphmem.adapters.mcp import MemoryServer

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
