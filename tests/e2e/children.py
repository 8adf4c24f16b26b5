"""Processes that work on one store: what they do, and how a test starts, hears and kills them.

They are forked off a server that has graphmem loaded, so that a round costs milliseconds, not an interpreter.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any, cast

from toy import ToyExtractor

from graphmem import GraphMemory

CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["graphmem.memory", "graphmem_sqlite", "graphmem_neo4j", "toy", "children"])

SCOPE = "GRAPHMEM_SCOPE"
Work = Callable[..., None]


@contextmanager
def child(work: Work, *arguments: Any) -> Generator[tuple[ForkServerProcess, Connection]]:
    """Start a process that does `work(pipe, *arguments)`; yield it and our end of the pipe; kill what is left of it."""
    ours, theirs = cast("tuple[Connection, Connection]", CONTEXT.Pipe(duplex=False))
    process = CONTEXT.Process(target=_run, args=(work, theirs, arguments, os.environ.get(SCOPE)), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def _run(work: Work, pipe: Connection, arguments: Sequence[Any], scope: str | None) -> None:
    os.environ.pop(SCOPE, None)  # the server has the environment of the test that started it
    if scope is not None:
        os.environ[SCOPE] = scope
    try:
        work(pipe, *arguments)
    except Exception as error:  # noqa: BLE001 - the test has to hear of it
        pipe.send(error)


def heard(pipe: Connection) -> list[Any]:
    """Return everything that a process has said and still says, until it ends; raise what it raised."""
    said: list[Any] = []
    while True:
        try:
            said.append(pipe.recv())
        except (EOFError, OSError):  # killed in the middle of a word
            return said
        if isinstance(said[-1], Exception):
            raise said[-1]


def run_all(work: Work, each: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Run `work` in as many processes at once as there are argument lists; return what each said."""
    if not each:
        return []
    with child(work, *each[0]) as (_, pipe):
        rest = run_all(work, each[1:])
        return [heard(pipe), *rest]


# What they do


def remember_turns(pipe: Connection, url: str, name: str) -> None:
    """Remember turns for ever, with extraction behind; say each one that is acknowledged."""
    with GraphMemory.open(url, extractor=ToyExtractor()) as memory:
        number = 0
        while True:
            receipt = memory.remember(toy_text(name, number))
            pipe.send((number, receipt.episode_id))
            number += 1


def ingest_turns(pipe: Connection, url: str, name: str, total: int) -> None:
    """Ingest turns in small batches; say how many were stored each time that progress is told."""
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, batch_size=20) as memory:
        memory.ingest(toy_turns(name, total), on_progress=lambda progress: pipe.send(progress.received))


def add_triples(pipe: Connection, url: str, name: str, total: int) -> None:
    """Add facts in small batches; say how many were stored each time that progress is told."""
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, batch_size=20) as memory:
        memory.add_facts(toy_triples(name, total), on_progress=lambda progress: pipe.send(progress.received))


def toy_text(name: str, number: int) -> str:
    """Return a text of three facts: names that many texts share, and one of its own."""
    return (
        f"Person {number % 7} | knows | Person {(number + 1) % 7 + 7}\n"
        f"Person {number % 7} | visited | Place {name} {number}\n"
        f"Person {number % 7 + 7} | likes | Thing {number % 5}"
    )


def toy_turns(name: str, total: int) -> list[dict[str, str]]:
    """Return turns with ids."""
    return [{"text": toy_text(name, i), "external_id": f"{name}/{i}"} for i in range(total)]


def toy_triples(name: str, total: int) -> list[dict[str, str]]:
    """Return facts, each of an episode of its own."""
    return [
        {"subject": f"Person {i % 7}", "relation": "visited", "object": f"Spot {name} {i}", "source": f"{name}/{i}"}
        for i in range(total)
    ]


# Four at once


def write_same_names(pipe: Connection, url: str, name: str, rounds: int) -> None:
    """Write facts about names that the others write too, by every way in; say the number of facts of its own."""
    with GraphMemory.open(url, extractor=ToyExtractor()) as memory:
        for i in range(rounds):
            memory.add_facts(
                [
                    (f"Person {i}", "knows", f"Person {i + 1}"),
                    (f"PERSON  {i}", "visited", f"Place {name} {i}"),
                ]
            )
            memory.remember(f"person {i} | met | Person {i + 2}\nPerson {i} | saw | Sight {name} {i}")
        memory.flush()
    pipe.send(2 * rounds)


def work_queue(pipe: Connection, url: str) -> None:
    """Extract until nothing waits; say which texts were read and how many episodes that made."""
    extractor = ToyExtractor()
    with GraphMemory.open(url, extractor=extractor, background=False) as memory:
        extracted = 0
        while memory.stats().pending_episodes:
            extracted += memory.admin.backfill().extracted
    pipe.send((extractor.seen, extracted))
