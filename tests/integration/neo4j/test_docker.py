"""The server of `make neo4j-up`: both ways to start it say the same, and a real server takes every setting."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tests.neo4j_server import Neo4jServer, run

DOCKER = Path(__file__).parents[3] / "docker"
SCRIPT, COMPOSE = DOCKER / "neo4j-up", DOCKER / "compose.yaml"
SETTINGS_OF_IMAGE = {"NEO4J_AUTH", "NEO4J_PLUGINS"}


def settings_of_compose() -> dict[str, str]:
    """Return the server's settings with the defaults of their variables put in."""
    found = re.findall(r"^ +(NEO4J_\w+): (.+)$", COMPOSE.read_text("utf-8"), re.M)
    return {name: re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value.strip("\"'")) for name, value in found}


def settings_of_script() -> dict[str, str]:
    """Return the same of what the script gives to ``docker run``."""
    command = shlex.split(SCRIPT.read_text("utf-8").partition("docker run ")[2].partition('"$NEO4J_IMAGE"')[0])
    given = (word.partition("=") for option, word in pairwise(command) if option == "--env")
    return {name: re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value) for name, _, value in given}


def test_compose_and_docker_run_start_the_same_server() -> None:
    compose, script = settings_of_compose(), settings_of_script()
    assert compose.keys() == script.keys()
    assert len(compose) == 8
    assert {n: v for n, v in compose.items() if n != "NEO4J_AUTH"} == {
        n: v for n, v in script.items() if n != "NEO4J_AUTH"
    }


def test_ports_are_open_on_this_machine_only() -> None:
    ports = re.findall(r'^ +- "(.*:\d+)"$', COMPOSE.read_text("utf-8"), re.M)
    ports += re.findall(r'--publish "(\S+)"', SCRIPT.read_text("utf-8"))
    assert len(ports) == 6
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_the_script_is_a_shell_script_without_errors() -> None:
    subprocess.run(["sh", "-n", str(SCRIPT)], check=True, timeout=30)


def test_a_server_takes_all_settings_and_has_their_values(start_neo4j: Callable[..., Neo4jServer]) -> None:
    given = {name: value for name, value in settings_of_compose().items() if name not in SETTINGS_OF_IMAGE}
    server = start_neo4j(given)  # one that knows a setting not, doesn't start

    shown = {row["name"]: row["value"] for row in run(server.url, "SHOW SETTINGS YIELD name, value")}
    assert shown["db.transaction.timeout"] == "10m"
    assert shown["server.memory.heap.max_size"] == "1.00GiB"
    assert shown["dbms.security.procedures.unrestricted"] == "gds.*"
