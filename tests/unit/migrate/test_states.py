"""The state machine of a migration: every step leads to a phase, every command to its goal, and one store serves."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from graphmem.migrate.states import GOALS, PHASES, SOURCE_SERVES, SOURCE_STATES, STEPS, WAITING, Command, Phase, Step
from graphmem.models import MoveState

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "migrate.md"
Marks = tuple[MoveState | None, MoveState | None]
MARKS: dict[Phase, Marks] = {phase: marks for marks, phase in PHASES.items()}
SERVING = {None, "copying", "serving"}


def after(marks: Marks, step: Step) -> Marks:
    source, target = marks
    changed = (step.state, target) if step.side == "source" else (source, step.state)
    return (changed[0], None) if changed[1] == "abandoned" else changed


@pytest.mark.parametrize(("command", "phase"), STEPS)
def test_a_step_leads_to_a_phase(command: Command, phase: Phase) -> None:
    assert after(MARKS[phase], STEPS[command, phase]) in PHASES


@pytest.mark.parametrize(("command", "phase"), STEPS)
def test_a_command_reaches_its_goal_from_every_phase_that_it_has_a_step_for(command: Command, phase: Phase) -> None:
    seen: list[Phase] = []
    while (step := STEPS.get((command, phase))) is not None:
        assert phase not in seen, "a command that goes in a circle"
        seen.append(phase)
        phase = PHASES[after(MARKS[phase], step)]
    assert phase == GOALS[command]


@pytest.mark.parametrize("phase", get_args(Phase))
def test_some_command_leads_out_of_every_phase_but_the_last(phase: Phase) -> None:
    assert any(at == phase for _, at in STEPS) != (phase == "moved")


@pytest.mark.parametrize("phase", sorted(set(PHASES.values()) - {"idle", "moved", "starting", "canceling"}))
def test_at_most_one_store_is_written_by_callers(phase: Phase) -> None:
    source, target = MARKS[phase]
    assert (source in SERVING) + (target in SERVING) <= 1
    if source in SERVING or target in SERVING:
        assert (source in SERVING) == (phase in SOURCE_SERVES)


@pytest.mark.parametrize(("command", "phase"), [key for key, step in STEPS.items() if step.when_equal])
def test_nobody_writes_while_stores_are_made_equal(command: Command, phase: Phase) -> None:
    source, target = MARKS[phase]
    primary = source if phase in SOURCE_SERVES else target
    assert primary in WAITING
    assert STEPS[command, phase].state is not None


def test_every_state_is_that_of_one_side() -> None:
    used = {side: {marks[side] for marks in PHASES} - {None} for side in (0, 1)}
    assert used[0] == SOURCE_STATES
    assert used[1] | {"abandoned"} == set(get_args(MoveState)) - SOURCE_STATES


def test_the_page_has_every_phase_and_every_step() -> None:
    page = PAGE.read_text("utf-8")
    assert [phase for phase in get_args(Phase) if f"| `{phase}` |" not in page] == []
    assert [
        f"{c}/{p}" for (c, p), s in STEPS.items() if f"| `{c}` | `{p}` | {s.side} | `{s.state}` |" not in page
    ] == []
