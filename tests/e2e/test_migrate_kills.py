"""Commands of a migration and writers, killed at random: the command is run again, and nothing is lost."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, get_args

import pytest
from children import child
from moving import (
    PATIENCE,
    assert_equal,
    assert_stored,
    copy_killed,
    migration,
    opened,
    run_command,
    set_login,
    write_turns,
)
from test_upkeep import left_of

from graphmem.migrate.states import STEPS, Command, Phase
from graphmem.models import Changes, Episode, EpisodeQuery, JobState, Scope, utc_now
from graphmem.protocols import GraphBackend

KILLS = 200
NEXT: dict[Phase, list[Command]] = {
    "idle": ["copy"],
    "starting": ["copy", "copy", "cancel"],
    "copying": ["cutover", "cutover", "cancel"],
    "canceling": ["cancel"],
    "cutting": ["cutover", "rollback"],
    "switching": ["cutover"],
    "cut": ["rollback", "cleanup"],
    "returning": ["rollback"],
    "returned": ["rollback"],
    "cleaning": ["cleanup"],
}
"""Commands that lead around; after the cleanup, the way back is the next migration."""


class Told:
    """What the writers have said."""

    def __init__(self) -> None:
        self.ids: dict[str, set[str]] = {"remembered": set(), "forgetting": set(), "forgotten": set()}

    def hear(self, pipe: Connection) -> None:
        """Add what a writer has said so far, also after its death."""
        try:
            while pipe.poll(0):
                said: Any = pipe.recv()
                if isinstance(said, Exception):
                    raise said
                self.ids[said[0]].add(said[1])
        except (EOFError, OSError):
            pass

    def check(self, store: GraphBackend) -> None:
        """Check that what was acknowledged is there once, and nothing that was forgotten."""
        assert_stored(store, Scope(), sorted(self.ids["remembered"] - self.ids["forgetting"]))
        assert self.ids["forgotten"].isdisjoint(store.find_episode_ids([Scope()], EpisodeQuery()))


@pytest.mark.slow
@pytest.mark.full
def test_nothing_is_lost_or_doubled_when_commands_and_writers_are_killed(
    tmp_path: Path, rounds: Callable[[int], int]
) -> None:
    kill_at_random(f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db", max(60, rounds(KILLS)))


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.whole_store
def test_nothing_is_lost_or_doubled_on_a_server_when_commands_and_writers_are_killed(
    empty_neo4j_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: Callable[[int], int]
) -> None:
    set_login(monkeypatch, empty_neo4j_url)
    kill_at_random(f"sqlite:///{tmp_path}/a.db", empty_neo4j_url, rounds(KILLS))


def kill_at_random(source: str, target: str, kills: int) -> None:
    """Migrate there and back beside a writer, and kill the commands and the writer until every phase was seen."""
    told = Told()
    chance = random.Random(1)
    seen: set[Phase] = set()
    done = 0
    with ExitStack() as stores:
        moved = stores.enter_context(closing(migration(source, target)))

        def kill_command() -> None:
            """Run the next command; kill it after a while, or after it has set a mark."""
            nonlocal moved, source, target
            if moved.phase == "moved":  # the way back
                source, target = target, source
                moved = stores.enter_context(closing(migration(source, target)))
            seen.add(moved.phase)
            name = chance.choice(NEXT[moved.phase])
            marks = chance.choice((0, 1, 2))
            # only the target has a mark yet
            url = target if (name, moved.phase) == ("cancel", "starting") else source
            with child(run_command, url, target, name, marks) as (process, answer):
                seconds = chance.uniform(0, 0.25) if marks == 0 else PATIENCE
                try:
                    if answer.poll(seconds) and isinstance(found := answer.recv(), Exception):
                        raise found
                except EOFError:
                    pass  # it has killed itself
                process.kill()
                process.join()
            seen.add(moved.phase)
            if chance.random() < 0.5 and (name, moved.phase) in STEPS:
                moved.advance(name)  # the same command again

        while (done < kills or seen != set(get_args(Phase))) and done < 4 * kills:
            while moved.phase in ("cutting", "returning"):  # writers would wait
                moved.advance(NEXT[moved.phase][0])
            with child(write_turns, source, f"w{done}", 0.005) as (writer, said):
                assert said.poll(PATIENCE)
                for _ in range(4):
                    kill_command()
                    told.hear(said)
                if chance.random() < 0.5:
                    time.sleep(0.1)
                writer.kill()
                writer.join()
                told.hear(said)
            done += 5
        assert seen == set(get_args(Phase))
        while moved.phase not in ("copying", "cut"):
            if moved.phase == "moved":
                source, target = target, source
                moved = stores.enter_context(closing(migration(source, target)))
            moved.advance(NEXT[moved.phase][0])
        with opened(source) as memory:
            memory.remember("Ada | knows | Charles")  # a process that writes repairs what the killed ones left out
            if moved.phase == "copying":
                moved.copy()
            assert_equal(moved, Scope())
        told.check(moved.ends()[0])
        assert len(told.ids["remembered"]) > kills / 2
        assert told.ids["forgotten"]


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


@pytest.mark.slow  # as long as a server of processes takes to start
@pytest.mark.parametrize("method", ["clear", "scrub"])
def test_the_files_of_a_cleared_scope_are_scrubbed_after_a_kill_at_any_place(method: str, tmp_path: Path) -> None:
    """Kill a copy after it has cleared the scope of the secondary, or before it scrubs the file."""
    source, target = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    with closing(migration(source, target)) as moved:
        moved.source.add_episodes(Scope(), [Episode(scope=Scope(), text="Zaphod knows Charles")])
        moved.source.write(Scope(), Changes(job_states=(JobState("communities", done_at=utc_now()),)))
        moved.advance("copy")
        moved.copy()
        moved.source.clear(Scope())
        with child(copy_killed, source, method) as (process, _):
            process.join(PATIENCE)
            assert process.exitcode == -signal.SIGKILL
        assert left_of(tmp_path / "b.db", "zaphod") == ["zaphod"]
        moved.copy()
        assert moved.target.scopes() == []
        assert left_of(tmp_path / "b.db", "zaphod") == []
