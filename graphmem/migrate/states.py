"""The state machine of a migration: which store a process uses in each phase.

A phase is the marks of both stores. A step sets the mark of one store. A command takes steps until there is none for
its phase, so a command that was killed is completed by running it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphmem.errors import BackendUnavailable, StoreMoved
from graphmem.models import Move, MoveState
from graphmem.protocols import GraphBackend

Phase = Literal[
    "idle",
    "starting",
    "copying",
    "cutting",
    "switching",
    "cut",
    "returning",
    "returned",
    "cleaning",
    "moved",
    "canceling",
]
Command = Literal["copy", "cutover", "rollback", "cleanup", "cancel"]
Side = Literal["source", "target"]

PHASES: dict[tuple[MoveState | None, MoveState | None], Phase] = {
    (None, "served"): "idle",  # of an earlier migration
    (None, None): "idle",
    (None, "receiving"): "starting",
    ("copying", "receiving"): "copying",
    ("cutting", "receiving"): "cutting",
    ("cutting", "serving"): "switching",
    ("cut", "serving"): "cut",
    ("cut", "returning"): "returning",
    ("copying", "returning"): "returned",
    ("moved", "serving"): "cleaning",
    ("moved", None): "moved",  # by a version before "served"; or the target was replaced
    ("moved", "served"): "moved",
    ("copying", None): "canceling",
}
"""Phase by the states of source and target; other pairs don't occur.

An abandoned target and a source that was the target of an earlier migration ("served") count as None.
"""


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
    ("cleanup", "cleaning"): Step("target", "served"),
    ("cancel", "copying"): Step("target", "abandoned"),
    ("cancel", "canceling"): Step("source", None),
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

SOURCE_SERVES: frozenset[Phase] = frozenset(("idle", "starting", "copying", "cutting", "returned", "canceling"))
"""Phases in which the source is the primary; in the others it is the target."""

DUAL: frozenset[Phase] = frozenset(("copying", "cutting", "switching", "cut", "returning", "returned"))
"""Phases in which the secondary gets what is written to the primary."""

SOURCE_STATES: frozenset[MoveState] = frozenset(("copying", "cutting", "cut", "moved"))
"""States of a source; the others are those of a target."""

WAITING: frozenset[MoveState] = frozenset(("cutting", "returning"))
"""States of a primary whose callers wait until the other store has taken over."""


def is_followed(primary: Move | None, secondary: Move | None, move_id: str) -> bool:
    """Return whether, by their marks, one store is the primary of a migration and the other one its secondary."""
    if primary is None or secondary is None or not (primary.id == secondary.id == move_id):
        return False
    is_source = primary.state in SOURCE_STATES
    source, target = (primary, secondary) if is_source else (secondary, primary)
    phase = PHASES.get((source.state, target.state))
    return phase in DUAL and (phase in SOURCE_SERVES) == is_source


Open = Callable[[str], GraphBackend]


@dataclass(frozen=True, slots=True)
class Route:
    """The store to use.

    Attributes
    ----------
    primary
        The store that is read and written.
    move
        Its mark; None if it has none.
    secondary
        URL of the store that gets the same changes; None for none.
    """

    primary: GraphBackend
    move: Move | None = None
    secondary: str | None = None


def open_existing(open_store: Open, url: str) -> GraphBackend:
    """Open a store that a mark names.

    Raises
    ------
    BackendUnavailable
        If it doesn't exist, or can't be opened.
    """
    scheme, separator, path = url.partition(":///")
    if scheme == "sqlite" and separator and not Path(path).exists():
        raise BackendUnavailable(
            f"{url}: the other store of a migration doesn't exist; put its file in place, or if it is gone for good, "
            "run graphmem migrate cancel --force"
        )
    return open_store(url)


def plain_url(url: str) -> str:
    """Return a URL without its password and with an absolute path, as marks hold it."""
    scheme, separator, path = url.partition(":///")
    if scheme == "sqlite" and separator:
        return f"sqlite:///{Path(path).absolute()}"
    return re.sub(r"(?<=://)([^/@\s:]*):.*@", r"\1@", url)


class Routes:
    """The stores of a process, opened when a mark names them.

    Parameters
    ----------
    store
        The store that was opened.
    open_store
        Opens another one by the URL of a mark, with the credentials of this process.
    """

    def __init__(self, store: GraphBackend, open_store: Open) -> None:
        self._first = store
        self._open = open_store
        self._stores: dict[str, GraphBackend] = {}

    def first(self) -> Route | None:
        """Return the route of a process that opens the store; None while another store takes over.

        Raises
        ------
        StoreMoved
            If the store was left, or isn't complete yet.
        BackendUnavailable
            If the store that took over can't be opened.
        """
        move = self._first.read_move()
        if move is not None and move.state == "moved":
            raise StoreMoved(f"{move.source}: was moved to {move.target}; open that store instead", move)
        return self._joined(self._first, move)

    def next(self, route: Route) -> Route | None:
        """Return the route after a change of the mark; None while another store takes over. Raises as `first` does."""
        move = route.primary.read_move()
        if move is not None and route.move is not None and move.id == route.move.id:
            return self._of(route.primary, move)
        return self._joined(route.primary, move)

    def _joined(self, store: GraphBackend, move: Move | None) -> Route | None:
        """Return the route of a store that was in no migration, or in another one."""
        if move is None:
            return Route(store)
        if move.state in ("receiving", "abandoned"):
            what = "receives a copy" if move.state == "receiving" else "is an incomplete copy"
            raise StoreMoved(f"{move.target}: {what} of {move.source}; open that store instead", move)
        self._stores[move.source if move.state in SOURCE_STATES else move.target] = store
        return self._of(store, move)

    def _of(self, store: GraphBackend, move: Move) -> Route | None:
        if move.state == "copying":
            return Route(store, move, move.target)
        if move.state == "serving":
            return Route(store, move, move.source)
        if move.state == "served":
            return Route(store, move)
        if move.state in WAITING:
            return None
        # this store no longer serves: the other one does, or is about to
        url = move.target if move.state in ("cut", "moved") else move.source
        other = self._stores.get(url)
        was_open = other is not None
        if other is None:
            other = self._stores[url] = open_existing(self._open, url)
        there = other.read_move()
        if there is not None and there.id == move.id and there.state in ("copying", "serving", "served"):
            return self._of(other, there)
        if there is not None and there.id != move.id and there.state in SOURCE_STATES and move.state == "moved":
            return self._joined(other, there)  # it was moved on
        if there is not None and there.id == move.id:
            return None
        if move.state == "abandoned" and (there is None or there.id != move.id):
            if was_open:  # so it wasn't replaced: a process that slept through a rollback and a cancel
                return self._joined(other, there)
            raise StoreMoved(f"the migration of {move.source} to {move.target} was canceled; open {url} again", there)
        raise StoreMoved(f"{url}: isn't in the migration of {move.source} to {move.target}; check the store", there)

    def close(self) -> None:
        """Close all stores."""
        for store in {id(store): store for store in (self._first, *self._stores.values())}.values():
            store.close()
