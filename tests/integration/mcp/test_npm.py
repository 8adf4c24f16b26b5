"""The official conformance suite and the command line of the inspector against the MCP server (npm, pinned)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem.adapters.mcp.erasure import AllTools
from tests.integration.mcp.clients import Served, served
from tests.integration.mcp.npm import npm

pytestmark = pytest.mark.slow

NODE = "node@22"  # both need a newer Node.js than distributions have
SUITE = "@modelcontextprotocol/conformance@0.1.16"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"

PASSED = [
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
]
"""Scenarios of the suite that hold for any server."""

FIXTURE = "calls a tool, resource or prompt of the suite's own example server"
NOT_APPLICABLE = {
    "logging-set-level": "logging is deprecated since 2026-07-28, and the server doesn't offer it",
    "resources-subscribe": "the server keeps no state between calls, and offers no subscriptions of the old protocol",
    "resources-unsubscribe": "as resources-subscribe",
    **dict.fromkeys(
        (
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-with-progress",
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ),
        FIXTURE,
    ),
}


def npx(folder: Path, package: str, *command: str) -> str:
    """Run a command of an npm package and return its output."""
    return npm(folder, "npx", "-y", "-p", NODE, "-p", package, *command)


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("npm"), "--profile", "full") as server:
        yield server


def test_the_official_suite_passes_where_it_applies(replica: Served, tmp_path: Path) -> None:
    out = npx(tmp_path, SUITE, "conformance", "server", "--url", replica.url)
    results = dict(re.findall(r"^[✓✗] ([\w-]+): \d+ passed, (\d+) failed$", out, re.MULTILINE))
    assert sorted(results) == sorted([*PASSED, *NOT_APPLICABLE]), out[-2000:]
    assert {name for name, failed in results.items() if failed != "0"} == NOT_APPLICABLE.keys()


def test_the_inspector_lists_the_tools(replica: Served, tmp_path: Path) -> None:
    asked = ("mcp-inspector", "--cli", replica.url, "--transport", "http", "--method", "tools/list")
    listed = json.loads(npx(tmp_path, INSPECTOR, *asked))
    assert sorted(each["name"] for each in listed["tools"]) == [
        name for name in dir(AllTools) if name.startswith("memory_")
    ]
