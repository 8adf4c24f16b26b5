"""The configuration files in docs/how-to/mcp.md: they have the form that each client reads, and start a server."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.e2e.shell import GRAPHMEM
from tests.integration.mcp.clients import data_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "mcp.md").read_text("utf-8")
FILES = {
    name: json.loads(body)
    for name, body in re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```json\n(.*?)^```$", PAGE, re.M | re.S)
}
PLAIN = {"GRAPHMEM_EXTRACTOR": "none", "GRAPHMEM_EMBEDDINGS": "none"}
CLIENTS = {"Claude Desktop": "mcpServers", "Claude Code": "mcpServers", "Cursor": "mcpServers", "VS Code": "servers"}


def test_each_client_has_a_file() -> None:
    assert FILES.keys() == CLIENTS.keys()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_file_has_the_fields_that_the_client_reads(name: str) -> None:
    assert list(FILES[name]) == [CLIENTS[name]]
    [(server, entry)] = FILES[name][CLIENTS[name]].items()
    assert server == "graphmem"
    assert entry.keys() <= {"type", "command", "args", "env"}
    assert entry.get("type", "stdio") == "stdio"
    assert isinstance(entry["command"], str)
    assert all(isinstance(each, str) for each in entry["args"])


def remembers(server: StdioServerParameters) -> None:
    """Check that a server stores what its user says, and finds it."""

    async def work() -> None:
        async with Client(server) as client:
            data_of(await client.call_tool("memory_remember", {"text": "I like tea."}))
            found = data_of(await client.call_tool("memory_search", {"query": "Who likes tea?"}))
            assert found["episodes"][0]["speaker"] == "Maya"

    asyncio.run(work())


@pytest.mark.full(name="Claude Code")
@pytest.mark.full(name="Cursor")
@pytest.mark.full(name="VS Code")
@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_the_command_of_a_file_serves_a_memory(name: str, tmp_path: Path) -> None:
    entry: dict[str, Any] = FILES[name][CLIENTS[name]]["graphmem"]
    url = f"sqlite:///{tmp_path}/memory.db"
    arguments = [url if each.startswith("sqlite:") else each for each in entry["args"]]
    assert url in arguments
    remembers(StdioServerParameters(command=GRAPHMEM, args=arguments, env=PLAIN, cwd=tmp_path))


@pytest.mark.slow
def test_the_command_that_claude_code_adds_serves_a_memory(tmp_path: Path) -> None:
    added = re.findall(r"^\$ claude mcp add .*? -- (.+)$", PAGE + (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert len(added) == 2
    assert added[0] == added[1]
    variables = PLAIN | {"HOME": str(tmp_path), "PATH": f"{Path(GRAPHMEM).parent}:{os.environ['PATH']}"}
    remembers(StdioServerParameters(command="sh", args=["-c", f"exec {added[0]}"], env=variables, cwd=tmp_path))
    assert (tmp_path / "graphmem.db").is_file()
