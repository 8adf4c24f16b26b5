"""Tokens of scopes, which tell which writes a store has.

During a migration each write transaction of the primary stores a new token in every scope that it changes, in the same
transaction. The token is a version vector: it has a slot for each of a few processes, with the id of the last
transaction of that process. A process brings its changes to the secondary in their order, together with its slot; the
changes of different processes need no order. So the stores are equal in a scope exactly when their tokens are. A token
belongs to one migration, whose id it begins with: writes outside of migrations have none, so that those of an earlier
migration say nothing about the next.

A transaction of the secondary that removes what the primary has erased also notes that its files have to be scrubbed.
The note belongs to the whole store: it stays when a scope is emptied or cleared.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graphmem.models import Changes, JobState, Scope, new_id, utc_now
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
    _put(store, scope, state_of(token))
    if erased:
        note_erasure(store)


def state_of(token: str) -> JobState:
    """Return the job state that holds a token."""
    return JobState(JOB, cursor=token)


def note_erasure(store: GraphBackend) -> None:
    """Note, in a transaction that removes rows, that the files of a store have to be scrubbed."""
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
    token = token_of(store, scope, move_id)
    is_first = not is_usable(token)
    slots = _unused_slots() if is_first else slots_of(token)
    slot = min(range(_SLOTS), key=lambda at: (_process_of(slots[at]) != process, slots[at]))
    version = Version(slot, slots[slot], f"{new_id()}.{process}.{number}", number, number, is_first)
    _put(store, scope, state_of(advanced(_text(move_id, slots), [version])))
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
