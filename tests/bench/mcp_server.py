"""Time and size of the MCP server: `memory_context` against the same call in Python, and beside servers of others.

python -m tests.bench.mcp_server [turns]

Others are npm's server-memory, and engrama, if its program is on the PATH (pip install 'engrama[mcp]==0.18.1').
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from graphmem import GraphMemory
from graphmem.search.context import estimate_tokens

NPM = "@modelcontextprotocol/server-memory@2026.8.31"
ROUNDS = 200
TOPICS = ("garden", "kitchen", "journey", "concert", "budget", "meeting", "report", "holiday")
QUESTIONS = [f"What did Person Number{n} say about the {TOPICS[n % len(TOPICS)]}?" for n in range(ROUNDS)]


async def measured(call: Callable[[str], Awaitable[object]]) -> float:
    """Return the median time of warm calls in milliseconds."""
    for question in QUESTIONS[:5]:
        await call(question)
    times: list[float] = []
    for question in QUESTIONS:
        start = time.perf_counter()
        await call(question)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def turns(number: int) -> list[dict[str, Any]]:
    """Return turns of ten persons about a few topics."""
    return [
        {
            "text": f"I thought about the {TOPICS[n % len(TOPICS)]} again, and note {n} of it is for you.",
            "speaker": f"Person Number{n % 10}",
            "external_id": str(n),
        }
        for n in range(number)
    ]


async def contexts(folder: Path, number: int) -> None:
    """Print the median time of a context in Python and over MCP."""
    url = f"sqlite:///{folder}/memory.db"
    with GraphMemory.open(url, extractor="none", background=False) as memory:
        memory.ingest(turns(number))
        direct = await measured(memory.acontext)
    print(f"context in Python, {number} turns: {direct:.1f} ms")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "graphmem", "mcp", "--store", url],
        env={"GRAPHMEM_EXTRACTOR": "none"},
        cwd=folder,
    )
    for era in ("legacy", "auto"):
        async with Client(server, mode=era) as client:
            over = await measured(lambda question: client.call_tool("memory_context", {"query": question}))
        print(f"memory_context over stdio ({era}): {over:.1f} ms, {over / direct:.2f} times as long")


async def size(name: str, server: StdioServerParameters, calls: list[tuple[str, dict[str, Any]]]) -> None:
    """Print the tools of a server, the tokens of their list, and the time of ten calls after the start and again."""
    async with Client(server) as client:
        listed = await client.list_tools()
        tokens = estimate_tokens(listed.model_dump_json(by_alias=True, exclude_none=True))
        times: list[float] = []
        for _ in range(2):
            start = time.perf_counter()
            for tool, arguments in calls:
                done = await client.call_tool(tool, arguments)
                assert not done.is_error, done
            times.append((time.perf_counter() - start) * 1000)
    first, again = times
    print(f"{name}: {len(listed.tools)} tools, {tokens} tokens, ten calls {first:.0f} ms, again {again:.0f} ms")


async def beside(folder: Path) -> None:
    """Print the same five writes and five reads with this server and those of others that are installed."""
    names = [f"Person Number{n}" for n in range(5)]
    ours: list[tuple[str, dict[str, Any]]] = [
        ("memory_add_facts", {"facts": [{"subject": name, "relation": "works at", "object": "Globex"}]})
        for name in names
    ]
    ours += [("memory_recall", {"query": f"Where does {name} work?"}) for name in names]
    for number, (profile, embeddings) in enumerate((("core", "auto"), ("full", "auto"), ("core", "none"))):
        command = ["-m", "graphmem", "mcp", "--store", f"sqlite:///{folder}/{number}.db", "--profile", profile]
        variables = {"GRAPHMEM_EXTRACTOR": "none", "GRAPHMEM_EMBEDDINGS": embeddings}
        server = StdioServerParameters(command=sys.executable, args=command, env=variables, cwd=folder)
        await size(f"graphmem mcp, {profile}, embeddings {embeddings}", server, ours)

    entities = [{"name": name, "entityType": "person", "observations": [f"{name} works at Globex"]} for name in names]
    npm: list[tuple[str, dict[str, Any]]] = [("create_entities", {"entities": [entity]}) for entity in entities]
    npm += [("search_nodes", {"query": name}) for name in names]
    await other(folder, ["npx", "-y", NPM], {"MEMORY_FILE_PATH": f"{folder}/memory.jsonl"}, npm)

    nodes = [
        {
            "label": "Person",
            "properties": {"name": name, "summary": f"{name} works at Globex"},
            "relations": {"BELONGS_TO": ["Globex"]},
        }
        for name in names
    ]
    engrama: list[tuple[str, dict[str, Any]]] = [("engrama_remember", {"params": node}) for node in nodes]
    engrama += [("engrama_search", {"params": {"query": name}}) for name in names]
    await other(folder, ["engrama-mcp"], {"ENGRAMA_DB_PATH": f"{folder}/engrama.db"}, engrama)


async def other(
    folder: Path, command: list[str], variables: dict[str, str], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    """Print the measurements of another server, if its program is installed."""
    program, *arguments = command
    if shutil.which(program) is None:
        print(f"{command[-1]}: {program} isn't installed")
        return
    await size(command[-1], StdioServerParameters(command=program, args=arguments, env=variables, cwd=folder), calls)


async def main(number: int) -> None:
    """Print all measurements."""
    with tempfile.TemporaryDirectory() as folder:
        await contexts(Path(folder), number)
        await beside(Path(folder))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
