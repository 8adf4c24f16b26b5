"""The official conformance suite and the command line of the inspector against the MCP server (npm, pinned)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem.adapters.mcp.full import FullTools
from tests.integration.mcp.clients import SUITE_SERVER, Served, served
from tests.integration.mcp.npm import npm

pytestmark = pytest.mark.slow

NODE = "node@22"  # both need a newer Node.js than distributions have
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"  # the first series that tests the stateless protocol
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"

LOGGING = "logging is deprecated since 2026-07-28, and the server doesn't offer it"
NO_SESSION = "in the old protocol it needs a session, and the server keeps no state between calls"
TASKS = "an extension that the SDK doesn't implement"
NOT_APPLICABLE = {
    "2025-11-25": {
        "logging-set-level": LOGGING,
        "tools-call-with-logging": LOGGING,
        **dict.fromkeys(
            (
                "tools-call-sampling",
                "tools-call-elicitation",
                "elicitation-sep1034-defaults",
                "elicitation-sep1330-enums",
                "resources-subscribe",
                "resources-unsubscribe",
                "server-sse-polling",
            ),
            NO_SESSION,
        ),
    },
    "2026-07-28": dict.fromkeys(
        (
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-dispatch-and-envelope",
            "tasks-required-task-error",
            "tasks-mrtr-composition",
        ),
        TASKS,
    ),
}
"""Scenarios that no server of ours passes, by the revision of the protocol whose requirements the suite tests."""

_BOTH = {
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
}
PLAIN = {
    "2025-11-25": _BOTH
    | {
        "server-initialize",
        "server-session-lifecycle",
        "ping",
    },
    "2026-07-28": _BOTH
    | {
        "sep-2164-resource-not-found",
        "caching",
        "input-required-result-missing-input-response",
        "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params",
        "input-required-result-validate-input",
        "tasks-status-notifications",
        "http-header-validation",
    },
}
"""Scenarios that hold for a server without the tools, resources and prompts of the suite's own example server."""


def npx(folder: Path, package: str, *command: str) -> str:
    """Run a command of an npm package and return its output."""
    return npm(folder, "npx", "-y", "-p", NODE, "-p", package, *command)


def results(folder: Path, server: Served, revision: str) -> dict[str, bool]:
    """Run the official suite, and return whether each scenario passed."""
    out = npx(folder, SUITE, "conformance", "server", "--url", server.url, "--requirements", revision)
    found = re.findall(r"^[✓✗] ([\w-]+): \d+ passed, (\d+) failed$", out, re.MULTILINE)
    assert found, out[-2000:]
    return {name: failed == "0" for name, failed in found}


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("npm"), "--profile", "full") as server:
        yield server


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("npm"), "--profile", "full", program=SUITE_SERVER) as server:
        yield server


@pytest.mark.parametrize("revision", NOT_APPLICABLE)
def test_the_official_suite_passes_where_it_applies(example: Served, tmp_path: Path, revision: str) -> None:
    passed = results(tmp_path, example, revision)
    assert {name for name, ok in passed.items() if not ok} == NOT_APPLICABLE[revision].keys()


@pytest.mark.parametrize("revision", PLAIN)
def test_the_official_suite_passes_without_its_own_tools_where_it_needs_none(
    replica: Served, tmp_path: Path, revision: str
) -> None:
    passed = results(tmp_path, replica, revision)
    assert {name for name, ok in passed.items() if ok} == PLAIN[revision]


def test_the_inspector_lists_the_tools(replica: Served, tmp_path: Path) -> None:
    asked = ("mcp-inspector", "--cli", replica.url, "--transport", "http", "--method", "tools/list")
    listed = json.loads(npx(tmp_path, INSPECTOR, *asked))
    assert sorted(each["name"] for each in listed["tools"]) == [
        name for name in dir(FullTools) if name.startswith("memory_")
    ]
