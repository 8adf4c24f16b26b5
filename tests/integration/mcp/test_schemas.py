"""The configuration files in docs/how-to/mcp.md against what the clients publish about them (npm, pinned).

VS Code publishes the schema of its file. Claude Desktop publishes the schema of bundles, whose `mcp_config` replaces an
entry of its file. Claude Code and Cursor publish no schema of an entry, but its type in TypeScript, in their SDKs.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.integration.mcp.npm import unpack
from tests.integration.mcp.test_page import CLIENTS, FILES

pytestmark = pytest.mark.slow

VS_CODE = "@codingame/monaco-vscode-api@37.6.1"  # a build of microsoft/vscode
VS_CODE_MODULE = "vscode/src/vs/workbench/contrib/mcp/common/mcpConfiguration.js"
BUNDLES = "@anthropic-ai/mcpb@2.1.2"
CLAUDE_CODE = "@anthropic-ai/claude-agent-sdk@0.3.332"
CURSOR = "@cursor/sdk@1.0.32"
TYPESCRIPT = "typescript@5.9.3"

BROKEN: dict[str, dict[str, Any]] = {
    "the command is a number": {"command": 7},
    "the arguments are one text": {"args": "mcp --user Maya"},
    "an argument is a number": {"args": ["mcp", 7]},
    "a field that doesn't exist": {"arguments": ["mcp"]},
}

Packages = Callable[[str], Path]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return cache(partial(unpack, tmp_path_factory.mktemp("npm")))


def follows(schema: dict[str, Any], document: dict[str, Any]) -> bool:
    """Return whether a document follows a JSON schema, which has to be one itself."""
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema).is_valid(document)  # pyright: ignore[reportUnknownMemberType]


def vs_code_accepts(file: dict[str, Any], packages: Packages, folder: Path) -> bool:
    """Return whether a file follows the schema that VS Code's editor has for it."""
    print_schema = "import(process.argv[1]).then(found => console.log(JSON.stringify(found.mcpServerSchema)))"
    command = ["node", "-e", print_schema, (packages(VS_CODE) / VS_CODE_MODULE).as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return follows(json.loads(done.stdout), file)


def claude_desktop_accepts(file: dict[str, Any], packages: Packages, folder: Path) -> bool:
    """Return whether a bundle of Claude Desktop may have the entry of a file as its `mcp_config`."""
    schema = json.loads((packages(BUNDLES) / "schemas" / "mcpb-manifest-v0.4.schema.json").read_text("utf-8"))
    server = {"type": "python", "entry_point": "server.py", "mcp_config": file["mcpServers"]["graphmem"]}
    names = {"name": "graphmem", "version": "1.0.0", "description": "Memory", "author": {"name": "graphmem"}}
    return follows(schema, {"manifest_version": "0.4", **names, "server": server})


def sdk_accepts(package: str, module: str, entry: str, file: dict[str, Any], packages: Packages, folder: Path) -> bool:
    """Return whether the entries of a file have the type that an SDK exports for them."""
    source = folder / "servers.ts"
    source.write_text(
        f'import type {{ {entry} }} from "{(packages(package) / module).as_posix()}";\n'
        f"export const servers: Record<string, {entry}> = {json.dumps(file['mcpServers'])};\n",
        "utf-8",
    )
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"]
    command = ["node", str(packages(TYPESCRIPT) / "bin" / "tsc"), *options, str(source)]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False).returncode == 0


ACCEPTS: dict[str, Callable[[dict[str, Any], Packages, Path], bool]] = {
    "Claude Desktop": claude_desktop_accepts,
    "Claude Code": partial(sdk_accepts, CLAUDE_CODE, "sdk.js", "McpStdioServerConfig"),
    "Cursor": partial(sdk_accepts, CURSOR, "dist/esm/index.js", "McpServerConfig"),
    "VS Code": vs_code_accepts,
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_accepts_its_file(name: str, packages: Packages, tmp_path: Path) -> None:
    assert ACCEPTS[name](FILES[name], packages, tmp_path)


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_refuses_a_broken_file(name: str, change: dict[str, Any], packages: Packages, tmp_path: Path) -> None:
    root = CLIENTS[name]
    assert not ACCEPTS[name]({root: {"graphmem": FILES[name][root]["graphmem"] | change}}, packages, tmp_path)


def test_vs_code_refuses_the_file_of_another_client(packages: Packages, tmp_path: Path) -> None:
    assert not ACCEPTS["VS Code"](FILES["Claude Code"], packages, tmp_path)
