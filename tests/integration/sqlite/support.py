"""Rows and helpers that the tests of the SQLite store share."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from graphmem.models import Alias, Changes, Edge, EdgeType, Entity, Scope
from graphmem_sqlite import SQLiteBackend, open_backend

SCOPE = Scope("tests")
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def store_at(path: Path, *, busy_timeout: float = 60.0) -> SQLiteBackend:
    return open_backend(f"sqlite:///{path}", busy_timeout=busy_timeout)


def entity(name: str, *, scope: Scope = SCOPE, summary: str = "") -> Entity:
    return Entity(
        id=f"id-{scope.key}-{name.lower()}",
        scope=scope,
        name=name,
        canonical_name=name.lower(),
        entity_type="person",
        summary=summary,
        first_seen_at=MOMENT,
        last_seen_at=MOMENT,
        recorded_at=MOMENT,
    )


def edge(
    source: Entity, target: Entity, relation: str = "knows", *, confidence: float = 1.0, valid_from: datetime = MOMENT
) -> Edge:
    return Edge(
        scope=source.scope,
        source_id=source.id,
        target_id=target.id,
        relation=relation,
        edge_type=EdgeType.SEMANTIC,
        confidence=confidence,
        valid_from=valid_from,
        recorded_at=MOMENT,
    )


def of(*entities: Entity, edges: tuple[Edge, ...] = ()) -> Changes:
    """Return the changes that bring these entities, their aliases and edges."""
    aliases = tuple(Alias(alias=e.canonical_name, entity_type=e.entity_type, entity_id=e.id) for e in entities)
    return Changes(entities=entities, aliases=aliases, edges=edges)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return name → bytes of all files in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@contextmanager
def raw(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """Open a file with plain sqlite3."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def unprivileged() -> Generator[None, None, None]:
    """Run a block without the rights of root, for whom no file is read-only."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start Python code in a process of its own; it may wait for a line on its standard input."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_at_once(script: str, count: int, *arguments: object) -> list[str]:
    """Run the same code in several processes that begin at the same moment; return what they print.

    The code gets the number of its process as last argument, and reads a line before it begins.
    """
    processes = [start(script, *arguments, number) for number in range(count)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [p.returncode for p in processes] == [0] * count, "\n".join(errors for _, errors in outputs)
    return [printed for printed, _ in outputs]
