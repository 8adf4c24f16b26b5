"""Migrations for tests: stores that are compared whole, and processes that write and migrate."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

import pytest
from children import toy_text
from toy import ToyExtractor

from graphmem import GraphMemory
from graphmem.engine import Engine
from graphmem.migrate.service import Migration
from graphmem.migrate.states import Command
from graphmem.migrate.tokens import JOB, SHADOW
from graphmem.migrate.verify import Answers, read_only
from graphmem.models import EpisodeQuery, JobState, Scope
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings
from graphmem.upkeep.scope_rows import all_rows, to_json
from tests.e2e.word_vectors import WordVectors

PATIENCE = 60.0


def opened(url: str, **options: Any) -> GraphMemory:
    """Open a memory that reads toy texts and has vectors."""
    given: dict[str, Any] = {"extractor": ToyExtractor(), "embeddings": WordVectors(), **options}
    return GraphMemory.open(url, **given)


def migration(source: str, target: str | None = None) -> Migration:
    """Open a migration."""
    return Migration.open(source, target, open_backend)


def set_login(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Set the credentials of a server's URL in the environment, as the mark of a migration has no password."""
    login = urlsplit(url)
    monkeypatch.setenv("NEO4J_USERNAME", login.username or "")
    monkeypatch.setenv("NEO4J_PASSWORD", login.password or "")


def rows_of(store: GraphBackend, scope: Scope) -> Counter[tuple[str, str]]:
    """Return all rows of a scope but the marks of the migration itself."""
    return Counter(
        (kind, to_json(kind, row))
        for kind, row in all_rows(store, scope, extras=True)
        if not (isinstance(row, JobState) and row.job in (JOB, SHADOW))
    )


def assert_equal(moved: Migration, scope: Scope) -> None:
    """Compare both stores row by row, once the secondary has what was written last."""
    deadline = time.monotonic() + PATIENCE
    while True:
        ours, theirs = rows_of(moved.source, scope), rows_of(moved.target, scope)
        if ours == theirs:
            return
        if time.monotonic() > deadline:
            assert (list(ours - theirs)[:3], list(theirs - ours)[:3]) == ([], [])
        time.sleep(0.1)


def assert_stored(store: GraphBackend, scope: Scope, acknowledged: list[str]) -> None:
    """Check that every acknowledged episode is there, once."""
    ids = Counter(store.find_episode_ids([scope], EpisodeQuery()))
    assert [episode_id for episode_id in acknowledged if ids[episode_id] != 1] == []
    texts = Counter(e.external_id for e in store.all_episodes([scope], EpisodeQuery()) if e.external_id is not None)
    assert [external for external, count in texts.items() if count != 1] == []


def asking(opened: ExitStack) -> Answers:
    """Return what asks a store, through a memory that is opened once."""
    memories: dict[int, GraphMemory] = {}

    def answer(store: GraphBackend, scope: Scope, question: str) -> tuple[list[str], list[str]]:
        if id(store) not in memories:
            engine = Engine.open(
                "",
                Settings(index_wait=0.0),
                background=False,
                extractor="none",
                embeddings=WordVectors(),
                store=read_only(store),
            )
            memories[id(store)] = opened.enter_context(GraphMemory(engine, scope))
        there = memories[id(store)].in_scope(scope)
        return [f.id for f in there.recall(question).facts], [e.episode.id for e in there.search(question).found]

    return answer


# What processes do


def write_turns(pipe: Connection, url: str, name: str, pause: float) -> None:
    """Remember turns until told to stop, forget and recall now and then.

    Say ("remembered", id) for each episode that is acknowledged, and ("forgetting", id) and ("forgotten", id) before
    and after one is erased.
    """
    with opened(url) as memory:
        number, kept = 0, list[str]()
        while True:
            receipt = memory.remember(toy_text(name, number), external_id=f"{name}/{number}")
            pipe.send(("remembered", receipt.episode_id))
            kept.append(receipt.episode_id)
            number += 1
            if number % 5 == 0:
                memory.recall(f"Whom does Person {number % 7} know?")
                erased = kept.pop(0)
                pipe.send(("forgetting", erased))
                memory.forget(episode=erased, clean_files=False)
                pipe.send(("forgotten", erased))
            time.sleep(pause)


def run_command(pipe: Connection, source: str, target: str, name: Command, marks: int = 0) -> None:
    """Run a command of a migration; say the phase that it reaches. It is killed after a number of marks, if given."""
    moved = migration(source, target if name == "copy" else None)
    left = count(marks - 1, -1)

    def killed_after(mark: Callable[..., bool]) -> Callable[..., bool]:
        def marked(*args: Any, **kwargs: Any) -> bool:
            done = mark(*args, **kwargs)
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return marked

    for store in (moved.source, moved.target):
        store.set_move = killed_after(store.set_move)  # type: ignore[method-assign]
    phase = moved.advance(name)
    if name == "copy":
        moved.copy()
    pipe.send(phase)
    moved.close()


def copy_killed(pipe: Connection, source: str, method: str) -> None:
    """Copy, and be killed after the target was cleared, or before another method of it does anything."""
    del pipe
    moved = migration(source)
    call = getattr(moved.target, method)

    def killed(*args: Any) -> None:
        if method == "clear":
            call(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(moved.target, method, killed)
    moved.copy()
