"""Commands of a migration and writers, killed at random: the command is run again, and nothing is lost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from children import child
from moving import PATIENCE, assert_equal, assert_stored, migration, run_command, write_turns

from graphmem.migrate.states import STEPS, Command, Phase
from graphmem.models import Scope

KILLS = 200
NEXT: dict[Phase, Command] = {
    "idle": "copy",
    "starting": "copy",
    "copying": "cutover",
    "cutting": "cutover",
    "switching": "cutover",
    "cut": "rollback",
    "returning": "rollback",
    "returned": "rollback",
}
"""Commands that lead around: copy, cutover, rollback, and again."""


def hear(pipe: Connection, acknowledged: list[str]) -> None:
    """Add what a writer has said so far, also after its death."""
    try:
        while pipe.poll(0):
            said: Any = pipe.recv()
            if isinstance(said, Exception):
                raise said
            acknowledged.append(said)
    except (EOFError, OSError):
        pass


@pytest.mark.slow
@pytest.mark.full
def test_nothing_is_lost_or_doubled_when_commands_and_writers_are_killed(
    tmp_path: Path, rounds: Callable[[int], int]
) -> None:
    kills = max(60, rounds(KILLS))
    source, target = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    acknowledged: list[str] = []
    chance = random.Random(1)
    seen: set[Phase] = set()
    done = 0
    with closing(migration(source, target)) as moved:
        while done < kills:
            if moved.phase in ("cutting", "returning"):  # writers would wait
                moved.advance(NEXT[moved.phase])
            with child(write_turns, source, f"w{done}", 0.005) as (writer, said):
                assert said.poll(PATIENCE)
                for _ in range(4):
                    name = NEXT[moved.phase]
                    with child(run_command, source, target, name) as (process, answer):
                        if answer.poll(chance.uniform(0, 0.25)) and isinstance(found := answer.recv(), Exception):
                            raise found
                        process.kill()
                        process.join()
                    done += 1
                    seen.add(moved.phase)
                    if chance.random() < 0.7 and (name, moved.phase) in STEPS:
                        moved.advance(name)  # the same command again
                    hear(said, acknowledged)
                if chance.random() < 0.5:
                    time.sleep(0.1)
                writer.kill()
                writer.join()
                done += 1
                hear(said, acknowledged)
        while moved.phase != "cut":
            moved.advance(NEXT[moved.phase])
        moved.settle()
        assert_equal(moved, Scope())
        assert_stored(moved.target, Scope(), acknowledged)
        assert len(acknowledged) > kills / 2
        assert {"copying", "cut"} <= seen


@pytest.mark.parametrize(("command", "phase"), STEPS)
def test_a_command_that_was_killed_before_or_after_any_step_is_completed(
    command: Command, phase: Phase, tmp_path: Path
) -> None:
    """Bring two stores into each phase by single steps, and let another process complete the command."""
    urls = f"memory://{tmp_path.name}-a", f"memory://{tmp_path.name}-b"
    way: list[Command] = ["copy", "cutover", "cleanup"]
    if phase in ("returning", "returned"):
        way = ["copy", "cutover", "rollback"]
    if phase == "canceling":
        way = ["copy", "cancel"]
    with closing(migration(*urls)) as killed:
        for name in way:
            while killed.phase != phase and (step := STEPS.get((name, killed.phase))) is not None:
                if step.when_equal:
                    killed.settle()
                _, source, target = killed._read()  # pyright: ignore[reportPrivateUsage]
                assert killed._set(step, source, target)  # pyright: ignore[reportPrivateUsage]
        assert killed.phase == phase
        with closing(migration(*urls)) as again:
            reached = again.advance(command)
            assert (command, reached) not in STEPS
            assert again.advance(command) == reached if command != "cancel" else reached == "idle"
