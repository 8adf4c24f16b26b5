"""The state machine of a migration: which store a process uses in each phase, and which writes a store has.

During a migration each write transaction of the primary stores a new token in every scope that it changes, in the same
transaction. The token is a version vector: it has a slot for each of a few processes, with the id of the last
transaction of that process. A process brings its changes to the secondary in their order, together with its slot; the
changes of different processes need no order. So the stores are equal in a scope exactly when their tokens are. A token
belongs to one migration, whose id it begins with: writes outside of migrations have none, so that those of an earlier
migration say nothing about the next.

A transaction of the secondary that removes what the primary has erased also notes that its files have to be scrubbed.
The note belongs to the whole store: it stays when a scope is emptied or cleared.

A phase is the marks of both stores. A step sets the mark of one store. A command takes steps until there is none for
its phase, so a command that was killed is completed by running it again.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from graphmem.errors import BackendUnavailable, StoreMoved
from graphmem.models import Changes, JobState, Move, MoveState, Scope, new_id, utc_now
from graphmem.protocols import GraphBackend

JOB = "migrate"
"""Job of the state that holds the token."""
SHADOW = "migrate-shadow"
"""Job of the state that counts differing shadow reads."""

_REPAIRING = "repairing "
_SLOTS = 32  # more processes that write to a scope at the same time wait for each other's transfers
_NOTES = Scope("graphmem-migrate")
_SCRUB = "scrub"


def token_of(store: GraphBackend, scope: Scope, move_id: str | None = None) -> str:
    """Return the token of a scope in a migration, by default the one of the store; "" if it has none."""
    token = store.find_job_state(scope, JOB).cursor
    return token if _is_of(token, _move_id(store) if move_id is None else move_id) else ""


def new_token(store: GraphBackend) -> str:
    """Return a first token of a scope, in the migration that a store takes part in."""
    return _text(_move_id(store), _unused_slots())


def _unused_slots() -> list[str]:
    """Return the slots of a new token: others than before, as transactions from before a removal can't follow it."""
    return _SLOTS * [f"-{secrets.token_hex(4)}"]


def _text(move_id: str, slots: Sequence[str]) -> str:
    return " ".join((move_id, *slots))


def slots_of(token: str) -> list[str]:
    """Return the ids of the last transactions in a token, by slot."""
    return token.split(" ")[1:]


def _move_id(store: GraphBackend) -> str:
    move = store.read_move()
    return "" if move is None else move.id


def _is_of(token: str, move_id: str) -> bool:
    return bool(move_id) and token.startswith(f"{move_id} ")


def put_token(store: GraphBackend, scope: Scope, token: str, *, erased: bool = False) -> None:
    """Store the token of a scope; `erased`, in a transaction that removes rows, has the files scrubbed later."""
    _put(store, scope, replace(store.find_job_state(scope, JOB), cursor=token))
    if erased:
        _put(store, _NOTES, JobState(_SCRUB, begun_at=utc_now(), cursor=new_id()))


@dataclass(frozen=True, slots=True)
class Version:
    """One transaction in a scope, or several of a process that follow one another.

    Attributes
    ----------
    slot
        Position in the token.
    before
        Id of the transaction that the slot had before.
    id
        Id of the last transaction: a time, the process, and its number.
    first, number
        Numbers of the first and the last transaction; those of a process ascend.
    is_first
        Whether the scope had no token before.
    """

    slot: int
    before: str
    id: str
    first: int
    number: int
    is_first: bool = False

    def number_in(self, slots: Sequence[str]) -> int | None:
        """Return the number of the last transaction of this process in the slot; None if it is of another one."""
        if _process_of(slots[self.slot]) != _process_of(self.id):
            return None
        return int(slots[self.slot].rpartition(".")[2])


def _process_of(version_id: str) -> str:
    return version_id.partition(".")[2].partition(".")[0]


def next_version(store: GraphBackend, scope: Scope, move_id: str, process: str, number: int) -> Version:
    """Store a new token of a scope in a migration.

    A process continues the slot that it wrote last. If it has none, it takes the one that was written the longest ago.
    """
    state = store.find_job_state(scope, JOB)
    is_first = not (_is_of(state.cursor, move_id) and is_usable(state.cursor))
    slots = _unused_slots() if is_first else slots_of(state.cursor)
    slot = min(range(_SLOTS), key=lambda at: (_process_of(slots[at]) != process, slots[at]))
    version = Version(slot, slots[slot], f"{new_id()}.{process}.{number}", number, number, is_first)
    _put(store, scope, replace(state, cursor=advanced(_text(move_id, slots), [version])))
    return version


def advanced(token: str, versions: Iterable[Version]) -> str:
    """Return a token after some transactions."""
    slots = slots_of(token)
    for version in versions:
        slots[version.slot] = version.id
    return _text(token.partition(" ")[0], slots)


def place_versions(token: str, versions: Iterable[Version]) -> tuple[list[Version], list[Version]]:
    """Return those of the transactions of a process that a token has, and those that can follow it.

    One can't follow if another process has used the slot before, and its transaction is missing.

    Parameters
    ----------
    token
        The token of the secondary.
    versions
        Transactions of one process, in their order.
    """
    slots = slots_of(token)
    known: list[Version] = []
    following: list[Version] = []
    for version in versions:
        number = version.number_in(slots)
        if number is not None and version.number <= number:
            known.append(version)
        elif slots[version.slot] == version.before or (number is not None and version.first <= number):
            slots[version.slot] = version.id
            following.append(version)
    return known, following


def late_slots(primary: GraphBackend, secondary: GraphBackend, scope: Scope) -> frozenset[tuple[int, str]] | None:
    """Return the slots in which the secondary lacks transactions, with its own ids; None if it has no usable token.

    A slot that stays in the result with its id is one that no process brings up to date.
    """
    theirs = token_of(secondary, scope)
    if not is_usable(theirs):
        return None
    ours = token_of(primary, scope)
    slots = slots_of(ours) if is_usable(ours) else _SLOTS * [""]  # it was cleared
    return frozenset((at, there) for at, there in enumerate(slots_of(theirs)) if slots[at] != there)


def scrub(store: GraphBackend) -> bool:
    """Scrub the files of a store if that is left to do; return whether nothing is left."""
    note = store.find_job_state(_NOTES, _SCRUB)
    if note.begun_at is None:
        return True
    if not store.scrub():
        return False

    def scrubbed() -> None:
        if store.find_job_state(_NOTES, _SCRUB) == note:
            _put(store, _NOTES, replace(note, begun_at=None))

    store.atomic(scrubbed)
    return True


def _put(store: GraphBackend, scope: Scope, state: JobState) -> None:
    store.write(scope, Changes(job_states=(state,)))


def repair_token(store: GraphBackend) -> str:
    """Return a token of a scope of a store that is being repaired."""
    return f"{_move_id(store)} {_REPAIRING}{new_id()}"


def is_usable(token: str) -> bool:
    """Return whether a token tells which write a store has; False before the copy of the scope is complete."""
    return token.count(" ") == _SLOTS


def is_equal(primary: GraphBackend, secondary: GraphBackend, scope: Scope) -> bool:
    """Return whether the secondary has all writes of the primary in a scope."""
    theirs = token_of(secondary, scope)
    return is_usable(theirs) and theirs == token_of(primary, scope)


# States -------------------------------------------------------------------------------------------


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
