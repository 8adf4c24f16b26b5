"""The state machine of a migration: phases, which are the marks of both stores, and the steps of each command.

A step sets the mark of one store. A command takes steps until there is none for its phase, so a command that was
killed is completed by running it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphmem.models import MoveState

Phase = Literal[
    "idle", "starting", "copying", "cutting", "switching", "cut", "returning", "returned", "cleaning", "moved"
]
Command = Literal["copy", "cutover", "rollback", "cleanup", "cancel"]
Side = Literal["source", "target"]

PHASES: dict[tuple[MoveState | None, MoveState | None], Phase] = {
    (None, None): "idle",
    (None, "receiving"): "starting",
    ("copying", "receiving"): "copying",
    ("cutting", "receiving"): "cutting",
    ("cutting", "serving"): "switching",
    ("cut", "serving"): "cut",
    ("cut", "returning"): "returning",
    ("copying", "returning"): "returned",
    ("moved", "serving"): "cleaning",
    ("moved", None): "moved",
}
"""Phase by the states of source and target; other pairs don't occur."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of one mark.

    Attributes
    ----------
    side
        The store.
    state
        Its new state; None removes the mark.
    when_equal
        Whether both stores have to be equal first; nobody writes to them meanwhile.
    """

    side: Side
    state: MoveState | None
    when_equal: bool = False


STEPS: dict[tuple[Command, Phase], Step] = {
    ("copy", "idle"): Step("target", "receiving"),
    ("copy", "starting"): Step("source", "copying"),
    ("cutover", "copying"): Step("source", "cutting"),
    ("cutover", "cutting"): Step("target", "serving", when_equal=True),
    ("cutover", "switching"): Step("source", "cut"),
    ("rollback", "cutting"): Step("source", "copying"),
    ("rollback", "switching"): Step("source", "cut"),
    ("rollback", "cut"): Step("target", "returning"),
    ("rollback", "returning"): Step("source", "copying", when_equal=True),
    ("rollback", "returned"): Step("target", "receiving"),
    ("cleanup", "cut"): Step("source", "moved"),
    ("cleanup", "cleaning"): Step("target", None),
    ("cancel", "copying"): Step("source", None),
    ("cancel", "starting"): Step("target", "abandoned"),
}
"""The step of a command in a phase."""

GOALS: dict[Command, Phase] = {
    "copy": "copying",
    "cutover": "cut",
    "rollback": "copying",
    "cleanup": "moved",
    "cancel": "idle",
}
"""Where a command ends; in phases without a step and other than this one it is refused."""

SOURCE_SERVES: frozenset[Phase] = frozenset(("idle", "starting", "copying", "cutting", "returned"))
"""Phases in which the source is the primary; in the others it is the target."""

SOURCE_STATES: frozenset[MoveState] = frozenset(("copying", "cutting", "cut", "moved"))
"""States of a source; the others are those of a target."""

WAITING: frozenset[MoveState] = frozenset(("cutting", "returning"))
"""States of a primary whose callers wait until the other store has taken over."""
